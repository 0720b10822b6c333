"""What a Capacity Block looks like in answers: as reservation, as block object, as status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from berth.terms.instants import from_micros
from berth.yard.assembly import Yard
from berth.yard.services.ec2.blocks import block_state, free_places
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.ec2.tags import tags_of
from berth.yard.services.extensions import end_seen
from berth.yard.services.operation import Call
from berth.yard.store.transaction import Reading, Row

# States in which a block has capacity, or had it. In the others both counts are 0: before the start it is so
# on AWS, and the size stands in a tag only; for the ends without a start nothing is known.
_BEGUN = frozenset({"active", "expired", "unavailable"})
SIZE_TAG = "aws:ec2capacityreservation:incrementalRequestedQuantity"
TYPE_TAG = "aws:ec2capacityreservation:capacityReservationType"
CAPACITY_BLOCK = "capacity-block"


def aws_tags(count: int) -> list[dict[str, str]]:
    """The two tags that every block's reservation carries from its purchase on."""
    return [{"Key": TYPE_TAG, "Value": CAPACITY_BLOCK}, {"Key": SIZE_TAG, "Value": str(count)}]


def reservation_shapes(call: Call, yard: Yard, rows: Reading, found: Sequence[Row]) -> list[Shape]:
    """Each row as a CapacityReservation."""
    tags = tags_of(call, rows, [row["reservation_id"] for row in found])
    return [_reservation(call, yard, rows, row, tags) for row in found]


def _reservation(call: Call, yard: Yard, rows: Reading, row: Row, tags: Mapping[str, list[Shape]]) -> Shape:
    state = block_state(call, rows, row)
    names = yard.zone_names(call.account.account_id, call.region)
    return {
        "CapacityReservationId": row["reservation_id"],
        "OwnerId": row["account_id"],
        "CapacityReservationArn": row["arn"],
        "AvailabilityZoneId": row["zone_id"],
        "AvailabilityZone": names.name(row["zone_id"]),
        "InstanceType": row["instance_type"],
        "InstancePlatform": row["platform"],
        "Tenancy": "default",
        "TotalInstanceCount": row["count"] if state in _BEGUN else 0,
        "AvailableInstanceCount": free_places(rows, row) if state == "active" else 0,
        "EbsOptimized": True,
        "EphemeralStorage": False,
        "State": state,
        "StartDate": from_micros(row["start_us"]),
        "EndDate": from_micros(end_seen(call, rows, row)),
        "EndDateType": "limited",
        "InstanceMatchCriteria": "targeted",
        "CreateDate": from_micros(row["created_us"]),
        "ReservationType": row["reservation_type"],
        "CapacityBlockId": row["block_id"],
        "Tags": tags.get(row["reservation_id"], []),
    }


def block_shapes(call: Call, yard: Yard, rows: Reading, found: Sequence[Row]) -> list[Shape]:
    """Each row as a CapacityBlock object. `UltraserverType` is left out: none of them is one."""
    tags = tags_of(call, rows, [row["block_id"] for row in found])
    names = yard.zone_names(call.account.account_id, call.region)
    return [
        {
            "CapacityBlockId": row["block_id"],
            "AvailabilityZone": names.name(row["zone_id"]),
            "AvailabilityZoneId": row["zone_id"],
            "CapacityReservationIds": [row["reservation_id"]],
            "StartDate": from_micros(row["start_us"]),
            "EndDate": from_micros(end_seen(call, rows, row)),
            "CreateDate": from_micros(row["created_us"]),
            "State": block_state(call, rows, row),
            "Tags": tags.get(row["block_id"], []),
        }
        for row in found
    ]


def status_shapes(call: Call, rows: Reading, found: Sequence[Row]) -> list[Shape]:
    """Each row as a CapacityBlockStatus. Unavailable is what failed its system check in the block, and, after
    the model's text, what is used in the reservation inside it."""
    shapes = []
    for row in found:
        active = block_state(call, rows, row) == "active"
        total, free = (row["count"], free_places(rows, row)) if active else (0, 0)
        shapes.append(
            {
                "CapacityBlockId": row["block_id"],
                "InterconnectStatus": "ok" if active else "insufficient-data",
                "TotalCapacity": total,
                "TotalAvailableCapacity": free,
                "TotalUnavailableCapacity": 0,
                "CapacityReservationStatuses": [
                    {
                        "CapacityReservationId": row["reservation_id"],
                        "TotalCapacity": total,
                        "TotalAvailableCapacity": free,
                        "TotalUnavailableCapacity": total - free,
                    }
                ],
            }
        )
    return shapes
