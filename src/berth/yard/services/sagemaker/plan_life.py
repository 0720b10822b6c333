"""What happens to a training plan by itself: it is paid or not, starts, is reclaimed, ends.

Pending --payment--> Scheduled --start--> Active --end--> Expired
   `----not paid---> Failed                 | 30 minutes before the end: instances are taken back
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from berth.terms.instants import from_micros
from berth.terms.money import Money
from berth.yard.assembly import Yard
from berth.yard.faults import FaultKind
from berth.yard.lifecycle.moves import TRAINING_PLAN, move
from berth.yard.lifecycle.timers import Rank
from berth.yard.market.bookings import unbook
from berth.yard.services.sagemaker.endpoint_life import reclaim_plan
from berth.yard.store.transaction import Row, Transaction

RECLAIM_BEFORE_END = timedelta(
    minutes=30
)  # SageMaker Developer Guide: jobs, endpoints and apps (60 for HyperPod)
CREATE = "CreateTrainingPlan"


def _plan(tx: Transaction, arn: str) -> Row:
    row = tx.one("SELECT * FROM training_plans WHERE arn = ?", arn)
    assert row is not None, f"a timer of a plan that does not exist: {arn}"
    return row


def begin_plan(tx: Transaction, yard: Yard, arn: str) -> None:
    """Set the timers of a plan that was just bought. Payment comes `payment_delay` later, or fails then if
    that is rehearsed."""
    row = _plan(tx, arn)
    fails = yard.faults.take(FaultKind.PAYMENT_FAILURE, CREATE, row["account_id"])
    kind = "plan-payment" if fails is None else "plan-payment-failure"
    tx.timer(tx.now + yard.fleet.payment_delay, kind, arn, Rank.PAYMENT)
    arm_window(tx, row)


def arm_window(tx: Transaction, row: Row) -> None:
    """Set the timers of a plan's window that are still to come."""
    start = from_micros(row["start_us"])
    if start > tx.now:
        tx.timer(start, "plan-start", row["arn"], Rank.START)
    arm_end(tx, row)


def arm_end(tx: Transaction, row: Row) -> None:
    """Set the timers of a plan's end anew: reclaiming and the end itself, in place of those there were."""
    tx.run("DELETE FROM timers WHERE subject = ? AND kind IN ('plan-reclaim', 'plan-end')", row["arn"])
    end = from_micros(row["end_us"])
    if end > tx.now:
        tx.timer(max(tx.now, end - RECLAIM_BEFORE_END), "plan-reclaim", row["arn"], Rank.RECLAIM)
        tx.timer(end, "plan-end", row["arn"], Rank.END)


def bill(tx: Transaction, row: Row, kind: str, description: str) -> None:
    """One ledger entry of the plan's whole fee."""
    tx.insert(
        "ledger",
        at_us=tx.now_us, account_id=row["account_id"], region=row["region"], subject=row["arn"], kind=kind,
        amount_micros=row["fee_micros"], currency=row["currency"], description=description,
    )  # fmt: skip


def _pay(tx: Transaction, yard: Yard, arn: str) -> None:
    row = _plan(tx, arn)
    # The sample answer of the Developer Guide has this text.
    message = "Payment confirmed, training plan scheduled."
    move(tx, TRAINING_PLAN, row, "Scheduled", message, status_message=message)
    fee = Money.from_micros(row["fee_micros"], row["currency"])
    bill(
        tx,
        row,
        "training-plan",
        f"training plan {row['name']}: {row['count']} x {row['instance_type']}, {fee}",
    )


def _fail_payment(tx: Transaction, yard: Yard, arn: str) -> None:
    message = "Payment failed, training plan was not created."
    move(tx, TRAINING_PLAN, _plan(tx, arn), "Failed", message, status_message=message)
    unbook(tx, yard.calendars, arn)
    tx.drop_timers(arn)


def _start(tx: Transaction, yard: Yard, arn: str) -> None:
    move(tx, TRAINING_PLAN, _plan(tx, arn), "Active", "its window began", status_message="")


def _reclaim(tx: Transaction, yard: Yard, arn: str) -> None:
    row = _plan(tx, arn)
    tx.event(
        arn, "training-plan", "instances are taken back from now on",
        account_id=row["account_id"], region=row["region"],
    )  # fmt: skip
    reclaim_plan(tx, yard, arn)


def _end(tx: Transaction, yard: Yard, arn: str) -> None:
    move(tx, TRAINING_PLAN, _plan(tx, arn), "Expired", "its window ended", status_message="")


Play = Callable[[Transaction, Yard, str], None]
PLAN_TIMERS: Mapping[str, tuple[Play, bool]] = {
    "plan-payment": (_pay, False),
    "plan-payment-failure": (_fail_payment, False),
    "plan-start": (_start, False),
    "plan-reclaim": (_reclaim, True),
    "plan-end": (_end, False),
}
