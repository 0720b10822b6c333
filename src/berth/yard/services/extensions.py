"""Extensions as bought: what the extension of a block and that of a plan have in common.

The hosts are promised in the transaction of the purchase; the reservation's end moves when the fee is there.
When it is not there in time, the hosts are free again and the reservation ends when it would have.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from berth.terms.instants import from_micros, to_micros
from berth.terms.money import Money
from berth.yard.assembly import Yard
from berth.yard.faults import FaultKind
from berth.yard.lifecycle.moves import States, move
from berth.yard.lifecycle.timers import Rank
from berth.yard.market.bookings import book, unbook
from berth.yard.market.extension_rules import Extended, ExtensionTerms, payment_deadline, pays_at
from berth.yard.services.lag import horizon_us
from berth.yard.services.operation import Call
from berth.yard.store.transaction import Reading, Row, Transaction

UNPAID = ("payment-pending", "Pending")
FAILED = ("payment-failed", "Failed")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of extension: its states, the state it starts in, the operation that buys it and the timer of
    its payment (with `-failure` behind it where the payment fails)."""

    states: States
    first: str
    operation: str
    timer: str


def unpaid_extension(rows: Reading, parent_arn: str) -> Row | None:
    """The extension of this reservation that is being paid, or None."""
    return rows.one(
        "SELECT * FROM extensions WHERE parent_arn = ? AND status IN ('payment-pending', 'Pending')",
        parent_arn,
    )


def end_seen(call: Call, rows: Reading, row: Row) -> int:
    """The end of a reservation (microseconds) as this call sees it: before an extension was paid, for a read
    that lags, it is the earlier one."""
    if not call.lag:
        return int(row["end_us"])
    unseen = rows.one(
        "SELECT min(start_us) AS end_us FROM extensions WHERE parent_arn = ?"
        " AND status NOT IN ('payment-pending', 'Pending', 'payment-failed', 'Failed')"
        " AND NOT EXISTS (SELECT 1 FROM events WHERE subject = extensions.arn AND at_us <= ?"
        " AND to_state IN ('payment-succeeded', 'Scheduled'))",
        row["arn"], horizon_us(call),
    )  # fmt: skip
    return int(row["end_us"] if unseen is None or unseen["end_us"] is None else unseen["end_us"])


def take_extension(
    tx: Transaction,
    yard: Yard,
    kind: Kind,
    parent: Row,
    *,
    name: str,
    extended: Extended,
    terms: ExtensionTerms,
    offering_id: str,
) -> Row:
    """Sell it: row, booking, event and the timer of its payment, in one transaction. That it may be sold and
    that hosts are free is for the caller to have asked, in the same transaction."""
    count = tx.one("SELECT count(*) AS n FROM extensions WHERE parent_arn = ?", parent["arn"])
    assert count is not None
    arn = f"{parent['arn']}/extension-{count['n'] + 1}"
    tx.insert(
        "extensions",
        arn=arn, kind=kind.states.kind, parent_arn=parent["arn"], name=name, status=kind.first,
        account_id=parent["account_id"], region=parent["region"], instance_type=parent["instance_type"],
        count=extended.count, zone_id=parent["zone_id"], offering_id=offering_id,
        start_us=to_micros(terms.window.start), end_us=to_micros(terms.window.end),
        fee_micros=terms.fee.micros, currency=terms.fee.currency, created_us=tx.now_us,
    )  # fmt: skip
    book(
        tx, yard.calendars, pool=extended.pool.key, face=extended.face, window=terms.window,
        count=extended.count, holder=arn,
    )  # fmt: skip
    tx.event(
        arn, kind.states.kind, f"bought for {terms.fee}",
        account_id=parent["account_id"], region=parent["region"], to_state=kind.first,
    )  # fmt: skip
    due = pays_at(
        tx.now,
        payment_deadline(tx.now, terms.old_end, extended.pool.unit),
        yard.fleet.payment_delay,
        yard.fleet.blocks.payment_delay_max,
        _draw(arn),
    )
    fails = yard.faults.take(FaultKind.PAYMENT_FAILURE, kind.operation, parent["account_id"])
    tx.timer(due, kind.timer if fails is None else f"{kind.timer}-failure", arn, Rank.PAYMENT)
    return extension_of(tx, arn)


def _draw(arn: str) -> float:
    digest = hashlib.blake2b(arn.encode(), digest_size=8, person=b"ext-payment").digest()
    return int.from_bytes(digest, "big") / 2**64


def extension_of(rows: Reading, arn: str) -> Row:
    """The extension of this name."""
    row = rows.one("SELECT * FROM extensions WHERE arn = ?", arn)
    assert row is not None, f"a timer of an extension that does not exist: {arn}"
    return row


def pay_extension(tx: Transaction, kind: Kind, row: Row, to_state: str) -> Row:
    """The fee is there: move the extension on, bill it, move its reservation's end; the reservation as it is
    then. Its timers are for the caller to set anew."""
    move(tx, kind.states, row, to_state, "paid")
    fee = Money.from_micros(row["fee_micros"], row["currency"])
    tx.insert(
        "ledger",
        at_us=tx.now_us, account_id=row["account_id"], region=row["region"], subject=row["parent_arn"],
        kind=kind.states.kind, amount_micros=row["fee_micros"], currency=row["currency"],
        description=f"extension of {row['name']} to {from_micros(row['end_us']):%Y-%m-%dT%H:%MZ}:"
        f" {row['count']} x {row['instance_type']}, {fee}",
    )  # fmt: skip
    table = "training_plans" if kind.states.kind.startswith("training-plan") else "capacity_reservations"
    touched = tx.run(
        f"UPDATE {table} SET end_us = ? WHERE arn = ? AND end_us = ?",  # noqa: S608 - literals
        row["end_us"], row["parent_arn"], row["start_us"],
    )  # fmt: skip
    assert touched == 1, f"{row['parent_arn']} did not end where its extension begins"
    parent = tx.one(f"SELECT * FROM {table} WHERE arn = ?", row["parent_arn"])  # noqa: S608 - literals
    assert parent is not None
    tx.event(
        row["parent_arn"], kind.states.kind, f"extended to {from_micros(row['end_us']):%Y-%m-%dT%H:%MZ}",
        account_id=row["account_id"], region=row["region"],
    )  # fmt: skip
    return parent


def fail_extension(tx: Transaction, yard: Yard, kind: Kind, row: Row, to_state: str) -> None:
    """The fee did not come: the hosts are free again, the reservation ends when it would have."""
    move(tx, kind.states, row, to_state, "not paid; its hosts are free again")
    unbook(tx, yard.calendars, row["arn"])
