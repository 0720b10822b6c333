"""DescribeRegions and DescribeAvailabilityZones: the fleet's geography, with the caller's own zone names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.services.operation import Call, reads
from berth.yard.store.transaction import Reading

NOT_REQUIRED = "opt-in-not-required"
OPTED_IN = "opted-in"


def refuse_dry_run(call: Call) -> None:
    """EC2 answers DryRun with an error that says that it would have worked (HTTP 412)."""
    if call.params.get("DryRun"):
        raise ServiceError(
            "DryRunOperation", "Request would have succeeded, but DryRun flag is set.", status=412
        )


Shape = dict[str, Any]
Facet = Callable[[Shape], Iterable[str]]


def passes(shape: Shape, filters: Sequence[Mapping[str, Any]], facets: Mapping[str, Facet]) -> bool:
    """EC2's filters: values of one filter are ORed, filters ANDed, `*` and `?` are wildcards, case counts.

    Raises InvalidParameterValue for a filter that the operation does not have.
    """
    for wanted in filters:
        facet = facets.get(wanted.get("Name", ""))
        if facet is None:
            raise ServiceError("InvalidParameterValue", f"The filter '{wanted.get('Name')}' is invalid")
        found = list(facet(shape))
        if not any(fnmatchcase(value, pattern) for value in found for pattern in wanted.get("Values", [])):
            return False
    return True


_REGION_FACETS: Mapping[str, Facet] = {
    "endpoint": lambda shape: [shape["Endpoint"]],
    "opt-in-status": lambda shape: [shape["OptInStatus"]],
    "region-name": lambda shape: [shape["RegionName"]],
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


def _one(member: str) -> Facet:
    return lambda shape: [shape[member]] if member in shape else []


_ZONE_FACETS: Mapping[str, Facet] = {
    "zone-name": _one("ZoneName"),
    "zone-id": _one("ZoneId"),
    "zone-type": _one("ZoneType"),
    "state": _one("State"),
    "opt-in-status": _one("OptInStatus"),
    "region-name": _one("RegionName"),
    "group-name": _one("GroupName"),
    "group-long-name": _one("GroupLongName"),
    "parent-zone-id": _one("ParentZoneId"),
    "parent-zone-name": _one("ParentZoneName"),
    "message": lambda shape: [],
}


@reads("ec2", "DescribeAvailabilityZones")
def describe_availability_zones(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """The zones of the Region under the names that this account knows them by."""
    refuse_dry_run(call)
    names = yard.zone_names(call.account.account_id, call.region)
    shapes = []
    for zone in yard.fleet.regions[call.region].zones:
        shape: Shape = {
            "ZoneName": names.name(zone.id),
            "ZoneId": zone.id,
            "RegionName": call.region,
            "State": "available",
            "ZoneType": zone.kind.value,
            "OptInStatus": NOT_REQUIRED if zone.parent is None else OPTED_IN,
            "GroupName": call.region if zone.parent is None else names.name(zone.id)[:-1],
            "NetworkBorderGroup": call.region if zone.parent is None else names.name(zone.id)[:-1],
        }
        if zone.parent is not None:
            shape["ParentZoneId"] = zone.parent
            shape["ParentZoneName"] = names.name(zone.parent)
        shapes.append(shape)
    _check_known(call, shapes)
    chosen = [shape for shape in shapes if _asked(call, shape)]
    filters = call.params.get("Filters", ())
    kept = [shape for shape in chosen if passes(shape, filters, _ZONE_FACETS)]
    return {"AvailabilityZones": sorted(kept, key=lambda shape: str(shape["ZoneName"]))}


def _asked(call: Call, shape: Shape) -> bool:
    names, ids = call.params.get("ZoneNames"), call.params.get("ZoneIds")
    return (not names or shape["ZoneName"] in names) and (not ids or shape["ZoneId"] in ids)


def _check_known(call: Call, shapes: Sequence[Shape]) -> None:
    for member, key in (("ZoneNames", "ZoneName"), ("ZoneIds", "ZoneId")):
        known = {shape[key] for shape in shapes}
        for asked in call.params.get(member) or ():
            if asked not in known:
                raise ServiceError("InvalidParameterValue", f"Invalid availability zone: [{asked}]")
