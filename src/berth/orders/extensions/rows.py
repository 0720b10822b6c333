"""Rows of extensions and the values that they hold."""

from __future__ import annotations

from berth.orders.extensions.extension import Extension, ExtensionState
from berth.orders.looks import Look
from berth.storage.database import Database, Row
from berth.terms.instants import from_micros
from berth.terms.money import Money
from berth.terms.window import Window


def extensions_of(db: Database, order_id: str) -> tuple[Extension, ...]:
    """The extensions of an order, oldest first; each with its looks."""
    rows = db.execute("SELECT * FROM extensions WHERE order_id = ? ORDER BY number", (order_id,)).fetchall()
    if not rows:
        return ()
    looks = db.execute(
        "SELECT * FROM extension_looks WHERE order_id = ? ORDER BY extension, number", (order_id,)
    ).fetchall()
    return tuple(
        _extension(row, [look for look in looks if look["extension"] == row["number"]]) for row in rows
    )


def _extension(row: Row, looks: list[Row]) -> Extension:
    return Extension(
        number=row["number"],
        state=ExtensionState(row["state"]),
        window=Window(from_micros(row["start_at"]), from_micros(row["end_at"])),
        offering_id=row["offering_id"],
        fee=Money.from_micros(row["fee_micros"], row["currency"]),
        intent_id=row["intent_id"],
        holder=row["holder"],
        started_at=from_micros(row["started_at"]),
        changed_at=from_micros(row["changed_at"]),
        payment=row["payment"],
        detail=row["detail"],
        looks=tuple(_look(look) for look in looks),
    )


def _look(row: Row) -> Look:
    return Look(
        from_micros(row["began_at"]), from_micros(row["ended_at"]), bool(row["complete"]), bool(row["found"])
    )
