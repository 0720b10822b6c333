"""SQLite files that survive a crash, with numbered migrations.

Shared by the client's journal and the yard's store: how a file is opened and brought up to date holds no
rule of AWS's, so both halves may use the same code without agreeing on a wrong rule.
"""

from __future__ import annotations

import sqlite3
from importlib import resources
from pathlib import Path


class NewerSchema(RuntimeError):
    """The file was written by a newer program; this one must not touch it."""


def connect(path: Path | str, *, read_only: bool = False) -> sqlite3.Connection:
    """Open `path` in WAL mode with full synchronisation; transactions are begun by hand.

    WAL with `synchronous=FULL` is the only fast mode that keeps a commit over a power loss
    (https://www.sqlite.org/pragma.html#pragma_synchronous). The file is made with mode 0600.
    """
    file = Path(path)
    if not read_only and not file.exists():
        file.touch(mode=0o600)
    # The owner hands the connection to its one thread (or guards it); SQLite's own check would forbid that.
    connection = sqlite3.connect(
        f"{file.absolute().as_uri()}{'?mode=ro' if read_only else ''}",
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


def migrate(connection: sqlite3.Connection, package: str) -> int:
    """Apply the migrations of `package` that the file lacks, each in one transaction; the version it has now.

    Raises NewerSchema when the file is ahead of this program.
    """
    known = migrations(package)
    head = known[-1][0] if known else 0
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > head:
        raise NewerSchema(
            f"schema version {version} is newer than this program knows ({head}); use the newer program"
        )
    for number, script in known:
        if number <= version:
            continue
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version={number};\nCOMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return head
