"""Extensions in the journal: each write is committed before the effect that it announces."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from berth.orders.extensions.extension import EXTENSION_MOVES, Extension, ExtensionState
from berth.orders.extensions.offers import ExtensionOffer
from berth.orders.journal import Journal, LostRace
from berth.orders.looks import Look
from berth.orders.order import Order, OrderKey
from berth.orders.rows import tags_of_context
from berth.orders.spending_gate import Gate, Proposal, check_spending
from berth.terms.instants import iso, to_micros
from berth.terms.money import Money
from berth.terms.window import Window


class AlreadyExtending(Exception):
    """Another extension of the order is in doubt, or begins where this one would."""


class ExtensionBook:
    """The extensions of one journal's orders."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def intend(
        self, proposal: Proposal, offer: ExtensionOffer, gate: Gate,
        *, intent_id: str, holder: str, now: datetime,
    ) -> Extension:  # fmt: skip
        """Commit the intent to buy the offer; the extension is BUYING afterwards.

        Raises AlreadyExtending when another one of the order is in doubt, or begins at the same end and has
        not come to nothing: exactly one of two processes gets past this point. Raises BerthError where a
        rule of `gate` is in the way: rules and intent are one write.
        """
        key, fee = proposal.key, offer.fee
        if fee is None:
            raise ValueError("an extension without a fee cannot be bought")
        with self._journal._commit("intend-extension"):
            known = self._all(key)
            if any(_in_the_way(one, offer.window) for one in known):
                raise AlreadyExtending(f"order {key} is being extended already")
            check_spending(gate, self._journal.ledger(), proposal, now)
            number = len(known) + 1
            one = Extension(
                number,
                ExtensionState.BUYING,
                offer.window,
                offer.offering_id,
                fee,
                intent_id,
                holder,
                now,
                now,
            )
            self._insert(key, one)
            self._journal._event(
                key,
                now,
                "extension intended",
                f"{number}: to {iso(offer.window.end)} for {fee}{gate.paid_by}",
            )
        kept = self._again(key, number)  # only what is read back is paid for
        if kept.state is not ExtensionState.BUYING or kept.intent_id != intent_id:
            raise LostRace(f"the intent to extend order {key} is not in the journal as it was written")
        return kept

    def adopt(
        self, key: OrderKey, window: Window, offering_id: str, fee: Money, *, payment: str, now: datetime,
        bought_at: datetime | None = None,
    ) -> Extension:  # fmt: skip
        """Record as BOUGHT an extension that AWS's history shows and this journal does not know.

        It began when AWS says that it was bought (None: not told, so now): should its payment fail, the
        history's entry is not older than it.
        Raises AlreadyExtending when one of the order stands at the same end.
        """
        with self._journal._commit("adopt-extension"):
            known = self._all(key)
            if any(_in_the_way(one, window) for one in known):
                raise AlreadyExtending(f"order {key} has an extension from {iso(window.start)} on")
            number = len(known) + 1
            one = Extension(
                number,
                ExtensionState.BOUGHT,
                window,
                offering_id,
                fee,
                "adopted",
                "adopted",
                min(bought_at or now, now),
                now,
                payment,
            )
            self._insert(key, one)
            self._journal._event(key, now, "extension adopted", f"{number}: to {iso(window.end)} for {fee}")
        return self._again(key, number)

    def settle(
        self, key: OrderKey, one: Extension, to: ExtensionState, *, now: datetime, detail: str,
        payment: str = "", fee: Money | None = None,
    ) -> Extension:  # fmt: skip
        """Move `one` from the state it was read in to `to`; `fee` is what AWS shows as paid, where it does.

        Raises LostRace when another process moved it first, ValueError for a move that the table lacks.
        """
        if to not in EXTENSION_MOVES[one.state]:
            raise ValueError(f"an extension cannot go from {one.state} to {to}")
        paid = fee or one.fee
        with self._journal._commit(f"extension-{to}") as db:
            moved = db.execute(
                "UPDATE extensions SET state = ?, changed_at = ?, detail = ?, payment = ?, fee_micros = ?,"
                " currency = ? WHERE order_id = ? AND number = ? AND state = ?",
                (to, to_micros(now), detail, payment or one.payment, paid.micros, paid.currency,
                 self._journal._id(key), one.number, one.state),
            ).rowcount  # fmt: skip
            if moved != 1:
                raise LostRace(f"extension {one.number} of order {key} is not {one.state} any more")
            self._journal._event(key, now, f"extension {to}", f"{one.number}: {detail}")
        return self._again(key, one.number)

    def note_payment(self, key: OrderKey, one: Extension, word: str, now: datetime) -> Extension:
        """Keep AWS's latest word on the payment."""
        with self._journal._commit("extension-payment") as db:
            db.execute(
                "UPDATE extensions SET payment = ?, changed_at = ? WHERE order_id = ? AND number = ?",
                (word, to_micros(now), self._journal._id(key), one.number),
            )
            self._journal._event(key, now, "extension payment", f"{one.number}: {word}")
        return self._again(key, one.number)

    def look(self, key: OrderKey, one: Extension, look: Look) -> Extension:
        """Record one look at the history for the extension."""
        with self._journal._commit("extension-look") as db:
            db.execute(
                "INSERT INTO extension_looks"
                " (order_id, extension, number, began_at, ended_at, complete, found)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (self._journal._id(key), one.number, len(self._again(key, one.number).looks) + 1,
                 to_micros(look.began_at), to_micros(look.ended_at), int(look.complete), int(look.found)),
            )  # fmt: skip
            words = "not found" if look.complete else "could not look in full"
            self._journal._event(key, look.ended_at, "extension looked", f"{one.number}: {words}")
        return self._again(key, one.number)

    # -- inside ----------------------------------------------------------------------------------------
    def _all(self, key: OrderKey) -> tuple[Extension, ...]:
        order = self._journal.order(key)
        return () if order is None else order.extensions

    def _again(self, key: OrderKey, number: int) -> Extension:
        for one in self._all(key):
            if one.number == number:
                return one
        raise LostRace(f"extension {number} of order {key} is not in the journal")

    def _insert(self, key: OrderKey, one: Extension) -> None:
        self._journal._db.execute(
            "INSERT INTO extensions (order_id, number, state, start_at, end_at, offering_id, fee_micros,"
            " currency, intent_id, holder, started_at, changed_at, payment, detail)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self._journal._id(key), one.number, one.state, to_micros(one.window.start),
             to_micros(one.window.end), one.offering_id, one.fee.micros, one.fee.currency, one.intent_id,
             one.holder, to_micros(one.started_at), to_micros(one.changed_at), one.payment, one.detail),
        )  # fmt: skip


def _in_the_way(one: Extension, window: Window) -> bool:
    """Whether the extension forbids another one of `window`: it is in doubt, or takes the same place."""
    return one.in_doubt or (one.state is ExtensionState.BOUGHT and one.window.end > window.start)


def what_is_extended(order: Order, window: Window) -> dict[str, Any]:
    """What an approval of an extension is bound to: plain JSON values."""
    offer = order.offer
    return {
        "kind": "extension",
        "order": order.key.mark,
        "reservation": order.reservation_arn,
        "way": offer.way.value,
        "region": offer.region,
        "instance_type": offer.instance_type,
        "count": offer.count,
        "tags": tags_of_context(order.context),
        "parts": [
            {"start": iso(window.start), "end": iso(window.end), "zone": zone} for zone in offer.zones[-1:]
        ],
        "end": iso(window.end),
    }
