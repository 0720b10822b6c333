"""Same inputs, same plan, byte for byte: in whatever order threads bring them, on whatever scale."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.planner.best.of_plan import with_combination
from berth.planner.choose import make_plan
from berth.planner.cost import HourlyRate
from berth.planner.csv_text import csv_text
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.planner.own_rates import OwnRates
from berth.planner.part import Level
from berth.planner.plan import Plan
from berth.planner.wording import plan_text
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
MONDAY = datetime(2026, 12, 7, 11, 30, tzinfo=UTC)
DAY = timedelta(days=1)
TYPE = "p5en.48xlarge"
REGIONS = ("us-east-1", "us-east-2", "us-west-2")
NEED = Need(
    "same", TYPE, 4, 4 * DAY, Target.INSTANCES, REGIONS, start=MONDAY,
    profile=(Level(timedelta(0), 2), Level(2 * DAY, 4)), utilisation=Decimal("0.7"),
    budget=Money(Decimal(90_000)), rates=OwnRates(edp_percent=Decimal(10)),
)  # fmt: skip


def query(region: str, begins: int, days: int, count: int) -> Query:
    """The question for a layer of the profile."""
    start = MONDAY + begins * DAY
    return Query(
        Way.CAPACITY_BLOCK, region, TYPE, count, 24 * days, Target.INSTANCES, start, start + days * DAY
    )


def offer(asked: Query, number: int, fee: Decimal, shift: int) -> Offer:
    """What a question found, in one of two zones."""
    start = (asked.start_after or MONDAY) + shift * DAY
    held = Window(start, start + timedelta(hours=asked.duration_hours))
    zone = f"{asked.region[:2]}{asked.region[3]}{asked.region[-1]}-az{1 + number % 2}"
    return Offer(
        Way.CAPACITY_BLOCK, asked.region, f"cb-{asked.region}-{number}",
        (Segment(held, zone, None, TYPE, asked.count),), asked.count, TYPE, Money(fee), ("instances",), NOW,
        asked,
    )  # fmt: skip


def answers(rng: random.Random, scale: Decimal = Decimal(1)) -> list[PlaceAnswer]:
    """Each Region's answers to the whole and its layers: two of them as long and as large as each other."""
    made = []
    number = 0
    for region in REGIONS:
        for begins, days, count in ((0, 4, 4), (0, 4, 2), (2, 2, 2), (0, 2, 2)):
            asked = query(region, begins, days, count)
            found = []
            for _ in range(rng.randrange(4)):
                number += 1
                fee = Decimal(rng.randrange(2000, 6500)) * days * count
                found.append(offer(asked, number, fee * scale, rng.choice((0, 0, 0, 1))))
            outcome = PlaceOutcome.OFFERS if found else PlaceOutcome.NONE_ON_SALE
            made.append(PlaceAnswer(Way.CAPACITY_BLOCK, region, outcome, NOW, "", tuple(found), asked))
    return made


def rates(rng: random.Random, scale: Decimal = Decimal(1)) -> list[HourlyRate]:
    """On-demand in each Region and Spot in zones, two of equal price among them."""
    made = []
    for region in REGIONS:
        hourly = Money(Decimal(rng.choice((60, 63, 63))) * scale)
        made.append(HourlyRate(Way.ON_DEMAND, region, "on-demand", hourly, NOW.date(), "list", live=True))
        for zone in (f"{region}-az1", f"{region}-az2"):
            spot = Money(Decimal(rng.choice((21, 27))) * scale)
            made.append(
                HourlyRate(Way.SPOT, region, "spot", spot, NOW.date(), "spot", live=True, zone_id=zone)
            )
    return made


def planned(heard: list[PlaceAnswer], known: list[HourlyRate], need: Need = NEED, **more: Any) -> Plan:
    """The plan with its combination."""
    limits = {(Way.ON_DEMAND, region, TYPE): 2 for region in REGIONS}
    return with_combination(make_plan(need, heard, known, NOW, **more), limits)


def document(plan: Plan) -> str:
    """Every byte of it, in every form."""
    return json.dumps(plan.to_json()) + plan_text(plan, "AWS") + csv_text(plan)


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_the_order_of_answers_rates_and_notes_changes_no_byte(seed: int, order: int) -> None:
    """Document, text and rows of the same inputs, shuffled, are the same."""
    heard, known = answers(random.Random(seed)), rates(random.Random(seed))
    notes = ["b", "a", "c"]
    first = document(planned(heard, known, notes=notes))
    rng = random.Random(order)
    for inputs in (heard, known, notes):
        rng.shuffle(inputs)  # type: ignore[arg-type]
    assert document(planned(heard, known, notes=notes)) == first


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 10_000))
def test_a_plan_made_twice_is_the_same(seed: int) -> None:
    """No clock, no process-wide counter and no hash order is in it."""
    heard, known = answers(random.Random(seed)), rates(random.Random(seed))
    assert document(planned(heard, known)) == document(planned(heard, known))


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10_000), st.sampled_from([2, 10, 1000]))
def test_ten_times_dearer_is_the_same_plan_at_ten_times_the_price(seed: int, factor: int) -> None:
    """Fees, rates and budget scaled: the same choices in the same order, totals scaled, the same pieces."""
    scale = Decimal(factor)
    one = planned(answers(random.Random(seed)), rates(random.Random(seed)))
    dear = replace(NEED, budget=Money(Decimal(90_000) * scale))
    other = planned(answers(random.Random(seed), scale), rates(random.Random(seed), scale), dear)
    assert [c.offer.offering_id for c in other.choices] == [c.offer.offering_id for c in one.choices]
    assert [r.offer.offering_id for r in other.rejected] == [r.offer.offering_id for r in one.rejected]
    for before, after in zip(one.choices, other.choices, strict=True):
        assert before.cost.total is not None
        assert after.cost.total == Money(before.cost.total.amount * scale)
    if one.mix is None or other.mix is None:
        assert one.mix is other.mix is None
        return
    assert [(p.offering_id, p.count, p.paid) for p in other.mix.pieces] == [
        (p.offering_id, p.count, p.paid) for p in one.mix.pieces
    ]
    assert other.mix.total == Money(one.mix.total.amount * scale)
