"""Numbered migrations: the steps that bring a schema up to date, as files of a package."""

from __future__ import annotations

import re
from importlib import resources

Steps = list[tuple[int, str]]
"""Number and SQL of each step, in order."""

_NAME = re.compile(r"(?P<number>\d{4})_\w+(?:\.(?P<dialect>\w+))?\.sql")


class NewerSchema(RuntimeError):
    """It was written by a newer program; this one must not touch it."""


def migrations(package: str, dialect: str = "sqlite") -> Steps:
    """The steps of `package` for `dialect` (`sqlite`, `postgresql`), in order.

    `0001_start.sql` is for both; `0004_name.sqlite.sql` and `0004_name.postgresql.sql` each for one.
    """
    found = []
    for entry in resources.files(package).iterdir():
        name = _NAME.fullmatch(entry.name)
        if name is not None and name["dialect"] in {None, dialect}:
            found.append((int(name["number"]), entry.read_text(encoding="utf-8")))
    return sorted(found)


def head_of(known: Steps) -> int:
    """The version that this program brings a schema to; 0 where there are no steps."""
    return known[-1][0] if known else 0


def check_version(version: int, known: Steps) -> int:
    """`version`, if this program knows it. Raises NewerSchema when it is above `known`."""
    if version > head_of(known):
        raise NewerSchema(
            f"schema version {version} is newer than this program knows ({head_of(known)}); use the newer"
            " program"
        )
    return version
