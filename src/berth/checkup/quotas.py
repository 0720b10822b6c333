"""The quotas that a need runs into: which, how much it takes, and what the account may hold. Pure.

Three kinds, each checked where it applies (field fault 37): on-demand and Spot vCPUs, vCPUs of Capacity
Blocks, and SageMaker's two, for the reserved capacity and for what runs in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.checkup.findings import Finding, State, Topic
from berth.facts.block_quotas import block_quota
from berth.facts.instance_types import instance_type
from berth.facts.quota_codes import (
    TRAINING_PLANS_CODE,
    class_words,
    cluster_usage_code,
    on_demand_code,
    quota_class,
    reserved_capacity_code,
    spot_code,
)
from berth.planner.need import Need
from berth.terms.ways import Target

EC2, SAGEMAKER = "ec2", "sagemaker"
# What SageMaker calls the quota of what runs (console names; guide "training plan quotas", read 2026-11).
_USAGE = {
    Target.ENDPOINT: "endpoint usage",
    Target.TRAINING_JOB: "training job usage",
    Target.HYPERPOD_CLUSTER: "cluster usage",
}
_OPEN = frozenset({"PENDING", "CASE_OPENED"})


@dataclass(frozen=True, slots=True)
class QuotaAsked:
    """One quota of one Region. `code` is None where only its name is known, as AWS shows it. `wanted` is what
    this need takes of it, in `unit`; None where that is not known. `only_for` names the way that it limits
    when the need can do without; '' when it cannot."""

    region: str
    service: str
    code: str | None
    name: str
    wanted: int | None
    unit: str
    only_for: str = ""


@dataclass(frozen=True, slots=True)
class QuotaSeen:
    """What Service Quotas said. `value` None: not known, and `trouble` says why. `is_default`: the account
    has none of its own, so the default holds. `pending` are open requests: (value asked for, status)."""

    asked: QuotaAsked
    code: str | None
    value: float | None
    is_default: bool = False
    pending: tuple[tuple[float, str], ...] = ()
    trouble: str = ""


def quotas_of(need: Need, region: str) -> tuple[QuotaAsked, ...]:
    """Every quota that the need runs into there, for each type that would do."""
    asked: list[QuotaAsked] = []
    for one in need.types:
        if need.target is Target.INSTANCES:
            asked += _of_instances(one.instance_type, one.count, region)
        else:
            asked += _of_sagemaker(one.instance_type, one.count, need.target, region)
    return tuple(dict.fromkeys(asked))


def _of_instances(name: str, count: int, region: str) -> list[QuotaAsked]:
    kind, block = instance_type(name), block_quota(name)
    vcpus = kind.vcpus * count if kind is not None and kind.vcpus else None
    sold = kind is None or kind.capacity_block
    found = []
    if sold:
        family = block.family if block is not None else name.partition(".")[0]
        code = block.code if block is not None else None
        found.append(QuotaAsked(region, EC2, code, f"{family} Capacity Blocks", vcpus, "vCPU"))
    group = quota_class(name)
    shown = class_words(group)
    other = "on demand" if sold else ""
    found.append(
        QuotaAsked(
            region,
            EC2,
            on_demand_code(group),
            f"Running On-Demand {shown} instances",
            vcpus,
            "vCPU",
            other,
        )
    )
    if kind is None or kind.spot:
        label = f"All {shown} Spot Instance Requests"
        found.append(QuotaAsked(region, EC2, spot_code(group), label, vcpus, "vCPU", "Spot"))
    return found


def _of_sagemaker(name: str, count: int, target: Target, region: str) -> list[QuotaAsked]:
    reserved = f"Number of {name} instances in reserved capacity across training plans per Region"
    found = [
        QuotaAsked(region, SAGEMAKER, TRAINING_PLANS_CODE, "Number of training plans per Region", 1, "plan"),
        QuotaAsked(region, SAGEMAKER, reserved_capacity_code(name), reserved, count, "instance"),
    ]
    if target in _USAGE:
        code = cluster_usage_code(name) if target is Target.HYPERPOD_CLUSTER else None
        found.append(QuotaAsked(region, SAGEMAKER, code, f"{name} for {_USAGE[target]}", count, "instance"))
    return found


def quota_findings(seen: Sequence[QuotaSeen]) -> list[Finding]:
    """One line a quota and Region."""
    return [_finding(one) for one in seen]


def _finding(seen: QuotaSeen) -> Finding:
    asked = seen.asked
    what = f"{asked.region} {seen.code or 'code unknown'}"
    facts = _facts(seen)
    if seen.value is None:
        said = f"{asked.name}: not known ({seen.trouble or 'no answer'})"
        return Finding(Topic.QUOTAS, State.UNKNOWN, what, f"{said}{_takes(asked)}", _where(seen), facts)
    held = f"{_number(seen.value)}{' (AWS default)' if seen.is_default else ''}"
    said = f"{asked.name}: {held}{_takes(asked)}{_waiting(seen)}"
    if asked.wanted is None:
        return Finding(Topic.QUOTAS, State.UNKNOWN, what, said, _where(seen), facts)
    if seen.value >= asked.wanted:
        return Finding(Topic.QUOTAS, State.OK, what, said, None, facts)
    todo = _request(seen)
    if asked.only_for:
        return Finding(
            Topic.QUOTAS, State.WARNING, what, f"{said}; limits {asked.only_for} alone", todo, facts
        )
    return Finding(Topic.QUOTAS, State.MISSING, what, said, todo, facts)


def _number(value: float) -> str:
    """1,152 of 1152.0, as AWS's values are whole but for very few."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,}"


def _takes(asked: QuotaAsked) -> str:
    if asked.wanted is None:
        return "; how much the need takes is not known"
    plural = "" if asked.wanted == 1 or asked.unit == "vCPU" else "s"
    return f"; the need takes {asked.wanted} {asked.unit}{plural}"


def _waiting(seen: QuotaSeen) -> str:
    said = [
        f"{_number(value)} asked for already ({status})" for value, status in seen.pending if status in _OPEN
    ]
    if seen.trouble:
        said.append(f"open requests not known ({seen.trouble})")
    return f"; {', '.join(said)}" if said else ""


def _request(seen: QuotaSeen) -> str:
    """The command that asks for more; where enough is asked for already, the one that shows how it stands."""
    asked, wanted = seen.asked, seen.asked.wanted or 0
    base = f"--region {asked.region} --service-code {asked.service} --quota-code {seen.code}"
    if any(value >= wanted and status in _OPEN for value, status in seen.pending):
        return f"aws service-quotas list-requested-service-quota-change-history-by-quota {base}"
    return f"aws service-quotas request-service-quota-increase {base} --desired-value {wanted}"


def _where(seen: QuotaSeen) -> str:
    asked = seen.asked
    base = f"--region {asked.region} --service-code {asked.service}"
    if seen.code is not None:
        return f"aws service-quotas get-service-quota {base} --quota-code {seen.code}"
    return f'look for "{asked.name}" in: aws service-quotas list-service-quotas {base}'


def _facts(seen: QuotaSeen) -> Mapping[str, Any]:
    asked = seen.asked
    return {
        "region": asked.region,
        "service": asked.service,
        "code": seen.code,
        "name": asked.name,
        "value": seen.value,
        "is_default": seen.is_default,
        "wanted": asked.wanted,
        "unit": asked.unit,
        "only_for": asked.only_for or None,
        "pending": [{"value": value, "status": status} for value, status in seen.pending],
    }
