"""Window: a half-open span of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """The span [start, end) of aware UTC instants: it holds its start and not its end.

    Raises ValueError when an instant has no zone or the span is empty or backwards.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("a window needs instants with a time zone")
        if self.end <= self.start:
            raise ValueError(f"a window must end after it starts: {self.start} to {self.end}")

    @property
    def duration(self) -> timedelta:
        """Length of the window, greater than zero."""
        return self.end - self.start

    def contains(self, instant: datetime) -> bool:
        """Whether `instant` lies inside; the end does not."""
        return self.start <= instant < self.end

    def covers(self, other: Window) -> bool:
        """Whether `other` lies wholly inside this window."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Window) -> bool:
        """Whether the two share an instant; windows that only touch do not."""
        return self.start < other.end and other.start < self.end

    def shortened(self, by: timedelta) -> Window | None:
        """This window ending `by` earlier, or None when nothing is left."""
        end = self.end - by
        return Window(self.start, end) if end > self.start else None
