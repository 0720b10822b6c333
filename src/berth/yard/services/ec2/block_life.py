"""What happens to a Capacity Block by itself: it is paid or not, starts, is reclaimed, ends, is forgotten.

payment-pending --payment--> scheduled --start--> active --end--> expired
        `------not paid----> payment-failed         | 30 minutes before the end: instances are taken back
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from berth.terms.instants import from_micros
from berth.terms.money import Money
from berth.yard.assembly import Yard
from berth.yard.faults import FaultKind
from berth.yard.lifecycle.moves import CAPACITY_BLOCK, move
from berth.yard.lifecycle.timers import Rank
from berth.yard.market.block_rules import pays_at
from berth.yard.market.bookings import unbook
from berth.yard.services.ec2.blocks import reclaim_at
from berth.yard.services.ec2.instance_life import reclaim_block
from berth.yard.services.ec2.tags import forget_tags
from berth.yard.store.transaction import Row, Transaction

PURCHASE = "PurchaseCapacityBlock"


def _block(tx: Transaction, arn: str) -> Row:
    row = tx.one("SELECT * FROM capacity_reservations WHERE arn = ?", arn)
    assert row is not None, f"a timer of a block that does not exist: {arn}"
    return row


def begin_block(tx: Transaction, yard: Yard, arn: str) -> None:
    """Set the timers of a block that was just bought. When it is paid, or is not if that is rehearsed, is
    drawn from its id: see `pays_at`."""
    row = _block(tx, arn)
    digest = hashlib.blake2b(row["reservation_id"].encode(), digest_size=8, person=b"cb-payment").digest()
    due = pays_at(
        tx.now, from_micros(row["start_us"]), yard.fleet.payment_delay, yard.fleet.blocks.payment_delay_max,
        int.from_bytes(digest, "big") / 2**64,
    )  # fmt: skip
    fails = yard.faults.take(FaultKind.PAYMENT_FAILURE, PURCHASE, row["account_id"])
    tx.timer(due, "block-payment" if fails is None else "block-payment-failure", arn, Rank.PAYMENT)
    arm_block_window(tx, yard, row)


def arm_block_window(tx: Transaction, yard: Yard, row: Row) -> None:
    """Set the timers of a block's window that are still to come."""
    start = from_micros(row["start_us"])
    if start > tx.now:
        tx.timer(start, "block-start", row["arn"], Rank.START)
    arm_block_end(tx, yard, row)


def arm_block_end(tx: Transaction, yard: Yard, row: Row) -> None:
    """Set the timers of a block's end anew: reclaiming and the end itself, in place of those there were."""
    tx.run("DELETE FROM timers WHERE subject = ? AND kind IN ('block-reclaim', 'block-end')", row["arn"])
    end = from_micros(row["end_us"])
    if end > tx.now:
        tx.timer(max(tx.now, reclaim_at(yard, row)), "block-reclaim", row["arn"], Rank.RECLAIM)
        tx.timer(end, "block-end", row["arn"], Rank.END)


def forget_later(tx: Transaction, yard: Yard, arn: str) -> None:
    """Describe an ended block for so long as the fleet says, then no more."""
    tx.timer(tx.now + yard.fleet.blocks.shown_after_end, "block-forget", arn, Rank.END)


def bill_block(tx: Transaction, row: Row, description: str) -> None:
    """One ledger entry of the block's whole fee."""
    tx.insert(
        "ledger",
        at_us=tx.now_us, account_id=row["account_id"], region=row["region"], subject=row["arn"],
        kind="capacity-block", amount_micros=row["fee_micros"], currency=row["currency"],
        description=description,
    )  # fmt: skip


def _pay(tx: Transaction, yard: Yard, arn: str) -> None:
    row = _block(tx, arn)
    move(tx, CAPACITY_BLOCK, row, "scheduled", "paid")
    fee = Money.from_micros(row["fee_micros"], row["currency"])
    bill_block(
        tx, row, f"Capacity Block {row['reservation_id']}: {row['count']} x {row['instance_type']}, {fee}"
    )


def _fail_payment(tx: Transaction, yard: Yard, arn: str) -> None:
    move(tx, CAPACITY_BLOCK, _block(tx, arn), "payment-failed", "not paid; its hosts are free again")
    unbook(tx, yard.calendars, arn)
    tx.drop_timers(arn)
    forget_later(tx, yard, arn)


def _start(tx: Transaction, yard: Yard, arn: str) -> None:
    move(tx, CAPACITY_BLOCK, _block(tx, arn), "active", "its window began")


def _reclaim(tx: Transaction, yard: Yard, arn: str) -> None:
    row = _block(tx, arn)
    tx.run("UPDATE capacity_reservations SET reclaimed = 1 WHERE arn = ?", arn)
    tx.event(
        arn, CAPACITY_BLOCK.kind, "instances are taken back from now on",
        account_id=row["account_id"], region=row["region"],
    )  # fmt: skip
    reclaim_block(tx, yard, row["reservation_id"])


def _end(tx: Transaction, yard: Yard, arn: str) -> None:
    move(tx, CAPACITY_BLOCK, _block(tx, arn), "expired", "its window ended")
    forget_later(tx, yard, arn)


def _forget(tx: Transaction, yard: Yard, arn: str) -> None:
    row = _block(tx, arn)
    for resource_id in (row["reservation_id"], row["block_id"]):
        forget_tags(tx, resource_id)
    tx.run("DELETE FROM capacity_reservations WHERE arn = ?", arn)
    tx.event(
        arn, CAPACITY_BLOCK.kind, "no longer described",
        account_id=row["account_id"], region=row["region"],
    )  # fmt: skip


Play = Callable[[Transaction, Yard, str], None]
BLOCK_TIMERS: Mapping[str, Play] = {
    "block-payment": _pay,
    "block-payment-failure": _fail_payment,
    "block-start": _start,
    "block-reclaim": _reclaim,
    "block-end": _end,
    "block-forget": _forget,
}
