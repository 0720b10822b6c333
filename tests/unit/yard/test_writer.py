"""The one writer: groups, refusals, failed commits, and its ends."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.yard.store.transaction import Transaction
from berth.yard.store.writer import GroupCommit, NotStored, SerialWriter, ThreadWriter, Writer, _Job

from .conftest import Store, open_store


class Refusal(Exception):
    """A job's own reason not to happen."""


def note(key: str) -> Callable[[Transaction], str]:
    """A job that writes one row."""

    def work(tx: Transaction) -> str:
        tx.insert("meta", key=key, value="x")
        return key

    return work


def refuse(after: str | None = None) -> Callable[[Transaction], None]:
    """A job that refuses, after it has written something."""

    def work(tx: Transaction) -> None:
        if after is not None:
            tx.insert("meta", key=after, value="x")
        raise Refusal

    return work


def group(store: Store, *works: Callable[[Transaction], Any]) -> list[Future[Any]]:
    """Perform the works as one group."""
    jobs = [_Job(work) for work in works]
    store.body.perform(jobs)
    return [job.future for job in jobs]


def keys(store: Store) -> set[str]:
    """What was stored."""
    return {key for (key,) in store.rows("SELECT key FROM meta WHERE key != 'clock'")}


def test_a_group_is_one_commit(store: Store) -> None:
    """Many waiting jobs cost one COMMIT between them."""
    said: list[str] = []
    store.connection.set_trace_callback(said.append)
    group(store, note("a"), note("b"), note("c"))
    assert said.count("COMMIT") == 1
    assert keys(store) == {"a", "b", "c"}


def test_a_refusing_job_leaves_nothing_and_disturbs_nobody(store: Store) -> None:
    """Its rows and its changes in memory are gone; its neighbours are stored."""
    memory: list[str] = []

    def kept_and_refused(tx: Transaction) -> None:
        tx.keep(lambda: memory.append("bad"), lambda: memory.remove("bad"))
        tx.afterwards(lambda: memory.append("never"))
        refuse(after="bad")(tx)

    first, second, third = group(store, note("a"), kept_and_refused, note("b"))
    assert (first.result(5), third.result(5)) == ("a", "b")
    with pytest.raises(Refusal):
        second.result(5)
    assert keys(store) == {"a", "b"}
    assert memory == []


def test_a_failed_commit_takes_memory_back_latest_first(store: Store) -> None:
    """Nothing of the group is stored, everybody hears so, and memory is as it was before."""
    memory: list[str] = []
    undone: list[str] = []

    def keep(name: str) -> Callable[[Transaction], None]:
        def work(tx: Transaction) -> None:
            note(name)(tx)
            for part in (f"{name}1", f"{name}2"):
                tx.keep(
                    lambda part=part: memory.append(part),  # type: ignore[misc]
                    lambda part=part: (undone.append(part), memory.remove(part)),  # type: ignore[misc]
                )
            tx.afterwards(lambda: memory.append("never"))

        return work

    store.failing.fail_commit = True
    futures = group(store, keep("a"), keep("b"))
    for future in futures:
        with pytest.raises(NotStored):
            future.result(5)
    assert undone == ["b2", "b1", "a2", "a1"]
    assert memory == []
    assert keys(store) == set()
    assert store.do(note("later")) == "later"


def test_a_refusal_is_not_told_when_what_it_rested_on_was_not_stored(store: Store) -> None:
    """`It exists already` would be a lie when the row that it saw never came to be."""

    def only_once(tx: Transaction) -> None:
        if tx.one("SELECT 1 FROM meta WHERE key = 'a'") is not None:
            raise Refusal
        note("a")(tx)

    store.failing.fail_commit = True
    first, second = group(store, only_once, only_once)
    for future in (first, second):
        with pytest.raises(NotStored):
            future.result(5)
    first, second = group(store, only_once, only_once)
    first.result(5)
    with pytest.raises(Refusal):
        second.result(5)


def test_a_transaction_that_sqlite_took_back_fails_those_before_and_not_those_after(store: Store) -> None:
    """On a full disk SQLite rolls everything back by itself: earlier jobs of the group are lost and told so.
    On a full disk SQLite rolls everything back by itself: earlier jobs of the group are lost and told so."""
    memory: list[str] = []

    def kept(tx: Transaction) -> None:
        note("a")(tx)
        tx.keep(lambda: memory.append("a"), lambda: memory.remove("a"))

    def full(tx: Transaction) -> None:
        store.connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("database or disk is full")

    first, second, third = group(store, kept, full, note("c"))
    for future in (first, second):
        with pytest.raises(NotStored):
            future.result(5)
    assert third.result(5) == "c"
    assert memory == []
    assert keys(store) == {"c"}


def test_what_follows_happens_after_the_commit_and_a_fault_there_undoes_nothing(store: Store) -> None:
    """`afterwards` sees the rows stored; an error in it is logged, and the caller still hears the result."""
    seen: list[set[str]] = []

    def work(tx: Transaction) -> str:
        note("a")(tx)
        tx.afterwards(lambda: seen.append(keys(store)))
        tx.afterwards(lambda: 1 / 0)
        return "done"

    assert store.do(work) == "done"
    assert seen == [{"a"}]


def test_work_whose_caller_gave_up_is_not_done(store: Store) -> None:
    """A cancelled future, as asyncio leaves one, neither runs nor ends the writer."""
    jobs = [_Job(note("given up")), _Job(note("wanted"))]
    jobs[0].future.cancel()
    store.body.perform(jobs)
    assert jobs[1].future.result(5) == "wanted"
    assert keys(store) == {"wanted"}


def test_a_database_that_another_holds_fails_the_group(store: Store, tmp_path: Any) -> None:
    """When not even BEGIN works, everybody hears NotStored instead of waiting."""
    path = tmp_path / "yard.sqlite"
    mine = open_store(path)
    mine.connection.execute("PRAGMA busy_timeout=0")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(NotStored):
        mine.do(note("a"))
    other.execute("ROLLBACK")
    assert mine.do(note("a")) == "a"
    other.close()
    mine.connection.close()


def test_after_the_end_nobody_waits_for_ever(store: Store) -> None:
    """Work that comes after `close` is told at once that it was not stored."""
    writer = ThreadWriter(store.body)
    assert writer.submit(note("before")).result(5) == "before"
    writer.close()
    with pytest.raises(NotStored, match="stopped"):
        writer.submit(note("after")).result(5)
    writer.close()


def test_a_writer_that_fails_tells_everybody(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """A fault that leaves memory in doubt ends the writing, and all that waits or comes later is told."""
    gate = threading.Event()

    def undo_fails(tx: Transaction) -> None:
        gate.wait(5)
        tx.keep(lambda: None, lambda: 1 / 0)  # type: ignore[arg-type, return-value]
        raise Refusal

    writer = ThreadWriter(store.body)
    broken = writer.submit(undo_fails)
    waiting = writer.submit(note("waiting"))
    gate.set()
    for future in (broken, waiting, writer.submit(note("late"))):
        with pytest.raises((NotStored, Refusal)):
            future.result(5)
    writer.close()
    assert "the writer has failed" in caplog.text
    assert keys(store) == set()


STEP = st.tuples(st.sampled_from(["put", "drop", "refuse", "count"]), st.integers(0, 4))


def _work(step: tuple[str, int]) -> Callable[[Transaction], Any]:
    verb, number = step

    def work(tx: Transaction) -> Any:
        key = f"k{number}"
        if verb == "put" and tx.one("SELECT 1 FROM meta WHERE key = ?", key) is not None:
            raise Refusal
        if verb in ("put", "refuse"):
            tx.run("INSERT OR REPLACE INTO meta VALUES (?, ?)", key, tx.ids.hex(8))
        if verb == "refuse":
            raise Refusal
        if verb == "drop":
            return tx.run("DELETE FROM meta WHERE key = ?", key)
        return len(tx.all("SELECT key FROM meta"))

    return work


def _outcomes(writer: Writer, steps: list[tuple[str, int]]) -> list[Any]:
    futures = [writer.submit(_work(step)) for step in steps]
    writer.close()
    return [type(f.exception()).__name__ if f.exception() else f.result(5) for f in futures]


@settings(deadline=None, max_examples=30)
@given(st.lists(STEP, max_size=25))
def test_the_serial_writer_does_what_the_thread_does(steps: list[tuple[str, int]]) -> None:
    """The same work in the same order gives the same answers and the same rows, grouped or one by one."""
    one, other = open_store(), open_store()
    serial = _outcomes(SerialWriter(one.body), steps)
    threaded = _outcomes(ThreadWriter(other.body), steps)
    assert serial == threaded
    assert one.rows("SELECT * FROM meta ORDER BY key") == other.rows("SELECT * FROM meta ORDER BY key")
    one.connection.close()
    other.connection.close()


def test_parallel_callers_are_served_in_groups(store: Store) -> None:
    """While one commit is under way the others gather, and share the next one."""
    said: list[str] = []
    store.connection.set_trace_callback(said.append)
    gate = threading.Event()
    body: GroupCommit = store.body
    writer = ThreadWriter(body)
    first = writer.submit(lambda tx: gate.wait(5))
    rest = [writer.submit(note(f"n{number}")) for number in range(40)]
    gate.set()
    assert first.result(5)
    assert [future.result(5) for future in rest] == [f"n{number}" for number in range(40)]
    writer.close()
    assert said.count("COMMIT") <= 3


def test_a_second_thread_waits_for_the_serial_writer(store: Store) -> None:
    """While one thread is in its transaction another's work waits, and both are stored."""
    writer = SerialWriter(store.body)
    inside, told = threading.Event(), []

    def slow(tx: Transaction) -> None:
        inside.set()
        other.join(0.05)  # ends at once if the other is let in, or refused
        note("slow")(tx)

    def second() -> None:
        inside.wait(5)
        told.append(writer.submit(note("second")).exception())

    other = threading.Thread(target=second)
    other.start()
    writer.submit(slow).result()
    other.join(5)
    assert told == [None]
    assert keys(store) == {"slow", "second"}
