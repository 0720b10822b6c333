"""docs/howto/share-a-journal.md, done as it is written: who may do what in the database, and going back."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from berth.orders.audit import read_audit
from berth.orders.journal import OrderTaken, open_journal
from berth.orders.journal_file import MIGRATIONS, ServerPlace, check_writable
from berth.orders.order import Approval
from berth.storage.database import Unusable
from berth.storage.migrations import head_of, migrations
from berth.storage.postgresql_address import parse_address
from berth.storage.postgresql_schema import backup_schema

from .conftest import World
from .fake_aws import KEY

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "share-a-journal.md"
SQL = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
AT = datetime(2026, 12, 1, 9, tzinfo=UTC)


class Team:
    """A database as the page makes it, with names of its own on a server that others use too."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.database = server.empty()
        server.execute("postgres", f"DROP DATABASE {self.database}")
        self._run("postgres", "postgres", SQL[0])

    def _named(self, text: str) -> str:
        text = re.sub(r"\b(berth_owner|berth_team|ada)\b", rf"\1_{self.database}", text)
        return re.sub(r"DATABASE journal\b", f"DATABASE {self.database}", text)

    def _run(self, database: str, user: str, sql: str) -> None:
        with psycopg.connect(self.server.url(database, user), autocommit=True) as connection:
            for statement in filter(str.strip, self._named(sql).split(";")):
                connection.execute(statement.encode())

    def url(self, user: str) -> str:
        """The journal as one of the team connects to it."""
        return str(self.server.url(self.database, self._named(user)))

    def as_owner(self, sql: str) -> None:
        """Run a part of the page as the owner."""
        self._run(self.database, self._named("berth_owner"), sql)


@pytest.fixture
def team(postgresql: Any) -> Team:
    """The page, up to where every machine is pointed at the journal."""
    made = Team(postgresql)
    open_journal(made.url("berth_owner"), "aws").close()
    made.as_owner(SQL[1])
    return made


def test_a_member_buys_with_no_more_than_is_granted(team: Team) -> None:
    """The whole purchase, the plan, what is made for an order, the history."""
    world = World(team.url("ada"))
    with closing(world.journal):
        assert world.buy().order.attempt.number == 1
        world.journal.remember_plan(KEY.account, "eval", {"n": 1}, AT)
        world.journal.remember_plan(KEY.account, "eval", {"n": 2}, AT)
        assert world.journal.recall_plan(KEY.account, "eval") == {"n": 2}
        assert len(world.journal.events(KEY)) >= 2
    assert len(read_audit(ServerPlace(parse_address(team.url("ada"))))) >= 2


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE berth.events SET detail = 'never'",
        "DELETE FROM berth.events",
        "TRUNCATE berth.events",
        "DELETE FROM berth.orders",
        "UPDATE berth.schema_version SET version = 1",
        "ALTER TABLE berth.events DISABLE TRIGGER ALL",
        "SET session_replication_role = replica",
        "DROP SCHEMA berth CASCADE",
        "CREATE TABLE berth.mine (x BIGINT)",
        "CREATE OR REPLACE FUNCTION berth.events_only_grow() RETURNS trigger LANGUAGE sql AS 'SELECT NULL'",
    ],
)
def test_a_member_cannot_change_the_past(team: Team, statement: str) -> None:
    """Refused by the server, whatever program asks."""
    with psycopg.connect(team.url("ada")) as member, pytest.raises(psycopg.errors.InsufficientPrivilege):
        member.execute(statement)


def test_who_only_audits_is_told_that_nothing_can_be_written(team: Team) -> None:
    """What `berth doctor` asks of a journal: a member may write, who reads alone is told whom to ask."""
    with closing(ServerPlace(parse_address(team.url("ada"))).to_write()) as of_a_member:
        check_writable(of_a_member)
    team.as_owner("REVOKE INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA berth FROM berth_team")
    reader = ServerPlace(parse_address(team.url("ada"))).to_write()
    with closing(reader), pytest.raises(Unusable, match="permission denied") as caught:
        check_writable(reader)
    assert "rights" in caught.value.hint


def test_a_member_who_is_newer_than_the_schema_is_told(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words and no change; the owner's run is what brings it up to date."""
    later = [*migrations(MIGRATIONS, "postgresql"), (99, "CREATE TABLE later (x BIGINT)")]
    monkeypatch.setattr("berth.storage.postgresql_schema.migrations", lambda package, dialect: later)
    with pytest.raises(Unusable, match="permission denied"):
        open_journal(team.url("ada"), "aws")
    open_journal(team.url("berth_owner"), "aws").close()
    open_journal(team.url("ada"), "aws").close()


def test_going_back_as_the_page_says(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row is there again, with keys and with a history that only grows."""
    known = migrations(MIGRATIONS, "postgresql")
    head = head_of(known)
    world = World(team.url("berth_owner"))
    world.buy()
    world.journal.close()
    later = [*known, (head + 1, "ALTER TABLE orders ADD COLUMN later TEXT")]
    with monkeypatch.context() as newer:
        newer.setattr("berth.storage.postgresql_schema.migrations", lambda package, dialect: later)
        ServerPlace(parse_address(team.url("berth_owner")), lambda: AT).to_write().close()
    copy = backup_schema(head, AT)
    named = next(text for text in SQL if "berth.events TABLE" in text)
    team.as_owner("ALTER SCHEMA berth RENAME TO berth_newer")
    open_journal(team.url("berth_owner"), "aws").close()
    team.as_owner(named.replace("berth_v3_20261201t090000z", copy))
    journal = open_journal(team.url("berth_owner"), "aws")
    with closing(journal):
        order = journal.order(KEY)
        assert order is not None
        assert order.reservation_arn
        assert [event.kind for event in journal.events(KEY)][:2] == ["intended", "bought"]
        with pytest.raises(OrderTaken):
            journal.intend(KEY, Approval(world.approved), intent_id="i2", holder="p2", now=AT)
