"""What the client believes, held against AWS's rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from berth.orders.seen import STAGES
from berth.planner.need_file import NeedError, read_need
from berth.planner.offers import reclaim_before_end

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
NEED = """
name = "eval-1"
instance_type = "ml.trn1.32xlarge"
count = {count}
duration = "{days}d"
target = "endpoint"
regions = ["us-east-1"]
"""


def read(count: int = 1, days: int = 1) -> None:
    """Read a need of so many instances and days."""
    read_need(NEED.format(count=count, days=days), "need.toml", NOW)


def test_what_aws_sells_may_be_needed(plan_rules: dict[str, Any]) -> None:
    """Every valid count and every valid number of days is a good need."""
    for count in plan_rules["counts"]["valid"]:
        read(count=count)
    for days in plan_rules["days"]["valid"]:
        read(days=days)


def test_what_aws_does_not_sell_is_refused_before_anything_is_sent(plan_rules: dict[str, Any]) -> None:
    """Every invalid one is refused by the need file's reader, which names the line."""
    wrong = [{"count": count} for count in plan_rules["counts"]["invalid"]]
    wrong += [{"days": days} for days in plan_rules["days"]["invalid"]]
    for values in wrong:
        with pytest.raises(NeedError) as refused:
            read(**values)
        assert "need.toml:" in refused.value.lines()[0], values


def test_usable_time_ends_when_aws_reclaims(plan_rules: dict[str, Any]) -> None:
    """Each target's own lead."""
    for target, minutes in plan_rules["reclaim_minutes_before_end"].items():
        assert reclaim_before_end(target) == timedelta(minutes=minutes)


def test_every_state_of_aws_is_known(plan_rules: dict[str, Any]) -> None:
    """The client knows where a plan stands in every state that the model has."""
    assert set(plan_rules["states"]["all"]) <= set(STAGES)
