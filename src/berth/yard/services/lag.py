"""What a read sees when the yard is told to show writes late (the fault `lag`)."""

from __future__ import annotations

from berth.terms.instants import to_micros
from berth.yard.services.operation import Call
from berth.yard.store.transaction import Reading, Row


def horizon_us(call: Call) -> int:
    """Writes after this instant (microseconds) are not seen by this call."""
    return to_micros(call.now - call.lag)


def status_seen(call: Call, rows: Reading, row: Row) -> str:
    """The status of `row` (with arn and status) as this call sees it: the present one unless the yard lags."""
    if not call.lag:
        return str(row["status"])
    seen = rows.one(
        "SELECT to_state FROM events WHERE subject = ? AND at_us <= ? AND to_state IS NOT NULL"
        " ORDER BY event_id DESC LIMIT 1",
        row["arn"], horizon_us(call),
    )  # fmt: skip
    return str(seen["to_state"]) if seen is not None else str(row["status"])
