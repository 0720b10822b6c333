"""DescribeSpotPriceHistory: change points of Spot prices, invented around a figure that was once seen.

A public snapshot tells one price of a type in a zone at one date (`berth.facts.spot_prices`). Around it the
price moves by the hour, drawn from a digest of zone, type and day: the same in every process and for every
account. These are rehearsal prices. Where no price was seen, or the fleet has no pool, there is no history.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from struct import unpack_from
from typing import Any

from berth.facts.spot_prices import spot_price_seen
from berth.terms.instants import EPOCH, to_micros
from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.market.price_lists import find_rate
from berth.yard.services.ec2.filters import Facet, check_filters, one, passes, refuse_dry_run
from berth.yard.services.ec2.instance_types import pools_by_type
from berth.yard.services.ec2.paging import page_of
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.operation import Call, reads
from berth.yard.store.transaction import Reading

LINUX = "Linux/UNIX"
KEPT = timedelta(days=90)  # EC2 API Reference, DescribeSpotPriceHistory: up to 90 days
DAY = timedelta(days=1)
_LOOK_BACK = timedelta(days=8)  # over so many days some hour brings a change
_CHANGES_ONE_IN = 6  # hours, on average
_SWING = Decimal("0.15")  # the most that it moves from the figure, either way
_STEP = Decimal("0.0001")


@lru_cache(maxsize=100_000)
def _draws(zone_id: str, instance_type: str, day: int) -> tuple[tuple[datetime, Decimal], ...]:
    """The changes of one day since 1970 (UTC): when, and where between -1 and 1 the price goes."""
    bits = hashlib.shake_256(f"spot-price/{zone_id}/{instance_type}/{day}".encode()).digest(24 * 8)
    found = []
    for hour in range(24):
        changes, second, part = unpack_from(">HHI", bits, hour * 8)
        if changes % _CHANGES_ONE_IN == 0:
            at = EPOCH + day * DAY + timedelta(hours=hour, seconds=second % 3600)
            found.append((at, Decimal(part) / 2**31 - 1))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class SpotSeries:
    """The price of one type in one zone over time: `middle` USD an hour, at most `cap` (None = no cap)."""

    instance_type: str
    zone_id: str
    middle: Decimal
    cap: Decimal | None

    def changes(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, Decimal]]:
        """The price in force at `start`, with the instant from which it held, then every change to `end`."""
        in_force: tuple[datetime, Decimal] | None = None
        for day in range((start - _LOOK_BACK - EPOCH) // DAY, (end - EPOCH) // DAY + 1):
            for at, part in _draws(self.zone_id, self.instance_type, day):
                if at <= start:
                    in_force = at, part
                elif at <= end:
                    if in_force is not None:
                        yield in_force[0], self._price(in_force[1])
                        in_force = None
                    yield at, self._price(part)
        if in_force is not None:
            yield in_force[0], self._price(in_force[1])

    def _price(self, part: Decimal) -> Decimal:
        price = (self.middle * (1 + _SWING * part)).quantize(_STEP)
        return price if self.cap is None else min(price, self.cap)


def series_of(yard: Yard, region: str) -> list[SpotSeries]:
    """Every series of the Region."""
    found = []
    for name, pools in sorted(pools_by_type(yard.fleet, region).items()):
        for pool in pools:
            seen = spot_price_seen(name, pool.zone_id)
            if seen is not None:
                rate = find_rate(yard.fleet.on_demand_rates, pool.hardware, region)
                cap = rate.usd_per_hour if rate is not None else None
                found.append(SpotSeries(name, pool.zone_id, seen.usd_per_hour, cap))
    return found


_FACETS: Mapping[str, Facet] = {
    "availability-zone": one("AvailabilityZone"),
    "availability-zone-id": one("AvailabilityZoneId"),
    "instance-type": one("InstanceType"),
    "product-description": one("ProductDescription"),
    "spot-price": one("SpotPrice"),
    "timestamp": one("Timestamp"),
}


@reads("ec2", "DescribeSpotPriceHistory")
def describe_spot_price_history(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Newest first. Without StartTime the last 90 days; the price in force at the start comes too, with the
    earlier instant at which it began."""
    filters = call.params.get("Filters", ())
    check_filters(filters, _FACETS)
    refuse_dry_run(call)
    zone_id = _zone(call, yard)
    earliest = call.now - KEPT
    start = max(call.params.get("StartTime", earliest), earliest)
    end = min(call.params.get("EndTime", call.now), call.now)
    types = call.params.get("InstanceTypes") or ()
    products = call.params.get("ProductDescriptions") or ()
    wanted = [
        series
        for series in series_of(yard, call.region)
        if (not types or series.instance_type in types) and zone_id in (None, series.zone_id)
    ]
    if products and LINUX not in products:
        wanted = []
    names = yard.zone_names(call.account.account_id, call.region)
    shapes = [
        _shape(series, names.name(series.zone_id), at, price)
        for series in wanted
        for at, price in series.changes(min(start, end), end)
    ]
    kept = [shape for shape in shapes if passes(shape, filters, _FACETS)]
    found, token = page_of(call, sorted(kept, key=_key), _key, 3)
    return {"SpotPriceHistory": found, "NextToken": token or ""}


def _key(shape: Shape) -> tuple[int, str, str]:
    return -to_micros(shape["Timestamp"]), shape["InstanceType"], shape["AvailabilityZoneId"]


def _shape(series: SpotSeries, zone_name: str, at: datetime, price: Decimal) -> Shape:
    return {
        "AvailabilityZone": zone_name,
        "AvailabilityZoneId": series.zone_id,
        "InstanceType": series.instance_type,
        "ProductDescription": LINUX,
        "SpotPrice": f"{price:.6f}",
        "Timestamp": at,
    }


def _zone(call: Call, yard: Yard) -> str | None:
    """The id of the zone that the call names by name or id; None = any zone."""
    name, zone_id = call.params.get("AvailabilityZone"), call.params.get("AvailabilityZoneId")
    if name and zone_id:
        raise ServiceError(
            "InvalidParameterCombination",
            "Name the zone by AvailabilityZone or AvailabilityZoneId, not both.",
        )
    names = yard.zone_names(call.account.account_id, call.region)
    if name:
        zone_id = names.id(name)
    if (name or zone_id) and zone_id not in names.names:
        raise ServiceError("InvalidParameterValue", f"Invalid availability zone: [{name or zone_id}]")
    return zone_id or None
