"""The quotas that a fleet has, under AWS's codes where they are known and else under codes of the yard's own.

A code that begins with `YARD-` is made up here (docs/reference/unconfirmed.md); AWS's begin with `L-`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from berth.facts.block_quotas import block_quota
from berth.facts.quota_codes import (
    TRAINING_PLANS_CODE,
    cluster_usage_code,
    on_demand_code,
    reserved_capacity_code,
    spot_code,
)
from berth.yard.fleet.fleet import Fleet, QuotaKind, quota_class
from berth.yard.fleet.pools import EC2, SAGEMAKER
from berth.yard.market.block_rules import family_of

EC2_CODE, SAGEMAKER_CODE = "ec2", "sagemaker"
SERVICE_NAMES = {
    EC2_CODE: "Amazon Elastic Compute Cloud (Amazon EC2)",
    SAGEMAKER_CODE: "Amazon SageMaker",
}


@dataclass(frozen=True, slots=True)
class ListedQuota:
    """One quota: AWS's or the yard's code and name for the limit that the fleet file keeps under `kind` and
    `key` (a type, family or class; empty where there is one of the kind)."""

    service: str
    code: str
    label: str
    kind: QuotaKind
    key: str = ""


def yard_code(kind: QuotaKind, key: str) -> str:
    """A code for a quota whose code on AWS is not known: the same in every yard."""
    digest = hashlib.blake2b(f"{kind.value}/{key}".encode(), digest_size=4, person=b"quota-code")
    return f"YARD-{digest.hexdigest().upper()}"


def _no_code(key: str) -> str | None:
    return None


def _block_code(family: str) -> str | None:
    known = block_quota(family)
    return known.code if known is not None else None


_CODES: dict[QuotaKind, Callable[[str], str | None]] = {
    QuotaKind.RESERVED_CAPACITY: reserved_capacity_code,
    QuotaKind.ENDPOINT_USAGE: _no_code,
    QuotaKind.TRAINING_USAGE: _no_code,
    QuotaKind.CLUSTER_USAGE: cluster_usage_code,
    QuotaKind.BLOCK_VCPUS: _block_code,
    QuotaKind.ON_DEMAND_VCPUS: on_demand_code,
    QuotaKind.SPOT_VCPUS: spot_code,
}
_LABELS = {
    QuotaKind.RESERVED_CAPACITY: (
        "Number of {} instances in reserved capacity across training plans per Region"
    ),
    QuotaKind.ENDPOINT_USAGE: "{} for endpoint usage",
    QuotaKind.TRAINING_USAGE: "{} for training job usage",
    QuotaKind.CLUSTER_USAGE: "{} for cluster usage",
    QuotaKind.BLOCK_VCPUS: "Capacity Blocks of {} instances",
    QuotaKind.ON_DEMAND_VCPUS: "Running On-Demand {} instances",
    QuotaKind.SPOT_VCPUS: "All {} Spot Instance Requests",
}
_BY_CLASS = (QuotaKind.ON_DEMAND_VCPUS, QuotaKind.SPOT_VCPUS)
_BY_ML_TYPE = (
    QuotaKind.RESERVED_CAPACITY,
    QuotaKind.ENDPOINT_USAGE,
    QuotaKind.TRAINING_USAGE,
    QuotaKind.CLUSTER_USAGE,
)


def _listed(service: str, kind: QuotaKind, key: str) -> ListedQuota:
    shown = key if service == SAGEMAKER_CODE else _capitalised(key)
    code = _CODES[kind](key) or yard_code(kind, key)
    return ListedQuota(service, code, _LABELS[kind].format(shown), kind, key)


def _capitalised(key: str) -> str:
    """`P6-B200` of `p6-b200`, `Trn1` of `trn1`, `P5en` of `p5en`: as EC2 writes families."""
    head, dash, tail = key.partition("-")
    return head[:1].upper() + head[1:] + dash + tail.upper()


def _all(fleet: Fleet) -> Iterator[ListedQuota]:
    ec2 = {pool.faces[EC2].instance_type for pool in fleet.pools.values() if EC2 in pool.faces}
    for kind in _BY_CLASS:
        for name in sorted(set(map(quota_class, ec2))):
            yield _listed(EC2_CODE, kind, name)
    for family in sorted(set(map(family_of, ec2))):
        yield _listed(EC2_CODE, QuotaKind.BLOCK_VCPUS, family)
    yield ListedQuota(
        SAGEMAKER_CODE, TRAINING_PLANS_CODE, "Number of training plans per Region", QuotaKind.TRAINING_PLANS
    )
    ml = {pool.faces[SAGEMAKER].instance_type for pool in fleet.pools.values() if SAGEMAKER in pool.faces}
    for kind in _BY_ML_TYPE:
        for ml_type in sorted(ml):
            yield _listed(SAGEMAKER_CODE, kind, ml_type)


def listed_quotas(fleet: Fleet) -> dict[tuple[str, str], ListedQuota]:
    """Every quota of the fleet by (service code, quota code), in this order; the same in all its Regions."""
    return {(one.service, one.code): one for one in sorted(_all(fleet), key=lambda o: (o.service, o.code))}
