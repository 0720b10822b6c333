"""What a person hears while places are asked: answers, or how far it is."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any, cast

from berth.aws.yard_clock import FollowingClock
from berth.cli.asking import Aloud
from berth.cli.output import Output
from berth.planner.offers import PlaceAnswer, PlaceOutcome
from berth.sources.sweep import Progress
from berth.terms.ways import Way

ANSWER = PlaceAnswer(
    Way.CAPACITY_BLOCK, "us-east-1", PlaceOutcome.NONE_ON_SALE, datetime(2026, 12, 1, tzinfo=UTC)
)


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


class Clock:
    """Real time that a test moves."""

    throttle_scale = 1.0
    at = 0.0

    def elapsed(self) -> float:
        """Seconds."""
        return self.at


def aloud(stderr: io.StringIO, clock: Clock, places: int) -> Aloud:
    """A listener that speaks to that stream."""
    output = Output(stderr=stderr, stdout=io.StringIO(), environ={"TERM": "xterm"})
    return Aloud(output, cast(FollowingClock, clock), places)


def swept(stderr: io.StringIO, *, questions: int, places: int, seconds: float, step_s: float = 1.0) -> str:
    """All that was said in a sweep that takes so long."""
    clock = Clock()
    listener = aloud(stderr, clock, places)
    listener.begins(questions, seconds)
    for number in range(1, questions + 1):
        clock.at += step_s
        listener.told(ANSWER, None)
        listener.progress(Progress(number, questions, float(questions - number)))
    return stderr.getvalue()


def test_a_short_survey_tells_each_place() -> None:
    """One question a Region: its answer; one Region alone has nothing to tell meanwhile."""
    assert (
        swept(io.StringIO(), questions=3, places=3, seconds=0.3).count("asked us-east-1: none-on-sale") == 3
    )
    assert swept(io.StringIO(), questions=1, places=1, seconds=0.3) == ""


def test_a_long_sweep_is_announced_and_tells_how_far_it_is() -> None:
    """The least time first; then a line every ten seconds, and the last."""
    said = swept(io.StringIO(), questions=154, places=2, seconds=960.0)
    first, *lines = [" ".join(part.split()) for part in said.replace("\n  ", " ").splitlines()]
    assert first.startswith("154 questions, 2 Regions: at least 16 min on AWS")
    assert lines[0] == "asked 1 of 154, about 3 min left"
    assert lines[1].startswith("asked 11 of 154")
    assert lines[-1] == "asked 154 of 154"
    assert len(lines) == 17


def test_on_a_terminal_progress_is_one_line() -> None:
    """Written over itself, never wider than 80 columns, and ended by one new line."""
    said = swept(Terminal(), questions=40, places=2, seconds=3.0)
    assert said.count("\n") == 1
    assert said.endswith("\n")
    assert max(map(len, said.split("\r"))) <= 80
    assert "asked 40 of 40" in said


def test_many_short_questions_are_silent_where_nobody_watches() -> None:
    """No line for each of forty answers in a log."""
    assert swept(io.StringIO(), questions=40, places=2, seconds=3.0) == ""


def test_a_rehearsal_that_is_faster_announces_less(monkeypatch: Any) -> None:
    """16 minutes of AWS are under a second where throttles run 1,000 times faster."""
    monkeypatch.setattr(Clock, "throttle_scale", 1000.0)
    assert swept(io.StringIO(), questions=154, places=2, seconds=960.0) == ""
