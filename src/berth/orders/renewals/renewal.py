"""A renewal: the ways to go on after a reservation's end, side by side, best first. Pure; it buys nothing.

Two ways are compared: a later end for the same reservation (an extension), and another reservation of the
same kind that begins about when this one ends. An extension leaves machines where they are; a new reservation
means other machines, and half an hour without any, since AWS takes the old ones back before their end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from berth.orders.extensions.offers import ExtensionOffer
from berth.orders.order import Order, OrderState
from berth.planner.need import Need
from berth.planner.offers import reclaim_before_end
from berth.planner.owned import OwnedChoice
from berth.planner.plan import Choice, Plan
from berth.terms.money import Money
from berth.terms.ways import Target
from berth.terms.window import Window

AROUND = timedelta(days=1)
"""A new reservation may begin so long before the end, or after it: blocks begin once a day."""
PIECE = (
    "it is one piece of an order of several, so a new reservation is not looked for: plan a need of its own"
)
UNANSWERED = "whether it can be extended"
"""How the sentence begins that says why nobody knows."""
_NONE = timedelta(0)


class Means(StrEnum):
    """How one goes on."""

    EXTEND = "extend"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class WayOn:
    """One way to go on.

    `window` is what is paid for. `gap` is how long nothing is paid between the old end and the new start, and
    `twice` how long both are. `without` is how long there are no machines at all (0 where there always are).
    `fee` None: not known, so it is shown and never proposed. `number` is the choice of the remembered plan,
    None for an extension. `against` says each reason why it may not be bought, `approval` why somebody else
    must agree first ('': nobody must).
    """

    means: Means
    window: Window
    zones: tuple[str, ...]
    fee: Money | None
    gap: timedelta = _NONE
    twice: timedelta = _NONE
    without: timedelta = _NONE
    same_zone: bool = True
    number: int | None = None
    against: tuple[str, ...] = ()
    approval: str = ""

    @property
    def can_be_bought(self) -> bool:
        """Whether its price is known and nothing is against it."""
        return self.fee is not None and self.fee.amount > 0 and not self.against


@dataclass(frozen=True, slots=True)
class Renewal:
    """What there is to go on with at `until`, the order's end with everything that is bought.

    `length` is the time wanted, `sequence` the number that a new order of the need would have.
    `ways` are ranked. `unknown` are sentences on what did not answer: something better may be there. `others`
    are reservations of the account that carry somebody else's mark: shown, and never touched. `notes` are
    sentences on what was not asked.
    """

    order: Order
    until: datetime
    length: timedelta
    sequence: int
    ways: tuple[WayOn, ...]
    unknown: tuple[str, ...] = ()
    others: tuple[OwnedChoice, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def knows_extensions(self) -> bool:
        """Whether AWS said what extensions are on sale: none, or those among `ways`."""
        return not any(said.startswith(UNANSWERED) for said in self.unknown)

    @property
    def best(self) -> WayOn | None:
        """What is proposed; None where nothing can be bought."""
        return self.ways[0] if self.ways and self.ways[0].can_be_bought else None


def follower(order: Order, orders: Iterable[Order], until: datetime) -> Order | None:
    """The later order of the same need that holds beyond `until`, or may: then all is done already."""
    held = {OrderState.BUYING, OrderState.UNKNOWN, OrderState.BOUGHT, OrderState.DISPUTED}
    later = [
        one
        for one in orders
        if one.key.need == order.key.need
        and one.key.sequence > order.key.sequence
        and one.state in held
        and one.window.end > until
        and one.window.start <= until + AROUND
    ]
    return max(later, key=lambda one: one.window.end, default=None)


def next_sequence(orders: Iterable[Order]) -> int:
    """The number of the need's next order: that of one that was refused, else a new one."""
    latest = max(orders, key=lambda one: one.key.sequence)
    return latest.key.sequence + (latest.state is not OrderState.REFUSED)


def next_need(order: Order, until: datetime, length: timedelta, now: datetime) -> Need:
    """What is wanted of a new reservation: the order's own need, for `length` from about `until` on."""
    told, offer = order.context.get("need"), order.offer
    need = (
        Need.from_json(told)
        if told
        else Need(
            order.key.need, offer.instance_type, offer.count, length, Target(offer.target), (offer.region,)
        )
    )
    return replace(
        need,
        instance_type=offer.instance_type,
        count=offer.count,
        count_wanted=None,
        alternatives=(),
        accelerators=None,
        profile=(),
        beside=(),
        duration=length,
        longest=None,
        start=None,
        earliest_start=max(now, until - AROUND),
        latest_end=until + AROUND + length,
    )


def by_extending(order: Order, offers: Sequence[ExtensionOffer], until: datetime) -> tuple[WayOn, ...]:
    """Extensions that begin where the reservation ends."""
    zones = order.offer.zones[-1:]
    return tuple(
        WayOn(Means.EXTEND, offer.window, zones, offer.fee) for offer in offers if offer.window.start == until
    )


def by_a_new_one(order: Order, plan: Plan, until: datetime) -> tuple[WayOn, ...]:
    """The plan's offers of the order's way that reach beyond `until`."""
    here = set(order.offer.zones[-1:])
    return tuple(
        _new(order, choice, until, same_zone=set(choice.offer.zones) == here)
        for choice in plan.choices
        if choice.offer.way is order.offer.way and choice.offer.paid_window.end > until
    )


def _new(order: Order, choice: Choice, until: datetime, *, same_zone: bool) -> WayOn:
    window = choice.offer.paid_window
    taken_at = until - reclaim_before_end(order.offer.target)
    return WayOn(
        Means.NEW,
        window,
        choice.offer.zones,
        choice.fee,
        gap=max(window.start - until, _NONE),
        twice=max(until - window.start, _NONE),
        without=max(window.start - taken_at, _NONE),
        same_zone=same_zone,
        number=choice.number,
    )


def ranked(ways: Iterable[WayOn]) -> tuple[WayOn, ...]:
    """Best first: what can be bought, without a gap, in the same zone, for least; then what lasts longest.

    An extension goes before a new reservation of the same price. Fees in several currencies are not compared:
    they stay apart, each currency by itself.
    """
    return tuple(
        sorted(
            ways,
            key=lambda way: (
                not way.can_be_bought,
                way.gap,
                not way.same_zone,
                way.fee.currency if way.fee else "",
                way.fee.amount if way.fee else 0,
                -way.window.end.timestamp(),
                way.means is Means.NEW,
            ),
        )
    )
