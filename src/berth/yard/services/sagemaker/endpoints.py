"""Endpoints: Create, Describe, Delete, List. What their containers do arrives in `endpoint_life`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from berth.terms.instants import from_micros
from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.lifecycle.moves import ENDPOINT, move
from berth.yard.services.arns import sagemaker_arn
from berth.yard.services.lag import horizon_us, status_seen
from berth.yard.services.operation import Call, reads, writes
from berth.yard.services.sagemaker.endpoint_life import delete_endpoint_row, fail_endpoint
from berth.yard.services.sagemaker.kept_requests import ENDPOINT_CONFIGS, MODELS
from berth.yard.services.sagemaker.listing import list_by_name_or_creation
from berth.yard.services.sagemaker.plan_use import check_use, free_instances, in_use, too_many
from berth.yard.services.sagemaker.quotas import check_endpoint_quota
from berth.yard.services.sagemaker.tags import tag
from berth.yard.store.transaction import Reading, Row, Transaction

_IN_PROGRESS = frozenset({"Creating", "Updating"})
_NO_CAPACITY = (
    "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error."
    " This yard has no on-demand capacity for endpoints: name an Active training plan in"
    " CapacityReservationConfig."
)


def endpoint_arn(call: Call, name: str) -> str:
    """The ARN that an endpoint of this name has: the name in lower case."""
    return sagemaker_arn(call.region, call.account.account_id, "endpoint", name.lower())


def find_endpoint(call: Call, rows: Reading, name: str) -> Row:
    """The row of an endpoint. Raises ValidationException, on which the SDKs' waiters rely."""
    row = rows.one(
        "SELECT * FROM endpoints WHERE account_id = ? AND region = ? AND name_folded = ? AND created_us <= ?",
        call.account.account_id, call.region, name.lower(), horizon_us(call),
    )  # fmt: skip
    if row is None or row["name"] != name:
        raise ServiceError("ValidationException", f'Could not find endpoint "{endpoint_arn(call, name)}".')
    return row


@writes("sagemaker", "CreateEndpoint")
def create_endpoint(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Takes the plan's instances in this transaction, and starts the container once it is stored."""
    name = call.params["EndpointName"]
    arn = endpoint_arn(call, name)
    if call.params.get("DeploymentConfig"):
        raise ServiceError("ValidationException", "DeploymentConfig is not served by this yard.")
    if tx.one("SELECT 1 FROM endpoints WHERE arn = ?", arn) is not None:
        raise ServiceError("ValidationException", f'Cannot create already existing endpoint "{arn}".')
    config = ENDPOINT_CONFIGS.find(call, tx, call.params["EndpointConfigName"])
    request = json.loads(config["request"])
    check_endpoint_quota(call, yard, tx, request["ProductionVariants"])
    tx.insert(
        "endpoints",
        arn=arn, account_id=call.account.account_id, region=call.region, name=name,
        name_folded=name.lower(), config_name=config["name"], config=config["request"], status="Creating",
        failure_reason="", created_us=tx.now_us, modified_us=tx.now_us,
    )  # fmt: skip
    tx.event(
        arn, "endpoint", "created",
        account_id=call.account.account_id, region=call.region, to_state="Creating",
    )  # fmt: skip
    tag(tx, arn, call.params.get("Tags", []))
    plans = [_add_variant(call, tx, arn, variant) for variant in request["ProductionVariants"]]
    if None in plans:
        fail_endpoint(tx, yard, arn, _NO_CAPACITY)
    else:
        tx.afterwards(lambda: yard.provisioner.launch(arn))
    return {"EndpointArn": arn}


def _add_variant(call: Call, tx: Transaction, arn: str, variant: Mapping[str, Any]) -> Row | None:
    plan = check_use(call, tx, variant)
    if plan is not None and variant["InitialInstanceCount"] > free_instances(tx, plan):
        raise too_many(variant["InitialInstanceCount"], free_instances(tx, plan))
    model = MODELS.find(call, tx, variant["ModelName"])
    tx.insert(
        "variants",
        container_key=tx.ids.hex(16), endpoint_arn=arn, name=variant["VariantName"],
        model_name=variant["ModelName"], model=model["request"], instance_type=variant["InstanceType"],
        count=variant["InitialInstanceCount"], weight=variant.get("InitialVariantWeight", 1.0),
        plan_arn=plan["arn"] if plan is not None else None, state="starting",
    )  # fmt: skip
    return plan


@writes("sagemaker", "DeleteEndpoint")
def delete_endpoint(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Refused while Creating or Updating, as on AWS; instances are free once the container has ended."""
    row = find_endpoint(call, tx, call.params["EndpointName"])
    if row["status"] in _IN_PROGRESS:
        raise ServiceError("ValidationException", f'Cannot update in-progress endpoint "{row["arn"]}".')
    if row["status"] == "Deleting":
        return {}
    move(tx, ENDPOINT, row, "Deleting", "DeleteEndpoint", modified_us=tx.now_us)
    keys = [v["container_key"] for v in tx.all(_VARIANTS, row["arn"])]
    if not keys:
        delete_endpoint_row(tx, row["arn"])
    tx.afterwards(lambda: yard.provisioner.stop_all(keys))
    return {}


_VARIANTS = "SELECT * FROM variants WHERE endpoint_arn = ? ORDER BY name"


@reads("sagemaker", "DescribeEndpoint")
def describe_endpoint(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """The endpoint and, of each variant, the view of its reservation."""
    row = find_endpoint(call, rows, call.params["EndpointName"])
    status = status_seen(call, rows, row)
    answer: dict[str, Any] = {
        "EndpointName": row["name"],
        "EndpointArn": row["arn"],
        "EndpointConfigName": row["config_name"],
        "EndpointStatus": status,
        "CreationTime": from_micros(row["created_us"]),
        "LastModifiedTime": from_micros(row["modified_us"]),
    }
    if row["failure_reason"] and status == row["status"]:
        answer["FailureReason"] = row["failure_reason"]
    variants = [_variant_summary(rows, variant) for variant in rows.all(_VARIANTS, row["arn"])]
    if variants and row["status"] != "Creating":
        answer["ProductionVariants"] = variants
    return answer


def _variant_summary(rows: Reading, variant: Row) -> dict[str, Any]:
    image = json.loads(variant["model"])
    container = image.get("PrimaryContainer") or image["Containers"][0]
    serving = variant["count"] if variant["state"] == "ready" else 0
    summary: dict[str, Any] = {
        "VariantName": variant["name"],
        "DeployedImages": [{"SpecifiedImage": container["Image"]}],
        "CurrentWeight": variant["weight"],
        "DesiredWeight": variant["weight"],
        "CurrentInstanceCount": serving,
        "DesiredInstanceCount": variant["count"],
    }
    plan = rows.one("SELECT * FROM training_plans WHERE arn = ?", variant["plan_arn"])
    if plan is not None:
        summary["CapacityReservationConfig"] = {
            "MlReservationArn": plan["arn"],
            "CapacityReservationPreference": "capacity-reservations-only",
            "TotalInstanceCount": plan["count"],
            "AvailableInstanceCount": plan["count"] - in_use(rows, plan["arn"]),
            "UsedByCurrentEndpoint": variant["count"],
        }
    return summary


@reads("sagemaker", "ListEndpoints")
def list_endpoints(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Newest first, ten a page, unless asked otherwise."""
    found, token = list_by_name_or_creation(call, rows, "endpoints", size_default=10)
    answer: dict[str, Any] = {
        "Endpoints": [
            {
                "EndpointName": row["name"],
                "EndpointArn": row["arn"],
                "CreationTime": from_micros(row["created_us"]),
                "LastModifiedTime": from_micros(row["modified_us"]),
                "EndpointStatus": status_seen(call, rows, row),
            }
            for row in found
        ]
    }
    if token:
        answer["NextToken"] = token
    return answer
