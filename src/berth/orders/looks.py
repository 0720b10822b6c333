"""Looks at AWS after an attempt, and when they prove that it made no reservation: the six-minute rule."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from berth.terms.clock import Clock


@dataclass(frozen=True, slots=True)
class Look:
    """One try to see in AWS what became of an attempt, from before its first read to after its last.

    `complete`: every read of it answered in full, while the reservation would still be shown. `found`: the
    order's reservation, or a look-alike, was there.
    """

    began_at: datetime
    ended_at: datetime
    complete: bool
    found: bool


@dataclass(frozen=True, slots=True)
class Began:
    """When a look began, as it was believed then: `now`, and `elapsed` seconds of real time.

    The first answer of a process tells it AWS's time. Before that its clock is the machine's, which may be
    minutes fast: a look that seems to begin later than it did would prove what it cannot.
    """

    now: datetime
    elapsed: float

    @classmethod
    def by(cls, clock: Clock) -> Began:
        """A look begins now."""
        return cls(clock.now(), clock.elapsed())

    def at(self, clock: Clock) -> datetime:
        """The instant at which it surely had begun, said once it is over: the earlier of what was believed
        and what the clock, as it goes now, makes of it."""
        return min(self.now, clock.now() - timedelta(seconds=clock.elapsed() - self.elapsed))


SETTLING_TIME = timedelta(minutes=6)
"""AWS shows writes up to 5 minutes late; a minute is added for clocks that differ."""


def known_absent(looks: tuple[Look, ...]) -> bool:
    """The six-minute rule: whether these looks (of one attempt) prove that no reservation was made.

    They do when complete reads that found nothing span at least six minutes, from the end of the first to
    the beginning of the last, and none found anything.
    """
    settles_at = absent_at(looks)
    if settles_at is None or any(look.found for look in looks):
        return False
    return any(look.complete and look.began_at >= settles_at for look in looks)


def absent_at(looks: tuple[Look, ...]) -> datetime | None:
    """The earliest instant at which one more complete look could settle it; None before the first."""
    whole = [look.ended_at for look in looks if look.complete]
    return min(whole) + SETTLING_TIME if whole else None
