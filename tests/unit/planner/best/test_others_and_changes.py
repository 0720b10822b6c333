"""Answers that differ from the best, and what would have to change where nothing fits."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings

from berth.planner.best.changes import Change, changes
from berth.planner.best.changes import Kind as ChangeKind
from berth.planner.best.others import Kind, Other, others
from berth.planner.best.reckon import reckon
from berth.planner.best.solve import best_of
from berth.planner.best.supply import Candidate, Confirmed, Supply
from berth.planner.best.wish import Goal, Part, Step, Wish
from berth.terms.money import Money
from berth.terms.ways import Way

from .small_cases import TYPE, candidate, day, meter, supplies, window, wish, wishes

FEW = settings(deadline=None, max_examples=25)
HALF_HOUR = timedelta(minutes=30)


def usd(text: str) -> Money:
    """Dollars."""
    return Money(Decimal(text))


def whole(name: str, start: float, days: float, count: int, fee: str, **other: object) -> Candidate:
    """An offer that can be used to its end: seams are then no holes."""
    held = window(start, days)
    return candidate(name, start, days, count, fee, usable=(held,), **other)


def other_of(asked: Wish, supply: Supply, kind: Kind) -> Other:
    """The one other answer of a kind."""
    best = best_of(asked, supply).answer
    assert best is not None
    (found,) = [o for o in others(asked, supply, best) if o.kind is kind]
    return found


def change_of(asked: Wish, supply: Supply, kind: ChangeKind) -> Change:
    """The one change of a kind."""
    nothing = best_of(asked, supply)
    assert nothing.answer is None
    (found,) = [c for c in changes(asked, supply, nothing) if c.kind is kind]
    return found


# -- others ------------------------------------------------------------------------------------------------
def test_all_promised_is_dearer_and_leaves_nothing_to_the_day() -> None:
    """On-demand fills the second day for less; a second block promises it."""
    supply = Supply((whole("a", 0, 1, 1, "100"), whole("b", 1, 1, 1, "150")), (meter("5"),))
    found = other_of(wish((0, 2, 1)), supply, Kind.PROMISED)
    assert found.answer.total == usd("250")
    assert (found.trade.dearer, found.trade.unpromised) == (usd("30"), -24)
    assert found.answer.promised


def test_one_piece_is_dearer_and_one_purchase_less() -> None:
    """Two blocks for 200 against one for 230."""
    supply = Supply((whole("a", 0, 1, 1, "100"), whole("b", 1, 1, 1, "100"), whole("c", 0, 2, 1, "230")))
    found = other_of(wish((0, 2, 1)), supply, Kind.ONE_PIECE)
    assert [b.candidate.id for b in found.answer.bought] == ["c"]
    assert (found.trade.dearer, found.trade.pieces) == (usd("30"), -1)


def test_one_zone_is_fewer_places() -> None:
    """The cheapest two blocks lie in two zones."""
    far = {"zone_id": "use1-az2"}
    supply = Supply(
        (whole("a", 0, 1, 1, "100"), whole("b", 1, 1, 1, "100", **far), whole("c", 1, 1, 1, "120"))
    )
    found = other_of(wish((0, 2, 1)), supply, Kind.SAME_ZONE)
    assert found.answer.places == ("use1-az1",)
    assert (found.trade.dearer, found.trade.places) == (usd("20"), -1)


def test_an_earlier_end_costs_more_where_waiting_is_cheaper() -> None:
    """A dear block today, a cheap one the day after tomorrow."""
    supply = Supply((whole("a", 0, 1, 1, "150"), whole("b", 2, 1, 1, "100")))
    found = other_of(wish((0, 1, 1), latest_end=day(3)), supply, Kind.EARLIER)
    assert (found.trade.dearer, found.trade.later) == (usd("50"), timedelta(days=-2))


def test_the_wanted_count_is_priced_beside_the_least() -> None:
    """One is enough, two are wanted: what the second would cost is told."""
    asked = Wish((Part("all", TYPE, (Step(window(0, 1), 1, 2),)),))
    supply = Supply((whole("a", 0, 1, 1, "100"), whole("b", 0, 1, 1, "130", zone_id="use1-az2")))
    found = other_of(asked, supply, Kind.WANTED)
    assert (found.trade.dearer, found.trade.wanted) == (usd("130"), 24)


@FEW
@given(asked=wishes(), supply=supplies())
def test_no_other_answer_is_cheaper_or_the_same(asked: Wish, supply: Supply) -> None:
    """Each other answer holds by itself, differs from the best and from the rest, and costs at least as
    much.
    """
    best = best_of(asked, supply).answer
    if best is None:
        return
    found = others(asked, supply, best)
    for other in found:
        made = reckon(asked, supply, other.answer.bought)
        assert made is not None
        assert best.cost <= other.answer.cost
    bodies = [(o.answer.bought, o.answer.metered, o.answer.running) for o in found]
    bodies.append((best.bought, best.metered, best.running))
    assert all(bodies.count(body) == 1 for body in bodies)


# -- changes -----------------------------------------------------------------------------------------------
def test_the_budget_that_would_do_is_named_to_the_cent() -> None:
    """The cheapest costs 100.01, the budget is 100."""
    supply = Supply((whole("a", 0, 1, 1, "100.01"),))
    found = change_of(wish((0, 1, 1), budget=usd("100")), supply, ChangeKind.BUDGET)
    assert found.value == usd("100.01")


def test_the_end_that_would_do_is_the_earliest() -> None:
    """Blocks end on day 3 and on day 4, the latest end is day 2."""
    supply = Supply((whole("a", 2, 1, 1, "100"), whole("b", 3, 1, 1, "10")))
    found = change_of(wish((0, 1, 1), latest_end=day(2)), supply, ChangeKind.END)
    assert found.value == day(3)


def test_a_fixed_start_is_moved_as_little_as_will_do() -> None:
    """Earlier and later are both told."""
    supply = Supply((whole("a", 0, 1, 1, "100"), whole("b", 3, 1, 1, "100")))
    asked = wish((1, 1, 1))
    found = [c.value for c in changes(asked, supply, best_of(asked, supply)) if c.kind is ChangeKind.START]
    assert found == [day(3), day(0)]


def test_fewer_instances_as_few_fewer_as_will_do() -> None:
    """Four are asked for, three are there."""
    supply = Supply((whole("a", 0, 1, 2, "100"), whole("b", 0, 1, 1, "100", zone_id="use1-az2")))
    found = change_of(wish((0, 1, 4)), supply, ChangeKind.COUNT)
    assert (found.value, len(found.answer.bought)) == (1, 2)


def test_the_smallest_gap_that_would_do() -> None:
    """Two blocks of which each loses its last half hour: a pause of half an hour makes two days of them."""
    supply = Supply((candidate("a", 0, 1, 1, "100"), candidate("b", 1, 1, 1, "100")))
    asked = wish((0, 2 - 1 / 48, 1))
    found = change_of(asked, supply, ChangeKind.GAP)
    assert found.value == HALF_HOUR
    assert [w.duration for w in found.answer.running] == [timedelta(hours=23, minutes=30)] * 2


def test_the_next_step_of_the_ladder_that_fits() -> None:
    """Four days are asked for, two can be had."""
    supply = Supply((whole("a", 0, 2, 1, "100"),))
    found = change_of(wish((0, 4, 1)), supply, ChangeKind.DURATION)
    assert found.value == timedelta(days=2)


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        ({"same_zone": True}, "several zones of one Region"),
        ({"zones": frozenset({"use1-az1"})}, "zone use1-az1, use1-az2"),
    ],
)
def test_the_bound_on_places_that_stands_in_the_way_is_named(bound: dict[str, object], told: str) -> None:
    """Half of it is in one zone, half in another."""
    supply = Supply((whole("a", 0, 1, 1, "100"), whole("b", 1, 1, 1, "100", zone_id="use1-az2")))
    found = change_of(replace(wish((0, 2, 1)), **bound), supply, ChangeKind.ZONES)  # type: ignore[arg-type]
    assert found.value == told


def test_changes_come_in_order_of_pain() -> None:
    """Whatever would help, the budget stands before a later end, and a shorter time last."""
    supply = Supply((whole("a", 0, 2, 2, "100"), whole("b", 2, 3, 1, "20")))
    asked = wish((0, 2, 2), latest_end=day(2), budget=usd("50"))
    kinds = [c.kind for c in changes(asked, supply, best_of(asked, supply))]
    assert kinds == sorted(kinds, key=list(ChangeKind).index)
    assert kinds[0] is ChangeKind.BUDGET


# -- goals and bounds --------------------------------------------------------------------------------------
RANGE = tuple(timedelta(days=n) for n in (1, 2, 3))
BLOCKS = (whole("a", 0, 1, 1, "100"), whole("b", 0, 2, 1, "150"), whole("c", 0, 3, 1, "290"))


@pytest.mark.parametrize(
    ("goal", "budget", "days"),
    [
        (Goal.SHORTEST, None, 1),
        (Goal.LONGEST, None, 3),
        (Goal.LONGEST, "200", 2),
        (Goal.CHEAPEST_PER_HOUR, None, 2),
    ],
)
def test_a_range_of_durations_goes_by_its_goal(goal: Goal, budget: str | None, days: int) -> None:
    """One day for 100, two for 150, three for 290."""
    asked = wish((0, 1, 1), spans=RANGE, goal=goal, budget=usd(budget) if budget else None)
    answer = best_of(asked, Supply(BLOCKS)).answer
    assert answer is not None
    assert answer.end == day(days)


def test_another_currency_is_refused_not_compared() -> None:
    """A fee in yuan does not look cheap beside dollars."""
    cheap = replace(whole("a", 0, 1, 1, "1"), fee=Money(Decimal(1), "CNY"))
    outcome = best_of(wish((0, 1, 1)), Supply((cheap, whole("b", 0, 1, 1, "100"))))
    assert outcome.answer is not None
    assert outcome.answer.total == usd("100")
    assert [(r.id, r.reason) for r in outcome.refused] == [("a", "is priced in CNY, compared is USD")]


def test_what_has_no_known_limit_is_not_counted_on() -> None:
    """On-demand without a known quota covers nothing; where it is said to have none, it does."""
    unknown = replace(meter("1"), unlimited=False)
    assert best_of(wish((0, 1, 1)), Supply((), (unknown,))).answer is None
    assert best_of(wish((0, 1, 1)), Supply((), (meter("1"),))).answer is not None


def test_spot_serves_only_what_survives_it() -> None:
    """Of three instances one may be interrupted: one on Spot, two on demand."""
    spot = meter("1", way=Way.SPOT, id="spot")
    parts = (
        Part("loose", TYPE, (Step(window(0, 1), 1, 1),), interruptible=True),
        Part("firm", TYPE, (Step(window(0, 1), 2, 2),)),
    )
    answer = best_of(Wish(parts), Supply((), (spot, meter("5")))).answer
    assert answer is not None
    assert [(m.meter.id, m.count) for m in answer.metered] == [("on-demand", 2), ("spot", 1)]
    assert answer.total == usd("264")


def test_a_head_is_in_the_zone_of_its_nodes() -> None:
    """The cheapest nodes lie where no head is to be had."""
    head = Part("head", "m7i.4xlarge", (Step(window(0, 1), 1, 1),), beside="nodes")
    nodes = Part("nodes", TYPE, (Step(window(0, 1), 2, 2),))
    supply = Supply(
        (whole("near", 0, 1, 2, "120"), whole("far", 0, 1, 2, "100", zone_id="use1-az2")),
        (meter("1", instance_type="m7i.4xlarge", zone_id="use1-az1"),),
    )
    answer = best_of(Wish((nodes, head)), supply).answer
    assert answer is not None
    assert [b.candidate.id for b in answer.bought] == ["near"]
    assert answer.places == ("use1-az1",)


def test_256_instances_over_all_blocks_are_not_passed() -> None:
    """Three blocks would be cheaper than on-demand, two are the most."""
    blocks = tuple(whole(f"{n}", 0, 1, 64, "10", zone_id=f"use1-az{n}") for n in range(3))
    way = blocks[0].way
    answer = best_of(wish((0, 1, 192)), Supply(blocks, (meter("1"),), most_by_way=((way, 128),))).answer
    assert answer is not None
    assert len(answer.bought) == 2


# -- cases that drawn ones found, or may miss ---------------------------------------------------------------
def test_of_two_divisible_twins_both_are_of_use() -> None:
    """Two offers of two, a sum of three confirmed: two of one and one of the other."""
    twins = tuple(whole(name, 0, 1, 2, "10", divisible=True) for name in ("a", "b"))
    confirmed = (Confirmed(TYPE, "use1-az1", window(0, 4), 3),)
    answer = best_of(wish((0, 1, 3)), Supply(twins, (meter("10"),), confirmed)).answer
    assert answer is not None
    assert [(b.candidate.id, b.count) for b in answer.bought] == [("a", 2), ("b", 1)]


def test_of_two_offers_alike_the_cheaper_one_is_bought() -> None:
    """They exclude each other; only fee and id differ."""
    supply = Supply((whole("a", 0, 1, 2, "20"), whole("b", 0, 1, 2, "10")))
    answer = best_of(wish((0, 1, 2)), supply).answer
    assert answer is not None
    assert [b.candidate.id for b in answer.bought] == ["b"]


def test_an_end_of_the_work_may_meet_the_end_of_an_offer() -> None:
    """A block of a day and a half, work of a day: begun half a day into it, it needs no hour beside it."""
    supply = Supply((whole("a", 0, 1, 1, "10"),), (meter("1"),))
    answer = best_of(wish((0.5, 1, 1), latest_end=day(4)), supply).answer
    assert answer is not None
    assert answer.start == day(0.5)
    early = Supply((whole("a", 1.5, 1, 1, "10"),), (meter("1"),))
    profile = wish((0, 1, 0), (1, 1, 1), latest_end=day(4))
    moved = best_of(profile, early).answer
    assert moved is not None
    assert moved.total == usd("10")


def test_no_pause_is_longer_than_allowed() -> None:
    """Two cheap days lie two days apart, of which only one is allowed: the dearer second day is bought."""
    supply = Supply((whole("a", 0, 1, 1, "10"), whole("far", 3, 1, 1, "10"), whole("near", 2, 1, 1, "30")))
    asked = wish((0, 2, 1), latest_end=day(4), most_gap=timedelta(days=1))
    answer = best_of(asked, supply).answer
    assert answer is not None
    assert [b.candidate.id for b in answer.bought] in (["a", "near"], ["near", "far"])
    assert answer.total == usd("40")


def test_the_count_may_change_while_the_offers_do_not() -> None:
    """Four are needed for six hours of a day, one for the rest: on-demand fills six hours, not the day."""
    supply = Supply((whole("a", 0, 1, 1, "10"),), (meter("1"),))
    answer = best_of(wish((0, 0.25, 4), (0.25, 0.75, 1)), supply).answer
    assert answer is not None
    assert answer.total == usd("28")
    assert not answer.promised
