"""The client's half: one process of `berth`, from its door and journal to the verb that it runs."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from berth.aws.identity import Identity, Rehearsal
from berth.aws.session import Door
from berth.aws.yard_clock import FollowingClock
from berth.cli.desks import Counter
from berth.cli.output import Output, failure_lines, spending_so_far
from berth.orders.desk import Desk
from berth.orders.journal import Journal, Who, open_journal
from berth.terms.ids import IdSource
from berth.terms.outcomes import NOTHING_SPENT, BerthError, ExitCode, Spending, Spent
from berth.terms.ways import Way

from .botocore_half import HERE, REGION, WiredClients, clients_of
from .effects import Effects
from .moments import MachineClock


@dataclass(slots=True)
class Machine:
    """A computer with a clock, a journal and processes. Machines that share a file share a journal."""

    number: int
    clock: MachineClock
    journal: Path
    alive: set[str] = field(default_factory=set)
    started: int = 0

    def new_process(self) -> str:
        """The name of a process that starts now."""
        self.started += 1
        name = f"machine{self.number} p{self.started}"
        self.alive.add(name)
        return name


@dataclass(frozen=True, slots=True)
class SimulatedHolders:
    """Whether a process lives: known of one's own machine, unknown of another's."""

    machine: Machine
    name: str

    def me(self) -> str:
        """This process."""
        return self.name

    def lives(self, holder: str) -> bool | None:
        """Whether it lives; None for another machine's."""
        if not holder.startswith(f"machine{self.machine.number} "):
            return None
        return holder in self.machine.alive


class SimulatedCounter(Counter):
    """Production's counter, with ids and processes of the simulation."""

    def __init__(
        self, output: Output, door: Door, journal: Journal, ids: IdSource, holders: SimulatedHolders
    ) -> None:
        super().__init__(output, door, journal)
        self._ids, self._holders = ids, holders

    def desk_of(self, way: Way, region: str) -> Desk:
        """As production builds it."""
        return replace(super().desk_of(way, region), ids=self._ids, holders=self._holders)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: exit code (None: killed), and all that it said, last line about money."""

    code: ExitCode | None
    said: str
    money: Spending = NOTHING_SPENT

    @property
    def was_killed(self) -> bool:
        """Whether it died on the way."""
        return self.code is None


Verb = Callable[[Counter, str], int]


class Process:
    """One process on a machine, for one verb."""

    def __init__(
        self,
        machine: Machine,
        keys: tuple[str, str],
        account: str,
        effects: Effects,
        slot: int,
        exchange: Callable[[str, Any], Any],
        ids: IdSource,
        lent: Journal | None = None,
    ) -> None:
        self.machine = machine
        self.effects = effects
        self.name = effects.name
        self.clients: WiredClients = clients_of(slot, *keys)
        clock = FollowingClock(machine.clock)
        self.clients.lend(clock, exchange, lambda operation: effects(f"wire {operation}:answered"))
        self._out, self._err = io.StringIO(), io.StringIO()
        output = Output(as_json=True, stdout=self._out, stderr=self._err, stdin=io.StringIO(), environ={})
        arn = f"arn:aws:iam::{account}:user/ada"
        identity = Identity(account, arn, (REGION,), Rehearsal(HERE, None))
        door = Door(self.clients, identity, clock, REGION)
        realm, who = identity.realm, Who(arn, self.name)
        self._lent = lent is not None
        if lent is not None:
            self.journal = Journal(lent._db, realm, lambda at: effects(f"journal {at}"), who)
        else:
            self.journal = open_journal(machine.journal, realm, lambda at: effects(f"journal {at}"), who)
        self.counter = SimulatedCounter(output, door, self.journal, ids, SimulatedHolders(machine, self.name))

    def run(self, verb: Verb, need: str) -> Ended:
        """Run the verb to its end as `berth.cli.main` does; only Killed and faults of ours get past this."""
        spending_so_far.now = self._in_doubt(need)
        try:
            code = ExitCode(verb(self.counter, need))
        except BerthError as error:
            return self._failed(error)
        finally:
            self.close()
        return Ended(code, self.said())

    def said(self) -> str:
        """Both streams."""
        return self._out.getvalue() + self._err.getvalue()

    def close(self) -> None:
        """The process is over, however it ended."""
        self.machine.alive.discard(self.name)
        if not self._lent:
            self.journal.close()

    def _failed(self, error: BerthError) -> Ended:
        spent = error.spent if error.spent.spent is not Spent.NOTHING else spending_so_far.now
        lines = "\n".join(failure_lines(error, spent))
        return Ended(error.exit_code, f"{self.said()}{lines}\n", spent)

    def _in_doubt(self, need: str) -> Spending:
        orders = self.journal.orders(self.counter.account, need.partition("/")[0])
        doubts = (order.spending for order in orders if order.spending.spent is Spent.NOT_KNOWN)
        return next(doubts, NOTHING_SPENT)
