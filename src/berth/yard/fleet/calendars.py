"""The calendars of a whole fleet: one a pool, and one more for each face that has a cap of its own."""

from __future__ import annotations

from datetime import datetime

from berth.terms.window import Window
from berth.yard.fleet.calendar import PoolCalendar
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.pools import Pool


class FleetCalendars:
    """What is committed in every pool of a fleet. Not thread-safe: it belongs to the writer.

    A commit counts against the pool, and against the face through which it was sold where that face has a
    cap.
    """

    def __init__(self, fleet: Fleet, now: datetime) -> None:
        self._fleet = fleet
        self._now = now
        self._pools: dict[str, PoolCalendar] = {}
        self._faces: dict[tuple[str, str], PoolCalendar] = {}

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

    def release(self, key: str, face: str | None, window: Window, count: int) -> None:
        """Take such a promise back. Raises ValueError when it was not there."""
        self.pool(key).release(window, count)
        capped = self.face(key, face)
        if capped is not None:
            capped.release(window, count)

    def roll_to(self, now: datetime) -> None:
        """Let every calendar forget the past up to `now`."""
        self._now = max(self._now, now)
        for calendar in [*self._pools.values(), *self._faces.values()]:
            calendar.roll_to(now)
