"""Training plans: search, buy, describe, list. What happens to a plan by itself is in `plan_life`."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from berth.terms.instants import from_micros, to_micros
from berth.terms.money import Money
from berth.terms.ways import Target
from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.faults import FaultKind
from berth.yard.fleet.pools import SAGEMAKER
from berth.yard.market.admission import Granted, Reason, Refused, admit_plan
from berth.yard.market.bookings import book
from berth.yard.market.offering_ids import UnknownOffering, decode_offering, encode_offering
from berth.yard.market.plan_offerings import PlanOffering, search_plan_offerings
from berth.yard.market.plan_query import PlanQuery
from berth.yard.services.arns import sagemaker_arn
from berth.yard.services.effective_quotas import effective_quotas
from berth.yard.services.extensions import end_seen
from berth.yard.services.lag import horizon_us, status_seen
from berth.yard.services.operation import Call, reads, writes
from berth.yard.services.paging import page
from berth.yard.services.sagemaker.plan_extensions import search_extensions
from berth.yard.services.sagemaker.plan_life import begin_plan
from berth.yard.services.sagemaker.plan_use import PLAN_WITH_USE
from berth.yard.services.sagemaker.quotas import plan_holdings
from berth.yard.services.sagemaker.tags import tag
from berth.yard.store.transaction import Reading, Row, Transaction, Value

_SORTS = {"TrainingPlanName": "name", "StartTime": "start_us", "Status": "status"}
_MINUTE = timedelta(minutes=1)


def plan_arn(call: Call, name: str) -> str:
    """The ARN that a plan of this name has."""
    return sagemaker_arn(call.region, call.account.account_id, "training-plan", name)


# -- search ----------------------------------------------------------------------------------------------
@reads("sagemaker", "SearchTrainingPlanOfferings")
def search(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """At most three continuous offerings, best first. Writes nothing: the id carries the offer."""
    params = call.params
    if params.get("TrainingPlanArn"):
        return search_extensions(call, yard, rows)
    if params.get("UltraServerType") or params.get("UltraServerCount"):
        raise ServiceError(
            "ValidationException", "UltraServers are sold through an account manager, not by a search."
        )
    query = PlanQuery(
        instance_type=params.get("InstanceType"),
        count=params.get("InstanceCount"),
        duration_hours=params.get("DurationHours"),
        targets=tuple(Target(word) for word in params.get("TargetResources", ["training-job"])),
        start_after=params.get("StartTimeAfter"),
        end_before=params.get("EndTimeBefore"),
    )
    found = search_plan_offerings(
        query, region=call.region, now=call.now, fleet=yard.fleet, calendars=yard.calendars,
        rate_factor=_rate_factor(call, yard),
        quotas=effective_quotas(yard.fleet, rows, call.account.account_id, call.region),
    )  # fmt: skip
    return {"TrainingPlanOfferings": [_offering_shape(call, yard, offering) for offering in found]}


def _rate_factor(call: Call, yard: Yard) -> Decimal:
    fault = yard.faults.standing(FaultKind.PRICE_CHANGE, call.operation, call.account.account_id)
    return Decimal(fault.amount or "1.15") if fault is not None else Decimal(1)


def _offering_shape(call: Call, yard: Yard, offering: PlanOffering) -> dict[str, Any]:
    hours, minutes = offering.hours_and_minutes
    names = yard.zone_names(call.account.account_id, call.region)
    shape: dict[str, Any] = {
        "TrainingPlanOfferingId": encode_offering(
            offering.terms, key=yard.offering_key, account_id=call.account.account_id, region=call.region
        ),
        "TargetResources": [target.value for target in offering.targets],
        "DurationHours": hours,
        "DurationMinutes": minutes,
        "UpfrontFee": fee_text(offering.fee),
        "CurrencyCode": offering.fee.currency,
        "ReservedCapacityOfferings": [
            {
                "ReservedCapacityType": "Instance",
                "InstanceType": offering.instance_type,
                "InstanceCount": offering.count,
                "AvailabilityZone": names.name(offering.zone_id),
                "DurationHours": hours,
                "DurationMinutes": minutes,
                "StartTime": offering.window.start,
                "EndTime": offering.window.end,
            }
        ],
    }
    for member, wanted in (
        ("RequestedStartTimeAfter", "StartTimeAfter"),
        ("RequestedEndTimeBefore", "EndTimeBefore"),
    ):
        if wanted in call.params:
            shape[member] = call.params[wanted]
    return shape


def fee_text(fee: Money) -> str:
    """`UpfrontFee` is a decimal text of the whole fee, with cents."""
    return f"{fee.amount:.2f}"


# -- buy -------------------------------------------------------------------------------------------------
@writes("sagemaker", "CreateTrainingPlan")
def create_training_plan(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Takes the hosts now; the fee is paid, and billed, `payment_delay` later.

    There is no idempotency token, on AWS or here: only the name keeps a second call from buying again.
    """
    params = call.params
    name = params["TrainingPlanName"]
    if params.get("SpareInstanceCountPerUltraServer"):
        raise ServiceError("ValidationException", "Spare instances exist for UltraServers only.")
    arn = plan_arn(call, name)
    if tx.one("SELECT 1 FROM training_plans WHERE arn = ?", arn) is not None:
        raise ServiceError("ResourceInUse", f'Training plan "{arn}" already exists.')
    granted = _admit(call, yard, tx)
    window, fee = granted.window, granted.fee
    tx.insert(
        "training_plans",
        arn=arn, account_id=call.account.account_id, region=call.region, name=name, status="Pending",
        status_message="Payment is being processed.", instance_type=granted.instance_type,
        targets=",".join(target.value for target in granted.terms.targets), count=granted.terms.count,
        pool=granted.pool.key, zone_id=granted.pool.zone_id, start_us=to_micros(window.start),
        end_us=to_micros(window.end), fee_micros=fee.micros, currency=fee.currency,
        offering_id=params["TrainingPlanOfferingId"], created_us=tx.now_us,
    )  # fmt: skip
    book(
        tx, yard.calendars, pool=granted.pool.key, face=SAGEMAKER, window=window,
        count=granted.terms.count, holder=arn,
    )  # fmt: skip
    tag(tx, arn, params.get("Tags", []))
    tx.event(
        arn, "training-plan", f"bought for {fee}",
        account_id=call.account.account_id, region=call.region, to_state="Pending",
    )  # fmt: skip
    begin_plan(tx, yard, arn)
    return {"TrainingPlanArn": arn}


def _admit(call: Call, yard: Yard, tx: Transaction) -> Granted:
    offering_id = call.params["TrainingPlanOfferingId"]
    terms = decode_offering(
        offering_id, key=yard.offering_key, account_id=call.account.account_id, region=call.region
    )
    if yard.faults.take(FaultKind.GONE, call.operation, call.account.account_id):
        raise Refused(Reason.GONE, "The training plan offering is no longer available. Search again.").error()
    pool = None if isinstance(terms, UnknownOffering) else yard.fleet.pools.get(terms.pool_key)
    instance_type = pool.faces[SAGEMAKER].instance_type if pool and SAGEMAKER in pool.faces else ""
    decision = admit_plan(
        terms, region=call.region, now=tx.now, fleet=yard.fleet, calendars=yard.calendars,
        holdings=plan_holdings(call, tx, instance_type),
        quotas=effective_quotas(yard.fleet, tx, call.account.account_id, call.region),
    )  # fmt: skip
    if isinstance(decision, Refused):
        raise decision.error()
    return decision


# -- look ------------------------------------------------------------------------------------------------
@reads("sagemaker", "DescribeTrainingPlan")
def describe_training_plan(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """By name, as on AWS. Raises ResourceNotFound."""
    name = call.params["TrainingPlanName"]
    row = rows.one(
        f"SELECT {PLAN_WITH_USE} FROM training_plans"  # noqa: S608 - a literal
        " WHERE account_id = ? AND region = ? AND name = ? AND created_us <= ?",
        call.account.account_id, call.region, name, horizon_us(call),
    )  # fmt: skip
    if row is None:
        raise ServiceError("ResourceNotFound", f'Training plan "{plan_arn(call, name)}" does not exist.')
    return {
        **_summary(call, yard, rows, row),
        "UnhealthyInstanceCount": 0,
        "AvailableSpareInstanceCount": 0,
    }


def _summary(call: Call, yard: Yard, rows: Reading, row: Row) -> dict[str, Any]:
    """`row` has the columns of PLAN_WITH_USE."""
    status = status_seen(call, rows, row)
    end_us = end_seen(call, rows, row)
    hours, minutes = divmod((end_us - row["start_us"]) // 60_000_000, 60)
    active = status == "Active"
    used = row["in_use"] if active else 0
    start, end = from_micros(row["start_us"]), from_micros(end_us)
    zone = yard.zone_names(call.account.account_id, call.region).name(row["zone_id"])
    # The row's message is that of its present state, which a lagging read does not see yet.
    message = {"StatusMessage": row["status_message"]} if status == row["status"] else {}
    return {
        "TrainingPlanArn": row["arn"],
        "TrainingPlanName": row["name"],
        "Status": status,
        **message,
        "DurationHours": hours,
        "DurationMinutes": minutes,
        "StartTime": start,
        "EndTime": end,
        "UpfrontFee": fee_text(Money.from_micros(row["fee_micros"], row["currency"])),
        "CurrencyCode": row["currency"],
        "TotalInstanceCount": row["count"],
        "AvailableInstanceCount": row["count"] - used if active and not row["reclaimed"] else 0,
        "InUseInstanceCount": used,
        "TargetResources": row["targets"].split(","),
        "ReservedCapacitySummaries": [
            {
                "ReservedCapacityArn": sagemaker_arn(
                    call.region, call.account.account_id, "reserved-capacity", f"{row['name']}-rc1"
                ),
                "ReservedCapacityType": "Instance",
                "InstanceType": row["instance_type"],
                "TotalInstanceCount": row["count"],
                "Status": status,
                "AvailabilityZone": zone,
                "DurationHours": hours,
                "DurationMinutes": minutes,
                "StartTime": start,
                "EndTime": end,
            }
        ],
    }


@reads("sagemaker", "ListTrainingPlans")
def list_training_plans(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """All states. AWS's default order is not known: here by start, the latest first."""
    params = call.params
    where = ["account_id = ?", "region = ?", "created_us <= ?"]
    values: list[Value] = [call.account.account_id, call.region, horizon_us(call)]
    for member, clause in (("StartTimeAfter", "start_us >= ?"), ("StartTimeBefore", "start_us <= ?")):
        if member in params:
            where.append(clause)
            values.append(to_micros(params[member]))
    for wanted in params.get("Filters", ()):
        where.append("status = ?")
        values.append(wanted["Value"])
    found, token = page(
        rows, params, scope="training-plans", table="training_plans", columns=PLAN_WITH_USE,
        where=where, values=values,
        sort_column=_SORTS[params.get("SortBy", "StartTime")],
        descending=params.get("SortOrder", "Descending") == "Descending",
    )  # fmt: skip
    answer: dict[str, Any] = {"TrainingPlanSummaries": [_summary(call, yard, rows, row) for row in found]}
    if token:
        answer["NextToken"] = token
    return answer
