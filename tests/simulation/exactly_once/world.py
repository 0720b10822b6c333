"""One world: a yard, its wire, machines with journals, and the processes that run on them."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from berth.orders.journal import Journal, open_journal
from berth.terms.ids import SeededIds
from berth.terms.instants import iso
from berth.terms.outcomes import Spent
from berth.yard.faults import FaultKind
from berth.yard.wire.http import Request

from .books import Breach, check_settled, sales
from .botocore_half import ACTING, HERE, simulated_botocore
from .client_half import Ended, Machine, Process, Verb
from .effects import Effects, Killed
from .endings import check_ending, standing
from .moments import MachineClock, TrueTime
from .troubles import WIRE, Script, Trouble
from .wire import Wire
from .yard_half import YardHalf, template

START = datetime(2026, 12, 1, 9, tzinfo=UTC)
_FAST = Path("/dev/shm")


@cache
def _templates() -> Path:
    """Where migrated stores lie, for as long as this process lives."""
    folder = tempfile.TemporaryDirectory(prefix="berth-sim-", dir=_FAST if _FAST.is_dir() else None)
    _KEPT.append(folder)
    return Path(folder.name)


_KEPT: list[Any] = []


@dataclass(frozen=True, slots=True)
class Weather:
    """What holds for a whole world.

    `off`: how wrong each machine's clock is; there are as many machines. `shared`: one journal for all of
    them. `tells_time`: the service sends `x-yard-time`, as a rehearsal does; else it is as AWS. `opens`: each
    process opens the journal's file anew (else the connection goes from one to the next, for speed).
    """

    start: datetime = START
    off: tuple[timedelta, ...] = (timedelta(0),)
    shared: bool = True
    tells_time: bool = False
    opens: bool = True


@dataclass(frozen=True, slots=True)
class Prepared:
    """A world as it stood at `now`, kept in `folder`: others may begin from there."""

    folder: Path
    now: datetime
    weather: Weather


class World:
    """Everything of one seed. Made by `world`; `trace` tells all that happened."""

    def __init__(self, folder: Path, seed: int, weather: Weather, now: datetime) -> None:
        self.seed = seed
        self._folder, self._weather = folder, weather
        self.chance = random.Random(seed)
        self.trace: list[str] = []
        self.points: Counter[str] = Counter()
        self.time = TrueTime(now)
        self.yard = YardHalf(folder / "y", self.time, seed)
        self.wire = Wire(
            self.yard, self.time, self.chance, tells_time=weather.tells_time, paid=self._check_intended
        )
        self.time.follow = self._follow
        self.machines = [
            Machine(number, MachineClock(self.time, off), _journal_file(folder, number, weather))
            for number, off in enumerate(weather.off)
        ]
        self._ids = SeededIds(seed)
        self.parsed: Callable[[str, dict[str, Any]], None] = lambda operation, answer: None
        self._looked_into: dict[Path, Journal] = {}
        self._opens = weather.opens
        (self._keys,) = ((row["access_key_id"], row["secret"]) for row in self.yard.rows(
            "SELECT access_key_id, secret FROM access_keys"
        ))  # fmt: skip

    @property
    def account(self) -> str:
        """The account that buys."""
        return self.yard.account

    def close(self) -> None:
        """Close the yard and what was looked into."""
        self.yard.close()
        for journal in self._looked_into.values():
            journal.close()

    # -- processes -------------------------------------------------------------------------------------
    def run(
        self, verb: Verb, need: str, script: Script | None = None, machine: Machine | None = None
    ) -> Ended:
        """A process that runs one verb on a machine, alone, from its start to its end or its death."""
        process = self.process(machine or self.machines[0], script or Script())
        self.act(process)
        return self.ended(process, verb, need)

    def process(
        self,
        machine: Machine,
        script: Script,
        turn: Callable[[], None] | None = None,
        slot: int | None = None,
    ) -> Process:
        """A process about to begin. `turn` is called after each effect at which another one may act.

        `slot` numbers the processes that run at once (None: it runs alone): each has clients of its own.
        """
        name = machine.new_process()

        def at(number: int, effect: str) -> None:
            self._meet(script, number, effect)
            # Before a commit the journal is locked: another process could only wait.
            if turn is not None and not (effect.startswith("journal") and effect.endswith(":before")):
                turn()

        effects = Effects(name, self.trace, at)
        process = Process(
            machine, self._keys, self.account, effects, machine.number if slot is None else slot,
            lambda operation, raw: self.wire.exchange(effects, script, operation, raw), self._ids,
            None if self._opens or slot is not None else self.journal(machine),
        )  # fmt: skip
        process.clients.parsed = self.parsed
        return process

    def act(self, process: Process) -> None:
        """It is this process's turn: botocore's one clock is its clock."""
        clock = process.machine.clock
        ACTING.now, ACTING.sleep = clock.now, clock.sleep

    def ended(self, process: Process, verb: Verb, need: str) -> Ended:
        """Run it; check what can be checked of any end. Raises Breach."""
        name = getattr(verb, "__name__", "verb")
        self.trace.append(f"{process.name} begins {name} {need} at {iso(self.time.now)}")
        before = standing(self, process, need)
        try:
            ended = process.run(verb, need)
        except Killed:
            ended = Ended(None, process.said())
        code = "killed" if ended.code is None else ended.code.name
        self.trace.append(f"{process.name} ends {code}: {ended.money.line() if ended.code else 'done'}")
        self._check_secrets(ended.said)
        self._check_money(process, ended, need)
        check_ending(self, process, ended, need, before)
        return ended

    def kept(self) -> Prepared:
        """This world as it stands now, for others to begin from."""
        folder = Path(tempfile.mkdtemp(prefix="k", dir=_templates()))
        shutil.copytree(self._folder, folder, dirs_exist_ok=True)
        return Prepared(folder, self.time.now, self._weather)

    # -- time and troubles -----------------------------------------------------------------------------
    def advance(self, **span: float) -> None:
        """Let time pass."""
        self.time.advance(timedelta(**span))

    def calm(self) -> None:
        """Everything that was under way arrives, and nothing is wrong any more."""
        self.yard.well()
        self.advance(minutes=7)

    def _follow(self, to: datetime) -> None:
        self.wire.deliver(to)
        self.yard.follow(to)

    def _meet(self, script: Script, number: int, effect: str) -> None:
        trouble = script.at.get(number)
        if trouble is None:
            return
        self.trace.append(f"trouble {trouble}")
        self.points[f"{trouble} at {effect}"] += 1
        if trouble in WIRE:
            script.waiting.append(trouble)
        elif trouble is Trouble.KILLED:
            raise Killed
        elif trouble is Trouble.YARD_KILLED:
            self.yard.restart()
            if effect.startswith("wire "):
                lost = {"before": Trouble.LOST_BEFORE, "done": Trouble.LOST_REPLY}
                script.waiting[:0] = filter(None, [lost.get(effect.rpartition(":")[2])])
        elif trouble is Trouble.DEARER:
            self.yard.arm(FaultKind.PRICE_CHANGE, "*", None, "1.15")
        else:
            self.time.advance(timedelta(days=1) if trouble is Trouble.ASLEEP else timedelta(minutes=7))

    # -- what must hold --------------------------------------------------------------------------------
    def journal(self, machine: Machine) -> Journal:
        """The journal of a machine, to look into; opened once."""
        if machine.journal not in self._looked_into:
            self._looked_into[machine.journal] = open_journal(machine.journal, HERE.address)
        return self._looked_into[machine.journal]

    def journals(self) -> list[Machine]:
        """One machine for each journal."""
        return list({machine.journal: machine for machine in self.machines}.values())

    def check(self) -> int:
        """All invariants, once everything has settled; how many orders are bought. Raises Breach."""
        for machine in self.journals():
            for file in machine.journal.parent.glob(f"{machine.journal.name}*"):
                if self._keys[1].encode() in file.read_bytes():
                    raise Breach(f"the secret key is in {file.name}")
        books = [self.journal(one) for one in self.journals()]
        return check_settled(self.yard, books, self.account, self.time.now)

    def _check_intended(self, operation: str, request: Request) -> None:
        """A paid call whose very intent is not committed is a breach."""
        for machine in self.journals():
            for order in self.journal(machine).orders(self.account):
                sent = request.body.decode()
                if order.attempt.intent_id in sent and order.attempt.offering_id in sent:
                    return
                doubts = [one for one in order.extensions if one.in_doubt]
                if len(doubts) > 1:
                    raise Breach(f"two extensions of order {order.key} are being bought at once")
                if doubts and doubts[0].offering_id in sent:
                    return  # an extension carries no tag
        raise Breach(f"{operation} was sent without a committed intent")

    def _check_secrets(self, said: str) -> None:
        for secret in (self._keys[1], "Signature=", "AWS4-HMAC"):
            if secret in said:
                raise Breach(f"a secret was said: {said}")

    def _check_money(self, process: Process, ended: Ended, need: str) -> None:
        """Who says that nothing was spent must be right: then, and for what is still under way."""
        if ended.code is None or not ended.code or ended.money.spent is not Spent.NOTHING:
            return
        if len(self.journals()) > 1 or self.wire.late or any(one.alive for one in self.machines):
            return  # somebody else may be paying at this very moment
        mine = {f"{self.account}/{need}/{number}" for number in range(1, 9)}
        paid = [sale.arn for sale in sales(self.yard) if sale.mark in mine and sale.status not in _DEAD]
        orders = self.journal(process.machine).orders(self.account, need)
        known = {order.reservation_arn for order in orders}
        if set(paid) - known:
            raise Breach(f"{process.name} said that nothing was spent, and {paid} is paid: {ended.said}")


_DEAD = frozenset({"Failed", "payment-failed"})


def _journal_file(folder: Path, number: int, weather: Weather) -> Path:
    """A journal, brought up to date already; its folder is made with it."""
    file = folder / f"j{0 if weather.shared else number}" / "journal.sqlite"
    if not file.exists():
        kept = _templates() / "journal.sqlite"
        if not kept.exists():
            open_journal(kept, HERE.address).close()
        file.parent.mkdir(mode=0o700)
        shutil.copy(kept, file)
    return file


def _fresh(weather: Weather) -> Prepared:
    """Where nothing has happened yet."""
    kept = _templates() / f"{weather.start:%Y%m%dT%H%M%S}"
    template(kept / "y", weather.start)
    return Prepared(kept, weather.start, weather)


@contextmanager
def world(seed: int, weather: Weather | None = None, like: Prepared | None = None) -> Iterator[World]:
    """A world of its own, fresh or begun from one that was kept (`World.kept`); gone afterwards."""
    start = like or _fresh(weather or Weather())
    folder = Path(tempfile.mkdtemp(prefix="w", dir=_templates()))
    shutil.copytree(start.folder, folder, dirs_exist_ok=True)
    with simulated_botocore(seed):
        made = World(folder, seed, start.weather if like else weather or Weather(), start.now)
        try:
            yield made
        finally:
            made.close()
            shutil.rmtree(folder, ignore_errors=True)
