"""How `berth plan` ends where nothing that it saw will do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from berth.cli.plan_ends import next_of_unanswered, why_nothing
from berth.planner.choose import make_plan
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.planner.wording import plan_text
from berth.terms.money import Money
from berth.terms.outcomes import ExitCode
from berth.terms.ways import Target, Way
from berth.terms.window import Window

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
START = datetime(2026, 12, 7, 11, 30, tzinfo=UTC)
TYPE = "p5en.48xlarge"


def test_a_budget_in_another_currency_is_what_is_in_the_way() -> None:
    """It is named: no other Region, length or higher budget would help."""
    need = Need(
        "h200", TYPE, 2, timedelta(days=5), Target.INSTANCES, ("us-east-2",), start=START,
        budget=Money(Decimal(30_000), "EUR"),
    )  # fmt: skip
    asked = Query(Way.CAPACITY_BLOCK, "us-east-2", TYPE, 2, 120, Target.INSTANCES, START, None)
    held = Segment(Window(START, START + timedelta(days=5)), "use2-az1", None, TYPE, 2)
    offer = Offer(
        Way.CAPACITY_BLOCK, "us-east-2", "cb-1", (held,), 2, TYPE, Money(Decimal("15157.92")), ("instances",),
        NOW, asked,
    )  # fmt: skip
    answer = PlaceAnswer(Way.CAPACITY_BLOCK, "us-east-2", PlaceOutcome.OFFERS, NOW, "", (offer,), asked)
    said = why_nothing(make_plan(need, [answer], [], NOW))
    assert said.exit_code is ExitCode.NO_CAPACITY
    assert said.next_step == "write the budget in USD"


@pytest.mark.parametrize(
    ("outcomes", "code", "todo"),
    [
        (["no-quota", "no-quota"], ExitCode.QUOTA, "berth doctor"),
        (["not-allowed"], ExitCode.CREDENTIALS, "berth doctor"),
        (["no-quota", "not-allowed"], ExitCode.INCOMPLETE, "berth doctor"),
        (["no-quota", "failed"], ExitCode.INCOMPLETE, "ask again"),
        (["throttled"], ExitCode.THROTTLED, "ask again"),
    ],
)
def test_asking_again_is_told_only_where_it_may_help(outcomes: list[str], code: ExitCode, todo: str) -> None:
    """A quota that is zero and a right that is missing are no matter of time; the plan's text says so too."""
    need = Need("h200", TYPE, 2, timedelta(days=5), Target.INSTANCES, ("us-east-1", "us-east-2"), start=START)
    answers = [
        PlaceAnswer(Way.CAPACITY_BLOCK, region, PlaceOutcome(outcome), NOW, "why")
        for region, outcome in zip(need.regions, outcomes, strict=False)
    ]
    made = make_plan(need, answers, [], NOW)
    said = why_nothing(made)
    assert said.exit_code is code
    assert todo in str(said.next_step)
    assert said.next_step == next_of_unanswered(made)
    wants = bool({"no-quota", "not-allowed"} & set(outcomes))
    assert ("`berth doctor` says what to do" in " ".join(plan_text(made, "").split())) is wants
