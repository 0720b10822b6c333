"""The yard's clock, and what happens by itself on it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.terms.clock import SystemClock
from berth.yard.lifecycle.clock import LATEST, ClockRefused, YardClock, next_due
from berth.yard.lifecycle.timers import PLAYED_AT_ONCE, Rank, Timekeeper, Timer
from berth.yard.store.transaction import Transaction
from berth.yard.store.writer import ThreadWriter

from .conftest import START, Store, open_store


class Played:
    """What timers were played, and when."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.seen: list[tuple[datetime, str]] = []

    def play(self, tx: Transaction, subject: str) -> None:
        """Note the instant on the yard's clock."""
        assert tx.now == self.store.clock.now() or not self.store.clock.stopped
        self.seen.append((tx.now, subject))


def keeper(store: Store, **kinds: Timer) -> Timekeeper:
    """A timekeeper with these kinds, and an engine that is always settled."""
    return Timekeeper(store.writer, store.clock, SystemClock(), kinds, lambda: True)


def minutes(number: float) -> datetime:
    """So many minutes after START."""
    return START + timedelta(minutes=number)


# -- the clock -------------------------------------------------------------------------------------------
def test_a_stopped_clock_stands_still(store: Store) -> None:
    """Until it is set."""
    assert store.clock.now() == store.clock.now() == START


def test_the_clock_never_goes_back(store: Store) -> None:
    """Neither a microsecond nor a year; and says where it stands."""
    timekeeper = keeper(store)
    timekeeper.move_to(minutes(10))
    for back in (timedelta(microseconds=1), timedelta(days=365)):
        with pytest.raises(ClockRefused, match="stands at 2026-12-01T09:10:00Z and never goes back"):
            timekeeper.move_to(minutes(10) - back)
    assert store.clock.now() == minutes(10)


def test_the_clock_stops_before_dates_run_out(store: Store) -> None:
    """A clock moved to the end of the calendar would break everything that reckons with it."""
    with pytest.raises(ClockRefused, match="no further than"):
        keeper(store).move_to(LATEST)
    assert store.clock.now() == START


def test_a_real_clock_refuses_to_be_moved(store: Store) -> None:
    """It says how to get one that can be."""
    clock = YardClock(SystemClock(), None)
    timekeeper = Timekeeper(store.writer, clock, SystemClock(), {}, lambda: True)
    with pytest.raises(ClockRefused, match="--clock TIME"):
        timekeeper.move_to(minutes(1))


def test_a_clock_is_where_it_was_left(store: Store) -> None:
    """Where it stands is a row, moved in the transaction of what was played."""
    keeper(store).move_to(minutes(7))
    again = store.do(lambda tx: YardClock.open(tx, SystemClock(), "2026-01-01T00:00Z"))
    assert again.now() == minutes(7)


def test_a_folder_keeps_the_kind_of_its_clock(store: Store) -> None:
    """Real stays real; an instant that makes no sense is refused."""
    store.do(lambda tx: tx.run("DELETE FROM meta"))
    for nonsense in ("1999-12-31T23:59Z", "2200-01-01T00:00Z", "2026-12-01", "soon"):
        with pytest.raises(ValueError):
            store.do(lambda tx, text=nonsense: YardClock.open(tx, SystemClock(), text))
    assert not store.do(lambda tx: YardClock.open(tx, SystemClock(), "real")).stopped
    with pytest.raises(ClockRefused, match="needs a new folder"):
        store.do(lambda tx: YardClock.open(tx, SystemClock(), "2026-12-01T09:00Z"))


def test_a_clock_whose_move_was_not_stored_has_not_moved(store: Store) -> None:
    """Memory follows the row, not the wish."""
    store.failing.fail_commit = True
    with pytest.raises(RuntimeError):
        keeper(store).move_to(minutes(1))
    assert store.clock.now() == START


# -- timers ----------------------------------------------------------------------------------------------
def test_each_timer_is_played_at_its_own_instant(store: Store) -> None:
    """Moving the clock a week plays everything on the way with the clock at the instant it was due."""
    played = Played(store)
    timekeeper = keeper(store, tick=Timer(played.play))
    for number in (30, 10, 20):
        store.do(lambda tx, n=number: tx.timer(minutes(n), "tick", str(n), Rank.START))
    assert timekeeper.move_to(minutes(25)) == 2
    assert played.seen == [(minutes(10), "10"), (minutes(20), "20")]
    assert store.clock.now() == minutes(25)
    assert store.do(next_due) == minutes(30)


def test_at_one_instant_ends_come_before_starts(store: Store) -> None:
    """Windows are half-open: whatever order the timers were set in, ranks decide."""
    played = Played(store)
    timekeeper = keeper(store, tick=Timer(played.play))
    for rank in (Rank.DEMAND, Rank.START, Rank.PAYMENT, Rank.RECLAIM, Rank.END):
        store.do(lambda tx, r=rank: tx.timer(minutes(1), "tick", r.name, r))
    timekeeper.move_to(minutes(1))
    assert [subject for _, subject in played.seen] == ["END", "RECLAIM", "PAYMENT", "START", "DEMAND"]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 90), st.sampled_from(list(Rank))), max_size=30),
    st.lists(st.integers(1, 40), max_size=5),
)
def test_timers_are_played_once_and_in_order(due: list[tuple[int, Rank]], steps: list[int]) -> None:
    """However the clock is moved: each due timer once, by due and rank and age, and none before its time."""
    store = open_store()
    played = Played(store)
    timekeeper = keeper(store, tick=Timer(played.play))
    for number, (after, rank) in enumerate(due):
        store.do(lambda tx, a=after, n=number, r=rank: tx.timer(minutes(a), "tick", str(n), r))
    for step in steps:
        timekeeper.move_to(store.clock.now() + timedelta(minutes=step))
    expected = sorted((minutes(a), r, n) for n, (a, r) in enumerate(due) if minutes(a) <= store.clock.now())
    if steps:
        assert [subject for _, subject in played.seen] == [str(number) for _, _, number in expected]
        assert all(
            now == max(when, START) for (now, _), (when, _, _) in zip(played.seen, expected, strict=True)
        )
    store.connection.close()


def test_a_timer_may_set_others(store: Store) -> None:
    """What a timer sets is played in the same move, in its place."""
    played = Played(store)

    def chain(tx: Transaction, subject: str) -> None:
        played.play(tx, subject)
        if int(subject) < 5:
            tx.timer(tx.now + timedelta(minutes=1), "chain", str(int(subject) + 1), Rank.START)

    timekeeper = keeper(store, chain=Timer(chain), tick=Timer(played.play))
    store.do(lambda tx: tx.timer(minutes(1), "chain", "1", Rank.START))
    store.do(lambda tx: tx.timer(minutes(3.5), "tick", "between", Rank.START))
    timekeeper.move_to(minutes(60))
    assert [subject for _, subject in played.seen] == ["1", "2", "3", "between", "4", "5"]


def test_many_timers_are_played_in_more_than_one_transaction(store: Store) -> None:
    """A year of them does not become one giant commit, and none is left over."""
    played = Played(store)
    timekeeper = keeper(store, tick=Timer(played.play))

    def many(tx: Transaction) -> None:
        for number in range(PLAYED_AT_ONCE * 2 + 1):
            tx.timer(minutes(number), "tick", str(number), Rank.START)

    store.do(many)
    assert timekeeper.move_to(minutes(10_000)) == PLAYED_AT_ONCE * 2 + 1
    assert len(played.seen) == PLAYED_AT_ONCE * 2 + 1


def test_a_timer_that_fails_is_still_there(store: Store) -> None:
    """Its row, the clock and all of its transaction stay as they were; what came before is kept."""
    played = Played(store)
    broken = {"now": True}

    def fail(tx: Transaction, subject: str) -> None:
        tx.insert("meta", key="half", value="done")
        if broken["now"]:
            raise OSError("not today")
        played.play(tx, subject)

    timekeeper = keeper(store, fail=Timer(fail))
    store.do(lambda tx: tx.timer(minutes(5), "fail", "x", Rank.START))
    with pytest.raises(OSError, match="not today"):
        timekeeper.move_to(minutes(10))
    assert (store.clock.now(), store.do(next_due)) == (START, minutes(5))
    broken["now"] = False
    timekeeper.move_to(minutes(10))
    assert played.seen == [(minutes(5), "x")]


def test_the_clock_waits_for_the_engine_after_a_timer_that_touches_a_process(store: Store) -> None:
    """It stands at that timer's instant until every container has reported, then goes on."""
    asked: list[datetime] = []
    answers = iter([True, False, False, True])

    def settled() -> bool:
        asked.append(store.clock.now())
        return next(answers, True)

    played = Played(store)
    kinds = {"touch": Timer(played.play, touches_process=True), "tick": Timer(played.play)}
    timekeeper = Timekeeper(store.writer, store.clock, SystemClock(), kinds, settled)
    store.do(lambda tx: tx.timer(minutes(5), "touch", "touch", Rank.RECLAIM))
    store.do(lambda tx: tx.timer(minutes(5), "tick", "tick", Rank.START))
    timekeeper.move_to(minutes(10))
    assert asked == [START, minutes(5), minutes(5), minutes(5)]
    assert played.seen == [(minutes(5), "touch"), (minutes(5), "tick")]


def test_an_engine_that_never_settles_does_not_hold_the_clock_for_ever(store: Store) -> None:
    """A quarter of an hour of real time, then TimeoutError says so."""

    class Hasty(SystemClock):
        def __init__(self) -> None:
            self.seconds = 0.0

        def elapsed(self) -> float:
            return self.seconds

        def sleep(self, seconds: float) -> None:
            self.seconds += 100

    timekeeper = Timekeeper(store.writer, store.clock, Hasty(), {}, lambda: False)
    with pytest.raises(TimeoutError, match="neither started nor ended"):
        timekeeper.move_to(minutes(1))
    assert store.clock.now() == START


def test_a_clock_on_its_way_stops_where_it_is_when_the_yard_stops(store: Store) -> None:
    """What was played stays played; the rest waits for the next start."""
    played = Played(store)

    def play(tx: Transaction, subject: str) -> None:
        played.play(tx, subject)
        timekeeper.stop()

    timekeeper = keeper(store, tick=Timer(play, touches_process=True))
    for number in (1, 2):
        store.do(lambda tx, n=number: tx.timer(minutes(n), "tick", str(n), Rank.START))
    with pytest.raises(ClockRefused, match="the yard is stopping; its clock stands at 2026-12-01T09:01:00Z"):
        timekeeper.move_to(minutes(5))
    assert played.seen == [(minutes(1), "1")]
    assert store.do(next_due) == minutes(2)


def test_on_real_time_a_timer_fires_by_itself_and_a_fault_does_not_end_the_others(store: Store) -> None:
    """The thread goes on after an error, in the reading of what is due too."""
    fired = threading.Event()
    writer = ThreadWriter(store.body)
    clock = YardClock(SystemClock(), None)
    faults = iter([True, False])

    def due() -> Any:
        if next(faults, False):
            raise OSError("not today")
        return writer.submit(next_due).result()

    timekeeper = Timekeeper(
        writer, clock, SystemClock(), {"tick": Timer(lambda tx, _: fired.set())}, lambda: True
    )
    timekeeper.run_in_thread(due)
    soon = datetime.now(UTC) + timedelta(milliseconds=30)
    writer.submit(lambda tx: tx.timer(soon, "tick", "x", Rank.START)).result()
    timekeeper.wake()
    assert fired.wait(10)
    timekeeper.close()
    writer.close()
