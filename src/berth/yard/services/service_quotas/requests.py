"""Requests to raise a quota, and what becomes of them: granted up to the fleet file's most, else denied.

PENDING --decision--> APPROVED, which holds at once
   `----------------> DENIED
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from berth.terms.instants import from_micros
from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.fleet.fleet import QuotaKind
from berth.yard.lifecycle.moves import QUOTA_REQUEST, move
from berth.yard.lifecycle.timers import Rank
from berth.yard.services.arns import partition_of
from berth.yard.services.effective_quotas import effective_quotas
from berth.yard.services.lag import horizon_us, status_seen
from berth.yard.services.operation import Call, reads, writes
from berth.yard.services.service_quotas.catalogue import SERVICE_NAMES, ListedQuota, listed_quotas
from berth.yard.services.service_quotas.paging import page_of
from berth.yard.services.service_quotas.quotas import (
    ACCOUNT_LEVEL,
    ANY_LEVEL,
    SERVICE,
    check_service,
    find_quota,
    quota_arn,
)
from berth.yard.store.transaction import Reading, Row, Transaction

DECISION = "quota-decision"
PENDING = "PENDING"


# -- ask -------------------------------------------------------------------------------------------------
@writes(SERVICE, "RequestServiceQuotaIncrease")
def request_service_quota_increase(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Kept as PENDING until its timer decides. There is one open request a quota: a second one is refused."""
    quota = find_quota(yard.fleet, call.params)
    owner, region = call.account.account_id, call.region
    desired = _desired(call, yard, tx, quota)
    request_id = tx.ids.hex(32)
    arn = f"arn:{partition_of(region)}:servicequotas:{region}:{owner}:request/{request_id}"
    number = tx.insert(
        "quota_requests",
        request_id=request_id, arn=arn, account_id=owner, region=region, kind=quota.kind.value,
        name=quota.key, service_code=quota.service, quota_code=quota.code, desired=desired, status=PENDING,
        created_us=tx.now_us, updated_us=tx.now_us,
    )  # fmt: skip
    tx.event(
        arn, QUOTA_REQUEST.kind, f"{quota.label}: {desired} asked for",
        account_id=owner, region=region, to_state=PENDING,
    )  # fmt: skip
    tx.timer(tx.now + yard.fleet.quota_increases.delay, DECISION, arn, Rank.END)
    row = tx.one("SELECT * FROM quota_requests WHERE number = ?", number)
    assert row is not None
    return {"RequestedQuota": _shape(call, tx, row, listed_quotas(yard.fleet))}


def _desired(call: Call, yard: Yard, tx: Transaction, quota: ListedQuota) -> int:
    """The value asked for. Raises IllegalArgumentException, ResourceAlreadyExistsException."""
    value = call.params["DesiredValue"]
    if value != int(value):
        raise ServiceError("IllegalArgumentException", "The desired value must be a whole number.")
    limits = effective_quotas(yard.fleet, tx, call.account.account_id, call.region)
    present = limits.of(quota.kind, quota.key)
    if value <= present:
        raise ServiceError(
            "IllegalArgumentException",
            f"The desired value must be greater than the current value of the quota, which is {present}.",
        )
    open_one = tx.one(
        "SELECT 1 FROM quota_requests WHERE account_id = ? AND region = ? AND kind = ? AND name = ?"
        " AND status = 'PENDING'",
        call.account.account_id, call.region, quota.kind.value, quota.key,
    )  # fmt: skip
    if open_one is not None:
        raise ServiceError(
            "ResourceAlreadyExistsException",
            "Only one open service quota increase request is allowed per quota.",
        )
    return int(value)


# -- decide ----------------------------------------------------------------------------------------------
def _decide(tx: Transaction, yard: Yard, arn: str) -> None:
    row = tx.one("SELECT * FROM quota_requests WHERE arn = ?", arn)
    assert row is not None, f"a timer of a request that does not exist: {arn}"
    granted = yard.fleet.quota_increases.grants(QuotaKind(row["kind"]), row["desired"])
    status, why = ("APPROVED", "granted") if granted else ("DENIED", "more than the fleet file grants")
    move(tx, QUOTA_REQUEST, row, status, why, updated_us=tx.now_us)


QUOTA_TIMERS: Mapping[str, Callable[[Transaction, Yard, str], None]] = {DECISION: _decide}


# -- look ------------------------------------------------------------------------------------------------
@reads(SERVICE, "GetRequestedServiceQuotaChange")
def get_requested_service_quota_change(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """One request of the account in the Region. Raises NoSuchResourceException."""
    row = rows.one(
        "SELECT * FROM quota_requests WHERE request_id = ? AND account_id = ? AND region = ?"
        " AND created_us <= ?",
        call.params["RequestId"], call.account.account_id, call.region, horizon_us(call),
    )  # fmt: skip
    if row is None:
        raise ServiceError(
            "NoSuchResourceException", f"The request {call.params['RequestId']} does not exist."
        )
    return {"RequestedQuota": _shape(call, rows, row, listed_quotas(yard.fleet))}


@reads(SERVICE, "ListRequestedServiceQuotaChangeHistory")
def list_requested_service_quota_change_history(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """The account's requests in the Region, newest first; of one service or status if so asked."""
    return _history(call, yard, rows)


@reads(SERVICE, "ListRequestedServiceQuotaChangeHistoryByQuota")
def list_requested_service_quota_change_history_by_quota(
    call: Call, yard: Yard, rows: Reading
) -> dict[str, Any]:
    """Those about one quota. Raises NoSuchResourceException for one that does not exist."""
    find_quota(yard.fleet, call.params)
    return _history(call, yard, rows)


def _history(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    params = call.params
    if "ServiceCode" in params:
        check_service(params["ServiceCode"])
    asked = [params.get(name) for name in ("ServiceCode", "QuotaCode", "Status")]
    level = params.get("QuotaRequestedAtLevel", ANY_LEVEL)
    known = rows.all(
        "SELECT * FROM quota_requests WHERE account_id = ? AND region = ? AND created_us <= ?"
        " ORDER BY number DESC",
        call.account.account_id, call.region, horizon_us(call),
    )  # fmt: skip
    found = [
        row
        for row in known
        if level in (ACCOUNT_LEVEL, ANY_LEVEL)
        and asked[0] in (None, row["service_code"])
        and asked[1] in (None, row["quota_code"])
        and asked[2] in (None, status_seen(call, rows, row))
    ]
    shown, more = page_of(call, found, f"{asked}/{level}", lambda row: int(row["number"]))
    listed = listed_quotas(yard.fleet)
    return {"RequestedQuotas": [_shape(call, rows, row, listed) for row in shown], **more}


def _shape(
    call: Call, rows: Reading, row: Row, listed: Mapping[tuple[str, str], ListedQuota]
) -> dict[str, Any]:
    """The request; without QuotaName where the fleet file lacks the quota by now."""
    account, status = call.account, status_seen(call, rows, row)
    updated = row["updated_us"] if status == row["status"] else row["created_us"]
    quota = ListedQuota(row["service_code"], row["quota_code"], "", QuotaKind(row["kind"]), row["name"])
    known = listed.get((quota.service, quota.code))
    caller = f"arn:{partition_of(call.region)}:iam::{account.account_id}:user/{account.name}"
    shape = {
        "Id": row["request_id"],
        "ServiceCode": quota.service,
        "ServiceName": SERVICE_NAMES[quota.service],
        "QuotaCode": quota.code,
        "DesiredValue": float(row["desired"]),
        "Status": status,
        "Created": from_micros(row["created_us"]),
        "LastUpdated": from_micros(updated),
        "Requester": json.dumps({"accountId": account.account_id, "callerArn": caller}),
        "QuotaArn": quota_arn(call.region, account.account_id, quota),
        "GlobalQuota": False,
        "Unit": "None",
        "QuotaRequestedAtLevel": ACCOUNT_LEVEL,
    }
    return shape if known is None else {**shape, "QuotaName": known.label}
