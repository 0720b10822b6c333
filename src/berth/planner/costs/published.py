"""A published price beside the live one: how old it is and how far off. The live one is what counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

from berth.facts.list_prices import ListPrice, capacity_block_hourly
from berth.planner.offers import Offer
from berth.planner.phrases import age, rate_text
from berth.terms.money import Money
from berth.terms.ways import Way

_WORTH_SAYING = Decimal("0.1")


@dataclass(frozen=True, slots=True)
class Gap:
    """`percent` is how far the published price lies below the live one (negative: above), to a tenth."""

    published: ListPrice
    live: Money
    percent: Decimal

    def sentence(self, today: date) -> str:
        """`published 31.464/h, 9 days old, 12.8 % below the live offer of 36.10/h`."""
        side = "below" if self.percent > 0 else "above"
        old = age(self.published.as_of, today)
        return (
            f"published {rate_text(self.published.money)}/h, {old} old, {abs(self.percent)} % {side} the live"
            f" offer of {rate_text(self.live)}/h"
        )


def gap(offer: Offer) -> Gap | None:
    """The gap of a block's fee to the newest published one of its place (field fault 55).

    None where nothing is published, the currencies differ, the fee is not known, or the two agree to a tenth
    of a percent. Nobody publishes fees of training plans.
    """
    if offer.way is not Way.CAPACITY_BLOCK or offer.fee is None or not offer.paid_hours:
        return None
    local_zones = [segment.zone_name for segment in offer.segments if segment.zone_type == "local-zone"]
    place = (local_zones[0] or offer.region) if local_zones else offer.region
    listed = capacity_block_hourly(offer.instance_type, place)
    if listed is None or listed.currency != offer.fee.currency:
        return None
    live = offer.fee.amount / (offer.paid_hours * offer.count)
    percent = ((live - listed.value) / live * 100).quantize(Decimal("0.1"), rounding=ROUND_HALF_UP)
    if abs(percent) < _WORTH_SAYING:
        return None
    rounded = live.quantize(Decimal("0.001"), rounding=ROUND_HALF_UP)
    return Gap(listed, Money(rounded, offer.fee.currency), percent)
