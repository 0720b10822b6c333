"""Which service a request means, and what a service's answer may hold."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Any

import pytest

from berth.yard.wire.http import Request
from berth.yard.wire.json_out import NotOfShape
from berth.yard.wire.models import read_model
from berth.yard.wire.service import SERVICES, guess_service, load, service_of

RUNTIME_PATH = "/endpoints/e/invocations"


def _request(path: str = "/", query: str = "", body: bytes = b"", **headers: str) -> Request:
    return Request(
        "POST", path, query, {name.replace("_", "-"): text for name, text in headers.items()}, body
    )


@pytest.mark.parametrize(
    ("request_", "service"),
    [
        (_request(x_amz_target="SageMaker.ListModels"), "sagemaker"),
        (_request(path=RUNTIME_PATH), "sagemaker-runtime"),
        (_request(body=b"Action=DescribeRegions&Version=2016-11-15"), "ec2"),
        (_request(query="Version=2011-06-15&Action=GetCallerIdentity"), "sts"),
        (_request(body=b"Version=2010-01-01"), None),
        (_request(body=b"\xff\xfe"), None),
        (_request(), None),
    ],
)
def test_an_unsigned_request_is_answered_in_its_own_language(request_: Request, service: str | None) -> None:
    """Target, path and version tell; nothing is guessed beyond them."""
    assert guess_service(request_) == service


def test_the_path_decides_between_the_two_services_that_sign_alike() -> None:
    """SageMaker and its runtime have one signing name."""
    assert service_of("sagemaker", _request()) == "sagemaker"
    assert service_of("sagemaker", _request(path=RUNTIME_PATH)) == "sagemaker-runtime"
    assert service_of("ec2", _request()) == "ec2"
    assert service_of("sts", _request(path=RUNTIME_PATH)) == "sts"
    assert service_of("s3", _request()) is None
    assert service_of("sagemaker-runtime", _request()) is None


def test_a_service_is_loaded_once_and_an_unknown_one_not_at_all() -> None:
    """Two calls give one wire; what is not served is a LookupError that lists what is."""
    assert load("ec2") is load("ec2")
    with pytest.raises(LookupError, match="sagemaker-runtime"):
        load("s3")
    with pytest.raises(LookupError, match="no-such-service"):
        read_model("no-such-service")


@pytest.mark.parametrize("service", SERVICES)
def test_the_models_use_nothing_that_is_not_compiled(service: str) -> None:
    """A newer model with a trait that changes bytes, and that the compilers lack, is noticed here."""
    assert load(service).model.unsupported() == []


def test_loading_a_wire_does_not_load_botocore() -> None:
    """Start-up reads the JSON models alone."""
    program = (
        "import sys; from berth.yard.wire.service import SERVICES, load; [load(name) for name in SERVICES];"
        "sys.exit('botocore' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=30).returncode == 0


class Colour(StrEnum):
    ACTIVE = "Active"


class OldColour(str, Enum):  # noqa: UP042 - whose str() is not its value
    ACTIVE = "Active"


@pytest.mark.parametrize("status", [Colour.ACTIVE, OldColour.ACTIVE, "No-Such-Status"])
def test_enums_and_values_unknown_to_the_model_may_be_answered(status: Any) -> None:
    """On output any text passes: AWS's enums grow before its models do."""
    response = load("sagemaker").serialise("DescribeTrainingPlan", {"Status": status}, "an-id")
    expected = status.value if isinstance(status, Enum) else status
    assert response.body == f'{{"Status":"{expected}"}}'.encode()
    state = {"CapacityReservations": [{"State": status}]}
    body = load("ec2").serialise("DescribeCapacityReservations", state, "an-id").body
    assert f"<state>{expected}</state>".encode() in body


@pytest.mark.parametrize(
    ("service", "operation", "result"),
    [
        ("sagemaker", "DescribeTrainingPlan", {"NoSuchMember": 1}),
        ("sagemaker", "DescribeTrainingPlan", {"Status": 1}),
        ("sagemaker", "DescribeTrainingPlan", {"StartTime": "2026-12-01"}),
        ("sagemaker", "DescribeTrainingPlan", {"TotalInstanceCount": True}),
        ("sagemaker", "DescribeTrainingPlan", {"TotalInstanceCount": 1.0}),
        ("sagemaker", "DescribeTrainingPlan", {"TargetResources": "endpoint"}),
        ("sagemaker", "DescribeTrainingPlan", []),
        ("ec2", "DescribeCapacityReservations", {"NoSuchMember": 1}),
        ("ec2", "DescribeCapacityReservations", {"CapacityReservations": {"State": "x"}}),
        ("ec2", "DescribeCapacityReservations", {"CapacityReservations": [{"State": 1}]}),
        ("ec2", "DescribeCapacityReservations", {"CapacityReservations": [{"StartDate": 1}]}),
        ("ec2", "DescribeCapacityReservations", {"CapacityReservations": [{"EbsOptimized": "true"}]}),
        ("ec2", "DescribeCapacityReservations", {"CapacityReservations": [{"TotalInstanceCount": True}]}),
        ("sts", "GetCallerIdentity", {"Account": 123456789012}),
        ("sagemaker-runtime", "InvokeEndpoint", {"Body": "text"}),
        ("sagemaker-runtime", "InvokeEndpoint", {"Body": b"", "NoSuchMember": 1}),
        ("sagemaker-runtime", "InvokeEndpoint", {"Body": b"", "ContentType": b"text"}),
    ],
)
def test_an_answer_that_the_model_does_not_allow_is_an_error_of_the_service(
    service: str, operation: str, result: Any
) -> None:
    """A misspelt member or a wrong type never reaches a client."""
    with pytest.raises(NotOfShape):
        load(service).serialise(operation, result, "an-id")


@pytest.mark.parametrize(("service", "operation", "result"), [
    ("sagemaker", "DescribeTrainingPlan", {"StartTime": datetime(2026, 12, 1)}),  # noqa: DTZ001
    ("ec2", "DescribeCapacityReservations", {"CapacityReservations": [{"StartDate": datetime(2026, 12, 1)}]}),  # noqa: DTZ001
])  # fmt: skip
def test_an_instant_without_a_zone_is_never_answered(service: str, operation: str, result: Any) -> None:
    """Which instant it means is unknown, so it is refused."""
    with pytest.raises(ValueError, match="zone"):
        load(service).serialise(operation, result, "an-id")


def test_timestamps_are_spelt_as_each_service_does() -> None:
    """EC2 with milliseconds, STS without, SageMaker in seconds since 1970."""
    instant = datetime(2026, 12, 1, 11, 30, 0, 250_999, tzinfo=UTC)
    body = load("sagemaker").serialise("DescribeTrainingPlan", {"StartTime": instant}, "an-id").body
    assert body == b'{"StartTime":1796124600.25}'
    ec2 = {"CapacityReservations": [{"StartDate": instant}]}
    body = load("ec2").serialise("DescribeCapacityReservations", ec2, "an-id").body
    assert b"<startDate>2026-12-01T11:30:00.250Z</startDate>" in body
    body = load("sts").serialise("GetSessionToken", {"Credentials": {"Expiration": instant}}, "an-id").body
    assert b"<Expiration>2026-12-01T11:30:00Z</Expiration>" in body


def test_a_model_cannot_write_headers_of_its_own() -> None:
    """Line ends in what a container answers do not reach the header lines."""
    result = {"Body": b"", "CustomAttributes": "a\r\nx-evil: 1"}
    headers = load("sagemaker-runtime").serialise("InvokeEndpoint", result, "an-id").headers
    assert headers["x-amzn-sagemaker-custom-attributes"] == "a  x-evil: 1"


def test_an_answers_own_content_type_is_the_only_one() -> None:
    """What the container says it sent is what the client is told."""
    result = {"Body": b"1,2", "ContentType": "text/csv", "InvokedProductionVariant": "v"}
    response = load("sagemaker-runtime").serialise("InvokeEndpoint", result, "an-id")
    assert response.headers == {
        "content-type": "text/csv",
        "x-amzn-RequestId": "an-id",
        "x-amzn-invoked-production-variant": "v",
    }
    assert response.body == b"1,2"


def test_an_ec2_answer_looks_as_documented() -> None:
    """Namespace, requestId in lower camel case, sets of items, empty sets kept."""
    result = {"CapacityBlockOfferings": [], "NextToken": None}
    response = load("ec2").serialise("DescribeCapacityBlockOfferings", result, "an-id")
    assert response.headers["content-type"] == "text/xml;charset=UTF-8"
    assert response.body.decode() == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<DescribeCapacityBlockOfferingsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
        "<requestId>an-id</requestId><capacityBlockOfferingSet/></DescribeCapacityBlockOfferingsResponse>"
    )
