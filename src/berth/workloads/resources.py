"""Models, configurations and endpoints: one table of what differs, one way to make, find and remove each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from berth.aws.refusals import Refusal
from berth.orders.calls import asked, pages
from berth.orders.names import ORDER_TAG, is_ours
from berth.orders.order import Order
from berth.orders.seen import read_tags
from berth.orders.steps import StepKind
from berth.workloads.sites import Site


@dataclass(frozen=True, slots=True)
class Operations:
    """boto's method names for one kind, and the members that carry its name and ARN."""

    create: str
    describe: str
    delete: str
    name: str
    arn: str
    word: str


OPERATIONS: Mapping[StepKind, Operations] = {
    StepKind.MODEL: Operations(
        "create_model", "describe_model", "delete_model", "ModelName", "ModelArn", "model"
    ),
    StepKind.CONFIGURATION: Operations(
        "create_endpoint_config", "describe_endpoint_config", "delete_endpoint_config",
        "EndpointConfigName", "EndpointConfigArn", "endpoint configuration",
    ),
    StepKind.ENDPOINT: Operations(
        "create_endpoint", "describe_endpoint", "delete_endpoint", "EndpointName", "EndpointArn", "endpoint"
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """What a description said. `answer` is None when nothing of that name is there; `ours` None: unknown."""

    answer: Mapping[str, Any] | None
    ours: bool | None
    trouble: Refusal | None = None


def find(site: Site, order: Order, kind: StepKind, name: str) -> Found:
    """Describe one resource and read whether it carries the order's mark."""
    does = OPERATIONS[kind]
    answer = asked(lambda: getattr(site.sagemaker, does.describe)(**{does.name: name}))
    if isinstance(answer, Refusal):
        return Found(None, None, None if is_absent(answer) else answer)
    arn = str(answer.get(does.arn) or "")
    tags, stopped = pages(site.sagemaker.list_tags, "Tags", ResourceArn=arn, MaxResults=50)
    named, readable = read_tags(tags)
    if is_ours(named, order.key):
        return Found(answer, True)
    return Found(answer, None if stopped or not readable else False, stopped)


def create(site: Site, order: Order, kind: StepKind, request: Mapping[str, Any]) -> Refusal | None:
    """Create one resource with the order's mark; None when it was made, else what went wrong."""
    tags = [{"Key": ORDER_TAG, "Value": order.key.mark}]
    method = getattr(site.sagemaker, OPERATIONS[kind].create)
    answer = asked(lambda: method(**request, Tags=tags))
    return answer if isinstance(answer, Refusal) else None


def delete(site: Site, kind: StepKind, name: str) -> Refusal | None:
    """Delete one resource; None when that was accepted, else what was said (`is_absent`: it is not there)."""
    does = OPERATIONS[kind]
    answer = asked(lambda: getattr(site.sagemaker, does.delete)(**{does.name: name}) or {})
    return answer if isinstance(answer, Refusal) else None


def is_absent(refusal: Refusal) -> bool:
    """Whether a refusal says "not there". SageMaker says it with ValidationException for these kinds."""
    said = refusal.message.lower()
    return refusal.code in {"ResourceNotFound", "ResourceNotFoundException"} or (
        refusal.code == "ValidationException" and ("could not find" in said or "does not exist" in said)
    )


def is_taken(refusal: Refusal) -> bool:
    """Whether a refusal says that the name is used already."""
    said = refusal.message.lower()
    return refusal.code == "ResourceInUse" or (
        refusal.code == "ValidationException" and ("already exist" in said or "already existing" in said)
    )


def is_busy(refusal: Refusal) -> bool:
    """Whether a refusal says that the resource is in the middle of something."""
    return refusal.code == "ValidationException" and "in-progress" in refusal.message.lower()
