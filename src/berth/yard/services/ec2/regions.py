"""DescribeRegions and DescribeAvailabilityZones: the fleet's geography, with the caller's own zone names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.services.ec2.filters import Facet, never, one, passes, refuse_dry_run
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.ec2.zone_opt_ins import NOT_OPTED_IN, OPTED_IN, group_of, opted_in
from berth.yard.services.operation import Call, reads
from berth.yard.store.transaction import Reading

NOT_REQUIRED = "opt-in-not-required"


_REGION_FACETS: Mapping[str, Facet] = {
    "endpoint": one("Endpoint"),
    "opt-in-status": one("OptInStatus"),
    "region-name": one("RegionName"),
}


@reads("ec2", "DescribeRegions")
def describe_regions(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Every Region of the fleet; all are enabled in a yard."""
    refuse_dry_run(call)
    wanted = call.params.get("RegionNames")
    for name in wanted or ():
        if name not in yard.fleet.regions:
            raise ServiceError("InvalidParameterValue", f"Invalid region names: '{name}'")
    shapes = [
        {
            "RegionName": region.name,
            "Endpoint": f"ec2.{region.name}.amazonaws.com",
            "OptInStatus": OPTED_IN if region.opt_in else NOT_REQUIRED,
        }
        for region in yard.fleet.regions.values()
        if not wanted or region.name in wanted
    ]
    filters = call.params.get("Filters", ())
    return {"Regions": [shape for shape in shapes if passes(shape, filters, _REGION_FACETS)]}


_ZONE_FACETS: Mapping[str, Facet] = {
    "zone-name": one("ZoneName"),
    "zone-id": one("ZoneId"),
    "zone-type": one("ZoneType"),
    "state": one("State"),
    "opt-in-status": one("OptInStatus"),
    "region-name": one("RegionName"),
    "group-name": one("GroupName"),
    "group-long-name": one("GroupLongName"),
    "parent-zone-id": one("ParentZoneId"),
    "parent-zone-name": one("ParentZoneName"),
    "message": never,
}


@reads("ec2", "DescribeAvailabilityZones")
def describe_availability_zones(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """The zones of the Region under the names that this account knows them by.

    Local Zones that the account has not opted into are shown with AllAvailabilityZones only.
    """
    refuse_dry_run(call)
    names = yard.zone_names(call.account.account_id, call.region)
    region = yard.fleet.regions[call.region]
    inside = opted_in(rows, call.account.account_id, region)
    shapes = []
    for zone in region.zones:
        shape: Shape = {
            "ZoneName": names.name(zone.id),
            "ZoneId": zone.id,
            "RegionName": call.region,
            "State": "available",
            "ZoneType": zone.kind.value,
            "OptInStatus": NOT_REQUIRED,
            "GroupName": group_of(zone),
            "NetworkBorderGroup": group_of(zone),
        }
        if zone.parent is not None:
            shape["OptInStatus"] = OPTED_IN if zone.id in inside else NOT_OPTED_IN
            shape["ParentZoneId"] = zone.parent
            shape["ParentZoneName"] = names.name(zone.parent)
        shapes.append(shape)
    _check_known(call, shapes)
    chosen = [shape for shape in shapes if _asked(call, shape) and _visible(call, shape)]
    filters = call.params.get("Filters", ())
    kept = [shape for shape in chosen if passes(shape, filters, _ZONE_FACETS)]
    return {"AvailabilityZones": sorted(kept, key=lambda shape: str(shape["ZoneName"]))}


def _visible(call: Call, shape: Shape) -> bool:
    return bool(call.params.get("AllAvailabilityZones")) or shape["OptInStatus"] != NOT_OPTED_IN


def _asked(call: Call, shape: Shape) -> bool:
    names, ids = call.params.get("ZoneNames"), call.params.get("ZoneIds")
    return (not names or shape["ZoneName"] in names) and (not ids or shape["ZoneId"] in ids)


def _check_known(call: Call, shapes: Sequence[Shape]) -> None:
    for member, key in (("ZoneNames", "ZoneName"), ("ZoneIds", "ZoneId")):
        known = {shape[key] for shape in shapes}
        for asked in call.params.get(member) or ():
            if asked not in known:
                raise ServiceError("InvalidParameterValue", f"Invalid availability zone: [{asked}]")
