"""The fleet that ships: it holds what is public, and says what is not."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import botocore.loaders
import pytest

from berth.terms.window import Window
from berth.yard.fleet.fleet import pools_for
from berth.yard.fleet.fleet_file import rehearsal_fleet
from berth.yard.market.fees import fee
from berth.yard.market.price_lists import find_rate, rate_at

FLEET = rehearsal_fleet()
CLIENTS_TYPES = botocore.loaders.Loader().load_service_model("sagemaker", "service-2")["shapes"][
    "ReservedCapacityInstanceType"
]["enum"]


def day(text: str) -> datetime:
    """Midnight UTC of a date."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_every_type_of_sagemakers_reserved_capacity_is_there() -> None:
    """All eleven types of the model's enum have a pool somewhere."""
    faces = {
        pool.faces["sagemaker"].instance_type for pool in FLEET.pools.values() if "sagemaker" in pool.faces
    }
    assert set(CLIENTS_TYPES) <= faces
    assert len(faces) == 11


@pytest.mark.parametrize("type_", ["trn1.32xlarge", "p5.48xlarge"])
def test_the_articles_types_are_sold_in_virginia(type_: str) -> None:
    """us-east-1 has several pools of each, under both names."""
    assert len(pools_for(FLEET, "us-east-1", type=f"ml.{type_}")) >= 3
    assert pools_for(FLEET, "us-east-1", face="ec2", type=type_)


@pytest.mark.parametrize(
    ("instant", "hardware", "region", "usd"),
    [
        ("2025-12-15", "p5e.48xlarge", "us-east-2", "34.608"),
        ("2026-02-01", "p5e.48xlarge", "us-east-2", "39.799"),
        ("2026-02-01", "p5.48xlarge", "us-east-1", "31.464"),
        ("2026-02-01", "p5.48xlarge", "us-west-1", "39.33"),
        ("2026-05-08", "p5.48xlarge", "us-east-1", "34.608"),
        ("2026-05-08", "p5.48xlarge", "eu-north-1", "31.464"),
        ("2026-05-14", "p5en.48xlarge", "us-west-1", "45.768"),
        ("2026-05-25", "p6-b200.48xlarge", "us-west-2", "82.368"),
        ("2026-07-01", "p5.48xlarge", "eu-north-1", "37.76"),
        ("2026-07-01", "p4d.24xlarge", "us-east-1", "11.8"),
        ("2026-10-06", "p5.48xlarge", "us-east-1", "41.528"),
        ("2026-10-07", "p5.48xlarge", "us-east-1", "47.757"),
        ("2026-10-07", "p5.48xlarge", "eu-north-1", "47.757"),
        ("2027-12-31", "trn1.32xlarge", "us-east-1", "9.532"),
    ],
)
def test_the_price_of_the_day(instant: str, hardware: str, region: str, usd: str) -> None:
    """Each step of 2026 is in force from its date and not before."""
    rate = rate_at(FLEET.price_lists, day(instant), hardware, region)
    assert rate is not None
    assert rate.usd_per_hour == Decimal(usd)


def test_what_was_not_sold_yet_has_no_price() -> None:
    """Before its first listing a type in a Region is unknown, not free."""
    assert rate_at(FLEET.price_lists, day("2026-09-30"), "p6-b200.48xlarge", "eu-west-3") is None
    assert rate_at(FLEET.price_lists, day("2026-10-07"), "p6-b200.48xlarge", "eu-west-3") is not None
    assert rate_at(FLEET.price_lists, day("2025-06-01"), "trn1.32xlarge", "us-east-1") is None


def test_every_pool_can_be_priced_today() -> None:
    """No pool stands for sale without a rate in autumn 2026."""
    unpriced = [
        pool.key
        for pool in FLEET.pools.values()
        if rate_at(FLEET.price_lists, day("2026-11-30"), pool.hardware, pool.region) is None
    ]
    assert unpriced == []


def test_every_figure_has_a_source_or_is_called_a_rehearsal_price() -> None:
    """A rate names who printed it and when, or is labelled as assumed."""
    rates = [rate for one in FLEET.price_lists for rate in one.rates]
    rates += [*FLEET.on_demand_rates, *FLEET.hosting_rates]
    assert all("rehearsal price" in rate.label or (rate.source and rate.as_of) for rate in rates)
    assumed = [rate for rate in rates if rate.assumed]
    assert assumed
    assert all(rate.note for rate in assumed)


def test_the_day_of_the_article_costs_what_it_costs() -> None:
    """A day of one trn1 is 228.77 and of one p5 1,146.17: rounded once."""
    window = Window(datetime(2026, 12, 1, 11, 30, tzinfo=UTC), datetime(2026, 12, 2, 11, 30, tzinfo=UTC))
    for hardware, total in (("trn1.32xlarge", "228.77"), ("p5.48xlarge", "1146.17")):
        rate = rate_at(FLEET.price_lists, day("2026-11-30"), hardware, "us-east-1")
        assert rate is not None
        assert fee(rate.usd_per_hour, 1, window).amount == Decimal(total)


def test_hosting_prices_that_nobody_printed_are_unknown_or_assumed() -> None:
    """p5e and trn2 have no hosting price; that of p5 is a rehearsal price."""
    assert find_rate(FLEET.hosting_rates, "p5e.48xlarge", "us-east-2") is None
    p5 = find_rate(FLEET.hosting_rates, "p5.48xlarge", "us-east-1")
    assert p5 is not None
    assert p5.label == "rehearsal price"


def test_ec2s_published_throttles() -> None:
    """Ten searches for blocks at once, then one every 6.7 seconds; other reads 100 and 20."""
    search = FLEET.throttle_for("ec2", "DescribeCapacityBlockOfferings")
    other = FLEET.throttle_for("ec2", "DescribeAvailabilityZones")
    assert search is not None
    assert other is not None
    assert (search.size, search.refill_per_s) == (10, Decimal("0.15"))
    assert (other.size, other.refill_per_s) == (100, Decimal(20))
    plans = FLEET.throttle_for("sagemaker", "SearchTrainingPlanOfferings")
    assert plans is not None
    assert plans.assumed
