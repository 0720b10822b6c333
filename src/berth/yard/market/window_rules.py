"""AWS's rules of time that Capacity Blocks and training plans share: ends at 11:30 UTC, how soon, how far
ahead, how long, when the fee must be there.

Source of each number: SageMaker Developer Guide, "Reserve capacity with training plans" and "Search for
training plan offerings"; EC2 User Guide, "Capacity Blocks for ML" (copies of 2026). What the guides leave
open is marked "inferred" where it is decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from berth.terms.instants import EPOCH
from berth.terms.window import Window
from berth.yard.fleet.calendar import day_after, day_at, day_start

DAYS_MAX = 182
LEAD_DAYS_MAX = 56
IMMEDIATE_LEAD = timedelta(minutes=30)
PAID_BEFORE_START = timedelta(minutes=5)
# Inferred: AWS states no least length of an immediate offering. Under an hour nothing usable is left, since
# instances are reclaimed from 30 minutes before the end (60 for a HyperPod cluster or an UltraServer).
SHORTEST = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)


def issue_minute(now: datetime) -> datetime:
    """The minute that a search at `now` counts from: `now` rounded up, so that no start comes too early."""
    return EPOCH + -((EPOCH - now) // _MINUTE) * _MINUTE


def window_of(issued_at: datetime, start: int, end: int) -> Window:
    """The window of two numbers. `start`: 0 is 30 minutes after the issue minute, n the n-th 11:30 UTC after
    it. `end` counts 11:30s after the start."""
    starts = issued_at + IMMEDIATE_LEAD if start == 0 else day_start(day_at(issued_at) + start)
    return Window(starts, day_start(day_at(starts) + end))


def immediate_ends(issued_at: datetime, days: int) -> Iterator[int]:
    """End numbers of the immediate offerings for an ask of `days`: the 11:30 on either side of the asked
    length.

    AWS's sample: asked for 15 h (so for 1 day) at 19:08, it offers 15 h 51 min and 39 h 51 min.
    """
    for end in (days, days + 1):
        length = window_of(issued_at, 0, end).duration
        if SHORTEST <= length <= DAYS_MAX * _DAY:
            yield end
        if length == days * _DAY:
            return


def scheduled_starts(
    issued_at: datetime, days: int, start_after: datetime, end_before: datetime | None
) -> range:
    """Start numbers n (1 to 56) whose window of `days` starts at `start_after` or later and ends in time."""
    first = max(1, _number_at_or_after(issued_at, start_after))
    last = LEAD_DAYS_MAX
    if end_before is not None:
        last = min(last, day_at(end_before) - days - day_at(issued_at))
    return range(first, last + 1)


def _number_at_or_after(issued_at: datetime, instant: datetime) -> int:
    """Which 11:30 UTC after `issued_at` is the first at or after `instant`."""
    exact = day_start(day_at(instant)) == instant
    return (day_at(instant) if exact else day_after(instant)) - day_at(issued_at)


def payable(now: datetime, starts: datetime, payment_delay: timedelta) -> bool:
    """Whether a purchase at `now` is paid in time: at least 5 minutes before the start."""
    return now + payment_delay + PAID_BEFORE_START <= starts


def startable(issued_at: datetime, starts: datetime, payment_delay: timedelta) -> bool:
    """Whether an offer may start so soon: 30 minutes after the search or later, and still payable."""
    return issued_at + IMMEDIATE_LEAD <= starts and payable(issued_at, starts, payment_delay)
