"""Which operations a client may send. A verb that does not spend holds a client that cannot."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from berth.aws.permissions import SENT
from berth.terms.outcomes import BerthError, ExitCode

# Calls that commit money, with no or only a partial way back. The first four carry no client token.
PAID = frozenset(
    {
        "CreateTrainingPlan",
        "ExtendTrainingPlan",
        "PurchaseCapacityBlock",
        "PurchaseCapacityBlockExtension",
        "CreateCapacityReservation",
        "CreateCapacityReservationFleet",
        "RunInstances",
        "CreateFleet",
        "RequestSpotInstances",
        "RequestSpotFleet",
        "AllocateHosts",
        "PurchaseHostReservation",
        "PurchaseReservedInstancesOffering",
        "PurchaseScheduledInstances",
        "AcceptReservedInstancesExchangeQuote",
        "CreateSavingsPlan",
    }
)
ASSUMES = "AssumeRole"
# Invoking an endpoint that runs costs nothing beyond the endpoint.
_READS = re.compile(r"(Describe|List|Get|Search|Head|BatchDescribe|BatchGet|Invoke|Simulate)[A-Z]\w*")


class Power(Enum):
    """What a client may do: assume a role and nothing else; only read; also create and delete what carries no
    fee, and run instances in a Capacity Block (see `into_block`); also pay. None may send what no verb is
    listed with (`permissions`)."""

    ASSUME = "assume"
    READ = "read"
    LAUNCH = "launch"
    BUY = "buy"

    def allows(self, operation: str) -> bool:
        """Whether `operation` (AWS's name) may be sent."""
        if operation not in SENT:
            return False
        if self is Power.ASSUME or operation == ASSUMES:
            return self is Power.ASSUME and operation == ASSUMES
        if self is Power.BUY:
            return True
        if self is Power.LAUNCH:
            return operation not in PAID
        return _READS.fullmatch(operation) is not None


def into_block(operation: str, params: object) -> bool:
    """Whether this is RunInstances into one named Capacity Block: paid for already, and never on demand.

    With this market and a reservation's id EC2 launches in the block or not at all (EC2 guide, "launch
    instances into Capacity Blocks", read 2026-11). What a request says stands over its launch template.
    """
    if operation != "RunInstances" or not isinstance(params, Mapping):
        return False
    market = params.get("InstanceMarketOptions")
    wish = params.get("CapacityReservationSpecification")
    target = wish.get("CapacityReservationTarget") if isinstance(wish, Mapping) else None
    return (
        isinstance(market, Mapping)
        and market.get("MarketType") == "capacity-block"
        and isinstance(target, Mapping)
        and str(target.get("CapacityReservationId", "")).startswith("cr-")
    )


def guard(power: Power) -> Callable[..., None]:
    """A hook for `before-parameter-build` that refuses before anything is built, signed or sent."""

    def refuse(*, model: Any, params: Any = None, **_: Any) -> None:
        if power is Power.LAUNCH and into_block(model.name, params):
            return
        if not power.allows(model.name):
            why = f"this client may only {power.value}" if model.name in SENT else "no verb is listed with it"
            raise BerthError(ExitCode.INTERNAL_ERROR, f"{model.name} was refused before it was sent: {why}")

    return refuse
