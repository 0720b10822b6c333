"""One Capacity Block as DescribeCapacityReservations and PurchaseCapacityBlock describe it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from berth.orders.names import FEE_TAG
from berth.orders.seen import STAGES, SeenReservation, Stage, instant, listed, money, text, whole
from berth.terms.ways import Target

SIZE_TAG = "aws:ec2capacityreservation:incrementalRequestedQuantity"
TYPE_TAG = "aws:ec2capacityreservation:capacityReservationType"
BLOCK = "capacity-block"
_BEGUN = frozenset({Stage.OPEN, Stage.OVER})


@dataclass(frozen=True, slots=True)
class BlockDescription:
    """A block with what only looking for it needs. `created_at` None: not shown."""

    seen: SeenReservation
    tags: Mapping[str, str]
    created_at: datetime | None


def described_block(answer: Mapping[str, Any]) -> BlockDescription | None:
    """Read one CapacityReservation; None without an id, and for one that says it is no block.

    The type of a reservation may be left out (seen in public for plain reservations); then a tag of AWS's
    says it, and where that is left out too it may be a block. The size stands in another tag of AWS's from
    the purchase on; the counts of the answer are 0 until the start (EC2 guide, "view Capacity Blocks", 2026).
    """
    block_id = text(answer.get("CapacityReservationId"))
    if block_id is None:
        return None
    tags = _tags(answer.get("Tags"))
    if (text(answer.get("ReservationType")) or tags.get(TYPE_TAG, BLOCK)) != BLOCK:
        return None
    state = text(answer.get("State")) or "unknown"
    stage = STAGES.get(state, Stage.UNKNOWN)
    amount, _, currency = tags.get(FEE_TAG, "").partition(" ")
    seen = SeenReservation(
        name=block_id,
        arn=text(answer.get("CapacityReservationArn")) or block_id,
        state=state,
        message=None,
        fee=money(amount, currency),
        start=instant(answer.get("StartDate")),
        end=instant(answer.get("EndDate")),
        targets=(Target.INSTANCES.value,),
        instance_type=text(answer.get("InstanceType")),
        zones=_one(answer.get("AvailabilityZone")),
        zone_ids=_one(answer.get("AvailabilityZoneId")),
        instances=_size(tags.get(SIZE_TAG), whole(answer.get("TotalInstanceCount")), stage),
        instances_free=whole(answer.get("AvailableInstanceCount")) if stage is Stage.OPEN else None,
        platform=text(answer.get("InstancePlatform")),
        tenancy=text(answer.get("Tenancy")),
        owner=text(answer.get("OwnerId")),
    )
    return BlockDescription(seen, tags, instant(answer.get("CreateDate")))


def _tags(value: object) -> dict[str, str]:
    entries = (tag for tag in listed(value) if isinstance(tag, Mapping))
    return {str(tag.get("Key")): str(tag.get("Value")) for tag in entries}


def _size(tag: str | None, total: int | None, stage: Stage) -> int | None:
    if tag is not None and tag.isascii() and tag.isdigit():
        return int(tag)
    return total if stage in _BEGUN and total else None


def _one(value: object) -> tuple[str, ...]:
    found = text(value)
    return (found,) if found else ()
