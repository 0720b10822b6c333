"""Services, quotas and their values: what the account may hold now, and what it may by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.fleet.fleet import Fleet, Quotas
from berth.yard.services.arns import partition_of
from berth.yard.services.effective_quotas import effective_quotas
from berth.yard.services.lag import horizon_us
from berth.yard.services.operation import Call, reads
from berth.yard.services.service_quotas.catalogue import SERVICE_NAMES, ListedQuota, listed_quotas
from berth.yard.services.service_quotas.paging import page_of
from berth.yard.store.transaction import Reading

SERVICE = "service-quotas"
ACCOUNT_LEVEL, ANY_LEVEL = "ACCOUNT", "ALL"


def check_service(code: str) -> None:
    """Raises NoSuchResourceException for a service that has no quotas here."""
    if code not in SERVICE_NAMES:
        raise ServiceError("NoSuchResourceException", f"The service {code} does not exist.")


def find_quota(fleet: Fleet, params: Mapping[str, Any]) -> ListedQuota:
    """The quota that ServiceCode and QuotaCode name.

    Raises NoSuchResourceException where there is none, and IllegalArgumentException for a ContextId: no quota
    here is applied to single resources.
    """
    check_service(params["ServiceCode"])
    found = listed_quotas(fleet).get((params["ServiceCode"], params["QuotaCode"]))
    if found is None:
        raise ServiceError(
            "NoSuchResourceException",
            f"The quota {params['QuotaCode']} of the service {params['ServiceCode']} does not exist.",
        )
    if params.get("ContextId"):
        raise ServiceError("IllegalArgumentException", "The quota has no context: it is the account's.")
    return found


def quota_arn(region: str, account_id: str, quota: ListedQuota) -> str:
    """`arn:aws:servicequotas:us-east-1:111122223333:ec2/L-417A185B`; a default one names no account."""
    return f"arn:{partition_of(region)}:servicequotas:{region}:{account_id}:{quota.service}/{quota.code}"


def _shape(region: str, account_id: str, quota: ListedQuota, limits: Quotas) -> dict[str, Any]:
    return {
        "ServiceCode": quota.service,
        "ServiceName": SERVICE_NAMES[quota.service],
        "QuotaArn": quota_arn(region, account_id, quota),
        "QuotaCode": quota.code,
        "QuotaName": quota.label,
        "Value": float(limits.of(quota.kind, quota.key)),
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
        "QuotaAppliedAtLevel": ACCOUNT_LEVEL,
    }


def _present(call: Call, yard: Yard, rows: Reading) -> Quotas:
    return effective_quotas(yard.fleet, rows, call.account.account_id, call.region, until_us=horizon_us(call))


@reads(SERVICE, "ListServices")
def list_services(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """The services that have quotas here, in the order of their codes."""
    found, more = page_of(call, sorted(SERVICE_NAMES), "", lambda code: code)
    return {
        "Services": [{"ServiceCode": code, "ServiceName": SERVICE_NAMES[code]} for code in found],
        **more,
    }


def _quotas_of(call: Call, yard: Yard) -> tuple[list[ListedQuota], dict[str, str]]:
    """One page of the quotas of a service, in the order of their codes."""
    params = call.params
    service, code = params["ServiceCode"], params.get("QuotaCode")
    check_service(service)
    level = params.get("QuotaAppliedAtLevel", ANY_LEVEL)
    found = [
        one
        for one in listed_quotas(yard.fleet).values()
        if one.service == service and code in (None, one.code) and level in (ACCOUNT_LEVEL, ANY_LEVEL)
    ]
    return page_of(call, found, f"{service}/{code}/{level}", lambda one: one.code)


@reads(SERVICE, "ListServiceQuotas")
def list_service_quotas(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """What the account may hold in the Region, with what it was granted."""
    found, more = _quotas_of(call, yard)
    limits, owner = _present(call, yard, rows), call.account.account_id
    return {"Quotas": [_shape(call.region, owner, one, limits) for one in found], **more}


@reads(SERVICE, "GetServiceQuota")
def get_service_quota(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """One of them."""
    quota = find_quota(yard.fleet, call.params)
    limits = _present(call, yard, rows)
    return {"Quota": _shape(call.region, call.account.account_id, quota, limits)}


@reads(SERVICE, "ListAWSDefaultServiceQuotas")
def list_aws_default_service_quotas(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """The fleet file's values, whatever the account was granted."""
    found, more = _quotas_of(call, yard)
    return {"Quotas": [_shape(call.region, "", one, yard.fleet.quotas) for one in found], **more}


@reads(SERVICE, "GetAWSDefaultServiceQuota")
def get_aws_default_service_quota(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """One of them."""
    quota = find_quota(yard.fleet, call.params)
    return {"Quota": _shape(call.region, "", quota, yard.fleet.quotas)}
