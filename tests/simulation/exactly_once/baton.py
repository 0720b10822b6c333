"""Several processes at once, serially: a baton goes from one to another at effect points, as the seed says.

Each process has a thread of its own and only the one that holds the baton runs, so a seed gives one order.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from berth.cli.output import spending_so_far
from berth.terms.outcomes import NOTHING_SPENT, Spending

from .client_half import Ended, Machine, Process, Verb
from .troubles import Script

if TYPE_CHECKING:
    from .world import World

PATIENCE_S = 120.0


@dataclass(slots=True)
class Runner:
    """One process, its thread, and what the command line knows of money while it does not run."""

    process: Process
    verb: Verb
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    money: Spending = NOTHING_SPENT
    ended: Ended | None = None
    problem: BaseException | None = None
    over: bool = False


class Baton:
    """Hands the right to act to and fro between the processes of one need."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world = world
        self._chance = chance
        self._runners: list[Runner] = []
        self._holder: Runner | None = None
        self._all_over = threading.Event()

    def play(
        self, need: str, verbs: Sequence[Verb], machines: Sequence[Machine], scripts: Sequence[Script]
    ) -> list[Ended]:
        """Run one verb on each machine, interleaved; how each ended. Raises what any of them raised."""
        for slot, (verb, machine, script) in enumerate(zip(verbs, machines, scripts, strict=True)):
            process = self._world.process(machine, script, turn=self.turn, slot=slot)
            self._runners.append(Runner(process, verb))
        threads = [
            threading.Thread(target=self._live, args=(one, need), daemon=True) for one in self._runners
        ]
        for thread in threads:
            thread.start()
        self._hand_on()
        if not self._all_over.wait(PATIENCE_S):
            raise AssertionError("processes wait for one another")
        for thread in threads:
            thread.join()
        for one in self._runners:
            if one.problem is not None:
                raise one.problem
        return [one.ended for one in self._runners if one.ended is not None]

    def turn(self) -> None:
        """An effect point at which another process may go on."""
        holder = self._holder
        assert holder is not None
        if self._next() is holder:
            return
        holder.money = spending_so_far.now
        self._hand_on(self._chosen)
        self._take(holder)

    def _live(self, runner: Runner, need: str) -> None:
        self._take(runner)
        try:
            runner.ended = self._world.ended(runner.process, runner.verb, need)
        except BaseException as problem:  # noqa: BLE001 - raised again by whoever plays
            runner.problem = problem
        runner.over = True
        self._hand_on()

    def _take(self, runner: Runner) -> None:
        runner.go.acquire()
        self._holder = runner
        self._world.act(runner.process)
        spending_so_far.now = runner.money

    def _next(self) -> Runner | None:
        living = [one for one in self._runners if not one.over]
        self._chosen = self._chance.choice(living) if living else None
        return self._chosen

    def _hand_on(self, to: Runner | None = None) -> None:
        to = to or self._next()
        if to is None:
            self._all_over.set()
        else:
            to.go.release()
