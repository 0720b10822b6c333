"""Quotas of the ways that are paid by the hour: which bounds a type, and how many instances it leaves. Pure.

EC2 counts vCPUs of running instances by class, on demand and Spot apart, and with on demand what an On-Demand
Capacity Reservation holds (EC2 user guide, "instance type quotas" and "On-Demand Capacity Reservations", read
2026-11); instances in Capacity Blocks do not count there. SageMaker counts instances by type and by what
runs. A quota that was not read is not known, which is neither none nor without limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from berth.facts.instance_types import instance_type
from berth.facts.quota_codes import (
    class_words,
    cluster_usage_code,
    on_demand_code,
    quota_class,
    sharing,
    spot_code,
)
from berth.planner.need import Need
from berth.planner.owned import Owned
from berth.terms.ways import Target, Way

EC2, SAGEMAKER = "ec2", "sagemaker"
BY_THE_HOUR = frozenset({Way.ON_DEMAND, Way.SPOT, Way.SAGEMAKER_ON_DEMAND})
NOT_READ = "not read"
# What SageMaker calls the quota of what runs (console names; guide "training plan quotas", read 2026-11).
_USAGE = {
    Target.ENDPOINT: "endpoint usage",
    Target.TRAINING_JOB: "training job usage",
    Target.HYPERPOD_CLUSTER: "cluster usage",
}
# Sizes of EC2's standard families since their fourth generation: 4 vCPUs an xlarge (EC2 type pages, 2026-11).
_STANDARD_SIZE = re.compile(r"[acdhimrtz][4-9][a-z0-9-]*\.(\d*)(xlarge|large)")


@dataclass(frozen=True, slots=True)
class HourlyQuota:
    """The quota that bounds `way` for a type, as the need names it, in one Region.

    `code` is None where only AWS's `name` of it is known. `unit` is what is counted (`vCPU`, `instance`),
    `each` how much of it one instance takes (None: not known). `value` is the quota and `used` what takes it
    now, both in `unit`; None: not known, and `trouble` says why.
    """

    way: Way
    region: str
    instance_type: str
    service: str
    code: str | None
    name: str
    unit: str
    each: int | None
    value: int | None = None
    used: int | None = None
    trouble: str = NOT_READ

    @property
    def instances(self) -> int | None:
        """How many more may run at once, as far as is known: what runs now counts where it is known. None:
        the quota, or what an instance takes of it, is not known."""
        if self.value is None or not self.each:
            return None
        return max(self.value - (self.used or 0), 0) // self.each

    def takes(self, instances: int) -> str:
        """What so many instances take: `384 vCPU`; the instances where what one takes is not known."""
        if not self.each or self.unit == "instance":
            return f"{instances} {'instance' if instances == 1 else 'instances'}"
        return f"{instances * self.each:,} {self.unit}"

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "way": self.way.value,
            "region": self.region,
            "instance_type": self.instance_type,
            "service": self.service,
            "code": self.code,
            "name": self.name,
            "unit": self.unit,
            "each": self.each,
            "value": self.value,
            "used": self.used,
            "trouble": self.trouble,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> HourlyQuota:
        """The quota that `to_json` wrote."""
        return cls(
            Way(value["way"]),
            value["region"],
            value["instance_type"],
            value["service"],
            value["code"],
            value["name"],
            value["unit"],
            value["each"],
            value["value"],
            value["used"],
            value["trouble"],
        )


def quotas_asked(need: Need, ways: Set[Way], region: str) -> tuple[HourlyQuota, ...]:
    """The quotas of all parts and types of the need for those of `ways` that are paid by the hour; no value
    is known yet."""
    asked: list[HourlyQuota] = []
    for part in need.parts:
        for kind in part.types:
            asked += _of_type(kind.instance_type, part.target, ways & BY_THE_HOUR, region)
    return tuple(dict.fromkeys(asked))


def _of_type(name: str, target: Target, ways: Set[Way], region: str) -> Iterable[HourlyQuota]:
    if target is Target.INSTANCES:
        group = quota_class(name)
        words, each = class_words(group), vcpus_of(name)
        if Way.ON_DEMAND in ways:
            called = f"Running On-Demand {words} instances"
            yield HourlyQuota(
                Way.ON_DEMAND,
                region,
                name,
                EC2,
                on_demand_code(group),
                called,
                "vCPU",
                each,
                None,
                None,
                NOT_READ,
            )
        if Way.SPOT in ways:
            called = f"All {words} Spot Instance Requests"
            yield HourlyQuota(Way.SPOT, region, name, EC2, spot_code(group), called, "vCPU", each)
    elif Way.SAGEMAKER_ON_DEMAND in ways and target in _USAGE:
        code = cluster_usage_code(name) if target is Target.HYPERPOD_CLUSTER else None
        called = f"{name} for {_USAGE[target]}"
        yield HourlyQuota(
            Way.SAGEMAKER_ON_DEMAND,
            region,
            name,
            SAGEMAKER,
            code,
            called,
            "instance",
            1,
            None,
            None,
            NOT_READ,
        )


def with_held(quotas: Iterable[HourlyQuota], owned: Iterable[Owned]) -> tuple[HourlyQuota, ...]:
    """The quotas in a fixed order, with what On-Demand Capacity Reservations hold idle counted in too.

    Where it is not known how much is idle or what it takes, what is used is not known either.
    """
    idle = [o for o in owned if o.way is Way.ODCR and o.is_held and o.free != 0]
    made = (_with_idle(quota, [o for o in idle if o.region == quota.region]) for quota in quotas)
    return tuple(sorted(made, key=lambda q: (list(Way).index(q.way), q.region, q.instance_type)))


def _with_idle(quota: HourlyQuota, idle: Iterable[Owned]) -> HourlyQuota:
    if quota.way is not Way.ON_DEMAND or quota.used is None:
        return quota
    used = quota.used
    for one in idle:
        kind = one.instance_type or ""
        if kind and quota_class(kind) not in sharing(quota_class(quota.instance_type)):
            continue
        vcpus = vcpus_of(kind)
        if one.free is None or vcpus is None:
            return replace(quota, used=None, trouble=f"what {one.id} holds of it is not known")
        used += one.free * vcpus
    return replace(quota, used=used)


def vcpus_of(name: str) -> int | None:
    """The vCPUs of one instance; None where they are not known."""
    known = instance_type(name)
    if known is not None:
        return known.vcpus
    size = _STANDARD_SIZE.fullmatch(name)
    if size is None:
        return None
    return 2 if size.group(2) == "large" else 4 * int(size.group(1) or 1)
