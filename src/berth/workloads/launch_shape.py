"""The launch shape: what RunInstances is asked to put instances into a Capacity Block. Pure.

The one place that knows which members belong together for a block: market type, the block's id, its type and
its zone; no placement group (field faults 31, 34, 38).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from berth.orders.names import ORDER_TAG, workload_name
from berth.orders.order import OrderKey
from berth.orders.seen import SeenReservation

MARKET = "capacity-block"


@dataclass(frozen=True, slots=True)
class Template:
    """What a launch template says, as far as it matters here; None: nothing. `reference` names it to EC2.

    `interfaces`: it brings network interfaces of its own; then a subnet can be named in these only, and
    `subnet` is theirs.
    """

    reference: Mapping[str, str]
    image: str | None = None
    subnet: str | None = None
    interfaces: bool = False
    tenancy: str | None = None
    placement_group: str | None = None


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet and the zone that fixes where it launches; `zone_id` None: not shown.

    `templates`: the launch template's interfaces name it, so the request does not.
    """

    id: str
    zone_id: str | None
    templates: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is launched, all names settled. None: not said.

    `image_platform` is the image's platform in the words of Capacity Reservations, None where it is not
    known. `placement_group` was asked for and is dropped: blocks have none (EC2 guide of 2026-09).
    """

    image: str | None
    image_platform: str | None
    role: str | None
    template: Template | None
    tags: tuple[tuple[str, str], ...]
    placement_group: str | None = None


def launch_request(
    key: OrderKey, block: SeenReservation, recipe: Recipe, subnet: Subnet | None, *, count: int, token: str
) -> dict[str, Any]:
    """RunInstances for up to `count` instances in the block: as many as there are places, at least one."""
    tags = {**dict(recipe.tags), "Name": workload_name(key), ORDER_TAG: key.mark}
    request: dict[str, Any] = {
        "MinCount": 1,
        "MaxCount": count,
        "InstanceMarketOptions": {"MarketType": MARKET},
        "CapacityReservationSpecification": {
            "CapacityReservationTarget": {"CapacityReservationId": block.name}
        },
        "ClientToken": token,
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": k, "Value": v} for k, v in tags.items()]}
        ],
    }
    said = {
        "InstanceType": block.instance_type,
        "ImageId": recipe.image,
        "LaunchTemplate": dict(recipe.template.reference) if recipe.template else None,
        "IamInstanceProfile": _profile(recipe.role),
        "SubnetId": subnet.id if subnet and not subnet.templates else None,
        "Placement": _placement(block, recipe, subnet),
    }
    return request | {name: value for name, value in said.items() if value}


def _profile(role: str | None) -> dict[str, str] | None:
    if role is None:
        return None
    return {"Arn": role} if role.startswith("arn:") else {"Name": role}


def _placement(block: SeenReservation, recipe: Recipe, subnet: Subnet | None) -> dict[str, str]:
    """The block's tenancy where it is not the default; its zone where no subnet says it."""
    placement = {}
    if block.tenancy not in (None, "default"):
        placement["Tenancy"] = str(block.tenancy)
    elif recipe.template is not None and recipe.template.placement_group is not None:
        placement["Tenancy"] = (
            "default"  # a placement of the request stands over the template's, and its group
        )
    if subnet is None and block.zones:
        placement["AvailabilityZone"] = block.zones[0]
    return placement
