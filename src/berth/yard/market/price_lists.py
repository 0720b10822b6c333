"""Price lists with dates: what an instance hour of reserved hardware costs at an instant.

A yard sells at the list in force at an offering's issue minute. What no list tells is unknown (None), so it
is not sold: it is never free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

REHEARSAL_PRICE = "rehearsal price"


@dataclass(frozen=True, slots=True)
class Rate:
    """`usd_per_hour` per instance hour of `hardware`, before tax.

    `regions` are the Regions that it holds in; None = in every Region for which the same list names no other.
    `source` and `as_of` say who printed it and when; with `assumed` True it is somebody's assumption, and
    everything that shows it says so.
    """

    hardware: str
    usd_per_hour: Decimal
    regions: frozenset[str] | None = None
    source: str | None = None
    as_of: date | None = None
    assumed: bool = False
    note: str = ""

    @property
    def label(self) -> str:
        """What stands beside the figure: its source and date, or that it is a rehearsal price."""
        known = ", ".join(part for part in (self.source, self.as_of and self.as_of.isoformat()) if part)
        if not self.assumed:
            return known
        return f"{REHEARSAL_PRICE} ({known})" if known else REHEARSAL_PRICE


@dataclass(frozen=True, slots=True)
class PriceList:
    """Rates from `effective_from` on, each until a later list has one for the same hardware and Region."""

    name: str
    effective_from: datetime
    rates: tuple[Rate, ...]


def find_rate(rates: Sequence[Rate], hardware: str, region: str) -> Rate | None:
    """The rate of `hardware` in `region`: one that names the Region goes before one that names none."""
    everywhere = None
    for rate in rates:
        if rate.hardware != hardware:
            continue
        if rate.regions is None:
            everywhere = everywhere or rate
        elif region in rate.regions:
            return rate
    return everywhere


def rate_at(lists: Sequence[PriceList], instant: datetime, hardware: str, region: str) -> Rate | None:
    """The rate in force at `instant`: from the newest list that has one for this hardware and Region.

    `lists` are in order of `effective_from`. None = unknown, which means not for sale.
    """
    for price_list in reversed(lists):
        if price_list.effective_from <= instant:
            rate = find_rate(price_list.rates, hardware, region)
            if rate is not None:
                return rate
    return None
