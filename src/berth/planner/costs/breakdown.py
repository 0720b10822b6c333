"""Where the money of an offer goes: used, idle, starting up, longer than wanted, and taken back early."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal

from berth.planner.cost import OfferCost
from berth.planner.need import Need
from berth.planner.offers import Offer, hours_of
from berth.terms.money import Money

_NONE = timedelta(0)
_RATE_STEP = Decimal("0.001")


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the paid time, and what it costs at the offer's own hourly price, to the cent."""

    time: timedelta
    money: Money


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The paid time of one instance, in parts that do not overlap, with the money of all instances.

    `taken_back` is what AWS takes before each segment's end, `overshoot` what lies beyond the longest time
    that was wanted, `starting` the start-up of each segment (None: the need names none, so it is not known),
    `idle` the rest at one minus the utilisation (None: not known). `per_used_hour` is the whole total over
    the hours in which something runs, per instance, to a thousandth; `per_used_accelerator_hour` the same
    per accelerator. Both are None without a utilisation, or where nothing is left to use.
    """

    taken_back: Share
    overshoot: Share
    starting: Share | None
    idle: Share | None
    per_used_hour: Money | None
    per_used_accelerator_hour: Money | None


def breakdown(need: Need, offer: Offer, cost: OfferCost, accelerators: int | None) -> Breakdown | None:
    """The parts of `offer` for `need`; None where its total is not known.

    `accelerators` are per instance; None: not known.
    """
    if cost.total is None or not cost.paid:
        return None
    total = cost.total
    usable = cost.usable
    overshoot = min(max(offer.paid_time - need.duration_at_most, _NONE), usable)
    starting = _starting(need, offer, usable - overshoot)
    left = usable - overshoot - (starting or _NONE)
    idle = None if need.utilisation is None else _times(left, 1 - need.utilisation)
    used = None if idle is None else left - idle

    def share(time: timedelta) -> Share:
        part = hours_of(time) / hours_of(cost.paid)
        return Share(time, Money(total.amount * part, total.currency).rounded())

    return Breakdown(
        taken_back=share(cost.paid - usable),
        overshoot=share(overshoot),
        starting=None if starting is None else share(starting),
        idle=None if idle is None else share(idle),
        per_used_hour=_per_hour(total, used, offer.count),
        per_used_accelerator_hour=_per_hour(total, used, offer.count * (accelerators or 0)),
    )


def _starting(need: Need, offer: Offer, left: timedelta) -> timedelta | None:
    """Machines start anew in each segment."""
    return None if need.startup is None else min(need.startup * len(offer.usable), left)


def _times(span: timedelta, share: Decimal) -> timedelta:
    return timedelta(microseconds=int(Decimal(span // timedelta(microseconds=1)) * share))


def _per_hour(total: Money, used: timedelta | None, count: int) -> Money | None:
    if not used or not count:
        return None
    rate = total.amount / (hours_of(used) * count)
    return Money(rate.quantize(_RATE_STEP, rounding=ROUND_HALF_UP), total.currency)
