"""SQLite files that survive a crash, with numbered migrations.

Shared by the client's journal and the yard's store: how a file is opened and brought up to date holds no
rule of AWS's, so both halves may use the same code without agreeing on a wrong rule.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import resources
from pathlib import Path


class NewerSchema(RuntimeError):
    """The file was written by a newer program; this one must not touch it."""


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


def migrations(package: str) -> list[tuple[int, str]]:
    """The numbered `.sql` files of `package` (`0001_start.sql`, ...), in order, as (number, text)."""
    files = sorted(
        (entry for entry in resources.files(package).iterdir() if entry.name.endswith(".sql")),
        key=lambda entry: entry.name,
    )
    return [(int(entry.name[:4]), entry.read_text(encoding="utf-8")) for entry in files]


def migrate(connection: sqlite3.Connection, package: str, before: Callable[[int], None] | None = None) -> int:
    """Apply the migrations of `package` that the file lacks, all in one transaction; the version it has now.

    `before` is told the version of a file that holds something and is about to be changed, once, while this
    process alone may write and nothing is changed yet; what it raises leaves the file as it was. Raises
    NewerSchema when the file is ahead of this program.
    """
    known = migrations(package)
    head = known[-1][0] if known else 0
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


def schema_version(connection: sqlite3.Connection, known: list[tuple[int, str]]) -> int:
    """The version of the file's schema, 0 for an empty one. Raises NewerSchema when it is above `known`."""
    head = known[-1][0] if known else 0
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > head:
        raise NewerSchema(
            f"schema version {version} is newer than this program knows ({head}); use the newer program"
        )
    return version


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
