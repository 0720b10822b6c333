"""Where the journal is, a file of one person or a database of a team; opening it, up to date."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Protocol

from berth.storage.database import Database, Unusable
from berth.storage.home import berth_home
from berth.storage.migrations import head_of, migrations
from berth.storage.postgresql import PostgreSQL
from berth.storage.postgresql_address import SCHEMES, Address, parse_address
from berth.storage.postgresql_schema import migrate as migrate_server
from berth.storage.postgresql_schema import schema_version as server_version
from berth.storage.sqlite import SQLite, connect, copy_to, migrate, schema_version
from berth.terms.clock import SystemClock

MIGRATIONS = "berth.orders.migrations"
SETTING = "BERTH_JOURNAL"
Now = Callable[[], datetime]

# What buying writes, in statements that touch no row: a server asks for the right all the same.
_WRITES = (
    *(f"INSERT INTO {table} SELECT * FROM {table} WHERE 1 = 0" for table in ("orders", "attempts", "events")),  # noqa: S608
    *(f"UPDATE {table} SET order_id = order_id WHERE 1 = 0" for table in ("orders", "attempts")),  # noqa: S608
    "DELETE FROM plans WHERE 1 = 0",
)


class Place(Protocol):
    """A place where a journal is or may be. `str()` names it for people and holds no secret."""

    @property
    def shared(self) -> bool:
        """Whether every machine of a team writes into it."""
        ...

    def exists(self) -> bool:
        """Whether there may be a journal; only a file is known not to be there without asking."""
        ...

    def to_write(self) -> Database:
        """Open it, made when missing, its schema this program's; an older one is copied first.

        Raises NewerSchema, Unusable, OSError or sqlite3.Error.
        """
        ...

    def to_read(self) -> tuple[Database, int]:
        """Open it as it stands, and the version of its schema (0: empty). Nothing is changed.

        Raises as `to_write` does.
        """
        ...


class FilePlace:
    """A SQLite file."""

    shared = False

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def exists(self) -> bool:
        """Whether the file is there."""
        return self.path.exists()

    def to_write(self) -> Database:
        """Open it; its folder is made with mode 0700, the file with 0600."""
        folder = self.path.parent
        if not folder.exists():
            folder.mkdir(parents=True, mode=0o700)
            folder.chmod(0o700)  # the mode of mkdir is cut by the umask
        return SQLite(opened(self.path))

    def to_read(self) -> tuple[Database, int]:
        """Open it to read; as it lies where SQLite may not make its two helper files and nobody has."""
        alone = not os.access(self.path.parent, os.W_OK)
        alone = alone and not self.path.with_name(f"{self.path.name}-wal").exists()
        connection = connect(self.path, read_only=True, immutable=alone)
        try:
            return SQLite(connection), schema_version(connection, migrations(MIGRATIONS))
        except BaseException:
            connection.close()
            raise


class ServerPlace:
    """A PostgreSQL database."""

    shared = True

    def __init__(self, address: Address, now: Now = SystemClock().now) -> None:
        self._address = address
        self._now = now

    def __str__(self) -> str:
        return str(self._address)

    def exists(self) -> bool:
        """Only the server knows."""
        return True

    def to_write(self) -> Database:
        """Connect, and bring the schema up to date."""
        db = PostgreSQL(self._address)
        try:
            migrate_server(db, MIGRATIONS, self._now())
        except BaseException:
            db.close()
            raise
        return db

    def to_read(self) -> tuple[Database, int]:
        """Connect."""
        db = PostgreSQL(self._address)
        try:
            return db, server_version(db, migrations(MIGRATIONS, "postgresql"))
        except BaseException:
            db.close()
            raise


def journal_place(environ: Mapping[str, str]) -> Place:
    """The database of `BERTH_JOURNAL`, else `journal.sqlite` in the client's folder.

    Raises Unusable for a setting that is no URL of PostgreSQL, or where its driver is not installed.
    """
    url = environ.get(SETTING)
    if not url:
        return FilePlace(berth_home(environ) / "journal.sqlite")
    try:
        return ServerPlace(parse_address(url))
    except Unusable as problem:
        raise Unusable(f"{SETTING}: {problem}", problem.hint) from None


def check_writable(db: Database) -> None:
    """Return when the journal takes what buying writes; nothing is changed.

    Raises Unusable where a server does not let this user write, sqlite3.Error where a file does not.
    """
    with db.writing():
        for statement in _WRITES:
            db.execute(statement)


def place_of(where: Place | Path | str) -> Place:
    """The place that a path or a URL names; a place stays as it is."""
    if isinstance(where, Path):
        return FilePlace(where)
    if isinstance(where, str):
        return ServerPlace(parse_address(where)) if where.startswith(SCHEMES) else FilePlace(Path(where))
    return where


def is_current(version: int) -> bool:
    """Whether a journal of that schema can be read by this program as it stands."""
    return version == head_of(migrations(MIGRATIONS))


def is_damage(problem: Exception) -> bool:
    """Whether the file itself is damaged, or is no journal at all: trying again does not help."""
    code = getattr(problem, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}


def opened(file: Path, now: Now = SystemClock().now) -> sqlite3.Connection:
    """Open the journal's file to write, made when missing, its schema this program's.

    An older schema is copied first (`backup_name`), and not touched when that fails; the copies stay. `now`
    is this machine's clock, also in a rehearsal. Raises NewerSchema, OSError or sqlite3.Error.
    """
    connection = connect(file)
    try:
        migrate(connection, MIGRATIONS, lambda version: _back_up(file, version, now()))
    except BaseException:
        connection.close()
        raise
    return connection


def backup_name(file: Path, version: int, at: datetime, number: int = 1) -> Path:
    """`journal.v2.20261130T192345Z.sqlite` beside the journal: its schema's version, and when (UTC)."""
    again = "" if number == 1 else f".{number}"
    return file.with_name(f"{file.stem}.v{version}.{at:%Y%m%dT%H%M%SZ}{again}{file.suffix}")


def _back_up(file: Path, version: int, at: datetime) -> None:
    free = (backup_name(file, version, at, number) for number in count(1))
    copy_to(file, next(name for name in free if not name.exists()))
