"""Offers in several currencies: the one of most offers leads, whatever it is called, and the plan says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.planner.best.of_plan import with_combination
from berth.planner.choose import make_plan
from berth.planner.cost import HourlyRate
from berth.planner.currencies import Currencies, currencies_of, currency_lines
from berth.planner.need import Goal
from berth.planner.offers import Offer
from berth.planner.plan import Plan
from berth.planner.table import pay_lines
from berth.planner.wording import plan_text
from berth.terms.money import Money
from berth.terms.ways import Way

Make = Callable[..., Any]
Rates = tuple[HourlyRate, ...]
ALSO = "CNY"  # first by name, and the fewer


def priced(an_offer: Make, *fees: tuple[str, str]) -> list[Offer]:
    """Offers of those amounts and currencies, each by a name of its own."""
    return [
        replace(an_offer(offering_id=f"tpo-{number}"), fee=Money(Decimal(fee), currency))
        for number, (fee, currency) in enumerate(fees)
    ]


def test_the_currency_of_most_offers_leads_and_it_is_said(
    a_need: Make, an_offer: Make, an_answer: Make, rates: Rates, now: datetime
) -> None:
    """One cheap figure in CNY is not before two in USD because of its name; the sentence says what leads."""
    offers = priced(an_offer, ("99", ALSO), ("300", "USD"), ("280", "USD"))
    plan = make_plan(a_need(), [an_answer(*offers)], rates, now)
    totals = [choice.cost.total for choice in plan.choices]
    assert totals == [Money(Decimal(280)), Money(Decimal(300)), Money(Decimal(99), ALSO)]
    text = plan_text(plan, "")
    assert max(map(len, text.splitlines())) <= 80
    assert (
        "MONEY currencies are not compared: the 2 offers in USD come first, as most are in it; then 1 in CNY."
        ' A budget of "... CNY" chooses among those instead'
    ) in " ".join(text.split())
    document = json.loads(json.dumps(plan.to_json()))
    assert document["currencies"] == [{"currency": "USD", "offers": 2}, {"currency": "CNY", "offers": 1}]
    assert Plan.from_json(document) == plan


def test_the_same_holds_for_the_cheapest_hour_and_for_a_mix(
    a_need: Make, an_offer: Make, an_answer: Make, rates: Rates, now: datetime
) -> None:
    """The goal compares within the currency that leads; so does the combination."""
    offers = priced(an_offer, ("99", ALSO), ("300", "USD"), ("280", "USD"))
    plan = make_plan(a_need(goal=Goal.CHEAPEST), [an_answer(*offers)], rates, now)
    assert [c.cost.total and c.cost.total.currency for c in plan.choices] == ["USD", "USD", ALSO]
    found = with_combination(plan)
    assert found.mix is None or found.mix.total.currency == "USD"


def test_a_budget_decides_and_one_currency_needs_no_word(
    a_need: Make, an_offer: Make, an_answer: Make, rates: Rates, now: datetime
) -> None:
    """With a budget the others do not fit, each with its reason."""
    offers = priced(an_offer, ("99", ALSO), ("300", "USD"), ("280", "USD"))
    need = a_need(budget=Money(Decimal(500), ALSO))
    plan = make_plan(need, [an_answer(*offers)], rates, now)
    assert [choice.cost.total for choice in plan.choices] == [Money(Decimal(99), ALSO)]
    assert "MONEY" not in plan_text(plan, "")
    nothing = make_plan(replace(need, budget=Money(Decimal(1), "EUR")), [an_answer(*offers)], rates, now)
    assert "MONEY" not in plan_text(nothing, "")


def test_as_many_in_each_is_said_to_be_by_name() -> None:
    """Nothing but the name decides then, and the reader is told."""
    told = " ".join(
        currency_lines(currencies_of([Money(Decimal(1), c) for c in ("USD", "EUR", "USD", "EUR")]))
    )
    assert (
        "the 2 offers in EUR come first, first by name, as no currency has more; then 2 in USD"
        in " ".join(told.split())
    )
    assert currency_lines(Currencies(())) == []
    assert currency_lines(currencies_of([None, Money(Decimal(1))])) == []


def test_the_line_of_on_demand_is_in_the_currency_that_leads(
    a_need: Make, an_offer: Make, an_answer: Make, now: datetime
) -> None:
    """Of two Regions' rates neither of which is the best choice's, the one that can be compared is shown."""
    rates = tuple(
        HourlyRate(Way.SAGEMAKER_ON_DEMAND, region, "hosting", Money(Decimal(hourly), currency))
        for region, hourly, currency in (("cn-north-1", "10", ALSO), ("eu-west-1", "30", "USD"))
    )
    plan = make_plan(a_need(), [an_answer(*priced(an_offer, ("280", "USD")))], rates, now)
    (line,) = pay_lines(plan)
    assert (line.rate.region, line.total and line.total.currency) == ("eu-west-1", "USD")


@settings(deadline=None, max_examples=100)
@given(st.lists(st.sampled_from(["USD", "EUR", "CNY", "JPY"]), max_size=12), st.randoms())
def test_the_order_of_currencies_does_not_depend_on_the_order_of_offers(names: list[str], mixed: Any) -> None:
    """Most first; the same however the answers came; an unknown price stands behind all."""
    prices: list[Money | None] = [Money(Decimal(1), name) for name in names]
    found = currencies_of(prices)
    mixed.shuffle(prices)
    assert currencies_of([None, *prices]) == found
    numbers = [number for _, number in found.offers]
    assert numbers == sorted(numbers, reverse=True)
    assert sum(numbers) == len(names)
    assert found.rank(None) == len(found.names) == len(set(names))
