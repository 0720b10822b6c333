"""How the yard extends blocks and plans, held against AWS's rules."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from berth.terms.money import Money
from berth.yard.lifecycle.moves import BLOCK_EXTENSION, PLAN_EXTENSION
from berth.yard.market.extension_ids import (
    BlockSaid,
    block_terms,
    encode_block_extension,
    encode_plan_extension,
)
from berth.yard.market.extension_rules import EXTENSION_HOURS, ExtensionTerms, payment_deadline, why_not_now
from berth.yard.services.ec2 import block_extensions
from berth.yard.services.sagemaker import plan_extensions

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
TICK = timedelta(microseconds=1)


@pytest.fixture(params=["block", "plan"])
def rules(request: pytest.FixtureRequest, block_rules: dict[str, Any], plan_rules: dict[str, Any]) -> Any:
    """What AWS says of extending the one and the other."""
    return (block_rules if request.param == "block" else plan_rules)["extension"]


def test_lengths_and_times_are_aws_own(rules: dict[str, Any]) -> None:
    """38 lengths; to the microsecond of 56 days and of one hour before the end; one unpaid at a time."""
    assert list(EXTENSION_HOURS) == rules["hours"]
    early = timedelta(days=rules["earliest_days_before_end"])
    late = timedelta(hours=rules["latest_hours_before_end"])
    for before_end, may in ((early, True), (early + TICK, False), (late, True), (late - TICK, False)):
        assert (why_not_now(NOW + before_end, NOW, unpaid=False) is None) is may, before_end
    assert why_not_now(NOW + early, NOW, unpaid=True) is not None


def test_the_fee_of_a_block_is_due_when_aws_says(block_rules: dict[str, Any]) -> None:
    """Twelve hours after the purchase, or 35 minutes before the present end."""
    rules = block_rules["extension"]
    hours = timedelta(hours=rules["payment_hours"])
    before = timedelta(minutes=rules["payment_minutes_before_end"])
    assert payment_deadline(NOW, NOW + timedelta(days=9)) == NOW + hours
    assert payment_deadline(NOW, NOW + hours) == NOW + hours - before


def test_states_of_extensions_are_aws_own(block_rules: dict[str, Any], plan_rules: dict[str, Any]) -> None:
    """No state more or less; which reservations may be extended."""
    block, plan = block_rules["extension"], plan_rules["extension"]
    moves = {(a, b) for a, targets in BLOCK_EXTENSION.moves.items() for b in targets}
    assert moves == {tuple(move) for move in block["moves"]}
    assert set(PLAN_EXTENSION.moves) == set(plan["statuses"])
    assert (block_extensions.KIND.first, plan_extensions.KIND.first) == (block["first"], plan["first"])
    assert set(block_extensions.EXTENDABLE) == set(block["states"])
    assert set(plan_extensions.EXTENDABLE) == set(plan["states"])


def test_ids_have_aws_form(block_rules: dict[str, Any], plan_rules: dict[str, Any]) -> None:
    """`cbe-` and 17 digits; `tpeo-` and more."""
    end = NOW + timedelta(days=3)
    said = BlockSaid("1" * 12, "us-east-1", "cr-" + "0" * 17, 2, end)
    for days in (1, 7, 182):
        terms = block_terms(said, NOW, days, Decimal("34.608"))
        offered = encode_block_extension(said, terms, Decimal("34.608"), key=b"k")
        assert re.fullmatch(block_rules["extension"]["offering"], offered)
    plan = ExtensionTerms(NOW, 182, end, Money.parse("9100.00"))
    text = encode_plan_extension("p" * 64, plan, key=b"k", account_id="1" * 12, region="us-east-1")
    assert text.startswith(plan_rules["extension"]["offering_prefix"])
