"""Spot prices seen in public at one date. Never a quote, and never today's price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from berth.facts.tables import Provenance, provenance, rows


@dataclass(frozen=True, slots=True)
class SpotPrice:
    """`usd_per_hour` an instance hour of `instance_type` in the zone `zone_id`, Linux, without tax."""

    instance_type: str
    region: str
    zone_id: str
    usd_per_hour: Decimal
    provenance: Provenance
    note: str


def spot_price_seen(instance_type: str, zone_id: str) -> SpotPrice | None:
    """The price that was seen for the type in that zone; None = not known."""
    return _by_place().get((instance_type, zone_id))


@cache
def _by_place() -> Mapping[tuple[str, str], SpotPrice]:
    return {
        (row["instance_type"], row["zone_id"]): SpotPrice(
            instance_type=row["instance_type"],
            region=row["region"],
            zone_id=row["zone_id"],
            usd_per_hour=Decimal(row["usd_per_hour"]),
            provenance=provenance(row),
            note=row["note"],
        )
        for row in rows("spot_prices.csv")
    }
