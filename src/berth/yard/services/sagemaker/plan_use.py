"""Whether a production variant may run on a training plan, and what of the plan is in use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.yard.errors import ServiceError
from berth.yard.services.lag import horizon_us, status_seen
from berth.yard.services.operation import Call
from berth.yard.store.transaction import Reading, Row

# Columns of a plan for who shows plans: its row, and `in_use` as the function of that name counts it.
PLAN_WITH_USE = (
    "training_plans.*,"
    " (SELECT coalesce(sum(count), 0) FROM variants WHERE plan_arn = training_plans.arn) AS in_use"
)


def in_use(rows: Reading, plan_arn: str) -> int:
    """Instances of the plan that endpoints hold now."""
    row = rows.one("SELECT coalesce(sum(count), 0) AS n FROM variants WHERE plan_arn = ?", plan_arn)
    return int(row["n"]) if row is not None else 0


def free_instances(rows: Reading, plan: Row) -> int:
    """Instances of an Active plan that a new endpoint may take; none once reclaiming has begun."""
    return 0 if plan["reclaimed"] else int(plan["count"]) - in_use(rows, plan["arn"])


def find_plan_by_arn(call: Call, rows: Reading, arn: str) -> Row | None:
    """The caller's plan of this ARN, or None: another account's plan is as good as absent."""
    return rows.one(
        "SELECT * FROM training_plans WHERE arn = ? AND account_id = ? AND region = ? AND created_us <= ?",
        arn, call.account.account_id, call.region, horizon_us(call),
    )  # fmt: skip


def _refuse(message: str) -> ServiceError:
    return ServiceError("ValidationException", message)


def check_use(call: Call, rows: Reading, variant: Mapping[str, Any]) -> Row | None:
    """The plan that `variant` names (None when it names none), after every check that does not depend on
    what is free at the moment: the plan is the caller's, Active, for endpoints, of the type, large enough.

    Of the texts only the one about the count is known (AWS blog of 2026-03); the others are ours, listed in
    docs/reference/unconfirmed.md. Raises ValidationException.
    """
    config = variant.get("CapacityReservationConfig")
    if not config:
        return None
    arn = config.get("MlReservationArn")
    if arn is None or config.get("CapacityReservationPreference") is None:
        raise _refuse("CapacityReservationConfig needs MlReservationArn and CapacityReservationPreference.")
    plan = find_plan_by_arn(call, rows, arn)
    if plan is None:
        raise _refuse(f'Could not find training plan "{arn}".')
    status = status_seen(call, rows, plan)
    if status != "Active":
        raise _refuse(f'Training plan "{arn}" must be Active to be used by an endpoint; it is {status}.')
    if "endpoint" not in plan["targets"].split(","):
        raise _refuse(
            f'Training plan "{arn}" has target {plan["targets"]}; an endpoint needs target endpoint.'
        )
    if variant["InstanceType"] != plan["instance_type"]:
        raise _refuse(
            f"Instance type {variant['InstanceType']} does not match the training plan's"
            f" {plan['instance_type']}."
        )
    if variant["InitialInstanceCount"] > plan["count"]:
        raise too_many(variant["InitialInstanceCount"], plan["count"])
    return plan


def too_many(asked: int, reserved: int) -> ServiceError:
    """More instances than reserved, or than are free now."""
    return _refuse(
        f"Requested instance count ({asked}) exceeds reserved capacity ({reserved}) for training plan."
    )
