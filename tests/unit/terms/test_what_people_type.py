"""Amounts, durations and instants as people type them: read right, or refused with a ValueError."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.terms.durations import parse_duration
from berth.terms.instants import parse_instant
from berth.terms.money import LARGEST, Money

AMOUNTS = {
    "228.77": "228.77",
    "1,146.17": "1146.17",
    "12,345,678.5 USD": "12345678.5",
    "$1146.17": "1146.17",
    "-5": "-5",
    " 300 EUR ": "300",
}


@pytest.mark.parametrize(("typed", "amount"), AMOUNTS.items())
def test_amounts_are_read_to_the_cent(typed: str, amount: str) -> None:
    """Commas part thousands, a currency may follow."""
    assert Money.parse(typed).amount == Decimal(amount)


NO_AMOUNTS = [
    "228,77",  # a decimal comma: read without it, the bound would be a hundred times as high
    "1,50", "1.234,56", "1,2345", "1_000", "1e3", "1e999999999", "nan", "Infinity", "", "$", "three", "٣",
    "228.7700001", "9" * 13, "9" * 400,
]  # fmt: skip


@pytest.mark.parametrize("typed", NO_AMOUNTS, ids=[text[:12] for text in NO_AMOUNTS])
def test_what_is_no_plain_amount_is_refused(typed: str) -> None:
    """A bound on money is never guessed."""
    with pytest.raises(ValueError, match="amount of money"):
        Money.parse(typed)


@pytest.mark.parametrize("amount", [LARGEST, -LARGEST, Decimal("1e999999"), Decimal("1e-999999")])
def test_amounts_that_no_store_could_hold_do_not_exist(amount: Decimal) -> None:
    """Such a number would be written out with a million digits."""
    with pytest.raises(ValueError, match="amount of money"):
        Money(amount)


@given(st.text(alphabet="0123456789.,e+- hdwms:TZ", max_size=40))
@settings(deadline=None, max_examples=200)
def test_nothing_typed_ends_in_anything_but_a_value_or_a_refusal(typed: str) -> None:
    """No reader of typed text raises anything besides ValueError."""
    for read in (Money.parse, parse_duration, parse_instant):
        try:
            read(typed)
        except ValueError:
            continue


@pytest.mark.parametrize("typed", ["9" * 23 + "d", "9" * 400 + "h", "101 w 36500 d"])
def test_a_duration_has_an_end(typed: str) -> None:
    """Over 100 years is a typing error."""
    with pytest.raises(ValueError, match="longer than 100 years"):
        parse_duration(typed)


@pytest.mark.parametrize("typed", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_an_instant_lies_within_the_calendar(typed: str) -> None:
    """A zone may push an instant out of the years that exist."""
    with pytest.raises(ValueError, match="outside the years 1 to 9999"):
        parse_instant(typed)


def test_nothing_is_an_amount_whatever_exponent_a_division_left_on_it() -> None:
    """A share of zero of an inexact number of hours is no fault (seen with a plan that stood full)."""
    share = Decimal(0) / (Decimal(64) / Decimal(3))
    assert Money(Decimal("19.06") * share, "USD").rounded() == Money(Decimal(0), "USD")
