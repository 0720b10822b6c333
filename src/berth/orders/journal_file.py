"""The journal as a file: where it lies, brought up to date with a copy kept of what it was."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import count
from pathlib import Path

from berth.storage.home import berth_home
from berth.storage.sqlite import connect, copy_to, migrate
from berth.terms.clock import SystemClock

MIGRATIONS = "berth.orders.migrations"


def journal_file(environ: Mapping[str, str]) -> Path:
    """Where the journal lies: `journal.sqlite` in the client's folder."""
    return berth_home(environ) / "journal.sqlite"


def opened(file: Path, now: Callable[[], datetime] = SystemClock().now) -> sqlite3.Connection:
    """Open the journal to write, made when missing, its schema this program's.

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
