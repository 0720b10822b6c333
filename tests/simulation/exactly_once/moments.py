"""Time in the simulation: one true time, and machines whose clocks may be wrong by a fixed span."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta


class TrueTime:
    """The time that passes. `advance` is the only thing that moves it; nothing sleeps."""

    def __init__(self, start: datetime) -> None:
        self.now = start
        self._start = start
        self.follow: Callable[[datetime], None] = lambda to: None

    def advance(self, span: timedelta) -> None:
        """Let `span` pass; who follows (the yard, late deliveries) is moved along, instant by instant."""
        target = self.now + span
        self.follow(target)
        self.now = target

    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return (self.now - self._start).total_seconds()


class MachineClock:
    """The clock of one machine: true time plus `off`. Sleeping moves true time."""

    def __init__(self, time: TrueTime, off: timedelta = timedelta(0)) -> None:
        self._time = time
        self.off = off

    def now(self) -> datetime:
        """What the machine believes."""
        return self._time.now + self.off

    def elapsed(self) -> float:
        """Seconds of its monotonic clock, which is never wrong."""
        return self._time.elapsed()

    def sleep(self, seconds: float) -> None:
        """Let true time pass."""
        self._time.advance(timedelta(seconds=seconds))
