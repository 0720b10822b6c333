"""Capacity Blocks in a plan: the ladder, what is asked, what it costs, when it saves nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.planner import ladder
from berth.planner.choose import make_plan
from berth.planner.cost import HourlyRate
from berth.planner.launch import Launch
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.planner.plan import Plan
from berth.planner.queries import block_queries, boundary_after, boundary_before
from berth.planner.surcharge import OsRate
from berth.planner.verdicts import verdicts
from berth.planner.wording import plan_text
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
START = datetime(2026, 12, 2, 11, 30, tzinfo=UTC)
HEADER = "AWS  account 1111-2222-3333, role planner-readonly, us-east-1"
Make = Callable[..., Any]


def need(**changes: Any) -> Need:
    """One p5.48xlarge for a day."""
    base = Need("block-1", "p5.48xlarge", 1, timedelta(days=1), Target.INSTANCES, ("us-east-1",))
    return replace(base, **changes)


def block(
    fee: str | None, wanted: Need, *, starts: datetime = START, zone: str = "use1-az4", **changes: Any
) -> Offer:
    """An offer of a block that lasts as long as `wanted`."""
    region = changes.pop("region", "us-east-1")
    hours = ladder.hours(wanted.duration)
    query = Query(
        Way.CAPACITY_BLOCK, region, wanted.instance_type, wanted.count, hours, Target.INSTANCES,
        platform=wanted.platform,
    )  # fmt: skip
    window = Window(starts, starts + changes.pop("lasts", wanted.duration))
    part = Segment(window, zone, "us-east-1a", wanted.instance_type, wanted.count)
    made = Offer(
        Way.CAPACITY_BLOCK, region, "cb-0123456789abcdef0", (part,), wanted.count, wanted.instance_type,
        None if fee is None else Money(Decimal(fee)), ("instances",), NOW, query,
    )  # fmt: skip
    return replace(made, **changes)


def on_demand(hourly: str | None, region: str = "us-east-1", **changes: Any) -> HourlyRate:
    """EC2's rate."""
    money = None if hourly is None else Money(Decimal(hourly))
    made = HourlyRate(Way.ON_DEMAND, region, "on-demand", money, date(2026, 9, 25), "table")
    return replace(made, **changes)


def answered(*offers: Offer, region: str = "us-east-1", outcome: str = "offers") -> PlaceAnswer:
    """A place's answer."""
    return PlaceAnswer(Way.CAPACITY_BLOCK, region, PlaceOutcome(outcome), NOW, "", offers)


def planned(wanted: Need, *offers: Offer, rates: tuple[HourlyRate, ...] = (), **more: Any) -> Plan:
    """The plan from one place."""
    return make_plan(wanted, [answered(*offers)], rates or (on_demand("55.04"),), NOW, **more)


# -- the ladder ------------------------------------------------------------------------------------------
def test_the_ladder_has_38_steps() -> None:
    """By the day to 14, by the week to 182; 14 days count once."""
    assert len(ladder.LADDER) == len(set(ladder.LADDER)) == 38
    assert ladder.LADDER[13:15] == (timedelta(days=14), timedelta(days=21))


@pytest.mark.parametrize(
    ("shortest", "longest", "days"),
    [(60, 100, [3, 4]), (15 * 24, 40 * 24, [21, 28, 35]), (24, 24, [1]), (25, 47, [])],
)
def test_a_range_becomes_the_steps_inside(shortest: int, longest: int, days: list[int]) -> None:
    """Field fault 46: 60 to 100 h are 72 and 96; 15 to 40 days are 21, 28, 35."""
    steps = ladder.steps_between(timedelta(hours=shortest), timedelta(hours=longest))
    assert [step.days for step in steps] == days


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 182 * 24))
def test_steps_surround_every_length(hours: int) -> None:
    """The next step is the first that is long enough, and one of the steps around."""
    span = timedelta(hours=hours)
    step = ladder.step_at_least(span)
    assert step is not None
    assert step >= span
    assert not any(span <= other < step for other in ladder.LADDER)
    assert step in ladder.steps_around(span)


def verdict(wanted: Need, way: Way, owned: int = 0) -> str:
    """Why the way does not fit; '' when it does."""
    return next(v.why_not for v in verdicts(wanted, NOW, owned) if v.way is way)


def test_seventeen_days_are_refused_for_blocks_and_valid_for_plans() -> None:
    """The verdict on each way says so, with the nearest lengths."""
    why = verdict(need(duration=timedelta(days=17)), Way.CAPACITY_BLOCK)
    assert why.endswith("not 17 days; nearest 14 days or 21 days")
    plan = need(duration=timedelta(days=17), target=Target.ENDPOINT, instance_type="ml.p5.48xlarge")
    assert verdict(plan, Way.TRAINING_PLAN) == ""
    assert verdict(need(duration=timedelta(days=17)), Way.ON_DEMAND) == ""


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"count": 257}, 0, "256 over all blocks of an account: 0 owned, 257 more wanted"),
    ({"count": 8}, 250, "256 over all blocks of an account: 250 owned, 8 more wanted"),
    ({"platform": "Windows"}, 0, "not Windows"),
    ({"instance_type": "g6e.48xlarge"}, 0, "g6e.48xlarge is not sold in Capacity Blocks"),
    ({"start": NOW + timedelta(weeks=9)}, 0, "8 weeks ahead"),
    ({"duration": timedelta(hours=36)}, 0, "not 36 h; nearest 1 day or 2 days"),
]


@pytest.mark.parametrize(("wanted", "owned", "why"), REFUSED, ids=[r[2][:30] for r in REFUSED])
def test_what_no_block_can_be_is_refused_locally(wanted: dict[str, Any], owned: int, why: str) -> None:
    """Field fault 37 and the rules of the guide; odd counts are asked, since nobody says that they are not
    sold."""
    assert why in verdict(need(**wanted), Way.CAPACITY_BLOCK, owned)
    assert verdict(need(count=3), Way.CAPACITY_BLOCK) == ""


# -- what is asked ---------------------------------------------------------------------------------------
def test_a_start_on_the_grid_is_asked_exactly() -> None:
    """24 h from 11:30Z: that window and no other."""
    (query,) = block_queries(need(start=START), ("us-east-1",), NOW)
    assert (query.duration_hours, query.platform, query.target) == (24, "Linux/UNIX", Target.INSTANCES)
    assert query.start_after == START - timedelta(seconds=1)
    assert query.end_before == START + timedelta(days=1, seconds=1)


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 50 * 24 * 60), st.sampled_from(ladder.LADDER))
def test_a_fixed_start_asks_for_a_step_that_can_cover_it(minutes: int, lasts: timedelta) -> None:
    """Wherever the start lies: the step is one of AWS's, and the bounds leave room for it."""
    wanted = need(start=NOW + timedelta(minutes=minutes), duration=lasts)
    queries = block_queries(wanted, ("us-east-1",), NOW)
    window = wanted.fixed_window
    assert window is not None
    if not queries:
        assert boundary_after(window.end) - boundary_before(window.start) > ladder.LADDER[-1]
        return
    (query,) = queries
    asked = timedelta(hours=query.duration_hours)
    assert ladder.on_ladder(asked)
    assert asked >= lasts
    assert query.end_before is not None
    assert query.end_before >= boundary_after(window.end)
    assert query.end_before - (query.start_after or NOW) >= asked
    assert query.start_after is None or NOW < query.start_after <= window.start


def test_today_is_not_sent_as_a_start_in_the_past() -> None:
    """Field fault 52: a start from now on sends no start at all, and the last day counts whole."""
    end = datetime(2026, 12, 6, 8, tzinfo=UTC)
    (query,) = block_queries(need(earliest_start=NOW, latest_end=end), ("us-east-1",), NOW)
    assert (query.start_after, query.end_before) == (None, end)


# -- what it costs ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(("count", "fee"), [(1, "830.59"), (4, "3322.37")])
def test_a_day_at_34_608_an_hour(count: int, fee: str) -> None:
    """Total first, one rounding, half up; break-even at 15 h 06 min, 62.9 % of paid, 64.2 % of usable."""
    total = (Money(Decimal("34.608")) * (24 * count)).rounded()
    assert total == Money(Decimal(fee))
    wanted = need(count=count)
    plan = planned(wanted, block(fee, wanted))
    even = plan.choices[0].cost.break_even
    assert even is not None
    assert even.after == timedelta(hours=15, minutes=6)
    assert even.share_of_paid is not None
    assert (f"{even.share_of_paid:.3f}", f"{even.share:.3f}") == ("0.629", "0.642")
    said = " ".join(plan_text(plan, HEADER).split())
    assert "from 15 h 06 min of use" in said
    assert "62.9 % of the 24 h paid, 64.2 % of the 23 h 30 min you can use" in said


def test_fee_and_operating_system_are_two_lines() -> None:
    """Field fault 17: 5,000.00 and 24 x 0.336 are 5,008.06; the surcharge is no price, and the unknown
    on-demand rate does not lead."""
    wanted = need(instance_type="p5e.48xlarge", platform="Ubuntu Pro")
    rate = OsRate("us-east-1", "Ubuntu Pro", Money(Decimal("0.336")), "Price List")
    plan = planned(wanted, block("5000.00", wanted), rates=(on_demand(None),), os_rates=[rate])
    cost = plan.choices[0].cost
    assert (cost.fee, cost.total) == (Money(Decimal("5000.00")), Money(Decimal("5008.06")))
    text = plan_text(plan, HEADER)
    assert "cost $5,000.00 fee" in text
    assert "+ $8.06 operating system (Ubuntu Pro, 0.336/h while instances run, 24 h)" in text
    assert "unknown [1]" in text
    assert "berth buy block-1#1 --max 5000.00" in text, "what is approved is what the purchase takes"


def test_an_unknown_operating_system_fee_makes_no_total() -> None:
    """The block can be bought, its fee is known, and its total is not made up."""
    wanted = need(platform="SUSE Linux")
    plan = planned(wanted, block("1146.17", wanted), block("1200.00", need(), offering_id="cb-2"))
    assert [c.fee for c in plan.choices] == [Money(Decimal("1200.00")), Money(Decimal("1146.17"))]
    unknown = plan.choices[1].cost
    assert (unknown.fee, unknown.total) == (Money(Decimal("1146.17")), None)
    assert "operating system fee of SUSE Linux is not known" in unknown.doubt


@pytest.mark.parametrize("fee", [None, "0", "8.06", "120"])
def test_a_block_for_nothing_is_unknown_and_stands_last(fee: str | None) -> None:
    """Zero, missing, or the price of its operating system."""
    plan = planned(need(), block(fee, need()), block("1146.17", need(), offering_id="cb-2"))
    assert [c.cost.total is None for c in plan.choices] == [False, True]


def test_the_same_offer_found_twice_is_one() -> None:
    """Field fault 46: the same id, or the same place, time and price, from questions for two durations."""
    one = block("1146.17", need())
    other = replace(one, query=replace(one.query, duration_hours=48))
    renamed = replace(other, offering_id="cb-other")
    dearer = replace(other, offering_id="cb-dear", fee=Money(Decimal("1200")))
    plan = make_plan(need(), [answered(one), answered(other, renamed, dearer)], (), NOW)
    assert [c.offer.offering_id for c in plan.choices] == [one.offering_id, "cb-dear"]


def test_a_zone_that_needs_an_opt_in_comes_second_and_says_so() -> None:
    """The same price in a Local Zone."""
    local = block("1146.17", need(), offering_id="cb-local", zone="use1-atl2-az1")
    (part,) = local.segments
    local = replace(local, segments=(replace(part, zone_type="local-zone", zone_name="us-east-1-atl-2a"),))
    plan = planned(need(), local, block("1146.17", need(), starts=START + timedelta(days=1)))
    assert [c.offer.offering_id for c in plan.choices][1] == "cb-local"
    assert "It is in Local Zone us-east-1-atl-2a: opt in" in " ".join(plan.choices[1].cares)
    assert max(map(len, plan_text(plan, HEADER).splitlines())) <= 80


# -- what is said ----------------------------------------------------------------------------------------
PICTURE = """\
AWS  account 1111-2222-3333, role planner-readonly, us-east-1
Need   p5en-1207: 2 x p5en.48xlarge (16 H200), EC2 instances, 5 days, us-east-2,
       us-west-2, us-east-1, one zone,
       from Mon 2026-12-07 05:00Z (00:00 New York), start may move
Asked  INCOMPLETE, 2 of 3 regions searched: us-east-1 no quota (quota
       L-4F9BB70B), us-east-2 2 offers, us-west-2 none on sale; `berth doctor`
       says what to do

BEST   p5en-1207#1  capacity block  $15,157.92 up front, no refund, no cancel
  id   cb-0123456789abcdef0
  why  of the ways that can hold instances only a block promises a time
  cost IT SAVES NOTHING: 63.158/h against 63.296/h on demand [1]. Used to the
       last usable minute it costs $30.18 MORE than on-demand. You buy the date.
  care AWS takes the instances from 11:00Z, 30 min before the paid end.
  use  0 h ▁▁▁▂▂▂▃▃▃▄▄▄▅▅▅▆▆▆▇▇▇███ 119:30  on-demand: 0 to $15,127.74
  more a day more costs $3,031.59
#  WAY            ZONE ID   WINDOW UTC              USABLE     TOTAL USD  /GPU-H
1  capacity-block use2-az1  7 Dec 11:30-12 Dec 11:30 119:30    15,157.92   7.928
2  capacity-block use2-az1  7 Dec 11:30-16 Dec 11:30 215:30    27,284.26   7.913
-  on-demand      us-east-2 on the day, no promise  119:30 15,127.74 [1]   7.912
-  spot           use2-az1  may end on 2 min notice 119:30  6,496.98 [2]   3.398
-  odcr           us-east-2 if granted, idle paid   119:30 15,127.74 [3]   7.912
NO sagemaker-od, training-plan   SageMaker only, gives no instances of your own
TRY    1 on-demand: the start may move, and it costs nothing while it says no
       2 capacity-block: promises it, if on-demand goes on saying no
       3 other Regions, beside the 3 that you name
       4 quieter hours: nobody publishes them; your own are in `berth history`
                  LAUNCHES   BUYS       PAID             CANCEL   ENDS
   on-demand      you        nobody     by the second    any time may be lost
   spot           you        nobody     by the second    any time 2 min notice
   odcr           you        you        idle too         any time its end date
   capacity-block you        you, once  all at purchase  no       taken early
IF     it survives two minutes' notice: Spot, 57 % less, with #1 as fall-back
BUY    berth buy p5en-1207#1 --max 15157.92    asks, re-reads the fee, buys once
[1] 63.296/h on-demand, seen 2026-09-25 (2 months old)
[2] 27.184/h spot, live, DescribeSpotPriceHistory
[3] 63.296/h reserved, used or idle, seen 2026-09-25 (2 months old)"""


def test_the_picture_of_a_block_that_saves_nothing() -> None:
    """Two p5en for five days: 15,157.92 against 15,127.74 on demand, 30.18 more at full use."""
    monday = datetime(2026, 12, 7, 11, 30, tzinfo=UTC)
    wanted = need(
        name="p5en-1207", instance_type="p5en.48xlarge", count=2, duration=timedelta(days=5),
        regions=("us-east-2", "us-west-2", "us-east-1"), time_zone="America/New_York",
        earliest_start=monday - timedelta(hours=6, minutes=30), launch=Launch(image="ami-0123456789abcdef0"),
    )  # fmt: skip
    five = block("15157.92", wanted, starts=monday, zone="use2-az1", region="us-east-2")
    nine = block(
        "27284.26", wanted, starts=monday, zone="use2-az1", region="us-east-2", offering_id="cb-9",
        lasts=timedelta(days=9),
    )  # fmt: skip
    refused = replace(answered(region="us-east-1", outcome="no-quota"), detail="quota L-4F9BB70B")
    spot = HourlyRate(
        Way.SPOT, "us-east-2", "spot", Money(Decimal("27.1840")), NOW.date(), "DescribeSpotPriceHistory",
        live=True, zone_id="use2-az1",
    )  # fmt: skip
    plan = make_plan(
        wanted,
        [
            answered(five, nine, region="us-east-2"),
            answered(region="us-west-2", outcome="none-on-sale"),
            refused,
        ],
        [on_demand("63.296", "us-east-2"), spot],
        NOW,
    )
    assert plan.incomplete
    assert plan_text(plan, HEADER) == PICTURE


def test_four_words_for_four_places_and_never_none_found() -> None:
    """Field fault 48: nothing on sale, not allowed, not sold, throttled: 2 of 4 regions searched."""
    said = ("none-on-sale", "not-allowed", "not-sold-here", "throttled")
    answers = [answered(region=f"r-{n}", outcome=outcome) for n, outcome in enumerate(said)]
    plan = make_plan(need(), answers, (), NOW)
    text = " ".join(plan_text(plan, HEADER).split())
    assert (
        "INCOMPLETE, 2 of 4 regions searched: r-1 not allowed, r-3 throttled, r-0 none on sale, r-2 not sold"
        in text
    )
    assert "no offer was seen, but not every place answered" in text
    assert "none found" not in text


def test_a_plan_of_a_block_survives_json() -> None:
    """Platform, zone type, surcharge, question: whole; and a document of the first release is read too."""
    wanted = need(platform="Ubuntu Pro", tags=(("team", "a"),))
    rate = OsRate("us-east-1", "Ubuntu Pro", Money(Decimal("0.336")), "Price List")
    plan = planned(wanted, block("1146.17", wanted), os_rates=[rate], account="1" * 12)
    document = json.loads(json.dumps(plan.to_json()))
    assert Plan.from_json(document) == plan
    assert plan.choices[0].offer.platform == "Ubuntu Pro"
    for gone in ("owned", "unread"):
        del document[gone]
    for gone in ("platform", "tags", "launch"):
        del document["need"][gone]
    for choice in document["choices"]:
        for gone in ("fee", "surcharge"):
            del choice["cost"][gone]
        del choice["offer"]["query"]["platform"]
    assert Plan.from_json(document).choices[0].cost.fee == plan.choices[0].cost.total


def test_an_offer_of_the_last_page_leads_with_its_whole_id() -> None:
    """Field fault 51: 230 offers, the cheapest last, ranked first and copyable."""
    offers = [
        block(f"{1200 + n}.00", need(), offering_id=f"cb-{n:017x}", zone=f"use1-az{n}") for n in range(229)
    ]
    cheap = block("1146.17", need(), offering_id="cb-0bfad2f7fb1b4478a")
    plan = planned(need(), *offers, cheap)
    text = plan_text(plan, HEADER)
    assert "\n  id   cb-0bfad2f7fb1b4478a\n" in text
    assert "and 220 more that fit, in --json" in text


def test_a_block_without_an_image_says_so_before_it_is_paid() -> None:
    """A block is paid while somebody looks for an image, so the plan tells that none is named."""
    wanted = need(instance_type="p5.48xlarge")

    def cares(launch: Launch | None) -> str:
        known = replace(wanted, launch=launch)
        plan = make_plan(known, [answered(block("1146.17", known))], [], NOW)
        return " ".join(plan.choices[0].cares)

    assert "No image is named yet" in cares(None)
    assert "No image is named yet" in cares(Launch(role="r"))
    assert "No image is named yet" not in cares(Launch(image="ami-0123456789abcdef0"))
    assert "No image is named yet" not in cares(Launch(template="lt-0123456789abcdef0"))
