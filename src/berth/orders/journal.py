"""The journal: what was planned, intended, tried, bought and built, kept on disk before anything is done.

Everything that must survive a crash is committed here before the effect that it announces, and every change
of an order's state names the state that it expects, so two processes on one journal cannot both win.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from berth.orders.extensions.rows import extensions_of
from berth.orders.journal_file import Place, journal_place, place_of
from berth.orders.launches import Launch
from berth.orders.looks import Look
from berth.orders.names import reservation_name
from berth.orders.order import MOVES, Approval, Order, OrderKey, OrderState
from berth.orders.pieces.rows import check_intent
from berth.orders.rows import approval_texts, launch_from, launch_values, order_from, step_from
from berth.orders.spending_gate import OPEN, Gate, check_spending, proposal_of
from berth.orders.spending_rows import JournalLedger
from berth.orders.steps import Step, StepKind, StepState
from berth.planner.offers import Offer, money_from_json
from berth.storage.database import Database, Row
from berth.terms.instants import from_micros, to_micros
from berth.terms.money import Money

__all__ = [
    "Event",
    "Journal",
    "LostRace",
    "OrderTaken",
    "ReservationTaken",
    "Who",
    "journal_place",
    "open_journal",
]

Around = Callable[[str], None]
"""Told before and after each commit (`intend:before`, `intend:after`); a simulation stops there."""


def _nothing(effect: str) -> None:
    del effect


class OrderTaken(Exception):
    """The order is already being bought or has been bought; `order` says how it stands."""

    def __init__(self, order: Order) -> None:
        super().__init__(f"order {order.key} is {order.state}")
        self.order = order


class ReservationTaken(OrderTaken):
    """The reservation is another order's already: `order` says whose."""


class LostRace(Exception):
    """Another process moved the order first; read it again."""


@dataclass(frozen=True, slots=True)
class Who:
    """Who writes: the caller's ARN as STS told it, and user, machine and process. None: not known."""

    caller: str | None = None
    process: str | None = None


NOBODY = Who()


@dataclass(frozen=True, slots=True)
class Event:
    """One line of an order's history, and who wrote it. `number` counts from 1 within the order."""

    number: int
    at: datetime
    kind: str
    detail: str
    who: Who = NOBODY


def open_journal(
    where: Place | Path | str, realm: str, around: Around = _nothing, who: Who = NOBODY
) -> Journal:
    """Open the journal at a place, a file's path or a PostgreSQL URL, made when it is missing.

    `realm` is `aws` or a yard's address: orders of a rehearsal and paid ones never meet. `who` stands in
    every event that is written. A journal of an older program is copied before it is brought up to date.
    Raises NewerSchema when a newer program wrote it; Unusable, OSError or sqlite3.Error when it cannot be
    used.
    """
    return Journal(place_of(where).to_write(), realm, around, who)


def regions_of(db: Database, need: str) -> tuple[str, ...]:
    """Regions in which a journal knows plans or orders of a need, in any realm; () where it knows none.

    So that a verb that is given only a name opens the door to the right places.
    """
    with db.reading():
        offers = db.execute("SELECT offer FROM orders WHERE need = ?", (need,)).fetchall()
        plans = db.execute("SELECT document FROM plans WHERE need = ?", (need,)).fetchall()
    found = [json.loads(row["offer"])["region"] for row in offers]
    for row in plans:
        found += json.loads(row["document"]).get("need", {}).get("regions", [])
    return tuple(dict.fromkeys(found))


class Journal:
    """One realm of a journal. Single-threaded; other processes may have the same one open."""

    def __init__(self, db: Database, realm: str, around: Around = _nothing, who: Who = NOBODY) -> None:
        self._db = db
        self.realm = realm
        self._around = around
        self._who = who

    def close(self) -> None:
        """Let go of the file or the server."""
        self._db.close()

    # -- plans -----------------------------------------------------------------------------------------
    def remember_plan(self, account: str, need: str, document: Mapping[str, Any], now: datetime) -> None:
        """Keep the plan of a need, so that `buy NEED#1` knows what number 1 was; the newest replaces all."""
        with self._commit("remember") as db:
            db.execute(
                "DELETE FROM plans WHERE realm = ? AND account = ? AND need = ?", (self.realm, account, need)
            )
            db.execute(
                "INSERT INTO plans (realm, account, need, remembered_at, document) VALUES (?, ?, ?, ?, ?)",
                (self.realm, account, need, to_micros(now), json.dumps(document)),
            )

    def recall_plan(self, account: str, need: str) -> dict[str, Any] | None:
        """The document that was remembered last for the need; None when none was."""
        row = self._db.execute(
            "SELECT document FROM plans WHERE realm = ? AND account = ? AND need = ?",
            (self.realm, account, need),
        ).fetchone()
        return None if row is None else json.loads(row["document"])

    # -- orders ----------------------------------------------------------------------------------------
    def order(self, key: OrderKey) -> Order | None:
        """The order of this very key; None when there is none."""
        row = self._db.execute("SELECT * FROM orders WHERE order_id = ?", (self._id(key),)).fetchone()
        return None if row is None else self._order(row)

    def orders(self, account: str | None, need: str | None = None) -> tuple[Order, ...]:
        """The orders of an account and a need (None: of every one), by need and sequence."""
        asked = {"realm": self.realm, "account": account, "need": need}
        given = {name: value for name, value in asked.items() if value is not None}
        where = " AND ".join(f"{name} = ?" for name in given)
        with self._db.reading():
            rows = self._db.execute(f"SELECT * FROM orders WHERE {where}", tuple(given.values())).fetchall()  # noqa: S608 - our own names
            orders = [self._order(row) for row in rows]
        return tuple(sorted(orders, key=lambda order: (order.key.need, order.key.sequence, order.key)))

    def ledger(self) -> JournalLedger:
        """What the journal knows of money in its realm; inside of a write, what that write stands on."""
        return JournalLedger(self._db, self.realm)

    def intend(
        self,
        key: OrderKey,
        approval: Approval,
        *,
        intent_id: str,
        holder: str,
        now: datetime,
        gate: Gate = OPEN,
    ) -> Order:
        """Commit the intent to buy the approved offer (with fee and id); the order is BUYING afterwards.

        Makes the order, or a further attempt of one that is known to have bought nothing. Raises OrderTaken
        when it stands in any other state: exactly one of two processes gets past this point. Raises
        BerthError where a rule of `gate` is in the way: rules and intent are one write.
        """
        offer = approval.offer
        if offer.fee is None or offer.offering_id is None:
            raise ValueError("an offer without a fee or an id cannot be bought")
        with self._commit("intend"):
            order = self.order(key)
            if order is not None and OrderState.BUYING not in MOVES[order.state]:
                raise OrderTaken(order)
            check_intent(self._db, self.realm, key, offer.fee)
            check_spending(gate, self.ledger(), proposal_of(key, approval), now)
            number = self._open(order, key, OrderState.BUYING, approval, now)
            self._insert_attempt(key, number, offer, offer.fee, intent_id=intent_id, holder=holder, now=now)
            said = f"attempt {number}: {offer.offering_id} for {offer.fee}{gate.paid_by}"
            self._event(key, now, "intended", said)
        kept = self._again(key)  # only what is read back is paid for, whatever the store said of its commit
        if kept.state is not OrderState.BUYING or kept.attempt.intent_id != intent_id:
            raise LostRace(f"the intent of order {key} is not in the journal as it was written")
        return kept

    def adopt(self, key: OrderKey, approval: Approval, *, seen: Mapping[str, Any], now: datetime) -> Order:
        """Record as BOUGHT an order that this journal does not know, though its reservation carries our mark.

        Or one of which it knows that it bought nothing: what was paid is the reservation's fee, not that of
        the attempt that was refused. `seen` is what `SeenReservation.to_json` gives. Raises OrderTaken when
        the order stands in any other state, ReservationTaken when the reservation is another order's,
        ValueError when neither reservation nor offer names a fee.
        """
        fee = money_from_json(seen["fee"]) or approval.offer.fee
        if fee is None:
            raise ValueError("neither the reservation nor the offer names a fee")
        with self._commit("adopt") as db:
            order = self.order(key)
            if order is not None and order.state is not OrderState.REFUSED:
                raise OrderTaken(order)
            self._check_not_held(key, seen["arn"])
            number = self._open(order, key, OrderState.BOUGHT, approval, now)
            self._insert_attempt(
                key, number, approval.offer, fee, intent_id="adopted", holder="adopted", now=now
            )
            self._end_attempt(key, number, OrderState.BOUGHT, now, "found in AWS with our mark")
            db.execute(
                "UPDATE orders SET reservation_arn = ?, seen = ? WHERE order_id = ?",
                (seen["arn"], json.dumps(seen), self._id(key)),
            )
            self._event(key, now, "adopted", seen["arn"])
        return self._again(key)

    def _check_not_held(self, key: OrderKey, arn: str) -> None:
        row = self._db.execute(
            "SELECT * FROM orders WHERE realm = ? AND reservation_arn = ? AND state = ? AND order_id <> ?",
            (self.realm, arn, OrderState.BOUGHT, self._id(key)),
        ).fetchone()
        if row is not None:
            raise ReservationTaken(self._order(row))

    def settle(
        self,
        order: Order,
        to: OrderState,
        *,
        now: datetime,
        detail: str,
        arn: str | None = None,
        fee: Money | None = None,
    ) -> Order:
        """Move `order` from the state it was read in to `to`; ends its attempt unless that has ended.

        `fee` is what the reservation was found to have cost, where another journal bought it for this very
        order; None: what the attempt said.
        Raises LostRace when another process moved it first, ValueError for a move that the table lacks.
        """
        with self._commit(f"settle-{to}") as db:
            self._move(order.key, order.state, to, now)
            if order.attempt.outcome in {None, OrderState.UNKNOWN, OrderState.DISPUTED}:
                self._end_attempt(order.key, order.attempt.number, to, now, detail)
            if fee is not None and fee != order.attempt.fee:
                db.execute(
                    "UPDATE attempts SET fee_micros = ?, currency = ? WHERE order_id = ? AND number = ?",
                    (fee.micros, fee.currency, self._id(order.key), order.attempt.number),
                )
            if arn is not None:
                db.execute(
                    "UPDATE orders SET reservation_arn = ? WHERE order_id = ?", (arn, self._id(order.key))
                )
            self._event(order.key, now, str(to), detail)
        return self._again(order.key)

    def look(self, order: Order, look: Look) -> Order:
        """Record one look at AWS for the order's latest attempt."""
        order_id, attempt = self._id(order.key), order.attempt.number
        with self._commit("look") as db:
            db.execute(
                "INSERT INTO looks (order_id, attempt, number, began_at, ended_at, complete, found)"
                " SELECT ?, ?, COALESCE(MAX(number), 0) + 1, ?, ?, ?, ? FROM looks"
                " WHERE order_id = ? AND attempt = ?",
                (order_id, attempt, to_micros(look.began_at), to_micros(look.ended_at),
                 int(look.complete), int(look.found), order_id, attempt),
            )  # fmt: skip
            words = "found" if look.found else "not found" if look.complete else "could not look in full"
            self._event(order.key, look.ended_at, "looked", words)
        return self._again(order.key)

    def note_seen(self, order: Order, seen: Mapping[str, Any], now: datetime) -> Order:
        """Keep the latest description of the order's reservation; a changed state leaves an event."""
        with self._commit("seen") as db:
            db.execute(
                "UPDATE orders SET seen = ?, changed_at = ? WHERE order_id = ?",
                (json.dumps(seen), to_micros(now), self._id(order.key)),
            )
            if order.seen is None or order.seen.get("state") != seen.get("state"):
                self._event(order.key, now, "reservation", str(seen.get("state")))
        return self._again(order.key)

    # -- what runs in it -------------------------------------------------------------------------------
    def steps(self, key: OrderKey) -> dict[StepKind, Step]:
        """What was made for the order, by kind; kinds of which nothing was begun are absent."""
        rows = self._db.execute("SELECT * FROM steps WHERE order_id = ?", (self._id(key),)).fetchall()
        return {step.kind: step for step in map(step_from, rows)}

    def put_step(self, key: OrderKey, step: Step) -> Step:
        """Write a step as it stands now; a step of the same kind is replaced."""
        with self._commit(f"{step.kind}-{step.state}") as db:
            db.execute("DELETE FROM steps WHERE order_id = ? AND kind = ?", (self._id(key), step.kind))
            db.execute(
                "INSERT INTO steps (order_id, kind, name, state, ours, detail, started_at, changed_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (self._id(key), step.kind, step.name, step.state, int(step.ours), step.detail,
                 to_micros(step.started_at), to_micros(step.changed_at)),
            )  # fmt: skip
            self._event(key, step.changed_at, f"{step.kind} {step.state}", step.name)
        return step

    # -- what was launched into it ---------------------------------------------------------------------
    def launches(self, key: OrderKey) -> tuple[Launch, ...]:
        """The order's launches, oldest first."""
        rows = self._db.execute(
            "SELECT * FROM launches WHERE order_id = ? ORDER BY number", (self._id(key),)
        ).fetchall()
        return tuple(launch_from(row) for row in rows)

    def put_launch(self, key: OrderKey, launch: Launch, now: datetime) -> Launch:
        """Write a launch as it stands now; one of the same number is replaced.

        Raises LostRace for one that begins under a number that another process has taken meanwhile.
        """
        order_id = self._id(key)
        one = (order_id, launch.number)
        with self._commit(f"launch-{launch.state}") as db:
            if launch.state is not StepState.BEGUN:
                db.execute("DELETE FROM launches WHERE order_id = ? AND number = ?", one)
            elif db.execute("SELECT 1 FROM launches WHERE order_id = ? AND number = ?", one).fetchone():
                raise LostRace(f"launch {launch.number} of order {key} is another process's")
            db.execute(
                "INSERT INTO launches (order_id, number, block, token, count, state, request, instance_ids,"
                " began_at, made_at, removing_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (order_id, *launch_values(launch)),
            )
            what = ", ".join(launch.instance_ids) or f"up to {launch.count}"
            self._event(key, now, f"launch {launch.state}", f"{what} in {launch.block}")
        return launch

    # -- history ---------------------------------------------------------------------------------------
    def authors(self, account: str) -> dict[OrderKey, Who]:
        """Who wrote the latest intent, or adopted it, of each order of an account."""
        rows = self._db.execute(
            "SELECT need, sequence, piece, caller, process FROM events JOIN orders USING (order_id)"
            " WHERE realm = ? AND account = ? AND kind IN ('intended', 'adopted') ORDER BY number",
            (self.realm, account),
        ).fetchall()
        keys = (OrderKey(account, r["need"], r["sequence"], r["piece"]) for r in rows)
        return {key: Who(r["caller"], r["process"]) for key, r in zip(keys, rows, strict=True)}

    def events(self, key: OrderKey) -> tuple[Event, ...]:
        """The order's history, oldest first."""
        rows = self._db.execute(
            "SELECT * FROM events WHERE order_id = ? ORDER BY number", (self._id(key),)
        ).fetchall()
        return tuple(
            Event(
                row["number"], from_micros(row["at"]), row["kind"], row["detail"],
                Who(row["caller"], row["process"]),
            )
            for row in rows
        )  # fmt: skip

    def note(self, key: OrderKey, kind: str, detail: str, now: datetime) -> None:
        """Add a line to the order's history that changes nothing."""
        with self._commit("note"):
            self._event(key, now, kind, detail)

    # -- inside ----------------------------------------------------------------------------------------
    @contextmanager
    def _commit(self, name: str) -> Iterator[Database]:
        with self._db.writing():
            yield self._db
            self._around(f"{name}:before")
        self._around(f"{name}:after")

    def _id(self, key: OrderKey) -> str:
        return f"{self.realm} {key.mark}"

    def _whole_id(self, key: OrderKey, approval: Approval) -> str | None:
        """Of which order it is a piece; None for none. A piece that says nothing is of its own account's."""
        whole = approval.context.get("whole") or replace(key, piece=0).mark
        return f"{self.realm} {whole}" if key.piece else None

    def _again(self, key: OrderKey) -> Order:
        order = self.order(key)
        if order is None:
            raise LostRace(f"order {key} is not in the journal any more")
        return order

    def _order(self, row: Row) -> Order:
        attempts = self._db.execute(
            "SELECT * FROM attempts WHERE order_id = ? ORDER BY number", (row["order_id"],)
        ).fetchall()
        looks = self._db.execute(
            "SELECT * FROM looks WHERE order_id = ? AND attempt = ? ORDER BY number",
            (row["order_id"], attempts[-1]["number"]),
        ).fetchall()
        return order_from(row, attempts, looks, extensions_of(self._db, row["order_id"]))

    def _move(self, key: OrderKey, expected: OrderState, to: OrderState, now: datetime) -> None:
        if to not in MOVES[expected]:
            raise ValueError(f"an order cannot go from {expected} to {to}")
        moved = self._db.execute(
            "UPDATE orders SET state = ?, changed_at = ? WHERE order_id = ? AND state = ?",
            (to, to_micros(now), self._id(key), expected),
        ).rowcount
        if moved != 1:
            raise LostRace(f"order {key} is not {expected} any more")

    def _open(
        self, order: Order | None, key: OrderKey, to: OrderState, approval: Approval, now: datetime
    ) -> int:
        """Make the order, or move the one there is, with what is approved now; the new attempt's number."""
        if order is None:
            self._insert_order(key, to, approval, now)
            return 1
        self._move(key, order.state, to, now)
        self._db.execute(
            "UPDATE orders SET offer = ?, cap = ?, context = ?, team = ? WHERE order_id = ?",
            (*approval_texts(approval), self._id(key)),
        )
        return order.attempt.number + 1

    def _insert_order(self, key: OrderKey, state: OrderState, approval: Approval, now: datetime) -> None:
        self._db.execute(
            "INSERT INTO orders (order_id, realm, account, need, sequence, state, reservation_name, offer,"
            " cap, context, team, piece, whole, created_at, changed_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self._id(key), self.realm, key.account, key.need, key.sequence, state, reservation_name(key),
             *approval_texts(approval), key.piece, self._whole_id(key, approval), to_micros(now),
             to_micros(now)),
        )  # fmt: skip

    def _insert_attempt(
        self,
        key: OrderKey,
        number: int,
        offer: Offer,
        fee: Money,
        *,
        intent_id: str,
        holder: str,
        now: datetime,
    ) -> None:
        self._db.execute(
            "INSERT INTO attempts (order_id, number, intent_id, offering_id, fee_micros, currency, holder,"
            " started_at, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '')",
            (self._id(key), number, intent_id, offer.offering_id or "", fee.micros, fee.currency, holder,
             to_micros(now)),
        )  # fmt: skip

    def _end_attempt(
        self, key: OrderKey, number: int, outcome: OrderState, now: datetime, detail: str
    ) -> None:
        self._db.execute(
            "UPDATE attempts SET ended_at = ?, outcome = ?, detail = ? WHERE order_id = ? AND number = ?",
            (to_micros(now), outcome, detail, self._id(key), number),
        )

    def _event(self, key: OrderKey, now: datetime, kind: str, detail: str) -> None:
        self._db.execute(
            "INSERT INTO events (order_id, number, at, kind, detail, caller, process)"
            " SELECT ?, COALESCE(MAX(number), 0) + 1, ?, ?, ?, ?, ? FROM events WHERE order_id = ?",
            (self._id(key), to_micros(now), kind, detail, self._who.caller, self._who.process, self._id(key)),
        )
