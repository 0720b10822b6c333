"""What a read sees when the yard is told to show writes late (the fault `lag`)."""

from __future__ import annotations

from berth.terms.instants import to_micros
from berth.yard.services.operation import Call
from berth.yard.store.transaction import Reading, Row

FOR_EVER_US = 2**63 - 1


def horizon_us(call: Call) -> int:
    """Writes after this instant (microseconds) are not seen by this call; without lag it sees all.

    The call's own instant is no bound: it was taken before the writer's turn came, and a real clock may have
    been set back since a row was written.
    """
    return to_micros(call.now - call.lag) if call.lag else FOR_EVER_US


def status_seen(call: Call, rows: Reading, row: Row) -> str:
    """The status of `row` (with arn and status) as this call sees it: the present one without lag."""
    if not call.lag:
        return str(row["status"])
    seen = rows.one(
        "SELECT to_state FROM events WHERE subject = ? AND at_us <= ? AND to_state IS NOT NULL"
        " ORDER BY event_id DESC LIMIT 1",
        row["arn"], horizon_us(call),
    )  # fmt: skip
    return str(seen["to_state"]) if seen is not None else str(row["status"])
