"""What one's own asks saw: price and availability, kept on this machine by hour. Own realm for every yard.

The file is bounded: a question asked again within an hour adds to its row, and the oldest hours leave first.
What is read (`by_hour`) has one row an hour of the day and does not grow with time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from berth.planner.cost import HourlyRate
from berth.planner.offers import Offer, PlaceAnswer
from berth.storage.home import berth_home
from berth.storage.sqlite import connect, migrate
from berth.terms.instants import from_micros, to_micros
from berth.terms.money import Money
from berth.terms.ways import Way

MIGRATIONS = "berth.sources.migrations"
FILE = "history.sqlite"
MOST_ROWS = 100_000
"""Rows of each growing table that are kept; about 30 MB in all."""
FORGET_EVERY = 1_000
"""Answers between two looks whether a table is full."""
REMEMBER_SENT_S = 120
"""How long a search is remembered for pacing: a bucket of 10 is full again after 67 s."""
_HOUR = 3_600_000_000
_MICRO = Decimal(1_000_000)


def history_file(environ: Mapping[str, str]) -> Path:
    """The history's file, in the client's folder."""
    return berth_home(environ) / FILE


@dataclass(frozen=True, slots=True)
class HourSeen:
    """What was seen in one hour of the day (UTC, 0 to 23), over all days, in one Region.

    `asks` that were answered in full or not, `with_offers` of them saw something, `refused` were not answered
    in full. `cheapest` is the lowest price of an instance-hour ever seen then, None where none was told.
    """

    account: str
    way: Way
    region: str
    hour: int
    asks: int
    with_offers: int
    refused: int
    cheapest: Money | None
    first_at: datetime
    last_at: datetime

    @property
    def answered(self) -> int:
        """Asks that say something about stock."""
        return self.asks - self.refused


class History:
    """The history of one realm and account. For one thread. Methods raise OSError or sqlite3.Error."""

    def __init__(self, db: sqlite3.Connection, realm: str, account: str, most_rows: int = MOST_ROWS) -> None:
        self._db = db
        self.realm = realm
        self.account = account
        self._most = most_rows
        self._until_forgetting = 0

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    # -- writing -----------------------------------------------------------------------------------------
    def add(
        self,
        answers: Sequence[PlaceAnswer],
        rates: Iterable[HourlyRate] = (),
        sent: Mapping[str, int] | None = None,
        *,
        at: datetime,
        wall: datetime,
    ) -> None:
        """Add answers, rates that name their type, and how many counted searches each Region was sent.

        Of the rates those that are live are kept. `at` is the followed clock, for rates; `wall` this
        machine's, for searches sent. One transaction.
        """
        with self._writing():
            for answer in answers:
                if answer.question is not None:
                    self._add_answer(answer)
            for rate in rates:
                self._add_rate(rate, to_micros(at))
            self._add_sent(sent or {}, to_micros(wall))
            self._until_forgetting -= len(answers)
            if self._until_forgetting < 0:
                self._forget()
                self._until_forgetting = FORGET_EVERY

    def _add_answer(self, answer: PlaceAnswer) -> None:
        asked = answer.question
        assert asked is not None
        at = to_micros(answer.seen_at)
        cheapest = min(_hourly(answer.offers), key=lambda m: m.amount, default=None)
        counts = (1, int(bool(answer.offers)), int(not answer.is_complete))
        price = (None, None) if cheapest is None else (_micros(cheapest), cheapest.currency)
        hour = at - at % _HOUR
        self._db.execute(
            _ADD_SEEN,
            (
                self.realm, self.account, asked.way.value, asked.region, asked.instance_type, asked.count,
                asked.duration_hours, hour, *counts, *price, answer.outcome.value,
            ),
        )  # fmt: skip
        self._db.execute(
            _ADD_BY_HOUR,
            (
                self.realm, asked.instance_type, self.account, asked.way.value, asked.region,
                at // _HOUR % 24, *counts, *price, at, at,
            ),
        )  # fmt: skip

    def _add_rate(self, rate: HourlyRate, at: int) -> None:
        if not rate.live or rate.hourly is None:
            return
        self._db.execute(
            "INSERT OR REPLACE INTO rates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self.realm, rate.instance_type, rate.way.value, rate.region, rate.zone_id or rate.region,
                rate.component, at - at % _HOUR, _micros(rate.hourly), rate.hourly.currency,
            ),
        )  # fmt: skip

    def _add_sent(self, sent: Mapping[str, int], wall: int) -> None:
        self._db.execute("DELETE FROM sent WHERE at < ?", (wall - REMEMBER_SENT_S * 1_000_000,))
        for region, calls in sent.items():
            if calls:
                self._db.execute(
                    "INSERT INTO sent VALUES (?, ?, ?, ?, ?)", (self.realm, self.account, region, wall, calls)
                )

    def _forget(self) -> None:
        """Let the oldest hours go once a table is full; a tenth at a time, so that it is seldom."""
        for table in ("seen", "rates"):
            (rows,) = self._db.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - our own names
            if rows > self._most:
                (edge,) = self._db.execute(
                    f"SELECT at_hour FROM {table} ORDER BY at_hour LIMIT 1 OFFSET ?",  # noqa: S608
                    (rows - self._most * 9 // 10,),
                ).fetchone()
                self._db.execute(f"DELETE FROM {table} WHERE at_hour < ?", (edge,))  # noqa: S608

    # -- reading -----------------------------------------------------------------------------------------
    def by_hour(self, instance_type: str, *, every_account: bool = False) -> tuple[HourSeen, ...]:
        """What was seen of a type, by Region and hour of the day, of this account or of every one."""
        rows = self._db.execute(
            "SELECT * FROM by_hour WHERE realm = ? AND instance_type = ? AND (? OR account = ?)"
            " ORDER BY way, region, hour, account",
            (self.realm, instance_type, every_account, self.account),
        ).fetchall()
        return tuple(_hour_seen(row) for row in rows)

    def sent_ago(self, region: str, wall: datetime) -> tuple[float, ...]:
        """How many seconds ago each counted search was sent to the Region; those that count no more are left
        out, and a clock that was put back counts them as sent now."""
        now = to_micros(wall)
        rows = self._db.execute(
            "SELECT at, calls FROM sent WHERE realm = ? AND account = ? AND region = ? AND at > ?",
            (self.realm, self.account, region, now - REMEMBER_SENT_S * 1_000_000),
        ).fetchall()
        return tuple(max(0.0, (now - at) / 1e6) for at, calls in rows for _ in range(calls))

    # -- waits -------------------------------------------------------------------------------------------
    def found(self, wait: str) -> tuple[datetime, str] | None:
        """When a wait found something, and what was said; None while it has not."""
        row = self._db.execute(
            "SELECT found_at, said FROM waits WHERE realm = ? AND account = ? AND wait = ?", self._wait(wait)
        ).fetchone()
        return None if row is None else (from_micros(row["found_at"]), row["said"])

    def keep_found(self, wait: str, at: datetime, said: str) -> None:
        """Write down what a wait found, before anybody is told."""
        with self._writing():
            self._db.execute(
                "INSERT OR IGNORE INTO waits VALUES (?, ?, ?, ?, ?)", (*self._wait(wait), to_micros(at), said)
            )

    def telling(self, wait: str, channel: str) -> str | None:
        """`telling`, `told` or `refused`; None: nobody has begun to tell this channel."""
        row = self._db.execute(
            "SELECT state FROM told WHERE realm = ? AND account = ? AND wait = ? AND channel = ?",
            (*self._wait(wait), channel),
        ).fetchone()
        return None if row is None else row["state"]

    def keep_telling(self, wait: str, channel: str, state: str) -> None:
        """Write down how far telling a channel is: `telling` before it begins, so it is not done twice."""
        with self._writing():
            self._db.execute(
                "INSERT OR REPLACE INTO told VALUES (?, ?, ?, ?, ?)", (*self._wait(wait), channel, state)
            )

    def _wait(self, wait: str) -> tuple[str, str, str]:
        return self.realm, self.account, wait

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise


# Counts add up. The lower price stays; of two currencies the newer one, since they are never compared.
_ADD_SEEN = """
INSERT INTO seen VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    asks = asks + excluded.asks,
    with_offers = with_offers + excluded.with_offers,
    refused = refused + excluded.refused,
    outcome = excluded.outcome,
    cheapest = CASE
        WHEN excluded.cheapest IS NULL THEN cheapest
        WHEN cheapest IS NULL OR currency <> excluded.currency OR excluded.cheapest < cheapest
        THEN excluded.cheapest ELSE cheapest END,
    currency = coalesce(excluded.currency, currency)
"""
_ADD_BY_HOUR = """
INSERT INTO by_hour VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    asks = asks + excluded.asks,
    with_offers = with_offers + excluded.with_offers,
    refused = refused + excluded.refused,
    cheapest = CASE
        WHEN excluded.cheapest IS NULL THEN cheapest
        WHEN cheapest IS NULL OR currency <> excluded.currency OR excluded.cheapest < cheapest
        THEN excluded.cheapest ELSE cheapest END,
    currency = coalesce(excluded.currency, currency),
    first_at = min(first_at, excluded.first_at),
    last_at = max(last_at, excluded.last_at)
"""


def open_history(file: Path, realm: str, account: str, *, most_rows: int = MOST_ROWS) -> History:
    """Open the history, made where it is missing. Raises OSError, sqlite3.Error or NewerSchema."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    db = connect(file)
    try:
        # What is lost with the power is a few asks: not worth a wait for the disk at every answer.
        db.execute("PRAGMA synchronous=NORMAL")
        migrate(db, MIGRATIONS)
    except BaseException:
        db.close()
        raise
    return History(db, realm, account, most_rows)


def _hourly(offers: Iterable[Offer]) -> Iterator[Money]:
    """What an instance-hour of each offer costs, where its price is known."""
    for offer in offers:
        if offer.fee is not None and offer.fee.amount > 0 and offer.paid_hours > 0:
            yield Money(offer.fee.amount / (offer.paid_hours * offer.count), offer.fee.currency)


def _micros(price: Money) -> int:
    return int((price.amount * _MICRO).to_integral_value())


def _hour_seen(row: sqlite3.Row) -> HourSeen:
    price = None if row["cheapest"] is None else Money(Decimal(row["cheapest"]) / _MICRO, row["currency"])
    return HourSeen(
        row["account"], Way(row["way"]), row["region"], row["hour"], row["asks"], row["with_offers"],
        row["refused"], price, from_micros(row["first_at"]), from_micros(row["last_at"]),
    )  # fmt: skip
