"""What EC2's on-demand hours cost, and the operating system fee of blocks: live, else the shipped tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from berth.facts.list_prices import highest_hourly, on_demand_hourly
from berth.planner.cost import HourlyRate, floor_from, known_or_none
from berth.planner.platforms import LINUX
from berth.planner.surcharge import OsRate
from berth.sources.list_prices import listed
from berth.sources.pricing import SOURCE, Found, Product, one_price, products
from berth.terms.ways import Way

# The Price List's words for the platforms of blocks. Its words for the others are not needed: no way that is
# bought ahead has them.
_SYSTEMS = {
    LINUX: "Linux",
    "Red Hat Enterprise Linux": "RHEL",
    "RHEL with HA": "Red Hat Enterprise Linux with HA",
    "SUSE Linux": "SUSE",
    "Ubuntu Pro": "Ubuntu Pro",
    "Windows": "Windows",
}


def on_demand_rates(
    pricing: Any, instance_type: str, platform: str, regions: Sequence[str], today: date
) -> tuple[tuple[HourlyRate, ...], tuple[OsRate, ...]]:
    """Rates of every Region of `regions`, in that order; unknown ones have no price. Raises nothing.

    One question for all Regions. Rows of the block market are the operating system's fee and no price of an
    instance (field fault 17). The tables know plain Linux alone.
    """
    system = _SYSTEMS.get(platform)
    if system is None:
        found = Found((), f"no word of the Price List for {platform} is known")
    else:
        found = products(
            pricing, "AmazonEC2", instanceType=instance_type, operatingSystem=system,
            tenancy="Shared", preInstalledSw="NA", capacitystatus="Used",
        )  # fmt: skip
    rates = [_rate(found, instance_type, platform, region, today) for region in regions]
    fees = [_os_rate(found, platform, region) for region in regions] if platform != LINUX else []
    return tuple(rates), tuple(fees)


def _rate(found: Found, instance_type: str, platform: str, region: str, today: date) -> HourlyRate:
    here = _rows(found, region, "OnDemand")
    product = one_price(here)
    floor = floor_from(highest_hourly(instance_type))
    hourly = known_or_none(product.hourly[0], floor) if product is not None else None
    if product is not None and hourly is not None:
        return HourlyRate(
            Way.ON_DEMAND, region, "on-demand", hourly, product.published or today, SOURCE, live=True
        )
    price = on_demand_hourly(instance_type, region) if platform == LINUX else None
    return listed(Way.ON_DEMAND, region, "on-demand", price, found.why(here))


def _os_rate(found: Found, platform: str, region: str) -> OsRate:
    product = one_price(_rows(found, region, "CapacityBlock"))
    return OsRate(region, platform, product.hourly[0] if product else None, SOURCE if product else "")


def _rows(found: Found, region: str, market: str) -> list[Product]:
    return [p for p in found.products if p.region == region and p.market == market]
