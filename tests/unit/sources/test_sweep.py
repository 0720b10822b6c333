"""A sweep: in which order, how long at least, how far; and what a bucket has left."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.planner.offers import Query
from berth.sources.pacing import BLOCK_SEARCH, Bucket, Pacer
from berth.sources.sweep import lanes_of, most_promising_first, progress, spoken_s, sweep_seconds
from berth.terms.ways import Target, Way

from .conftest import FakeClock


def query(
    region: str = "r1", kind: str = "p5.48xlarge", hours: int = 24, way: Way = Way.CAPACITY_BLOCK
) -> Query:
    """One question."""
    return Query(way, region, kind, 1, hours, Target.INSTANCES)


def test_breadth_comes_before_depth() -> None:
    """The first choice of every type, then the second of each: a dry bucket has seen every type."""
    asked = [query(kind=kind, hours=hours) for kind in ("a", "b", "c") for hours in (24, 48)]
    order = [(q.instance_type, q.duration_hours) for q in most_promising_first(asked)]
    assert order == [("a", 24), ("b", 24), ("c", 24), ("a", 48), ("b", 48), ("c", 48)]


def test_each_question_is_asked_once_in_its_lane() -> None:
    """A lane a way and Region; what two parts of a need ask alike is one question."""
    asked = [query("r1"), query("r2"), query("r1"), query("r1", way=Way.TRAINING_PLAN)]
    lanes = lanes_of(asked)
    assert {lane: len(found) for lane, found in lanes.items()} == {
        (Way.CAPACITY_BLOCK, "r1"): 1, (Way.CAPACITY_BLOCK, "r2"): 1, (Way.TRAINING_PLAN, "r1"): 1,
    }  # fmt: skip


TIMES = [(1, 1, 0.3), (10, 1, 1.5), (11, 1, 6.9), (154, 14, 960.2), (38, 2, 187.0)]


@pytest.mark.parametrize(("questions", "regions", "seconds"), TIMES)
def test_the_least_time_follows_from_the_buckets(questions: int, regions: int, seconds: float) -> None:
    """10 at once, then one in 6.7 s; Regions do not add up."""
    asked = [query(f"r{r}", hours=24 * (n + 1)) for r in range(regions) for n in range(questions)]
    assert sweep_seconds(asked) == pytest.approx(seconds, abs=0.2)


def test_plans_have_no_known_bucket() -> None:
    """SageMaker publishes none: one call after another is the least."""
    asked = [query(hours=h + 1, way=Way.TRAINING_PLAN) for h in range(100)]
    assert sweep_seconds(asked, call_s=0.1) == pytest.approx(10.0)
    assert sweep_seconds([]) == 0.0


def test_progress_says_what_the_slowest_region_has_left() -> None:
    """20 questions in one Region: 67 s by its bucket; 12 done after 14 s leave 53."""
    lanes = lanes_of([*(query("r1", hours=24 * n) for n in range(1, 21)), query("r2")])
    made = progress(lanes, {(Way.CAPACITY_BLOCK, "r1"): 12, (Way.CAPACITY_BLOCK, "r2"): 1}, 14.0)
    assert (made.done, made.total) == (13, 21)
    assert made.left_s == pytest.approx(53.8, abs=0.5)
    assert made.line == "asked 13 of 21, about 54 s left"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "1 s"), (99.0, "99 s"), (100.1, "2 min"), (960, "16 min"), (6100, "1 h 42 min")],
)
def test_a_time_is_rounded_up(seconds: float, said: str) -> None:
    """It is the least, so it is never said shorter."""
    assert spoken_s(seconds) == said


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0, 90), max_size=25))
def test_a_bucket_that_was_used_before_is_never_taken_for_fuller(gaps: list[float]) -> None:
    """What is left after paced calls is what the pacer has left: a second program waits as the first."""
    clock = FakeClock()
    pacer = Pacer(clock.elapsed, clock.sleep)
    sent = []
    for gap in gaps:
        clock.sleep(gap)
        pacer.take()
        sent.append(clock.elapsed())
    left = BLOCK_SEARCH.level([clock.elapsed() - at for at in sent])
    assert left == pytest.approx(pacer.tokens, abs=1e-6)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0, 0.45), min_size=20, max_size=30))
def test_paced_calls_are_not_refused_when_some_are_slow_on_their_way(delays: list[float]) -> None:
    """Each call reaches the service up to half a second late; the bucket there never lacks a token."""
    clock = FakeClock()
    pacer = Pacer(clock.elapsed, clock.sleep)
    level, at = 10.0, 0.0
    for delay in delays:
        pacer.take()
        arrived = max(at, clock.elapsed() + delay)
        level, at = min(10.0, level + (arrived - at) * 0.15), arrived
        assert level >= 1 - 1e-9
        level -= 1
    assert clock.elapsed() <= (len(delays) - 10) / 0.15 + 1, "it costs half a second once"


def test_a_bucket_is_full_after_its_time() -> None:
    """Ten calls a minute ago have left one short of all; after 67 s nothing is missing."""
    assert Bucket(10, 0.15).level([60.0] * 10) == pytest.approx(9.0)
    assert Bucket(10, 0.15).level([67.0] * 10) == 10.0
    assert Bucket(10, 0.15).level([]) == 10.0
