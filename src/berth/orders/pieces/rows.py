"""Wholes in the journal's tables: reading them, and what a write of their pieces stands on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from berth.orders.order import OrderKey, key_of_mark
from berth.orders.pieces.whole import Agreement, Piece, Whole, WholeState, total_of, what_of
from berth.orders.rows import tags_of_context
from berth.orders.spending import TEAM
from berth.planner.offers import Offer, money_from_json, money_json
from berth.storage.database import Answer, Row
from berth.terms.instants import from_micros, to_micros
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode


class Reads(Protocol):
    """What runs a statement (`storage.database.Database`)."""

    def execute(self, sql: str, values: Any = (), /) -> Answer:
        """Run one statement."""
        ...


@dataclass(frozen=True, slots=True)
class Agreed:
    """What a piece is bought under: its whole, whether that is being bought, and all that was agreed."""

    whole: OrderKey
    live: bool
    piece_fee: Money
    total: Money
    what: Mapping[str, Any]


def whole_from(db: Reads, realm: str, order_id: str) -> Whole | None:
    """The whole of that `order_id`; None when there is none."""
    row = db.execute("SELECT * FROM wholes WHERE order_id = ?", (order_id,)).fetchone()
    return None if row is None else _whole(db, realm, row)


def wholes_from(db: Reads, realm: str, account: str | None, need: str | None) -> tuple[Whole, ...]:
    """The wholes of an account and a need (None: of every one), by need and sequence."""
    given = {"realm": realm, "account": account, "need": need}
    asked = {name: value for name, value in given.items() if value is not None}
    where = " AND ".join(f"{name} = ?" for name in asked)
    rows = db.execute(f"SELECT * FROM wholes WHERE {where}", tuple(asked.values())).fetchall()  # noqa: S608 - our names
    found = (_whole(db, realm, row) for row in rows)
    return tuple(sorted(found, key=lambda whole: (whole.key.need, whole.key.sequence, whole.key)))


def whole_id_of(db: Reads, order_id: str) -> str | None:
    """Of which whole the order of that `order_id` is a piece; None when of none."""
    row = db.execute("SELECT whole FROM pieces WHERE order_id = ?", (order_id,)).fetchone()
    if row is None:
        row = db.execute("SELECT whole FROM orders WHERE order_id = ?", (order_id,)).fetchone()
    return None if row is None else row["whole"]


def agreed(db: Reads, realm: str, key: OrderKey) -> Agreed | None:
    """What a piece is bought under; None when the journal knows of no such whole."""
    order_id = f"{realm} {key.mark}"
    whole_id = whole_id_of(db, order_id)
    whole = None if whole_id is None else whole_from(db, realm, whole_id)
    if whole is None:
        return None
    piece = next((piece for piece in whole.live if piece.key == key), None)
    if piece is None:
        return None
    what = what_of(whole.live, whole.agreement.context)
    return Agreed(whole.key, whole.state is WholeState.BUYING, piece.fee, total_of(whole.live), what)


def check_intent(db: Reads, realm: str, key: OrderKey, fee: Money) -> None:
    """Raise BerthError unless `key` may be bought for `fee` beside the wholes that there are.

    A piece only while its whole is being bought, and for no more than was agreed for it; another order only
    where no whole has its number. Call it inside the write that commits the intent.
    """
    if not key.piece:
        taken = db.execute("SELECT 1 FROM wholes WHERE order_id = ?", (f"{realm} {key.mark}",)).fetchone()
        if taken is not None:
            raise BerthError(
                ExitCode.DECISION_NEEDED,
                f"order {key} is one of several pieces; nothing was bought beside it",
                f"berth show {key.need}, or --again to buy one more",
            )
        return
    under = agreed(db, realm, key)
    if under is None or not under.live:
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"piece {key} belongs to an order that nobody is buying now",
            f"berth buy {key.need}#best goes on with it",
        )
    if fee.currency != under.piece_fee.currency or fee > under.piece_fee:
        raise BerthError(ExitCode.DECISION_NEEDED, f"piece {key} costs {fee}; agreed were {under.piece_fee}")


def insert_whole(db: Reads, realm: str, whole: Whole) -> None:
    """Write a whole, and those of its pieces that are not there yet; one of the same key is replaced."""
    whole_id = f"{realm} {whole.key.mark}"
    texts = (
        whole.state, json.dumps(_agreement_json(whole.agreement)),
        tags_of_context(whole.agreement.context).get(TEAM) or None, whole.holder, to_micros(whole.changed_at),
    )  # fmt: skip
    known = db.execute("SELECT 1 FROM wholes WHERE order_id = ?", (whole_id,)).fetchone()
    if known is None:
        db.execute(
            "INSERT INTO wholes (state, agreement, team, holder, changed_at, order_id, realm, account, need,"
            " sequence, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*texts, whole_id, realm, whole.key.account, whole.key.need, whole.key.sequence,
             to_micros(whole.created_at)),
        )  # fmt: skip
    else:
        db.execute(
            "UPDATE wholes SET state = ?, agreement = ?, team = ?, holder = ?, changed_at = ?"
            " WHERE order_id = ?",
            (*texts, whole_id),
        )
    for piece in whole.pieces:
        _put_piece(db, realm, whole_id, piece)


def move_whole(db: Reads, realm: str, whole: Whole, state: WholeState, now: datetime) -> bool:
    """Move a whole that its holder is buying to `state`; False when somebody else has it by now."""
    moved = db.execute(
        "UPDATE wholes SET state = ?, changed_at = ? WHERE order_id = ? AND state = ? AND holder = ?",
        (state, to_micros(now), f"{realm} {whole.key.mark}", WholeState.BUYING, whole.holder),
    )
    return moved.rowcount == 1


def _put_piece(db: Reads, realm: str, whole_id: str, piece: Piece) -> None:
    values = (
        f"{realm} {piece.key.mark}", piece.key.account, json.dumps(piece.offer.to_json()), piece.fee.micros,
        piece.fee.currency, piece.instead_of, whole_id, piece.number,
    )  # fmt: skip
    known = db.execute(
        "SELECT 1 FROM pieces WHERE whole = ? AND number = ?", (whole_id, piece.number)
    ).fetchone()
    if known is None:
        db.execute(
            "INSERT INTO pieces (order_id, account, offer, fee_micros, currency, instead_of, whole, number)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )
        return
    db.execute(
        "UPDATE pieces SET order_id = ?, account = ?, offer = ?, fee_micros = ?, currency = ?, instead_of = ?"
        " WHERE whole = ? AND number = ?",
        values,
    )


def _whole(db: Reads, realm: str, row: Row) -> Whole:
    pieces = db.execute("SELECT * FROM pieces WHERE whole = ? ORDER BY number", (row["order_id"],)).fetchall()
    key = OrderKey(row["account"], row["need"], row["sequence"])
    return Whole(
        key,
        WholeState(row["state"]),
        tuple(_piece(key, realm, piece) for piece in pieces),
        _agreement(json.loads(row["agreement"])),
        row["holder"],
        from_micros(row["created_at"]),
        from_micros(row["changed_at"]),
    )


def _piece(whole: OrderKey, realm: str, row: Row) -> Piece:
    key = key_of_mark(str(row["order_id"]).removeprefix(f"{realm} "))
    return Piece(
        row["number"],
        key or replace(whole, account=row["account"], piece=row["number"]),
        Offer.from_json(json.loads(row["offer"])),
        row["instead_of"],
    )


def _agreement_json(agreement: Agreement) -> dict[str, Any]:
    return {
        "cap": money_json(agreement.cap),
        "budget": money_json(agreement.budget),
        "context": dict(agreement.context),
    }


def _agreement(value: Mapping[str, Any]) -> Agreement:
    return Agreement(money_from_json(value["cap"]), money_from_json(value["budget"]), value["context"])
