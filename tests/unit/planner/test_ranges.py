"""A need that several answers would do for: what is asked, in which order, and how the answers are ranked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.planner import ladder
from berth.planner.choose import make_plan
from berth.planner.cost import HourlyRate
from berth.planner.fit import is_piece, misfits
from berth.planner.need import Goal, Need, Subnet
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.planner.part import Level, TypeCount
from berth.planner.plan import Plan
from berth.planner.queries import block_queries, training_plan_queries
from berth.planner.verdicts import verdicts
from berth.planner.wording import plan_text
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
START = datetime(2026, 12, 2, 11, 30, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
EAST, WEST = "us-east-2", "us-west-2"


def need(**changes: Any) -> Need:
    """Two p5en.48xlarge for 5 to 9 days."""
    base = Need(
        "h200", "p5en.48xlarge", 2, 5 * DAY, Target.INSTANCES, (EAST, WEST), longest=9 * DAY,
        budget=Money(Decimal(30_000)),
    )  # fmt: skip
    return replace(base, **changes)


def block(fee: str | None, days: int, **changes: Any) -> Offer:
    """A block of two p5en.48xlarge, or of `count` and `instance_type`."""
    region, zone = changes.pop("region", EAST), changes.pop("zone", "use2-az1")
    kind, count = changes.pop("instance_type", "p5en.48xlarge"), changes.pop("count", 2)
    starts = changes.pop("starts", START)
    query = Query(Way.CAPACITY_BLOCK, region, kind, count, days * 24, Target.INSTANCES, platform="Linux/UNIX")
    part = Segment(Window(starts, starts + days * DAY), zone, None, kind, count)
    made = Offer(
        Way.CAPACITY_BLOCK, region, f"cb-{region}-{zone}-{kind}-{count}-{days}-{starts:%d}", (part,), count,
        kind, None if fee is None else Money(Decimal(fee)), ("instances",), NOW, query,
    )  # fmt: skip
    return replace(made, **changes)


def planned(wanted: Need, *offers: Offer, rates: tuple[HourlyRate, ...] = ()) -> Plan:
    """The plan from these offers, each with its question."""
    answers = [PlaceAnswer(o.way, o.region, PlaceOutcome.OFFERS, NOW, "", (o,), o.query) for o in offers]
    return make_plan(wanted, answers, rates, NOW)


def lasting(plan: Plan) -> list[int]:
    """The days of the choices, best first."""
    return [choice.offer.paid_time // DAY for choice in plan.choices]


# -- what is asked -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("shortest", "longest", "hours"),
    [(60, 100, [72, 96]), (15 * 24, 40 * 24, [21 * 24, 28 * 24, 35 * 24]), (25, 47, [])],
)
def test_a_range_asks_the_steps_inside_and_no_other(shortest: int, longest: int, hours: list[int]) -> None:
    """Field faults 46 and 47: never a duration that is not sold."""
    wanted = need(duration=shortest * HOUR, longest=longest * HOUR)
    asked = block_queries(wanted, (EAST,), NOW)
    fits = next(v.fits for v in verdicts(wanted, NOW) if v.way is Way.CAPACITY_BLOCK)
    assert fits is bool(hours)
    if fits:
        assert [query.duration_hours for query in asked] == hours


def test_the_goal_says_what_is_asked_first() -> None:
    """The longest first where the longest is wanted; Regions as the need names them, innermost."""
    asked = block_queries(need(), (EAST, WEST), NOW)
    assert [(q.duration_hours // 24, q.region) for q in asked[:3]] == [(5, EAST), (5, WEST), (6, EAST)]
    longest = block_queries(need(goal=Goal.LONGEST), (EAST,), NOW)
    assert [q.duration_hours // 24 for q in longest] == [9, 8, 7, 6, 5]


def test_what_does_not_lie_within_the_bounds_is_not_asked() -> None:
    """A week between the earliest start and the latest end: 8 and 9 days cannot be."""
    wanted = need(earliest_start=START, latest_end=START + 7 * DAY)
    assert [q.duration_hours // 24 for q in block_queries(wanted, (EAST,), NOW)] == [5, 6, 7]


def test_types_and_counts_are_asked_each_once() -> None:
    """The type liked best first, the wanted count before the least; what no block holds is not asked."""
    wanted = need(
        duration=DAY, longest=None, count_wanted=4,
        alternatives=(TypeCount("p5e.48xlarge", 2, 2), TypeCount("g6e.48xlarge", 4, 4)),
    )  # fmt: skip
    asked = block_queries(wanted, (EAST,), NOW)
    assert [(q.instance_type, q.count) for q in asked] == [
        ("p5en.48xlarge", 4), ("p5en.48xlarge", 3), ("p5en.48xlarge", 2), ("p5e.48xlarge", 2),
    ]  # fmt: skip
    wide = block_queries(need(duration=DAY, longest=None, count_wanted=20), (EAST,), NOW)
    assert [q.count for q in wide] == [20, 16, 8, 4, 2]


def test_more_than_a_block_holds_is_asked_as_several() -> None:
    """100 are 64 and 36; the verdict says so instead of no."""
    wanted = need(count=100, duration=DAY, longest=None)
    assert [q.count for q in block_queries(wanted, (EAST,), NOW)] == [64, 36]
    assert [q.count for q in block_queries(replace(wanted, count=128), (EAST,), NOW)] == [64]
    verdict = next(v for v in verdicts(wanted, NOW) if v.way is Way.CAPACITY_BLOCK)
    assert verdict.fits
    assert "several blocks: 64 + 36" in next(r.sentence for r in verdict.reasons)
    offers = (block("9", 1, count=64), block("9", 1, count=36, zone="use2-az2"))
    plan = planned(wanted, *offers)
    assert plan.choices == ()
    assert all(is_piece(r.offer, wanted) for r in plan.rejected)
    assert "SPLIT  a block holds 64 instances at most: several blocks: 64 + 36" in plan_text(plan, "AWS")


def test_plans_are_asked_in_powers_of_two_at_both_ends_and_between() -> None:
    """SearchTrainingPlanOfferings takes any length; counts are those that are sold."""
    wanted = need(
        instance_type="ml.p5en.48xlarge", target=Target.TRAINING_JOB, count=3, count_wanted=9,
        duration=60 * HOUR, longest=100 * HOUR,
    )  # fmt: skip
    asked = training_plan_queries(wanted, (EAST,), NOW)
    assert {q.count for q in asked} == {8, 4}
    assert list(dict.fromkeys(q.duration_hours for q in asked)) == [60, 72, 96, 100]
    alone = replace(wanted, count_wanted=None)
    why = next(v.why_not for v in verdicts(alone, NOW) if v.way is Way.TRAINING_PLAN)
    assert why == "sold in 1, 2, 4, 8, 16, 32 or 64, not 3; nearest 2 or 4"


def test_each_layer_of_a_profile_is_asked_beside_the_peak() -> None:
    """2, and 8 from 48 h on, for 4 days: 8 for 4 days; 2 for 4 days and 6 for the last 2."""
    wanted = need(
        count=8, duration=4 * DAY, longest=None, start=START,
        profile=(Level(0 * HOUR, 2), Level(48 * HOUR, 8)),
    )  # fmt: skip
    asked = block_queries(wanted, (EAST,), NOW)
    assert [(q.count, q.duration_hours // 24) for q in asked] == [(8, 4), (2, 4), (6, 2)]
    assert asked[2].start_after == START + 2 * DAY - timedelta(seconds=1)
    moving = replace(wanted, start=None, earliest_start=START)
    assert [q.start_after for q in block_queries(moving, (EAST,), NOW)] == [START, START, START + 2 * DAY]


@settings(deadline=None, max_examples=150)
@given(
    st.integers(1, 60 * 24), st.integers(0, 60 * 24), st.integers(1, 200), st.integers(0, 40),
    st.sampled_from(list(Goal)), st.booleans(),
)  # fmt: skip
def test_no_question_is_asked_twice_or_cannot_be_answered(
    hours: int, more: int, count: int, extra: int, goal: Goal, fixed: bool
) -> None:
    """Whatever the need: steps of the ladder, 1 to 64 instances, each question once, each long enough."""
    wanted = need(
        duration=hours * HOUR, longest=(hours + more) * HOUR, count=count, count_wanted=count + extra,
        goal=goal, start=START + 3 * HOUR if fixed else None,
    )  # fmt: skip
    asked = block_queries(wanted, (EAST, WEST), NOW)
    assert len(set(asked)) == len(asked)
    for query in asked:
        assert 1 <= query.count <= 64
        assert ladder.on_ladder(query.duration_hours * HOUR)
        assert query.duration_hours >= hours


# -- how answers are ranked --------------------------------------------------------------------------------
FEES = {5: "15157.92", 6: "18189.50", 7: "21221.09", 8: "24252.67", 9: "27284.26"}


def test_the_shortest_that_meets_the_need_comes_first_and_each_length_is_told() -> None:
    """One line of lengths with the numbers to buy by; what is over the budget stands apart."""
    offers = [block(fee, days) for days, fee in FEES.items()]
    plan = planned(need(budget=Money(Decimal(25_000))), *reversed(offers))
    assert lasting(plan) == [5, 6, 7, 8]
    assert plan.choices[0].reasons[0] == "the shortest that meets the need"
    text = plan_text(plan, "AWS")
    words = " ".join(text.split())
    assert "LASTS 5 days 15,157.92 (#1); 6 days 18,189.50 (#2); 7 days 21,221.09 (#3)" in words
    assert "over the budget: 9 days $27,284.26" in words
    assert "5 to 9 days, the shortest that does" in words
    assert "BEST h200#1 capacity block, 5 days" in words
    assert max(map(len, text.splitlines())) <= 80


def test_the_longest_that_the_budget_pays() -> None:
    """9 days are over it, so 8; of equal length the cheap one."""
    offers = [block(fee, days) for days, fee in FEES.items()]
    dearer = block("24900", 8, zone="use2-az2")
    plan = planned(need(goal=Goal.LONGEST, budget=Money(Decimal(25_000))), dearer, *offers)
    assert lasting(plan)[:3] == [8, 8, 7]
    assert plan.choices[0].cost.total == Money(Decimal("24252.67"))


def test_the_cheapest_for_a_usable_hour_compares_accelerators() -> None:
    """Two days of 8 GPUs cost more than one day, and less for a GPU's hour; a dearer type stands last."""
    wanted = need(
        goal=Goal.CHEAPEST, longest=2 * DAY, count=1, duration=DAY, budget=None, instance_type="p5.48xlarge",
        alternatives=(TypeCount("p5.4xlarge", 8, 8),),
    )  # fmt: skip
    day = block("1146.17", 1, count=1, instance_type="p5.48xlarge")
    days = block("2000.00", 2, count=1, instance_type="p5.48xlarge")
    small = block("1300.00", 1, count=8, instance_type="p5.4xlarge")
    plan = planned(wanted, small, day, days)
    assert [c.offer for c in plan.choices] == [days, day, small]
    assert "BEST   h200#1  capacity block, 2 days, 1 x p5.48xlarge" in plan_text(plan, "AWS")


def test_a_way_fits_if_one_of_the_types_can_be_had_by_it() -> None:
    """No block of g6e is sold, and p5 would do as well: blocks are asked, for p5 alone."""
    wanted = need(instance_type="g6e.48xlarge", longest=None, alternatives=(TypeCount("p5.48xlarge", 2, 2),))
    assert next(v.fits for v in verdicts(wanted, NOW) if v.way is Way.CAPACITY_BLOCK)
    assert {q.instance_type for q in block_queries(wanted, (EAST,), NOW)} == {"p5.48xlarge"}
    alone = replace(wanted, alternatives=())
    why = next(v.why_not for v in verdicts(alone, NOW) if v.way is Way.CAPACITY_BLOCK)
    assert why == "g6e.48xlarge is not sold in Capacity Blocks"
    assert block_queries(alone, (EAST,), NOW) == ()


def test_each_type_is_compared_with_its_own_rates() -> None:
    """A price that is implausible for one type and good for the other; break-even by the type's own rate."""
    wanted = need(
        longest=None, count=1, duration=DAY, budget=None, instance_type="p5.48xlarge",
        alternatives=(TypeCount("p5.4xlarge", 1, 1),),
    )  # fmt: skip
    rates = tuple(
        HourlyRate(Way.ON_DEMAND, EAST, "on-demand", Money(Decimal(hourly)), instance_type=kind)
        for kind, hourly in (("", "55.04"), ("p5.4xlarge", "6.88"))
    )
    small = block("100.00", 1, count=1, instance_type="p5.4xlarge")
    large = block("100.00", 1, count=1, instance_type="p5.48xlarge")
    plan = planned(wanted, small, large, rates=rates)
    first, second = plan.choices
    assert first.offer.instance_type == "p5.4xlarge"
    assert first.cost.break_even is not None
    assert first.cost.break_even.rate.hourly == Money(Decimal("6.88"))
    assert second.cost.total is None
    assert "implausibly low" in second.cost.doubt


def test_the_wanted_count_comes_before_the_least() -> None:
    """Four where four are to be had; two fit as well and say what they lack."""
    wanted = need(count_wanted=4, budget=None)
    plan = planned(wanted, block("15157.92", 5), block("30315.84", 5, count=4))
    assert [c.offer.count for c in plan.choices] == [4, 2]
    assert "It holds 2 of the 4 that are wanted at best." in plan.choices[1].cares
    assert misfits(block("1", 5, count=1), wanted, NOW) == ("holds 1 x p5en.48xlarge of the 2 wanted",)
    assert misfits(block("1", 5, count=5), wanted, NOW) == ("holds 5 x p5en.48xlarge",)


def test_zones_without_a_subnet_are_marked_and_stand_behind_their_equals() -> None:
    """Scenario D3: five zones have subnets; offers elsewhere fit, and need one first."""
    wanted = need(subnets=(Subnet("use2-az2"), Subnet("usw2-az2")))
    plan = planned(wanted, block("15157.92", 5), block("15157.92", 5, zone="use2-az2"))
    assert [c.offer.zones for c in plan.choices] == [("use2-az2",), ("use2-az1",)]
    assert "It needs a subnet: the need names none in use2-az1." in plan.choices[1].cares
    assert plan_text(plan, "AWS").count("needs a subnet") == 1
    assert "needs a subnet" not in plan_text(planned(need(), block("15157.92", 5)), "AWS")


def test_the_overshoot_of_the_ladder_is_named() -> None:
    """60 h become 72; what lasts longer than wanted is paid as well."""
    wanted = need(duration=60 * HOUR, longest=100 * HOUR)
    cares = planned(wanted, block("9000", 3)).choices[0].cares
    assert "No block lasts 2 d 12 h: the next step is 12 h longer, and paid." in cares
    longer = planned(need(longest=None), block("18000", 6)).choices[0].cares
    assert "It lasts 24 h longer than wanted, and all of it is paid." in longer


def test_a_gap_is_taken_up_to_what_the_need_allows() -> None:
    """Field fault 53: two parts of 48 h with 48 h between; over an hour is too long for some."""
    wanted = need(
        instance_type="ml.p5en.48xlarge", target=Target.TRAINING_JOB, duration=4 * DAY, longest=None
    )
    parts = tuple(
        Segment(Window(START + a * DAY, START + b * DAY), "use2-az1", None, "ml.p5en.48xlarge", 2)
        for a, b in ((0, 2), (4, 6))
    )
    query = Query(Way.TRAINING_PLAN, EAST, "ml.p5en.48xlarge", 2, 96, Target.TRAINING_JOB)
    offer = Offer(
        Way.TRAINING_PLAN, EAST, "tpo-1", parts, 2, "ml.p5en.48xlarge", Money(Decimal(9000)),
        ("training-job",), NOW, query,
    )  # fmt: skip
    assert misfits(offer, wanted, NOW) == ()
    assert misfits(offer, replace(wanted, gap_at_most=2 * DAY), NOW) == ()
    too_long = misfits(offer, replace(wanted, gap_at_most=HOUR), NOW)
    assert too_long == ("comes in 2 parts with a gap of 2 d, over the 1 h allowed",)


def test_the_same_offer_found_by_two_questions_is_one() -> None:
    """Field fault 46: each once, though two lengths find it."""
    one = block("15157.92", 5)
    again = replace(one, query=replace(one.query, duration_hours=144))
    plan = planned(need(), one, again)
    assert len(plan.choices) == 1


def test_a_length_that_nobody_sells_now_is_told_only_when_all_answered() -> None:
    """8 days: every place answered, none has one. 9 days: one place was throttled, so it is not known."""
    offer = block("15157.92", 5)
    asked = {q.duration_hours: q for q in block_queries(need(), (EAST,), NOW)}
    answers = [
        PlaceAnswer(offer.way, EAST, PlaceOutcome.OFFERS, NOW, "", (offer,), asked[120]),
        PlaceAnswer(offer.way, EAST, PlaceOutcome.NONE_ON_SALE, NOW, "", (), asked[192]),
        PlaceAnswer(offer.way, EAST, PlaceOutcome.THROTTLED, NOW, "", (), asked[216]),
    ]
    text = plan_text(make_plan(need(), answers, (), NOW), "AWS")
    assert "nothing on sale: 8 days\n" in text
    assert "us-east-2 2 of 3, throttled, 1 offer before" in " ".join(text.split())


def test_parts_beside_are_listed_with_what_to_do() -> None:
    """Field fault 42: the head on demand, in the zone of the block, with two types that stand in for it."""
    from berth.planner.need_file import read_need

    text = (
        'name = "train"\nduration = "1d"\ntarget = "instances"\nregions = ["us-east-2"]\n'
        '[[parts]]\nname = "nodes"\ntype = "p5.48xlarge"\ncount = 8\n'
        '[[parts]]\nname = "head"\ntype = "c7g.2xlarge"\n'
    )
    wanted = read_need(text, "need.toml", NOW)
    plan = planned(wanted, block("9169.34", 1, count=8, instance_type="p5.48xlarge"))
    words = " ".join(plan_text(plan, "AWS").split())
    assert "BESIDE head: 1 x c7g.2xlarge, on-demand, zone of the block, use2-az1; else c8g.2xlarge" in words
    assert Plan.from_json(plan.to_json()) == plan


def test_a_weekday_names_a_day_only_within_a_week() -> None:
    """`Wed 2 11:30-Wed 6 11:30` would be five weeks or none: longer windows name the month."""
    short = planned(need(start=START, duration=7 * DAY, longest=None), block("21221.09", 7))
    assert "Wed 2 11:30-Wed 9 11:30" in plan_text(short, "AWS")
    wanted = need(start=START, duration=35 * DAY, longest=None, budget=None)
    assert "2 Dec 11:30-6 Jan 11:30" in plan_text(planned(wanted, block("106105.44", 35)), "AWS")
