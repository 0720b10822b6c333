"""Reading the store, and one transaction of the writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from typing import Any, Protocol

from berth.terms.ids import IdSource
from berth.terms.instants import to_micros

Row = sqlite3.Row
Value = str | int | float | None
ROWS_AT_ONCE = 100


class Reading(Protocol):
    """What an operation that only reads may do with the store."""

    def one(self, sql: str, *values: Value) -> Row | None:
        """The first row, or None."""
        ...

    def all(self, sql: str, *values: Value) -> list[Row]:
        """All rows."""
        ...


class Reader:
    """A connection that only reads. Used by one thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.execute("PRAGMA query_only=ON")

    def one(self, sql: str, *values: Value) -> Row | None:
        """The first row, or None."""
        row: Row | None = self._connection.execute(sql, values).fetchone()
        return row

    def all(self, sql: str, *values: Value) -> list[Row]:
        """All rows."""
        return self._connection.execute(sql, values).fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[Reader]:
        """All reads inside see one state of the store, whatever the writer commits meanwhile."""
        self._connection.execute("BEGIN")
        try:
            yield self
        finally:
            self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Transaction:
    """One unit of work of the writer: all of it happens, or none.

    Rows, timers and events go to the store; what is kept in memory beside it (the calendar) is changed
    through `keep`, which knows how to take the change back; what must only happen once the rows are safe
    (starting a container) goes into `afterwards`.
    """

    def __init__(self, connection: sqlite3.Connection, now: datetime, ids: IdSource) -> None:
        self._connection = connection
        self.now = now
        self.now_us = to_micros(now)
        self.ids = ids
        self._undo: list[Callable[[], None]] = []
        self._afterwards: list[Callable[[], None]] = []

    # -- rows ------------------------------------------------------------------------------------------
    def one(self, sql: str, *values: Value) -> Row | None:
        """The first row, or None."""
        row: Row | None = self._connection.execute(sql, values).fetchone()
        return row

    def all(self, sql: str, *values: Value) -> list[Row]:
        """All rows."""
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, *values: Value) -> int:
        """Execute a write; how many rows it touched."""
        return self._connection.execute(sql, values).rowcount

    def insert(self, table: str, **columns: Any) -> int:
        """Insert one row; its row id. `table` and column names come from code, never from a request."""
        names = ", ".join(columns)
        marks = ", ".join("?" * len(columns))
        cursor = self._connection.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})",  # noqa: S608 - names are literals in our code
            tuple(columns.values()),
        )
        return cursor.lastrowid or 0

    def insert_many(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> None:
        """Insert rows of the same columns. Names come from code, as with `insert`.

        A statement takes many rows: SQLite lets go of the interpreter's lock at each, and handing that to
        and fro between the threads costs more than the rows.
        """
        head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "  # noqa: S608 - literals, as above
        marks = f"({', '.join('?' * len(columns))})"
        whole = len(rows) - len(rows) % ROWS_AT_ONCE
        many = head + ", ".join([marks] * ROWS_AT_ONCE)
        for start in range(0, whole, ROWS_AT_ONCE):
            values = chain.from_iterable(rows[start : start + ROWS_AT_ONCE])
            self._connection.execute(many, tuple(values))
        self._connection.executemany(head + marks, rows[whole:])

    # -- what happens, and what will -------------------------------------------------------------------
    def event(
        self,
        subject: str,
        kind: str,
        reason: str = "",
        *,
        account_id: str | None = None,
        region: str | None = None,
        from_state: str | None = None,
        to_state: str | None = None,
    ) -> None:
        """Note that something happened to `subject`, now on the yard's clock."""
        self.insert(
            "events",
            at_us=self.now_us, account_id=account_id, region=region, subject=subject, kind=kind,
            from_state=from_state, to_state=to_state, reason=reason,
        )  # fmt: skip

    def timer(self, due: datetime, kind: str, subject: str, rank: int) -> None:
        """Let `kind` happen to `subject` at `due`, yard time; at one instant the lower rank comes first."""
        self.insert("timers", due_us=to_micros(due), rank=rank, kind=kind, subject=subject)

    def drop_timers(self, subject: str) -> None:
        """Nothing more shall happen to `subject` by itself."""
        self.run("DELETE FROM timers WHERE subject = ?", subject)

    # -- beside the rows -------------------------------------------------------------------------------
    def keep(self, do: Callable[[], None], undo: Callable[[], None]) -> None:
        """Change something in memory now, and take it back should this transaction not commit."""
        do()
        self._undo.append(undo)

    def afterwards(self, do: Callable[[], None]) -> None:
        """Run `do` once the transaction is safely stored. Lost in a crash: whatever it starts must also be
        started again from the rows when the yard comes back."""
        self._afterwards.append(do)

    def take_back(self) -> None:
        """Undo the changes in memory, latest first. For the writer."""
        while self._undo:
            self._undo.pop()()
        self._afterwards.clear()

    def carry_on(self) -> None:
        """Run what was to happen afterwards. For the writer, after the commit."""
        for do in self._afterwards:
            do()
