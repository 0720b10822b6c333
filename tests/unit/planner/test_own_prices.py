"""Rates of one's own: they are what is compared with, and what an On-Demand Capacity Reservation costs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from berth.planner.choose import make_plan
from berth.planner.compare_text import compare_text
from berth.planner.cost import HourlyRate
from berth.planner.costs.curves import curves
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.planner.own_prices import as_agreed
from berth.planner.own_rates import OwnRates
from berth.planner.plan import Plan
from berth.planner.wording import plan_text
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
MONDAY = datetime(2026, 12, 7, 11, 30, tzinfo=UTC)
TYPE = "p5en.48xlarge"
LIST = Money(Decimal("63.296"))
PLAN_RATE = Money(Decimal("41.20"))
SAVINGS = OwnRates(savings=((TYPE, PLAN_RATE),))
DISCOUNT = OwnRates(edp_percent=Decimal(10))
ON_DEMAND = HourlyRate(Way.ON_DEMAND, "us-east-2", "on-demand", LIST, NOW.date(), "AWS Price List", live=True)
SPOT = HourlyRate(Way.SPOT, "us-east-2", "spot", Money(Decimal("27.184")), NOW.date(), "Spot", live=True)
NEED = Need(TYPE.partition(".")[0], TYPE, 2, timedelta(days=5), Target.INSTANCES, ("us-east-2",))


def planned(own: OwnRates | None, *rates: HourlyRate, need: Need = NEED) -> Plan:
    """Five days of two p5en for 15,157.92, with those rates beside it."""
    held = Window(MONDAY, MONDAY + timedelta(days=5))
    offer = Offer(
        Way.CAPACITY_BLOCK, "us-east-2", "cb-0", (Segment(held, "use2-az1", None, TYPE, 2),), 2, TYPE,
        Money(Decimal("15157.92")), ("instances",), NOW,
        Query(Way.CAPACITY_BLOCK, "us-east-2", TYPE, 2, 120, Target.INSTANCES),
    )  # fmt: skip
    answer = PlaceAnswer(Way.CAPACITY_BLOCK, "us-east-2", PlaceOutcome.OFFERS, NOW, "", (offer,))
    return make_plan(replace(need, rates=own), [answer], rates or (ON_DEMAND, SPOT), NOW)


def words(plan: Plan) -> str:
    """The plan's text without its line breaks; no line is longer than 80."""
    text = plan_text(plan, "AWS")
    assert max(map(len, text.splitlines())) <= 80
    return " ".join(text.split())


def test_a_savings_plan_is_compared_with_and_told_with_the_list_price() -> None:
    """41.20 an hour instead of 63.296: the block, at 63.158, saves far less than nothing."""
    plan = planned(SAVINGS)
    assert plan.best is not None
    even = plan.best.cost.break_even
    assert even is not None
    assert (even.rate.hourly, even.rate.listed) == (PLAN_RATE, LIST)
    assert even.at_full_use == Money(Decimal("9846.80"))
    text = words(plan)
    assert "IT SAVES NOTHING: 63.158/h against 41.20/h on demand [1]." in text
    assert "it costs $5,311.12 MORE than on-demand" in text
    assert (
        "[1] 41.20/h on-demand, your Savings Plan, 63.296/h by the list, live, AWS Price List [2] 27.184/h"
        in text
    )


def test_a_percentage_off_the_list_is_one_of_list_prices_alone() -> None:
    """Ten per cent off on-demand; Spot and the block's fee are as they were."""
    plan = planned(DISCOUNT)
    assert plan.best is not None
    assert plan.best.cost.fee == Money(Decimal("15157.92"))
    by_way = {line.rate.way: line for line in plan.pay_as_you_go}
    assert by_way[Way.ON_DEMAND].total == Money(Decimal("13614.97"))  # 0.9 x 63.296 x 119.5 x 2
    assert by_way[Way.SPOT].rate == replace(SPOT, instance_type=TYPE)
    assert "[1] 56.9664/h on-demand, your 10 % off the list, 63.296/h by the list" in words(plan)


@pytest.mark.parametrize(
    ("own", "total", "hourly"),
    [(None, "15127.74", "63.296"), (SAVINGS, "9846.80", "41.20"), (DISCOUNT, "13614.97", "56.9664")],
)
def test_a_reservation_costs_on_demand_hours_used_or_idle(
    own: OwnRates | None, total: str, hourly: str
) -> None:
    """The ODCR's line: as much an hour, less with rates of one's own; over use it is flat."""
    plan = planned(own)
    (line,) = [line for line in plan.pay_as_you_go if line.rate.way is Way.ODCR]
    assert line.total == Money(Decimal(total))
    text = words(plan)
    assert "- odcr us-east-2 if granted, idle paid 119:30" in text
    assert f"[3] {hourly}/h reserved, used or idle" in text
    assert f"${Decimal(total):,.2f} for 119:30, used or idle" in compare_text(plan)
    assert plan.best is not None
    picture = curves(plan.best, plan.pay_as_you_go)
    assert picture is not None
    flat = next(one for one in picture.others if one.way is Way.ODCR)
    assert flat.at(Decimal(0)) == flat.at(picture.usable_hours) == Money(Decimal(total))


def test_ones_own_rate_is_known_where_the_list_price_is_not() -> None:
    """What the Savings Plan says needs no list; a percentage of what is not known is not known."""
    unknown = replace(ON_DEMAND, hourly=None, live=False, as_of=None)
    assert "[1] 41.20/h on-demand, your Savings Plan, no list price known" in words(planned(SAVINGS, unknown))
    plan = planned(DISCOUNT, unknown)
    assert {line.total for line in plan.pay_as_you_go} == {None}
    assert plan.best is not None
    assert plan.best.cost.break_even is None


def test_sagemakers_hours_have_rates_of_their_own_too() -> None:
    """By EC2's name of the type, with SageMaker's prefix or without; other types are as listed."""
    hosting = HourlyRate(
        Way.SAGEMAKER_ON_DEMAND, "us-east-1", "hosting", LIST, instance_type=f"ml.{TYPE}"
    )  # fmt: skip
    assert as_agreed(hosting, SAVINGS).hourly == PLAN_RATE
    assert as_agreed(replace(hosting, instance_type="ml.p5.48xlarge"), SAVINGS).hourly == LIST
    assert as_agreed(hosting, None) == hosting


def test_a_plan_with_ones_own_rates_comes_back_from_its_document() -> None:
    """The agreed rate and the list's beside it are in the document; an older document has neither."""
    plan = planned(SAVINGS)
    document = plan.to_json()
    assert Plan.from_json(document) == plan
    for line in document["pay_as_you_go"]:
        del line["rate"]["agreed"], line["rate"]["listed"]
    assert {line.rate.agreed for line in Plan.from_json(document).pay_as_you_go} == {""}


def test_work_that_may_be_interrupted_hears_what_an_interruption_costs() -> None:
    """An hour of work and half an hour of start-up on both machines: 3 x 27.184."""
    careful = replace(
        NEED, interruptible=True, checkpoint_every=timedelta(hours=1), startup=timedelta(minutes=30)
    )  # fmt: skip
    text = words(planned(None, need=careful))
    assert "SPOT it may be interrupted: Spot, 57 % less, with #1 as fall-back." in text
    assert "An interruption loses 1 h of work and 30 min of start-up at most: $81.55" in text
    vague = words(planned(None, need=replace(NEED, interruptible=True)))
    assert "how much an interruption loses is not known (checkpoint_every)" in vague
    assert "IF it survives two minutes' notice: Spot, 57 % less" in words(planned(None))
    assert "Spot, " not in words(planned(None, need=replace(NEED, interruptible=False)))
