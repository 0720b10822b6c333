"""Error bodies, as botocore reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from berth.yard.errors import ServiceError
from berth.yard.wire.service import SERVICES, load

from .botocore_side import answer_of

OPERATION = {
    "ec2": "DescribeRegions",
    "sagemaker": "DescribeTrainingPlan",
    "sts": "GetCallerIdentity",
    "sagemaker-runtime": "InvokeEndpoint",
    "pricing": "GetProducts",
    "service-quotas": "GetServiceQuota",
    "iam": "SimulatePrincipalPolicy",
}
TEXT = 'No <room> & "board"\r\nfor ünicode \U0001f600'


def _read(service: str, error: ServiceError) -> dict[str, Any]:
    return answer_of(service, OPERATION[service], load(service).error(error, "an-id"))


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    ("code", "status"), [("SomeCode.Of.Ours", 400), ("InternalError", 500), ("Busy", 503)]
)
def test_botocore_reads_code_message_and_request_id(service: str, code: str, status: int) -> None:
    """Whatever the protocol, an error arrives with its code, its message, its status and the request's id."""
    response = load(service).error(ServiceError(code, TEXT, status), "an-id")
    read = _read(service, ServiceError(code, TEXT, status))
    assert read["Error"]["Code"] == code
    assert read["Error"]["Message"] == TEXT
    assert read["ResponseMetadata"]["RequestId"] == "an-id"
    assert response.status == status


def test_ec2_errors_have_the_documented_envelope() -> None:
    """EC2: Response, Errors, Error, and RequestID with an upper-case D."""
    body = load("ec2").error(ServiceError("InvalidAction", "no"), "an-id").body.decode()
    assert body.endswith(
        "<Response><Errors><Error><Code>InvalidAction</Code><Message>no</Message></Error></Errors>"
        "<RequestID>an-id</RequestID></Response>"
    )


def test_sts_errors_tell_whose_fault_it_is() -> None:
    """STS: Sender below 500, Receiver from there on."""
    wire = load("sts")
    assert b"<Type>Sender</Type>" in wire.error(ServiceError("X", "x", 403), "an-id").body
    assert b"<Type>Receiver</Type>" in wire.error(ServiceError("X", "x", 500), "an-id").body


def test_json_errors_carry_their_type_and_id() -> None:
    """SageMaker: `__type` in the body, because its clients read no header; the id in a header."""
    response = load("sagemaker").error(ServiceError("ValidationException", "no"), "an-id")
    assert json.loads(response.body) == {"__type": "ValidationException", "message": "no"}
    assert response.headers["x-amzn-RequestId"] == "an-id"
    assert response.headers["content-type"] == "application/x-amz-json-1.1"


def test_a_modelled_json_error_names_its_message_as_its_model_does() -> None:
    """SageMaker's ResourceNotFound has a member `Message`, not `message`."""
    response = load("sagemaker").error(ServiceError("ResourceNotFound", "no plan"), "an-id")
    assert json.loads(response.body) == {"__type": "ResourceNotFound", "Message": "no plan"}


def test_a_runtime_error_has_header_body_and_modelled_status() -> None:
    """ModelError: 424 by the model, the code in header and body, its further members for the client."""
    error = ServiceError(
        "ModelError",
        "Received server error (500) from primary",
        members={"OriginalStatusCode": 500, "OriginalMessage": "boom", "LogStreamArn": "arn:x"},
    )
    response = load("sagemaker-runtime").error(error, "an-id")
    assert response.status == 424
    assert response.headers["x-amzn-ErrorType"] == "ModelError"
    assert json.loads(response.body)["__type"] == "ModelError"
    read = _read("sagemaker-runtime", error)
    assert read["Error"] == {"Code": "ModelError", "Message": error.message}


def test_a_status_that_was_asked_for_wins_over_the_modelled_one() -> None:
    """Only the default status, 400, gives way to the model's."""
    assert load("sagemaker-runtime").error(ServiceError("ModelError", "x", 500), "an-id").status == 500


@pytest.mark.parametrize(
    ("service", "code"),
    [("ec2", "InvalidAction"), ("sts", "InvalidAction"), ("sagemaker", "UnknownOperationException"),
     ("sagemaker-runtime", "UnknownOperationException")],
)  # fmt: skip
def test_an_operation_that_is_not_served_is_one_that_does_not_exist(service: str, code: str) -> None:
    """What a yard does not serve is refused in AWS's words, never answered with an empty success."""
    error = load(service).no_such_operation("DescribeEverything")
    assert error.code == code
    assert 400 <= error.status < 500
