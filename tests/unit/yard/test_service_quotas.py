"""Service Quotas: codes and values of the fleet file, requests decided on the yard's clock, enforcement."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.yard.errors import ServiceError
from berth.yard.fleet.fleet import ANY, QuotaKind, Quotas
from berth.yard.fleet.fleet_file import rehearsal_fleet
from berth.yard.services.service_quotas.catalogue import listed_quotas

from .bench import TYPE, Bench, small_fleet
from .ec2_bench import FLEET, Ec2Bench

P5_BLOCKS, TRN1_BLOCKS, ON_DEMAND_TRN = "L-DA6814F2", "L-2E30FD7D", "L-2C3B7624"
PLANS, P5_RESERVED = "L-867702E6", "L-9EF527CA"
NONE = f"""
[quotas]
training_plans = 1
[quotas.reserved_capacity]
"{TYPE}" = 0
[quotas.endpoint_usage]
"{TYPE}" = 0
[quotas.block_vcpus]
trn1 = 0
[quotas.on_demand_vcpus]
trn = 0
[quotas.increases]
delay = "6h"
most = {{ "*" = 1000, training_plans = 3 }}
"""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A yard whose accounts may hold nothing at first."""
    bench = Bench(tmp_path, small_fleet(NONE))
    yield bench
    bench.close()


def quotas(bench: Bench, name: str, **params: Any) -> Any:
    """Call Service Quotas."""
    return bench.call(name, service="service-quotas", **params)


def code_of(bench: Bench, label: str) -> str:
    """The code of SageMaker's quota of that name."""
    listed = quotas(bench, "ListServiceQuotas", ServiceCode="sagemaker")["Quotas"]
    return next(str(one["QuotaCode"]) for one in listed if one["QuotaName"] == label)


def value(bench: Bench, code: str, service: str = "ec2", **more: Any) -> float:
    """What the account may hold."""
    found = quotas(bench, "GetServiceQuota", ServiceCode=service, QuotaCode=code, **more)
    return float(found["Quota"]["Value"])


def ask(bench: Bench, code: str, desired: float, service: str = "ec2", **more: Any) -> Any:
    """Ask for more; the request."""
    return quotas(
        bench, "RequestServiceQuotaIncrease",
        ServiceCode=service, QuotaCode=code, DesiredValue=float(desired), **more,
    )["RequestedQuota"]  # fmt: skip


def refused(bench: Bench, name: str, **params: Any) -> str:
    """The code of the refusal."""
    service = params.pop("service", "service-quotas")
    with pytest.raises(ServiceError) as caught:
        bench.call(name, service=service, **params)
    return caught.value.code


# -- what is listed --------------------------------------------------------------------------------------
def test_codes_are_awss_where_they_are_known() -> None:
    """Every block family of the rehearsal that AWS published has AWS's code; the yard's own begin YARD-."""
    listed = listed_quotas(rehearsal_fleet())
    of = {(one.kind, one.key): code for (_, code), one in listed.items()}
    assert of[QuotaKind.BLOCK_VCPUS, "p5"] == P5_BLOCKS
    assert of[QuotaKind.ON_DEMAND_VCPUS, "p"] == "L-417A185B"
    assert of[QuotaKind.SPOT_VCPUS, "p"] == "L-7212CCBC"
    assert of[QuotaKind.TRAINING_PLANS, ""] == PLANS
    assert of[QuotaKind.RESERVED_CAPACITY, "ml.p5.48xlarge"] == P5_RESERVED
    assert of[QuotaKind.CLUSTER_USAGE, "ml.p5.48xlarge"] == "L-8762A75F"
    assert of[QuotaKind.ENDPOINT_USAGE, TYPE].startswith("YARD-")
    assert all(code.startswith(("L-", "YARD-")) for _, code in listed)
    assert len(of) == len(listed)


def test_a_quota_tells_its_value_and_whose_it_is(bench: Bench) -> None:
    """The account's carries the account in its ARN, the default one does not."""
    asked = {"ServiceCode": "ec2", "QuotaCode": ON_DEMAND_TRN}
    found = quotas(bench, "GetServiceQuota", **asked)["Quota"]
    assert (found["QuotaName"], found["Value"]) == ("Running On-Demand Trn instances", 0.0)
    owner = bench.account.account_id
    assert found["QuotaArn"] == f"arn:aws:servicequotas:us-east-1:{owner}:ec2/{ON_DEMAND_TRN}"
    default = quotas(bench, "GetAWSDefaultServiceQuota", **asked)["Quota"]
    assert default["QuotaArn"] == f"arn:aws:servicequotas:us-east-1::ec2/{ON_DEMAND_TRN}"


@pytest.mark.parametrize("name", ["ListServiceQuotas", "ListAWSDefaultServiceQuotas"])
def test_pages_of_quotas_are_the_whole_in_order(bench: Bench, name: str) -> None:
    """Whatever the size of a page; a token of another list, or made up, is refused."""
    whole = quotas(bench, name, ServiceCode="sagemaker")["Quotas"]
    paged: list[Any] = []
    more: dict[str, Any] = {}
    while True:
        page = quotas(bench, name, ServiceCode="sagemaker", MaxResults=2, **more)
        paged += page["Quotas"]
        if "NextToken" not in page:
            break
        more = {"NextToken": page["NextToken"]}
    assert paged == whole
    assert [one["QuotaCode"] for one in whole] == sorted(one["QuotaCode"] for one in whole)
    for token in ("abcd", more["NextToken"]):
        assert refused(bench, name, ServiceCode="ec2", NextToken=token) == "InvalidPaginationTokenException"


def test_services_and_filters(bench: Bench) -> None:
    """Two services; a quota by its code; none is applied to single resources."""
    services = quotas(bench, "ListServices")["Services"]
    assert [one["ServiceCode"] for one in services] == ["ec2", "sagemaker"]
    (one,) = quotas(bench, "ListServiceQuotas", ServiceCode="ec2", QuotaCode=P5_BLOCKS)["Quotas"]
    assert one["QuotaName"] == "Capacity Blocks of P5 instances"
    assert (
        quotas(bench, "ListServiceQuotas", ServiceCode="ec2", QuotaAppliedAtLevel="RESOURCE")["Quotas"] == []
    )


# -- asking for more -------------------------------------------------------------------------------------
def test_a_request_is_pending_until_its_time_and_then_holds(bench: Bench) -> None:
    """Granted six hours later on the yard's clock, in its account and Region alone; the default stays."""
    request = ask(bench, TRN1_BLOCKS, 512)
    assert (request["Status"], request["DesiredValue"]) == ("PENDING", 512.0)
    bench.advance(hours=5, minutes=59)
    assert value(bench, TRN1_BLOCKS) == 0
    bench.advance(minutes=1)
    seen = quotas(bench, "GetRequestedServiceQuotaChange", RequestId=request["Id"])["RequestedQuota"]
    assert (seen["Status"], seen["LastUpdated"] - seen["Created"]) == ("APPROVED", timedelta(hours=6))
    assert value(bench, TRN1_BLOCKS) == 512
    assert value(bench, TRN1_BLOCKS, region="us-west-2") == 0
    assert value(bench, TRN1_BLOCKS, account=bench.add_account("other")) == 0
    default = quotas(bench, "GetAWSDefaultServiceQuota", ServiceCode="ec2", QuotaCode=TRN1_BLOCKS)
    assert default["Quota"]["Value"] == 0


def test_more_than_the_fleet_file_grants_is_denied(bench: Bench) -> None:
    """The value stays; a smaller wish may follow."""
    ask(bench, PLANS, 4, service="sagemaker")
    bench.advance(hours=6)
    ask(bench, PLANS, 3, service="sagemaker")
    bench.advance(hours=6)
    history = quotas(bench, "ListRequestedServiceQuotaChangeHistory")["RequestedQuotas"]
    assert [(one["DesiredValue"], one["Status"]) for one in history] == [(3.0, "APPROVED"), (4.0, "DENIED")]
    assert value(bench, PLANS, service="sagemaker") == 3


def test_history_is_filtered_and_paged(bench: Bench) -> None:
    """By service, by status, by quota; newest first, a page at a time; nobody else's."""
    for code in (TRN1_BLOCKS, ON_DEMAND_TRN):
        ask(bench, code, 512)
    ask(bench, PLANS, 2, service="sagemaker")
    name = "ListRequestedServiceQuotaChangeHistory"
    whole = quotas(bench, name)["RequestedQuotas"]
    assert [one["QuotaCode"] for one in whole] == [PLANS, ON_DEMAND_TRN, TRN1_BLOCKS]
    first = quotas(bench, name, MaxResults=2)
    rest = quotas(bench, name, MaxResults=2, NextToken=first["NextToken"])
    assert first["RequestedQuotas"] + rest["RequestedQuotas"] == whole
    assert len(quotas(bench, name, ServiceCode="ec2")["RequestedQuotas"]) == 2
    assert quotas(bench, name, Status="APPROVED")["RequestedQuotas"] == []
    (one,) = quotas(bench, f"{name}ByQuota", ServiceCode="ec2", QuotaCode=ON_DEMAND_TRN)["RequestedQuotas"]
    assert one == whole[1]
    other = bench.add_account("other")
    assert quotas(bench, name, account=other)["RequestedQuotas"] == []
    found = refused(bench, "GetRequestedServiceQuotaChange", RequestId=one["Id"], account=other)
    assert found == "NoSuchResourceException"


def test_what_cannot_be_asked_is_refused(bench: Bench) -> None:
    """Unknown service or quota, a context, no more than there is, a fraction, and a second open request."""
    name, known = "RequestServiceQuotaIncrease", {"ServiceCode": "ec2", "QuotaCode": TRN1_BLOCKS}
    for wrong in ({"ServiceCode": "s3"}, {"QuotaCode": "L-00000000"}, {"QuotaCode": PLANS}):
        assert refused(bench, name, **{**known, **wrong}, DesiredValue=5.0) == "NoSuchResourceException"
    for wrong_value in (
        {"DesiredValue": 0.0},
        {"DesiredValue": 1.5},
        {"DesiredValue": 5.0, "ContextId": "*"},
    ):
        assert refused(bench, name, **known, **wrong_value) == "IllegalArgumentException"
    ask(bench, TRN1_BLOCKS, 5)
    assert refused(bench, name, **known, DesiredValue=6.0) == "ResourceAlreadyExistsException"
    ask(bench, TRN1_BLOCKS, 5, region="us-west-2")


def test_a_lagging_read_sees_neither_request_nor_grant(bench: Bench) -> None:
    """Both appear late when told, and what is enforced does not lag."""
    late = timedelta(minutes=5)
    request = ask(bench, TRN1_BLOCKS, 512)
    asked = {"RequestId": request["Id"], "lag": late}
    assert refused(bench, "GetRequestedServiceQuotaChange", **asked) == "NoSuchResourceException"
    bench.advance(hours=6)
    assert value(bench, TRN1_BLOCKS, lag=late) == 0
    seen = quotas(bench, "GetRequestedServiceQuotaChange", **asked)["RequestedQuota"]
    assert seen["Status"] == "PENDING"


def test_grants_and_open_requests_outlive_a_stop(tmp_path: Path) -> None:
    """They are rows: a yard opened again on its folder decides what was open."""
    bench = Bench(tmp_path, small_fleet(NONE))
    ask(bench, TRN1_BLOCKS, 512)
    bench.close()
    again = Bench(tmp_path, small_fleet(NONE))
    again.advance(hours=6)
    assert value(again, TRN1_BLOCKS) == 512
    again.close()


# -- what is enforced ------------------------------------------------------------------------------------
def test_a_raised_quota_opens_searches_and_purchases_of_plans(bench: Bench) -> None:
    """Reserved capacity and the number of plans, each refused before and not after."""
    search = {"InstanceType": TYPE, "InstanceCount": 1, "DurationHours": 24, "TargetResources": ["endpoint"]}
    name = "SearchTrainingPlanOfferings"
    assert refused(bench, name, service="sagemaker", **search) == "ResourceLimitExceeded"
    reserved = f"Number of {TYPE} instances in reserved capacity across training plans per Region"
    ask(bench, code_of(bench, reserved), 3, service="sagemaker")
    bench.advance(hours=6)
    bench.buy("first")
    offer = bench.offer()["TrainingPlanOfferingId"]
    second = {"TrainingPlanName": "second", "TrainingPlanOfferingId": offer}
    assert refused(bench, "CreateTrainingPlan", service="sagemaker", **second) == "ResourceLimitExceeded"
    ask(bench, PLANS, 2, service="sagemaker")
    bench.advance(hours=6)
    bench.buy("second")


def test_a_raised_quota_opens_endpoints(bench: Bench) -> None:
    """`ml.X for endpoint usage`."""
    ask(bench, code_of(bench, f"Number of {TYPE} instances in reserved capacity across training plans per"
                              " Region"), 3, service="sagemaker")  # fmt: skip
    bench.advance(hours=6)
    bench.config("e", bench.active_plan("plan"))
    asked = {"EndpointName": "e", "EndpointConfigName": "e"}
    assert refused(bench, "CreateEndpoint", service="sagemaker", **asked) == "ResourceLimitExceeded"
    ask(bench, code_of(bench, f"{TYPE} for endpoint usage"), 1, service="sagemaker")
    bench.advance(hours=6)
    bench.create_endpoint("e", "e")


def test_a_raised_quota_opens_searches_and_purchases_of_blocks(bench: Bench) -> None:
    """At 0 the search fails; at one instance's vCPUs one block is sold and no second beside it."""
    search = {"InstanceType": "trn1.32xlarge", "InstanceCount": 1, "CapacityDurationHours": 24}
    name = "DescribeCapacityBlockOfferings"
    assert refused(bench, name, service="ec2", **search) == "CapacityBlockDescribeLimitExceeded"
    ask(bench, TRN1_BLOCKS, 128)
    bench.advance(hours=6)

    def buy() -> Any:
        offer = bench.call(name, service="ec2", **search)["CapacityBlockOfferings"][0]
        asked = {
            "CapacityBlockOfferingId": offer["CapacityBlockOfferingId"],
            "InstancePlatform": "Linux/UNIX",
        }
        return bench.call("PurchaseCapacityBlock", service="ec2", **asked)

    buy()
    with pytest.raises(ServiceError) as caught:
        buy()
    assert caught.value.code == "VcpuLimitExceeded"
    ask(bench, TRN1_BLOCKS, 256)
    bench.advance(hours=6)
    buy()


def test_a_raised_quota_opens_launches_on_demand(tmp_path: Path) -> None:
    """At 0 vCPUs nothing is launched; at one instance's vCPUs one is, and no second."""
    bench = Ec2Bench(tmp_path, FLEET.read_text("utf-8").replace("p = 768", "p = 0"))
    assert bench.no_launch().code == "VcpuLimitExceeded"
    ask(bench, "L-417A185B", 192)
    bench.advance(days=1)
    assert len(bench.launch(None)) == 1
    assert bench.no_launch().code == "VcpuLimitExceeded"
    bench.close()


# -- the pure part ---------------------------------------------------------------------------------------
GRANTS = st.lists(
    st.tuples(st.sampled_from(QuotaKind), st.sampled_from(["a", "b"]), st.integers(0, 20)), max_size=8
)


@settings(deadline=None, max_examples=80)
@given(GRANTS)
def test_grants_only_ever_raise_and_only_what_they_name(granted: list[tuple[QuotaKind, str, int]]) -> None:
    """Each limit becomes the highest of the file's value and its grants; everything else stays."""
    base = Quotas(training_plans=9, reserved_capacity={ANY: 9, "a": 3})
    raised = base.raised(granted)
    for kind in QuotaKind:
        for name in ("a", "b", "c"):
            mine = [
                amount
                for asked, whose, amount in granted
                if asked is kind and (whose == name or kind is QuotaKind.TRAINING_PLANS)
            ]
            assert raised.of(kind, name) >= base.of(kind, name)
            if not mine:
                assert raised.of(kind, name) == base.of(kind, name)
            elif len(mine) == 1:
                assert raised.of(kind, name) == max(base.of(kind, name), mine[0])
