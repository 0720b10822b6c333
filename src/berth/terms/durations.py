"""Durations as people write and read them."""

from __future__ import annotations

import re
from datetime import timedelta

_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(weeks?|w|days?|d|hours?|h|minutes?|min|m|seconds?|s)", re.IGNORECASE)
_LAST_UNIT = re.compile(r"[A-Za-z]+$")
_BARE = re.compile(r"\d+(\.\d+)?")
_LONGEST_S = 100 * 365 * 86_400
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}


def parse_duration(text: str) -> timedelta:
    """Read `24h`, `7d`, `1 d 6 h`, `15h51m`, `90 min`.

    Raises ValueError for anything else, for zero, and over 100 years.
    """
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip():
        raise ValueError(f"not a duration: {text[:40]!r}; write it like 24h, 7d or 15h30m")
    total = sum(float(number) * _SECONDS[unit[0].lower()] for number, unit in parts)
    if total <= 0:
        raise ValueError(f"a duration must be longer than zero: {text!r}")
    if total > _LONGEST_S:
        raise ValueError(f"a duration of {text[:40]!r} is longer than 100 years")
    return timedelta(seconds=total)


def read_range(text: str) -> tuple[timedelta, timedelta]:
    """Read `5d..9d`, or `60..100 h` with one unit for both: the shortest and the longest, both counted in.

    Raises ValueError for anything else, and where the second is shorter than the first.
    """
    low, dots, high = (side.strip() for side in text.partition(".."))
    if not dots or not low or not high:
        raise ValueError(f"not a range of durations: {text[:40]!r}; write it like 5d..9d")
    unit = _LAST_UNIT.search(high)
    if unit and _BARE.fullmatch(low):
        low += unit.group()
    shortest, longest = parse_duration(low), parse_duration(high)
    if longest < shortest:
        raise ValueError(f"from {spoken(shortest)} to {spoken(longest)} is the wrong way round")
    return shortest, longest


def clock_hours(span: timedelta) -> str:
    """`23:30` for 23 h 30 min; hours may exceed 24."""
    minutes = int(span.total_seconds() // 60)
    return f"{minutes // 60}:{minutes % 60:02d}"


def spoken(span: timedelta) -> str:
    """`23 h 30 min`, `2 d 4 h`, `45 s`: for sentences. Seconds only below a minute."""
    seconds = int(span.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    days, rest = divmod(seconds // 60, 1440)
    hours, minutes = divmod(rest, 60)
    if days < 2:
        hours, days = hours + 24 * days, 0
    parts = [f"{n} {unit}" for n, unit in ((days, "d"), (hours, "h"), (minutes, "min")) if n]
    return " ".join(parts)
