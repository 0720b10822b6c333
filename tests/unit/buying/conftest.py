"""One buyer, one journal, one AWS: a test may stop the buyer at every wire call and every commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from berth.orders.desk import Desk
from berth.orders.journal import Journal, open_journal
from berth.orders.order import Approval, Order, OrderKey
from berth.orders.purchase import Purchase, buy
from berth.terms.ids import SeededIds
from berth.terms.money import Money
from berth.terms.outcomes import Spending

from .fake_aws import KEY, Effects, FakeBlocks, FakeClock, FakePlans, SimulatedCrash


@dataclass
class FakeHolders:
    """Processes by name; a test kills them."""

    name: str = "p1"
    alive: set[str] = field(default_factory=lambda: {"p1"})

    def me(self) -> str:
        """This process."""
        return self.name

    def lives(self, holder: str) -> bool | None:
        """Whether it lives."""
        return holder in self.alive

    def restart(self) -> None:
        """The process dies and another takes its place."""
        self.alive.discard(self.name)
        self.name = f"p{int(self.name[1:]) + 1}"
        self.alive.add(self.name)


class World:
    """One buyer, one journal, one AWS."""

    def __init__(self, place: Path | str, aws: Callable[[FakeClock, Effects], Any] = FakePlans) -> None:
        self.clock = FakeClock()
        self.effects = Effects()
        self.aws = aws(self.clock, self.effects)
        self.holders = FakeHolders()
        self.place = place
        self.warnings: list[str] = []
        self.talk: list[str] = []
        self.spending: list[Spending] = []
        self.approved = self.aws.offer()
        self.ids = SeededIds(1)
        self.journal: Journal = self.open()

    def open(self) -> Journal:
        """Open the journal as a new process does."""
        self.journal = open_journal(self.place, "aws", self.effects)
        return self.journal

    def desk(self) -> Desk:
        """What the buyer leans on."""
        return Desk(
            journal=self.journal,
            clock=self.clock,
            ids=self.ids,
            holders=self.holders,
            shop=self.aws.shop,
            tell_spending=self.spending.append,
            talk=self.talk.append,
            warn=self.warnings.append,
        )

    def buy(self, key: OrderKey = KEY, cap: str | None = "250", **context: Any) -> Purchase:
        """Run the purchase of the approved offer."""
        approval = Approval(self.approved, None if cap is None else Money(Decimal(cap)), context=context)
        return buy(self.desk(), lambda: self.aws, key, approval)

    def order(self, key: OrderKey = KEY) -> Order:
        """The order as the journal holds it."""
        order = self.journal.order(key)
        assert order is not None
        return order

    def crash(self) -> None:
        """The process is gone; the journal is opened anew."""
        self.effects.stop_at = None
        self.journal.close()
        self.holders.restart()
        self.open()

    def stop_after(self, more: int) -> None:
        """Crash at the `more`-th effect from here."""
        self.effects.stop_at = len(self.effects.log) + more


SELLERS: dict[str, Callable[[FakeClock, Effects], Any]] = {"plans": FakePlans, "blocks": FakeBlocks}


@pytest.fixture(params=["sqlite", "postgresql"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Path | str]]:
    """Gives places for journals, each empty and of its own: files, then databases."""
    if request.param == "sqlite":
        numbers = count()
        yield lambda: tmp_path / f"w{next(numbers)}" / "journal.sqlite"
        return
    server = request.getfixturevalue("postgresql")
    with server.journals() as new:
        yield lambda: server.url(new())


@pytest.fixture
def make_world(new_place: Callable[[], Path | str]) -> Iterator[Callable[..., World]]:
    """Makes worlds, each with a journal of its own: `make_world()`, `make_world("blocks")`."""
    made: list[World] = []

    def make(sells: str = "plans") -> World:
        made.append(World(new_place(), SELLERS[sells]))
        return made[-1]

    yield make
    for one in made:
        one.journal.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    """One buyer of training plans, one journal, one AWS."""
    return make_world()


@pytest.fixture(params=sorted(SELLERS))
def shopper(request: pytest.FixtureRequest, make_world: Callable[..., World]) -> World:
    """The same for each way that is bought."""
    return make_world(request.param)


@pytest.fixture
def crash() -> type[SimulatedCrash]:
    """What a simulated death raises."""
    return SimulatedCrash
