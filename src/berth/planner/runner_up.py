"""The second choice beside the first: what one takes, or gives up, where the first one is gone. Pure."""

from __future__ import annotations

from datetime import timedelta

from berth.planner.cost import OfferCost
from berth.planner.offers import Offer
from berth.terms.durations import spoken

Priced = tuple[Offer, OfferCost]


def beside_first(first: Priced, second: Priced) -> str:
    """How the second choice differs from the first: place, start, length, total; `in another zone, ...`."""
    (offer, cost), (other, other_cost) = first, second
    said = [_place(offer, other), _start(offer, other), _length(offer, other), _total(cost, other_cost)]
    return "next best to #1: " + ", ".join(one for one in said if one)


def _place(first: Offer, second: Offer) -> str:
    if first.region != second.region:
        return f"in another Region, {second.region}"
    zones = tuple(part.zone_id for part in second.segments)
    if zones == tuple(part.zone_id for part in first.segments):
        return "in the same zone"
    return "in another zone"


def _start(first: Offer, second: Offer) -> str:
    moved = second.paid_window.start - first.paid_window.start
    if not moved:
        return "at the same time"
    return f"{spoken(abs(moved))} {'later' if moved > timedelta(0) else 'earlier'}"


def _length(first: Offer, second: Offer) -> str:
    more = second.paid_time - first.paid_time
    if not more:
        return ""
    return f"{spoken(abs(more))} {'longer' if more > timedelta(0) else 'shorter'}"


def _total(first: OfferCost, second: OfferCost) -> str:
    """Totals in two currencies are not compared, nor one that is not known."""
    if first.total is None or second.total is None:
        return "at a price that is not known"
    if first.total.currency != second.total.currency:
        return "at a price that cannot be compared"
    if first.total == second.total:
        return "for the same money"
    if second.total > first.total:
        return f"for {second.total - first.total} more"
    return f"for {first.total - second.total} less"
