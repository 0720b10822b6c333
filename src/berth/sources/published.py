"""Published prices of Capacity Blocks beside live ones: with their age, and how far they are off. Pure.

A table is a fall-back and never truth (field fault 55): the live fee counts, and what differs is said.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from berth.facts.list_prices import ListPrice, capacity_block_hourly
from berth.planner.need import Need
from berth.planner.offers import Offer
from berth.planner.phrases import age, rate_text
from berth.terms.money import Money
from berth.terms.ways import Way

WORTH_SAYING = Decimal("0.001")
"""A gap of less than a tenth of a percent is rounding."""


def block_list_notes(need: Need, today: date) -> tuple[str, ...]:
    """A sentence for each of the need's Regions and types whose list price of a block is known."""
    return tuple(
        f"capacity-block list price, {kind.instance_type} in {region}: {_told(price, today)}; not an offer"
        for kind in need.types
        for region in need.regions
        if (price := capacity_block_hourly(kind.instance_type, region)) is not None
    )


def gap_note(offer: Offer, today: date) -> str:
    """How a live offer's price differs from the published one; '' where it does not, or none is known."""
    if offer.way is not Way.CAPACITY_BLOCK:
        return ""
    price = capacity_block_hourly(offer.instance_type, _place(offer))
    live = _hourly(offer)
    if price is None or live is None or live.currency != price.currency:
        return ""
    gap = (price.value - live.amount) / live.amount
    if abs(gap) < WORTH_SAYING:
        return ""
    side = "below" if gap < 0 else "above"
    return f"published {_told(price, today)}: {abs(gap) * 100:.1f} % {side} the live offer, which counts"


def _place(offer: Offer) -> str:
    """A Local Zone has a price of its own; else the Region's holds."""
    segment = offer.segments[0]
    return (segment.zone_name or offer.region) if segment.zone_type == "local-zone" else offer.region


def _hourly(offer: Offer) -> Money | None:
    if offer.fee is None or offer.fee.amount <= 0 or offer.paid_hours <= 0:
        return None
    return Money(offer.fee.amount / (offer.paid_hours * offer.count), offer.fee.currency)


def _told(price: ListPrice, today: date) -> str:
    return f"{rate_text(price.money)}/h, {age(price.as_of, today)} old"
