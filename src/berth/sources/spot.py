"""What Spot costs now: the price in force in each zone of a Region; else what was seen in public once."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from berth.aws.refusals import CALL_ERRORS
from berth.aws.zones import zone_ids
from berth.facts.regions import region as known_region
from berth.facts.spot_prices import spot_price_seen
from berth.planner.cost import HourlyRate
from berth.planner.platforms import LINUX
from berth.sources.reading import every_page, instant, money, text
from berth.terms.money import Money
from berth.terms.text import plain
from berth.terms.ways import Way

SOURCE = "DescribeSpotPriceHistory"
# Other platforms have no word in the model's enum, and what Spot costs with them is not asked.
_PRODUCTS = {LINUX: "Linux/UNIX"}


def spot_rates(
    ec2: Any, instance_type: str, platform: str, region: str, now: datetime
) -> tuple[HourlyRate, ...]:
    """One rate a zone that lists the type, in the order of zone ids; one unknown rate where none does.

    A history begins with the price in force at its start, so the newest entry of a zone is what holds now.
    Raises nothing: what could not be asked is an unknown rate with its reason.
    """
    product = _PRODUCTS.get(platform)
    if product is None:
        return (_unknown(region, now.date(), f"Spot prices of {platform} are not asked"),)
    found, stopped = every_page(
        ec2.describe_spot_price_history, "SpotPriceHistory", absent_is_empty=True,
        InstanceTypes=[instance_type], ProductDescriptions=[product], StartTime=now,
    )  # fmt: skip
    newest: dict[str, tuple[datetime, Any]] = {}
    for entry in found:
        zone = text(entry.get("AvailabilityZoneId"), 64) or text(entry.get("AvailabilityZone"), 64)
        at = instant(entry.get("Timestamp"))
        if zone and at and (zone not in newest or at > newest[zone][0]):
            newest[zone] = (at, entry)
    if not newest:
        why = plain(stopped, 200) if stopped else ""
        listed = listed_spot(instance_type, platform, region, why) if stopped else ()
        return listed or (_unknown(region, now.date(), why or "no zone lists a price"),)
    names = _names(ec2) if any(not entry.get("AvailabilityZoneId") for _, entry in newest.values()) else {}
    note = plain(stopped, 200) if stopped else ""
    rates = [
        HourlyRate(
            Way.SPOT, region, "spot", money(entry.get("SpotPrice"), "USD"), now.date(), SOURCE, note,
            live=True, zone_id=names.get(zone, zone),
        )
        for zone, (_, entry) in newest.items()
    ]  # fmt: skip
    return tuple(sorted(rates, key=lambda rate: rate.zone_id or ""))


def listed_spot(instance_type: str, platform: str, region: str, why: str) -> tuple[HourlyRate, ...]:
    """What the shipped table has for the Region's zones, labelled with its age; () where it has nothing.

    For when nobody can be asked, and `why` says so: Spot moves by the hour, so this is a hint at best. A
    Region that answers and lists no price has none, whatever a table says.
    """
    known = known_region(region)
    if known is None or platform not in _PRODUCTS:
        return ()
    seen = (spot_price_seen(instance_type, zone) for zone in known.zone_ids)
    return tuple(
        HourlyRate(
            Way.SPOT, region, "spot", Money(price.usd_per_hour), price.provenance.as_of,
            price.provenance.source, "; ".join(part for part in (price.note, why) if part),
            zone_id=price.zone_id,
        )
        for price in seen
        if price is not None
    )  # fmt: skip


def _unknown(region: str, today: date, why: str) -> HourlyRate:
    return HourlyRate(Way.SPOT, region, "spot", None, today, SOURCE, why)


def _names(ec2: Any) -> dict[str, str]:
    try:
        return dict(zone_ids(ec2))
    except CALL_ERRORS:
        return {}  # the zones' names stand in, and say for themselves that they are no ids
