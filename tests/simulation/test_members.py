"""Whatever AWS leaves out of an answer and whatever value it adds: no crash, no second purchase."""

from __future__ import annotations

from functools import cache

import pytest

from .exactly_once.books import DEAD, sales
from .exactly_once.cases import CASES, NEED, prepared
from .exactly_once.members import Change, How, Reading
from .exactly_once.settling import settle
from .exactly_once.thorough import all_in_ci
from .exactly_once.verbs import show
from .exactly_once.world import World, world


@cache
def changes_of(name: str) -> tuple[Change, ...]:
    """Every change of an answer that the case's verb could notice."""
    case, reading = CASES[name], Reading()
    with world(1, like=prepared(name)) as made:
        made.parsed = reading
        made.run(case.verb, NEED)
    return tuple(reading.changes())


def once_at_most(made: World, change: Change) -> None:
    """At no time is more than one reservation of an order, or of a piece of one, alive."""
    alive = [sale.mark for sale in sales(made.yard) if sale.status not in DEAD]
    assert len(alive) == len(set(alive)), str(change)


@pytest.mark.parametrize("name", CASES)
def test_nothing_crashes_and_nothing_is_bought_again(name: str) -> None:
    """The verb (and `show`) while the answers are so, then the verb in peace: right, once."""
    case, changes = CASES[name], changes_of(name)
    for number, change in enumerate(all_in_ci(changes), start=1):
        with world(number, like=prepared(name)) as made:
            made.wire.spoil = change
            made.run(case.verb, NEED)
            once_at_most(made, change)
            if name.startswith("buy"):
                made.advance(minutes=4)
                made.run(case.verb, NEED)
                made.run(show, NEED)
                once_at_most(made, change)
            made.wire.spoil = lambda operation, response: response
            made.calm()
            settle(made, NEED, verb=case.verb)
            made.calm()
            assert case.right(made), str(change)
            made.check()
    assert any(change.how is How.ABSENT for change in changes)
    assert any(change.how is How.UNKNOWN for change in changes) or name.startswith("plan")
