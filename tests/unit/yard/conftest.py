"""A yard's store without a yard: a migrated database, a clock that stands still, ids from a seed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from berth.storage.sqlite import connect, migrate
from berth.terms.clock import SystemClock
from berth.terms.ids import SeededIds
from berth.yard.lifecycle.clock import YardClock
from berth.yard.opening import MIGRATIONS
from berth.yard.store.transaction import Transaction
from berth.yard.store.writer import GroupCommit, SerialWriter

from .bench import Bench
from .ec2_bench import Ec2Bench

START = datetime(2026, 12, 1, 9, tzinfo=UTC)


class Failing:
    """A connection whose next COMMIT fails, or that loses its transaction, when told so."""

    def __init__(self, real: sqlite3.Connection) -> None:
        self._real = real
        self.fail_commit = False

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        """Pass on, unless it is the COMMIT that shall fail."""
        if sql == "COMMIT" and self.fail_commit:
            self.fail_commit = False
            raise sqlite3.OperationalError("disk I/O error")
        return self._real.execute(sql, *values)

    @property
    def in_transaction(self) -> bool:
        """As the real one says."""
        return self._real.in_transaction


@dataclass
class Store:
    """A database, its writer and its clock."""

    connection: sqlite3.Connection
    failing: Failing
    clock: YardClock
    ids: SeededIds = field(default_factory=lambda: SeededIds(1))

    def __post_init__(self) -> None:
        self.body = GroupCommit(self.failing, self.clock.now, self.ids)  # type: ignore[arg-type]
        self.writer = SerialWriter(self.body)

    def do(self, work: Callable[[Transaction], Any]) -> Any:
        """Do `work` in a transaction of its own; its result, or what it raised."""
        return self.writer.submit(work).result()

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """What the database holds now."""
        return [tuple(row) for row in self.connection.execute(sql, values)]


def open_store(path: Path | str = ":memory:") -> Store:
    """A fresh store; in memory unless a path is given. Its clock stands at START."""
    if path == ":memory:":
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys=ON")
    else:
        connection = connect(path)
    migrate(connection, MIGRATIONS)
    clock = YardClock(SystemClock(), START)
    connection.execute("INSERT INTO meta VALUES ('clock', '0')")
    return Store(connection, Failing(connection), clock)


@pytest.fixture
def store() -> Iterator[Store]:
    """A fresh store in memory."""
    found = open_store()
    yield found
    found.connection.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A whole yard over the small fleet, in this thread."""
    found = Bench(tmp_path / "y")
    yield found
    found.close()


@pytest.fixture
def open_bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Opens such yards by hand on one folder (`y`); the last of them is closed at the end."""
    opened: list[Bench] = []

    def open_one(**settings: Any) -> Bench:
        if opened:
            opened.pop().close()
        opened.append(Bench(tmp_path / "y", **settings))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def ec2(tmp_path: Path) -> Iterator[Ec2Bench]:
    """A whole yard over the fleet of ec2.toml, in this thread."""
    found = Ec2Bench(tmp_path / "y")
    yield found
    found.close()
