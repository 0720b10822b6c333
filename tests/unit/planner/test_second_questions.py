"""Several blocks whose windows do not meet are asked for once more, from where the last size is to be had."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.planner.second_questions import second_questions
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
DECEMBER = datetime(2026, 12, 11, 11, 30, tzinfo=UTC)
JANUARY = datetime(2027, 1, 11, 11, 30, tzinfo=UTC)
DAY = timedelta(days=1)
TYPE = "p5.48xlarge"
NEED = Need("hundred", TYPE, 100, 7 * DAY, Target.INSTANCES, ("us-east-1", "us-west-2"))


def heard(count: int, *starts: datetime, region: str = "us-east-1", **changes: Any) -> PlaceAnswer:
    """What was answered for blocks of that size."""
    asked = Query(Way.CAPACITY_BLOCK, region, TYPE, count, 168, Target.INSTANCES)
    offers = tuple(
        Offer(
            Way.CAPACITY_BLOCK, region, f"cb-{count}-{number}",
            (Segment(Window(start, start + 7 * DAY), "use1-az1", None, TYPE, count),), count, TYPE,
            Money(Decimal(1000 * count)), ("instances",), NOW, asked,
        )
        for number, start in enumerate(starts)
    )  # fmt: skip
    said = PlaceOutcome.OFFERS if offers else PlaceOutcome.NONE_ON_SALE
    return replace(PlaceAnswer(Way.CAPACITY_BLOCK, region, said, NOW, "", offers, asked), **changes)


def test_the_size_that_is_free_earlier_is_asked_again_from_the_later_start() -> None:
    """64 from January on, 36 from December on: 36 are asked for from January on, in that Region alone."""
    west = [heard(64, JANUARY, region="us-west-2"), heard(36, JANUARY, region="us-west-2")]
    answers = [heard(64, JANUARY, JANUARY + DAY), heard(36, DECEMBER, DECEMBER + DAY), *west]
    (again,) = second_questions(NEED, answers)
    assert (again.count, again.region) == (36, "us-east-1")
    assert again.start_after == JANUARY - timedelta(seconds=1)
    assert again == replace(answers[1].question or again, start_after=again.start_after)
    assert second_questions(NEED, list(reversed(answers))) == (again,)


@pytest.mark.parametrize(
    ("need", "answers"),
    [
        (replace(NEED, count=64), [heard(64, JANUARY), heard(36, DECEMBER)]),
        (replace(NEED, start=JANUARY), [heard(64, JANUARY), heard(36, DECEMBER)]),
        (NEED, [heard(64, JANUARY), heard(36, DECEMBER, JANUARY)]),
        (NEED, [heard(64), heard(36, DECEMBER)]),
        (NEED, [heard(64, JANUARY), heard(36, outcome=PlaceOutcome.THROTTLED)]),
        (NEED, [heard(36, DECEMBER)]),
    ],
    ids=["one block", "fixed start", "they meet", "a size not on sale", "throttled", "one size"],
)
def test_nothing_is_asked_again_where_it_would_tell_nothing(need: Need, answers: list[PlaceAnswer]) -> None:
    """One block is enough, the start is fixed, they meet already, or a size is not to be had."""
    assert second_questions(need, answers) == ()
