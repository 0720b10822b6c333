"""RunInstances as it is asked: read and checked as far as neither the store nor what is free is needed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.services.ec2.callers_surroundings import surroundings_of
from berth.yard.services.ec2.images import image_missing
from berth.yard.services.ec2.network import group_missing, subnet_missing
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.ec2.surroundings import Surroundings
from berth.yard.services.ec2.tags import Tag, tags_at_creation
from berth.yard.services.operation import Call

ON_DEMAND = "on-demand"
BLOCK = "capacity-block"
SPOT = "spot"
ONLY = "capacity-reservations-only"
TOKEN_MAX = 64  # EC2 Developer Guide, "Ensuring idempotency": up to 64 ASCII characters
INSTANCES_MAX = 1000
# What would change where or how an instance runs, and that nothing here could honour.
_NOT_SERVED = (
    "LaunchTemplate", "DisableApiTermination", "DisableApiStop", "HibernationOptions",
    "LicenseSpecifications", "ElasticGpuSpecification", "ElasticInferenceAccelerators", "SecondaryInterfaces",
)  # fmt: skip
_PLACES_NOT_SERVED = ("HostId", "HostResourceGroupArn", "Affinity", "PartitionNumber", "SpreadDomain")
_TAGGED = ("instance", "volume", "network-interface", "spot-instances-request")


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """What a RunInstances asks for.

    `zone_id` None = any zone; `subnet` None = the subnet of whichever zone it becomes. `market` is
    `on-demand` or a MarketType of EC2; `reservation_id` the targeted Capacity Reservation. `placement_group`
    is "" for none. `digest` is the same for the same parameters.
    """

    image: Shape
    instance_type: str
    least: int
    most: int
    market: str
    reservation_id: str | None
    preference: str | None
    zone_id: str | None
    zone_name: str | None
    subnet: Shape | None
    groups: tuple[Shape, ...]
    placement_group: str
    tenancy: str
    tags: Sequence[Tag]
    token: str
    digest: str
    around: Surroundings

    @property
    def scope(self) -> str:
        """Within what a client token counts: the zone when one was named, else ""."""
        return self.zone_id or ""


def read_launch(call: Call, yard: Yard) -> LaunchRequest:
    """Raises ServiceError with EC2's code for whatever is wrong with the parameters alone."""
    params = call.params
    _check_served(params)
    least, most = _counts(params)
    around = surroundings_of(call, yard)
    image = around.image(_required(params, "ImageId"))
    if image is None:
        raise image_missing(params["ImageId"])
    subnet, zone_id = _place(call, yard, around)
    market, reservation_id, preference = _market(params)
    placement = params.get("Placement", {})
    names = yard.zone_names(call.account.account_id, call.region)
    return LaunchRequest(
        image=image,
        instance_type=_required(params, "InstanceType"),
        least=least,
        most=most,
        market=market,
        reservation_id=reservation_id,
        preference=preference,
        zone_id=zone_id,
        zone_name=names.name(zone_id) if zone_id is not None else None,
        subnet=subnet,
        groups=_groups(params, around, subnet),
        placement_group=placement.get("GroupName") or placement.get("GroupId") or "",
        tenancy=placement.get("Tenancy", "default"),
        tags=tags_at_creation(call, *_TAGGED)["instance"],
        token=_token(params),
        digest=_digest(params),
        around=around,
    )


def _required(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    if not value:
        raise ServiceError("MissingParameter", f"The request must contain the parameter {name}")
    return str(value)


def _check_served(params: Mapping[str, Any]) -> None:
    for name in _NOT_SERVED:
        if params.get(name):
            raise ServiceError("UnsupportedOperation", f"{name} is not served by this yard.")
    for name in _PLACES_NOT_SERVED:
        if params.get("Placement", {}).get(name):
            raise ServiceError("UnsupportedOperation", f"Placement.{name} is not served by this yard.")


def _counts(params: Mapping[str, Any]) -> tuple[int, int]:
    least, most = params["MinCount"], params["MaxCount"]
    for name, value in (("minCount", least), ("maxCount", most)):
        if not 1 <= value <= INSTANCES_MAX:
            raise ServiceError("InvalidParameterValue", f"Value ({value}) for parameter {name} is invalid.")
    if least > most:
        raise ServiceError(
            "InvalidParameterCombination", f"MinCount ({least}) must not be greater than MaxCount ({most})."
        )
    return least, most


def _token(params: Mapping[str, Any]) -> str:
    token: str = params.get("ClientToken", "")
    if len(token) > TOKEN_MAX or not token.isascii():
        raise ServiceError(
            "InvalidParameterValue", f"A client token has at most {TOKEN_MAX} ASCII characters."
        )
    return token


def _digest(params: Mapping[str, Any]) -> str:
    asked = {name: value for name, value in params.items() if name not in ("ClientToken", "DryRun")}
    text = json.dumps(asked, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


# -- where -----------------------------------------------------------------------------------------------
def _place(call: Call, yard: Yard, around: Surroundings) -> tuple[Shape | None, str | None]:
    """The named subnet, and the zone that the call names directly or by a subnet."""
    placement = call.params.get("Placement", {})
    names = yard.zone_names(call.account.account_id, call.region)
    zone_id = placement.get("AvailabilityZoneId")
    if zone_id is not None and zone_id not in names.names:
        raise ServiceError("InvalidParameterValue", f"Invalid availability zone: [{zone_id}]")
    if "AvailabilityZone" in placement:
        named = names.id(placement["AvailabilityZone"])
        if named is None:
            raise ServiceError(
                "InvalidParameterValue", f"Invalid availability zone: [{placement['AvailabilityZone']}]"
            )
        if zone_id not in (None, named):
            raise ServiceError(
                "InvalidParameterCombination", "Name the zone by its name or its id, not both."
            )
        zone_id = named
    subnet_id = _subnet_id(call.params)
    if subnet_id is None:
        return None, zone_id
    subnet = around.subnet(subnet_id)
    if subnet is None:
        raise subnet_missing(subnet_id)
    if zone_id not in (None, subnet["AvailabilityZoneId"]):
        raise ServiceError(
            "InvalidParameterValue",
            f"The subnet '{subnet_id}' is in the Availability Zone {subnet['AvailabilityZone']}, not in the"
            f" requested {names.name(str(zone_id))}.",
        )
    return subnet, subnet["AvailabilityZoneId"]


def _interfaces(params: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = params.get("NetworkInterfaces", ())
    if found and (params.get("SubnetId") or params.get("SecurityGroupIds") or params.get("SecurityGroups")):
        raise ServiceError(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level subnet ID or security groups may not be specified on"
            " the same request",
        )
    return found


def _subnet_id(params: Mapping[str, Any]) -> str | None:
    named = {one["SubnetId"] for one in _interfaces(params) if one.get("SubnetId")}
    if len(named) > 1:
        raise ServiceError("InvalidParameterValue", "All network interfaces must be in one subnet here.")
    return next(iter(named), params.get("SubnetId") or None)


def _groups(params: Mapping[str, Any], around: Surroundings, subnet: Shape | None) -> tuple[Shape, ...]:
    """The security groups by id, or by name; else the group `default` of the VPC."""
    ids = [*params.get("SecurityGroupIds", ())]
    for interface in _interfaces(params):
        ids += [one for one in interface.get("Groups", ()) if one not in ids]
    vpc = subnet if subnet is not None else around.default_vpc()
    vpc_id = vpc["VpcId"] if vpc is not None else ""
    found = []
    for asked in ids:
        group = around.group(asked)
        if group is None:
            raise group_missing(asked)
        found.append(group)
    for name in params.get("SecurityGroups", ()) if not found else ():
        group = around.group_named(name, vpc_id)
        if group is None:
            raise group_missing(name)
        found.append(group)
    default = around.group_named("default", vpc_id)
    return tuple(found) or ((default,) if default is not None else ())


# -- as what ---------------------------------------------------------------------------------------------
def _market(params: Mapping[str, Any]) -> tuple[str, str | None, str | None]:
    """Market, targeted reservation, preference. Raises for what cannot go together."""
    market = params.get("InstanceMarketOptions", {}).get("MarketType", ON_DEMAND)
    wish = params.get("CapacityReservationSpecification", {})
    target, preference = wish.get("CapacityReservationTarget", {}), wish.get("CapacityReservationPreference")
    reservation_id = target.get("CapacityReservationId")
    if target.get("CapacityReservationResourceGroupArn"):
        raise ServiceError(
            "InvalidLaunchTargets", "Resource groups are not served by this yard: target a reservation's ID."
        )
    if target and preference not in (None, ONLY):
        raise ServiceError(
            "InvalidParameterCombination",
            f"CapacityReservationTarget can be combined with the preference {ONLY} only.",
        )
    if market == SPOT:
        # This yard has no Spot capacity: EC2's words where there is none.
        raise ServiceError(
            "InsufficientInstanceCapacity",
            "There is no Spot capacity available that matches your request.",
            status=500,
        )
    if market not in (ON_DEMAND, BLOCK):
        raise ServiceError("UnsupportedOperation", f"The market type {market} is not served by this yard.")
    if market == BLOCK and reservation_id is None:
        raise ServiceError(
            "InvalidParameterCombination",
            "The market type capacity-block needs a CapacityReservationTarget with a Capacity Block's ID.",
        )
    return market, reservation_id, preference
