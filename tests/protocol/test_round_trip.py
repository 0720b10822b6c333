"""Every operation of every served model: botocore's request read by us, our answer read by botocore."""

from __future__ import annotations

from typing import Any

import pytest

from berth.yard.wire.service import SERVICES, load

from .botocore_side import answer_of, operation_model, request_of
from .samples import Samples

OPERATIONS_AT_LEAST = {
    "ec2": 700,
    "sagemaker": 350,
    "sts": 8,
    "sagemaker-runtime": 3,
    "pricing": 5,
    "service-quotas": 20,
    "iam": 150,
}


def _sent(service: str, operation: str) -> dict[str, Any]:
    shape = operation_model(service, operation).input_shape
    # Forms cannot tell an empty list or structure from an absent one; JSON can.
    samples = Samples(blank_ok=service in ("sagemaker", "pricing", "service-quotas"))
    return (samples.value(shape) or {}) if shape is not None else {}


@pytest.mark.parametrize("service", SERVICES)
def test_every_request_that_botocore_makes_is_read_back_equal(service: str) -> None:
    """With every member filled in, what `parse` gives is what was handed to botocore."""
    wire = load(service)
    different = {}
    for operation in sorted(wire.operations):
        params = _sent(service, operation)
        request = request_of(service, operation, params)
        assert wire.operation_name(request) == operation
        read = wire.parse(operation, request)
        if read != params:
            different[operation] = (params, read)
    assert different == {}
    assert len(wire.operations) >= OPERATIONS_AT_LEAST[service]


@pytest.mark.parametrize("service", SERVICES)
def test_every_answer_is_read_by_botocore_as_it_was_given(service: str) -> None:
    """With every member filled in, what botocore reads is what was handed to `serialise`."""
    wire = load(service)
    different = {}
    for operation in sorted(wire.operations):
        shape = operation_model(service, operation).output_shape
        result = (Samples(blank_ok=True).value(shape) or {}) if shape is not None else {}
        if operation == "InvokeEndpointWithResponseStream":
            result["Body"] = [{"PayloadPart": {"Bytes": b"one"}}, {"PayloadPart": {"Bytes": b""}}]
        read = answer_of(service, operation, wire.serialise(operation, result, "an-id"))
        assert read.pop("ResponseMetadata", {}).get("RequestId") == "an-id"
        if read != result:
            different[operation] = (result, read)
    assert different == {}


@pytest.mark.parametrize("service", ["ec2", "sagemaker", "sts"])
def test_every_operation_answers_with_nothing_filled_in(service: str) -> None:
    """An empty result is a valid answer on the wire, and empty lists arrive as empty lists."""
    wire = load(service)
    for operation in sorted(wire.operations):
        shape = operation_model(service, operation).output_shape
        lists = (
            [name for name, member in shape.members.items() if member.type_name == "list"] if shape else []
        )
        result: dict[str, Any] = {name: [] for name in lists}
        read = answer_of(service, operation, wire.serialise(operation, result, "an-id"))
        read.pop("ResponseMetadata")
        assert read == result, operation
        absent = wire.serialise(operation, dict.fromkeys(shape.members if shape else []), "an-id")
        assert set(answer_of(service, operation, absent)) == {"ResponseMetadata"}, operation
