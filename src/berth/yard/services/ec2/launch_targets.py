"""Where a launch goes: into the block that it names, or onto hosts of the on-demand share. Never from one to
the other: a launch that targets a block fails where the block cannot take it.

Nothing is taken here; `run_instances` does that in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.fleet.fleet import pools_for, quota_class
from berth.yard.fleet.pools import EC2, Pool
from berth.yard.fleet.zones import ZoneKind
from berth.yard.market.price_lists import Rate, find_rate
from berth.yard.services.ec2.blocks import block_state, find_block, free_places, reclaiming
from berth.yard.services.ec2.images import platform_of
from berth.yard.services.ec2.instance_types import vcpus_of
from berth.yard.services.ec2.launch_request import BLOCK, ONLY, LaunchRequest
from berth.yard.services.effective_quotas import effective_quotas
from berth.yard.services.operation import Call
from berth.yard.store.transaction import Row, Transaction

_FULL = (
    "The requested reservation does not have sufficient compatible and available capacity for this request."
)
_MARKET = "The market type (purchasing) option is not valid. Choose a different market type and try again"
_NOT_YET = ("payment-pending", "scheduled")


@dataclass(frozen=True, slots=True)
class LaunchTarget:
    """`count` instances on hosts of `pool`: in `block`, or (None) on demand at `rate`."""

    pool: Pool
    count: int
    block: Row | None
    rate: Rate | None


def find_target(call: Call, yard: Yard, tx: Transaction, asked: LaunchRequest) -> LaunchTarget:
    """Raises ServiceError, in EC2's words where they are known, when MinCount instances cannot be had."""
    if asked.reservation_id is not None:
        return _in_block(call, yard, tx, asked, asked.reservation_id)
    return _on_demand(call, yard, tx, asked)


def no_room() -> ServiceError:
    """The block is full, or does not match."""
    return ServiceError("ReservationCapacityExceeded", _FULL)


# -- into a block ----------------------------------------------------------------------------------------
def _in_block(
    call: Call, yard: Yard, tx: Transaction, asked: LaunchRequest, reservation_id: str
) -> LaunchTarget:
    block = find_block(call, tx, reservation_id)
    if asked.market != BLOCK:
        raise ServiceError("InvalidParameterValue", _MARKET)
    if asked.placement_group:
        raise ServiceError(
            "InvalidParameterCombination", "A Capacity Block does not support placement groups: name none."
        )
    _check_fits(asked, block)
    _check_open(call, yard, tx, block)
    free = free_places(tx, block)
    if free < asked.least:
        raise no_room()
    return LaunchTarget(yard.fleet.pools[block["pool"]], min(free, asked.most), block, None)


def _check_fits(asked: LaunchRequest, block: Row) -> None:
    """Type, platform, zone and tenancy must be the block's. EC2 has one code for all of them."""
    fits = (
        asked.instance_type == block["instance_type"]
        and platform_of(asked.image["PlatformDetails"]) == block["platform"]
        and asked.zone_id in (None, block["zone_id"])
        and asked.tenancy == "default"
    )
    if not fits:
        raise no_room()


def _check_open(call: Call, yard: Yard, tx: Transaction, block: Row) -> None:
    """The block must have begun, and not yet be taken back."""
    state = block_state(call, tx, block)
    if state in _NOT_YET:
        raise ServiceError(
            "InvalidCapacityReservationState.PendingActivation",
            f"The Capacity Block '{block['reservation_id']}' has not started: it is {state}.",
        )
    if state != "active":
        raise ServiceError(
            "InvalidCapacityReservationState",
            f"The Capacity Block '{block['reservation_id']}' is {state}.",
        )
    if reclaiming(yard, block, tx.now):
        raise no_room()


# -- on demand -------------------------------------------------------------------------------------------
def _on_demand(call: Call, yard: Yard, tx: Transaction, asked: LaunchRequest) -> LaunchTarget:
    if asked.preference == ONLY:  # a yard has no open reservation that could match
        raise no_room()
    if asked.placement_group:
        raise ServiceError(
            "InvalidPlacementGroup.Unknown", f"The Placement Group '{asked.placement_group}' is unknown."
        )
    pools = _pools(call, yard, asked)
    rate = find_rate(yard.fleet.on_demand_rates, pools[0].hardware, call.region)
    if rate is None or asked.tenancy != "default":
        raise _unsupported()
    allowed = _within_quota(call, yard, tx, asked)
    free, pool = max(
        ((yard.calendars.free_on_demand(pool, tx.now), pool) for pool in pools), key=lambda found: found[0]
    )
    if free < asked.least:
        raise _short(call, yard, tx, asked)
    return LaunchTarget(pool, min(free, allowed, asked.most), None, rate)


def _pools(call: Call, yard: Yard, asked: LaunchRequest) -> Sequence[Pool]:
    """The pools from which the launch may be served. Raises Unsupported where the type is not to be had."""
    everywhere = pools_for(yard.fleet, call.region, face=EC2, type=asked.instance_type)
    if not everywhere:
        raise _unsupported()
    if asked.zone_id is None:  # EC2 chooses among the availability zones, never a Local Zone
        zones = yard.fleet.zones
        found = [p for p in everywhere if zones[p.zone_id].kind is ZoneKind.AVAILABILITY_ZONE]
        if not found:
            raise _unsupported()
        return found
    here = [pool for pool in everywhere if pool.zone_id == asked.zone_id]
    if not here:
        names = yard.zone_names(call.account.account_id, call.region)
        others = ", ".join(sorted(names.name(pool.zone_id) for pool in everywhere))
        raise ServiceError(
            "Unsupported",
            f"Your requested instance type ({asked.instance_type}) is not supported in your requested"
            f" Availability Zone ({asked.zone_name}). Please retry your request by not specifying an"
            f" Availability Zone or choosing {others}.",
        )
    return here


def _unsupported() -> ServiceError:
    return ServiceError(
        "Unsupported",
        "The requested configuration is currently not supported. Please check the documentation for supported"
        " configurations.",
    )


def _within_quota(call: Call, yard: Yard, tx: Transaction, asked: LaunchRequest) -> int:
    """How many instances the vCPU quota leaves; MaxCount for a type whose vCPUs are not known.

    Raises VcpuLimitExceeded when that is less than MinCount. Instances in blocks do not count.
    """
    vcpus, group = vcpus_of(asked.instance_type), quota_class(asked.instance_type)
    if vcpus is None:
        return asked.most
    quotas = effective_quotas(yard.fleet, tx, call.account.account_id, call.region)
    limit = quotas.on_demand_vcpus_of(group)
    row = tx.one(
        "SELECT coalesce(sum(vcpus), 0) AS n FROM instances WHERE account_id = ? AND region = ?"
        " AND quota_family = ? AND reservation_id IS NULL AND status IN ('pending', 'running')",
        call.account.account_id, call.region, group,
    )  # fmt: skip
    assert row is not None
    left = max(0, limit - int(row["n"])) // vcpus
    if left < asked.least:
        raise ServiceError(
            "VcpuLimitExceeded",
            f"You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the"
            " instance bucket that the specified instance type belongs to. Please visit"
            " http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.",
        )
    return left


def _short(call: Call, yard: Yard, tx: Transaction, asked: LaunchRequest) -> ServiceError:
    """No capacity: HTTP 500 on AWS, so that SDKs try again. Which zones have some is said as AWS says it."""
    kind = asked.instance_type
    where = (
        f"in the Availability Zone you requested ({asked.zone_name})" if asked.zone_name else "in this Region"
    )
    message = (
        f"We currently do not have sufficient {kind} capacity {where}."
        " Our system will be working on provisioning additional capacity."
    )
    names = yard.zone_names(call.account.account_id, call.region)
    elsewhere = sorted(
        names.name(pool.zone_id)
        for pool in pools_for(yard.fleet, call.region, face=EC2, type=kind)
        if pool.zone_id != asked.zone_id and yard.calendars.free_on_demand(pool, tx.now) >= asked.least
    )
    if elsewhere and asked.zone_id is not None:
        message += (
            f" You can currently get {kind} capacity by not specifying an Availability Zone in your request"
            f" or choosing {', '.join(elsewhere)}."
        )
    return ServiceError("InsufficientInstanceCapacity", message, status=500)
