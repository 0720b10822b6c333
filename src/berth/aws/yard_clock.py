"""The one clock of a command: the service's, which it tells with each answer; this machine's before that."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from berth.terms.clock import Clock
from berth.terms.instants import parse_instant
from berth.terms.outcomes import BerthError, ExitCode

HEADER = "x-yard-time"
SCALE_HEADER = "x-yard-throttle-scale"
# A yard whose time differs by no more than this from ours runs on real time.
_REAL = timedelta(seconds=5)
# `Date` has whole seconds and has been under way: what differs by no more than this agrees.
_AGREES = timedelta(seconds=3)


class FollowingClock:
    """A clock that follows what answers tell: the header `x-yard-time` of a yard, else HTTP's `Date`.

    By `Date` it corrects the machine's clock, which may be minutes off: what AWS shows late is late on AWS's
    clock, and journals are shared by machines that do not agree. Until an answer has told anything `now` is
    the machine's. A yard's simulated clock moves only when somebody moves it, so between two answers `now`
    stands still; `elapsed` and `sleep` are always real.
    """

    def __init__(self, real: Clock) -> None:
        self._real = real
        self._told: datetime | None = None
        self._off = timedelta(0)
        self.throttle_scale = 1.0

    @property
    def told(self) -> datetime | None:
        """What the yard's clock said last, None when no yard has told a time."""
        return self._told

    @property
    def is_simulated(self) -> bool:
        """Whether the yard's clock is not real time."""
        return self._told is not None and abs(self._told - self._real.now()) > _REAL

    def hear(self, header: str) -> None:
        """Take the time from an answer. Raises BerthError when the header cannot be read."""
        try:
            told = parse_instant(header)
        except ValueError as problem:
            raise BerthError(
                ExitCode.INTERNAL_ERROR, f"the yard sends a clock that cannot be read: {problem}"
            ) from None
        # Answers may be heard out of order; a yard's clock never goes back.
        self._told = told if self._told is None else max(self._told, told)

    def hear_scale(self, header: str) -> None:
        """Take how many times faster than AWS's a rehearsal's throttles refill; what cannot be read is 1."""
        try:
            scale = float(header)
        except ValueError:
            return
        self.throttle_scale = scale if 1 <= scale < math.inf else 1.0

    def hear_date(self, header: str) -> None:
        """Take the service's time from the header `Date` of an answer; an unreadable one tells nothing."""
        try:
            told = parsedate_to_datetime(header)
        except ValueError:
            return
        if told.tzinfo is None:  # `-0000`: not said where
            told = told.replace(tzinfo=UTC)
        off = told - self._real.now()
        if abs(off - self._off) > _AGREES:
            self._off = off if abs(off) > _AGREES else timedelta(0)

    def now(self) -> datetime:
        """The present on the clock that is followed."""
        if self._told is not None and self.is_simulated:
            return self._told
        return self._real.now() + self._off

    def real_now(self) -> datetime:
        """The machine's own present, by which signatures are made and judged, also in a rehearsal."""
        return self._real.now()

    def elapsed(self) -> float:
        """Seconds of real time."""
        return self._real.elapsed()

    def sleep(self, seconds: float) -> None:
        """Sleep `seconds` of real time; a yard's clock does not move by it."""
        self._real.sleep(seconds)
