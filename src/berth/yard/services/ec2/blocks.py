"""A Capacity Block as whoever launches into it needs it: found, its places, when it is taken back.

An instance takes a place when it is launched and gives it back when it has been cleaned; both in the
transaction that writes the instance. The count stands in the block's row, so that a page of blocks needs no
count of instances, and the store itself refuses to give away more places than were bought.
"""

from __future__ import annotations

import re
from datetime import datetime

from berth.terms.instants import from_micros
from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.market.block_rules import reclaim_before_end
from berth.yard.services.ec2.tags import Taggable, taggable
from berth.yard.services.lag import horizon_us, status_seen
from berth.yard.services.operation import Call
from berth.yard.store.transaction import Reading, Row, Transaction

RESERVATION_ID = re.compile(r"cr-[0-9a-f]{17}")
RESERVATION = taggable(
    "cr-",
    Taggable(
        "capacity-reservation",
        "capacity_reservations",
        "reservation_id",
        "InvalidCapacityReservationId.NotFound",
    ),
)
BLOCK = taggable(
    "cb-", Taggable("capacity-block", "capacity_reservations", "block_id", "InvalidCapacityBlockId.NotFound")
)


def find_block(call: Call, rows: Reading, reservation_id: str) -> Row:
    """The caller's Capacity Reservation of this id, as stored; `block_state` tells its state as the call sees
    it.

    Raises InvalidCapacityReservationId.Malformed and .NotFound: another account's is as good as absent.
    """
    check_reservation_id(reservation_id)
    row = rows.one(
        "SELECT * FROM capacity_reservations WHERE reservation_id = ? AND account_id = ? AND region = ?"
        " AND created_us <= ?",
        reservation_id, call.account.account_id, call.region, horizon_us(call),
    )  # fmt: skip
    if row is None:
        raise ServiceError(
            RESERVATION.not_found, f"The capacity reservation ID '{reservation_id}' does not exist"
        )
    return row


def check_reservation_id(reservation_id: str) -> None:
    """Raises InvalidCapacityReservationId.Malformed unless it is `cr-` and 17 hexadecimal digits."""
    if not RESERVATION_ID.fullmatch(reservation_id):
        raise ServiceError(
            "InvalidCapacityReservationId.Malformed",
            f"Invalid id: '{reservation_id[:64]}' (expecting 'cr-' and 17 hexadecimal digits)",
        )


def block_state(call: Call, rows: Reading, block: Row) -> str:
    """The state of the block as this call sees it (late, while a rehearsal lags)."""
    return status_seen(call, rows, block)


def free_places(rows: Reading, block: Row) -> int:
    """Places of an active block that no instance holds; 0 in every other state.

    As on AWS the count does not fall when reclaiming begins: ask `reclaiming` before launching (field fault
    21).
    """
    return int(block["count"]) - int(block["in_use"]) if block["status"] == "active" else 0


def reclaim_at(yard: Yard, block: Row) -> datetime:
    """When instances begin to be taken out of the block: 30 minutes before its end, 60 for UltraServers."""
    pool = yard.fleet.pools.get(block["pool"])
    return from_micros(block["end_us"]) - reclaim_before_end(pool.unit if pool is not None else 1)


def reclaiming(yard: Yard, block: Row, now: datetime) -> bool:
    """Whether no instance may be launched into the block any more at `now`, though it is still active."""
    return bool(block["reclaimed"]) or now >= reclaim_at(yard, block)


def take_places(tx: Transaction, reservation_id: str, count: int) -> bool:
    """Take `count` places of an active block that is not being reclaimed; False, and nothing taken, when so
    many are not free."""
    return (
        tx.run(
            "UPDATE capacity_reservations SET in_use = in_use + ?1 WHERE reservation_id = ?2"
            " AND status = 'active' AND reclaimed = 0 AND in_use + ?1 <= count",
            count, reservation_id,
        )
        == 1
    )  # fmt: skip


def give_back_places(tx: Transaction, reservation_id: str, count: int) -> None:
    """Give `count` places back, when their hosts have been cleaned, whatever state the block is in by then; a
    block that is no longer described has none to give back to."""
    tx.run(
        "UPDATE capacity_reservations SET in_use = in_use - ? WHERE reservation_id = ?", count, reservation_id
    )
