"""What a checkup asks: IAM to the last page and for the right identity, DryRun where it may not, quotas."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from berth.aws.guards import PAID
from berth.aws.identity import Identity
from berth.checkup.rights import Say
from berth.planner.launch import Launch
from berth.planner.need import Need
from berth.sources.checkup import look_over
from berth.terms.ways import Target

from .conftest import FakeClock, FakeService, refused

ACCOUNT = "123456789012"
USER = f"arn:aws:iam::{ACCOUNT}:user/ada"
SESSION = f"arn:aws:sts::{ACCOUNT}:assumed-role/Planner/ada"


def need_of(target: Target = Target.INSTANCES, kind: str = "p5.48xlarge", **more: Any) -> Need:
    """A need of one Region."""
    return Need("eval", kind, 2, timedelta(hours=24), target, ("us-east-1",), **more)


def simulated(**request: Any) -> dict[str, Any]:
    """IAM allows everything, one action a page."""
    number = int(request.get("Marker", "0"))
    action = request["ActionNames"][number]
    row = {
        "EvalActionName": action,
        "EvalResourceName": request["ResourceArns"][0],
        "EvalDecision": "allowed",
    }
    more = number + 1 < len(request["ActionNames"])
    return {"EvaluationResults": [row], "IsTruncated": more, **({"Marker": str(number + 1)} if more else {})}


def quota(**request: Any) -> dict[str, Any]:
    """Service Quotas knows a value for every code."""
    return {"Quota": {"Value": 1000.0}}


def nothing(**request: Any) -> dict[str, Any]:
    """No quota of any name, no request."""
    return {"Quotas": [], "RequestedQuotas": []}


class FakeDoor:
    """A door whose clients are fakes by service."""

    def __init__(self, arn: str = USER, **services: FakeService) -> None:
        self.identity = self.payer = Identity(ACCOUNT, arn, ("us-east-1",), None)
        self.clock = FakeClock()
        self.regions = ("us-east-1",)
        self.services = {
            "ec2": FakeService(
                describe_regions=lambda **_: {
                    "Regions": [{"RegionName": "us-east-1", "OptInStatus": "opt-in-not-required"}]
                },
                describe_availability_zones=lambda **_: {"AvailabilityZones": [{"ZoneId": "use1-az1"}]},
                describe_subnets=lambda **_: {
                    "Subnets": [{"SubnetId": "s", "AvailabilityZoneId": "use1-az1"}]
                },
                describe_images=lambda **_: {"Images": [{"ImageId": "ami-1"}]},
            ),
            "iam": FakeService(simulate_principal_policy=simulated),
            "service-quotas": FakeService(
                get_service_quota=quota,
                list_service_quotas=nothing,
                list_requested_service_quota_change_history_by_quota=nothing,
            ),
            "sagemaker": FakeService(),
            **services,
        }
        self.opened: list[tuple[str, str]] = []

    def reader(self, service: str, region: str) -> FakeService:
        """The fake of a service."""
        self.opened.append((service, region))
        return self.services[service.replace("_", "-")]


def look(door: FakeDoor, need: Need | None) -> Any:
    """Everything that is asked for a need."""
    return look_over(door, need, uploads=False, told=lambda text: None)  # type: ignore[arg-type]


def test_iam_is_asked_to_the_last_page_and_only_there() -> None:
    """Every right is answered; the client is made for IAM's one home."""
    door = FakeDoor()
    looked = look(door, need_of(launch=Launch(image="ami-1")))
    answers = looked.rights["us-east-1"].answers
    assert answers
    assert {one.say for one in answers} == {Say.ALLOWED}
    assert ("iam", "us-east-1") in door.opened
    assert looked.parts["us-east-1"].image is True
    assert looked.regions["us-east-1"].zones == {"use1-az1"}
    assert {name for _, service in door.services.items() for name, _ in service.asked}.isdisjoint(
        {"run_instances", "purchase_capacity_block", "create_training_plan"}
    )
    assert PAID


@pytest.mark.parametrize(
    ("role", "source"),
    [
        ({"Arn": f"arn:aws:iam::{ACCOUNT}:role/team/Planner"}, f"arn:aws:iam::{ACCOUNT}:role/team/Planner"),
        (None, f"arn:aws:iam::{ACCOUNT}:role/Planner"),
    ],
)
def test_of_a_session_the_role_is_simulated(role: dict[str, str] | None, source: str) -> None:
    """With its path, which only IAM knows; without it where IAM may not be asked."""

    def get_role(**_: Any) -> dict[str, Any]:
        if role is None:
            raise refused("AccessDenied")
        return {"Role": role}

    iam = FakeService(simulate_principal_policy=simulated, get_role=get_role)
    look(FakeDoor(SESSION, iam=iam), need_of())
    asked = {request["PolicySourceArn"] for name, request in iam.asked if name == "simulate_principal_policy"}
    assert asked == {source}


def test_where_iam_may_not_be_asked_ec2_is_tried_with_dry_run() -> None:
    """What it allows or refuses is known; what cannot be tried without doing it stays unknown."""

    def denied(**_: Any) -> dict[str, Any]:
        raise refused("AccessDenied", "not authorized to perform: iam:SimulatePrincipalPolicy")

    def dry(code: str) -> Any:
        def call(**request: Any) -> dict[str, Any]:
            assert request["DryRun"] is True
            raise refused(code)

        return call

    door = FakeDoor(iam=FakeService(simulate_principal_policy=denied))
    ec2 = door.services["ec2"]
    ec2._operations = {  # type: ignore[assignment]
        "describe_regions": lambda **_: {"Regions": []},
        "describe_availability_zones": lambda **request: dry("DryRunOperation")(**request)
        if request else {"AvailabilityZones": []},
        "describe_capacity_reservations": dry("UnauthorizedOperation"),
        "describe_spot_price_history": dry("RequestLimitExceeded"),
        "describe_instances": dry("DryRunOperation"),
        "describe_subnets": lambda **request: dry("DryRunOperation")(**request)
        if "DryRun" in request else {"Subnets": []},
        "describe_images": dry("DryRunOperation"),
    }  # fmt: skip
    rights = look(door, need_of()).rights["us-east-1"]
    assert "SimulatePrincipalPolicy" in rights.no_simulation
    says = {one.right.action: one.say for one in rights.answers}
    assert says["ec2:DescribeInstances"] is Say.ALLOWED
    assert says["ec2:DescribeCapacityReservations"] is Say.DENIED
    assert says["ec2:DescribeSpotPriceHistory"] is Say.NOT_ASKED
    assert says["ec2:PurchaseCapacityBlock"] is says["ec2:RunInstances"] is Say.NOT_ASKED


def test_of_the_paid_call_the_payer_is_simulated() -> None:
    """And of nothing else: planning and launching stay the caller's (`--buyer-profile`)."""
    buyer = USER.replace("ada", "buyer")
    door = FakeDoor()
    door.payer = replace(door.identity, arn=buyer)
    look(door, need_of())
    asked: dict[str, set[str]] = {}
    for _, request in door.services["iam"].asked:
        asked.setdefault(request["PolicySourceArn"], set()).update(request["ActionNames"])
    assert asked[buyer] == {"ec2:PurchaseCapacityBlock", "ec2:CreateTags"}
    assert "ec2:RunInstances" in asked[USER]
    assert "ec2:PurchaseCapacityBlock" not in asked[USER]


def test_iam_that_is_asked_too_fast_is_asked_again_after_a_pause() -> None:
    """It is one for all Regions; only where it stays so is nothing known."""
    throttled = iter([True, True, False])

    def once_more(**request: Any) -> dict[str, Any]:
        if next(throttled, False):
            raise refused("Throttling", "Rate exceeded")
        return simulated(**request)

    door = FakeDoor(iam=FakeService(simulate_principal_policy=once_more))
    rights = look(door, need_of()).rights["us-east-1"]
    assert rights.no_simulation == ""
    assert door.clock.sleeps == [2.0, 2.0]

    def never(**_: Any) -> dict[str, Any]:
        raise refused("Throttling", "Rate exceeded")

    busy = FakeDoor(iam=FakeService(simulate_principal_policy=never))
    assert "Throttling" in look(busy, need_of()).rights["us-east-1"].no_simulation


def test_the_root_user_is_not_simulated() -> None:
    """IAM knows no policies of root: nothing is asked, and nothing is fine."""
    iam = FakeService(simulate_principal_policy=simulated)
    rights = look(FakeDoor(f"arn:aws:iam::{ACCOUNT}:root", iam=iam), need_of()).rights["us-east-1"]
    assert iam.asked == []
    assert {one.say for one in rights.answers} == {Say.NOT_ASKED}


def test_a_quota_without_a_value_of_its_own_has_the_default_and_its_open_requests() -> None:
    """NoSuchResourceException is how Service Quotas says that nothing is applied."""

    def absent(**_: Any) -> dict[str, Any]:
        raise refused("NoSuchResourceException")

    service_quotas = FakeService(
        get_service_quota=absent,
        get_aws_default_service_quota=lambda **_: {"Quota": {"Value": 0.0}},
        list_requested_service_quota_change_history_by_quota=lambda **_: {
            "RequestedQuotas": [{"DesiredValue": 384.0, "Status": "PENDING"}]
        },
    )
    seen = look(FakeDoor(**{"service-quotas": service_quotas}), need_of()).quotas["us-east-1"].seen
    assert {(one.value, one.is_default, one.pending) for one in seen} == {(0.0, True, ((384.0, "PENDING"),))}


def test_codes_that_nobody_published_are_found_by_name_through_all_pages() -> None:
    """SageMaker's list is read to the end; a name that it lacks stays unknown."""

    def pages(**request: Any) -> dict[str, Any]:
        if "NextToken" not in request:
            return {"Quotas": [{"QuotaName": "other", "QuotaCode": "L-0"}], "NextToken": "2"}
        return {"Quotas": [{"QuotaName": "ml.p5.48xlarge for endpoint usage", "QuotaCode": "L-ENDPOINT"}]}

    service_quotas = FakeService(
        get_service_quota=quota,
        list_service_quotas=pages,
        list_requested_service_quota_change_history_by_quota=nothing,
    )
    door = FakeDoor(**{"service-quotas": service_quotas})
    seen = look(door, need_of(Target.ENDPOINT, "ml.p5.48xlarge")).quotas["us-east-1"].seen
    assert [one.code for one in seen] == ["L-867702E6", "L-9EF527CA", "L-ENDPOINT"]
    job = look(door, need_of(Target.TRAINING_JOB, "ml.p5.48xlarge")).quotas["us-east-1"].seen
    assert (job[2].code, job[2].value) == (None, None)


def test_a_region_that_answers_and_refuses_is_there() -> None:
    """A right that is lacking is no Region that is lacking; a Region out of reach says so."""

    def unauthorised(**_: Any) -> dict[str, Any]:
        raise refused("UnauthorizedOperation")

    door = FakeDoor(ec2=FakeService(describe_regions=unauthorised, describe_availability_zones=unauthorised))
    looked = look(door, None)
    assert looked.regions["us-east-1"].zones == frozenset()
    assert "UnauthorizedOperation" in looked.statuses
    assert looked.quotas == {}
