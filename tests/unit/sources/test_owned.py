"""Reading what is owned: every page, every state, whatever is missing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from botocore.stub import Stubber
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.aws.refusals import Kind, Refusal
from berth.inventory.holdings import Known
from berth.planner.owned import Owned
from berth.sources.holdings import enabled_regions, look_in, read_endpoint
from berth.sources.owned import (
    look_at_reservation,
    owned_plans,
    owned_reservations,
    read_reservation,
)
from berth.terms.money import Money
from berth.terms.ways import Way
from berth.terms.window import Window

from .conftest import START, FakeService, refused, zones
from .test_capacity_blocks import real_client

SIZE = "aws:ec2capacityreservation:incrementalRequestedQuantity"
KIND = "aws:ec2capacityreservation:capacityReservationType"


def reservation(number: int = 1, **changes: Any) -> dict[str, Any]:
    """One CapacityReservation of a block that has not begun."""
    base = {
        "CapacityReservationId": f"cr-{number:017x}", "OwnerId": "111122223333",
        "InstanceType": "p5.48xlarge",
        "CapacityReservationArn": f"arn:aws:ec2:us-east-1:111122223333:capacity-reservation/cr-{number:017x}",
        "InstancePlatform": "Linux/UNIX", "AvailabilityZone": "us-east-1a", "AvailabilityZoneId": "use1-az4",
        "Tenancy": "default", "TotalInstanceCount": 0, "AvailableInstanceCount": 0, "State": "scheduled",
        "StartDate": START, "EndDate": START + timedelta(days=1), "ReservationType": "capacity-block",
        "Tags": [{"Key": SIZE, "Value": "4"}, {"Key": "team", "Value": "a"}],
    }  # fmt: skip
    return {key: value for key, value in (base | changes).items() if value is not None}


def test_blocks_and_on_demand_reservations_are_read_together() -> None:
    """As the model allows, every page; each says itself what it is; a block's size is its tag's."""
    ec2 = real_client()
    odcr = reservation(2, ReservationType=None, Tags=[], State="active", TotalInstanceCount=3)
    with Stubber(ec2) as stub:
        stub.add_response(
            "describe_capacity_reservations",
            {"CapacityReservations": [reservation(), odcr], "NextToken": "x"},
            {"MaxResults": 100},
        )
        stub.add_response("describe_capacity_reservations", {"CapacityReservations": []})
        answer = owned_reservations(ec2, "us-east-1")
    block, other = answer.owned
    assert (block.way, block.count, block.free, block.zones) == (Way.CAPACITY_BLOCK, 4, 0, ("use1-az4",))
    assert (other.way, other.count) == (Way.ODCR, 3)
    assert (block.tag("team"), answer.trouble) == ("a", "")


def test_what_is_not_allowed_is_a_trouble_and_what_does_not_exist_is_none() -> None:
    """An operation that a Region lacks hides nothing."""

    def describe(**_: Any) -> Mapping[str, Any]:
        raise refused("UnauthorizedOperation", "no")

    answer = owned_reservations(FakeService(describe_capacity_reservations=describe), "us-east-1")
    assert answer.trouble == "UnauthorizedOperation: no"
    assert owned_reservations(FakeService(), "us-east-1").trouble == ""


@settings(deadline=None, max_examples=200)
@given(st.sets(st.sampled_from(sorted(reservation()))), st.sampled_from(sorted(reservation())))
def test_any_member_of_a_reservation_may_be_missing_or_strange(missing: set[str], strange: str) -> None:
    """Field fault 40: no exception, and nothing is made up."""
    row = {key: value for key, value in reservation().items() if key not in missing}
    for value in (object(), "moon-phase", -1, [], {}):
        read_reservation({**row, strange: value}, "us-east-1")
    read = read_reservation(row, "us-east-1")
    assert (read.state == "unknown") is ("State" in missing)
    assert read.count in ({None} if "Tags" in missing else {4})
    assert Owned.from_json(read.to_json()) == read


def test_a_reservation_that_says_nothing_of_its_kind_is_known_by_its_tag() -> None:
    """ReservationType may be absent; before the start only the tag has the size."""
    marked = reservation(ReservationType=None, Tags=[{"Key": KIND, "Value": "capacity-block"}])
    assert read_reservation(marked, "r").way is Way.CAPACITY_BLOCK
    assert read_reservation(marked, "r").count is None
    plain = reservation(ReservationType=None, Tags=[], TotalInstanceCount=3, EndDate=None)
    assert read_reservation(plain, "r").way is Way.ODCR
    assert (read_reservation(plain, "r").count, read_reservation(plain, "r").end) == (3, None)
    assert read_reservation(reservation(State="unavailable"), "r").state == "unavailable"


def summary(**changes: Any) -> dict[str, Any]:
    """One TrainingPlanSummary in two parts."""
    parts = [
        {"InstanceType": "ml.p5.48xlarge", "AvailabilityZone": f"us-east-1{z}", "StartTime": START + at,
         "EndTime": START + at + timedelta(days=2)}
        for z, at in (("a", timedelta(0)), ("b", timedelta(days=4)))
    ]  # fmt: skip
    return {
        "TrainingPlanName": "p", "TrainingPlanArn": "arn:p", "Status": "Scheduled", "UpfrontFee": "9000",
        "CurrencyCode": "USD", "TotalInstanceCount": 2, "AvailableInstanceCount": 2,
        "TargetResources": ["endpoint"], "ReservedCapacitySummaries": parts, **changes,
    }  # fmt: skip


def test_a_training_plan_is_read_with_all_parts_and_tags() -> None:
    """Start of the first, end of the last, zone ids, fee."""
    sagemaker = FakeService(
        list_training_plans=lambda **_: {"TrainingPlanSummaries": [summary()]},
        list_tags=lambda **_: {"Tags": [{"Key": "team", "Value": "a"}]},
    )
    (plan,) = owned_plans(sagemaker, "us-east-1", FakeService(describe_availability_zones=zones)).owned
    assert (plan.start, plan.end) == (START, START + timedelta(days=6))
    assert (plan.zones, plan.fee) == (("use1-aza", "use1-azb"), Money(Decimal(9000)))
    assert (plan.tags, plan.targets, plan.is_held) == ((("team", "a"),), ("endpoint",), True)


def test_tags_that_cannot_be_read_leave_the_plan_and_a_word() -> None:
    """Whose it is is then not known."""
    sagemaker = FakeService(list_training_plans=lambda **_: {"TrainingPlanSummaries": [summary()]})
    answer = owned_plans(sagemaker, "us-east-1")
    assert answer.owned[0].tags is None
    assert answer.trouble == "tags not read (InvalidAction)"


# -- everything in a Region ------------------------------------------------------------------------------
def known(number: int = 9, **changes: Any) -> Known:
    """A block that the journal knows."""
    base = {
        "order": "eval", "way": Way.CAPACITY_BLOCK, "region": "us-east-1", "id": f"cr-{number:017x}",
        "fee": Money(Decimal("1146.17")), "window": Window(START, START + timedelta(days=1)),
        "instance_type": "p5.48xlarge", "count": 1, "zones": ("use1-az4",), "target": "instances",
        "idle": None,
    }  # fmt: skip
    return Known(**(base | changes))


def ec2_with(*rows: dict[str, Any], by_id: Any = None) -> FakeService:
    """EC2 that lists these, and answers ids as told (not found where nothing is)."""

    def describe(**request: Any) -> Mapping[str, Any]:
        if "CapacityReservationIds" not in request:
            return {"CapacityReservations": list(rows)}
        if by_id is None:
            raise refused("InvalidCapacityReservationId.NotFound", "The ID does not exist")
        found: Mapping[str, Any] = by_id(**request)
        return found

    return FakeService(describe_capacity_reservations=describe, describe_availability_zones=zones)


SAGEMAKER = FakeService(
    list_training_plans=lambda **_: {"TrainingPlanSummaries": []},
    list_endpoints=lambda **_: {"Endpoints": [{"EndpointName": "e", "EndpointStatus": "InService"}]},
)


def test_a_region_shows_blocks_reservations_plans_and_endpoints() -> None:
    """All of them, whoever bought them."""
    answer = look_in(
        "us-east-1", ec2_with(reservation(), reservation(2, ReservationType="default")), SAGEMAKER, []
    )
    assert [o.way for o in answer.owned] == [Way.CAPACITY_BLOCK, Way.ODCR]
    assert [(e.name, e.state, e.on_demand) for e in answer.endpoints] == [("e", "InService", None)]
    assert answer.troubles == ()


def test_not_found_of_a_past_reservation_is_a_normal_answer() -> None:
    """Field fault 24: what the journal knows and no list shows is asked by id, and its absence is told."""
    answer = look_in("us-east-1", ec2_with(), SAGEMAKER, [known()])
    assert answer.gone == {known().id}
    assert answer.troubles == ()


def test_an_empty_list_for_an_id_is_no_crash() -> None:
    """Field fault 39: the answer holds nothing at all."""
    found = look_at_reservation(ec2_with(by_id=lambda **_: {"CapacityReservations": []}), "us-east-1", "cr-1")
    assert isinstance(found, Refusal)
    assert found.kind is Kind.NOT_FOUND


def test_a_refusal_by_id_is_a_trouble_and_a_late_listing_is_found() -> None:
    """Only "not found" means gone; what the id shows counts though the list is late."""

    def throttled(**_: Any) -> Mapping[str, Any]:
        raise refused("RequestLimitExceeded")

    answer = look_in("us-east-1", ec2_with(by_id=throttled), SAGEMAKER, [known()])
    assert answer.gone == frozenset()
    assert answer.troubles == (f"{known().id}: RequestLimitExceeded",)
    late = look_in(
        "us-east-1",
        ec2_with(by_id=lambda **_: {"CapacityReservations": [reservation(9)]}),
        SAGEMAKER,
        [known()],
    )
    assert [o.id for o in late.owned] == [known().id]


def test_an_endpoint_says_what_it_runs_on() -> None:
    """On a reservation, on demand, or both; unknown where no variant is told."""

    def read(*variants: dict[str, Any]) -> tuple[Any, ...]:
        found = read_endpoint({"EndpointName": "e", "ProductionVariants": list(variants)}, "r")
        return found.instances, found.reservations, found.on_demand

    on_plan = {"CurrentInstanceCount": 2, "CapacityReservationConfig": {"MlReservationArn": "arn:a/b"}}
    assert read(on_plan) == (2, ("arn:a/b",), False)
    assert read(on_plan, {"CurrentInstanceCount": 1}) == (3, ("arn:a/b",), True)
    assert read() == (None, (), None)


@pytest.mark.parametrize("rows", [[{"RegionName": "us-east-1"}, {"RegionName": None}, {}]])
def test_the_enabled_regions(rows: list[dict[str, Any]]) -> None:
    """As DescribeRegions names them; why not, where it cannot be asked."""
    assert enabled_regions(FakeService(describe_regions=lambda **_: {"Regions": rows})) == (
        ("us-east-1",),
        "",
    )
    assert enabled_regions(FakeService())[1].startswith("InvalidAction")
