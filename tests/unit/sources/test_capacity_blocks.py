"""Searching Capacity Blocks: every page, the right pace, and a word for each kind of no."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.planner.offers import PlaceAnswer, PlaceOutcome, Query
from berth.sources.capacity_blocks import (
    LIMIT_WAIT_S,
    TOO_FAST_OR_NO_QUOTA,
    RegionSearch,
    read_offers,
    search_place,
)
from berth.sources.pacing import JITTER_S, Pacer
from berth.terms.money import Money
from berth.terms.ways import Target, Way

from .conftest import NOW, START, FakeClock, FakeService, refused, zones

ZONES = {"us-east-1a": "use1-aza"}


def query(hours: int = 24, **changes: Any) -> Query:
    """One p5 for a day."""
    base = {
        "way": Way.CAPACITY_BLOCK, "region": "us-east-1", "instance_type": "p5.48xlarge", "count": 1,
        "duration_hours": hours, "target": Target.INSTANCES, "platform": "Linux/UNIX",
    }  # fmt: skip
    return Query(**(base | changes))


def offering(number: int = 1, *, hours: int = 24, **changes: Any) -> dict[str, Any]:
    """One CapacityBlockOffering."""
    base = {
        "CapacityBlockOfferingId": f"cb-{number:017x}", "InstanceType": "p5.48xlarge", "InstanceCount": 1,
        "AvailabilityZone": "us-east-1a", "StartDate": START, "EndDate": START + timedelta(hours=hours),
        "CapacityBlockDurationHours": hours, "UpfrontFee": "1146.17", "CurrencyCode": "USD",
        "Tenancy": "default", "ZoneType": "availability-zone",
    }  # fmt: skip
    return {key: value for key, value in (base | changes).items() if value is not None}


def ask(clock: FakeClock, search: Any, wanted: Query | None = None) -> PlaceAnswer:
    """The answer of a Region whose search is that function."""
    ec2 = FakeService(describe_capacity_block_offerings=search, describe_availability_zones=zones)
    return search_place(wanted or query(), ec2, clock)


def on_sale(*offerings: dict[str, Any]) -> Any:
    """A search that finds these."""
    return lambda **_: {"CapacityBlockOfferings": list(offerings)}


def real_client() -> Any:
    """A client of its own that has nowhere to go."""
    session = botocore.session.Session()
    session.set_credentials("YARD1", "x")
    return session.create_client("ec2", region_name="us-east-1", endpoint_url="http://127.0.0.1:9")


def test_an_offer_is_read_whole(clock: FakeClock) -> None:
    """Id, zone id, window, exact fee, platform, age, query; sent and read as the model says."""
    ec2 = real_client()
    start = START - timedelta(seconds=1)
    wanted = query(start_after=start, platform="Ubuntu Pro")
    with Stubber(ec2) as stub:
        stub.add_response(
            "describe_capacity_block_offerings",
            {"CapacityBlockOfferings": [offering()]},
            {
                "InstanceType": "p5.48xlarge", "InstanceCount": 1, "CapacityDurationHours": 24,
                "StartDateRange": start, "AllAvailabilityZones": True, "MaxResults": 100,
            },
        )  # fmt: skip
        stub.add_response("describe_availability_zones", dict(zones()))
        answer = search_place(wanted, ec2, clock)
    assert (answer.outcome, answer.question) == (PlaceOutcome.OFFERS, wanted)
    (offer,) = answer.offers
    assert (offer.offering_id, offer.zones) == ("cb-00000000000000001", ("use1-aza",))
    assert (offer.paid_window.start, offer.paid_hours) == (START, 24)
    assert offer.fee == Money(Decimal("1146.17"))
    assert (offer.platform, offer.target, offer.seen_at) == ("Ubuntu Pro", "instances", NOW)
    assert not offer.starts_at_once


def test_every_page_is_read_also_after_an_empty_one(clock: FakeClock) -> None:
    """Field fault 51: 230 offers over pages, one of them empty, the cheapest on the last."""
    sizes = {"": (100, "2"), "2": (0, "3"), "3": (100, "4"), "4": (30, "")}
    numbers = count(1)

    def search(NextToken: str = "", **_: Any) -> Mapping[str, Any]:  # noqa: N803 - AWS's word
        size, token = sizes[NextToken]
        page = [offering(next(numbers)) for _ in range(size)]
        return {"CapacityBlockOfferings": page, **({"NextToken": token} if token else {})}

    assert len({offer.offering_id for offer in ask(clock, search).offers}) == 230


def test_pages_that_lead_in_a_circle_end(clock: FakeClock) -> None:
    """A token that comes again is a fault, and what was seen is kept."""
    answer = ask(clock, lambda **_: {"CapacityBlockOfferings": [offering()], "NextToken": "x"})
    assert answer.outcome is PlaceOutcome.FAILED
    assert answer.offers
    assert not answer.is_complete


@pytest.mark.parametrize("end", [None, START + timedelta(hours=6, minutes=35)])
def test_hours_and_minutes_add_up(clock: FakeClock, end: datetime | None) -> None:
    """A block from 04:55 to 11:30 lasts 6 h 35 min, whether the end is told or only the length."""
    starts = datetime(2026, 12, 2, 4, 55, tzinfo=START.tzinfo)
    raw = offering(
        StartDate=starts, EndDate=end and START, CapacityBlockDurationHours=6, CapacityBlockDurationMinutes=35
    )
    (offer,) = ask(clock, on_sale(raw)).offers
    assert offer.paid_time == timedelta(hours=6, minutes=35)
    assert offer.starts_at_once


@pytest.mark.parametrize("fee", [None, "", "free", "NaN", "Infinity"])
def test_a_fee_that_is_no_number_is_unknown(clock: FakeClock, fee: str | None) -> None:
    """Never zero, never a crash; whole dollars are a number."""
    assert ask(clock, on_sale(offering(UpfrontFee=fee))).offers[0].fee is None
    assert ask(clock, on_sale(offering(UpfrontFee="283"))).offers[0].fee == Money(Decimal(283))
    assert ask(clock, on_sale(offering(CurrencyCode=None))).offers[0].fee is None


@settings(deadline=None, max_examples=100)
@given(st.sets(st.sampled_from(sorted(offering())), max_size=4), st.sampled_from(sorted(offering())))
def test_any_member_may_be_missing_or_strange(missing: set[str], strange: str) -> None:
    """Field fault 40: no exception; an offer comes out, or a word about it."""
    raw = {key: value for key, value in offering().items() if key not in missing}
    for members in (raw, {**raw, strange: object()}, {**raw, strange: "moon-phase"}):
        offers, unread = read_offers([members], query(), ZONES, NOW)
        assert len(offers) + bool(unread) == 1


def test_what_cannot_be_read_alone_makes_the_place_failed(clock: FakeClock) -> None:
    """An offer without a start is not sold out."""
    answer = ask(clock, on_sale(offering(StartDate=None)))
    assert answer.outcome is PlaceOutcome.FAILED
    assert "1 of 1 offers could not be read (an offer without a start)" in answer.detail


def test_empty_is_none_on_sale_and_damaged_is_failed(clock: FakeClock) -> None:
    """EC2 may leave an empty list out of a real answer; what is no answer has no request id either."""
    for empty in ({"CapacityBlockOfferings": []}, {"ResponseMetadata": {"RequestId": "r"}}):
        assert ask(clock, lambda _e=empty, **_: _e).outcome is PlaceOutcome.NONE_ON_SALE
    assert ask(clock, lambda **_: {"ResponseMetadata": {}}).outcome is PlaceOutcome.FAILED


REFUSALS = [
    ("AuthFailure", "", PlaceOutcome.NOT_ALLOWED),
    ("UnauthorizedOperation", "", PlaceOutcome.NOT_ALLOWED),
    (
        "InvalidParameterValue",
        "The instance type 'p5.48xlarge' is not supported for Capacity Blocks in 'x'. Specify another.",
        PlaceOutcome.NOT_SOLD_HERE,
    ),
    ("InvalidAction", "", PlaceOutcome.NOT_SOLD_HERE),
    ("InvalidParameterValue", "The start date is not valid", PlaceOutcome.FAILED),
    ("RequestLimitExceeded", "", PlaceOutcome.THROTTLED),
    ("InternalError", "", PlaceOutcome.FAILED),
    ("NeverSeen", "", PlaceOutcome.FAILED),
]


@pytest.mark.parametrize(("code", "message", "outcome"), REFUSALS, ids=[f"{r[0]}-{r[2]}" for r in REFUSALS])
def test_each_refusal_has_its_word(clock: FakeClock, code: str, message: str, outcome: PlaceOutcome) -> None:
    """Field fault 48: nothing found, not allowed, not sold, throttled and the rest are told apart."""

    def search(**_: Any) -> Mapping[str, Any]:
        raise refused(code, message)

    answer = ask(clock, search)
    assert answer.outcome is outcome
    assert code in answer.detail


def test_a_place_out_of_reach_failed(clock: FakeClock) -> None:
    """Nothing is raised."""

    def search(**_: Any) -> Mapping[str, Any]:
        raise EndpointConnectionError(endpoint_url="http://x")

    assert ask(clock, search).outcome is PlaceOutcome.FAILED


# -- AllAvailabilityZones --------------------------------------------------------------------------------
def test_an_sdk_without_the_new_parameter_is_asked_without_it(clock: FakeClock) -> None:
    """Field fault 56: a model that lacks AllAvailabilityZones; a note, not a failure."""
    ec2 = real_client()
    shapes = ec2.meta.service_model._service_description["shapes"]
    del shapes["DescribeCapacityBlockOfferingsRequest"]["members"]["AllAvailabilityZones"]
    with Stubber(ec2) as stub:
        for _ in range(2):
            stub.add_response("describe_capacity_block_offerings", {"CapacityBlockOfferings": []})
        search = RegionSearch.at("us-east-1", ec2, clock)
        first, second = search.ask(query()), search.ask(query())
        stub.assert_no_pending_responses()
    assert first.outcome is second.outcome is PlaceOutcome.NONE_ON_SALE
    assert "AllAvailabilityZones is not known here" in second.detail


def test_a_service_without_the_new_parameter_too(clock: FakeClock) -> None:
    """UnknownParameter that names it; another unknown parameter is a failure."""

    def older(**request: Any) -> Mapping[str, Any]:
        if "AllAvailabilityZones" in request:
            raise refused("UnknownParameter", "The parameter AllAvailabilityZones is not recognized")
        return {"CapacityBlockOfferings": [offering()]}

    answer = ask(clock, older)
    assert answer.outcome is PlaceOutcome.OFFERS
    assert "AllAvailabilityZones is not known here" in answer.detail

    def other(**_: Any) -> Mapping[str, Any]:
        raise refused("UnknownParameter", "The parameter InstanceCount is not recognized")

    assert ask(clock, other).outcome is PlaceOutcome.FAILED


# -- pace ------------------------------------------------------------------------------------------------
def test_ten_at_once_then_one_every_six_point_seven_seconds(clock: FakeClock) -> None:
    """AWS's bucket: 25 searches take 15 refills, half a second of room and no refusal."""
    pacer = Pacer(clock.elapsed, clock.sleep)
    for _ in range(10):
        pacer.take()
    assert clock.slept == 0
    for _ in range(15):
        pacer.take()
    assert clock.slept == pytest.approx(15 / 0.15 + JITTER_S)


class Bucket:
    """A Region that counts as AWS does, and refuses what is faster."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._tokens, self._at, self.refusals = 10.0, 0.0, 0

    def search(self, **_: Any) -> Mapping[str, Any]:
        """One search."""
        now = self._clock.elapsed()
        self._tokens = min(10.0, self._tokens + (now - self._at) * 0.15)
        self._at = now
        if self._tokens < 1 - 1e-9:
            self.refusals += 1
            raise refused("RequestLimitExceeded")
        self._tokens -= 1
        return {"CapacityBlockOfferings": [offering()]}


def test_a_paced_sweep_is_never_refused(clock: FakeClock) -> None:
    """38 durations in one Region, pages and all."""
    bucket = Bucket(clock)
    ec2 = FakeService(describe_capacity_block_offerings=bucket.search, describe_availability_zones=zones)
    search = RegionSearch.at("us-east-1", ec2, clock)
    assert all(search.ask(query(24 * n)).outcome is PlaceOutcome.OFFERS for n in range(1, 39))
    assert bucket.refusals == 0


def test_somebody_else_takes_from_the_bucket(clock: FakeClock) -> None:
    """Field fault 49: every third call is refused as too fast; 14 Regions x 6 durations are all filled."""
    numbers = count(1)

    def search(**_: Any) -> Mapping[str, Any]:
        if next(numbers) % 3 == 0:
            raise refused(TOO_FAST_OR_NO_QUOTA, "Your existing service limits ... are not sufficient")
        return {"CapacityBlockOfferings": [offering()]}

    ec2 = FakeService(describe_capacity_block_offerings=search, describe_availability_zones=zones)
    answers = [
        region.ask(query(24 * days))
        for region in (RegionSearch.at(f"region-{n}", ec2, clock) for n in range(14))
        for days in range(1, 7)
    ]
    assert [a.outcome for a in answers] == [PlaceOutcome.OFFERS] * 84
    asked = len(ec2.calls("describe_capacity_block_offerings"))
    assert asked <= 84 * 3 // 2 + 1, "retries are bounded by the refusals"
    assert clock.sleeps.count(LIMIT_WAIT_S) == asked - 84


def limited(answers_before: int) -> Any:
    """A search that answers so many times and then refuses for limits."""
    numbers = count()

    def search(**_: Any) -> Mapping[str, Any]:
        if next(numbers) < answers_before:
            return {"CapacityBlockOfferings": []}
        raise refused(TOO_FAST_OR_NO_QUOTA, "Your existing service limits ... are not sufficient")

    return search


def test_a_region_that_never_answered_has_no_quota(clock: FakeClock) -> None:
    """One wait of 20 s to be sure; then the quota is named, and further questions are not even sent."""
    ec2 = FakeService(describe_capacity_block_offerings=limited(0))
    search = RegionSearch.at("us-east-1", ec2, clock)
    first, second = search.ask(query(count=2)), search.ask(query(48))
    assert first.outcome is second.outcome is PlaceOutcome.NO_QUOTA
    assert "quota L-DA6814F2 (P5 Capacity Blocks), needs 384 vCPU" in first.detail
    assert clock.sleeps == [LIMIT_WAIT_S]
    assert len(ec2.asked) == 2


def test_a_region_that_answered_before_is_only_too_fast(clock: FakeClock) -> None:
    """The same refusal, the other meaning; the waits are bounded."""
    ec2 = FakeService(describe_capacity_block_offerings=limited(1))
    search = RegionSearch.at("us-east-1", ec2, clock)
    outcomes = [search.ask(query(24 * n)).outcome for n in range(1, 8)]
    assert outcomes == [PlaceOutcome.NONE_ON_SALE] + [PlaceOutcome.THROTTLED] * 6
    assert clock.sleeps.count(LIMIT_WAIT_S) == 9


def test_without_zone_ids_the_offers_stay(clock: FakeClock) -> None:
    """Zones that may not be described leave names, and a word that says so."""
    ec2 = FakeService(describe_capacity_block_offerings=on_sale(offering()))
    answer = search_place(query(), ec2, clock)
    assert answer.offers[0].zones == ("us-east-1a",)
    assert answer.detail == "zone ids not known (InvalidAction)"
