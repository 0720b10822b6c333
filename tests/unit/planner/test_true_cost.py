"""Where an offer's money goes, how its cost runs over use, what more would cost, what was published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.cli.plot import LOOKS, check_plot, draw, legend
from berth.facts.price_reviews import next_review
from berth.planner.choose import make_plan
from berth.planner.cost import HourlyRate, cost_of, pay_as_you_go
from berth.planner.costs.breakdown import breakdown
from berth.planner.costs.curves import Curves, curves, sparkline
from berth.planner.costs.published import gap
from berth.planner.costs.what_if import extend_later, longer_ones
from berth.planner.costs.wording import cost_lines
from berth.planner.offers import Offer, Query
from berth.planner.plan import Choice
from berth.planner.platforms import LINUX
from berth.terms.money import Money
from berth.terms.outcomes import BerthError
from berth.terms.ways import Target, Way

FIXTURE = [HealthCheck.function_scoped_fixture]
Make = Callable[..., Any]
SHARES = st.integers(1, 100).map(lambda n: Decimal(n) / 100)
USD = Decimal


def a_choice(offer: Offer, number: int = 1, rate: HourlyRate | None = None) -> Choice:
    """The offer as a choice, its cost worked out."""
    return Choice(number, offer, cost_of(offer, 16, rate, None), (), ())


@settings(deadline=None, max_examples=150, suppress_health_check=FIXTURE)
@given(
    used=SHARES, startup=st.integers(0, 3000), days=st.integers(1, 30), wanted=st.integers(1, 30),
    fee=st.integers(1, 10_000_000).map(lambda n: Decimal(n) / 100),
)  # fmt: skip
def test_the_parts_of_an_offer_never_exceed_the_whole(
    a_need: Make, an_offer: Make, used: Decimal, startup: int, days: int, wanted: int,
    fee: Decimal,
) -> None:  # fmt: skip
    """Times add up to the paid time at most, money to the fee at most, but for a cent a part."""
    need = a_need(
        utilisation=used, startup=timedelta(minutes=startup), duration=timedelta(days=min(days, wanted))
    )
    offer = an_offer(str(fee), days=days)
    cost = cost_of(offer, 16, None, None)
    parts = breakdown(need, offer, cost, 16)
    assert parts is not None
    shares = [share for share in (parts.taken_back, parts.overshoot, parts.starting, parts.idle) if share]
    assert len(shares) == 4
    assert sum((s.time for s in shares), timedelta()) <= offer.paid_time
    assert sum(s.money.amount for s in shares) <= fee + Decimal("0.04")
    assert all(s.time >= timedelta(0) for s in shares)
    if parts.per_used_hour is not None and cost.per_usable_hour is not None:
        assert parts.per_used_hour >= cost.per_usable_hour


def test_where_the_money_of_a_day_goes(a_need: Make, an_offer: Make) -> None:
    """24 h for 240.00: half an hour taken back, half an hour of start-up, half of the rest idle."""
    need = a_need(utilisation=Decimal("0.5"), startup=timedelta(minutes=30))
    offer = an_offer("240.00")
    parts = breakdown(need, offer, cost_of(offer, 16, None, None), 16)
    assert parts is not None
    assert (parts.taken_back.money, parts.starting and parts.starting.money) == (Money(USD(5)), Money(USD(5)))
    assert parts.idle is not None
    assert (parts.idle.time, parts.idle.money) == (timedelta(hours=11, minutes=30), Money(USD(115)))
    assert parts.overshoot.time == timedelta(0)
    assert parts.per_used_hour == Money(USD("20.870"))  # 240 / 11.5
    assert parts.per_used_accelerator_hour == Money(USD("1.304"))


def test_what_the_need_does_not_say_is_not_known(a_need: Make, an_offer: Make) -> None:
    """Without utilisation there is no idle time and no price of a used hour."""
    offer = an_offer("240.00")
    parts = breakdown(a_need(), offer, cost_of(offer, 16, None, None), 16)
    assert parts is not None
    assert (parts.starting, parts.idle, parts.per_used_hour) == (None, None, None)
    unknown = an_offer(None)
    assert breakdown(a_need(), unknown, cost_of(unknown, 16, None, None), 16) is None


def test_the_ladders_overshoot_is_money(a_need: Make, an_offer: Make) -> None:
    """Two days bought for a need of one: the second is longer than wanted, less what is taken back."""
    offer = an_offer("480.00", days=2)
    parts = breakdown(a_need(duration=timedelta(hours=24)), offer, cost_of(offer, 16, None, None), 16)
    assert parts is not None
    assert (parts.overshoot.time, parts.overshoot.money) == (timedelta(hours=24), Money(USD(240)))


def the_curves(choice: Choice, *rates: HourlyRate) -> Curves:
    """The curves of a choice against those rates."""
    lines = [pay_as_you_go(rate, choice.offer.count, choice.cost.usable, 16) for rate in rates]
    found = curves(choice, lines)
    assert found is not None
    return found


@settings(deadline=None, max_examples=100, suppress_health_check=FIXTURE)
@given(
    fee=st.integers(100, 10_000_000).map(lambda n: Decimal(n) / 100),
    hourly=st.integers(1, 200_000).map(lambda n: Decimal(n) / 1000),
)
def test_lines_meet_where_the_break_even_is(an_offer: Make, fee: Decimal, hourly: Decimal) -> None:
    """The picture and the break-even of the table are one thing."""
    rate = HourlyRate(Way.SAGEMAKER_ON_DEMAND, "us-east-1", "hosting", Money(hourly))
    choice = a_choice(an_offer(str(fee)), rate=rate)
    picture = the_curves(choice, rate)
    even = choice.cost.break_even
    assert even is not None
    expected = even.after if even.after <= choice.cost.usable else None
    assert picture.meetings[0].after == expected


def test_a_rate_of_next_to_nothing_never_meets_the_offer(an_offer: Make) -> None:
    """A millionth of a dollar an hour, as `[rates]` may say, takes longer than a time can hold."""
    rate = HourlyRate(Way.SAGEMAKER_ON_DEMAND, "us-east-1", "hosting", Money(USD("0.000001")))
    choice = a_choice(an_offer("1000000"), rate=rate)
    even = choice.cost.break_even
    assert even is not None
    assert not even.ever_pays
    assert the_curves(choice, rate).meetings[0].after is None


def test_each_way_is_one_line_with_a_shade_over_its_places(an_offer: Make) -> None:
    """Fourteen places of four ways are four lines, however many prices there are; no two ways look alike."""
    ways = (Way.SAGEMAKER_ON_DEMAND, Way.ON_DEMAND, Way.SPOT, Way.ODCR)
    rates = [
        HourlyRate(way, f"r-{number}", "x", Money(USD(20 + number)), live=True)
        for way in ways
        for number in range(14)
    ]
    home = HourlyRate(Way.SPOT, "us-east-1", "spot", Money(USD(25)), live=True, zone_id="use1-az6")
    picture = the_curves(a_choice(an_offer("228.77")), *rates, home)
    assert [band.near.way for band in picture.bands] == list(ways)
    spot = picture.bands[2]
    assert (spot.near.rate, spot.places) == (home, 15)
    assert (spot.lowest.hourly, spot.highest.hourly) == (Money(USD(20)), Money(USD(33)))
    assert spot.meeting.after is not None
    assert len({LOOKS[way] for way in ways}) == len(ways)


def test_the_legend_says_how_sure_each_price_is(an_offer: Make) -> None:
    """Live or how old, Region assumed, what is promised, the span over places, and what is missing."""
    rates = (
        HourlyRate(
            Way.SAGEMAKER_ON_DEMAND, "us-east-1", "hosting", Money(USD("28.497")), date(2025, 1, 26),
            region_assumed=True,
        ),
        HourlyRate(Way.SPOT, "us-east-1", "spot", Money(USD(5)), live=True, zone_id="use1-az6"),
        HourlyRate(Way.SPOT, "us-east-2", "spot", Money(USD(7)), live=True, zone_id="use2-az1"),
        HourlyRate(Way.SPOT, "us-west-2", "spot", None, note="0.24/h is implausibly low", zone_id="usw2-az4"),
    )  # fmt: skip
    told = legend(the_curves(a_choice(an_offer("228.77")), *rates), date(2026, 12, 1))
    listed = "seen 2025-01-26, 22 months old, Region assumed; may be refused on the day"
    moves = "live; its price moves, and it may end on two minutes' notice"
    assert told == [
        "training-plan, us-east-1: $228.77, paid at the purchase, used or not",
        f"sagemaker-on-demand us-east-1: {listed}",
        f"spot use1-az6: {moves}; 2 places, $117.50 to $164.50, shaded",
        "no line: spot usw2-az4: price not known (0.24/h is implausibly low)",
    ]
    many = [HourlyRate(Way.SPOT, f"r-{number}", "spot", None) for number in range(20)]
    told = legend(the_curves(a_choice(an_offer("228.77")), *many), date(2026, 12, 1))
    assert told[-1] == "no line: 12 more, named in the plan"
    assert len(told) == 10


def test_rates_of_another_type_are_no_lines_of_this_one(an_offer: Make) -> None:
    """Where several types would do, the picture and the meetings are those of the best choice's own type."""
    own = HourlyRate(
        Way.SPOT, "us-east-1", "spot", Money(USD(5)), zone_id="use1-az6", instance_type="ml.trn1.32xlarge"
    )
    other = replace(own, hourly=None, instance_type="ml.p5.48xlarge")
    picture = the_curves(a_choice(an_offer("228.77")), own, other, replace(other, hourly=Money(USD(90))))
    assert [line.rate for line in picture.others] == [own]
    assert picture.left_out == ()


def test_a_way_without_a_price_has_no_line_and_says_so(an_offer: Make) -> None:
    """Unknown is named, never drawn at zero; another currency is not compared."""
    known = HourlyRate(Way.SAGEMAKER_ON_DEMAND, "us-east-1", "hosting", Money(USD("28.497")))
    unknown = HourlyRate(Way.ON_DEMAND, "us-east-1", "on-demand", None)
    other = HourlyRate(Way.SPOT, "eu-west-1", "spot", Money(USD(9), "EUR"), zone_id="euw1-az2")
    picture = the_curves(a_choice(an_offer("228.77")), known, unknown, other)
    assert [line.way for line in picture.others] == [Way.SAGEMAKER_ON_DEMAND]
    assert picture.left_out == ("on-demand us-east-1: price not known", "spot euw1-az2: priced in EUR")
    bars = sparkline(picture, picture.others[0], 8)
    assert (bars[0], bars[-1], list(bars)) == ("▂", "█", sorted(bars))
    assert curves(a_choice(an_offer(None)), []) is None


def siblings(an_offer: Make) -> list[Choice]:
    """Five, six and nine days of one place, and seven of another."""
    made = [
        an_offer(fee, days=days, offering_id=f"o{days}") for days, fee in ((5, "500"), (6, "630"), (9, "880"))
    ]
    return [
        a_choice(offer, n) for n, offer in enumerate([*made, an_offer("400", days=7, zone="use1-az1")], 1)
    ]


def test_what_a_day_more_costs_is_of_the_same_place(an_offer: Make) -> None:
    """Longer offers of the same place and start, shortest first; another zone is another thing."""
    choices = siblings(an_offer)
    found = longer_ones(choices[0], choices)
    assert [(one.more.days, one.extra.amount, one.a_day.amount) for one in found] == [
        (1, Decimal(130), Decimal("130.00")),
        (4, Decimal(380), Decimal("95.00")),
    ]
    assert longer_ones(choices[2], choices) == ()


def test_extending_later_is_reckoned_at_the_rate_of_the_shorter_one(an_offer: Make, now: datetime) -> None:
    """Nine days now cost 880; six now and three later about 945, at 105 a day."""
    choices = siblings(an_offer)
    later = extend_later(choices[2], choices, now.date())
    assert later is not None
    assert (later.now.amount, later.later.amount, later.saved_for_now.amount) == (
        Decimal(630), Decimal("315.00"), Decimal("250.00"),
    )  # fmt: skip
    assert extend_later(choices[0], choices, now.date()) is None


def test_an_announced_review_ends_with_its_month() -> None:
    """After it nothing is announced, and for plans nothing ever was: not known, not none."""
    assert next_review(Way.CAPACITY_BLOCK, date(2027, 1, 31)) is not None
    assert next_review(Way.CAPACITY_BLOCK, date(2027, 2, 1)) is None
    assert next_review(Way.TRAINING_PLAN, date(2026, 12, 1)) is None


def a_block(an_offer: Make, fee: str, **changes: Any) -> Offer:
    """A day of one p5.48xlarge as a block in us-east-1."""
    query = Query(Way.CAPACITY_BLOCK, "us-east-1", "p5.48xlarge", 1, 24, None, platform=LINUX)
    return an_offer(
        fee,
        way=Way.CAPACITY_BLOCK,
        instance_type="p5.48xlarge",
        targets=("instances",),
        query=query,
        **changes,
    )


def test_a_published_price_is_shown_with_age_and_gap(an_offer: Make, now: datetime) -> None:
    """The table's 47.757 against a live 50.00/h: 4.5 % below, and how old it is (field fault 55)."""
    found = gap(a_block(an_offer, "1200.00"))
    assert found is not None
    assert found.percent == Decimal("4.5")
    said = found.sentence(now.date())
    assert said.startswith("published 47.757/h, ")
    assert said.endswith(" old, 4.5 % below the live offer of 50.00/h")
    assert gap(a_block(an_offer, "1146.17")) is None  # 47.757 an hour: nothing to say
    assert gap(a_block(an_offer, "1200.00", region="eu-nowhere-1")) is None
    assert gap(an_offer("228.77")) is None  # nobody publishes fees of plans


def test_the_lines_of_true_cost_fit_eighty_columns(
    a_need: Make, an_offer: Make, an_answer: Make,
    rates: tuple[HourlyRate, ...], now: datetime,
) -> None:  # fmt: skip
    """Bars, where the money goes and what an hour of use costs, in words."""
    need = a_need(utilisation=Decimal("0.6"), startup=timedelta(minutes=45))
    plan = make_plan(need, [an_answer(an_offer())], rates, now)
    assert plan.best is not None
    lines = cost_lines(plan, plan.best)
    assert all(len(line) <= 80 for line in lines)
    text = "\n".join(lines)
    assert "23:30  on-demand: 0 to $669.68" in text
    assert "$7.15 start-up (0 h 45 min)" in text
    assert "so an hour of use costs 16.76 an instance, 1.047 an accelerator" in text
    unknown = make_plan(need, [an_answer(an_offer(None))], rates, now)
    assert cost_lines(unknown, unknown.choices[0]) == []


@pytest.mark.parametrize("name", ["cost.svg", "cost.png"])
def test_a_plot_is_a_file_of_its_kind_and_always_the_same(
    name: str, tmp_path: Path, a_need: Make, an_offer: Make,
    an_answer: Make, rates: tuple[HourlyRate, ...], now: datetime,
) -> None:  # fmt: skip
    """The same plan gives the same bytes; what has no line is named."""
    plan = make_plan(a_need(), [an_answer(an_offer())], rates, now)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    files = [check_plot(str(tmp_path / folder / name)) for folder in ("a", "b")]
    for file in files:
        assert draw(plan, file).startswith(f"drawn: {file}")
    one, other = (file.read_bytes() for file in files)
    assert one == other
    assert one.startswith(b"<?xml" if name.endswith("svg") else b"\x89PNG")


def test_a_plot_that_cannot_be_is_refused_before_anything_is_asked(
    tmp_path: Path, a_need: Make, rates: tuple[HourlyRate, ...], now: datetime
) -> None:
    """Another ending, a plan without a choice, a folder that is not there."""
    with pytest.raises(BerthError, match="must end in"):
        check_plot("cost.pdf")
    with pytest.raises(BerthError, match="no such folder"):
        check_plot(str(tmp_path / "nowhere" / "cost.svg"))
    with pytest.raises(BerthError, match="nothing to draw"):
        draw(make_plan(a_need(), [], rates, now), tmp_path / "cost.svg")


def test_a_plot_into_a_missing_folder_says_so(
    tmp_path: Path, a_need: Make, an_offer: Make, an_answer: Make,
    rates: tuple[HourlyRate, ...], now: datetime,
) -> None:  # fmt: skip
    """The reason of the system, and the name of the file."""
    plan = make_plan(replace(a_need(), target=Target.ENDPOINT), [an_answer(an_offer())], rates, now)
    with pytest.raises(BerthError, match=r"cost\.svg: No such file"):
        draw(plan, tmp_path / "missing" / "cost.svg")
