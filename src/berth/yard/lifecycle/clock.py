"""The yard's clock: real, or stopped and moved by hand. It never goes back."""

from __future__ import annotations

from datetime import UTC, datetime

from berth.terms.clock import Clock
from berth.terms.instants import from_micros, iso, parse_instant, to_micros
from berth.yard.store.transaction import Reading, Transaction

REAL = "real"
# A yard's clock stands between these: long before SageMaker, and before dates run out for what it reckons.
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)


class ClockRefused(ValueError):
    """The clock cannot be moved so."""


class YardClock:
    """Time for bookings, states and billing. Pings, limits and signatures use real time, not this.

    A stopped clock (`stopped` True) stands still until it is set or advanced; where it stands is a row, so
    that it stands there still after a restart.
    """

    def __init__(self, real: Clock, stopped_at: datetime | None) -> None:
        self._real = real
        self._stopped_at = stopped_at

    @classmethod
    def open(cls, rows: Transaction, real: Clock, setting: str) -> YardClock:
        """The clock of a data folder: as it was left, else as `setting` (`real`, or an instant) says.

        A folder whose clock was stopped goes on from where it stood, whatever instant `setting` names. Raises
        ClockRefused when the folder's clock is real and `setting` an instant, or the instant makes no sense.
        """
        kept = rows.one("SELECT value FROM meta WHERE key = 'clock'")
        wanted = None if setting == REAL else parse_instant(setting)
        if wanted is not None and not EARLIEST <= wanted < LATEST:
            raise ClockRefused(
                f"a clock stands between {iso(EARLIEST)} and {iso(LATEST)}, not at {iso(wanted)}"
            )
        if kept is None:
            rows.insert("meta", key="clock", value=REAL if wanted is None else str(to_micros(wanted)))
            return cls(real, wanted)
        if kept["value"] == REAL:
            if wanted is not None:
                raise ClockRefused("this data folder's clock is real; a stopped clock needs a new folder")
            return cls(real, None)
        return cls(real, from_micros(int(kept["value"])))

    @property
    def stopped(self) -> bool:
        """Whether the clock stands still until moved."""
        return self._stopped_at is not None

    def now(self) -> datetime:
        """The present on the yard's clock, aware UTC."""
        return self._stopped_at if self._stopped_at is not None else self._real.now()

    def check(self, to: datetime) -> datetime:
        """Where a stopped clock stands, if it may be set to `to`. Raises ClockRefused for a real clock or a
        step back."""
        stands = self._stopped_at
        if stands is None:
            raise ClockRefused("the clock is real and cannot be moved; start the yard with --clock TIME")
        if to < stands:
            raise ClockRefused(f"the clock stands at {iso(stands)} and never goes back to {iso(to)}")
        if to >= LATEST:
            raise ClockRefused(f"the clock goes no further than {iso(LATEST)}, not to {iso(to)}")
        return stands

    def move(self, tx: Transaction, to: datetime) -> None:
        """Set a stopped clock to `to`. Raises ClockRefused."""
        before = self.check(to)
        tx.run("UPDATE meta SET value = ? WHERE key = 'clock'", str(to_micros(to)))

        def forth() -> None:
            self._stopped_at = to

        def back() -> None:
            self._stopped_at = before

        tx.keep(forth, back)
        tx.now, tx.now_us = to, to_micros(to)


def next_due(rows: Reading) -> datetime | None:
    """When the next timer is due; None when there is none."""
    row = rows.one("SELECT due_us FROM timers ORDER BY due_us, rank, timer_id LIMIT 1")
    return from_micros(row["due_us"]) if row is not None else None
