"""SQLite files that survive a crash, with numbered migrations.

Shared by the client's journal and the yard's store: how a file is opened and brought up to date holds no
rule of AWS's, so both halves may use the same code without agreeing on a wrong rule.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from berth.storage.database import Answer
from berth.storage.migrations import NewerSchema, Steps, check_version, head_of, migrations

__all__ = [
    "NewerSchema", "SQLite", "connect", "copy_to", "migrate", "migrations", "schema_version",
]  # fmt: skip


class SQLite:
    """A SQLite file as a `Database`. `connection` is one that `connect` opened."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def execute(self, sql: str, values: Sequence[object] = (), /) -> Answer:
        """One statement. Raises sqlite3.Error."""
        return self.connection.execute(sql, values)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One write, alone from its beginning."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Reads of one moment."""
        if self.connection.in_transaction:
            yield
            return
        self.connection.execute("BEGIN")
        try:
            yield
        finally:
            self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file."""
        self.connection.close()


def connect(path: Path | str, *, read_only: bool = False, immutable: bool = False) -> sqlite3.Connection:
    """Open `path` in WAL mode with full synchronisation; transactions are begun by hand.

    WAL with `synchronous=FULL` is the only fast mode that keeps a commit over a power loss
    (https://www.sqlite.org/pragma.html#pragma_synchronous). The file is made with mode 0600.
    `immutable`, with `read_only`: nobody writes it meanwhile, so nothing is made beside it.
    """
    file = Path(path)
    if not read_only and not file.exists():
        file.touch(mode=0o600)
    # The owner hands the connection to its one thread (or guards it); SQLite's own check would forbid that.
    how = f"?mode=ro{'&immutable=1' if immutable else ''}" if read_only else ""
    connection = sqlite3.connect(
        f"{file.absolute().as_uri()}{how}",
        uri=True, isolation_level=None, check_same_thread=False, timeout=10.0, cached_statements=512,
    )  # fmt: skip
    connection.row_factory = sqlite3.Row
    if not read_only:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


def migrate(connection: sqlite3.Connection, package: str, before: Callable[[int], None] | None = None) -> int:
    """Apply the migrations of `package` that the file lacks, all in one transaction; the version it has now.

    `before` is told the version of a file that holds something and is about to be changed, once, while this
    process alone may write and nothing is changed yet; what it raises leaves the file as it was. Raises
    NewerSchema when the file is ahead of this program.
    """
    known = migrations(package)
    head = head_of(known)
    if schema_version(connection, known) == head:
        return head
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again behind the lock: of two programs that start at once only one migrates.
        version = schema_version(connection, known)
        lacking = [(number, script) for number, script in known if number > version]
        if before is not None and version > 0 and lacking:
            before(version)
        for number, script in lacking:
            for statement in _statements(script):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={number:d}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return head


def schema_version(connection: sqlite3.Connection, known: Steps) -> int:
    """The version of the file's schema, 0 for an empty one. Raises NewerSchema when it is above `known`."""
    return check_version(int(connection.execute("PRAGMA user_version").fetchone()[0]), known)


def copy_to(source: Path, target: Path) -> None:
    """Copy the database `source`, as last committed, to the file `target` (mode 0600), and to the disk.

    With SQLite's own backup, so that what still lies in the log is in it, and others may go on reading. The
    name appears only when the copy is whole. Raises OSError or sqlite3.Error, and then leaves nothing
    behind.
    """
    part = target.with_name(f"{target.name}.part")
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with closing(connect(source, read_only=True)) as old, closing(sqlite3.connect(part)) as new:
            old.backup(new)
            new.execute("PRAGMA journal_mode=DELETE")  # one file, which can be copied and read by itself
        _to_disk(part)
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)
    _to_disk(target.parent)


def _to_disk(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: `executescript` would commit what was begun before it."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
