"""Searching: which training plans can be had now. It writes nothing and promises nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np

from berth.terms.money import Money
from berth.terms.ways import Target
from berth.terms.window import Window
from berth.yard.fleet.calendar import PoolCalendar, day_at
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet, Quotas, pools_for
from berth.yard.fleet.pools import SAGEMAKER, Pool
from berth.yard.market.fees import fee
from berth.yard.market.plan_query import CheckedQuery, PlanQuery, check_query
from berth.yard.market.plan_rules import (
    OFFERINGS_MAX,
    PlanTerms,
    immediate_ends,
    issue_minute,
    scheduled_starts,
    startable,
    whole_days,
    window_of,
)
from berth.yard.market.price_lists import Rate, rate_at

Numbers = tuple[int, int]  # start and end numbers of PlanTerms


@dataclass(frozen=True, slots=True)
class PlanOffering:
    """One continuous plan that could be bought: terms, and what else the answer shows.

    `rate` is the price list's rate that the fee was reckoned from, before any rehearsed price change.
    """

    terms: PlanTerms
    instance_type: str
    zone_id: str
    rate: Rate

    @property
    def window(self) -> Window:
        """The paid window."""
        return self.terms.window

    @property
    def count(self) -> int:
        """Instances."""
        return self.terms.count

    @property
    def fee(self) -> Money:
        """The whole upfront fee: all instances, all hours."""
        return self.terms.fee

    @property
    def targets(self) -> tuple[Target, ...]:
        """What the plan would be for, fixed at purchase."""
        return self.terms.targets

    @property
    def hours_and_minutes(self) -> tuple[int, int]:
        """`DurationHours` and `DurationMinutes`: the two add up."""
        return divmod(self.window.duration // timedelta(minutes=1), 60)


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The start and end numbers that the query and the clock allow; capacity is not asked yet."""

    issued_at: datetime
    today: int  # the 11:30-to-11:30 day of the issue minute
    days: int
    immediate: tuple[tuple[Numbers, Window], ...]
    scheduled: range

    def window(self, numbers: Numbers) -> Window:
        """The window that the numbers stand for."""
        return window_of(self.issued_at, *numbers)


def search_plan_offerings(
    query: PlanQuery,
    *,
    region: str,
    now: datetime,
    fleet: Fleet,
    calendars: FleetCalendars,
    quotas: Quotas | None = None,
    rate_factor: Decimal = Decimal(1),
) -> tuple[PlanOffering, ...]:
    """At most three offerings for `query`, best match first; empty when nothing is free.

    Order, after AWS's worked example: earliest start first, then earliest end. Each window is offered once,
    in the zone with the most hosts free throughout (inferred: AWS does not say how it picks a zone). An
    offering that could not be paid 5 minutes before its start is not shown. `quotas` None = the fleet's;
    `rate_factor` rehearses a price change.

    Raises ServiceError for a query that AWS would refuse (see check_query).
    """
    quotas = fleet.quotas if quotas is None else quotas
    pools = pools_for(fleet, region, face=SAGEMAKER, type=query.instance_type or "")
    checked = check_query(query, now, pools, quotas)
    candidates = _candidates(checked, issue_minute(now), fleet.payment_delay)
    rate = rate_at(fleet.price_lists, candidates.issued_at, pools[0].hardware, region)
    if rate is None:
        return ()
    best: dict[Numbers, tuple[int, Pool]] = {}
    for pool in pools:
        if pool.self_service and set(checked.targets) <= pool.targets:
            for numbers, free in _free_windows(pool, checked.count, candidates, calendars):
                if numbers not in best or free > best[numbers][0]:
                    best[numbers] = (free, pool)

    def offered(numbers: Numbers) -> PlanOffering:
        price = fee(rate.usd_per_hour * rate_factor, checked.count, candidates.window(numbers))
        pool = best[numbers][1]
        terms = PlanTerms(pool.key, checked.count, checked.targets, candidates.issued_at, *numbers, price)
        return PlanOffering(terms, checked.instance_type, pool.zone_id, rate)

    return tuple(offered(numbers) for numbers in sorted(best, key=candidates.window)[:OFFERINGS_MAX])


def _candidates(query: CheckedQuery, issued_at: datetime, payment_delay: timedelta) -> _Candidates:
    days = whole_days(query.duration_hours)

    def allowed(numbers: Numbers) -> bool:
        window = window_of(issued_at, *numbers)
        in_time = query.end_before is None or window.end <= query.end_before
        return (
            in_time
            and query.start_after <= window.start
            and startable(issued_at, window.start, payment_delay)
        )

    immediate = tuple(
        (numbers, window_of(issued_at, *numbers))
        for numbers in ((0, end) for end in immediate_ends(issued_at, days))
        if allowed(numbers)
    )
    scheduled = scheduled_starts(issued_at, days, query.start_after, query.end_before)
    while scheduled and not startable(
        issued_at, window_of(issued_at, scheduled[0], days).start, payment_delay
    ):
        scheduled = scheduled[1:]
    if scheduled and window_of(issued_at, scheduled[0], days) in {window for _, window in immediate}:
        scheduled = scheduled[1:]  # an immediate start at 11:30 itself is the same offering
    return _Candidates(issued_at, day_at(issued_at), days, immediate, scheduled)


def _free_windows(
    pool: Pool, count: int, candidates: _Candidates, calendars: FleetCalendars
) -> Iterator[tuple[Numbers, int]]:
    """Candidates in which `count` hosts of the pool are free, at most three of each kind; how many are."""
    if count % pool.unit:
        return
    booked = [(calendars.pool(pool.key), pool.shares.reservable)]
    capped = calendars.face(pool.key, SAGEMAKER)
    if capped is not None:
        booked.append((capped, pool.limit(SAGEMAKER)))
    for numbers, window in candidates.immediate:
        free = min(_free(calendar, limit, window) for calendar, limit in booked)
        if free >= count:
            yield numbers, free
    if candidates.scheduled:
        yield from _free_starts(booked, count, candidates)


def _free(calendar: PoolCalendar, limit: int, window: Window) -> int:
    """Hosts free throughout `window`; none where the calendar has moved on past its start meanwhile."""
    return limit - calendar.committed_max(window) if window.start >= calendar.base else 0


def _free_starts(
    booked: list[tuple[PoolCalendar, int]], count: int, candidates: _Candidates
) -> Iterator[tuple[Numbers, int]]:
    """The first three scheduled starts at which every one of the calendars has `count` hosts free."""
    today, days, scheduled = candidates.today, candidates.days, candidates.scheduled
    calendar = booked[0][0]  # a face's calendar rolls with the pool's
    first = max(today + scheduled.start, calendar.base_day)
    starts = calendar.starts_known(first, days, today + scheduled.stop - first)
    if starts <= 0:
        return
    frees = [calendar.free_min_for_days(first, days, limit, starts) for calendar, limit in booked]
    least = frees[0] if len(frees) == 1 else np.minimum(*frees)
    for index in np.flatnonzero(least >= count)[:OFFERINGS_MAX].tolist():
        yield (first - today + index, days), int(least[index])
