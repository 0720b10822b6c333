"""Which of two offers that fit is better: the order of a plan's choices, by the goal of the need."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from berth.planner.cost import OfferCost
from berth.planner.currencies import Currencies
from berth.planner.need import Goal, Need
from berth.planner.offers import Offer
from berth.terms.money import Money

_DAY = timedelta(days=1)
_ZERO = Decimal(0)


def preference(need: Need, offer: Offer, cost: OfferCost, currencies: Currencies) -> tuple[object, ...]:
    """The key by which offers that fit are sorted, the best first; it makes the order total.

    Known totals come first, then known fees, then the currency that leads. Where no total is known (an
    operating system fee is not), what is known of it is compared. Then the goal decides: among durations the
    count that is nearest to the wanted one, then the shortest or the longest, then the cheap; or first what a
    usable hour costs. What is equal is put by what needs no opt-in and no new subnet, then early, long, then
    the Regions and types as the need names them.
    """
    return (
        cost.total is None,
        cost.fee is None,
        currencies.rank(cost.total),
        _currency_of_fee(cost),
        *_by_goal(need, offer, cost),
        needs_opt_in(offer),
        bool(zones_without_subnet(need, offer)),
        offer.paid_window.start,
        -cost.usable,
        need.regions.index(offer.region) if offer.region in need.regions else len(need.regions),
        offer.region,
        [t.instance_type for t in need.types].index(offer.instance_type),
        offer.zones,
        offer.offering_id or "",
    )


def needs_opt_in(offer: Offer) -> bool:
    """Whether a part of it lies in a Local Zone."""
    return any(segment.zone_type == "local-zone" for segment in offer.segments)


def zones_without_subnet(need: Need, offer: Offer) -> tuple[str, ...]:
    """The zones of an offer in which the need has no subnet; empty where it says nothing about subnets."""
    return tuple(z for z in offer.zones if z not in need.subnet_zones) if need.subnets else ()


def lasts(offer: Offer) -> timedelta:
    """How long an offer is paid for, by whole days from one day on: offers that start at once are odd."""
    return offer.paid_time - offer.paid_time % _DAY if offer.paid_time >= _DAY else offer.paid_time


def missing(need: Need, offer: Offer) -> Fraction:
    """Which share of the wanted count an offer lacks: 0 for all that is wanted."""
    wanted = need.type_count(offer.instance_type)
    return Fraction(max(0, wanted.wanted - offer.count), wanted.wanted) if wanted else Fraction(0)


def _by_goal(need: Need, offer: Offer, cost: OfferCost) -> tuple[object, ...]:
    total = _amount(cost.fee if cost.total is None else cost.total)
    if need.goal is Goal.CHEAPEST:
        return (_amount(cost.per_accelerator_hour or cost.per_usable_hour), missing(need, offer), total)
    if not need.is_range:
        return (missing(need, offer), total)
    length = min(lasts(offer), need.duration_at_most)
    return (missing(need, offer), -length if need.goal is Goal.LONGEST else length, total)


def _currency_of_fee(cost: OfferCost) -> str:
    """Parts fees in several currencies, where the totals are not known and cannot do it; else ''."""
    return cost.fee.currency if cost.total is None and cost.fee is not None else ""


def _amount(money: Money | None) -> Decimal:
    """The bare amount: only those of one currency are compared, as each currency stands by itself."""
    return money.amount if money else _ZERO
