"""Background demand: what an outside account wants to buy, so that offers differ by day and place.

Each pool and day has its own draws, made from the fleet file's seed by a digest: any day can be asked
alone, in any order, in any process, and always gives the same arrivals. An arrival is a wish; whether it
becomes a purchase is for the admission to say, at its instant. All figures of the rhythm are invented.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import accumulate

from berth.terms.window import Window
from berth.yard.fleet.fleet import DemandSettings, Fleet
from berth.yard.fleet.pools import Pool
from berth.yard.market.window_rules import PAID_BEFORE_START, immediate_ends, issue_minute, window_of

# People buy by the clock of New York without its summer time.
OFFICE_OFFSET = timedelta(hours=5)
_HOURS = (1, 1, 1, 1, 1, 1, 2, 4, 8, 12, 13, 12, 9, 11, 12, 12, 10, 7, 4, 3, 2, 2, 1, 1)
_WEEKDAYS = (1.3, 1.35, 1.3, 1.25, 1.1, 0.35, 0.35)  # Monday first; they average 1
_BUSY_WEEKS = (0.3, 0.7, 1.0, 1.3, 1.7)  # of each pool, by draw; they average 1
_LENGTHS = {1: 30, 2: 16, 3: 12, 5: 10, 7: 16, 14: 10, 21: 3, 28: 3}  # days: weight
_LEADS = {
    0: 22,
    1: 16,
    2: 12,
    3: 8,
    5: 8,
    7: 10,
    14: 12,
    21: 6,
    35: 4,
    55: 2,
}  # days ahead, 0 = at once: weight
_MEAN_LENGTH = sum(days * weight for days, weight in _LENGTHS.items()) / sum(_LENGTHS.values())
_LONGEST = timedelta(days=max(_LENGTHS) + 1)
_FURTHEST = timedelta(days=max(_LEADS) + 2)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, order=True)
class Arrival:
    """The outside account asks for `count` hosts of the pool in `window`. Ordered by time, then pool."""

    at: datetime
    pool_key: str
    window: Window
    count: int


def arrivals(settings: DemandSettings, pool: Pool, day: date) -> list[Arrival]:
    """What the outside account asks of `pool` on one office day (from 05:00 UTC of `day` on), in order."""
    return sorted(_Wishes(settings, pool).on(day))


def arrivals_between(fleet: Fleet, start: datetime, end: datetime) -> list[Arrival]:
    """Every arrival with `start` <= at < `end`, over all pools, in order; empty without demand."""
    return sorted(_between(fleet, start, end, ends_after=None))


def _between(fleet: Fleet, start: datetime, end: datetime, ends_after: datetime | None) -> Iterator[Arrival]:
    if fleet.demand is None:
        return
    days = list(_office_days(start, end))
    for pool in fleet.pools.values():
        wishes = _Wishes(fleet.demand, pool)
        for day in days:
            for one in wishes.on(day, ends_after):
                if start <= one.at < end:
                    yield one


def backlog(fleet: Fleet, now: datetime) -> list[Arrival]:
    """Arrivals before `now` whose window is not over, in order: what a yard starting at `now` admits first.

    Windows that ended before `now` are left out, so a wish that they crowded out in a yard that ran on may be
    granted here: the two differ by a few bookings.
    """
    found = _between(fleet, now - _FURTHEST - _LONGEST, now, ends_after=now)
    return sorted(one for one in found if one.window.end > now)


def _office_days(start: datetime, end: datetime) -> Iterator[date]:
    day = (start - OFFICE_OFFSET).date()
    while datetime.combine(day, time(), UTC) + OFFICE_OFFSET < end:
        yield day
        day += _DAY


class _Chances:
    """Values and how likely each is."""

    def __init__(self, weights: Mapping[int, float]) -> None:
        self._values = tuple(weights)
        self._sums = tuple(accumulate(weights.values()))

    def pick(self, point: float) -> int:
        """The value at `point` of [0, 1)."""
        return self._values[bisect_right(self._sums, point * self._sums[-1])]


_HOUR_CHANCES = _Chances(dict(enumerate(_HOURS)))
_LENGTH_CHANCES = _Chances(_LENGTHS)
_LEAD_CHANCES = _Chances(_LEADS)


class _Wishes:
    """The demand for one pool: what of it does not change from day to day."""

    def __init__(self, settings: DemandSettings, pool: Pool) -> None:
        level = settings.level_of(pool)
        reach = 0 if level is None else pool.shares.reservable - level.keep_free
        self._seed, self._pool = settings.seed, pool
        self._rate = 0.0  # arrivals a day
        if level is not None and reach >= pool.unit:
            sizes = _sizes(pool.unit, reach)
            self._sizes = _Chances({size: 1 / size for size in sizes})
            mean_host_days = len(sizes) / sum(1 / size for size in sizes) * _MEAN_LENGTH
            self._rate = float(level.load) * pool.shares.reservable / mean_host_days
        self._week, self._busy = -1, 0.0

    def on(self, day: date, ends_after: datetime | None = None) -> Iterator[Arrival]:
        """The arrivals of one office day; those over before `ends_after` may be left out."""
        if self._rate == 0:
            return
        number = day.toordinal()
        midnight = datetime.combine(day, time(), UTC) + OFFICE_OFFSET
        draws = _Draws(self._seed, f"{self._pool.key}/{number}")
        many = draws.poisson(self._rate * _WEEKDAYS[day.weekday()] * self._busyness(number // 7))
        for _ in range(many):
            arrival = self._arrival(draws, midnight, ends_after)
            if arrival is not None:
                yield arrival

    def _busyness(self, week: int) -> float:
        """How busy the week is for this pool: a factor that averages 1."""
        if week != self._week:
            draw = _Draws(self._seed, f"{self._pool.key}/week {week}").uniform()
            self._week, self._busy = week, _BUSY_WEEKS[int(draw * len(_BUSY_WEEKS))]
        return self._busy

    def _arrival(self, draws: _Draws, midnight: datetime, ends_after: datetime | None) -> Arrival | None:
        hour = _HOUR_CHANCES.pick(draws.uniform())
        at = midnight + timedelta(hours=hour, seconds=int(draws.uniform() * 3600))
        count = self._sizes.pick(draws.uniform())
        days = _LENGTH_CHANCES.pick(draws.uniform())
        start = _LEAD_CHANCES.pick(draws.uniform())
        # A window starts within start + 2 days of its office day, and no window of `days` is a day longer.
        if ends_after is not None and midnight + (start + days + 3) * _DAY <= ends_after:
            return None
        issued = issue_minute(at)
        window = window_of(issued, start, days if start else next(immediate_ends(issued, days)))
        if window.start - issued < 2 * PAID_BEFORE_START:  # too near to be paid in time: the next day's
            window = window_of(issued, start + 1, days)
        return Arrival(at, self._pool.key, window, count)


def _sizes(unit: int, reach: int) -> list[int]:
    """The counts that are asked: powers of two of the unit, up to half of what can be had."""
    most = max(unit, min(64, reach // 2))
    return [unit << n for n in range(7) if unit << n <= most]


class _Draws:
    """Numbers from a digest of seed and name: the same on every machine and in every version of Python."""

    def __init__(self, seed: int, name: str) -> None:
        digest = hashlib.blake2b(name.encode(), digest_size=8, key=seed.to_bytes(8, "big"), person=b"demand")
        self._state = int.from_bytes(digest.digest(), "big")

    def uniform(self) -> float:
        """From [0, 1), in 2**53 steps (splitmix64)."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return ((mixed ^ (mixed >> 31)) >> 11) / (1 << 53)

    def poisson(self, mean: float) -> int:
        """How many of rare, independent events happen when `mean` are expected."""
        floor, product, count = math.exp(-mean), self.uniform(), 0
        while product > floor:
            product *= self.uniform()
            count += 1
        return count
