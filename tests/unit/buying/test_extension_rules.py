"""Wishes to extend and the choice among offers: pure rules over values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from berth.orders.extensions.offers import Bounds, ExtensionOffer, cheapest
from berth.orders.extensions.wish import Standing, Wish, nothing_to_do, read_wish
from berth.terms.instants import parse_instant
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.window import Window

from .fake_aws import WINDOW

WEEK = timedelta(days=7)


def refusal(run: Callable[[], object]) -> BerthError:
    """How it ends when it does not end well."""
    with pytest.raises(BerthError) as ended:
        run()
    return ended.value


def test_an_implausible_fee_is_unknown_and_never_the_cheapest() -> None:
    """Field fault 17: a fee at a tenth of the list rate is an add-on's price; the next one is taken."""
    window = Window(WINDOW.end, WINDOW.end + WEEK)
    odd, sound = (ExtensionOffer(fee, window, Money.parse(fee), WINDOW.start) for fee in ("56.45", "7000.00"))
    bounds = Bounds(floor=Money.parse("5.50"), count=2)
    assert cheapest([odd, sound], WINDOW.end, bounds) is sound
    assert "counts as unknown" in refusal(lambda: cheapest([odd], WINDOW.end, bounds)).message
    dollars = ExtensionOffer("d", window, Money.parse("9000 EUR"), WINDOW.start)
    assert "cannot be compared" in refusal(lambda: cheapest([dollars, sound], WINDOW.end, bounds)).message


@pytest.mark.parametrize(
    ("now", "end", "until", "extended", "says"),
    [
        ("2027-03-02T11:29Z", "2027-03-04T11:30Z", "2027-03-04T11:30Z", False,
         "ends at 2027-03-04T11:30Z; looked at again from 2027-03-02T11:30Z on"),
        ("2027-03-02T11:30Z", "2027-03-04T11:30Z", "2027-03-04T11:30Z", False, None),
        ("2027-03-03T00:00Z", "2027-03-04T11:30Z", "2027-03-11T11:30Z", True,
         "already extended until 2027-03-11T11:30Z; looked at again from 2027-03-09T11:30Z on"),
        ("2027-03-09T11:30Z", "2027-03-11T11:30Z", "2027-03-11T11:30Z", True, None),
    ],
)  # fmt: skip
def test_a_look_ahead_of_two_days(now: str, end: str, until: str, extended: bool, says: str | None) -> None:
    """To the minute, again and again, on the end with what was bought."""
    wish = read_wish("7d", None, None, "2d")
    at = Standing(parse_instant(end), parse_instant(until), extended, unpaid=False)
    assert nothing_to_do(wish, parse_instant(now), at) == says


def test_how_a_wish_is_written() -> None:
    """By a span or a range, until an instant, or as a rule; one of them; lengths are AWS's."""
    end = WINDOW.end
    assert read_wish("7d..9d", None, None, None).lengths(end) == tuple(timedelta(days=n) for n in (7, 8, 9))
    assert read_wish(None, end + timedelta(days=14, hours=1), None, None).lengths(end) == (3 * WEEK,)
    assert read_wish(None, None, "Extend 7 d", None) == read_wish("7d", None, None, None)
    assert read_wish(None, None, "extend 7d..14d, look ahead 2 d", None).within == timedelta(days=2)
    for wrong in (
        (None, None, None, None), ("7d", end, None, None), (None, None, "buy 7d", None),
        ("soon", None, None, None),
        (None, None, "extend 7d, look ahead 2d", "3d"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"."):
            read_wish(*wrong)
    assert refusal(lambda: read_wish("40h", None, None, None).lengths(end)).next_step == "--by 1d or 2d"
    far = refusal(lambda: Wish(until=end + timedelta(days=190)).lengths(end))
    assert far.exit_code is ExitCode.BAD_REQUEST
