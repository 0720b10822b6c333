"""Offerings on the yard's clock: how long they live, at what fee they are sold, and who gets the last hosts.
Offerings on the yard's clock: how long they live, at what fee they are sold, and who gets the last hosts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from berth.yard.testing.process import YardProcess

from .conftest import SMALL, buy, offers, refused

YARD = {"fleet": SMALL}
ONE_TRY = {"retries": {"total_max_attempts": 1}}
HALF_HOUR = timedelta(minutes=30)


def sold(yard: YardProcess) -> list[dict[str, Any]]:
    """Every plan of the first account that holds hosts."""
    client = yard.clients.sagemaker
    pages = client.get_paginator("list_training_plans").paginate()
    found = [plan for page in pages for plan in page["TrainingPlanSummaries"]]
    return [plan for plan in found if plan["Status"] in ("Pending", "Scheduled", "Active")]


def attempt(client: Any, name: str, offering: str) -> str:
    """Try to buy: `bought`, or the error's code."""
    try:
        client.create_training_plan(TrainingPlanName=name, TrainingPlanOfferingId=offering)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return "bought"


def most_at_once(plans: list[dict[str, Any]]) -> dict[str, int]:
    """By zone: the highest number of instances that these plans hold in any half hour, counted anew."""
    best: dict[str, int] = {}
    for zone in {plan["ReservedCapacitySummaries"][0]["AvailabilityZone"] for plan in plans}:
        here = [p for p in plans if p["ReservedCapacitySummaries"][0]["AvailabilityZone"] == zone]
        slots = {start for plan in here for start in (plan["StartTime"], plan["EndTime"] - HALF_HOUR)}
        best[zone] = max(
            sum(
                p["TotalInstanceCount"]
                for p in here
                if p["StartTime"] < slot + HALF_HOUR and p["EndTime"] > slot
            )
            for slot in slots
        )
    return best


@pytest.mark.yard(fleet=SMALL)
def test_twenty_parallel_purchases_of_the_last_hosts(yard: YardProcess) -> None:
    """Twenty ask at once for 4 of 4 + 2 hosts over the same days: one wins, 19 hear that it is gone."""
    client = yard.clients("sagemaker", max_pool_connections=20, **ONE_TRY)
    span = {
        "StartTimeAfter": datetime(2026, 12, 3, 11, tzinfo=UTC),
        "EndTimeBefore": datetime(2026, 12, 10, tzinfo=UTC),
    }
    ids = [offers(client, InstanceCount=4, DurationHours=72, **span)[0]["TrainingPlanOfferingId"]] * 20

    with ThreadPoolExecutor(20) as pool:
        outcomes = list(pool.map(lambda number: attempt(client, f"p{number}", ids[number]), range(20)))
    assert sorted(outcomes) == ["ResourceNotFound"] * 19 + ["bought"]
    assert list(most_at_once(sold(yard)).values()) == [4]
    yard.clock.advance(minutes=5)
    assert len(yard.ledger) == 1


@pytest.mark.yard(fleet=SMALL)
def test_a_crowd_that_searches_and_buys_never_gets_more_than_there_is(yard: YardProcess) -> None:
    """Whatever is searched and bought at once, no half hour of a zone holds more than its hosts."""
    client = yard.clients("sagemaker", max_pool_connections=8, **ONE_TRY)

    def purchase(number: int) -> int:
        bought = 0
        for turn in range(3):
            for offer in offers(
                client, InstanceCount=(1, 2, 4)[(number + turn) % 3], DurationHours=24 * (1 + number % 4)
            ):
                outcome = attempt(client, f"p{number}-{turn}", offer["TrainingPlanOfferingId"])
                assert outcome in ("bought", "ResourceNotFound", "ResourceLimitExceeded")
                bought += outcome == "bought"
                if outcome == "bought":
                    break
        return bought

    with ThreadPoolExecutor(8) as pool:
        bought = sum(pool.map(purchase, range(8)))
    plans = sold(yard)
    assert len(plans) == bought > 0
    for zone, most in most_at_once(plans).items():
        assert most <= 4, (zone, most)
    assert sum(most_at_once(plans).values()) <= 6


def test_an_immediate_offering_lives_twenty_minutes(shared: YardProcess) -> None:
    """To the last microsecond before, on the yard's clock; but payment must come 5 minutes before its start.
    To the last microsecond before, on the yard's clock; but payment must come 5 minutes before its start."""
    client = shared.clients.sagemaker
    offer = offers(client)[0]
    start = offer["ReservedCapacityOfferings"][0]["StartTime"]
    assert start == shared.clock.now + HALF_HOUR
    shared.clock.advance(minutes=20)
    error = refused(
        client.create_training_plan,
        TrainingPlanName="late",
        TrainingPlanOfferingId=offer["TrainingPlanOfferingId"],
    )
    assert (error.code, error.message) == (
        "ResourceNotFound", "The training plan offering has expired. Search again.",
    )  # fmt: skip
    offer = offers(client)[0]
    shared.clock.advance(minutes=19, seconds=59)
    client.create_training_plan(
        TrainingPlanName="just", TrainingPlanOfferingId=offer["TrainingPlanOfferingId"]
    )


def test_a_scheduled_offering_lives_an_hour(shared: YardProcess) -> None:
    """Sold after 59 minutes and 59 seconds, refused a second later."""
    client = shared.clients.sagemaker
    shared.clock.advance(
        seconds=60 - shared.clock.now.second
    )  # ages count from the search's minute, rounded up
    later = {"StartTimeAfter": datetime(2026, 12, 9, 11, tzinfo=UTC)}
    first, second = (offers(client, **later)[0]["TrainingPlanOfferingId"] for _ in range(2))
    shared.clock.advance(minutes=59, seconds=59)
    client.create_training_plan(TrainingPlanName="in-time", TrainingPlanOfferingId=first)
    shared.clock.advance(seconds=1)
    error = refused(client.create_training_plan, TrainingPlanName="too-late", TrainingPlanOfferingId=second)
    assert "has expired" in error.message


def test_an_offering_is_sold_at_the_fee_that_it_showed_over_a_price_list_change(
    tmp_path: Path, make_yard: Callable[..., YardProcess]
) -> None:
    """Searched a minute before a new price list, bought a minute after: the old fee; a new search: the new
    one."""
    text = SMALL.read_text("utf-8") + (
        '\n[[price_lists]]\nname = "new"\nfrom = 2026-12-01T10:00:00Z\nrates = [\n'
        '  { hardware = "trn1.32xlarge", usd_per_hour = 12, assumed = true },\n'
        '  { hardware = "p5.48xlarge", usd_per_hour = 40, assumed = true },\n]\n'
    )
    (tmp_path / "fleet.toml").write_text(text, "utf-8")
    yard = make_yard(fleet=tmp_path / "fleet.toml", clock="2026-12-01T09:59:00Z")
    client = yard.clients.sagemaker
    later = {"StartTimeAfter": datetime(2026, 12, 9, 11, tzinfo=UTC)}
    old = offers(client, **later)[0]
    yard.clock.advance(minutes=2)
    new = offers(client, **later)[0]
    assert (Decimal(old["UpfrontFee"]), Decimal(new["UpfrontFee"])) == (Decimal("228.77"), Decimal("288.00"))
    client.create_training_plan(TrainingPlanName="p", TrainingPlanOfferingId=old["TrainingPlanOfferingId"])
    yard.clock.advance(minutes=5)
    assert [entry["amount"] for entry in yard.ledger] == ["228.77"]


def test_an_offering_that_somebody_else_took_is_gone(shared: YardProcess) -> None:
    """Refused and not half sold: the hosts are the other's, the name is free for another try."""
    client = shared.clients.sagemaker
    span = {
        "StartTimeAfter": datetime(2026, 12, 20, 11, tzinfo=UTC),
        "EndTimeBefore": datetime(2026, 12, 21, 12, tzinfo=UTC),
    }
    first, second = (offers(client, InstanceCount=4, **span)[0]["TrainingPlanOfferingId"] for _ in range(2))
    client.create_training_plan(TrainingPlanName="quick", TrainingPlanOfferingId=first)
    error = refused(client.create_training_plan, TrainingPlanName="slow", TrainingPlanOfferingId=second)
    assert (error.code, error.message) == (
        "ResourceNotFound", "The training plan offering is no longer available. Search again.",
    )  # fmt: skip
    assert offers(client, InstanceCount=4, **span) == []
    buy(client, "slow", StartTimeAfter=datetime(2026, 12, 22, 11, tzinfo=UTC))


def test_searching_writes_nothing(shared: YardProcess) -> None:
    """A hundred searches leave no event, no entry, no booking behind."""
    client = shared.clients.sagemaker
    before = len(shared.events)
    for _ in range(100):
        offers(client)
    assert len(shared.events) == before
    assert not any(call["wrote"] for call in shared.log_of("SearchTrainingPlanOfferings"))
