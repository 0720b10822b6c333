"""Extensions of training plans: search, buy, history, and what happens to one by itself.

Pending --payment--> Scheduled --old end--> Active --new end--> Expired   (paid: the plan's end moves)
   `----not paid---> Failed   the plan ends when it would have
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from berth.terms.instants import from_micros
from berth.terms.money import Money
from berth.terms.window import Window
from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.faults import FaultKind
from berth.yard.fleet.pools import SAGEMAKER
from berth.yard.lifecycle.moves import PLAN_EXTENSION, move
from berth.yard.lifecycle.timers import Rank
from berth.yard.market.extension_ids import decode_plan_extension, encode_plan_extension
from berth.yard.market.extension_rules import (
    EXTENSION_HOURS,
    Extended,
    ExtensionTerms,
    bad_duration,
    on_sale,
    too_old,
    why_not_now,
)
from berth.yard.market.fees import fee
from berth.yard.market.offering_ids import UnknownOffering
from berth.yard.market.plan_rules import OFFERINGS_MAX, whole_days
from berth.yard.market.price_lists import rate_at
from berth.yard.market.window_rules import issue_minute
from berth.yard.services.arns import sagemaker_arn
from berth.yard.services.extensions import (
    FAILED,
    UNPAID,
    Kind,
    extension_of,
    fail_extension,
    pay_extension,
    take_extension,
    unpaid_extension,
)
from berth.yard.services.lag import horizon_us, status_seen
from berth.yard.services.operation import Call, reads, writes
from berth.yard.services.paging import page
from berth.yard.services.sagemaker.plan_life import arm_end
from berth.yard.services.sagemaker.plan_use import find_plan_by_arn
from berth.yard.store.transaction import Reading, Row, Transaction

BUY = "ExtendTrainingPlan"
KIND = Kind(PLAN_EXTENSION, "Pending", BUY, "plan-extension-payment")
EXTENDABLE = ("Scheduled", "Active")


# -- search ----------------------------------------------------------------------------------------------
def search_extensions(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """SearchTrainingPlanOfferings with TrainingPlanArn: `TrainingPlanOfferings` stays empty.

    Without DurationHours the three shortest are offered; AWS does not say which. Members that describe a new
    plan (type, count, times) are passed over: the plan says them.
    """
    row = find_plan_by_arn(call, rows, call.params["TrainingPlanArn"])
    if row is None:
        raise _not_found(f'Training plan "{call.params["TrainingPlanArn"]}" does not exist.')
    why = _why_not(call, rows, row)
    if why is not None:
        raise _invalid(row, why)
    asked = call.params.get("DurationHours")
    lengths = [_days(asked)] if asked is not None else [hours // 24 for hours in EXTENSION_HOURS]
    offered = [terms for days in lengths if (terms := _offered(call, yard, row, days)) is not None]
    shapes = [_offering_shape(call, yard, row, terms) for terms in offered[:OFFERINGS_MAX]]
    return {"TrainingPlanOfferings": [], "TrainingPlanExtensionOfferings": shapes}


def _days(hours: int) -> int:
    """`DurationHours` rounded up to whole days. Raises ValidationException for a length that is not sold."""
    days = whole_days(hours)
    if days * 24 not in EXTENSION_HOURS:
        raise bad_duration(hours, "ValidationException")
    return days


def _why_not(call: Call, rows: Reading, row: Row) -> str | None:
    """Why AWS would not extend the plan now; None when it would."""
    status = status_seen(call, rows, row)
    if status not in EXTENDABLE:
        return f"it is {status}"
    return why_not_now(from_micros(row["end_us"]), call.now, unpaid_extension(rows, row["arn"]) is not None)


def _invalid(row: Row, why: str) -> ServiceError:
    """AWS's code for this is not known (docs/reference/unconfirmed.md)."""
    return ServiceError("ValidationException", f'Training plan "{row["arn"]}" cannot be extended: {why}.')


def _not_found(message: str) -> ServiceError:
    return ServiceError("ResourceNotFound", message)


def _extended(yard: Yard, row: Row) -> Extended | None:
    """The plan as the market sees it; None where the fleet file no longer sells from its pool."""
    pool = yard.fleet.pools.get(row["pool"])
    if pool is None or SAGEMAKER not in pool.faces:
        return None
    window = Window(from_micros(row["start_us"]), from_micros(row["end_us"]))
    return Extended(pool, SAGEMAKER, row["count"], window)


def _offered(call: Call, yard: Yard, row: Row, days: int) -> ExtensionTerms | None:
    extended, issued_at = _extended(yard, row), issue_minute(call.now)
    if extended is None:
        return None
    rate = rate_at(yard.fleet.price_lists, issued_at, extended.pool.hardware, extended.pool.region)
    added = Window(extended.window.end, extended.window.end + timedelta(days=days))
    if rate is None or not on_sale(extended, added, call.now, yard.fleet, yard.calendars):
        return None
    fault = yard.faults.standing(FaultKind.PRICE_CHANGE, call.operation, call.account.account_id)
    factor = Decimal(fault.amount or "1.15") if fault is not None else Decimal(1)
    return ExtensionTerms(
        issued_at, days, added.start, fee(rate.usd_per_hour * factor, extended.count, added)
    )


def _offering_shape(call: Call, yard: Yard, row: Row, terms: ExtensionTerms) -> dict[str, Any]:
    account_id = call.account.account_id
    return {
        "TrainingPlanExtensionOfferingId": encode_plan_extension(
            row["name"], terms, key=yard.offering_key, account_id=account_id, region=call.region
        ),
        "AvailabilityZone": yard.zone_names(account_id, call.region).name(row["zone_id"]),
        "StartDate": terms.window.start,
        "EndDate": terms.window.end,
        "DurationHours": terms.days * 24,
        "UpfrontFee": _fee_text(terms.fee),
        "CurrencyCode": terms.fee.currency,
    }


def _fee_text(amount: Money) -> str:
    return f"{amount.amount:.2f}"


# -- buy -------------------------------------------------------------------------------------------------
@writes("sagemaker", BUY)
def extend_training_plan(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Takes the hosts now; the fee is paid, and billed, some minutes later, and the end moves then.

    There is no idempotency token, on AWS or here. A second call is refused while the first is being paid, and
    afterwards the offering is not found, since the end has moved. The fee is the one in the id.
    """
    row, terms = _read(call, yard, tx)
    why = _why_not(call, tx, row)
    if why is not None:
        raise _invalid(row, why)
    gone = _not_found("The training plan extension offering is no longer available. Search again.")
    if yard.faults.take(FaultKind.GONE, call.operation, call.account.account_id):
        raise gone
    extended = _extended(yard, row)
    if extended is None or too_old(terms, tx.now, yard.fleet):
        raise gone
    rate = rate_at(yard.fleet.price_lists, terms.issued_at, extended.pool.hardware, extended.pool.region)
    if rate is None or not on_sale(extended, terms.window, tx.now, yard.fleet, yard.calendars):
        raise gone
    offering_id = call.params["TrainingPlanExtensionOfferingId"]
    take_extension(
        tx, yard, KIND, row, name=row["name"], extended=extended, terms=terms, offering_id=offering_id
    )
    made = tx.all("SELECT * FROM extensions WHERE parent_arn = ? ORDER BY number", row["arn"])
    return {"TrainingPlanExtensions": [_extension_shape(call, yard, tx, one) for one in made]}


def _read(call: Call, yard: Yard, tx: Transaction) -> tuple[Row, ExtensionTerms]:
    """The plan and the terms of the offering. Raises ResourceNotFound for an id that is not of this account
    and Region, or whose plan ends elsewhere by now."""
    unknown = _not_found("The training plan extension offering does not exist.")
    found = decode_plan_extension(
        call.params["TrainingPlanExtensionOfferingId"], key=yard.offering_key,
        account_id=call.account.account_id, region=call.region,
    )  # fmt: skip
    if isinstance(found, UnknownOffering):
        raise unknown
    name, terms = found
    row = find_plan_by_arn(
        call, tx, sagemaker_arn(call.region, call.account.account_id, "training-plan", name)
    )
    if row is None or from_micros(row["end_us"]) != terms.old_end:
        raise unknown
    return row, terms


# -- history ---------------------------------------------------------------------------------------------
@reads("sagemaker", "DescribeTrainingPlanExtensionHistory")
def describe_extension_history(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Every extension of the plan, the oldest first, whatever became of it. Raises ResourceNotFound."""
    arn = call.params["TrainingPlanArn"]
    if find_plan_by_arn(call, rows, arn) is None:
        raise _not_found(f'Training plan "{arn}" does not exist.')
    found, token = page(
        rows, call.params, scope=f"extensions of {arn}", table="extensions",
        where=["parent_arn = ?", "created_us <= ?"], values=[arn, horizon_us(call)],
        sort_column="number", descending=False,
    )  # fmt: skip
    shapes = [_extension_shape(call, yard, rows, row) for row in found]
    return {"TrainingPlanExtensions": shapes} | ({"NextToken": token} if token else {})


def _extension_shape(call: Call, yard: Yard, rows: Reading, row: Row) -> dict[str, Any]:
    status = status_seen(call, rows, row)
    return {
        "TrainingPlanExtensionOfferingId": row["offering_id"],
        "ExtendedAt": from_micros(row["created_us"]),
        "StartDate": from_micros(row["start_us"]),
        "EndDate": from_micros(row["end_us"]),
        "Status": status,
        "PaymentStatus": _payment_status(status),
        "AvailabilityZone": yard.zone_names(call.account.account_id, call.region).name(row["zone_id"]),
        "AvailabilityZoneId": row["zone_id"],
        "DurationHours": (row["end_us"] - row["start_us"]) // 3_600_000_000,
        "UpfrontFee": _fee_text(Money.from_micros(row["fee_micros"], row["currency"])),
        "CurrencyCode": row["currency"],
    }


def _payment_status(status: str) -> str:
    """`Pending` and `Completed` are in the guide's samples; the word for the third is ours."""
    if status in UNPAID:
        return "Pending"
    return "Failed" if status in FAILED else "Completed"


# -- by itself -------------------------------------------------------------------------------------------
def _pay(tx: Transaction, yard: Yard, arn: str) -> None:
    row = extension_of(tx, arn)
    plan = pay_extension(tx, KIND, row, "Scheduled")
    arm_end(tx, plan)
    tx.timer(from_micros(row["start_us"]), "plan-extension-start", arn, Rank.START)
    tx.timer(from_micros(row["end_us"]), "plan-extension-end", arn, Rank.END)


def _fail(tx: Transaction, yard: Yard, arn: str) -> None:
    fail_extension(tx, yard, KIND, extension_of(tx, arn), "Failed")


def _start(tx: Transaction, yard: Yard, arn: str) -> None:
    move(tx, PLAN_EXTENSION, extension_of(tx, arn), "Active", "its window began")


def _end(tx: Transaction, yard: Yard, arn: str) -> None:
    move(tx, PLAN_EXTENSION, extension_of(tx, arn), "Expired", "its window ended")


Play = Callable[[Transaction, Yard, str], None]
PLAN_EXTENSION_TIMERS: Mapping[str, Play] = {
    "plan-extension-payment": _pay,
    "plan-extension-payment-failure": _fail,
    "plan-extension-start": _start,
    "plan-extension-end": _end,
}
