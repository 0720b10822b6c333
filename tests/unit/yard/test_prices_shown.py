"""Spot price history and the price list: rehearsal figures in AWS's shapes, unknown ones left out."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.facts.spot_prices import spot_price_seen
from berth.yard.services.ec2.spot_prices import SpotSeries

from .ec2_bench import P5, Ec2Bench

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
SERIES = SpotSeries(P5, "use1-az1", Decimal("20"), Decimal("21"))


# -- Spot ------------------------------------------------------------------------------------------------
@settings(deadline=None, max_examples=60)
@given(st.integers(0, 4000), st.integers(1, 200), st.integers(1, 200))
def test_a_history_is_the_same_however_it_is_asked(ago: int, first: int, second: int) -> None:
    """Two spans asked apart tell what the whole tells; what is in force at a start began at or before it."""
    start = NOW - timedelta(hours=ago, minutes=7)
    middle, end = start + timedelta(hours=first), start + timedelta(hours=first + second)
    whole = list(SERIES.changes(start, end))
    early, late = list(SERIES.changes(start, middle)), list(SERIES.changes(middle, end))
    assert whole[0][0] <= start < (whole[1][0] if len(whole) > 1 else end)
    assert late[0] == early[-1]
    assert [*early, *late[1:]] == whole
    assert [at for at, _ in whole] == sorted({at for at, _ in whole})


def test_prices_swing_around_what_was_seen_and_never_pass_the_cap() -> None:
    """Fifteen percent either way, cut at the on-demand price."""
    prices = [price for _, price in SERIES.changes(NOW - timedelta(days=60), NOW)]
    assert len(prices) > 100
    assert min(prices) >= Decimal("17")
    assert max(prices) == Decimal("21")


def test_spot_history(ec2: Ec2Bench) -> None:
    """Newest first, in six decimals, by zone; a start asks for the price in force then."""
    seen = spot_price_seen(P5, "use1-az2")
    assert seen is not None
    zone = ec2.yard.zone_names(ec2.account.account_id, "us-east-1").name("use1-az2")
    found = ec2.ec2(
        "DescribeSpotPriceHistory", InstanceTypes=[P5], AvailabilityZone=zone, StartTime=NOW,
        ProductDescriptions=["Linux/UNIX"],
    )["SpotPriceHistory"]  # fmt: skip
    (price,) = found
    assert price["AvailabilityZoneId"] == "use1-az2"
    assert price["Timestamp"] <= NOW
    assert abs(Decimal(price["SpotPrice"]) / seen.usd_per_hour - 1) <= Decimal("0.15")
    whole = ec2.ec2("DescribeSpotPriceHistory", InstanceTypes=[P5])["SpotPriceHistory"]
    times = [one["Timestamp"] for one in whole]
    assert times == sorted(times, reverse=True)
    assert times[-1] >= NOW - timedelta(days=98)


def test_pages_of_spot_history_join_up(ec2: Ec2Bench) -> None:
    """Small pages bring what one page brings, in the same order."""
    asked = {"InstanceTypes": [P5], "StartTime": NOW - timedelta(days=10)}
    whole = ec2.ec2("DescribeSpotPriceHistory", **asked)["SpotPriceHistory"]
    pages: list[Any] = []
    token = ""
    while True:
        answer = ec2.ec2("DescribeSpotPriceHistory", MaxResults=7, NextToken=token, **asked)
        pages += answer["SpotPriceHistory"]
        token = answer["NextToken"]
        if not token:
            break
    assert pages == whole
    assert len(whole) > 20


def test_no_history_where_nothing_was_seen(ec2: Ec2Bench) -> None:
    """Another product, another type, or a zone without a figure: nothing, never a zero."""
    assert ec2.ec2("DescribeSpotPriceHistory", ProductDescriptions=["Windows"])["SpotPriceHistory"] == []
    assert ec2.ec2("DescribeSpotPriceHistory", InstanceTypes=["m5.large"])["SpotPriceHistory"] == []
    assert spot_price_seen("p5e.48xlarge", "use1-az1") is None
    nowhere = {"InstanceTypes": ["p5e.48xlarge"], "AvailabilityZoneId": "use1-az1"}
    assert ec2.ec2("DescribeSpotPriceHistory", **nowhere)["SpotPriceHistory"] == []
    assert (
        ec2.refused("DescribeSpotPriceHistory", AvailabilityZone="us-east-1z").code == "InvalidParameterValue"
    )
    assert (
        ec2.refused("DescribeSpotPriceHistory", AvailabilityZone="a", AvailabilityZoneId="b").code
        == "InvalidParameterCombination"
    )


# -- the price list --------------------------------------------------------------------------------------
def _products(bench: Ec2Bench, service: str = "AmazonEC2", **fields: str) -> list[Any]:
    answer = bench.call(
        "GetProducts", service="pricing", ServiceCode=service,
        Filters=[{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in fields.items()],
    )  # fmt: skip
    return [json.loads(text) for text in answer["PriceList"]]


def _price(product: Any) -> Decimal:
    (offer,) = product["terms"]["OnDemand"].values()
    (dimension,) = offer["priceDimensions"].values()
    return Decimal(dimension["pricePerUnit"]["USD"])


def test_the_usual_question_finds_one_price(ec2: Ec2Bench) -> None:
    """Type, Region, Linux, shared tenancy, used capacity, on demand: one product with its hourly price."""
    (product,) = _products(
        ec2, instanceType=P5, regionCode="us-east-1", operatingSystem="Linux", tenancy="Shared",
        preInstalledSw="NA", capacitystatus="Used", marketoption="OnDemand",
    )  # fmt: skip
    assert _price(product) == Decimal("55.04")
    assert product["product"]["attributes"]["location"] == "US East (N. Virginia)"
    assert product["product"]["attributes"]["vcpu"] == "192"


def test_a_block_stands_there_with_its_surcharge_only(ec2: Ec2Bench) -> None:
    """Field fault 17: without the market option a type has rows at nothing and at a third of a dollar."""
    found = _products(ec2, instanceType="p5e.48xlarge", regionCode="us-east-1")
    assert sorted(_price(product) for product in found) == [Decimal(0), Decimal("0.336")]
    assert {product["product"]["attributes"]["marketoption"] for product in found} == {"CapacityBlock"}


def test_a_rehearsal_price_is_called_so(ec2: Ec2Bench) -> None:
    """The description carries the source and date of the figure, or that it is assumed."""
    (product,) = _products(ec2, instanceType="trn1.32xlarge", marketoption="OnDemand")
    (offer,) = product["terms"]["OnDemand"].values()
    (dimension,) = offer["priceDimensions"].values()
    assert dimension["description"].endswith("(rehearsal price)")


@pytest.mark.parametrize(
    ("kind", "value", "count"),
    [
        ("EQUALS", P5, 3), ("CONTAINS", "p5", 7), ("ANY_OF", f"{P5}, trn1.32xlarge", 6), ("NONE_OF", P5, 7),
    ],
)  # fmt: skip
def test_filters(ec2: Ec2Bench, kind: str, value: str, count: int) -> None:
    """The five kinds of the model, over one Region each time."""
    answer = ec2.call(
        "GetProducts", service="pricing", ServiceCode="AmazonEC2",
        Filters=[{"Type": kind, "Field": "instanceType", "Value": value}],
    )  # fmt: skip
    assert len(answer["PriceList"]) == count


def test_pages_of_products_join_up(ec2: Ec2Bench) -> None:
    """By SKU; a token belongs to its question."""
    whole = ec2.call("GetProducts", service="pricing", ServiceCode="AmazonEC2")["PriceList"]
    found: list[str] = []
    more: dict[str, str] = {}
    while True:
        answer = ec2.call("GetProducts", service="pricing", ServiceCode="AmazonEC2", MaxResults=3, **more)
        found += answer["PriceList"]
        if "NextToken" not in answer:
            break
        more = {"NextToken": answer["NextToken"]}
    assert found == whole
    from berth.yard.errors import ServiceError

    with pytest.raises(ServiceError, match="InvalidNextTokenException"):
        ec2.call("GetProducts", service="pricing", ServiceCode="AmazonSageMaker", **more)


def test_an_unknown_service(ec2: Ec2Bench) -> None:
    """Nothing but EC2 and SageMaker is in the list."""
    from berth.yard.errors import ServiceError

    with pytest.raises(ServiceError, match="NotFoundException"):
        ec2.call("GetProducts", service="pricing", ServiceCode="AmazonS3")
    assert _products(ec2, "AmazonSageMaker") == []
