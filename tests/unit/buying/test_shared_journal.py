"""A journal on a server: connections that break at any moment, other machines, older and newer programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

import berth.orders
from berth.orders.audit import read_audit
from berth.orders.journal import open_journal
from berth.orders.journal_file import MIGRATIONS, ServerPlace
from berth.orders.order import Approval, OrderKey, OrderState
from berth.storage.database import CommitUnknown, Unusable
from berth.storage.migrations import NewerSchema, head_of, migrations
from berth.storage.postgresql import PostgreSQL
from berth.storage.postgresql_address import parse_address
from berth.storage.postgresql_schema import backup_schema, migrate
from berth.terms.outcomes import BerthError, ExitCode, Spent

KEY = OrderKey("111122223333", "eval", 1)
AT = datetime(2026, 12, 1, 9, tzinfo=UTC)


class Line:
    """The line to the server. `breaks` hears number and text of each statement: before, after or None."""

    def __init__(self) -> None:
        self.breaks: Callable[[int, str], str | None] = lambda number, sql: None
        self.number = 0
        self.reachable = True


class Wired:
    """A connection over a `Line`."""

    def __init__(self, inner: Any, line: Line) -> None:
        self._inner = inner
        self._line = line

    def execute(self, sql: str, *values: Any) -> Any:
        """Run it, or lose the line before the server has run it, or after."""
        self._line.number += 1
        when = self._line.breaks(self._line.number, sql)
        answer = None if when == "before" else self._inner.execute(sql, *values)
        if when is not None:
            self._inner.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    """The line that every connection of the program goes over."""
    made = Line()
    connect = PostgreSQL._connect

    def connected(self: PostgreSQL) -> Any:
        if not made.reachable:
            raise Unusable("no route to the server")
        return Wired(connect(self), made)

    monkeypatch.setattr(PostgreSQL, "_connect", connected)
    return made


@pytest.fixture
def database(postgresql: Any) -> Iterator[str]:
    """The URL of a database with an empty journal."""
    with postgresql.journals() as new:
        yield postgresql.url(new())


@pytest.fixture
def empty(postgresql: Any) -> str:
    """The URL of a database with nothing in it."""
    return str(postgresql.url(postgresql.empty()))


@pytest.fixture
def new_place(database: str, line: Line) -> Callable[[], str]:
    """The worlds of this file have one journal each, on the server."""
    return lambda: database


def intents(database: str) -> list[tuple[str, str]]:
    """State and latest intent of each order, as another machine sees it."""
    with psycopg.connect(database) as other:
        return other.execute(
            "SELECT state, intent_id FROM berth.orders JOIN berth.attempts USING (order_id) ORDER BY number"
        ).fetchall()


def guard_payments(world: Any, database: str) -> None:
    """Nothing is paid unless another machine can see the intent in the journal."""

    def seen(effect: str) -> None:
        if effect == f"{world.aws.paid}:before":
            assert intents(database)[-1][0] == "buying"

    world.aws.effects = seen


def intend(world: Any, journal: Any, intent_id: str = "i1") -> Any:
    """Commit an intent for the approved offer."""
    return journal.intend(
        KEY, Approval(world.approved), intent_id=intent_id, holder="p1", now=world.clock.now()
    )


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("sells", ["plans", "blocks"])
def test_a_line_that_breaks_at_any_statement(
    make_world: Any, database: str, line: Line, postgresql: Any, sells: str, when: str
) -> None:
    """Whatever statement loses the line: words, no payment without an intent, and run again one sale."""
    stop, reached = 0, True
    while reached:
        stop += 1
        world = make_world(sells)
        guard_payments(world, database)
        line.number = 0
        line.breaks = lambda number, sql, stop=stop: when if number == stop else None
        try:
            world.buy()
        except Unusable as problem:
            assert "lost" in str(problem)  # noqa: PT017
        except BerthError as problem:
            assert problem.exit_code is ExitCode.OUTCOME_UNKNOWN  # noqa: PT017 - any other end is a fault
        reached = line.number >= stop
        line.breaks = lambda number, sql: None
        for _ in range(4):
            try:
                world.buy()
            except BerthError as problem:
                assert problem.exit_code is ExitCode.OUTCOME_UNKNOWN  # noqa: PT017
                world.clock.advance(minutes=4)
        assert world.order().state is OrderState.BOUGHT
        assert len(world.aws.ledger) == 1
        world.journal.close()
        postgresql.empty_journal(database)
    assert stop > 25


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_line_lost_inside_the_commit_of_an_intent(world: Any, line: Line, when: str) -> None:
    """The server is asked what became of it: kept, and the purchase goes on; undone, and it says so."""
    lost = iter([when])
    line.breaks = lambda number, sql: next(lost, None) if sql == "COMMIT" else None
    if when == "after":
        assert intend(world, world.journal).attempt.intent_id == "i1"
        return
    with pytest.raises(Unusable, match="undone") as caught:
        intend(world, world.journal)
    assert not isinstance(caught.value, CommitUnknown)
    assert world.journal.order(KEY) is None
    assert intend(world, world.journal).state is OrderState.BUYING


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_that_nobody_can_ask_about_pays_nothing(world: Any, line: Line, when: str) -> None:
    """The line breaks inside the commit and the server is gone: not known is said, and nothing is paid."""

    def breaks(number: int, sql: str) -> str | None:
        line.reachable = sql != "COMMIT"
        return None if line.reachable else when

    line.breaks = breaks
    with pytest.raises(CommitUnknown, match="not known"):
        world.buy()
    assert world.aws.ledger == []
    line.breaks, line.reachable = lambda number, sql: None, True
    for _ in range(3):
        try:
            world.buy()
        except BerthError as problem:
            assert problem.exit_code is ExitCode.OUTCOME_UNKNOWN  # noqa: PT017
            world.clock.advance(minutes=7)
    assert len(world.aws.ledger) == 1


def test_another_server_cannot_vouch_for_an_intent(world: Any, line: Line, database: str) -> None:
    """One that took over without the last commits may say committed: only what is read back is paid for."""
    world.aws.fault = "throttled"
    with pytest.raises(BerthError, match="refused"):
        world.buy()  # so that the order is there, as the server without the last commits has it
    lost = iter(["before"])
    line.breaks = lambda number, sql: next(lost, None) if sql == "COMMIT" else None
    learn = PostgreSQL._learn
    with pytest.MonkeyPatch.context() as patch:

        def lies(self: PostgreSQL, transaction: str, problem: Exception) -> None:
            with pytest.raises(Unusable):
                learn(self, transaction, problem)

        patch.setattr(PostgreSQL, "_learn", lies)
        with pytest.raises(BerthError):
            world.buy()
    assert world.aws.ledger == []


def test_a_server_that_restarted_meanwhile_is_not_noticed(world: Any, database: str, postgresql: Any) -> None:
    """Between two statements the line is made anew, once: nothing had been written."""
    intend(world, world.journal)
    postgresql.drop_connections(database)
    assert world.journal.order(KEY).state is OrderState.BUYING
    postgresql.drop_connections(database)
    world.journal.note(KEY, "said", "hello", world.clock.now())
    assert [event.kind for event in world.journal.events(KEY)] == ["intended", "said"]


def test_a_line_lost_within_a_write_undoes_it(world: Any, database: str, postgresql: Any) -> None:
    """Half a write is none, and is told as such."""

    def cut(effect: str) -> None:
        if effect == "note:before":
            postgresql.drop_connections(database)

    intend(world, world.journal)
    journal = open_journal(database, "aws", cut)
    with closing(journal), pytest.raises(Unusable, match="undone"):
        journal.note(KEY, "said", "hello", world.clock.now())
    assert [event.kind for event in world.journal.events(KEY)] == ["intended"]


def test_after_the_sale_a_lost_journal_is_not_known(world: Any, line: Line, database: str) -> None:
    """The answer of the paid call cannot be written: not known is what was told, and a look settles it."""

    def breaks(number: int, sql: str) -> str | None:
        line.reachable = line.reachable and not world.aws.ledger
        return None if line.reachable else "before"

    line.breaks = breaks
    with pytest.raises(Unusable):
        world.buy()
    assert world.spending[-1].spent is Spent.NOT_KNOWN
    line.breaks, line.reachable = lambda number, sql: None, True
    assert world.buy().how.value == "found"
    assert len(world.aws.ledger) == 1


RACER = """
import sys
from datetime import UTC, datetime
from berth.orders.journal import open_journal, OrderTaken
from berth.orders.order import Approval, OrderKey
from berth.planner.offers import Offer
import json
offer = Offer.from_json(json.loads(sys.argv[2]))
journal = open_journal(sys.argv[1], "aws")
print("ready", flush=True)
sys.stdin.readline()
won = 0
for number in range(1, 21):
    key = OrderKey("111122223333", "race", number)
    try:
        journal.intend(key, Approval(offer), intent_id=sys.argv[3], holder=sys.argv[3],
                       now=datetime(2027, 3, 1, tzinfo=UTC))
        won += 1
    except OrderTaken:
        pass
print(won, flush=True)
"""


def test_two_processes_make_one_order(world: Any, database: str) -> None:
    """Of two processes that intend the same twenty orders at once, each order has one winner."""
    offer = json.dumps(world.approved.to_json())
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, database, offer, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in ("left", "right")
    ]  # fmt: skip
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = [int(racer.communicate()[0]) for racer in racers]
    assert sum(won) == 20
    assert len(intents(database)) == 20


def test_the_history_refuses_to_be_changed(world: Any, database: str) -> None:
    """Nobody who writes a journal changes, removes or empties lines, whatever statement they find."""
    intend(world, world.journal)
    for statement in (
        "UPDATE berth.events SET detail = ''",
        "DELETE FROM berth.events",
        "TRUNCATE berth.events",
    ):
        with (
            psycopg.connect(database) as other,
            pytest.raises(psycopg.errors.RaiseException, match="only grow"),
        ):
            other.execute(statement)
    assert len(world.journal.events(KEY)) == 1


def old_server(url: str, version: int) -> None:
    """A journal as a program of that version left it, with one order and its history."""
    known = [(number, text) for number, text in migrations(MIGRATIONS, "postgresql") if number <= version]
    with pytest.MonkeyPatch.context() as patch, closing(PostgreSQL(parse_address(url))) as db:
        patch.setattr("berth.storage.postgresql_schema.migrations", lambda package, dialect: known)
        migrate(db, MIGRATIONS, AT)
        with db.writing():
            db.execute(
                "INSERT INTO orders (order_id, realm, account, need, sequence, state, reservation_name,"
                " offer, context, created_at, changed_at)"
                " VALUES ('aws 111122223333/eval/1', 'aws', '111122223333', 'eval', 1, 'bought',"
                " 'eval-1', '{}', '{}', 0, 0)"
            )
            db.execute(
                "INSERT INTO attempts VALUES ('aws 111122223333/eval/1', 1, 'i1', 'tpo-1', 228770000, 'USD',"
                " 'host boot 7 99', 0, NULL, NULL, '')"
            )
            db.execute(
                "INSERT INTO events (order_id, number, at, kind, detail)"
                " VALUES ('aws 111122223333/eval/1', 1, 1000000, 'intended', 'x')"
            )


@pytest.mark.parametrize("version", range(1, head_of(migrations(MIGRATIONS, "postgresql"))))
def test_an_older_journal_is_copied_and_brought_up_to_date(empty: str, version: int) -> None:
    """Its tables stay in a schema named by version and time; the audit read it before, unchanged."""
    old_server(empty, version)
    place = ServerPlace(parse_address(empty), lambda: AT)
    assert [(entry.kind, str(entry.amount)) for entry in read_audit(place)] == [("intended", "228.77 USD")]
    for _ in range(2):
        place.to_write().close()
    with psycopg.connect(empty) as other:
        kept = other.execute(f"SELECT version FROM {backup_schema(version, AT)}.schema_version").fetchone()
        told = other.execute(f"SELECT kind FROM {backup_schema(version, AT)}.events").fetchall()
        schemas = other.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'berth%'").fetchall()
    assert kept == (version,)
    assert told == [("intended",)]
    assert len(schemas) == 2
    assert len(read_audit(place)) == 1


def test_a_migration_that_fails_leaves_no_trace(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps and the copy, or none of them."""
    old_server(empty, 2)
    broken = [*migrations(MIGRATIONS, "postgresql"), (99, "CREATE TABLE events (x BIGINT);")]
    monkeypatch.setattr("berth.storage.postgresql_schema.migrations", lambda package, dialect: broken)
    with pytest.raises(Unusable, match="already exists"):
        ServerPlace(parse_address(empty), lambda: AT).to_write()
    with psycopg.connect(empty) as other:
        assert other.execute("SELECT version FROM berth.schema_version").fetchone() == (2,)
        assert other.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'berth%'").fetchone() == (
            1,
        )


def test_a_newer_journal_is_read_by_nobody_older(database: str) -> None:
    """Neither to write nor to read, and nothing of it changes."""
    with psycopg.connect(database) as other:
        (before,) = other.execute("UPDATE berth.schema_version SET version = 99 RETURNING version").fetchone()
    place = ServerPlace(parse_address(database))
    for use in (place.to_write, place.to_read):
        with pytest.raises(NewerSchema, match="99 is newer"):
            use()
    with psycopg.connect(database) as other:
        other.execute(
            "UPDATE berth.schema_version SET version = %s", (head_of(migrations(MIGRATIONS, "postgresql")),)
        )
    assert before == 99


def test_nothing_asks_the_servers_clock() -> None:
    """Instants come from the program, so a server whose clock is wrong changes nothing."""
    clocks = re.compile(
        r"\b(?:now|clock_timestamp|statement_timestamp|datetime|strftime)\(\)|\bCURRENT_|\bLOCALTIME"
    )
    for dialect in ("sqlite", "postgresql"):
        assert [number for number, script in migrations(MIGRATIONS, dialect) if clocks.search(script)] == []
    for module in Path(berth.orders.__file__).parent.glob("**/*.py"):
        assert not re.search(
            r'"[^"]*\b(?:SELECT|INSERT|UPDATE)\b[^"]*\b(?:now\(\)|CURRENT_)', module.read_text()
        )


def test_commits_are_on_the_disk_whatever_the_role_says(empty: str, postgresql: Any) -> None:
    """`synchronous_commit = off` of a role or a database is not followed."""
    name = empty.rpartition("@/")[2].partition("?")[0]
    postgresql.execute("postgres", f"ALTER DATABASE {name} SET synchronous_commit = off")
    with closing(PostgreSQL(parse_address(empty))) as db:
        assert db.execute("SHOW synchronous_commit").fetchone() == {"synchronous_commit": "on"}
