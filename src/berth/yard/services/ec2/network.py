"""The network that instances stand in: DescribeVpcs, DescribeSubnets, DescribeSecurityGroups.

A yard's own network is reckoned from account and Region, not stored: one default VPC, a default subnet in
each availability zone, one security group `default`. Local Zones have no default subnets on AWS; since a yard
cannot make subnets, each of them has one that is not a default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.fleet.zones import Region, Zone
from berth.yard.services.arns import ec2_arn
from berth.yard.services.ec2.callers_surroundings import surroundings_of
from berth.yard.services.ec2.derived_ids import derived_id
from berth.yard.services.ec2.filters import (
    Facet,
    check_filters,
    never,
    one,
    passes,
    refuse_dry_run,
    with_tags,
)
from berth.yard.services.ec2.paging import check_page, page_of
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.ec2.surroundings import Surroundings
from berth.yard.services.operation import Call, reads
from berth.yard.store.transaction import Reading

# EC2 User Guide, "Default VPCs": 172.31.0.0/16 and a /20 in each zone.
VPC_CIDR = IPv4Network("172.31.0.0/16")
SUBNET_PREFIX = 20
EVERYWHERE = "0.0.0.0/0"


# -- the yard's own --------------------------------------------------------------------------------------
def own_network(account_id: str, region: Region) -> Surroundings:
    """VPC, subnets and group of an account in a Region; no images."""
    vpc_id = derived_id("vpc", account_id, region.name)
    blocks = VPC_CIDR.subnets(new_prefix=SUBNET_PREFIX)
    zones = sorted(region.zones, key=lambda zone: (zone.parent is not None, zone.id))
    return Surroundings(
        vpcs=(_own_vpc(account_id, vpc_id, region.name),),
        subnets=tuple(
            _own_subnet(account_id, vpc_id, zone, str(cidr))
            for zone, cidr in zip(zones, blocks, strict=False)
        ),
        groups=(_own_group(account_id, vpc_id, region.name),),
    )


def _own_vpc(account_id: str, vpc_id: str, region: str) -> Shape:
    return {
        "VpcId": vpc_id,
        "OwnerId": account_id,
        "CidrBlock": str(VPC_CIDR),
        "CidrBlockAssociationSet": [
            {
                "AssociationId": derived_id("vpc-cidr-assoc", account_id, region),
                "CidrBlock": str(VPC_CIDR),
                "CidrBlockState": {"State": "associated"},
            }
        ],
        "DhcpOptionsId": derived_id("dopt", account_id, region),
        "InstanceTenancy": "default",
        "IsDefault": True,
        "State": "available",
    }


def _own_subnet(account_id: str, vpc_id: str, zone: Zone, cidr: str) -> Shape:
    subnet_id = derived_id("subnet", account_id, zone.region, zone.id)
    default = zone.parent is None
    return {
        "SubnetId": subnet_id,
        "SubnetArn": ec2_arn(zone.region, account_id, "subnet", subnet_id),
        "VpcId": vpc_id,
        "OwnerId": account_id,
        "AvailabilityZoneId": zone.id,
        "CidrBlock": cidr,
        "DefaultForAz": default,
        "MapPublicIpOnLaunch": default,
        "AssignIpv6AddressOnCreation": False,
        "State": "available",
    }


def _own_group(account_id: str, vpc_id: str, region: str) -> Shape:
    """The default group: everything among its members in, everything out."""
    group_id = derived_id("sg", account_id, region)
    return {
        "GroupId": group_id,
        "SecurityGroupArn": ec2_arn(region, account_id, "security-group", group_id),
        "GroupName": "default",
        "Description": "default VPC security group",
        "VpcId": vpc_id,
        "OwnerId": account_id,
        "IpPermissions": [
            {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group_id, "UserId": account_id}]}
        ],
        "IpPermissionsEgress": [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": EVERYWHERE}]}],
    }


# -- describing ------------------------------------------------------------------------------------------
def chosen(
    call: Call,
    shapes: Sequence[Shape],
    facets: Mapping[str, Facet],
    *,
    ids: str,
    member: str,
    not_found: Callable[[str], ServiceError],
) -> tuple[Sequence[Shape], str | None]:
    """One page of `shapes`: those with the ids that the parameter `ids` names (else all), that pass the
    filters, by id. Raises what `not_found` makes of an id that is not there."""
    check_page(call, ids)
    filters = call.params.get("Filters", ())
    check_filters(filters, facets)
    refuse_dry_run(call)
    wanted = call.params.get(ids)
    known = {shape[member] for shape in shapes}
    for asked in wanted or ():
        if asked not in known:
            raise not_found(asked)
    kept = [
        shape
        for shape in shapes
        if (not wanted or shape[member] in wanted) and passes(shape, filters, facets)
    ]
    return page_of(
        call, sorted(kept, key=lambda shape: str(shape[member])), lambda shape: (shape[member],), 1
    )


def not_found(code: str, what: str) -> Callable[[str], ServiceError]:
    """Makes EC2's refusal of an id that is not there."""
    return lambda asked: ServiceError(code, f"The {what} '{asked}' does not exist")


subnet_missing = not_found("InvalidSubnetID.NotFound", "subnet ID")
group_missing = not_found("InvalidGroup.NotFound", "security group")
_vpc_missing = not_found("InvalidVpcID.NotFound", "vpc ID")


def _each(member: str, inner: str) -> Facet:
    return lambda shape: [str(entry[inner]) for entry in shape.get(member, ()) if inner in entry]


_VPC_FACETS = with_tags(
    {
        "vpc-id": one("VpcId"),
        "cidr": one("CidrBlock"),
        "cidr-block-association.cidr-block": _each("CidrBlockAssociationSet", "CidrBlock"),
        "dhcp-options-id": one("DhcpOptionsId"),
        "is-default": one("IsDefault"),
        "isDefault": one("IsDefault"),
        "owner-id": one("OwnerId"),
        "state": one("State"),
    }
)


@reads("ec2", "DescribeVpcs")
def describe_vpcs(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """The default VPC; all of the VPCs of an emulator beside the yard."""
    found, token = chosen(
        call, surroundings_of(call, yard).vpcs, _VPC_FACETS,
        ids="VpcIds", member="VpcId", not_found=_vpc_missing,
    )  # fmt: skip
    return {"Vpcs": found, **({"NextToken": token} if token else {})}


_SUBNET_FACETS = with_tags(
    {
        "subnet-id": one("SubnetId"),
        "subnet-arn": one("SubnetArn"),
        "vpc-id": one("VpcId"),
        "availability-zone": one("AvailabilityZone"),
        "availabilityZone": one("AvailabilityZone"),
        "availability-zone-id": one("AvailabilityZoneId"),
        "availabilityZoneId": one("AvailabilityZoneId"),
        "cidr-block": one("CidrBlock"),
        "cidr": one("CidrBlock"),
        "cidrBlock": one("CidrBlock"),
        "default-for-az": one("DefaultForAz"),
        "defaultForAz": one("DefaultForAz"),
        "map-public-ip-on-launch": one("MapPublicIpOnLaunch"),
        "owner-id": one("OwnerId"),
        "state": one("State"),
        "available-ip-address-count": one("AvailableIpAddressCount"),
    }
)


@reads("ec2", "DescribeSubnets")
def describe_subnets(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """A subnet a zone, with the caller's name of the zone."""
    found, token = chosen(
        call, surroundings_of(call, yard).subnets, _SUBNET_FACETS,
        ids="SubnetIds", member="SubnetId", not_found=subnet_missing,
    )  # fmt: skip
    return {"Subnets": found, **({"NextToken": token} if token else {})}


_GROUP_FACETS = with_tags(
    {
        "group-id": one("GroupId"),
        "group-name": one("GroupName"),
        "description": one("Description"),
        "owner-id": one("OwnerId"),
        "vpc-id": one("VpcId"),
        "ip-permission.cidr": never,
        "egress.ip-permission.cidr": lambda shape: [
            entry["CidrIp"]
            for permission in shape.get("IpPermissionsEgress", ())
            for entry in permission.get("IpRanges", ())
        ],
    }
)


@reads("ec2", "DescribeSecurityGroups")
def describe_security_groups(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """The security groups; GroupNames means those of the default VPC."""
    around = surroundings_of(call, yard)
    vpc = around.default_vpc()
    named: list[Shape] = []
    for name in call.params.get("GroupNames") or ():
        group = around.group_named(name, vpc["VpcId"]) if vpc is not None else None
        if group is None:
            raise group_missing(name)
        named.append(group)
    found, token = chosen(
        call, named or around.groups, _GROUP_FACETS, ids="GroupIds", member="GroupId", not_found=group_missing
    )
    return {"SecurityGroups": found, **({"NextToken": token} if token else {})}
