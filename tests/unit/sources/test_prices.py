"""Hourly prices: live where the service tells them, labelled where a table stands in, unknown otherwise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from berth.planner.cost import HourlyRate
from berth.planner.surcharge import OsRate
from berth.sources.on_demand import on_demand_rates
from berth.sources.sagemaker_prices import sagemaker_rates
from berth.sources.spot import spot_rates
from berth.terms.money import Money
from berth.terms.ways import Target

from .conftest import NOW, FakeService, refused, zones

TODAY = NOW.date()


def row(usd: str | None, region: str = "us-east-1", unit: str = "Hrs", **attributes: str) -> str:
    """One element of PriceList, which is JSON text."""
    dimensions = {} if usd is None else {"d": {"unit": unit, "pricePerUnit": {"USD": usd}}}
    product = {"attributes": {"regionCode": region, **attributes}}
    terms = {"OnDemand": {"t": {"priceDimensions": dimensions}}}
    return json.dumps({"product": product, "terms": terms, "publicationDate": "2026-11-20T10:00:00Z"})


def price_list(*pages: list[str]) -> FakeService:
    """A Pricing client with these pages."""

    def get_products(NextToken: str = "0", **_: Any) -> Mapping[str, Any]:  # noqa: N803 - AWS's word
        number = int(NextToken)
        more = {"NextToken": str(number + 1)} if number + 1 < len(pages) else {}
        return {"PriceList": pages[number], **more}

    return FakeService(get_products=get_products)


def rates(
    pricing: Any, kind: str = "p5.48xlarge", platform: str = "Linux/UNIX"
) -> tuple[HourlyRate, OsRate | None]:
    """The rate of us-east-1, and the operating system's fee there."""
    (rate,), fees = on_demand_rates(pricing, kind, platform, ["us-east-1"], TODAY)
    return rate, fees[0] if fees else None


def test_a_live_price_is_taken_and_says_so() -> None:
    """From the second page, other Regions and markets left alone; asked once for all Regions."""
    pricing = price_list(
        [row("68.8", "us-west-1"), row("0.0000000000")],
        [row("55.0400000000", marketoption="OnDemand"), row("0", marketoption="CapacityBlock")],
    )
    rate, _ = rates(pricing)
    assert rate.hourly == Money(Decimal("55.04"))
    assert (rate.live, rate.as_of, rate.source) == (True, date(2026, 11, 20), "AWS Price List")
    first = pricing.calls("get_products")[0]
    assert {f["Field"]: f["Value"] for f in first["Filters"]} == {
        "instanceType": "p5.48xlarge", "operatingSystem": "Linux", "tenancy": "Shared",
        "preInstalledSw": "NA", "capacitystatus": "Used",
    }  # fmt: skip


NO_PRICE = [
    ([], "the Price List has no such row"),
    ([row("0.0000000000")], "no plausible one"),
    ([row("0.336")], "no plausible one"),
    ([row("55.04"), row("60.00")], "no plausible one"),
    ([row("55.04", unit="Quantity")], "no plausible one"),
    (["not json", "[]"], "2 rows could not be read"),
]


@pytest.mark.parametrize(("page", "why"), NO_PRICE, ids=[n[1] + str(len(n[0])) for n in NO_PRICE])
def test_zero_and_add_on_prices_are_no_price(page: list[str], why: str) -> None:
    """Field fault 17: the table stands in, dated and labelled, and where it knows nothing it is unknown."""
    rate, _ = rates(price_list(page))
    assert (rate.hourly, rate.live) == (Money(Decimal("55.04")), False)
    assert rate.as_of == date(2026, 9, 25)
    assert why in rate.note
    unknown, _ = rates(price_list(page), "p5e.48xlarge")
    assert unknown.hourly is None or page == [row("55.04")]


def test_a_refused_price_list_is_labelled() -> None:
    """The reason is with the price that stands in."""

    def no(**_: Any) -> Mapping[str, Any]:
        raise refused("AccessDeniedException", "no pricing for you")

    rate, _ = rates(FakeService(get_products=no))
    assert rate.hourly == Money(Decimal("55.04"))
    assert "Price List: AccessDeniedException: no pricing for you" in rate.note


def test_the_row_of_the_block_market_is_the_operating_system() -> None:
    """Field fault 17: 0.336 of Ubuntu Pro is a surcharge and no rate; the tables know plain Linux alone."""
    pricing = price_list([row("0.336", marketoption="CapacityBlock")])
    rate, fee = rates(pricing, platform="Ubuntu Pro")
    assert rate.hourly is None
    assert fee == OsRate("us-east-1", "Ubuntu Pro", Money(Decimal("0.336")), "AWS Price List")
    _, none = rates(price_list([]), platform="Ubuntu Pro")
    assert none is not None
    assert none.hourly is None
    assert rates(pricing)[1] is None, "plain Linux has no such fee"
    both = price_list([row("0.336", marketoption="CapacityBlock"), row("61.04", marketoption="OnDemand")])
    rate, fee = rates(both, platform="Ubuntu Pro")
    assert fee is not None
    assert (rate.hourly, fee.hourly) == (Money(Decimal("61.04")), Money(Decimal("0.336")))
    assert (
        "no word of the Price List for Windows with SQL Server"
        in rates(pricing, platform="Windows with SQL Server")[0].note
    )


def test_sagemakers_rate_is_that_of_the_component() -> None:
    """Hosting for an endpoint, whatever the spelling; else the table; HyperPod is unknown."""
    pricing = price_list([row("31.7", component="Hosting"), row("20", component="Training")])

    def rate(target: Target, service: Any = pricing) -> HourlyRate:
        (found,) = sagemaker_rates(service, "ml.trn1.32xlarge", target, ["us-east-1"], TODAY)
        return found

    assert rate(Target.ENDPOINT).hourly == Money(Decimal("31.7"))
    assert rate(Target.TRAINING_JOB).hourly == Money(Decimal(20))
    assert rate(Target.ENDPOINT, price_list([])).hourly == Money(Decimal("28.497"))
    assert not rate(Target.ENDPOINT, price_list([])).live
    assert rate(Target.HYPERPOD_CLUSTER).hourly is None
    assert sagemaker_rates(pricing, "p5.48xlarge", Target.INSTANCES, ["us-east-1"], TODAY) == ()


def entry(zone: str, usd: str, hours_ago: float, **changes: Any) -> dict[str, Any]:
    """One SpotPrice."""
    base = {
        "AvailabilityZone": f"us-east-1{zone}",
        "SpotPrice": usd,
        "Timestamp": NOW - timedelta(hours=hours_ago),
    }
    return base | changes


def spot(*entries: dict[str, Any], platform: str = "Linux/UNIX") -> tuple[HourlyRate, ...]:
    """The rates from that history."""
    ec2 = FakeService(
        describe_spot_price_history=lambda **_: {"SpotPriceHistory": list(entries)},
        describe_availability_zones=zones,
    )
    return spot_rates(ec2, "p5.48xlarge", platform, "us-east-1", NOW)


def test_the_newest_spot_price_of_each_zone_counts() -> None:
    """Change points in any order; zone ids from the answer or from the zones' names."""
    found = spot(
        entry("a", "20.0", 2), entry("a", "21.5", 0.5), entry("a", "19.0", 30),
        entry("b", "18.25", 5, AvailabilityZoneId="use1-az9"),
    )  # fmt: skip
    assert [(r.zone_id, r.hourly) for r in found] == [
        ("use1-az9", Money(Decimal("18.25"))),
        ("use1-aza", Money(Decimal("21.5"))),
    ]
    assert all(r.live for r in found)


@pytest.mark.parametrize("missing", ["AvailabilityZone", "SpotPrice", "Timestamp"])
def test_a_spot_price_that_lacks_something_is_unknown(missing: str) -> None:
    """No exception, no zero."""
    whole = entry("a", "20.0", 1)
    found = spot({key: value for key, value in whole.items() if key != missing})
    assert [r.hourly for r in found] == [None]


def test_spot_that_cannot_be_asked_is_unknown_with_a_reason() -> None:
    """Refused, not listed, or another platform."""
    refused_rate = spot_rates(FakeService(), "p5.48xlarge", "Linux/UNIX", "xx-new-1", NOW)[0]
    assert (refused_rate.hourly, "InvalidAction" in refused_rate.note) == (None, True)
    assert spot()[0].note == "no zone lists a price"
    assert (
        spot(entry("a", "1", 1), platform="SUSE Linux")[0].note == "Spot prices of SUSE Linux are not asked"
    )
