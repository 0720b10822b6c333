"""Waiting: look tightly around the times when something should happen, loosely elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

T = TypeVar("T")

TIGHT_S = 10.0
BRISK_S = 15.0
LOOSE_S = 360.0
REHEARSAL_S = 0.3
BEFORE = timedelta(seconds=30)
AFTER = timedelta(minutes=10)
STANDS_AFTER_S = 2.0


class FollowedClock(Protocol):
    """The clock that a command follows: this machine's, or a yard's, which may stand still."""

    @property
    def is_simulated(self) -> bool:
        """Whether it is a yard's clock and not real time."""
        ...

    def now(self) -> datetime:
        """The present on it."""
        ...

    def elapsed(self) -> float:
        """Real seconds."""
        ...

    def sleep(self, seconds: float) -> None:
        """Sleep real seconds."""
        ...


def pause(now: datetime, began: datetime, known: Iterable[datetime], *, simulated: bool) -> float:
    """Real seconds until the next look. Pure.

    Within half a minute before and ten minutes after a known time: 10 s. In the first ten minutes of waiting:
    15 s. Else 6 minutes, or less when a known time comes before. A quiet day takes fewer than 300 looks
    (field fault 25). A simulated clock moves when somebody moves it, so its yard is asked all the time.
    """
    if simulated:
        return REHEARSAL_S
    times = sorted(known)
    if any(at - BEFORE <= now <= at + AFTER for at in times):
        return TIGHT_S
    steps = [LOOSE_S] + [(at - BEFORE - now).total_seconds() for at in times if at - BEFORE > now]
    if now - began < AFTER:
        steps.append(BRISK_S)
    return max(1.0, min(steps))


def wait_for(
    look: Callable[[], T],
    done: Callable[[T], bool],
    clock: FollowedClock,
    *,
    known: Callable[[T], Iterable[datetime]] = lambda seen: (),
    standing: Callable[[T], None] = lambda seen: None,
    limit_s: float | None = None,
    stop_standing: bool = False,
) -> T:
    """Look until `done`, and return what was seen last; that is not `done` only when `limit_s` ran out, or
    when the clock stands still and `stop_standing` says not to wait for somebody to move it.

    `known` gives the times at which something should happen. `standing` is told once when the clock that is
    followed does not move. `limit_s` is in real seconds; None waits for ever.
    """
    began, started = clock.now(), clock.elapsed()
    moved_at, last, told = started, began, False
    while True:
        seen = look()
        if done(seen) or (limit_s is not None and clock.elapsed() - started >= limit_s):
            return seen
        now = clock.now()
        if now != last:
            moved_at, last = clock.elapsed(), now
        elif not told and clock.is_simulated and clock.elapsed() - moved_at >= STANDS_AFTER_S:
            standing(seen)
            told = True
            if stop_standing:
                return seen
        clock.sleep(pause(now, began, known(seen), simulated=clock.is_simulated))
