"""Words and figures that the text of a plan is made of. Everything fits 80 columns."""

from __future__ import annotations

import textwrap
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from berth.planner.need import Need
from berth.planner.offers import Offer
from berth.terms.durations import spoken
from berth.terms.money import Money
from berth.terms.text import plain
from berth.terms.ways import Way
from berth.terms.window import Window

WIDTH = 80
HANG = 7
_WAY_LABELS = {Way.SAGEMAKER_ON_DEMAND: "sagemaker-od"}


def wrapped(text: str, hang: int) -> list[str]:
    """`text` in lines of WIDTH, all but the first hanging by `hang`; words are never broken."""
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=" " * hang, break_on_hyphens=False, break_long_words=False
    )


def hung(text: str, word: str = "") -> list[str]:
    """`text` wrapped behind a margin that holds `word` in its first line."""
    return wrapped(f"{word:<{HANG}}{plain(text, 2000)}", HANG)


def label(way: Way) -> str:
    """A way's name in a column."""
    return _WAY_LABELS.get(way, way.value)


def money_text(money: Money | None) -> str:
    """`$1,234.56`, or `1,234.56 EUR`; `unknown` for None."""
    if money is None:
        return "unknown"
    return f"${money.amount:,.2f}" if money.currency == "USD" else f"{money.amount:,.2f} {money.currency}"


def amount(money: Money | None, currency: str, digits: int = 2) -> str:
    """The bare number of a column whose head names `currency`; another currency is written out."""
    if money is None:
        return "unknown"
    text = f"{money.amount.quantize(Decimal(1).scaleb(-digits)):,f}"
    return text if money.currency == currency else f"{text} {money.currency}"


def exact_amount(money: Money) -> str:
    """The amount as `--max` takes it: `228.77`, `500.00`; finer than a cent only where the fee is."""
    cents = money.amount.quantize(Decimal("0.01"))
    return f"{cents:f}" if cents == money.amount else f"{money.amount:f}"


def rate_text(money: Money) -> str:
    """`55.04`, `0.336`, `15.2359`: an hourly rate, exact, with two digits at least."""
    digits = max(2, -int(money.amount.normalize().as_tuple().exponent))
    return f"{money.amount:,.{digits}f}"


def hours_minutes(span: timedelta) -> str:
    """`8 h 02 min`, hours may exceed 24; for lengths that are compared with each other."""
    hours, minutes = divmod(span // timedelta(minutes=1), 60)
    return f"{hours} h {minutes:02d} min"


def length(span: timedelta) -> str:
    """`24 h`, `5 days`: whole days from two days on."""
    if span >= timedelta(days=2) and span % timedelta(days=1) == timedelta(0):
        return f"{span // timedelta(days=1)} days"
    return spoken(span)


def instant_text(instant: datetime, need: Need) -> str:
    """`Wed 2026-12-02 11:30Z (12:30 Berlin)`; the local weekday too where it is another day there."""
    utc = instant.astimezone(UTC)
    text = f"{utc:%a %Y-%m-%d %H:%M}Z"
    if need.zone is None or need.time_zone is None:
        return text
    local = instant.astimezone(need.zone)
    day = "" if local.date() == utc.date() else f"{local:%a} "
    city = need.time_zone.rpartition("/")[2].replace("_", " ")
    return f"{text} ({day}{local:%H:%M} {city})"


def window_text(window: Window, *, fixed: bool) -> str:
    """`Wed 2 11:30-Thu 3 11:30`, or with the month where the start is not fixed."""
    return f"{_stamp(window.start, fixed)}-{_stamp(window.end, fixed)}"


def _stamp(instant: datetime, fixed: bool) -> str:
    utc = instant.astimezone(UTC)
    return f"{utc:%a} {utc.day} {utc:%H:%M}" if fixed else f"{utc.day} {utc:%b} {utc:%H:%M}"


def place(offer: Offer) -> str:
    """The zone of an offer, and how many more it has."""
    first, *more = offer.zones
    return plain(first, 16) + (f"+{len(more)}" if more else "")


def age(seen: date, today: date) -> str:
    """`22 months`, `9 days`."""
    months = (today.year - seen.year) * 12 + today.month - seen.month - (today.day < seen.day)
    if months >= 2:
        return f"{months} months"
    days = max(0, (today - seen).days)
    return f"{days} {'day' if days == 1 else 'days'}"
