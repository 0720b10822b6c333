"""Bookings: rows and calendar changed together, in one transaction or not at all."""

from __future__ import annotations

from datetime import timedelta

from berth.terms.instants import from_micros, to_micros
from berth.terms.window import Window
from berth.yard.fleet.calendar import day_after, day_start
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.lifecycle.timers import Rank
from berth.yard.store.transaction import Row, Transaction

KEPT_AFTER_END = timedelta(days=2)
DAY_TIMER = "calendar-day"


def book(
    tx: Transaction,
    calendars: FleetCalendars,
    *,
    pool: str,
    face: str | None,
    window: Window,
    count: int,
    holder: str,
) -> None:
    """Promise `count` hosts of `pool` to `holder` in `window`. That they fit is for the caller to have asked,
    in the same transaction."""
    tx.insert(
        "bookings",
        pool=pool, face=face, holder=holder, count=count,
        start_us=to_micros(window.start), end_us=to_micros(window.end),
    )  # fmt: skip
    tx.keep(
        lambda: calendars.commit(pool, face, window, count),
        lambda: calendars.release(pool, face, window, count),
    )


def book_open(tx: Transaction, calendars: FleetCalendars, *, pool: str, count: int, holder: str) -> None:
    """Let `holder` run `count` hosts of the on-demand share from now on, without an end. That they are free
    is for the caller to have asked, in the same transaction."""
    start = tx.now
    tx.insert("bookings", pool=pool, face=None, holder=holder, count=count, start_us=tx.now_us, end_us=None)
    tx.keep(
        lambda: calendars.commit_open(pool, start, count),
        lambda: calendars.release_open(pool, start, count),
    )


def unbook(tx: Transaction, calendars: FleetCalendars, holder: str) -> None:
    """Take every promise to `holder` back, from the rows and from the calendar."""
    for row in tx.all("SELECT * FROM bookings WHERE holder = ?", holder):
        _release(tx, calendars, row)
    tx.run("DELETE FROM bookings WHERE holder = ?", holder)


def _release(tx: Transaction, calendars: FleetCalendars, row: Row) -> None:
    pool, face, count = row["pool"], row["face"], row["count"]
    if row["end_us"] is None:
        now = tx.now
        tx.keep(
            lambda: calendars.release_open(pool, now, count), lambda: calendars.commit_open(pool, now, count)
        )
        return
    window = Window(from_micros(row["start_us"]), from_micros(row["end_us"]))
    tx.keep(
        lambda: calendars.release(pool, face, window, count),
        lambda: calendars.commit(pool, face, window, count),
    )


def begin_days(tx: Transaction) -> None:
    """See to it that a timer rolls the calendars every day, with or without demand. Again is fine."""
    if tx.one("SELECT 1 FROM timers WHERE kind = ?", DAY_TIMER) is None:
        tx.timer(day_start(day_after(tx.now)), DAY_TIMER, "calendars", Rank.START)


def play_day(tx: Transaction, calendars: FleetCalendars) -> None:
    """A day of the calendars begins (11:30 UTC): forget what is long over, set the next day's timer."""
    forget_past(tx, calendars)
    begin_days(tx)


def forget_past(tx: Transaction, calendars: FleetCalendars) -> None:
    """Drop the rows of bookings that are long over, and let the calendars roll forward."""
    tx.run("DELETE FROM bookings WHERE end_us <= ?", to_micros(tx.now - KEPT_AFTER_END))
    now = tx.now
    tx.afterwards(lambda: calendars.roll_to(now))
