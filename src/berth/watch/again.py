"""Asking again until something fits: when the next round is due, what fits, and how a wait ends.

Nothing here buys, and nothing here asks: rounds and sleeping are handed in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from berth.planner.best.combination import Mix
from berth.planner.offers import PlaceOutcome
from berth.planner.plan import Choice, Plan
from berth.terms.money import Money
from berth.watch.waiting import FollowedClock, wait_for

EVERY = timedelta(minutes=5)
"""From one round to the next. A bucket that one round emptied by a few is full again by then."""


def fits_under(plan: Plan, most: Money | None) -> Choice | None:
    """The first choice whose total is known and at most `most` (None: any that is known).

    Another currency than that of `most` never fits: they are not compared.
    """
    for choice in plan.choices:
        total = choice.cost.total
        if choice.cost.fee is None or total is None:
            continue
        if most is None or (total.currency == most.currency and total <= most):
            return choice
    return None


def mix_under(plan: Plan, most: Money | None) -> Mix | None:
    """The plan's combination if all of it that must be held is promised, for at most `most` (None: any).

    What may be refused on the day can be had, or not, on any day: nobody waits for it.
    """
    mix = plan.mix
    if mix is None or (most is not None and (mix.total.currency != most.currency or mix.total > most)):
        return None
    free = {kind.instance_type for part in plan.need.beside if not part.reserve for kind in part.types}
    return mix if all(piece.promised or piece.instance_type in free for piece in mix.pieces) else None


def next_round(now: datetime, until: datetime, least_s: float) -> datetime:
    """When to ask again: `EVERY` after a round that took its bucket no longer, and at `until` once more.

    `least_s` is the least time that a round takes inside the buckets when they are full.
    """
    return min(until, now + max(EVERY, timedelta(seconds=least_s)))


def was_interrupted(plan: Plan) -> bool:
    """Whether somebody ended the asking: then the wait ends too."""
    return any(answer.outcome is PlaceOutcome.NOT_ASKED for answer in plan.answers)


class Rounds(Protocol):
    """What a wait leans on."""

    def ask(self) -> Plan:
        """One round."""
        ...

    def least_s(self) -> float:
        """The least time that a round takes inside the buckets."""
        ...

    def hear_clock(self) -> None:
        """Ask a yard what time it is there; nothing where the clock is this machine's."""
        ...

    def told(self, number: int, plan: Plan, found: Choice | Mix | None, due: datetime | None) -> None:
        """A round is over; `due` is when the next begins, None after the last."""
        ...

    def standing(self) -> None:
        """The clock that is followed does not move."""
        ...


@dataclass(frozen=True, slots=True)
class Waited:
    """How a wait ended: the last plan, and what fits in it (None: nothing until the date). `mix` is set only
    where no offer fits alone.
    """

    plan: Plan
    found: Choice | None
    rounds: int
    mix: Mix | None = None

    @property
    def nothing(self) -> bool:
        """Whether nothing fits, alone or together, and nothing is owned that covers the need."""
        return self.found is None and self.mix is None and self.plan.reuse is None


def ask_until(
    rounds: Rounds,
    most: Money | None,
    until: datetime,
    clock: FollowedClock,
    hopeless: Callable[[Plan], bool],
) -> Waited:
    """Ask, round by round, until something fits under `most`, `until` has come, or it is hopeless.

    What the account owns already counts as found: the plan says so. Raises KeyboardInterrupt when a round was
    interrupted.
    """
    number = 0
    while True:
        number += 1
        plan = rounds.ask()
        if was_interrupted(plan):
            raise KeyboardInterrupt
        found = fits_under(plan, most)
        now, ended = clock.now(), Waited(plan, found, number, None if found else mix_under(plan, most))
        ends = not ended.nothing or now >= until or hopeless(plan)
        due = None if ends else next_round(now, until, rounds.least_s())
        rounds.told(number, plan, found or ended.mix, due)
        if due is None:
            return ended
        _sleep_until(due, rounds, clock)


def _sleep_until(due: datetime, rounds: Rounds, clock: FollowedClock) -> None:
    wait_for(
        rounds.hear_clock,
        lambda _: clock.now() >= due,
        clock,
        known=lambda _: (due,),
        standing=lambda _: rounds.standing(),
    )
