"""The outside account at work: its wishes at their instants, and what happens when no yard ran for a while.
The outside account at work: its wishes at their instants, and what happens when no yard ran for a while."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from berth.terms.instants import to_micros
from berth.yard.lifecycle.timers import Rank
from berth.yard.market.demand import arrivals_between
from berth.yard.market.outside import ARRIVAL_TIMER, DAY_TIMER, next_office_day

from .bench import NOW, Bench, small_fleet

BUSY = small_fleet("\n[demand]\nseed = 5\n\n[[demand.levels]]\nload = 3.0\nkeep_free = 1\n")


def test_a_fresh_yard_grants_what_was_bought_before_it_began(open_bench: type[Bench]) -> None:
    """Its calendar is not empty on the first day, and never fuller than the demand may make it."""
    bench = open_bench(fleet=BUSY)
    booked = bench.rows("SELECT * FROM bookings")
    assert booked
    assert {row["holder"] for row in booked} == {"outside"}
    assert all(row["end_us"] > to_micros(NOW) for row in booked)


def test_every_wish_is_played_at_its_instant(open_bench: type[Bench]) -> None:
    """Three days give the timers that the demand draws for them, and none is left behind."""
    bench = open_bench(fleet=BUSY)
    end = NOW + timedelta(days=3)
    expected = len(arrivals_between(BUSY, NOW, end))
    days = sum(1 for n in range(4) if NOW < next_office_day(NOW) + timedelta(days=n) <= end)
    calendar_days = 3
    assert bench.move(end) == expected + days + calendar_days
    assert bench.rows("SELECT * FROM timers WHERE due_us <= ?", to_micros(end)) == []


def test_moving_in_steps_and_in_one_go_books_the_same(
    tmp_path_factory: object, open_bench: type[Bench]
) -> None:
    """The same seed and the same span give the same bookings, however the clock is moved."""
    bench = open_bench(fleet=BUSY)
    bench.advance(days=4)
    in_one = [tuple(row)[1:] for row in bench.rows("SELECT * FROM bookings ORDER BY booking_id")]
    bench.close()
    (bench.path / "yard.sqlite").unlink()
    bench = open_bench(fleet=BUSY)
    for _ in range(16):
        bench.advance(hours=6)
    assert [tuple(row)[1:] for row in bench.rows("SELECT * FROM bookings ORDER BY booking_id")] == in_one


def test_wishes_whose_windows_are_over_do_not_break_a_yard_that_was_down(open_bench: type[Bench]) -> None:
    """On real time a yard may come back after months: overdue wishes are dropped, those that still matter
    not."""
    bench = open_bench(fleet=BUSY)
    bench.do(lambda tx: tx.run("UPDATE timers SET due_us = due_us - ?", 90 * 86_400_000_000))
    start, end = (to_micros(NOW - timedelta(days=days)) for days in (80, 79))
    long_over = f"use1-az1/trn1.32xlarge {start} {end} 1"
    bench.do(lambda tx: tx.timer(NOW - timedelta(days=81), ARRIVAL_TIMER, long_over, Rank.DEMAND))
    played = bench.advance(minutes=1)
    assert played > 0
    assert bench.rows("SELECT * FROM timers WHERE due_us <= ?", to_micros(bench.yard.clock.now())) == []


def test_an_office_day_stays_an_office_day_when_it_is_played_late(open_bench: type[Bench]) -> None:
    """Played hours or days late, the day draws the wishes since it was due and the next begins at 05:00 UTC.
    Played hours or days late, the day draws the wishes since it was due and the next begins at 05:00 UTC."""
    bench = open_bench(fleet=BUSY)
    due = datetime(2026, 11, 28, 5, tzinfo=UTC)
    bench.do(lambda tx: tx.run("DELETE FROM timers WHERE kind LIKE 'demand%'"))
    bench.do(lambda tx: tx.timer(due, DAY_TIMER, str(to_micros(due)), Rank.DEMAND))
    bench.opened.timekeeper.step(bench.yard.clock.now())
    (day,) = bench.rows("SELECT * FROM timers WHERE kind = ?", DAY_TIMER)
    assert day["due_us"] == to_micros(datetime(2026, 12, 2, 5, tzinfo=UTC))
    late = arrivals_between(BUSY, due, datetime(2026, 12, 2, 5, tzinfo=UTC))
    waiting = bench.rows("SELECT * FROM timers WHERE kind = ?", ARRIVAL_TIMER)
    assert 0 < len(waiting) <= sum(1 for wish in late if wish.window.end > NOW)


def test_outside_buys_leave_alone_what_the_fleet_file_says(open_bench: type[Bench]) -> None:
    """However much is wanted, `keep_free` hosts of each pool stay free."""
    bench = open_bench(fleet=BUSY)
    bench.advance(days=30)
    for pool in BUSY.pools.values():
        if pool.hardware == "trn1.32xlarge" and pool.shares.reservable > 1:
            days = bench.yard.calendars.pool(pool.key)
            assert max(days._days) <= pool.shares.reservable - 1
