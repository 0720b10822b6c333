"""Models: CreateModel, DescribeModel, DeleteModel, ListModels."""

from __future__ import annotations

import json
from typing import Any

from berth.terms.instants import from_micros
from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.services.arns import sagemaker_arn
from berth.yard.services.lag import horizon_us
from berth.yard.services.operation import Call, reads, writes
from berth.yard.services.sagemaker.listing import list_by_name_or_creation
from berth.yard.services.sagemaker.tags import tag, untag_all
from berth.yard.store.transaction import Reading, Row, Transaction


def model_arn(call: Call, name: str) -> str:
    """The ARN that a model of this name has."""
    return sagemaker_arn(call.region, call.account.account_id, "model", name.lower())


def find_model(call: Call, rows: Reading, name: str) -> Row:
    """The row of a model. Raises ValidationException as AWS does for a missing one."""
    row = rows.one(
        "SELECT * FROM models WHERE account_id = ? AND region = ? AND name = ? AND created_us <= ?",
        call.account.account_id, call.region, name, horizon_us(call),
    )  # fmt: skip
    if row is None:
        raise ServiceError("ValidationException", f'Could not find model "{model_arn(call, name)}".')
    return row


@writes("sagemaker", "CreateModel")
def create_model(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Keeps the request as it came. A yard runs one container a model: pipelines are refused here."""
    params = dict(call.params)
    name = params["ModelName"]
    containers = params.get("Containers", [])
    if ("PrimaryContainer" in params) == bool(containers):
        raise ServiceError(
            "ValidationException", "Exactly one of PrimaryContainer and Containers must be specified."
        )
    container = params.get("PrimaryContainer") or containers[0]
    if len(containers) > 1:
        raise ServiceError("ValidationException", "This yard serves models of one container, not pipelines.")
    if not container.get("Image"):
        raise ServiceError(
            "ValidationException", "A container must have an Image; this yard has no packages."
        )
    arn = model_arn(call, name)
    if tx.one("SELECT 1 FROM models WHERE arn = ?", arn) is not None:
        raise ServiceError("ValidationException", f'Cannot create already existing model "{arn}".')
    tags = params.pop("Tags", [])
    tx.insert(
        "models",
        arn=arn, account_id=call.account.account_id, region=call.region, name=name, created_us=tx.now_us,
        request=json.dumps(params),
    )  # fmt: skip
    tag(tx, arn, tags)
    tx.event(arn, "model", "created", account_id=call.account.account_id, region=call.region)
    return {"ModelArn": arn}


@reads("sagemaker", "DescribeModel")
def describe_model(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """What was asked for at creation, with ARN and time."""
    row = find_model(call, rows, call.params["ModelName"])
    return {
        **json.loads(row["request"]),
        "ModelArn": row["arn"],
        "CreationTime": from_micros(row["created_us"]),
    }


@writes("sagemaker", "DeleteModel")
def delete_model(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """A model may be deleted while an endpoint runs it: the endpoint has its own copy."""
    row = find_model(call, tx, call.params["ModelName"])
    tx.run("DELETE FROM models WHERE arn = ?", row["arn"])
    untag_all(tx, row["arn"])
    tx.event(row["arn"], "model", "deleted", account_id=call.account.account_id, region=call.region)
    return {}


@reads("sagemaker", "ListModels")
def list_models(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Newest first unless asked otherwise."""
    found, token = list_by_name_or_creation(call, rows, "models")
    answer: dict[str, Any] = {
        "Models": [
            {
                "ModelName": row["name"],
                "ModelArn": row["arn"],
                "CreationTime": from_micros(row["created_us"]),
            }
            for row in found
        ]
    }
    if token:
        answer["NextToken"] = token
    return answer
