"""What instances are launched with in one Region: VPCs, subnets, security groups, images.

They are values in EC2's own shapes. A yard has its own (`own_surroundings`), the same for ever; one started
with `--rest URL` has those of another emulator instead (`berth.yard.rest`). Zones are zone ids here; the
caller's names of zones are filled in when something is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from berth.yard.services.ec2.shape import Shape


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Shapes of EC2. Every subnet has an AvailabilityZoneId of the fleet."""

    vpcs: tuple[Shape, ...] = ()
    subnets: tuple[Shape, ...] = ()
    groups: tuple[Shape, ...] = ()
    images: tuple[Shape, ...] = ()

    def default_vpc(self) -> Shape | None:
        """The default VPC; None where there is none."""
        return next((vpc for vpc in self.vpcs if vpc.get("IsDefault")), None)

    def subnet(self, subnet_id: str) -> Shape | None:
        """The subnet of that id; None where there is none."""
        return _first(self.subnets, "SubnetId", subnet_id)

    def subnet_in(self, zone_id: str) -> Shape | None:
        """The subnet that a launch into a zone takes when it names none: the zone's default subnet, else the
        first of the default VPC there; None where there is none."""
        vpc = self.default_vpc()
        here = [
            one
            for one in self.subnets
            if one.get("AvailabilityZoneId") == zone_id and vpc is not None and one["VpcId"] == vpc["VpcId"]
        ]
        return next((one for one in here if one.get("DefaultForAz")), here[0] if here else None)

    def group(self, group_id: str) -> Shape | None:
        """The security group of that id; None where there is none."""
        return _first(self.groups, "GroupId", group_id)

    def group_named(self, name: str, vpc_id: str) -> Shape | None:
        """The security group of that name in the VPC; None where there is none."""
        return next(
            (one for one in self.groups if one["GroupName"] == name and one.get("VpcId") == vpc_id), None
        )

    def image(self, image_id: str) -> Shape | None:
        """The image of that id; None where there is none."""
        return _first(self.images, "ImageId", image_id)


def _first(shapes: Sequence[Shape], member: str, value: str) -> Shape | None:
    return next((shape for shape in shapes if shape[member] == value), None)
