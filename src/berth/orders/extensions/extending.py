"""One extension: read the history, search, commit the intent, call once, write down the answer.

The call takes no client token and no tag, so what keeps it from being made twice is this: AWS's history is
read first, and again right before the call; the intent is committed before; and AWS itself sells one that is
unpaid at a time, each of which begins where the one before has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from berth.aws.refusals import Kind, Refusal
from berth.orders.desk import Desk
from berth.orders.extensions.book import AlreadyExtending, ExtensionBook, what_is_extended
from berth.orders.extensions.extension import Extension, ExtensionState
from berth.orders.extensions.history import History
from berth.orders.extensions.offers import GONE, Bounds, ExtensionOffer, cheapest, same_again
from berth.orders.extensions.settling import (
    adopt_unknown,
    doubt,
    ended_without,
    kept,
    settle_all,
)
from berth.orders.extensions.shops import ExtensionShop
from berth.orders.extensions.wish import Standing, Wish, minute, nothing_to_do, why_not
from berth.orders.journal import LostRace
from berth.orders.looks import Began
from berth.orders.order import Order, OrderState
from berth.orders.paying import pay
from berth.orders.rows import tags_of_context
from berth.orders.seen import SeenReservation, Stage
from berth.orders.sighting import trace_of
from berth.orders.spending_gate import Proposal, check_spending, spend_of
from berth.planner.cost import OfferCost, floor_from
from berth.terms.durations import spoken
from berth.terms.money import Money
from berth.terms.outcomes import NOTHING_SPENT, BerthError, ExitCode, Spending

NOT_NOW = "berth show the order; once it is paid, with all that extends it, the same command again"
"""What to do where AWS sells no extension of a reservation as it stands now."""


class How(StrEnum):
    """How an extension came to be had, or why there is none."""

    BOUGHT = "bought"  # by this command
    FOUND = "found"  # by an earlier call whose answer was lost
    ALREADY = "already"  # the wish is met by what was bought before
    NOT_DUE = "not-due"  # the look-ahead has not begun


@dataclass(frozen=True, slots=True)
class Extended:
    """How it ended. `until` is the end with everything that is bought, paid or being paid. `extension` is the
    one of this command, or the latest that is bought; None when there is none. `says` is a sentence."""

    order: Order
    how: How
    until: datetime
    extension: Extension | None
    says: str

    @property
    def bought_now(self) -> bool:
        """Whether this command's call bought it."""
        return self.how is How.BOUGHT


@dataclass(frozen=True, slots=True)
class Till:
    """What extending leans on beside the desk. `buyer` opens the door that can pay, when all else has been
    checked; `agree` hears the offer and raises when nobody agrees to it."""

    shop: ExtensionShop
    buyer: Callable[[], Any]
    agree: Callable[[ExtensionOffer], None]


@dataclass(frozen=True, slots=True)
class _Look:
    """One look: the order's extensions after it, the history, how the reservation stands."""

    order: Order
    extensions: tuple[Extension, ...]
    history: History
    at: Standing


@dataclass(frozen=True, slots=True)
class Call:
    """The one paid call that is about to be made: what was seen, what is asked of the rules, the offer."""

    look: _Look
    proposal: Proposal
    offer: ExtensionOffer


def extend(desk: Desk, till: Till, order: Order, wish: Wish, cap: Money | None) -> Extended:
    """Extend what the order bought, or find out that the wish is met.

    Whatever dies at whatever moment, running it again pays for nothing twice. Raises BerthError: nothing was
    bought (none on sale, dearer, not now), or it is not known (exit 40). After the purchase nothing raises.
    """
    check_order(order)
    before = {one.number for one in order.extensions if one.in_doubt}
    look = look_at(desk, till.shop, order)
    met = _met(desk, till.shop, look, wish, before)
    if met is not None:
        return met
    refused = why_not(desk.clock.now(), look.at)
    if refused is not None:
        raise refused
    offers = _offers(desk, till.shop, wish, look.at.end)
    offer = cheapest(offers, look.at.end, Bounds(cap, _floor(order), order.offer.count))
    proposal = propose(order, offer)
    check_spending(desk.gate, desk.journal.ledger(), proposal, desk.clock.now())
    till.agree(offer)
    client = till.buyer()  # before the intent: a door that does not open has spent nothing
    fresh = _once_more(desk, till.shop, look, offer)
    return _pay_and_record(desk, till.shop, client, Call(look, proposal, fresh))


def _once_more(desk: Desk, shop: ExtensionShop, look: _Look, offer: ExtensionOffer) -> ExtensionOffer:
    """Price and history once more, right before the call: a question may have stood open for long."""
    fresh = same_again(offer, _searched(desk, shop, offer.window.duration))
    again = shop.history()
    if again.complete and len(again.live) == len(look.history.live):
        return fresh
    why = "changed meanwhile" if again.complete else f"could not be read again ({again.trouble})"
    raise BerthError(
        ExitCode.DECISION_NEEDED,
        f"AWS's history of extensions {why}; nothing is bought",
        "run the same command again",
    )


def look_at(desk: Desk, shop: ExtensionShop, order: Order) -> _Look:
    """Read reservation and history, and settle what they tell of the order's extensions.

    Raises BerthError (incomplete) where either cannot be read in full: then nothing may be bought.
    """
    order, seen = _seen_now(desk, order)
    end = None if seen is None else seen.end
    began = Began.by(desk.clock)
    history = shop.history()
    extensions = settle_all(desk, order, history, began.at(desk.clock))
    if seen is not None and seen.stage is Stage.OVER:
        extensions = tuple(ended_without(desk, order, one, end) for one in extensions)
    for was, one in zip(order.extensions, extensions, strict=True):
        if was.in_doubt:  # however this ends, its money is told as it is known now
            desk.tell_spending(one.spending(str(order.key)))
    if seen is not None and seen.stage in {Stage.OVER, Stage.FAILED, Stage.LOST}:
        raise _over(desk, order, seen, extensions, shop)
    if end is None or not history.complete:
        why = history.trouble or "AWS does not show when the reservation ends"
        raise BerthError(
            ExitCode.INCOMPLETE,
            f"whether order {order.key} is extended already could not be read, so nothing is bought: {why}",
            "run the same command again",
            _worst(order, extensions),
        )
    adopt_unknown(desk, replace(order, extensions=extensions), history)
    return _Look(order, extensions, history, _standing(order, extensions, history, end))


def _standing(order: Order, extensions: tuple[Extension, ...], history: History, end: datetime) -> Standing:
    """What AWS shows and what the journal knows, together: AWS may show a purchase 5 minutes late."""
    bought = [one.window.end for one in extensions if one.state is ExtensionState.BOUGHT]
    until = max([history.until(end), *bought])
    extended = bool(history.live or bought) or until > order.offer.paid_window.end
    return Standing(end, until, extended, history.unpaid(end) or any(later > end for later in bought))


def _seen_now(desk: Desk, order: Order) -> tuple[Order, SeenReservation | None]:
    """The order and its reservation as AWS shows it now (None: it does not)."""
    seen = desk.shop.glance(trace_of(order)).reservation
    if seen is None:
        return order, None
    shown, now = seen.to_json(), desk.clock.now()
    order = kept(desk, lambda: desk.journal.note_seen(order, shown, now), replace(order, seen=shown))
    return order, seen


def _over(
    desk: Desk, order: Order, seen: SeenReservation, extensions: tuple[Extension, ...], shop: ExtensionShop
) -> BerthError:
    """What to tell of a reservation that cannot be extended any more: first of all, what is in doubt."""
    for one in extensions:
        if one.in_doubt:
            return doubt(desk, order, one, shop)
    return BerthError(
        ExitCode.BAD_REQUEST,
        f"the reservation of order {order.key} is {seen.state}: it cannot be extended",
    )


def propose(order: Order, offer: ExtensionOffer) -> Proposal:
    """What the rules of spending are asked about."""
    tags = tags_of_context(order.context)
    spend = spend_of(order.key, order.offer, offer.fee, tags)
    return Proposal(order.key, spend, what_is_extended(order, offer.window))


# -- inside ----------------------------------------------------------------------------------------------
def check_order(order: Order) -> None:
    """Raise BerthError unless the order has a reservation that can be extended."""
    if order.state is not OrderState.BOUGHT or order.reservation_arn is None:
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"order {order.key} is {order.state}: there is no reservation to extend",
            f"berth show {order.key}",
            order.spending,
        )


def _met(desk: Desk, shop: ExtensionShop, look: _Look, wish: Wish, before: set[int]) -> Extended | None:
    """What ends the command before anything is bought; None when an extension is to be bought.

    Raises BerthError (outcome unknown) while an earlier one is in doubt.
    """
    for one in look.extensions:
        if one.in_doubt:
            raise doubt(desk, look.order, one, shop)
    latest = next((one for one in reversed(look.extensions) if one.state is ExtensionState.BOUGHT), None)
    says = nothing_to_do(wish, desk.clock.now(), look.at)
    if says is None:
        return None
    if latest is not None and latest.number in before:
        return Extended(look.order, How.FOUND, look.at.until, latest, says)
    how = How.ALREADY if look.at.extended else How.NOT_DUE
    return Extended(look.order, how, look.at.until, latest, says)


def _floor(order: Order) -> Money | None:
    """The least plausible price of one instance hour, from the on-demand rate that the plan compared with."""
    cost = order.context.get("cost")
    even = OfferCost.from_json(cost).break_even if cost else None
    return floor_from(even.rate.hourly) if even is not None else None


def _offers(desk: Desk, shop: ExtensionShop, wish: Wish, end: datetime) -> list[ExtensionOffer]:
    return [offer for length in wish.lengths(end) for offer in _searched(desk, shop, length)]


def _searched(desk: Desk, shop: ExtensionShop, length: timedelta) -> tuple[ExtensionOffer, ...]:
    found = shop.search(length, desk.clock.now())
    if isinstance(found, Refusal):
        not_now = found.code in shop.taken  # it is being paid, or extended by whoever was faster
        raise BerthError(
            ExitCode.DECISION_NEEDED if not_now else found.exit_code,
            f"offers to extend by {spoken(length)} could not be searched: {found}",
            NOT_NOW if not_now else None,
        )
    return found


def _pay_and_record(desk: Desk, shop: ExtensionShop, client: Any, call: Call) -> Extended:
    order, book = call.look.order, ExtensionBook(desk.journal)
    try:
        one = book.intend(
            call.proposal, call.offer, desk.gate,
            intent_id=desk.ids.hex(16), holder=desk.holders.me(), now=desk.clock.now(),
        )  # fmt: skip
    except (AlreadyExtending, LostRace) as lost:
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"{lost}, by another process or an earlier command; nothing is bought by this one",
            f"berth show {order.key}",
        ) from None
    desk.tell_spending(one.spending(str(order.key)))
    end = pay(client, shop.pays, shop.request(one), shop.bought)
    if isinstance(end, Refusal):
        return _no_answer(desk, shop, order, one, end)
    bought = replace(one, state=ExtensionState.BOUGHT)
    bought = kept(
        desk,
        lambda: book.settle(
            order.key, one, ExtensionState.BOUGHT, now=desk.clock.now(), detail=f"answered {end}"
        ),
        bought,
    )
    return _had(desk, order, bought)


def _no_answer(desk: Desk, shop: ExtensionShop, order: Order, one: Extension, refusal: Refusal) -> Extended:
    book, now = ExtensionBook(desk.journal), desk.clock.now()
    certain = not refusal.may_have_happened and refusal.kind is not Kind.UNCLASSIFIED
    if certain and refusal.code not in shop.taken:
        one = kept(
            desk,
            lambda: book.settle(order.key, one, ExtensionState.REFUSED, now=now, detail=str(refusal)),
            replace(one, state=ExtensionState.REFUSED),
        )
        desk.tell_spending(one.spending(str(order.key)))
        raise _refused(shop, refusal)
    one = kept(
        desk,
        lambda: book.settle(order.key, one, ExtensionState.UNKNOWN, now=now, detail=str(refusal)),
        replace(one, state=ExtensionState.UNKNOWN),
    )
    desk.warn(f"the paid call ended without a certain answer ({refusal}); reading AWS's history")
    began, history = Began.by(desk.clock), shop.history()
    (one,) = settle_all(desk, replace(order, extensions=(one,)), history, began.at(desk.clock))
    desk.tell_spending(one.spending(str(order.key)))
    if one.in_doubt:
        raise doubt(desk, order, one, shop)
    if one.state is not ExtensionState.BOUGHT:
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"the extension to {minute(one.window.end)} came to nothing: {one.payment or one.detail}",
            "run the same command again",
        )
    return _had(desk, order, one)


def _had(desk: Desk, order: Order, one: Extension) -> Extended:
    desk.tell_spending(one.spending(str(order.key)))
    until = minute(one.window.end)
    return Extended(order, How.BOUGHT, one.window.end, one, f"extended until {until}")


def _refused(shop: ExtensionShop, refusal: Refusal) -> BerthError:
    if refusal.code in shop.gone:
        return BerthError(
            ExitCode.DECISION_NEEDED, f"{GONE}; nothing is bought in its place", "run the same command again"
        )
    return BerthError(refusal.exit_code, f"AWS refused to extend: {refusal}")


def _worst(order: Order, extensions: tuple[Extension, ...]) -> Spending:
    """What is known about money where a command has to end: the extension in doubt, if there is one."""
    doubts = (one.spending(str(order.key)) for one in extensions if one.in_doubt)
    return next(doubts, NOTHING_SPENT)
