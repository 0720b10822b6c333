"""Break-even and hourly prices, over all prices rather than a few."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.planner.cost import HourlyRate, cost_of, pay_as_you_go
from berth.planner.offers import hours_of
from berth.terms.money import Money
from berth.terms.ways import Way

CENTS = st.integers(1, 100_000_000).map(lambda n: Decimal(n) / 100)
RATES = st.integers(1, 1_000_000).map(lambda n: Decimal(n) / 1000)
FIXTURE = [HealthCheck.function_scoped_fixture]


@settings(deadline=None, max_examples=200, suppress_health_check=FIXTURE)
@given(fee=CENTS, hourly=RATES, days=st.integers(1, 182), count=st.sampled_from((1, 2, 64)))
def test_break_even_is_the_first_minute_that_pays(
    an_offer: Callable[..., Any], fee: Decimal, hourly: Decimal, days: int, count: int
) -> None:
    """At that minute on-demand costs at least the fee, and a minute earlier less."""
    offer = an_offer(str(fee), days=days, count=count)
    rate = HourlyRate(Way.SAGEMAKER_ON_DEMAND, "us-east-1", "hosting", Money(hourly))
    even = cost_of(offer, 16, rate, None).break_even
    assert even is not None

    def on_demand(span: timedelta) -> Fraction:
        # As a fraction: a third of an hour has no last digit.
        return Fraction(hourly) * (span // timedelta(minutes=1)) * count / 60

    assert on_demand(even.after) >= Fraction(fee) > on_demand(even.after - timedelta(minutes=1))
    assert even.ever_pays is (even.share <= 1)
    if even.after <= offer.usable_time:
        assert even.ever_pays


@settings(deadline=None, max_examples=100, suppress_health_check=FIXTURE)
@given(fee=CENTS, days=st.integers(1, 182), count=st.sampled_from((1, 8, 64)))
def test_the_price_of_a_usable_hour_is_over_that_of_a_paid_one(
    an_offer: Callable[..., Any], fee: Decimal, days: int, count: int
) -> None:
    """Usable time is shorter than paid time, and dividing back gives the fee to the rounding."""
    offer = an_offer(str(fee), days=days, count=count)
    cost = cost_of(offer, 16, None, None)
    assert cost.per_usable_hour is not None
    hours = hours_of(cost.usable) * count
    assert abs(cost.per_usable_hour.amount * hours - fee) <= Decimal("0.0005") * hours
    assert cost.break_even is None


def test_a_total_is_rounded_once() -> None:
    """23:30 at 28.497 is 669.6795, so 669.68; four instances are 2,678.72, not four times 669.68."""
    rate = HourlyRate(Way.SAGEMAKER_ON_DEMAND, "us-east-1", "hosting", Money(Decimal("28.497")))
    span = timedelta(hours=23, minutes=30)
    assert pay_as_you_go(rate, 1, span, 16).total == Money(Decimal("669.68"))
    assert pay_as_you_go(rate, 4, span, 16).total == Money(Decimal("2678.72"))
    assert pay_as_you_go(rate, 1, span, None).per_accelerator_hour is None
