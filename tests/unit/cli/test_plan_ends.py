"""How `berth plan` ends where nothing that it saw will do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from berth.cli.plan import why_nothing
from berth.planner.choose import make_plan
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
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
