"""The journal: kept, guarded, and never read by an older program."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from berth.orders.journal import LostRace, OrderTaken, open_journal
from berth.orders.journal_file import MIGRATIONS, FilePlace, journal_place
from berth.orders.order import MOVES, Approval, OrderKey, OrderState, split_order_name
from berth.storage.migrations import NewerSchema, head_of, migrations

KEY = OrderKey("111122223333", "eval", 1)


def intend(world: Any, journal: Any, key: OrderKey = KEY) -> Any:
    """Commit an intent for the approved offer."""
    return journal.intend(key, Approval(world.approved), intent_id="i1", holder="p1", now=world.clock.now())


def set_version(place: Path | str, version: int) -> None:
    """Say that a program of that schema has written the journal."""
    if isinstance(place, Path):
        with closing(sqlite3.connect(place)) as db:
            db.execute(f"PRAGMA user_version={version}")
        return
    with psycopg.connect(place) as server:
        server.execute("UPDATE berth.schema_version SET version = %s", (version,))


def test_the_folder_is_private(tmp_path: Path) -> None:
    """Folder 0700 and file 0600, made on first use, wherever BERTH_HOME points."""
    place = journal_place({"BERTH_HOME": str(tmp_path / "a" / "b")})
    assert isinstance(place, FilePlace)
    file = place.path
    assert file == tmp_path / "a" / "b" / "journal.sqlite"
    open_journal(file, "aws").close()
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_plan_remembered_twice_keeps_the_newest(world: Any) -> None:
    """NAME#1 means the plan that was shown last."""
    world.journal.remember_plan("1", "eval", {"n": 1}, world.clock.now())
    world.journal.remember_plan("1", "eval", {"n": 2}, world.clock.now())
    assert world.journal.recall_plan("1", "eval") == {"n": 2}
    assert world.journal.recall_plan("1", "other") is None
    assert world.journal.recall_plan("2", "eval") is None


def test_only_one_intent_wins(world: Any) -> None:
    """Two processes on one file: the second is told that the order is taken."""
    second = open_journal(world.place, "aws")
    intend(world, world.journal)
    with pytest.raises(OrderTaken) as caught:
        intend(world, second)
    assert caught.value.order.state is OrderState.BUYING
    second.close()


def test_a_lost_race_is_said(world: Any) -> None:
    """A move names the state that it expects; whoever comes second changes nothing."""
    order = intend(world, world.journal)
    world.journal.settle(order, OrderState.BOUGHT, now=world.clock.now(), detail="", arn="arn:x")
    with pytest.raises(LostRace):
        world.journal.settle(order, OrderState.REFUSED, now=world.clock.now(), detail="")
    assert world.journal.order(KEY).state is OrderState.BOUGHT


@pytest.mark.parametrize("start", list(OrderState))
def test_the_table_of_moves_is_closed(start: OrderState) -> None:
    """Every state has a row, and nothing leaves FAILED."""
    assert MOVES[start] <= set(OrderState)
    assert not MOVES[OrderState.FAILED]


def test_a_move_that_the_table_lacks_is_refused(world: Any) -> None:
    """BUYING cannot become FAILED: the plan must have been seen first."""
    order = intend(world, world.journal)
    with pytest.raises(ValueError, match="cannot go from buying to failed"):
        world.journal.settle(order, OrderState.FAILED, now=world.clock.now(), detail="")


def test_realms_never_meet(world: Any) -> None:
    """An order of a rehearsal is not there for AWS, and the other way round."""
    intend(world, world.journal)
    yard = open_journal(world.place, "http://127.0.0.1:4599")
    assert yard.order(KEY) is None
    assert yard.orders(KEY.account) == ()
    intend(world, yard)
    yard.close()


def test_a_newer_schema_is_refused(world: Any) -> None:
    """An older program does not touch a newer journal."""
    world.journal.close()
    set_version(world.place, 99)
    with pytest.raises(NewerSchema, match="99 is newer than this program knows"):
        open_journal(world.place, "aws")
    set_version(world.place, head_of(migrations(MIGRATIONS)))
    world.open()


def test_an_order_comes_back_as_it_was(world: Any) -> None:
    """What was approved survives the file: offer, query, fee, attempt."""
    order = intend(world, world.journal)
    world.journal.close()
    again = world.open().order(KEY)
    assert again == order
    assert again.offer.query == world.approved.query
    assert again.attempt.fee == world.approved.fee


def test_the_history_only_grows(world: Any) -> None:
    """Every change leaves a line, in order."""
    order = intend(world, world.journal)
    world.clock.advance(minutes=1)
    world.journal.settle(order, OrderState.BOUGHT, now=world.clock.now(), detail="done", arn="arn:x")
    world.journal.note(KEY, "said", "hello", world.clock.now())
    events = world.journal.events(KEY)
    assert [(event.number, event.kind) for event in events] == [(1, "intended"), (2, "bought"), (3, "said")]
    assert events[1].at - events[0].at == timedelta(minutes=1)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET detail = 'never'",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events SELECT order_id, number, 0, 'x', 'x', NULL, NULL FROM events",
    ],
)
def test_a_file_refuses_to_change_its_history(tmp_path: Path, world: Any, statement: str) -> None:
    """Whatever program opens it through SQLite: no line is changed, removed or replaced."""
    file = tmp_path / "one" / "journal.sqlite"
    with closing(open_journal(file, "aws")) as journal:
        intend(world, journal)
        before = journal.events(KEY)
        with (
            closing(sqlite3.connect(file)) as other,
            pytest.raises(sqlite3.IntegrityError, match="only grow"),
        ):
            other.execute(statement)
        assert journal.events(KEY) == before


def test_a_text_with_a_nul_is_kept_readable(world: Any) -> None:
    """A message from elsewhere may hold any character; one that a server refuses must not lose the line."""
    intend(world, world.journal)
    world.journal.note(KEY, "said", "before\0after \u2028 \U0001f680 %s ?", world.clock.now())
    detail = world.journal.events(KEY)[-1].detail
    assert detail.replace("\0", "\ufffd") == "before\ufffdafter \u2028 \U0001f680 %s ?"


def test_orders_are_listed_by_need_and_number(world: Any) -> None:
    """In the order of the alphabet's code points, wherever the journal is kept and whatever its collation."""
    for need, number in (("b", 2), ("a-b", 1), ("a", 10), ("a", 9), ("ab", 1), ("b", 1)):
        intend(world, world.journal, OrderKey("111122223333", need, number))
    listed = [str(order.key) for order in world.journal.orders(None)]
    assert listed == ["a/9", "a/10", "a-b", "ab", "b", "b/2"]


@pytest.mark.parametrize("text", ["", "/2", "eval/", "eval/0", "eval/x", "eval/-1", "eval/1/2", "eval/²"])
def test_a_name_that_is_none_is_refused(text: str) -> None:
    """An order is NAME or NAME/2."""
    with pytest.raises(ValueError, match="not the name of an order"):
        split_order_name(text)


def test_names_are_read() -> None:
    """Without a number the latest is meant."""
    assert split_order_name("eval") == ("eval", None, 0)
    assert split_order_name("eval/12") == ("eval", 12, 0)
    assert split_order_name("eval/12.3") == ("eval", 12, 3)
