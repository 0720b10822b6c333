"""What happens to an instance by itself: it runs, is billed when it ends, is cleaned, is forgotten.

pending --starting--> running --terminated or reclaimed--> shutting-down --cleaned--> terminated --1 h--> gone
   `------------------ terminated or reclaimed --------------^

Instances are bookkeeping: no process stands for them. A host is given back, to its block or to the on-demand
share, when the instance turns `terminated` and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal

from berth.terms.instants import from_micros
from berth.terms.money import MICROS, Money
from berth.yard.assembly import Yard
from berth.yard.lifecycle.moves import INSTANCE, move
from berth.yard.lifecycle.timers import Rank
from berth.yard.market.bookings import unbook
from berth.yard.services.ec2.blocks import give_back_places
from berth.yard.services.ec2.tags import forget_tags
from berth.yard.store.transaction import Row, Transaction

SHOWN_AFTER_END = timedelta(
    hours=1
)  # EC2 User Guide: a terminated instance stays visible "for a short while"
SHUTTING_DOWN_ON_DEMAND = timedelta(minutes=1)
BILLED_LEAST = timedelta(seconds=60)  # EC2 on-demand: by the second, with a minimum of 60 seconds
_HOUR_US = 3_600_000_000


@dataclass(frozen=True, slots=True)
class Ending:
    """Why an instance ends, as EC2 shows it: StateReason's code and message, and StateTransitionReason."""

    code: str
    message: str
    transition: str


def by_user(tx: Transaction) -> Ending:
    """Somebody called TerminateInstances."""
    code = "Client.UserInitiatedShutdown"
    at = f"{tx.now:%Y-%m-%d %H:%M:%S} GMT"
    return Ending(code, f"{code}: User initiated shutdown", f"User initiated ({at})")


# Which reason AWS shows at a block's end is not known; the code is EC2's for a shutdown that EC2 planned.
_RECLAIMED = Ending(
    "Server.ScheduledStop",
    "Server.ScheduledStop: The Capacity Block of this instance is about to end",
    "Server.ScheduledStop",
)


def _instance(tx: Transaction, arn: str) -> Row:
    row = tx.one("SELECT * FROM instances WHERE arn = ?", arn)
    assert row is not None, f"a timer of an instance that does not exist: {arn}"
    return row


# -- from launch to end ----------------------------------------------------------------------------------
def begin_instance(tx: Transaction, yard: Yard, arn: str) -> None:
    """Set the timer of an instance that was just launched."""
    tx.timer(tx.now + yard.fleet.instances.starting, "instance-start", arn, Rank.START)


def end_instance(tx: Transaction, yard: Yard, row: Row, why: Ending) -> None:
    """Begin to end an instance that is pending or running: billing stops, cleaning begins."""
    tx.drop_timers(row["arn"])
    move(
        tx, INSTANCE, row, "shutting-down", why.transition, ending_us=tx.now_us, reason_code=why.code,
        reason_message=why.message, transition_reason=why.transition,
    )  # fmt: skip
    _bill(tx, row)
    on_demand = row["reservation_id"] is None
    lasts = SHUTTING_DOWN_ON_DEMAND if on_demand else yard.fleet.instances.cleaning
    tx.timer(tx.now + lasts, "instance-cleaned", row["arn"], Rank.END)


def reclaim_block(tx: Transaction, yard: Yard, reservation_id: str) -> None:
    """End whatever runs in the block, its end being near."""
    for row in tx.all(
        "SELECT * FROM instances WHERE reservation_id = ? AND status IN ('pending', 'running')"
        " ORDER BY number",
        reservation_id,
    ):
        end_instance(tx, yard, row, _RECLAIMED)


def _start(tx: Transaction, yard: Yard, arn: str) -> None:
    move(tx, INSTANCE, _instance(tx, arn), "running", "it has started", running_us=tx.now_us)


def _cleaned(tx: Transaction, yard: Yard, arn: str) -> None:
    row = _instance(tx, arn)
    move(tx, INSTANCE, row, "terminated", "its host has been cleaned")
    if row["reservation_id"] is None:
        unbook(tx, yard.calendars, arn)
    else:
        give_back_places(tx, row["reservation_id"], 1)
    tx.timer(tx.now + SHOWN_AFTER_END, "instance-forget", arn, Rank.END)


def _forget(tx: Transaction, yard: Yard, arn: str) -> None:
    row = _instance(tx, arn)
    forget_tags(tx, row["instance_id"])
    tx.run("DELETE FROM instances WHERE arn = ?", arn)
    tx.event(arn, INSTANCE.kind, "no longer described", account_id=row["account_id"], region=row["region"])


# -- money -----------------------------------------------------------------------------------------------
def charge(rate: Money, span: timedelta) -> Money:
    """What an instance at `rate` an hour costs that ran for `span`: by the second begun, 60 seconds at least,
    rounded half up to the millionth."""
    seconds = -(-max(span, BILLED_LEAST) // timedelta(seconds=1))
    amount = rate.amount * seconds / 3600
    return Money(amount.quantize(Decimal(1) / MICROS, rounding=ROUND_HALF_UP), rate.currency)


def _bill(tx: Transaction, row: Row) -> None:
    """The on-demand hours; nothing for an instance in a block, or for one that never ran."""
    if row["usd_per_hour"] is None or row["running_us"] is None:
        return
    rate = Money(Decimal(row["usd_per_hour"]))
    span = tx.now - from_micros(row["running_us"])
    cost = charge(rate, span)
    seconds = -(-max(span, BILLED_LEAST) // timedelta(seconds=1))
    tx.insert(
        "ledger",
        at_us=tx.now_us, account_id=row["account_id"], region=row["region"], subject=row["arn"],
        kind="on-demand", amount_micros=cost.micros, currency=cost.currency,
        description=f"{row['instance_type']} on demand: {seconds} s at {rate} an hour ({row['rate_label']})",
    )  # fmt: skip


Play = Callable[[Transaction, Yard, str], None]
INSTANCE_TIMERS: Mapping[str, Play] = {
    "instance-start": _start,
    "instance-cleaned": _cleaned,
    "instance-forget": _forget,
}
