"""AWS's codes of the quotas that capacity runs into, beside those of Capacity Blocks (`block_quotas`).

Sources: EC2 on demand and Spot, `aws service-quotas list-service-quotas` of several accounts in public
repositories, read 2026-11. SageMaker: quotas of one account in us-west-2, public research note of 2026-10-04.
"""

from __future__ import annotations

TRAINING_PLANS_CODE = "L-867702E6"

_ON_DEMAND = {"p": "L-417A185B", "trn": "L-2C3B7624", "inf": "L-1945791B"}
_SPOT = {"p": "L-7212CCBC", "trn": "L-6B0D517C", "inf": "L-B5D1601B"}
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
