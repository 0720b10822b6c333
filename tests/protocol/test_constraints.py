"""The models' constraints on input, for every operation, and the words of their refusal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from berth.yard.errors import ServiceError
from berth.yard.wire.service import SERVICES, load

from .botocore_side import operation_model, request_of
from .samples import Samples

CODES = {
    "ec2": {"MissingParameter", "InvalidParameterValue"},
    "sagemaker": {"ValidationException"},
    "sts": {"ValidationError"},
    "sagemaker-runtime": {"ValidationError"},
    "pricing": {"ValidationException"},
    "service-quotas": {"ValidationException"},
    "iam": {"ValidationError"},
}
LEAST_TRIED = {
    "ec2": 200,
    "sagemaker": 1300,
    "sts": 20,
    "sagemaker-runtime": 15,
    "pricing": 10,
    "service-quotas": 30,
    "iam": 150,
}


def _spoilt(shape: Any) -> Iterator[Any]:
    """Values that the shape's own constraints refuse."""
    limits = shape.metadata
    kind = shape.type_name
    if limits.get("enum"):
        yield "no-such-value"
    elif kind == "string" and "max" in limits:
        yield "a" * (limits["max"] + 1)
    elif kind in {"integer", "long", "float", "double"}:
        yield from (limits[bound] + step for bound, step in (("min", -1), ("max", 1)) if bound in limits)
    elif kind == "blob" and "max" in limits:
        yield b"a" * (limits["max"] + 1)


def _refusal(service: str, operation: str, params: dict[str, Any]) -> ServiceError | None:
    try:
        load(service).parse(operation, request_of(service, operation, params))
    except ServiceError as error:
        return error
    return None


def _base(service: str, operation: str) -> dict[str, Any]:
    """The required members alone."""
    shape = operation_model(service, operation).input_shape
    whole = Samples(blank_ok=service in ("sagemaker", "pricing", "service-quotas")).value(shape) or {}
    return {name: whole[name] for name in shape.required_members if name in whole}


@pytest.mark.parametrize("service", SERVICES)
def test_every_member_is_held_to_its_range_length_and_enum(service: str) -> None:
    """One value beyond a bound, in any operation, is refused with the service's code."""
    accepted, wrong_code, tried = [], [], 0
    for operation in sorted(load(service).operations):
        shape = operation_model(service, operation).input_shape
        if shape is None:
            continue
        base = _base(service, operation)
        for name, member in shape.members.items():
            for value in _spoilt(member):
                tried += 1
                error = _refusal(service, operation, {**base, name: value})
                if error is None:
                    accepted.append((operation, name, str(value)[:40]))
                elif error.code not in CODES[service] and error.status != 413:
                    wrong_code.append((operation, name, error))
    assert accepted == []
    assert wrong_code == []
    assert tried > LEAST_TRIED[service]


@pytest.mark.parametrize("service", SERVICES)
def test_every_required_member_is_missed(service: str) -> None:
    """Without any one of its required members no operation's request is accepted."""
    accepted = []
    for operation in sorted(load(service).operations):
        shape = operation_model(service, operation).input_shape
        if shape is None:
            continue
        base = _base(service, operation)
        for name in shape.required_members:
            # Without its label a path is another operation's; no body and an empty blob are the same bytes.
            if shape.members[name].serialization.get("location") == "uri" or name == shape.serialization.get(
                "payload"
            ):
                continue
            without = {other: value for other, value in base.items() if other != name}
            error = _refusal(service, operation, without)
            if error is None or error.code not in CODES[service]:
                accepted.append((operation, name, error))
    assert accepted == []


def _plan(**members: Any) -> ServiceError | None:
    params = {"TrainingPlanName": "plan", "TrainingPlanOfferingId": "tpo-1", **members}
    return _refusal("sagemaker", "CreateTrainingPlan", params)


def test_sagemaker_words_of_a_pattern() -> None:
    """As seen in public reports: count, value, where, which constraint."""
    error = _refusal(
        "sagemaker",
        "CreateEndpointConfig",
        {
            "EndpointConfigName": "config",
            "ProductionVariants": [
                {"VariantName": "a", "ModelName": "m", "InstanceType": "ml.p5.48xlarge"},
                {"VariantName": "a", "ModelName": "NO NAME", "InstanceType": "ml.p5.48xlarge"},
            ],
        },
    )
    assert error is not None
    assert error.message == (
        "1 validation error detected: Value 'NO NAME' at 'productionVariants.2.member.modelName' failed to "
        "satisfy constraint: Member must satisfy regular expression pattern: "
        r"[a-zA-Z0-9]([\-a-zA-Z0-9]*[a-zA-Z0-9])?"
    )


def test_sagemaker_words_of_an_enum() -> None:
    """The words on which public tools key: `Member must satisfy enum value set`."""
    error = _refusal(
        "sagemaker", "SearchTrainingPlanOfferings",
        {"InstanceType": "ml.p99.large", "DurationHours": 24, "TargetResources": ["endpoint"]},
    )  # fmt: skip
    assert error is not None
    assert error.code == "ValidationException"
    assert error.message.startswith(
        "1 validation error detected: Value 'ml.p99.large' at 'instanceType' failed to satisfy constraint: "
        "Member must satisfy enum value set: [ml."
    )


def test_sagemaker_words_of_a_list_of_scalars() -> None:
    """For elements AWS names the list, once, with all constraints of its elements."""
    error = _refusal(
        "sagemaker", "SearchTrainingPlanOfferings",
        {"InstanceType": "ml.p5.48xlarge", "DurationHours": 24, "TargetResources": ["moon", "mars"]},
    )  # fmt: skip
    assert error is not None
    assert error.message.startswith(
        "1 validation error detected: Value '[moon, mars]' at 'targetResources' failed to satisfy "
        "constraint: Member must satisfy constraint: [Member must satisfy enum value set: [training-job, "
    )


def test_sagemaker_lists_all_faults_of_a_request() -> None:
    """Two faults are two findings; a missing member is null."""
    error = _refusal("sagemaker", "CreateTrainingPlan", {"TrainingPlanName": "-"})
    assert error is not None
    assert error.message.startswith("2 validation errors detected: Value '-' at 'trainingPlanName' failed")
    assert error.message.endswith(
        "; Value null at 'trainingPlanOfferingId' failed to satisfy constraint: Member must not be null"
    )


def test_a_name_that_the_model_lacks_is_ignored_by_sagemaker_and_refused_by_ec2() -> None:
    """JSON services skip unknown members; EC2 says UnknownParameter."""
    request = request_of("sagemaker", "DescribeTrainingPlan", {"TrainingPlanName": "plan"})
    body = request.body[:-1] + b', "Unheard": [1]}'
    again = type(request)(request.method, request.path, request.query, request.headers, body)
    assert load("sagemaker").parse("DescribeTrainingPlan", again) == {"TrainingPlanName": "plan"}

    request = request_of("ec2", "DescribeRegions", {})
    again = type(request)(
        request.method, request.path, request.query, request.headers, request.body + b"&Filter.1.Nme=x"
    )
    with pytest.raises(ServiceError) as caught:
        load("ec2").parse("DescribeRegions", again)
    assert caught.value.code == "UnknownParameter"
    assert caught.value.message == "The parameter Filter.1.Nme is not recognized"


@pytest.mark.parametrize(
    ("operation", "params", "code", "message"),
    [
        ("PurchaseCapacityBlock", {"InstancePlatform": "Linux/UNIX"}, "MissingParameter",
         "The request must contain the parameter CapacityBlockOfferingId"),
        ("PurchaseCapacityBlock", {"InstancePlatform": "BeOS", "CapacityBlockOfferingId": "cb-1"},
         "InvalidParameterValue", "Value (BeOS) for parameter InstancePlatform is invalid. Member must"),
        ("DescribeCapacityReservations", {"MaxResults": 1001}, "InvalidParameterValue",
         "Value (1001) for parameter MaxResults is invalid. Member must have value less than"),
    ],
)  # fmt: skip
def test_ec2_words(operation: str, params: dict[str, Any], code: str, message: str) -> None:
    """EC2 names one parameter, as it was sent."""
    error = _refusal("ec2", operation, params)
    assert error is not None
    assert error.code == code
    assert error.message.startswith(message)


def test_a_sensitive_value_is_not_repeated() -> None:
    """CustomAttributes may hold secrets, so a refusal names the place alone."""
    error = _refusal(
        "sagemaker-runtime", "InvokeEndpoint",
        {"EndpointName": "e", "Body": b"", "CustomAttributes": "secret" + "é" * 3},
    )  # fmt: skip
    assert error is not None
    assert "secret" not in error.message
    assert "'customAttributes'" in error.message


def test_a_union_takes_exactly_one_member() -> None:
    """Two members of a union at once are refused."""
    variants = [
        {"EbsVolumeConfig": {"VolumeSizeInGB": 1}, "FsxLustreConfig": {"DnsName": "d", "MountName": "m"}}
    ]
    group = {
        "InstanceGroupName": "g",
        "InstanceType": "ml.p5.48xlarge",
        "InstanceCount": 1,
        "ExecutionRole": "arn:aws:iam::123456789012:role/r",
        "InstanceStorageConfigs": variants,
    }
    error = _refusal("sagemaker", "CreateCluster", {"ClusterName": "c", "InstanceGroups": [group]})
    assert error is not None
    assert "instanceGroups.1.member.instanceStorageConfigs.1.member" in error.message
    assert "exactly one" in error.message


def test_a_good_plan_is_accepted() -> None:
    """The refusals above are not for want of anything else."""
    assert _plan() is None
