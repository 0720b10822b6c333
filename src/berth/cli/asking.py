"""Asking every place for a verb: what is told meanwhile, how far it is, and what the history keeps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from berth.cli.output import Output
from berth.sources.survey import Listener, survey
from berth.sources.sweep import WORTH_SAYING_S, Progress, spoken_s

if TYPE_CHECKING:
    from berth.aws.session import Door
    from berth.aws.yard_clock import FollowingClock
    from berth.planner.need import Need
    from berth.planner.offers import PlaceAnswer
    from berth.planner.plan import Plan
    from berth.sources.keeping import Kept
    from berth.sources.pacing import Pacer

PROGRESS_EVERY_S = 10.0
TERMINAL_EVERY_S = 0.2


class Aloud(Listener):
    """Tells a person on stderr what a survey hears.

    A short survey of several places, one question each, tells every answer as it comes. A long one says
    before it starts how long it takes on AWS, and then how far it is: in one line of a terminal, else every
    ten seconds.
    """

    def __init__(self, output: Output, clock: FollowingClock, places: int) -> None:
        self._output = output
        self._clock = clock
        self._places = places
        self._long = False
        self._many = False
        self._said_at: float | None = None
        self._best = ""

    def begins(self, questions: int, seconds: float) -> None:
        """Announce a sweep that takes more than a few seconds."""
        self._many = questions > self._places
        self._long = seconds / self._clock.throttle_scale > WORTH_SAYING_S
        if self._long:
            self._output.talk(
                f"{questions} questions, {_regions(self._places)}: at least {spoken_s(seconds)} on AWS, "
                "which lets 10 block searches a Region through, then one in 6.7 s; Ctrl-C keeps what is there"
            )

    def told(self, answer: PlaceAnswer, so_far: Plan | None) -> None:
        """One line a place, or what the next line of progress says of the best."""
        found = f"{len(answer.offers)} offers" if answer.offers else answer.outcome.value
        best = so_far.best if so_far is not None else None
        if best and best.cost.total:
            self._best = f"; best so far {best.offer.region} {best.cost.total}"
        if self._places > 1 and not self._long and not self._many:
            leads = self._best if so_far is not None else ""
            self._output.talk(f"asked {answer.region}: {found}{leads}")

    def progress(self, made: Progress) -> None:
        """Now and then, and at the end."""
        terminal = self._output.talks_to_terminal()
        if not (self._long or (self._many and terminal)):
            return
        at = self._clock.elapsed()
        every = TERMINAL_EVERY_S if terminal else PROGRESS_EVERY_S
        if made.done < made.total and self._said_at is not None and at - self._said_at < every:
            return
        self._said_at = at
        self._output.overwrite(f"{made.line}{self._best}", last=made.done >= made.total)


def _regions(number: int) -> str:
    return f"{number} {'Region' if number == 1 else 'Regions'}"


def planned(
    output: Output,
    door: Door,
    need: Need,
    *,
    local_zones: bool = True,
    listener: Listener | None = None,
) -> Plan:
    """The plan for `need` with its best combination, after every place was asked. Remembers nothing."""
    from berth.planner.best.of_plan import with_combination

    return with_combination(ask_places(output, door, need, local_zones=local_zones, listener=listener))


def ask_places(
    output: Output,
    door: Door,
    need: Need,
    *,
    local_zones: bool = True,
    kept: Kept | None = None,
    paces: Mapping[str, Pacer] | None = None,
    listener: Listener | None = None,
) -> Plan:
    """Ask every place about `need`; what was heard goes into the history, or a word says why it does not.

    `kept`, `paces` and `listener` are for one who asks again and again (None: made here, and closed).
    """
    aloud = listener or Aloud(output, door.clock, len(door.regions))
    mine = kept or open_kept(output, door)
    try:
        return survey(door, need, aloud, memory=mine, local_zones=local_zones, paces=paces)
    finally:
        if kept is None:
            mine.close()


def open_kept(output: Output, door: Door) -> Kept:
    """The local history for the door's world and account; it tells what stands in its way."""
    from berth.sources.history import history_file
    from berth.sources.keeping import Kept
    from berth.terms.clock import SystemClock

    return Kept(
        history_file(os.environ),
        door.identity.realm,
        door.identity.account,
        clock=SystemClock(),
        warn=lambda text: output.talk(f"warning: {text}"),
    )
