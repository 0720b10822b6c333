"""The calendar of a pool: how many of its hosts are committed, slot by slot.

Hosts of a pool are interchangeable, so whether a window fits is a count and not a placement: it fits when
the highest committed count inside it plus the asked count is at most what may be sold (interval graphs are
perfect). The count lives in one dense array, so no question costs more because more has been sold.

Three parts hold it:

- a slot of half an hour for each of the next 238 days (8 weeks of lead and 26 weeks of length, the furthest
  that AWS sells), windows rounded outwards to slots;
- the highest count of each day from 11:30 to 11:30 UTC, since scheduled windows start and end there;
- `tail`, the count just past the last slot (open ends), with the few changes that lie beyond it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from berth.terms.instants import EPOCH
from berth.terms.window import Window

SLOT = timedelta(minutes=30)
SLOTS_PER_DAY = 48
HORIZON_DAYS = 238  # 56 days of lead and 182 days of length
STARTS = 57  # today's 11:30 UTC and the 56 after it: how far ahead AWS sells
_DAY_OFFSET = 23  # 11:30 UTC is the 23rd slot of a UTC day
_FOR_EVER = 2**62  # a slot that no change lies behind

Counts = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


def slot_at(instant: datetime) -> int:
    """The slot (half hours since 1970-01-01T00:00Z) that holds `instant`."""
    return (instant - EPOCH) // SLOT


def day_at(instant: datetime) -> int:
    """The 11:30-to-11:30 UTC day that holds `instant`; day 0 began on 1970-01-01 at 11:30 UTC."""
    return (slot_at(instant) - _DAY_OFFSET) // SLOTS_PER_DAY


def day_start(day: int) -> datetime:
    """The 11:30 UTC at which `day` begins."""
    return EPOCH + (day * SLOTS_PER_DAY + _DAY_OFFSET) * SLOT


def slot_start(instant: datetime) -> datetime:
    """The beginning of the slot that holds `instant`."""
    return EPOCH + slot_at(instant) * SLOT


def slots_of(window: Window) -> tuple[int, int]:
    """First slot and the slot after the last that `window` touches: rounded outwards, never inwards."""
    return slot_at(window.start), -((EPOCH - window.end) // SLOT)


def slots_at(starts_us: Longs, ends_us: Longs) -> tuple[Longs, Longs]:
    """`slots_of` for many windows, whose ends are microseconds since 1970-01-01T00:00Z."""
    slot_us = SLOT // timedelta(microseconds=1)
    return starts_us // slot_us, -(-ends_us // slot_us)


def day_after(instant: datetime) -> int:
    """The first day that begins strictly after `instant`."""
    return day_at(instant) + 1


class PoolCalendar:
    """Committed hosts of one pool over time. Not thread-safe: it belongs to the writer.

    `now` sets the base, the 11:30-to-11:30 day that holds it. Nothing is kept before the base: what a window
    has there is cut off when it is committed, released or asked about. Beyond the horizon everything is kept
    and counts, only more slowly.
    """

    def __init__(self, now: datetime) -> None:
        self._base_day = day_at(now)
        self._slots: Counts = np.zeros(HORIZON_DAYS * SLOTS_PER_DAY, dtype=np.int32)
        self._days: Counts = np.zeros(HORIZON_DAYS, dtype=np.int32)
        self._tail = 0  # count in the first slot past the horizon
        self._beyond: dict[int, int] = {}  # changes of the count at slots past that one

    @property
    def base(self) -> datetime:
        """The instant from which the calendar knows anything."""
        return day_start(self._base_day)

    @property
    def base_day(self) -> int:
        """The day number (`day_at`) of the base."""
        return self._base_day

    @property
    def horizon(self) -> datetime:
        """The instant after the last dense slot."""
        return day_start(self._base_day + HORIZON_DAYS)

    # -- asking ----------------------------------------------------------------------------------------
    def committed_max(self, window: Window) -> int:
        """The highest committed count at any instant of `window` (slots rounded outwards).

        Raises ValueError when the whole window lies before the base: nothing is known there.
        """
        first, last = slots_of(window)
        low, high = self._cut(first), last - self._first_slot
        if high <= 0:
            raise ValueError(f"the calendar keeps nothing before {self.base.isoformat()}")
        best = self._dense_max(low, min(high, self._slots.size)) if low < self._slots.size else 0
        if high > self._slots.size:
            best = max(best, self._beyond_max(max(first, self._end_slot), last))
        return best

    def committed_max_from(self, start: datetime) -> int:
        """The highest committed count at any instant from `start` on, for ever."""
        first = slot_at(start)
        low = self._cut(first)
        beyond = self._beyond_max(max(first, self._end_slot), _FOR_EVER)
        return max(beyond, self._dense_max(low, self._slots.size)) if low < self._slots.size else beyond

    def fits(self, window: Window, count: int, limit: int) -> bool:
        """Whether `count` more hosts can be committed in all of `window` without passing `limit`."""
        return self.committed_max(window) + count <= limit

    def committed_max_for_days(self, first: int, days_long: int, starts: int = STARTS) -> Counts:
        """The highest committed count of each window of `days_long` days starting on days first, first+1, ...

        One number for each of `starts` starts. `first` is a day number (`day_at`), not before the base.
        Raises ValueError when the last of them would end past the horizon.
        """
        low = first - self._base_day
        high = low + starts + days_long - 1
        if low < 0 or high > HORIZON_DAYS or days_long < 1 or starts < 1:
            raise ValueError(f"days {first} to {first + starts + days_long - 1} are not all on the calendar")
        days = self._days[low:high]
        if days_long == 1:
            return days.copy()
        return _sliding_max(days, days_long)

    def starts_known(self, first: int, days_long: int, wanted: int = STARTS) -> int:
        """How many of `wanted` such windows, starting on days first, first+1, ..., end by the horizon."""
        return max(0, min(wanted, self._base_day + HORIZON_DAYS - days_long - first + 1))

    def free_min_for_days(self, first: int, days_long: int, limit: int, starts: int = STARTS) -> Counts:
        """How many of `limit` hosts stay free throughout each of those windows; negative when oversold."""
        return np.int32(limit) - self.committed_max_for_days(first, days_long, starts)

    # -- changing --------------------------------------------------------------------------------------
    def commit(self, window: Window, count: int) -> None:
        """Count `count` hosts as committed in `window`. What lies before the base is not kept."""
        self._change(*slots_of(window), count)

    def commit_all(self, first: Longs, last: Longs, counts: Longs) -> None:
        """Commit many windows in one pass: the slots [first, last) of each, and its count; see `slots_at`."""
        size, end = self._slots.size, self._end_slot
        changes = np.zeros(size + 1, dtype=np.int64)
        np.add.at(changes, np.clip(first - self._first_slot, 0, size), counts)
        np.subtract.at(changes, np.clip(last - self._first_slot, 0, size), counts)
        self._slots += changes[:size].cumsum().astype(np.int32)
        self._days = self._slots.reshape(HORIZON_DAYS, SLOTS_PER_DAY).max(axis=1)
        for number in np.flatnonzero(last > end):
            self._change_beyond(int(first[number]), int(counts[number]))
            self._change_beyond(int(last[number]), -int(counts[number]))

    def release(self, window: Window, count: int) -> None:
        """Take back a commit of the same window and count, or what is left of it from `window.start` on.

        Raises ValueError, and changes nothing, when fewer than `count` hosts are committed somewhere inside.
        """
        if window.end <= self.base:
            return
        self._demand(slots_of(window)[0], slots_of(window)[1], count)
        self._change(*slots_of(window), -count)

    def commit_open(self, start: datetime, count: int) -> None:
        """Count `count` hosts as committed from `start` on, without an end."""
        self._change_open(slot_at(start), count)

    def release_open(self, start: datetime, count: int) -> None:
        """End an open commit at `start` (rounded up to a slot): from there on the hosts are free."""
        self._change_open(-((EPOCH - start) // SLOT), -count)

    def roll_to(self, now: datetime) -> None:
        """Move the base to the day that holds `now`: the past is forgotten, new slots come in at the end.

        An earlier `now` changes nothing, since a yard's clock never goes back.
        """
        days = day_at(now) - self._base_day
        if days <= 0:
            return
        incoming = self._leave_beyond(days)
        kept = max(0, HORIZON_DAYS - days)
        self._slots = np.concatenate([self._slots[self._slots.size - kept * SLOTS_PER_DAY :], incoming])
        self._days = self._slots.reshape(HORIZON_DAYS, SLOTS_PER_DAY).max(axis=1)
        self._base_day += days

    # -- inside ----------------------------------------------------------------------------------------
    @property
    def _first_slot(self) -> int:
        return self._base_day * SLOTS_PER_DAY + _DAY_OFFSET

    @property
    def _end_slot(self) -> int:
        return self._first_slot + self._slots.size

    def _cut(self, slot: int) -> int:
        return max(0, slot - self._first_slot)

    def _dense_max(self, low: int, high: int) -> int:
        """Highest count of the dense slots [low, high): day maxima inside, slots at the two ragged edges."""
        first_day, last_day = -(-low // SLOTS_PER_DAY), high // SLOTS_PER_DAY
        if last_day <= first_day:
            return int(self._slots[low:high].max())
        best = int(self._days[first_day:last_day].max())
        if low < first_day * SLOTS_PER_DAY:
            best = max(best, int(self._slots[low : first_day * SLOTS_PER_DAY].max()))
        if last_day * SLOTS_PER_DAY < high:
            best = max(best, int(self._slots[last_day * SLOTS_PER_DAY : high].max()))
        return best

    def _dense_add(self, low: int, high: int, count: int) -> None:
        """Add to the dense slots [low, high) and keep the day maxima true."""
        self._slots[low:high] += np.int32(count)
        whole_first, whole_last = -(-low // SLOTS_PER_DAY), high // SLOTS_PER_DAY
        if whole_first < whole_last:
            self._days[whole_first:whole_last] += np.int32(count)
        for day in {low // SLOTS_PER_DAY, (high - 1) // SLOTS_PER_DAY}:
            if not whole_first <= day < whole_last:  # only in part: its maximum may lie in the other part
                start = day * SLOTS_PER_DAY
                self._days[day] = self._slots[start : start + SLOTS_PER_DAY].max()

    def _change(self, first: int, last: int, count: int) -> None:
        size, end = self._slots.size, self._end_slot
        low, high = self._cut(first), min(last - self._first_slot, size)
        if low < high:
            self._dense_add(low, high, count)
        if last > end:
            self._change_beyond(first, count)
            self._change_beyond(last, -count)

    def _change_open(self, first: int, count: int) -> None:
        low = self._cut(first)
        if low < self._slots.size:
            self._dense_add(low, self._slots.size, count)
        self._change_beyond(first, count)

    def _change_beyond(self, slot: int, count: int) -> None:
        """From `slot` on the count beyond the horizon is higher by `count`."""
        if slot <= self._end_slot:
            self._tail += count
            return
        change = self._beyond.pop(slot, 0) + count
        if change:
            self._beyond[slot] = change

    def _beyond_levels(self, first: int, last: int) -> list[int]:
        """The counts that hold somewhere in the slots [first, last), all past the horizon."""
        level, inside = self._tail, []
        for slot in sorted(self._beyond):
            if slot >= last:
                break
            if slot > first:
                inside.append(level)
            level += self._beyond[slot]
        return [*inside, level]

    def _beyond_max(self, first: int, last: int) -> int:
        return max(self._beyond_levels(first, last))

    def _demand(self, first: int, last: int, count: int) -> None:
        """Raise unless at least `count` hosts are committed in every slot of [first, last) past the base."""
        low, high = self._cut(first), min(last - self._first_slot, self._slots.size)
        least = int(self._slots[low:high].min()) if low < high else count
        if last > self._end_slot:
            least = min(least, *self._beyond_levels(max(first, self._end_slot), last))
        if least < count:
            raise ValueError(f"only {least} hosts are committed where {count} should be released")

    def _leave_beyond(self, days: int) -> Counts:
        """Take the first `days` days past the horizon into dense slots (at most a whole calendar of them)."""
        new_end = self._end_slot + days * SLOTS_PER_DAY
        length = min(days, HORIZON_DAYS) * SLOTS_PER_DAY
        incoming = np.full(length, self._tail, dtype=np.int32)
        for slot in sorted(self._beyond):
            if slot > new_end:
                break
            change = self._beyond.pop(slot)
            incoming[max(0, slot - (new_end - length)) :] += np.int32(change)
            self._tail += change
        return incoming


def _sliding_max(values: Counts, width: int) -> Counts:
    """The maximum of each run of `width` values, by doubling: log2(width) passes over the array."""
    best, covered = values, 1
    while covered * 2 <= width:
        best = np.maximum(best[:-covered], best[covered:])
        covered *= 2
    rest = width - covered
    return np.maximum(best[:-rest], best[rest:]) if rest else best.copy()
