"""DescribeInstanceTypes and DescribeInstanceTypeOfferings: the types that the fleet has in a Region.

What a type consists of comes from the dated tables of `berth.facts`; what they do not tell stays out of the
answer. What it may be used for comes from the fleet: a usage class says that the Region's pools have a share
for it and a price, never that anything is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from berth.facts.ec2_shapes import Ec2Shape, ec2_shape
from berth.facts.instance_types import InstanceType, instance_type
from berth.facts.spot_prices import spot_price_seen
from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.pools import EC2, Pool
from berth.yard.fleet.zones import ZoneNames
from berth.yard.market.price_lists import find_rate
from berth.yard.services.ec2.filters import Facet, check_filters, one, passes, refuse_dry_run
from berth.yard.services.ec2.paging import check_page, page_of
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.ec2.zone_opt_ins import opted_in
from berth.yard.services.operation import Call, reads
from berth.yard.store.transaction import Reading

TYPES_PAGE_MAX = 100
NEURON = "AWS"


def pools_by_type(fleet: Fleet, region: str) -> dict[str, list[Pool]]:
    """The pools of the Region that EC2 sees, by instance type, in the fleet's order."""
    found: dict[str, list[Pool]] = {}
    for pool in fleet.pools.values():
        if pool.region == region and EC2 in pool.faces:
            found.setdefault(pool.faces[EC2].instance_type, []).append(pool)
    return found


def vcpus_of(name: str) -> int | None:
    """The vCPUs of a type; None = not known."""
    shape, known = ec2_shape(name), instance_type(name)
    if shape is not None:
        return shape.vcpus
    return known.vcpus if known is not None else None


# -- shapes ----------------------------------------------------------------------------------------------
def usage_classes(fleet: Fleet, name: str, pools: Sequence[Pool]) -> list[str]:
    """What the type can be sold as from these pools, all of one Region."""
    known = instance_type(name)
    found = []
    if any(p.shares.reservable and p.self_service for p in pools) and (known is None or known.capacity_block):
        found.append("capacity-block")
    if any(p.shares.on_demand for p in pools) and _has_rate(fleet, pools[0]):
        found.append("on-demand")
    if any(spot_price_seen(name, pool.zone_id) is not None for pool in pools):
        found.append("spot")
    return found


def _has_rate(fleet: Fleet, pool: Pool) -> bool:
    return find_rate(fleet.on_demand_rates, pool.hardware, pool.region) is not None


def type_shape(fleet: Fleet, name: str, pools: Sequence[Pool]) -> Shape:
    """InstanceTypeInfo of a type that these pools of one Region hold."""
    shape: Shape = {"InstanceType": name, "SupportedUsageClasses": usage_classes(fleet, name, pools)}
    described, known = ec2_shape(name), instance_type(name)
    if described is not None:
        shape |= _described(described)
    elif known is not None:
        shape |= _as_known(known)
    return shape


# The same for every type of the table (moto-5.2.5, as its other columns).
_ALIKE: Shape = {
    "CurrentGeneration": True,
    "BareMetal": False,
    "Hypervisor": "nitro",
    "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
    "SupportedRootDeviceTypes": ["ebs"],
    "SupportedVirtualizationTypes": ["hvm"],
    "PlacementGroupInfo": {"SupportedStrategies": ["cluster", "partition", "spread"]},
}


def _described(known: Ec2Shape) -> Shape:
    return {
        **_ALIKE,
        "VCpuInfo": {"DefaultVCpus": known.vcpus},
        "MemoryInfo": {"SizeInMiB": known.memory_mib},
        **_devices(known.vendor, known.device, known.device_count, known.device_memory_mib),
        "NetworkInfo": {
            "NetworkPerformance": known.network_performance,
            "MaximumNetworkCards": known.network_cards_max,
            "EfaSupported": known.efa_interfaces_max > 0,
            "EfaInfo": {"MaximumEfaInterfaces": known.efa_interfaces_max},
        },
    }


def _as_known(known: InstanceType) -> Shape:
    """What the coarser table tells."""
    shape = _devices(known.vendor, known.accelerator, known.accelerator_count, None)
    shape["NetworkInfo"] = {"EfaSupported": known.efa}
    if known.vcpus is not None:
        shape["VCpuInfo"] = {"DefaultVCpus": known.vcpus}
    if known.memory_gib is not None:
        shape["MemoryInfo"] = {"SizeInMiB": int(known.memory_gib * 1024)}
    return shape


def _devices(vendor: str, name: str, count: int, memory_mib: int | None) -> Shape:
    """GpuInfo or NeuronInfo; the wire leaves out a total that is None."""
    device: Shape = {"Name": name, "Count": count}
    if memory_mib is not None:
        device["MemoryInfo"] = {"SizeInMiB": memory_mib}
    total = None if memory_mib is None else count * memory_mib
    if vendor == NEURON:
        return {"NeuronInfo": {"NeuronDevices": [device], "TotalNeuronDeviceMemoryInMiB": total}}
    gpu = {**device, "Manufacturer": vendor}
    return {"GpuInfo": {"Gpus": [gpu], "TotalGpuMemoryInMiB": total}}


# -- DescribeInstanceTypes -------------------------------------------------------------------------------
def _at(*path: str) -> Facet:
    """The text of a member inside members."""

    def facet(shape: Shape) -> Iterable[str]:
        for member in path[:-1]:
            shape = shape.get(member, {})
        return one(path[-1])(shape)

    return facet


def _each_at(*path: str) -> Facet:
    """The texts of a list inside members."""

    def facet(shape: Shape) -> Iterable[str]:
        for member in path[:-1]:
            shape = shape.get(member, {})
        return [str(item) for item in shape.get(path[-1], ())]

    return facet


_TYPE_FACETS: Mapping[str, Facet] = {
    "bare-metal": one("BareMetal"),
    "current-generation": one("CurrentGeneration"),
    "hypervisor": one("Hypervisor"),
    "processor-info.supported-architecture": _each_at("ProcessorInfo", "SupportedArchitectures"),
    "supported-root-device-type": _each_at("SupportedRootDeviceTypes"),
    "supported-virtualization-type": _each_at("SupportedVirtualizationTypes"),
    "placement-group-info.supported-strategies": _each_at("PlacementGroupInfo", "SupportedStrategies"),
    "instance-type": one("InstanceType"),
    "supported-usage-class": _each_at("SupportedUsageClasses"),
    "vcpu-info.default-vcpus": _at("VCpuInfo", "DefaultVCpus"),
    "memory-info.size-in-mib": _at("MemoryInfo", "SizeInMiB"),
    "network-info.efa-supported": _at("NetworkInfo", "EfaSupported"),
    "network-info.efa-info.maximum-efa-interfaces": _at("NetworkInfo", "EfaInfo", "MaximumEfaInterfaces"),
    "network-info.maximum-network-cards": _at("NetworkInfo", "MaximumNetworkCards"),
    "network-info.network-performance": _at("NetworkInfo", "NetworkPerformance"),
}


@reads("ec2", "DescribeInstanceTypes")
def describe_instance_types(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """The Region's types, by name."""
    check_page(call, "InstanceTypes")
    filters = call.params.get("Filters", ())
    check_filters(filters, _TYPE_FACETS)
    refuse_dry_run(call)
    here = pools_by_type(yard.fleet, call.region)
    wanted = call.params.get("InstanceTypes")
    missing = [name for name in wanted or () if name not in here]
    if missing:
        raise ServiceError(
            "InvalidInstanceType",
            f"The following supplied instance types do not exist: [{', '.join(missing)}]",
        )
    shapes = [
        type_shape(yard.fleet, name, here[name]) for name in sorted(here) if not wanted or name in wanted
    ]
    kept = [shape for shape in shapes if passes(shape, filters, _TYPE_FACETS)]
    found, token = page_of(call, kept, lambda shape: (shape["InstanceType"],), 1, TYPES_PAGE_MAX)
    return {"InstanceTypes": found, **({"NextToken": token} if token else {})}


# -- DescribeInstanceTypeOfferings -----------------------------------------------------------------------
_OFFERING_FACETS: Mapping[str, Facet] = {"instance-type": one("InstanceType"), "location": one("Location")}


@reads("ec2", "DescribeInstanceTypeOfferings")
def describe_instance_type_offerings(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Which types exist where: in the Region, or in which of its zones, but for Local Zones that the account
    has not opted into."""
    filters = call.params.get("Filters", ())
    check_filters(filters, _OFFERING_FACETS)
    refuse_dry_run(call)
    kind = call.params.get("LocationType", "region")
    names = yard.zone_names(call.account.account_id, call.region)
    region = yard.fleet.regions[call.region]
    opened = opted_in(rows, call.account.account_id, region)
    hidden = {zone.id for zone in region.zones if zone.parent is not None and zone.id not in opened}
    shapes = [
        {"InstanceType": name, "LocationType": kind, "Location": place}
        for name, pools in pools_by_type(yard.fleet, call.region).items()
        for place in _places(kind, call.region, [p for p in pools if p.zone_id not in hidden], names)
    ]
    kept = [shape for shape in shapes if passes(shape, filters, _OFFERING_FACETS)]
    kept.sort(key=_place_key)
    found, token = page_of(call, kept, _place_key, 2)
    return {"InstanceTypeOfferings": found, **({"NextToken": token} if token else {})}


def _place_key(shape: Shape) -> tuple[str, str]:
    return shape["InstanceType"], shape["Location"]


def _places(kind: str, region: str, pools: Sequence[Pool], names: ZoneNames) -> list[str]:
    """The locations of that kind in which the pools lie; a yard has no Outposts."""
    if kind == "region":
        return [region] if pools else []
    if kind == "availability-zone-id":
        return [pool.zone_id for pool in pools]
    return [names.name(pool.zone_id) for pool in pools] if kind == "availability-zone" else []
