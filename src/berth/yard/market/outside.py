"""The outside account at work: its wishes become purchases through the same admission as everybody's.

Once an office day a timer draws that day's wishes (`demand`) and sets one timer for each; a wish is granted
or not at its own instant. A fresh yard first grants what would have been bought before it began.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from berth.terms.instants import from_micros, to_micros
from berth.terms.window import Window
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet
from berth.yard.lifecycle.timers import Rank
from berth.yard.market.admission import admit_outside
from berth.yard.market.bookings import book
from berth.yard.market.demand import OFFICE_OFFSET, Arrival, arrivals_between, backlog
from berth.yard.store.transaction import Transaction

HOLDER = "outside"
DAY_TIMER = "demand-day"
ARRIVAL_TIMER = "demand-arrival"
_DAY = timedelta(days=1)


def begin_demand(tx: Transaction, fleet: Fleet, calendars: FleetCalendars) -> None:
    """In a fresh yard: grant the backlog, set the timers of the rest of this office day and of the next."""
    if fleet.demand is None or tx.one("SELECT 1 FROM meta WHERE key = 'demand-begun'") is not None:
        return
    tx.insert("meta", key="demand-begun", value=str(tx.now_us))
    for arrival in backlog(fleet, tx.now):
        _grant(tx, fleet, calendars, arrival)
    _set_timers(tx, fleet, tx.now, next_office_day(tx.now))


def next_office_day(now: datetime) -> datetime:
    """When the next office day begins: 05:00 UTC, midnight in New York without its summer time."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0) + OFFICE_OFFSET
    return today if today > now else today + _DAY


def play_day(tx: Transaction, fleet: Fleet, subject: str) -> None:
    """An office day begins: draw its wishes, and those of the days that passed while no yard ran."""
    _set_timers(tx, fleet, from_micros(int(subject)), next_office_day(tx.now))


def _set_timers(tx: Transaction, fleet: Fleet, start: datetime, end: datetime) -> None:
    for arrival in arrivals_between(fleet, start, end):
        if arrival.window.end > tx.now:
            tx.timer(arrival.at, ARRIVAL_TIMER, _write(arrival), Rank.DEMAND)
    tx.timer(end, DAY_TIMER, str(to_micros(end)), Rank.DEMAND)


def play_arrival(tx: Transaction, fleet: Fleet, calendars: FleetCalendars, subject: str) -> None:
    """One wish at its instant."""
    _grant(tx, fleet, calendars, _read(tx.now, subject))


def _grant(tx: Transaction, fleet: Fleet, calendars: FleetCalendars, arrival: Arrival) -> None:
    pool = fleet.pools.get(arrival.pool_key)
    level = fleet.demand.level_of(pool) if fleet.demand is not None and pool is not None else None
    if pool is None or level is None:  # the fleet file changed since the wish was drawn
        return
    if arrival.window.end <= tx.now:  # a yard on real time was down until it was over
        return
    if admit_outside(pool, arrival.window, arrival.count, keep_free=level.keep_free, calendars=calendars):
        book(
            tx, calendars, pool=pool.key, face=None, window=arrival.window, count=arrival.count, holder=HOLDER
        )


def _write(arrival: Arrival) -> str:
    window = arrival.window
    return f"{arrival.pool_key} {to_micros(window.start)} {to_micros(window.end)} {arrival.count}"


def _read(at: datetime, subject: str) -> Arrival:
    pool_key, start, end, count = subject.split(" ")
    return Arrival(at, pool_key, Window(from_micros(int(start)), from_micros(int(end))), int(count))
