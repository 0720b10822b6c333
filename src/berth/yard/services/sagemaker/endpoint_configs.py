"""Endpoint configurations: Create, Describe, Delete, List. A configuration never changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from berth.terms.instants import from_micros
from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.services.arns import sagemaker_arn
from berth.yard.services.lag import horizon_us
from berth.yard.services.operation import Call, reads, writes
from berth.yard.services.sagemaker.listing import list_by_name_or_creation
from berth.yard.services.sagemaker.models import find_model
from berth.yard.services.sagemaker.plan_use import check_use
from berth.yard.services.sagemaker.tags import tag, untag_all
from berth.yard.store.transaction import Reading, Row, Transaction

# Members of a variant or configuration that a yard would have to act on and does not: refused, never ignored.
_VARIANT_UNSERVED = ("ServerlessConfig", "InstancePools", "ManagedInstanceScaling", "AcceleratorType")
_CONFIG_UNSERVED = (
    "AsyncInferenceConfig",
    "DataCaptureConfig",
    "ExplainerConfig",
    "ShadowProductionVariants",
)


def config_arn(call: Call, name: str) -> str:
    """The ARN that an endpoint configuration of this name has."""
    return sagemaker_arn(call.region, call.account.account_id, "endpoint-config", name.lower())


def find_config(call: Call, rows: Reading, name: str) -> Row:
    """The row of a configuration. Raises ValidationException as AWS does for a missing one."""
    row = rows.one(
        "SELECT * FROM endpoint_configs WHERE account_id = ? AND region = ? AND name = ? AND created_us <= ?",
        call.account.account_id, call.region, name, horizon_us(call),
    )  # fmt: skip
    if row is None:
        arn = config_arn(call, name)
        raise ServiceError("ValidationException", f'Could not find endpoint configuration "{arn}".')
    return row


def _refuse_unserved(params: Mapping[str, Any], members: tuple[str, ...]) -> None:
    for member in members:
        if params.get(member):
            raise ServiceError("ValidationException", f"{member} is not served by this yard.")


def _check_variant(call: Call, rows: Reading, variant: Mapping[str, Any]) -> None:
    _refuse_unserved(variant, _VARIANT_UNSERVED)
    for member in ("ModelName", "InstanceType", "InitialInstanceCount"):
        if member not in variant:
            raise ServiceError(
                "ValidationException",
                f'{member} is missing in the production variant "{variant["VariantName"]}".',
            )
    find_model(call, rows, variant["ModelName"])
    check_use(call, rows, variant)


def _check_variants(call: Call, rows: Reading, variants: list[Mapping[str, Any]]) -> None:
    names = [variant["VariantName"] for variant in variants]
    if len(set(names)) != len(names):
        raise ServiceError("ValidationException", "Production variant names must be unique.")
    plans = {v.get("CapacityReservationConfig", {}).get("MlReservationArn") for v in variants}
    if len(plans) > 1 or (len(variants) > 1 and plans != {None}):
        raise ServiceError(
            "ValidationException", "An endpoint on a training plan has exactly one variant and one plan."
        )
    for variant in variants:
        _check_variant(call, rows, variant)


@writes("sagemaker", "CreateEndpointConfig")
def create_endpoint_config(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Checks models and, as AWS's blog of 2026-03 says, that a named plan is Active and for endpoints."""
    params = dict(call.params)
    name = params["EndpointConfigName"]
    arn = config_arn(call, name)
    _refuse_unserved(params, _CONFIG_UNSERVED)
    if tx.one("SELECT 1 FROM endpoint_configs WHERE arn = ?", arn) is not None:
        raise ServiceError(
            "ValidationException", f'Cannot create already existing endpoint configuration "{arn}".'
        )
    _check_variants(call, tx, params["ProductionVariants"])
    tags = params.pop("Tags", [])
    tx.insert(
        "endpoint_configs",
        arn=arn, account_id=call.account.account_id, region=call.region, name=name, created_us=tx.now_us,
        request=json.dumps(params),
    )  # fmt: skip
    tag(tx, arn, tags)
    tx.event(arn, "endpoint-config", "created", account_id=call.account.account_id, region=call.region)
    return {"EndpointConfigArn": arn}


@reads("sagemaker", "DescribeEndpointConfig")
def describe_endpoint_config(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """What was asked for at creation, with ARN and time."""
    row = find_config(call, rows, call.params["EndpointConfigName"])
    return {
        **json.loads(row["request"]),
        "EndpointConfigArn": row["arn"],
        "CreationTime": from_micros(row["created_us"]),
    }


@writes("sagemaker", "DeleteEndpointConfig")
def delete_endpoint_config(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Deletes even when an endpoint uses it: AWS's documentation only warns."""
    row = find_config(call, tx, call.params["EndpointConfigName"])
    tx.run("DELETE FROM endpoint_configs WHERE arn = ?", row["arn"])
    untag_all(tx, row["arn"])
    tx.event(row["arn"], "endpoint-config", "deleted", account_id=call.account.account_id, region=call.region)
    return {}


@reads("sagemaker", "ListEndpointConfigs")
def list_endpoint_configs(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Newest first unless asked otherwise."""
    found, token = list_by_name_or_creation(call, rows, "endpoint_configs")
    answer: dict[str, Any] = {
        "EndpointConfigs": [
            {
                "EndpointConfigName": row["name"],
                "EndpointConfigArn": row["arn"],
                "CreationTime": from_micros(row["created_us"]),
            }
            for row in found
        ]
    }
    if token:
        answer["NextToken"] = token
    return answer
