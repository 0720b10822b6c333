"""Service Quotas with boto3: paginators, modelled errors, and a search that opens when a wish is granted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from berth.yard.testing.process import YardProcess

from .conftest import SMALL, refused

BLOCKS = "L-2E30FD7D"
CLOSED = """
[quotas.block_vcpus]
trn1 = 0
[quotas.increases]
delay = "6h"
most = { block_vcpus = 512 }
"""


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardProcess]:
    """A yard whose accounts may reserve no Trn1 in Capacity Blocks at first, as on AWS."""
    folder = tmp_path_factory.mktemp("quotas")
    fleet: Path = folder / "fleet.toml"
    fleet.write_text(SMALL.read_text("utf-8") + CLOSED, "utf-8")
    with YardProcess(folder / "yard", fleet=fleet) as yard:
        yield yard


def test_quotas_are_listed_by_boto3(closed: YardProcess) -> None:
    """Small pages through botocore's paginators give what one page gives; both services are named."""
    client = closed.clients("service-quotas")
    services = [one["ServiceCode"] for one in client.list_services()["Services"]]
    assert services == ["ec2", "sagemaker"]
    for name in ("list_service_quotas", "list_aws_default_service_quotas"):
        pages = client.get_paginator(name).paginate(ServiceCode="sagemaker", PaginationConfig={"PageSize": 2})
        paged = [one["QuotaCode"] for page in pages for one in page["Quotas"]]
        whole = [one["QuotaCode"] for one in getattr(client, name)(ServiceCode="sagemaker")["Quotas"]]
        assert paged == whole
        assert "L-867702E6" in whole
    default = client.get_aws_default_service_quota(ServiceCode="ec2", QuotaCode=BLOCKS)["Quota"]
    assert (default["QuotaName"], default["Value"]) == ("Capacity Blocks of Trn1 instances", 0.0)


def test_a_granted_wish_opens_the_search(closed: YardProcess) -> None:
    """Refused by EC2, asked for, decided after the delay, sold; one beyond the most is denied."""
    client, ec2 = closed.clients("service-quotas"), closed.clients.ec2
    asked: dict[str, Any] = {
        "InstanceType": "trn1.32xlarge", "InstanceCount": 1, "CapacityDurationHours": 24,
    }  # fmt: skip
    search = ec2.describe_capacity_block_offerings
    assert refused(search, **asked).code == "CapacityBlockDescribeLimitExceeded"
    quota = {"ServiceCode": "ec2", "QuotaCode": BLOCKS}
    request = client.request_service_quota_increase(**quota, DesiredValue=512)["RequestedQuota"]
    assert request["Status"] == "PENDING"
    closed.clock.advance(hours=6)
    seen = client.get_requested_service_quota_change(RequestId=request["Id"])["RequestedQuota"]
    assert seen["Status"] == "APPROVED"
    assert client.get_service_quota(**quota)["Quota"]["Value"] == 512
    offer = search(**asked)["CapacityBlockOfferings"][0]["CapacityBlockOfferingId"]
    ec2.purchase_capacity_block(CapacityBlockOfferingId=offer, InstancePlatform="Linux/UNIX")
    client.request_service_quota_increase(**quota, DesiredValue=513)
    closed.clock.advance(hours=6)
    pages = client.get_paginator("list_requested_service_quota_change_history").paginate(
        ServiceCode="ec2", PaginationConfig={"PageSize": 1}
    )
    told = [(one["DesiredValue"], one["Status"]) for page in pages for one in page["RequestedQuotas"]]
    assert told == [(513.0, "DENIED"), (512.0, "APPROVED")]
    assert client.get_service_quota(**quota)["Quota"]["Value"] == 512


def test_errors_are_those_of_the_model(closed: YardProcess) -> None:
    """boto3 knows each refusal by its class."""
    client = closed.clients("service-quotas")
    known = {"ServiceCode": "ec2", "QuotaCode": "L-2C3B7624"}
    with pytest.raises(client.exceptions.NoSuchResourceException):
        client.get_service_quota(ServiceCode="ec2", QuotaCode="L-00000000")
    with pytest.raises(client.exceptions.IllegalArgumentException):
        client.request_service_quota_increase(**known, DesiredValue=1)
    with pytest.raises(client.exceptions.InvalidPaginationTokenException):
        client.list_service_quotas(ServiceCode="ec2", NextToken="bm90IG91cnM=")
    client.request_service_quota_increase(**known, DesiredValue=2_000_000)
    with pytest.raises(client.exceptions.ResourceAlreadyExistsException):
        client.request_service_quota_increase(**known, DesiredValue=3_000_000)


def test_a_value_that_is_no_number_is_refused(closed: YardProcess) -> None:
    """NaN and infinities never reach the books."""
    client = closed.clients("service-quotas")
    for value in (float("nan"), float("inf")):
        error = refused(
            client.request_service_quota_increase,
            ServiceCode="ec2", QuotaCode="L-2C3B7624", DesiredValue=value,
        )  # fmt: skip
        assert 400 <= error.status < 500
