"""The followed clock goes by what answers tell: AWS's `Date`, so that machines with wrong clocks agree."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from berth.aws.yard_clock import FollowingClock

TRUE = datetime(2026, 12, 1, 9, tzinfo=UTC)


class Wrong:
    """A machine's clock that is off."""

    def __init__(self, off: timedelta) -> None:
        self.off = off
        self.true = TRUE

    def now(self) -> datetime:
        """What the machine believes."""
        return self.true + self.off

    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return (self.true - TRUE).total_seconds()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.true += timedelta(seconds=seconds)


def told(at: datetime) -> str:
    """The header."""
    return format_datetime(at, usegmt=True)


@pytest.mark.parametrize("minutes", [-5, 5, 90])
def test_the_first_answer_corrects_the_machine(minutes: int) -> None:
    """From then on it is the service's time, and goes on with the machine's."""
    machine = Wrong(timedelta(minutes=minutes))
    clock = FollowingClock(machine)
    assert clock.now() == TRUE + timedelta(minutes=minutes)
    clock.hear_date(told(machine.true))
    assert clock.now() == TRUE
    machine.sleep(60)
    assert clock.now() == TRUE + timedelta(seconds=60)


def test_a_clock_that_agrees_is_left_alone() -> None:
    """`Date` has whole seconds and has been under way: a second or two is no difference."""
    machine = Wrong(timedelta(seconds=1, milliseconds=700))
    clock = FollowingClock(machine)
    clock.hear_date(told(machine.true))
    assert clock.now() == machine.now()


def test_a_clock_that_is_set_right_meanwhile_is_followed() -> None:
    """The next answer shows that nothing is off any more."""
    machine = Wrong(timedelta(minutes=5))
    clock = FollowingClock(machine)
    clock.hear_date(told(machine.true))
    machine.off = timedelta(0)
    clock.hear_date(told(machine.true))
    assert clock.now() == TRUE


@pytest.mark.parametrize("header", ["", "soon", "Tue, 99 Dec 2026 09:00:00 GMT"])
def test_a_date_that_cannot_be_read_tells_nothing(header: str) -> None:
    """The machine's clock stays."""
    machine = Wrong(timedelta(minutes=5))
    clock = FollowingClock(machine)
    clock.hear_date(header)
    assert clock.now() == machine.now()


def test_a_yards_simulated_clock_stands_over_it() -> None:
    """`Date` is real in a rehearsal; its own time is what counts there."""
    clock = FollowingClock(Wrong(timedelta(0)))
    clock.hear("2027-03-01T00:00:00Z")
    clock.hear_date(told(TRUE + timedelta(minutes=9)))
    assert clock.now() == datetime(2027, 3, 1, tzinfo=UTC)
