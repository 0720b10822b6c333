"""Berth as a library: the same plan and the same one purchase as values with types. Nothing is printed.

    import berth.api

    with berth.api.connect(profile="ml", regions=["us-east-1", "us-east-2"]) as world:
        need = world.read_need("need.toml")
        plan = world.plan(need)
        if plan.best is not None:
            purchase = world.buy(plan, plan.best.number, most=berth.api.Money.parse("228.77"))

What is in `__all__` is kept: members are added, not taken away or changed in meaning, within a major version.
A yard is reached as by the command line: `BERTH_YARD` in the environment. Every failure is a `BerthError`
with `exit_code`, `message`, `next_step` and `spent`, which says whether money has left.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from berth.orders.order import Order, OrderKey, OrderState
from berth.orders.purchase import How, Purchase
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome
from berth.planner.plan import Choice, Plan
from berth.sources.survey import Listener
from berth.terms.money import Money
from berth.terms.outcomes import NOTHING_SPENT, BerthError, ExitCode, Spending
from berth.terms.settings import SettingsError
from berth.terms.ways import Target, Way
from berth.terms.window import Window

if TYPE_CHECKING:
    from datetime import datetime

    from berth.aws.identity import Identity
    from berth.cli.desks import Counter

__all__ = [
    "BerthError", "Choice", "ExitCode", "How", "Listener", "Money", "Need", "Offer", "Order", "OrderKey",
    "OrderState", "PlaceAnswer", "PlaceOutcome", "Plan", "Purchase", "SettingsError", "Spending", "Target",
    "Way", "Window", "World", "connect",
]  # fmt: skip

Talk = Callable[[str], None]


class World:
    """AWS, or a yard, behind one login, with the journal of this machine or team. Made by `connect`.

    Single-threaded, as orders are: for two threads, connect twice; one journal keeps them apart.
    """

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    @property
    def identity(self) -> Identity:
        """Who asks: account, ARN, Regions; `rehearsal` is None for AWS itself."""
        return self._counter.door.identity

    def now(self) -> datetime:
        """The clock that everything here follows: AWS's own, or the yard's, which may be moved."""
        return self._counter.door.clock.now()

    def read_need(self, file: str | Path) -> Need:
        """The need in a need file, checked against this world's clock.

        Raises SettingsError with every complaint at once, BerthError where the file cannot be read.
        """
        from berth.cli.needs import typed_need

        return typed_need(Path(file), {}).read(self.now())

    def plan(self, need: Need, listener: Listener | None = None) -> Plan:
        """Ask every place of this world about `need`, and remember the plan for `buy` and the command line.

        `listener` hears each place's answer as it comes; it is called in this thread. Spends nothing. Places
        that do not answer do not raise: they stand in the plan, and it is `incomplete`.
        """
        from dataclasses import replace

        from berth.cli.asking import ask_places

        asked = replace(need, regions=self.identity.regions)
        made = ask_places(self._counter.output, self._counter.door, asked, listener=listener or Listener())
        journal, account = self._counter.journal, self.identity.account
        journal.remember_plan(account, asked.name, made.to_json(), made.made_at)
        return made

    def recall(self, need: str) -> Plan:
        """The plan that was made last for the need of that name. Raises BerthError when none was."""
        from berth.cli.buy import recalled

        return recalled(self._counter, need)

    def buy(self, plan: Plan, number: int, *, most: Money, again: bool = False) -> Purchase:
        """Buy choice `number` of `plan`, exactly once, for `most` at the most.

        Called again after whatever happened, it finds what was bought and pays nothing. `again` asks for one
        more beside the first. Raises BerthError, whose `spent` tells of this order's money; see
        `berth.orders.purchase.buy`.
        """
        from berth.cli.buy import buy_choice
        from berth.cli.output import spending_so_far

        spending_so_far.now = NOTHING_SPENT
        try:
            return buy_choice(self._counter, plan, number, cap=most, yes=True, again=again)
        except BerthError as error:
            if error.spent is NOTHING_SPENT:
                error.spent = spending_so_far.now
            raise

    def orders(self, need: str | None = None) -> tuple[Order, ...]:
        """The account's orders in the journal (of one need, or of all), by need and sequence."""
        return self._counter.journal.orders(self.identity.account, need)


@contextmanager
def connect(
    profile: str | None = None, regions: Sequence[str] = (), *, talk: Talk | None = None
) -> Iterator[World]:
    """Open the way to AWS, or to the yard that BERTH_YARD declares, and the journal; closed at the end.

    `profile` None: botocore's default. `regions` empty: the login's own Region. `talk` hears, line by line,
    what the command line tells on stderr (None: nobody). Raises BerthError.
    """
    from berth.cli.desks import counter
    from berth.cli.output import Output

    output = Output(stdout=io.StringIO(), stderr=_Told(talk), stdin=io.StringIO())
    with counter(output, profile=profile, regions=regions) as opened:
        yield World(opened)


class _Told(io.StringIO):
    """A stderr that hands each whole line to a listener and keeps nothing."""

    def __init__(self, talk: Talk | None) -> None:
        super().__init__()
        self._talk = talk
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            if self._talk is not None:
                self._talk(line)
        return len(text)
