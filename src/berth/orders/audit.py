"""The audit: every event of a journal, in all realms and accounts, read without writing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from berth.orders.journal_file import Place
from berth.orders.order import OrderKey, OrderState
from berth.planner.offers import money_json
from berth.storage.database import Row
from berth.terms.instants import from_micros, iso
from berth.terms.money import Money
from berth.terms.text import plain

SCHEMA = "berth.audit/1"

_BEGINS = frozenset({"intended", "adopted"})  # the events that begin an attempt, one each
_ABOUT_MONEY = _BEGINS | frozenset(map(str, OrderState))
_WITH_WHO = 3  # the schema since which an event says who wrote it
_WITH_EXTENSIONS = 6  # the schema since which there are extensions
_EXTENSION = "extension "


@dataclass(frozen=True, slots=True)
class Entry:
    """One event. `number` counts within the order, whose `realm` is `aws` or a yard's address.

    `amount` is the fee of the attempt that an event about money is about, whatever became of it; None for
    other events. `caller` is an ARN, `process` user, machine and process (host, boot, process and start in
    what older programs wrote); None: not known.
    """

    at: datetime
    realm: str
    key: OrderKey
    number: int
    kind: str
    detail: str
    amount: Money | None
    caller: str | None
    process: str | None

    def to_json(self) -> dict[str, Any]:
        """The event as `berth.audit/1` has it."""
        return {
            "at": iso(self.at),
            "realm": self.realm,
            "account": self.key.account,
            "order": str(self.key),
            "number": self.number,
            "kind": self.kind,
            "detail": self.detail,
            "amount": None if self.amount is None else money_json(self.amount),
            "caller": self.caller,
            "process": self.process,
        }

    def line(self) -> str:
        """The event in one line: when, order, what, how much, and who where that is known."""
        where = "" if self.realm == "aws" else f"rehearsal {self.realm}  "
        who = ", ".join(filter(None, (self.caller, self.process)))
        words = [f"{where}{self.key.account}/{self.key}", self.kind, str(self.amount or "-"), self.detail]
        return plain("  ".join([iso(self.at), *words, *([f"by {who}"] if who else [])]), 2000)


def read_audit(place: Place, since: datetime | None = None) -> tuple[Entry, ...]:
    """Every event at or after `since` (None: all), oldest first; () where there is no journal.

    Never changes the journal, also not one of an older program. Raises NewerSchema when a newer program wrote
    it; Unusable, OSError or sqlite3.Error when it cannot be read.
    """
    if not place.exists():
        return ()
    db, version = place.to_read()
    with closing(db):
        if version == 0:
            return ()
        who = "caller, process" if version >= _WITH_WHO else "NULL AS caller, NULL AS process"
        with db.reading():  # one picture for both reads
            events = db.execute(
                f"SELECT order_id, number, at, kind, detail, {who} FROM events"  # noqa: S608 - two constants
                " ORDER BY order_id, number"
            ).fetchall()
            attempts = db.execute(
                "SELECT order_id, number, fee_micros, currency, holder FROM attempts"
            ).fetchall()
            longer = (
                db.execute("SELECT order_id, number, fee_micros, currency FROM extensions").fetchall()
                if version >= _WITH_EXTENSIONS
                else []
            )
    known = {(row["order_id"], row["number"]): row for row in attempts}
    known |= {(row["order_id"], f"{_EXTENSION}{row['number']}"): row for row in longer}
    return tuple(
        sorted(
            (entry for entry in _entries(events, known) if since is None or entry.at >= since),
            key=lambda entry: entry.at,
        )
    )


def _entries(events: Iterable[Row], attempts: Mapping[tuple[str, int | str], Row]) -> Iterator[Entry]:
    for order_id, rows in groupby(events, key=lambda row: str(row["order_id"])):
        number = 0
        for row in rows:
            number += row["kind"] in _BEGINS
            which: int | str = number
            if row["kind"].startswith(_EXTENSION):  # their details begin with the extension's number
                which = f"{_EXTENSION}{row['detail'].partition(':')[0]}"
            yield _entry(row, attempts.get((order_id, which)))


def _whose(order_id: str) -> tuple[str, OrderKey]:
    """Realm and order of `REALM ACCOUNT/NEED/SEQUENCE`; an order that was never made has events too: somebody
    was asked to approve it."""
    realm, _, mark = order_id.rpartition(" ")
    account, need, number = mark.split("/")
    sequence, _, piece = number.partition(".")
    return realm, OrderKey(account, need, int(sequence), int(piece or 0))


def _entry(row: Row, attempt: Row | None) -> Entry:
    """An event; `attempt` is the one that was the latest then, None where there was none."""
    kind = row["kind"]
    process = row["process"]
    if process is None and attempt is not None and kind == "intended":
        process = attempt["holder"]
    realm, key = _whose(str(row["order_id"]))
    money = attempt is not None and (kind in _ABOUT_MONEY or kind.startswith(_EXTENSION))
    return Entry(
        at=from_micros(row["at"]),
        realm=realm,
        key=key,
        number=row["number"],
        kind=kind,
        detail=row["detail"],
        amount=Money.from_micros(attempt["fee_micros"], attempt["currency"]) if money and attempt else None,
        caller=row["caller"],
        process=process,
    )
