"""What the client believes, held against AWS's rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from berth.orders.seen import STAGES
from berth.planner.need_file import NeedError, read_need
from berth.planner.offers import reclaim_before_end
from berth.planner.verdicts import verdicts
from berth.terms.ways import Way

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
NEED = """
name = "eval-1"
instance_type = "ml.trn1.32xlarge"
count = {count}
duration = "{days}d"
target = "endpoint"
regions = ["us-east-1"]
"""


def plan_fits(count: int = 1, days: int = 1) -> bool:
    """Whether the client would ask for a plan of so many instances and days."""
    try:
        wanted = read_need(NEED.format(count=count, days=days), "need.toml", NOW)
    except NeedError:
        return False
    return next(v.fits for v in verdicts(wanted, NOW) if v.way is Way.TRAINING_PLAN)


def test_what_aws_sells_may_be_needed(plan_rules: dict[str, Any]) -> None:
    """Every valid count and every valid number of days is a good need."""
    for count in plan_rules["counts"]["valid"]:
        assert plan_fits(count=count), count
    for days in plan_rules["days"]["valid"]:
        assert plan_fits(days=days), days


def test_what_aws_does_not_sell_is_refused_before_anything_is_sent(plan_rules: dict[str, Any]) -> None:
    """Every invalid one is refused by the need file's reader, or no plan is asked for it."""
    for count in plan_rules["counts"]["invalid"]:
        assert not plan_fits(count=count), count
    for days in plan_rules["days"]["invalid"]:
        assert not plan_fits(days=days), days


def test_usable_time_ends_when_aws_reclaims(plan_rules: dict[str, Any]) -> None:
    """Each target's own lead."""
    for target, minutes in plan_rules["reclaim_minutes_before_end"].items():
        assert reclaim_before_end(target) == timedelta(minutes=minutes)


def test_every_state_of_aws_is_known(plan_rules: dict[str, Any]) -> None:
    """The client knows where a plan stands in every state that the model has."""
    assert set(plan_rules["states"]["all"]) <= set(STAGES)
