"""Choosing: which offers fit, in which order, and always the same."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from berth.planner.choose import make_plan
from berth.planner.cost import HourlyRate
from berth.planner.offers import Offer, Query, Segment, reclaim_before_end
from berth.planner.plan import Plan
from berth.planner.queries import boundary_after, boundary_before, training_plan_queries
from berth.planner.wording import plan_text
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

TYPE = "ml.trn1.32xlarge"
Make = Callable[..., Any]
Rates = tuple[HourlyRate, ...]


def bytes_of(plan: Plan) -> bytes:
    """A plan as its JSON document."""
    return json.dumps(plan.to_json()).encode()


def test_same_inputs_same_plan_byte_for_byte(
    a_need: Make, an_offer: Make, an_answer: Make, rates: Rates, now: datetime
) -> None:
    """Neither the order of answers nor of rates matters: threads may bring them in any."""
    answers = [
        an_answer(
            *(an_offer("300.00", offering_id=f"tpo-{n}", region=region) for n in range(3)), region=region
        )
        for region in ("us-east-1", "us-west-2", "eu-north-1")
    ]
    expected = bytes_of(make_plan(a_need(), answers, rates, now))
    for seed in range(10):
        mixed = random.Random(seed).sample(answers, len(answers))
        assert bytes_of(make_plan(a_need(), mixed, tuple(reversed(rates)), now)) == expected


def test_a_plan_survives_json(
    a_need: Make, an_offer: Make, an_answer: Make, rates: Rates, now: datetime
) -> None:
    """What the journal keeps is the whole plan, exact to the cent and the second."""
    need = a_need(budget=Money(Decimal("500")), utilisation=Decimal("0.6"), zone_ids=("use1-az6",))
    plan = make_plan(need, [an_answer(an_offer(), an_offer("9999"))], rates, now, account="1" * 12)
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    with pytest.raises(ValueError, match=r"berth\.plan/1"):
        Plan.from_json({"schema": "berth.plan/2"})


@pytest.mark.parametrize("fee", [None, "0", "-1", "0.24", "51.5"])
def test_a_price_that_cannot_be_is_unknown_and_never_leads(
    fee: str | None,
    a_need: Make,
    an_offer: Make,
    an_answer: Make,
    rates: Rates,
    now: datetime,
) -> None:
    """Missing, zero and implausible fees stand last and are not called cheap (field fault 17)."""
    plan = make_plan(a_need(), [an_answer(an_offer(fee), an_offer("650.00"))], rates, now)
    assert plan.choices[0].fee == Money(Decimal("650.00"))
    assert plan.choices[1].cost.total is None
    assert plan.choices[1].cost.doubt


@pytest.mark.parametrize("fee", [None, "0", "0.24"])
def test_what_has_no_known_price_is_no_best(
    fee: str | None, a_need: Make, an_offer: Make, an_answer: Make, rates: Rates, now: datetime
) -> None:
    """The only offer, and its price is not known: nothing leads, the plan is incomplete, nothing to buy."""
    plan = make_plan(a_need(), [an_answer(an_offer(fee))], rates, now)
    assert (len(plan.choices), plan.best, plan.incomplete) == (1, None, True)
    text = plan_text(plan, "REHEARSAL")
    assert "NONE   1 offer fits, and no price is known" in text
    assert "BEST" not in text
    assert "berth buy" not in text


@pytest.mark.parametrize(("currency", "line"), [("CNY", "--max '228.77 CNY'"), ("never-he", None)])
def test_another_currency_is_bought_in_its_own_and_an_unknown_one_never(
    currency: str, line: str | None, a_need: Make, an_offer: Make, an_answer: Make, now: datetime
) -> None:
    """`--max` names the currency of the fee; what is no currency is no price."""
    offer = an_offer(None)
    plan = make_plan(a_need(), [an_answer(replace(offer, fee=Money(Decimal("228.77"), currency)))], (), now)
    text = plan_text(plan, "REHEARSAL")
    assert (plan.best is not None) == (line is not None)
    assert ("BUY" in text) == (line is not None)
    assert line is None or line in text


@pytest.mark.parametrize(
    ("hourly", "known"), [("8.741", True), ("5.51", True), ("5.50", False), ("0.24", False)]
)
def test_a_spot_price_is_held_against_what_on_demand_costs_now(
    hourly: str, known: bool, a_need: Make, now: datetime
) -> None:
    """p5 costs 55.04 an hour and listed at 98.32 once: 8.741 for Spot is 84 % off, and no mistake."""
    need = a_need(target=Target.INSTANCES, instance_type="p5.48xlarge", start=None, regions=("us-west-2",))
    rates = (
        HourlyRate(Way.ON_DEMAND, "us-west-2", "on-demand", Money(Decimal("55.04")), live=True),
        HourlyRate(Way.SPOT, "us-west-2", "spot", Money(Decimal(hourly)), live=True, zone_id="usw2-az4"),
    )
    plan = make_plan(need, [], rates, now)
    (spot,) = (line.rate for line in plan.pay_as_you_go if line.rate.way is Way.SPOT)
    assert (spot.hourly is not None) is known
    assert known or spot.note == f"{hourly}/h is implausibly low"


def test_an_implausible_rate_is_unknown(
    a_need: Make, an_offer: Make, an_answer: Make, rates: Rates, now: datetime
) -> None:
    """A row at a third of a dollar is a surcharge, not what an hour costs (field fault 17)."""
    surcharge = HourlyRate(Way.SAGEMAKER_ON_DEMAND, "us-east-1", "hosting", Money(Decimal("0.336")))
    plan = make_plan(a_need(), [an_answer(an_offer())], [rates[0], surcharge], now)
    assert [line.total for line in plan.pay_as_you_go] == [None]
    assert plan.choices[0].cost.break_even is None


_BEGIN = datetime(2026, 12, 2, 11, 30, tzinfo=UTC)
TWO_ZONES = tuple(
    Segment(
        Window(_BEGIN + n * timedelta(hours=12), _BEGIN + (n + 1) * timedelta(hours=12)), zone, None, TYPE, 1
    )
    for n, zone in enumerate(("use1-az6", "use1-az4"))
)
MISFITS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"targets": ("training-job",)}, "is for training-job, not for endpoint"),
    ({}, {"count": 2}, "holds 2 x"),
    ({"zone_ids": ("use1-az1",)}, {}, "is in use1-az6, not in use1-az1"),
    ({"zone_ids": ("use1-az1",)}, {"zone": None}, "is in us-east-1f"),
    (
        {"same_zone": True},
        {"segments": TWO_ZONES},
        "lies in use1-az6 and use1-az4: all of it must be in one zone",
    ),
    ({"ways": (Way.SAGEMAKER_ON_DEMAND,)}, {}, "training-plan does not fit the need"),
    ({"duration": timedelta(days=2)}, {}, "ends 24 h before the wanted end"),
    ({"start": None, "duration": timedelta(days=2)}, {}, "lasts 24 h, less than 2 d"),
    ({"budget": Money(Decimal(200))}, {}, "over the budget"),
    ({"budget": Money(Decimal(900), "EUR")}, {}, "priced in USD"),
    ({}, {"parts": ((0, 0.5), (2, 3))}, "with a gap of 36 h"),
]


@pytest.mark.parametrize(("wanted", "offered", "why"), MISFITS, ids=[m[2] for m in MISFITS])
def test_what_does_not_fit_is_rejected_with_its_reason(
    wanted: dict[str, Any],
    offered: dict[str, Any],
    why: str,
    a_need: Make,
    an_offer: Make,
    an_answer: Make,
    rates: Rates,
    now: datetime,
) -> None:
    """Every rule of fit, by an offer that breaks it."""
    plan = make_plan(a_need(**wanted), [an_answer(an_offer(**offered))], rates, now)
    assert plan.choices == ()
    assert any(why in reason for reason in plan.rejected[0].reasons)


def test_all_parts_are_read(
    a_need: Make,
    an_offer: Make,
    an_answer: Make,
    rates: Rates,
    now: datetime,
    start: datetime,
) -> None:
    """Two parts with a gap: hours without the gap, end of the last part, reclaim in each (field fault 53)."""
    offer: Offer = an_offer("9000.00", parts=((0, 2), (4, 6)), targets=("training-job",))
    assert offer.paid_hours == 96
    assert offer.paid_window.end == start + timedelta(days=6)
    assert [gap.duration for gap in offer.gaps] == [timedelta(hours=48)]
    assert offer.usable_time == timedelta(hours=95)
    need = a_need(target=Target.TRAINING_JOB, start=None, duration=timedelta(hours=96))
    plan = make_plan(need, [an_answer(offer)], rates, now)
    assert "It comes in 2 parts, 2 d off between them: checkpoint." in plan.choices[0].cares


def test_hyperpod_loses_an_hour(an_offer: Make) -> None:
    """60 minutes before the end for HyperPod, 30 for the rest."""
    assert an_offer(targets=("hyperpod-cluster",)).usable_time == timedelta(hours=23)
    assert reclaim_before_end("endpoint") == timedelta(minutes=30)


def test_figures_of_the_article(
    a_need: Make, an_offer: Make, an_answer: Make, rates: Rates, now: datetime
) -> None:
    """228.77 for 24 h: 23:30 usable, pays from 8 h 02 min (34 %), 0.608 an accelerator hour."""
    cost = make_plan(a_need(), [an_answer(an_offer())], rates, now).choices[0].cost
    assert cost.usable == timedelta(hours=23, minutes=30)
    assert cost.per_usable_hour == Money(Decimal("9.735"))
    assert cost.per_accelerator_hour == Money(Decimal("0.608"))
    assert cost.break_even is not None
    assert cost.break_even.after == timedelta(hours=8, minutes=2)
    assert f"{cost.break_even.share:.2f}" == "0.34"
    assert cost.break_even.at_full_use == Money(Decimal("669.68"))


def test_boundaries_lie_at_half_past_eleven(now: datetime, start: datetime) -> None:
    """The grid of plan ends, in UTC, on both sides of an instant and on it."""
    assert boundary_before(start) == boundary_after(start) == start
    assert boundary_before(start - timedelta(seconds=1)) == start - timedelta(days=1)
    assert boundary_after(start + timedelta(seconds=1)) == start + timedelta(days=1)


def test_a_fixed_start_asks_for_what_covers_it(a_need: Make, now: datetime, start: datetime) -> None:
    """A start off the grid asks from the boundary before it to the one after its end."""
    (exact,) = training_plan_queries(a_need(), ("us-east-1",), now)
    assert (exact.duration_hours, exact.start_after) == (24, start - timedelta(seconds=1))
    later = a_need(start=start + timedelta(hours=3))
    (wide,) = training_plan_queries(later, ("us-east-1",), now)
    assert wide.duration_hours == 48
    assert wide.end_before == start + timedelta(days=2, seconds=1)
    (soon,) = training_plan_queries(a_need(start=now + timedelta(hours=1)), ("us-east-1",), now)
    assert soon.start_after is None, "no boundary is left: only a plan that starts at once can be in time"


def test_a_query_can_be_asked_again_narrower(an_offer: Make, start: datetime) -> None:
    """The query of an offer, kept as JSON, narrowed to the offer's window (design, section 6)."""
    query: Query = an_offer().query
    again = Query.from_json(json.loads(json.dumps(query.to_json())))
    assert again == query
    narrowed = again.narrowed_to(an_offer().paid_window)
    assert narrowed.start_after is not None
    assert narrowed.end_before is not None
    assert narrowed.start_after < start < start + timedelta(days=1) < narrowed.end_before
