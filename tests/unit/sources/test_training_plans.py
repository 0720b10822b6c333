"""Searching training plans: every segment is read, and nothing unknown reads as empty."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError
from botocore.stub import Stubber

from berth.planner.offers import PlaceAnswer, PlaceOutcome, Query
from berth.sources.list_prices import list_rates
from berth.sources.training_plans import region_lane, search_place
from berth.terms.money import Money
from berth.terms.ways import Target, Way

from .conftest import FakeClock, FakeService, refused

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
START = datetime(2026, 12, 2, 11, 30, tzinfo=UTC)
QUERY = Query(
    Way.TRAINING_PLAN, "us-east-1", "ml.trn1.32xlarge", 1, 24, Target.ENDPOINT, START - timedelta(seconds=1)
)
ZONES = {"AvailabilityZones": [{"ZoneName": "us-east-1f", "ZoneId": "use1-az6"}]}


def client(service: str) -> Any:
    """A client that has nowhere to go; a Stubber answers in its place."""
    session = botocore.session.Session()
    session.set_credentials("YARD1", "x")
    return session.create_client(service, region_name="us-east-1", endpoint_url="http://127.0.0.1:9")


@pytest.fixture(scope="module")
def sagemaker() -> Any:
    """One SageMaker client for all tests of this file; making one takes a tenth of a second."""
    return client("sagemaker")


@pytest.fixture(scope="module")
def ec2() -> Any:
    """One EC2 client."""
    return client("ec2")


def part(days: float = 1, starts: datetime = START, **changes: Any) -> dict[str, Any]:
    """One ReservedCapacityOffering."""
    base = {
        "InstanceType": "ml.trn1.32xlarge",
        "InstanceCount": 1,
        "AvailabilityZone": "us-east-1f",
        "StartTime": starts,
        "EndTime": starts + timedelta(days=days),
    }
    return {key: value for key, value in (base | changes).items() if value is not None}


def offering(*parts: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """One TrainingPlanOffering."""
    base = {
        "TrainingPlanOfferingId": "tpo-1",
        "TargetResources": ["endpoint"],
        "UpfrontFee": "228.77",
        "CurrencyCode": "USD",
        "ReservedCapacityOfferings": list(parts or (part(),)),
    }
    return {key: value for key, value in (base | changes).items() if value is not None}


def ask(sagemaker: Any, ec2: Any, *offerings: dict[str, Any]) -> PlaceAnswer:
    """The answer of a place that has these offerings."""
    with Stubber(sagemaker) as plans, Stubber(ec2) as zones:
        plans.add_response(
            "search_training_plan_offerings",
            {"TrainingPlanOfferings": list(offerings)},
            {
                "InstanceType": "ml.trn1.32xlarge",
                "InstanceCount": 1,
                "DurationHours": 24,
                "TargetResources": ["endpoint"],
                "StartTimeAfter": START - timedelta(seconds=1),
            },
        )
        if offerings:
            zones.add_response("describe_availability_zones", ZONES)
        return search_place(QUERY, sagemaker, ec2, now=lambda: NOW)


def test_an_offer_is_read_whole(sagemaker: Any, ec2: Any) -> None:
    """Id, zone id from the zone's name, window, exact fee, targets, age, and the query that found it."""
    answer = ask(sagemaker, ec2, offering())
    assert answer.outcome is PlaceOutcome.OFFERS
    (offer,) = answer.offers
    assert offer.offering_id == "tpo-1"
    assert offer.zones == ("use1-az6",)
    assert (offer.paid_window.start, offer.paid_hours) == (START, 24)
    assert offer.fee == Money(Decimal("228.77"))
    assert (offer.targets, offer.target) == (("endpoint",), "endpoint")
    assert (offer.seen_at, offer.query) == (NOW, QUERY)
    assert not offer.starts_at_once


def test_every_segment_is_read_in_order(sagemaker: Any, ec2: Any) -> None:
    """Two parts, sent the wrong way round (field fault 53)."""
    late = part(2, START + timedelta(days=4))
    (offer,) = ask(sagemaker, ec2, offering(late, part(2))).offers
    assert offer.paid_hours == 96
    assert [gap.duration for gap in offer.gaps] == [timedelta(days=2)]
    assert offer.paid_window.end == START + timedelta(days=6)


@pytest.mark.parametrize("fee", [None, "", "xxxx.xx", "NaN", "Infinity", "free"])
def test_a_fee_that_is_no_number_is_unknown(sagemaker: Any, ec2: Any, fee: str | None) -> None:
    """Never zero, never a crash."""
    (offer,) = ask(sagemaker, ec2, offering(UpfrontFee=fee)).offers
    assert offer.fee is None


def test_optional_members_may_be_absent_and_enums_unknown(sagemaker: Any, ec2: Any) -> None:
    """No zone, no currency (then the fee is not known: dollars are not guessed), a target and a type that no
    model knows yet."""
    bare = offering(
        part(AvailabilityZone=None, InstanceType="ml.trn9.96xlarge"),
        CurrencyCode=None,
        TargetResources=["moon-base", "endpoint"],
    )
    (offer,) = ask(sagemaker, ec2, bare).offers
    assert (offer.zones, offer.targets) == (("zone unknown",), ("moon-base", "endpoint"))
    assert offer.target == "endpoint"
    assert offer.fee is None


def test_a_start_off_the_grid_starts_at_once(sagemaker: Any, ec2: Any) -> None:
    """09:35 is no published boundary: a later search would show a later start."""
    soon = part(1, datetime(2026, 12, 2, 9, 35, tzinfo=UTC), EndTime=START + timedelta(days=1))
    assert ask(sagemaker, ec2, offering(soon)).offers[0].starts_at_once


def test_what_cannot_be_read_is_told_and_not_called_empty(sagemaker: Any, ec2: Any) -> None:
    """An offer without times or parts is left out with a word; alone, it makes the place failed."""
    broken = offering(part(StartTime=None), TrainingPlanOfferingId="tpo-2")
    both = ask(sagemaker, ec2, offering(), broken)
    assert len(both.offers) == 1
    assert "1 of 2 offers could not be read (an offer without start or end)" in both.detail
    alone = ask(sagemaker, ec2, offering(ReservedCapacityOfferings=[]))
    assert alone.outcome is PlaceOutcome.FAILED
    assert not alone.is_complete


def test_an_empty_list_means_none_on_sale(sagemaker: Any, ec2: Any) -> None:
    """The one answer that says that there is nothing, and the zones are not even asked."""
    answer = ask(sagemaker, ec2)
    assert answer.outcome is PlaceOutcome.NONE_ON_SALE
    assert answer.is_complete


def test_a_missing_list_is_not_an_empty_one(sagemaker: Any, ec2: Any) -> None:
    """A malformed body parses to nothing; that is failed, not sold out."""

    class Malformed:
        def search_training_plan_offerings(self, **_: Any) -> dict[str, Any]:
            return {"ResponseMetadata": {}}

    answer = search_place(QUERY, Malformed(), ec2, now=lambda: NOW)
    assert answer.outcome is PlaceOutcome.FAILED


REFUSED = [
    ("ResourceLimitExceeded", "quota", PlaceOutcome.NO_QUOTA),
    ("ThrottlingException", "Rate exceeded", PlaceOutcome.THROTTLED),
    ("AccessDeniedException", "no", PlaceOutcome.NOT_ALLOWED),
    ("UnknownOperationException", "not supported in the called region", PlaceOutcome.NOT_SOLD_HERE),
    (
        "ValidationException",
        "Invalid instance type ml.trn1.32xlarge for target resource endpoint.",
        PlaceOutcome.NOT_SOLD_HERE,
    ),
    (
        "ValidationException",
        "1 validation error detected: Value 'ml.x' at 'instanceType' failed to satisfy constraint: Member",
        PlaceOutcome.NOT_SOLD_HERE,
    ),
    ("ValidationException", "something else", PlaceOutcome.FAILED),
    ("InternalFailure", "", PlaceOutcome.FAILED),
    ("NeverSeen", "", PlaceOutcome.FAILED),
]


@pytest.mark.parametrize(("code", "message", "outcome"), REFUSED, ids=[f"{r[0]}-{r[2]}" for r in REFUSED])
def test_each_refusal_has_its_outcome(
    sagemaker: Any, ec2: Any, code: str, message: str, outcome: PlaceOutcome
) -> None:
    """Quota, throttle, rights, not sold here, and all the rest: failed."""
    with Stubber(sagemaker) as plans:
        plans.add_client_error("search_training_plan_offerings", code, message)
        answer = search_place(QUERY, sagemaker, ec2, now=lambda: NOW)
    assert answer.outcome is outcome
    assert answer.is_complete is (outcome is PlaceOutcome.NOT_SOLD_HERE)
    assert code in answer.detail


@pytest.mark.parametrize(
    "problem", [EndpointConnectionError(endpoint_url="http://x"), ReadTimeoutError(endpoint_url="http://x")]
)
def test_a_place_out_of_reach_failed(ec2: Any, problem: Exception) -> None:
    """No answer is no answer, and raises nothing."""

    class Unreachable:
        def search_training_plan_offerings(self, **_: Any) -> dict[str, Any]:
            raise problem

    assert search_place(QUERY, Unreachable(), ec2, now=lambda: NOW).outcome is PlaceOutcome.FAILED


def test_without_zone_ids_the_offers_stay(sagemaker: Any, ec2: Any) -> None:
    """Zones that may not be described leave names, and a word that says so."""
    with Stubber(sagemaker) as plans, Stubber(ec2) as zones:
        plans.add_response("search_training_plan_offerings", {"TrainingPlanOfferings": [offering()]})
        zones.add_client_error("describe_availability_zones", "UnauthorizedOperation")
        answer = search_place(QUERY, sagemaker, ec2, now=lambda: NOW)
    assert answer.offers[0].zones == ("us-east-1f",)
    assert answer.detail == "zone ids not known (UnauthorizedOperation)"


def test_list_rates_are_dated_and_unknown_ones_stay_unknown() -> None:
    """SageMaker's hosting price and EC2's of the same hardware, with source and day; no row, no price."""
    from berth.planner.need import Need

    need = Need("n", "ml.trn1.32xlarge", 1, timedelta(hours=24), Target.ENDPOINT, ("us-east-1",))
    bare, hosting, *unknown = list_rates(need, ("us-east-1", "moon-1"))
    assert hosting.hourly == Money(Decimal("28.497"))
    assert hosting.region_assumed
    assert hosting.as_of is not None
    assert bare.hourly == Money(Decimal("21.5"))
    assert [rate.hourly for rate in unknown] == [None, None]
    assert not any(rate.live for rate in (bare, hosting))


def test_several_questions_that_come_too_fast_come_slower(clock: FakeClock) -> None:
    """Every second call is refused: each is asked again after 10 s; a single question is told as it is."""
    numbers = iter(range(1000))

    def search(**_: Any) -> dict[str, Any]:
        if next(numbers) % 2 == 0:
            raise refused("ThrottlingException")
        return {"TrainingPlanOfferings": []}

    sagemaker = FakeService(search_training_plan_offerings=search)
    heard: list[PlaceAnswer] = []
    region_lane(lambda: (sagemaker, FakeService()), clock, [QUERY] * 4)(heard.append)
    assert [answer.outcome for answer in heard] == [PlaceOutcome.NONE_ON_SALE] * 4
    assert clock.sleeps == [10.0] * 4
    region_lane(lambda: (sagemaker, FakeService()), clock, [QUERY])(heard.append)
    assert heard[-1].outcome is PlaceOutcome.THROTTLED
    assert len(clock.sleeps) == 4


def test_a_region_that_is_throttled_for_good_is_given_up(clock: FakeClock) -> None:
    """Nine waits a Region at most, and every question has its answer."""

    def search(**_: Any) -> dict[str, Any]:
        raise refused("ThrottlingException")

    heard: list[PlaceAnswer] = []
    sagemaker = FakeService(search_training_plan_offerings=search)
    region_lane(lambda: (sagemaker, FakeService()), clock, [QUERY] * 6)(heard.append)
    assert [answer.outcome for answer in heard] == [PlaceOutcome.THROTTLED] * 6
    assert len(clock.sleeps) == 9
