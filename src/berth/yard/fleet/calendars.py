"""The calendars of a whole fleet: one a pool, and one more for each face that has a cap of its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from berth.terms.window import Window
from berth.yard.fleet.calendar import PoolCalendar, slot_start, slots_at
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.pools import Pool


class FleetCalendars:
    """What is committed in every pool of a fleet. Not thread-safe: it belongs to the writer.

    A commit of a window counts against the pool's reservable share, and against the face through which it was
    sold where that face has a cap. An open commit counts to infinity against the on-demand share only, in a
    calendar of its own.
    """

    def __init__(self, fleet: Fleet, now: datetime) -> None:
        self._fleet = fleet
        self._now = now
        self._pools: dict[str, PoolCalendar] = {}
        self._faces: dict[tuple[str, str], PoolCalendar] = {}
        self._on_demand: dict[str, PoolCalendar] = {}

    def pool(self, key: str) -> PoolCalendar:
        """The calendar of the pool `key`, made when first asked for. Raises KeyError for an unknown pool."""
        if key not in self._pools:
            if key not in self._fleet.pools:
                raise KeyError(key)
            self._pools[key] = PoolCalendar(self._now)
        return self._pools[key]

    def face(self, key: str, face: str | None) -> PoolCalendar | None:
        """The calendar of one face of a pool; None where that face has no cap (or `face` is None)."""
        if face is None:
            return None
        found = self._fleet.pools[key].faces.get(face)
        if found is None or found.cap is None:
            return None
        if (key, face) not in self._faces:
            self._faces[key, face] = PoolCalendar(self._now)
        return self._faces[key, face]

    def fits(self, pool: Pool, face: str | None, window: Window, count: int, keep_free: int = 0) -> bool:
        """Whether `count` more hosts may be promised in `window` through `face` (None: through no face).

        `keep_free` hosts of the reservable share are left alone: the outside account's restraint.
        """
        if not self.pool(pool.key).fits(window, count, pool.shares.reservable - keep_free):
            return False
        capped = self.face(pool.key, face)
        return capped is None or face is None or capped.fits(window, count, pool.limit(face))

    def commit(self, key: str, face: str | None, window: Window, count: int) -> None:
        """Promise `count` hosts of the pool in `window`. Whether they fit is for `fits` to say first."""
        self.pool(key).commit(window, count)
        capped = self.face(key, face)
        if capped is not None:
            capped.commit(window, count)

    def commit_all(self, key: str, face: str | None, promises: Sequence[tuple[int, int, int]]) -> None:
        """Promise many windows in one pass: start and end in microseconds since 1970, and a count of hosts.

        At 100,000 promises a pass takes a thirtieth of the time of as many commits.
        """
        starts, ends, counts = np.array(promises, dtype=np.int64).reshape(-1, 3).T
        first, last = slots_at(starts, ends)
        self.pool(key).commit_all(first, last, counts)
        capped = self.face(key, face)
        if capped is not None:
            capped.commit_all(first, last, counts)

    def release(self, key: str, face: str | None, window: Window, count: int) -> None:
        """Take such a promise back. Raises ValueError when it was not there."""
        self.pool(key).release(window, count)
        capped = self.face(key, face)
        if capped is not None:
            capped.release(window, count)

    # -- without an end ----------------------------------------------------------------------------------
    def on_demand(self, key: str) -> PoolCalendar:
        """What runs on demand in the pool `key`. Raises KeyError for an unknown pool."""
        if key not in self._on_demand:
            if key not in self._fleet.pools:
                raise KeyError(key)
            self._on_demand[key] = PoolCalendar(self._now)
        return self._on_demand[key]

    def free_on_demand(self, pool: Pool, start: datetime) -> int:
        """How many hosts of the pool's on-demand share are free from `start` on, for as long as one likes."""
        return max(0, pool.shares.on_demand - self.on_demand(pool.key).committed_max_from(start))

    def commit_open(self, key: str, start: datetime, count: int) -> None:
        """Let `count` hosts run on demand from `start` on. Whether they are free is for `free_on_demand`."""
        self.on_demand(key).commit_open(start, count)

    def release_open(self, key: str, end: datetime, count: int) -> None:
        """End such a run: the hosts are free from the slot that holds `end` on.

        A window is rounded outwards; this is not, since what is over of the present slot is nobody's to sell.
        """
        self.on_demand(key).release_open(slot_start(end), count)

    def roll_to(self, now: datetime) -> None:
        """Let every calendar forget the past up to `now`."""
        self._now = max(self._now, now)
        for calendar in [*self._pools.values(), *self._faces.values(), *self._on_demand.values()]:
            calendar.roll_to(now)
