"""Bringing the schema of a PostgreSQL database up to date, with what was there before kept beside it."""

from __future__ import annotations

from datetime import datetime

from berth.storage.migrations import Steps, check_version, head_of, migrations
from berth.storage.postgresql import SCHEMA, PostgreSQL

DIALECT = "postgresql"


def schema_version(db: PostgreSQL, known: Steps) -> int:
    """The version of the schema, 0 where there is none yet. Raises NewerSchema when it is above `known`."""
    there = db.execute(f"SELECT to_regclass('{SCHEMA}.schema_version') AS name").fetchone()
    if there["name"] is None:
        return 0
    return check_version(int(db.execute("SELECT version FROM schema_version").fetchone()["version"]), known)


def backup_schema(version: int, at: datetime) -> str:
    """`berth_v3_20261130t192345z`: the schema in which the tables of that version stay."""
    return f"{SCHEMA}_v{version}_{at:%Y%m%dt%H%M%Sz}"


def migrate(db: PostgreSQL, package: str, at: datetime) -> int:
    """Apply the migrations of `package` that the database lacks, in one transaction; the version it has now.

    Tables of an older version are copied first, in the same transaction, into `backup_schema`: either both
    are there afterwards or neither. The right to make a schema is needed only where something is to change.
    Raises NewerSchema when the database is ahead of this program, Unusable when it cannot be changed.
    """
    known = migrations(package, DIALECT)
    if schema_version(db, known) == head_of(known):
        return head_of(known)
    with db.writing():
        version = schema_version(db, known)  # again behind the lock: of two programs only one migrates
        if version == 0:
            db.script(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            db.script("CREATE TABLE schema_version (version BIGINT NOT NULL)")
            db.script("INSERT INTO schema_version VALUES (0)")
        elif version < head_of(known):
            _copy_tables(db, backup_schema(version, at))
        for number, script in known:
            if number > version:
                db.script(script)
        db.execute("UPDATE schema_version SET version = ?", (head_of(known),))
    return head_of(known)


def _copy_tables(db: PostgreSQL, target: str) -> None:
    tables = db.execute(
        "SELECT tablename::text AS name FROM pg_tables WHERE schemaname = ? ORDER BY 1", (SCHEMA,)
    ).fetchall()
    db.script(f"CREATE SCHEMA {target}")
    for table in tables:
        db.script(f'CREATE TABLE {target}."{table["name"]}" AS TABLE {SCHEMA}."{table["name"]}"')
