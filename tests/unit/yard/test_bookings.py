"""Bookings: the calendar always says what the rows say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.terms.instants import from_micros
from berth.terms.window import Window
from berth.yard.fleet.calendar import SLOT
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.pools import SAGEMAKER
from berth.yard.market.bookings import book, forget_past, unbook
from berth.yard.store.transaction import Transaction

from .bench import Bench, small_fleet
from .conftest import START, Store, open_store

POOLS = ("use1-az1/trn1.32xlarge", "use1-az2/trn1.32xlarge")
FLEET: Fleet = small_fleet()  # read once: the property test opens many stores


def counted(rows: list[tuple[Any, ...]], pool: str, slot: datetime) -> int:
    """How many hosts of `pool` the rows promise in the half hour from `slot`."""
    return sum(
        count
        for key, count, start, end in rows
        if key == pool and from_micros(start) < slot + SLOT and from_micros(end) > slot
    )


def assert_calendar_equals_rows(store: Store, calendars: FleetCalendars, slots: range) -> None:
    """Recount every half hour of `slots` after START from the rows."""
    rows = store.rows("SELECT pool, count, start_us, end_us FROM bookings")
    for pool in POOLS:
        for number in slots:
            slot = START + number * SLOT
            window = Window(slot, slot + SLOT)
            assert calendars.pool(pool).committed_max(window) == counted(rows, pool, slot), (pool, slot)


class Refusal(Exception):
    """A transaction's change of mind."""


START_SLOT, LENGTH = st.integers(0, 60), st.integers(1, 40)
BOOK = st.tuples(
    st.just("book"), st.sampled_from(POOLS), START_SLOT, LENGTH, st.integers(1, 3), st.integers(0, 3)
)
UNBOOK = st.tuples(st.just("unbook"), st.integers(0, 3))
TRANSACTION = st.tuples(
    st.lists(st.one_of(BOOK, UNBOOK), max_size=5), st.sampled_from(["keep", "refuse", "fail"])
)


def _perform(tx: Transaction, calendars: FleetCalendars, steps: list[tuple[Any, ...]], end: str) -> None:
    for step in steps:
        if step[0] == "unbook":
            unbook(tx, calendars, f"holder-{step[1]}")
        else:
            _, pool, first, length, count, holder = step
            window = Window(START + first * SLOT, START + (first + length) * SLOT)
            book(
                tx,
                calendars,
                pool=pool,
                face=SAGEMAKER,
                window=window,
                count=count,
                holder=f"holder-{holder}",
            )
    if end == "refuse":
        raise Refusal


@settings(deadline=None, max_examples=40)
@given(st.lists(TRANSACTION, max_size=8))
def test_the_calendar_equals_a_recount_of_the_rows(work: list[tuple[list[tuple[Any, ...]], str]]) -> None:
    """After any bookings and their undoing, refused transactions and failed commits."""
    store = open_store()
    calendars = FleetCalendars(FLEET, START)
    for steps, end in work:
        store.failing.fail_commit = end == "fail"
        future = store.writer.submit(lambda tx, s=steps, e=end: _perform(tx, calendars, s, e))
        assert (future.exception() is None) == (end == "keep")
    store.failing.fail_commit = False
    assert_calendar_equals_rows(store, calendars, range(102))
    store.connection.close()


def test_a_reopened_yard_counts_its_calendar_from_the_rows(open_bench: type[Bench]) -> None:
    """Memory is nothing: closed and opened, the same hosts are free, and what is over is not counted."""
    bench = open_bench()
    bench.buy("a", count=2)
    bench.buy("b", count=1, StartTimeAfter=datetime(2026, 12, 5, tzinfo=UTC))
    bench.advance(days=2)
    window = Window(datetime(2026, 12, 5, 12, tzinfo=UTC), datetime(2026, 12, 5, 13, tzinfo=UTC))
    now = bench.yard.clock.now()
    before = {key: bench.yard.calendars.pool(key).committed_max(window) for key in POOLS}
    bench = open_bench()
    assert {key: bench.yard.calendars.pool(key).committed_max(window) for key in POOLS} == before
    assert sum(before.values()) == 1
    today = Window(now, now + timedelta(hours=1))
    assert [bench.yard.calendars.pool(key).committed_max(today) for key in POOLS] == [0, 0]


def test_calendars_roll_and_old_rows_go_without_any_demand(bench: Bench) -> None:
    """A year on, a plan of half a year can still be offered, and the table holds no ancient rows."""
    bench.buy("old")
    base = bench.yard.calendars.pool(POOLS[0]).base
    bench.advance(days=365)
    assert bench.yard.calendars.pool(POOLS[0]).base >= base + timedelta(days=364)
    assert bench.rows("SELECT * FROM bookings") == []
    assert bench.offer(hours=182 * 24) is not None
    assert len(bench.rows("SELECT * FROM timers")) == 1


def test_forgetting_keeps_what_is_not_long_over(bench: Bench) -> None:
    """Only rows whose window ended more than two days ago go."""
    bench.buy("p")
    end = bench.plan("p")["EndTime"]

    def left(after: timedelta) -> int:
        bench.move(end + after)
        bench.do(lambda tx: forget_past(tx, bench.yard.calendars))
        return len(bench.rows("SELECT * FROM bookings"))

    assert left(timedelta(days=2, microseconds=-1)) == 1
    assert left(timedelta(days=2)) == 0
