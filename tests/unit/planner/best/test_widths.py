"""Every face of a plan stays within 80 columns, whatever it costs and in whatever currency."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from functools import cache
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from berth.planner.best.of_plan import with_combination
from berth.planner.best.wording import explained
from berth.planner.choose import make_plan
from berth.planner.compare_text import compare_text
from berth.planner.cost import HourlyRate
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome
from berth.planner.offers_text import offers_text
from berth.planner.part import Level, Part, TypeCount
from berth.planner.plan import Plan
from berth.planner.wording import plan_text
from berth.terms.money import Money
from berth.terms.ways import Target, Way

from .test_combination import BLOCKS, DAY, NOW, TYPE, a_block, a_need
from .test_quotas_and_parts import QUOTA, READ, SPOT

REGION = "us-east-2"
OTHER = "p4d.24xlarge"
LISTED = HourlyRate(Way.ON_DEMAND, REGION, "on-demand", Money(Decimal("63.296")), instance_type=TYPE)
HELD = Part("eval", (TypeCount(OTHER, 1, 1),), Target.INSTANCES)
LOCAL = "use2-chi-2-az1"


def planned(need: Need, *offers: Offer, read: bool = True) -> Plan:
    """A plan with its combination, of what one place answered."""
    answer = PlaceAnswer(Way.CAPACITY_BLOCK, REGION, PlaceOutcome.OFFERS, NOW, "", offers)
    quota = READ if read else QUOTA
    made = make_plan(need, [answer], [LISTED, SPOT], NOW, quotas=[quota])
    return with_combination(made)


@cache
def plans() -> tuple[str, ...]:
    """Plans of every kind as documents: a choice leads, a mix leads or stands alone, a quota is in the way,
    parts and types beside, a profile, what nothing fits, a Local Zone, a startup that has its price."""
    levels = (Level(timedelta(0), 2), Level(2 * DAY, 4))
    layers = (a_block(0, 3, 2, "9000"), a_block(2, 1, 2, "3000", zone="use2-az2"), a_block(0, 3, 4, "18000"))
    beside = a_block(0, 3, 1, "1500", instance_type=OTHER)
    made = (
        planned(a_need(utilisation=Decimal("0.5"), startup=timedelta(minutes=20)), *BLOCKS),
        planned(a_need(retryable=True, time_zone="America/New_York"), *BLOCKS),
        planned(a_need(), *BLOCKS[:2]),
        planned(a_need(), *BLOCKS, read=False),
        planned(a_need(beside=(HELD,)), BLOCKS[2], beside),
        planned(a_need(count=4, profile=levels, same_zone=False), *layers),
        planned(a_need(), a_block(1, 3, 2, "9000")),
        planned(a_need(interruptible=True, checkpoint_every=DAY / 24), a_block(0, 3, 2, "9000", zone=LOCAL)),
        planned(
            a_need(start=None, longest=5 * DAY, budget=Money(Decimal(30000))), *BLOCKS, a_block(0, 4, 2, "1")
        ),
        planned(a_need(alternatives=(TypeCount(OTHER, 2, 4),)), a_block(0, 3, 2, "99", instance_type=OTHER)),
    )
    return tuple(json.dumps(plan.to_json()) for plan in made)


def with_prices(document: Any, change: Callable[[dict[str, str]], dict[str, str]]) -> Any:
    """The document with every price in it changed."""
    if isinstance(document, list):
        return [with_prices(one, change) for one in document]
    if not isinstance(document, dict):
        return document
    if set(document) == {"amount", "currency"}:
        return change(document)
    return {key: with_prices(one, change) for key, one in document.items()}


def every_face(plan: Plan) -> str:
    """All that a person may be shown of a plan."""
    faces = (
        plan_text(plan, "", "buyer-" + "x" * 30),
        offers_text(plan),
        compare_text(plan),
        explained(plan.combination),
    )
    return "\n".join(faces)


@settings(deadline=None, max_examples=150)
@given(
    number=st.integers(0, 9),
    scale=st.decimals(Decimal("0.000001"), Decimal(10) ** 6, allow_nan=False, places=6),
    currencies=st.lists(st.sampled_from(["USD", "EUR", "CNY", "JPY"]), min_size=1, max_size=3),
    name=st.sampled_from(["p5en-1207", "a" * 40]),
)
@example(number=0, scale=Decimal(10) ** 6, currencies=["EUR"], name="a" * 40)
@example(number=1, scale=Decimal(10) ** 6, currencies=["EUR"], name="a" * 40)
@example(number=4, scale=Decimal(10) ** 6, currencies=["USD", "EUR"], name="a" * 40)
def test_no_line_is_wider_than_80_columns(
    number: int, scale: Decimal, currencies: list[str], name: str
) -> None:
    """Thousands of millions, next to nothing, one currency or several, a name of 40 letters."""
    turn = iter(currencies * 10_000)

    def change(price: dict[str, str]) -> dict[str, str]:
        amount = (Decimal(price["amount"]) * scale).quantize(Decimal("0.000001"))
        return {"amount": f"{amount:f}", "currency": next(turn)}

    plan = Plan.from_json(with_prices(json.loads(plans()[number]), change))
    if plan.need.budget is not None:
        plan = replace(plan, need=replace(plan.need, budget=None))
    plan = replace(plan, need=replace(plan.need, name=name))
    wide = [line for line in every_face(plan).splitlines() if len(line) > 80]
    assert wide == []
