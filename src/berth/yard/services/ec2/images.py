"""Machine images, one or more a platform: DescribeImages.

They stand for AWS's and hold nothing: instances are bookkeeping. Names have the form of AWS's and of the
Linux vendors' names, so that the usual filters by owner and name find them; ids are the yard's own, the same
for all accounts of a Region.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.services.ec2.callers_surroundings import surroundings_of
from berth.yard.services.ec2.derived_ids import derived_id
from berth.yard.services.ec2.filters import one, with_tags
from berth.yard.services.ec2.network import chosen
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.operation import Call, reads
from berth.yard.store.transaction import Reading

CREATED = "2026-11-01T00:00:00.000Z"
LINUX = "Linux/UNIX"


@dataclass(frozen=True, slots=True)
class Platform:
    """A platform as images and instances show it (`PlatformDetails`, `UsageOperation`), from EC2 User Guide,
    "AMI billing information fields"."""

    details: str
    usage_operation: str


# By the name that Capacity Reservations use (InstancePlatform).
PLATFORMS: Mapping[str, Platform] = {
    LINUX: Platform(LINUX, "RunInstances"),
    "Red Hat Enterprise Linux": Platform("Red Hat Enterprise Linux", "RunInstances:0010"),
    "RHEL with HA": Platform("Red Hat Enterprise Linux with High Availability", "RunInstances:1010"),
    "SUSE Linux": Platform("SUSE Linux", "RunInstances:000g"),
    "Ubuntu Pro": Platform("Ubuntu Pro", "RunInstances:0g00"),
}


def platform_of(details: str) -> str:
    """The platform as Capacity Reservations call it, from an image's PlatformDetails."""
    return next((name for name, platform in PLATFORMS.items() if platform.details == details), details)


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    platform: str
    owner_id: str
    owner_alias: str | None = None
    description: str = ""


_AMAZON = "137112412989"
_AMAZON_ML = "898082745236"
_CANONICAL = "099720109477"
_KINDS = (
    _Kind("al2023-ami-2023.0.20261101.0-kernel-6.1-x86_64", LINUX, _AMAZON, "amazon"),
    _Kind(
        "Deep Learning Base OSS Nvidia Driver GPU AMI (Amazon Linux 2023) 20261101",
        LINUX, _AMAZON_ML, "amazon",
    ),
    _Kind("Deep Learning AMI Neuron (Amazon Linux 2023) 20261101", LINUX, _AMAZON_ML, "amazon"),
    _Kind("ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20261101", LINUX, _CANONICAL),
    _Kind("RHEL-9.6.0_HVM-20261101-x86_64-0-Hourly2-GP3", "Red Hat Enterprise Linux", "309956199498"),
    _Kind("RHEL_HA-9.6.0_HVM-20261101-x86_64-0-Hourly2-GP3", "RHEL with HA", "309956199498"),
    _Kind("suse-sles-15-sp7-v20261101-hvm-ssd-x86_64", "SUSE Linux", "013907871322", "amazon"),
    _Kind(
        "ubuntu-pro-server/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-pro-server-20261101",
        "Ubuntu Pro", _CANONICAL,
    ),
)  # fmt: skip


def own_images(region: str) -> tuple[Shape, ...]:
    """The yard's images in a Region."""
    return tuple(_shape(kind, region) for kind in _KINDS)


def _shape(kind: _Kind, region: str) -> Shape:
    platform = PLATFORMS[kind.platform]
    return {
        "ImageId": derived_id("ami", region, kind.name),
        "ImageLocation": f"{kind.owner_alias or kind.owner_id}/{kind.name}",
        "ImageType": "machine",
        "Name": kind.name,
        "Description": "Stands for an image of that name; a yard's images hold nothing",
        "OwnerId": kind.owner_id,
        **({"ImageOwnerAlias": kind.owner_alias} if kind.owner_alias else {}),
        "Architecture": "x86_64",
        "CreationDate": CREATED,
        "Public": True,
        "State": "available",
        "Hypervisor": "xen",
        "VirtualizationType": "hvm",
        "RootDeviceType": "ebs",
        "RootDeviceName": "/dev/xvda",
        "EnaSupport": True,
        "PlatformDetails": platform.details,
        "UsageOperation": platform.usage_operation,
    }


def image_missing(image_id: str) -> ServiceError:
    """EC2's refusal of an image that is not there."""
    if not image_id.startswith("ami-"):
        return ServiceError("InvalidAMIID.Malformed", f'Invalid id: "{image_id}" (expecting "ami-...")')
    return ServiceError("InvalidAMIID.NotFound", f"The image id '[{image_id}]' does not exist")


_FACETS = with_tags(
    {
        "image-id": one("ImageId"),
        "name": one("Name"),
        "description": one("Description"),
        "architecture": one("Architecture"),
        "creation-date": one("CreationDate"),
        "ena-support": one("EnaSupport"),
        "hypervisor": one("Hypervisor"),
        "image-type": one("ImageType"),
        "is-public": one("Public"),
        "owner-alias": one("ImageOwnerAlias"),
        "owner-id": one("OwnerId"),
        "platform": one("Platform"),
        "platform-details": one("PlatformDetails"),
        "root-device-name": one("RootDeviceName"),
        "root-device-type": one("RootDeviceType"),
        "state": one("State"),
        "usage-operation": one("UsageOperation"),
        "virtualization-type": one("VirtualizationType"),
    }
)


@reads("ec2", "DescribeImages")
def describe_images(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """The images of the Region; Owners takes account ids, `amazon` and `self`."""
    owners = call.params.get("Owners") or ()
    shapes = [shape for shape in surroundings_of(call, yard).images if _owned(call, shape, owners)]
    found, token = chosen(call, shapes, _FACETS, ids="ImageIds", member="ImageId", not_found=image_missing)
    return {"Images": found, **({"NextToken": token} if token else {})}


def _owned(call: Call, shape: Shape, owners: Any) -> bool:
    if not owners:
        return True
    own = call.account.account_id if "self" in owners else None
    return shape.get("OwnerId") in {*owners, own} or shape.get("ImageOwnerAlias") in owners
