"""Quotas as Service Quotas tells them, and what runs against EC2's now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from berth.planner.hourly_quotas import HourlyQuota
from berth.sources.quotas import hourly_quotas
from berth.terms.ways import Way

from .conftest import FakeService, refused

P = HourlyQuota(
    Way.ON_DEMAND,
    "us-east-1",
    "p5.48xlarge",
    "ec2",
    "L-417A185B",
    "Running On-Demand P instances",
    "vCPU",
    192,
)
SPOT = replace(P, way=Way.SPOT, code="L-7212CCBC", name="All P Spot Instance Requests")
SERVED = HourlyQuota(
    Way.SAGEMAKER_ON_DEMAND, "us-east-1", "ml.p5.48xlarge", "sagemaker", None,
    "ml.p5.48xlarge for endpoint usage", "instance", 1,
)  # fmt: skip


def valued(value: object) -> Any:
    """A GetServiceQuota that answers with that value, whatever is asked."""
    return lambda **_: {"Quota": {"Value": value}}


def running(*kinds: tuple[str, str | None]) -> Mapping[str, Any]:
    """DescribeInstances with these types and lifecycles."""
    instances = [
        {"InstanceType": kind, "CpuOptions": {"CoreCount": 96, "ThreadsPerCore": 2}}
        | ({"InstanceLifecycle": lifecycle} if lifecycle else {})
        for kind, lifecycle in kinds
    ]
    return {"Reservations": [{"Instances": instances}]}


def read(quotas: FakeService, ec2: FakeService, *asked: HourlyQuota) -> tuple[HourlyQuota, ...]:
    """What is found."""
    return hourly_quotas(lambda: quotas, lambda: ec2, asked)


def test_values_and_what_runs_now() -> None:
    """On demand and Spot apart; blocks and other classes count in neither; each code is asked once."""
    quotas = FakeService(get_service_quota=valued(1152.0))
    ec2 = FakeService(
        describe_instances=lambda **_: running(
            ("p5.48xlarge", None), ("p5en.48xlarge", None), ("p5.48xlarge", "spot"),
            ("p5.48xlarge", "capacity-block"), ("m7i.4xlarge", None),
        )
    )  # fmt: skip
    found = read(quotas, ec2, P, replace(P, instance_type="p5en.48xlarge"), SPOT)
    assert [(q.value, q.used, q.trouble) for q in found] == [
        (1152, 384, ""),
        (1152, 384, ""),
        (1152, 192, ""),
    ]
    assert [q.instances for q in found] == [4, 4, 5]
    assert len(quotas.calls("get_service_quota")) == 2


def test_a_quota_that_may_not_be_read_is_not_known() -> None:
    """The reason stays with it, and nothing is asked about what runs."""
    quotas = FakeService(
        get_service_quota=lambda **_: (_ for _ in ()).throw(refused("AccessDeniedException"))
    )
    ec2 = FakeService()
    (found,) = read(quotas, ec2, P)
    assert (found.value, found.instances) == (None, None)
    assert "AccessDenied" in found.trouble
    assert ec2.asked == []


@pytest.mark.parametrize("value", [None, "many", True])
def test_an_answer_without_a_number_is_not_known(value: object) -> None:
    """Never zero, never without limit."""
    (found,) = read(FakeService(get_service_quota=valued(value)), FakeService(), P)
    assert (found.value, found.trouble) == (None, "an answer without a value")


def test_where_what_runs_cannot_be_read_the_quota_stands_and_says_so() -> None:
    """The value is known, its use is not."""
    (found,) = read(FakeService(get_service_quota=valued(384)), FakeService(), P)
    assert (found.value, found.used, found.instances) == (384, None, 2)
    assert "what runs now is not known (InvalidAction" in found.trouble


def test_the_default_holds_where_the_account_has_none_of_its_own() -> None:
    """GetServiceQuota says NoSuchResource: AWS's default is asked."""

    def none(**_: Any) -> Mapping[str, Any]:
        raise refused("NoSuchResourceException")

    quotas = FakeService(get_service_quota=none, get_aws_default_service_quota=valued(0.0))
    (found,) = read(quotas, FakeService(), P)
    assert (found.value, found.instances) == (0, 0)


def test_a_quota_of_which_only_the_name_is_known_is_looked_up() -> None:
    """SageMaker's codes are published nowhere; its use is never known."""
    quotas = FakeService(
        list_service_quotas=lambda **_: {"Quotas": [{"QuotaName": SERVED.name, "QuotaCode": "L-1"}]},
        get_service_quota=valued(2.0),
    )
    (found,) = read(quotas, FakeService(), SERVED)
    assert (found.code, found.value, found.used, found.instances) == ("L-1", 2, None, 2)
    quotas = FakeService(list_service_quotas=lambda **_: {"Quotas": []})
    (found,) = read(quotas, FakeService(), SERVED)
    assert (found.value, found.trouble) == (None, "Service Quotas lists none of this name")
