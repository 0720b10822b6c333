"""What surrounds the instances of whoever calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from berth.yard.services.ec2.surroundings import Surroundings
from berth.yard.services.operation import Call

if TYPE_CHECKING:
    from berth.yard.assembly import Yard


def surroundings_of(call: Call, yard: Yard) -> Surroundings:
    """What surrounds the caller's instances, with the caller's own names of the zones."""
    found = yard.surroundings(call.account.account_id, call.region)
    names = yard.zone_names(call.account.account_id, call.region).names
    return replace(
        found,
        subnets=tuple(
            {**subnet, "AvailabilityZone": names[subnet["AvailabilityZoneId"]]} for subnet in found.subnets
        ),
    )
