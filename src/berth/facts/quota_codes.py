"""AWS's codes of the quotas that capacity runs into, beside those of Capacity Blocks (`block_quotas`).

Sources: EC2 on demand and Spot, `aws service-quotas list-service-quotas` of several accounts in public
repositories, read 2026-11. SageMaker: quotas of one account in us-west-2, public research note of 2026-10-04.
"""

from __future__ import annotations

import re

TRAINING_PLANS_CODE = "L-867702E6"

_STANDARD = "acdhimrtz"
_CLASS = re.compile(r"[a-z]+")
# How EC2 names the classes that share a quota (EC2 user guide, "instance type quotas", read 2026-11).
_SHARED = {
    **dict.fromkeys(("g", "vt"), "G and VT"),
    **dict.fromkeys(_STANDARD, "Standard (A, C, D, H, I, M, R, T, Z)"),
}
_ON_DEMAND = {
    "p": "L-417A185B",
    "trn": "L-2C3B7624",
    "inf": "L-1945791B",
    **dict.fromkeys(("g", "vt"), "L-DB2E81BA"),
    **dict.fromkeys(_STANDARD, "L-1216C47A"),
}
_SPOT = {
    "p": "L-7212CCBC",
    "trn": "L-6B0D517C",
    "inf": "L-B5D1601B",
    **dict.fromkeys(("g", "vt"), "L-3819A6DF"),
    **dict.fromkeys(_STANDARD, "L-34B43A08"),
}
_RESERVED_CAPACITY = {"ml.p5.48xlarge": "L-9EF527CA"}
_CLUSTER_USAGE = {
    "ml.p4d.24xlarge": "L-47E0BC8F",
    "ml.p4de.24xlarge": "L-BEF3120E",
    "ml.p5.48xlarge": "L-8762A75F",
    "ml.p5e.48xlarge": "L-FD431820",
    "ml.p5en.48xlarge": "L-6EF3AE05",
    "ml.p6-b200.48xlarge": "L-44097F05",
    "ml.p6-b300.48xlarge": "L-9883FE68",
    "ml.p6e-gb200.36xlarge": "L-5DB70460",
}


def quota_class(ec2_type: str) -> str:
    """The letters of a type by which EC2 counts it: `p` of `p6-b200.48xlarge`, `trn`, `m`."""
    found = _CLASS.match(ec2_type)
    return found.group() if found else ec2_type


def class_words(name: str) -> str:
    """How EC2 names the quota of the class `name`: `P`, `G and VT`, `Trn`."""
    return _SHARED.get(name, name.upper() if len(name) == 1 else name.capitalize())


def sharing(name: str) -> tuple[str, ...]:
    """The classes that count against one quota with the class `name`, itself among them."""
    words = _SHARED.get(name)
    return tuple(sorted(c for c, w in _SHARED.items() if w == words)) if words else (name,)


def on_demand_code(name: str) -> str | None:
    """The code of "Running On-Demand P instances" for the class `p`; None where it is not known."""
    return _ON_DEMAND.get(name)


def spot_code(name: str) -> str | None:
    """The code of "All P Spot Instance Requests" for the class `p`; None where it is not known."""
    return _SPOT.get(name)


def reserved_capacity_code(ml_type: str) -> str | None:
    """The code of the type's "in reserved capacity across training plans"; None where it is not known."""
    return _RESERVED_CAPACITY.get(ml_type)


def cluster_usage_code(ml_type: str) -> str | None:
    """The code of "`ml_type` for cluster usage"; None where it is not known."""
    return _CLUSTER_USAGE.get(ml_type)
