"""Killed at each effect point of each verb and run again: right. The points are what the verb passes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from berth.yard.faults import FaultKind

from .exactly_once.cases import CASES, NEED, prepared
from .exactly_once.settling import settle
from .exactly_once.thorough import all_in_ci
from .exactly_once.troubles import Script, Trouble
from .exactly_once.world import world

WAITING = 8
"""A verb that waits passes the same points again and again: so often each of them is a point of its own."""
BOUGHT = ("buy a training plan", "buy a block", "extend a training plan", "extend a block")
LINE = (Trouble.LOST_REPLY, Trouble.LATE, Trouble.ERROR_AFTER, Trouble.LOST_BEFORE, Trouble.YARD_KILLED)


def effects_of(name: str) -> list[str]:
    """The effect points of the case's verb when nothing goes wrong, in order."""
    case = CASES[name]
    with world(1, like=prepared(name)) as made:
        ended = made.run(case.verb, NEED)
        assert ended.code is not None
        assert case.right(made), ended.said
        return [line.split(" ", 3)[3] for line in made.trace if line.split(" ")[2].isdigit()]


def points_of(name: str, trouble: Trouble, points: list[str]) -> list[tuple[int, str]]:
    """The points to try with their numbers: all; outside of CI all only for the kills of a purchase."""
    numbered = [
        (number, point)
        for number, point in enumerate(points, start=1)
        if points[:number].count(point) <= WAITING
    ]
    whole = trouble is Trouble.KILLED and name.startswith("buy")
    return numbered if whole else list(all_in_ci(numbered))


def stopped_everywhere(name: str, trouble: Trouble, lag: str = "") -> int:
    """Run the verb once for each of its effect points, in that trouble there, and again until it is right."""
    case, points = CASES[name], effects_of(name)
    for number, point in points_of(name, trouble, points):
        with world(number, like=prepared(name)) as made:
            if lag:
                made.yard.arm(FaultKind.LAG, "*", None, lag)
            ended = made.run(case.verb, NEED, Script({number: trouble}))
            # With late writes a run has less to read back, and ends before the last points.
            assert lag or ended.was_killed == (trouble is Trouble.KILLED), (point, ended.said)
            made.time.advance(timedelta(seconds=1))
            settle(made, NEED, verb=case.verb)
            made.calm()
            assert case.right(made), (name, trouble, point)
            made.check()
    return len(points)


@pytest.mark.parametrize("name", CASES)
def test_killed_at_each_effect_point_and_run_again(name: str) -> None:
    """Nothing is bought, made or started twice, and nothing is left half done."""
    assert stopped_everywhere(name, Trouble.KILLED) >= 6


@pytest.mark.parametrize("name", [*BOUGHT, "buy two blocks"])
def test_killed_at_each_effect_point_while_aws_shows_writes_late(name: str) -> None:
    """The six-minute rule holds back the second call, wherever the first one was cut off."""
    stopped_everywhere(name, Trouble.KILLED, lag="5")


@pytest.mark.parametrize("trouble", LINE)
@pytest.mark.parametrize("name", BOUGHT)
def test_in_trouble_at_each_effect_point_of_a_purchase(name: str, trouble: Trouble) -> None:
    """Lost, late, failed after the commit, cut before it, or the service's own death: one purchase."""
    stopped_everywhere(name, trouble)
