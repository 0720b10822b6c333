"""What is vacant: windows that the rules of time allow, and those of them in which a pool has hosts free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from berth.terms.window import Window
from berth.yard.fleet.calendar import PoolCalendar, day_at
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.pools import Pool
from berth.yard.market.window_rules import immediate_ends, scheduled_starts, startable, window_of

Numbers = tuple[int, int]  # start and end numbers: see window_of


@dataclass(frozen=True, slots=True)
class Candidates:
    """The start and end numbers that a query and the clock allow; capacity is not asked yet."""

    issued_at: datetime
    today: int  # the 11:30-to-11:30 day of the issue minute
    days: int
    immediate: tuple[tuple[Numbers, Window], ...]
    scheduled: range

    def window(self, numbers: Numbers) -> Window:
        """The window that the numbers stand for."""
        return window_of(self.issued_at, *numbers)


def candidates_for(
    days: int,
    *,
    start_after: datetime,
    end_before: datetime | None,
    issued_at: datetime,
    payment_delay: timedelta,
) -> Candidates:
    """The windows of about `days` days that start at `start_after` or later, end by `end_before` (None =
    whenever) and can be paid in time when searched for at `issued_at`."""

    def allowed(numbers: Numbers) -> bool:
        window = window_of(issued_at, *numbers)
        in_time = end_before is None or window.end <= end_before
        return in_time and start_after <= window.start and startable(issued_at, window.start, payment_delay)

    immediate = tuple(
        (numbers, window_of(issued_at, *numbers))
        for numbers in ((0, end) for end in immediate_ends(issued_at, days))
        if allowed(numbers)
    )
    scheduled = scheduled_starts(issued_at, days, start_after, end_before)
    while scheduled and not startable(
        issued_at, window_of(issued_at, scheduled[0], days).start, payment_delay
    ):
        scheduled = scheduled[1:]
    if scheduled and window_of(issued_at, scheduled[0], days) in {window for _, window in immediate}:
        scheduled = scheduled[1:]  # an immediate start at 11:30 itself is the same offering
    return Candidates(issued_at, day_at(issued_at), days, immediate, scheduled)


def free_windows(
    pool: Pool, face: str, count: int, candidates: Candidates, calendars: FleetCalendars, *, most: int
) -> Iterator[tuple[Numbers, int]]:
    """Candidates in which `count` hosts of the pool are free for `face`, and how many are free; of immediate
    and of scheduled ones the earliest `most` each."""
    if count % pool.unit:
        return
    booked = [(calendars.pool(pool.key), pool.shares.reservable)]
    capped = calendars.face(pool.key, face)
    if capped is not None:
        booked.append((capped, pool.limit(face)))
    for numbers, window in candidates.immediate:
        free = min(_free(calendar, limit, window) for calendar, limit in booked)
        if free >= count:
            yield numbers, free
    if candidates.scheduled:
        yield from _free_starts(booked, count, candidates, most)


def _free(calendar: PoolCalendar, limit: int, window: Window) -> int:
    """Hosts free throughout `window`; none where the calendar has moved on past its start meanwhile."""
    return limit - calendar.committed_max(window) if window.start >= calendar.base else 0


def _free_starts(
    booked: list[tuple[PoolCalendar, int]], count: int, candidates: Candidates, most: int
) -> Iterator[tuple[Numbers, int]]:
    """The first `most` scheduled starts at which every one of the calendars has `count` hosts free."""
    today, days, scheduled = candidates.today, candidates.days, candidates.scheduled
    calendar = booked[0][0]  # a face's calendar rolls with the pool's
    first = max(today + scheduled.start, calendar.base_day)
    starts = calendar.starts_known(first, days, today + scheduled.stop - first)
    if starts <= 0:
        return
    frees = [calendar.free_min_for_days(first, days, limit, starts) for calendar, limit in booked]
    least = frees[0] if len(frees) == 1 else np.minimum(*frees)
    for index in np.flatnonzero(least >= count)[:most].tolist():
        yield (first - today + index, days), int(least[index])
