"""What an account holds against its quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.market.admission import Holdings
from berth.yard.market.plan_query import limit_exceeded
from berth.yard.services.effective_quotas import effective_quotas
from berth.yard.services.operation import Call
from berth.yard.store.transaction import Reading


def plan_holdings(call: Call, rows: Reading, instance_type: str) -> Holdings:
    """The account's plans in the Region, neither Expired nor Failed, and their instances of the type."""
    row = rows.one(
        "SELECT count(*) AS plans, coalesce(sum(CASE WHEN instance_type = ? THEN count END), 0) AS instances"
        " FROM training_plans WHERE account_id = ? AND region = ?"
        " AND status IN ('Pending', 'Scheduled', 'Active')",
        instance_type, call.account.account_id, call.region,
    )  # fmt: skip
    assert row is not None
    return Holdings(row["plans"], row["instances"])


def check_endpoint_quota(
    call: Call, yard: Yard, rows: Reading, variants: Sequence[Mapping[str, Any]]
) -> None:
    """Raises ResourceLimitExceeded when the variants pass the quota `<type> for endpoint usage`.

    AWS's text names the quota so (seen: aws-samples/aws-genai-llm-chatbot issue 244).
    """
    quotas = effective_quotas(yard.fleet, rows, call.account.account_id, call.region)
    asked: dict[str, int] = {}
    for variant in variants:
        asked[variant["InstanceType"]] = (
            asked.get(variant["InstanceType"], 0) + variant["InitialInstanceCount"]
        )
    for instance_type, delta in asked.items():
        row = rows.one(
            "SELECT coalesce(sum(count), 0) AS n FROM variants JOIN endpoints ON endpoint_arn = arn"
            " WHERE account_id = ? AND region = ? AND instance_type = ?",
            call.account.account_id, call.region, instance_type,
        )  # fmt: skip
        assert row is not None
        limit = quotas.endpoint_usage_of(instance_type)
        if row["n"] + delta > limit:
            raise limit_exceeded(f"{instance_type} for endpoint usage", limit, row["n"], delta, "Instances")
