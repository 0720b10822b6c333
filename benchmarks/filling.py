"""A yard's store filled with Capacity Blocks by SQL, while no yard runs: rows as purchases leave them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from berth.storage.sqlite import connect
from berth.yard.lifecycle.timers import Rank

REGION = "us-east-1"
HOUR_US = 3_600_000_000
RECLAIM_US = HOUR_US // 2
_COLUMNS = (
    "reservation_id, arn, reservation_type, block_id, account_id, region, status, instance_type, platform,"
    " count, pool, zone_id, start_us, end_us, fee_micros, currency, offering_id, created_us"
)


@dataclass(frozen=True, slots=True)
class FilledBlock:
    """A block of one p5.48xlarge. `status` is scheduled or active, as its window says."""

    number: int
    account_id: str
    zone_id: str
    start_us: int
    end_us: int
    now_us: int

    @property
    def arn(self) -> str:
        """Its ARN; the id holds its number."""
        return f"arn:aws:ec2:{REGION}:{self.account_id}:capacity-reservation/cr-{self.number:017x}"

    @property
    def begun(self) -> bool:
        """Whether its start is past, and played."""
        return self.start_us <= self.now_us


def fill(store: Path, blocks: Iterable[FilledBlock], past_events: int = 0) -> None:
    """Put the blocks with their bookings and timers in, and `past_events` of things long gone: one
    transaction, then into the main file."""
    kept = list(blocks)
    connection = connect(store)
    try:
        connection.execute("BEGIN IMMEDIATE")
        _reservations(connection, kept)
        connection.executemany(
            "INSERT INTO bookings (pool, face, holder, count, start_us, end_us)"
            " VALUES (?, 'ec2', ?, 1, ?, ?)",
            ((f"{one.zone_id}/p5.48xlarge", one.arn, one.start_us, one.end_us) for one in kept),
        )
        connection.executemany(
            "INSERT INTO timers (due_us, rank, kind, subject) VALUES (?, ?, ?, ?)",
            (timer for one in kept for timer in _timers(one)),
        )
        connection.executemany(
            "INSERT INTO events (at_us, account_id, region, subject, kind, from_state, to_state, reason)"
            " VALUES (?, '111122223333', ?, ?, 'capacity-block', 'active', 'expired', 'its window ended')",
            (
                (number * 1000, REGION, f"arn:aws:ec2:long-gone/{number // 4}")
                for number in range(past_events)
            ),
        )
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


def _reservations(connection: sqlite3.Connection, blocks: list[FilledBlock]) -> None:
    marks = ", ".join("?" * (_COLUMNS.count(",") + 1))
    connection.executemany(
        f"INSERT INTO capacity_reservations ({_COLUMNS}) VALUES ({marks})",
        (
            (
                f"cr-{one.number:017x}", one.arn, "capacity-block", f"cb-{one.number:017x}", one.account_id,
                REGION, "active" if one.begun else "scheduled", "p5.48xlarge", "Linux/UNIX", 1,
                f"{one.zone_id}/p5.48xlarge", one.zone_id, one.start_us, one.end_us, 1_146_170_000, "USD",
                "cb-filled", one.now_us - HOUR_US,
            )
            for one in blocks
        ),
    )  # fmt: skip


def _timers(block: FilledBlock) -> Iterator[tuple[int, int, str, str]]:
    if not block.begun:
        yield block.start_us, Rank.START, "block-start", block.arn
    yield block.end_us - RECLAIM_US, Rank.RECLAIM, "block-reclaim", block.arn
    yield block.end_us, Rank.END, "block-end", block.arn
