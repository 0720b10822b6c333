"""Clocks: wall time and elapsed time are different questions, and both are handed in."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What may be asked of time. Code that needs time takes one of these as an argument."""

    def now(self) -> datetime:
        """The present as aware UTC, on whatever time this clock follows."""
        ...

    def elapsed(self) -> float:
        """Seconds of real time from a fixed, unknown origin; never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let `seconds` of real time pass."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """The present as aware UTC."""
        return datetime.now(UTC)

    def elapsed(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep `seconds`."""
        time.sleep(seconds)
