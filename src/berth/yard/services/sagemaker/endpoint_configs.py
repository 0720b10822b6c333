"""Endpoint configurations: Create, Describe, Delete, List. A configuration never changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.services.operation import Call, reads, writes
from berth.yard.services.sagemaker.kept_requests import ENDPOINT_CONFIGS, MODELS
from berth.yard.services.sagemaker.plan_use import check_use
from berth.yard.store.transaction import Reading, Transaction

# Members of a variant or configuration that a yard would have to act on and does not: refused, never ignored.
_VARIANT_UNSERVED = ("ServerlessConfig", "InstancePools", "ManagedInstanceScaling", "AcceleratorType")
_CONFIG_UNSERVED = (
    "AsyncInferenceConfig",
    "DataCaptureConfig",
    "ExplainerConfig",
    "ShadowProductionVariants",
)


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
    MODELS.find(call, rows, variant["ModelName"])
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
    _refuse_unserved(call.params, _CONFIG_UNSERVED)
    ENDPOINT_CONFIGS.refuse_taken(call, tx, call.params["EndpointConfigName"])
    _check_variants(call, tx, call.params["ProductionVariants"])
    return ENDPOINT_CONFIGS.keep(call, tx, call.params)


@reads("sagemaker", "DescribeEndpointConfig")
def describe_endpoint_config(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """What was asked for at creation, with ARN and time."""
    return ENDPOINT_CONFIGS.describe(call, rows)


@writes("sagemaker", "DeleteEndpointConfig")
def delete_endpoint_config(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Deletes even when an endpoint uses it: AWS's documentation only warns."""
    return ENDPOINT_CONFIGS.delete(call, tx)


@reads("sagemaker", "ListEndpointConfigs")
def list_endpoint_configs(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Newest first unless asked otherwise."""
    return ENDPOINT_CONFIGS.listing(call, rows)
