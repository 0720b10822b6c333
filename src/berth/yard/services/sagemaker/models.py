"""Models: CreateModel, DescribeModel, DeleteModel, ListModels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.services.operation import Call, reads, writes
from berth.yard.services.sagemaker.kept_requests import MODELS
from berth.yard.store.transaction import Reading, Transaction


def _check_container(params: Mapping[str, Any]) -> None:
    """A yard runs one container a model: pipelines are refused, and a container without an image."""
    containers = params.get("Containers", [])
    if ("PrimaryContainer" in params) == bool(containers):
        raise ServiceError(
            "ValidationException", "Exactly one of PrimaryContainer and Containers must be specified."
        )
    if len(containers) > 1:
        raise ServiceError("ValidationException", "This yard serves models of one container, not pipelines.")
    container = containers[0] if containers else params["PrimaryContainer"]
    if not container.get("Image"):
        raise ServiceError(
            "ValidationException", "A container must have an Image; this yard has no packages."
        )


@writes("sagemaker", "CreateModel")
def create_model(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Keeps the request as it came."""
    _check_container(call.params)
    MODELS.refuse_taken(call, tx, call.params["ModelName"])
    return MODELS.keep(call, tx, call.params)


@reads("sagemaker", "DescribeModel")
def describe_model(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """What was asked for at creation, with ARN and time."""
    return MODELS.describe(call, rows)


@writes("sagemaker", "DeleteModel")
def delete_model(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """A model may be deleted while an endpoint runs it: the endpoint has its own copy."""
    return MODELS.delete(call, tx)


@reads("sagemaker", "ListModels")
def list_models(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Newest first unless asked otherwise."""
    return MODELS.listing(call, rows)
