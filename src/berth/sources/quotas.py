"""Quotas of an account: values by code or by name, and what runs against EC2's now. Raises nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from berth.aws.refusals import CALL_ERRORS, Kind, Refusal, refusal_of
from berth.facts.quota_codes import quota_class, sharing
from berth.planner.hourly_quotas import EC2, HourlyQuota, vcpus_of
from berth.sources.reading import every_page, mappings, text, whole
from berth.terms.text import plain
from berth.terms.ways import Way

_RUNNING = ("pending", "running")
_NOT_COUNTED = "what runs now is not known"
_BY_LIFECYCLE = {None: Way.ON_DEMAND, "spot": Way.SPOT}


@dataclass(frozen=True, slots=True)
class QuotaValue:
    """A quota's value; None: not known, and `trouble` says why. `is_default`: the account has none of its
    own, so AWS's default holds."""

    value: float | None
    is_default: bool = False
    trouble: str = ""


def quota_value(client: Any, service: str, code: str) -> QuotaValue:
    """The value that holds for the account; AWS's default where it has none of its own."""
    key = {"ServiceCode": service, "QuotaCode": code}
    answer = _asked(lambda: client.get_service_quota(**key))
    is_default = isinstance(answer, Refusal) and answer.kind is Kind.NOT_FOUND
    if is_default:
        answer = _asked(lambda: client.get_aws_default_service_quota(**key))
    if isinstance(answer, Refusal):
        return QuotaValue(None, trouble=plain(str(answer), 200))
    quota = answer.get("Quota")
    value = quota.get("Value") if isinstance(quota, Mapping) else None
    if not isinstance(value, int | float) or isinstance(value, bool):
        return QuotaValue(None, trouble="an answer without a value")
    return QuotaValue(float(value), is_default)


def codes_by_name(client: Any, service: str, names: set[str]) -> tuple[dict[str, str], str]:
    """Codes of the quotas with these names, and why not all of them were read ('').

    Most codes of SageMaker's are published nowhere.
    """
    rows, stopped = every_page(client.list_service_quotas, "Quotas", ServiceCode=service, MaxResults=100)
    found = {name: code for row in rows if (name := text(row.get("QuotaName"), 256)) in names
             and (code := text(row.get("QuotaCode")))}  # fmt: skip
    return found, plain(str(stopped), 200) if stopped else ""


def hourly_quotas(
    quotas: Callable[[], Any], ec2: Callable[[], Any], asked: Sequence[HourlyQuota]
) -> tuple[HourlyQuota, ...]:
    """The quotas of one Region with their values, and with what takes them now where EC2 tells that.

    `quotas` and `ec2` make the clients. Each code is asked once, whatever number of types counts there.
    """
    client = quotas()
    unnamed = {one.service for one in asked if one.code is None}
    named = {
        service: codes_by_name(client, service, {q.name for q in asked if q.service == service})
        for service in sorted(unnamed)
    }
    values: dict[tuple[str, str], QuotaValue] = {}
    found = []
    for one in asked:
        codes, stopped = named.get(one.service, ({}, ""))
        code = one.code or codes.get(one.name)
        if code is None:
            found.append(replace(one, trouble=stopped or "Service Quotas lists none of this name"))
            continue
        if (one.service, code) not in values:
            values[one.service, code] = quota_value(client, one.service, code)
        said = values[one.service, code]
        known = None if said.value is None else int(said.value)
        found.append(replace(one, code=code, value=known, trouble=said.trouble))
    return _with_use(ec2, found)


def _with_use(ec2: Callable[[], Any], found: Sequence[HourlyQuota]) -> tuple[HourlyQuota, ...]:
    """With what runs now. SageMaker tells of no number that its quotas count."""
    counted = [one for one in found if one.service == EC2 and one.value]
    if not counted:
        return tuple(one if one.value is None else replace(one, trouble=_NOT_COUNTED) for one in found)
    classes = sorted({c for one in counted for c in sharing(quota_class(one.instance_type))})
    filters = [
        {"Name": "instance-state-name", "Values": list(_RUNNING)},
        {"Name": "instance-type", "Values": [f"{name}*" for name in classes]},
    ]
    rows, stopped = every_page(
        ec2().describe_instances, "Reservations", absent_is_empty=True, Filters=filters, MaxResults=1000
    )
    running = [row for reservation in rows for row in mappings(reservation.get("Instances"))]
    return tuple(_used(one, running, stopped) for one in found)


def _used(one: HourlyQuota, running: Iterable[Mapping[str, Any]], stopped: Refusal | None) -> HourlyQuota:
    if one.value is None:
        return one
    if one.service != EC2 or (stopped is not None and one.value):
        why = f" ({plain(str(stopped), 160)})" if stopped is not None and one.service == EC2 else ""
        return replace(one, trouble=f"{_NOT_COUNTED}{why}")
    classes = sharing(quota_class(one.instance_type))
    used = 0
    for row in running:
        kind = text(row.get("InstanceType")) or ""
        if quota_class(kind) not in classes or _BY_LIFECYCLE.get(row.get("InstanceLifecycle")) is not one.way:
            continue
        vcpus = vcpus_of(kind) or _threads(row.get("CpuOptions"))
        if vcpus is None:
            return replace(one, trouble=f"{_NOT_COUNTED}: how many vCPUs a {kind} has is not known")
        used += vcpus
    return replace(one, used=used)


def _threads(options: object) -> int | None:
    """The vCPUs that an instance says of itself."""
    if not isinstance(options, Mapping):
        return None
    cores, threads = whole(options.get("CoreCount")), whole(options.get("ThreadsPerCore"))
    return cores * threads if cores and threads else None


def _asked(call: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any] | Refusal:
    try:
        return call()
    except CALL_ERRORS as problem:
        return refusal_of(problem)
