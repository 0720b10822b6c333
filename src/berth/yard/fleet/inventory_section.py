"""The part of a fleet file that says what there is: Regions, zones, hardware, pools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from berth.terms.settings import Section
from berth.terms.ways import Target
from berth.yard.fleet.pools import FACES, SAGEMAKER, Face, Pool, Shares, pool_key
from berth.yard.fleet.zones import AVAILABILITY_ZONES_MAX, Region, Zone, ZoneKind

HOSTS_MAX = 100_000
KEY_MAX = 80  # of a pool key: an offering id carries it whole
REGION_PATTERN = r"[a-z]{2,}(-[a-z]+)+-\d+"
ZONE_PATTERN = r"[a-z0-9]+(-[a-z0-9]+)+"
TYPE_PATTERN = r"[a-z0-9][a-z0-9-]*\.[a-z0-9]+"
_PERCENT = re.compile(r"(\d{1,3})%")
_PLAN_TARGETS = tuple(t.value for t in Target if t is not Target.INSTANCES)


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the pools of one hardware type have in common; `types` are its names by face."""

    name: str
    faces: Mapping[str, str]
    targets: frozenset[Target]
    unit: int
    self_service: bool

    @property
    def types(self) -> tuple[str, ...]:
        """The instance types that services call it."""
        return tuple(self.faces.values())


# -- places ----------------------------------------------------------------------------------------------


def read_regions(top: Section) -> dict[str, Region]:
    """`[[regions]]` with their zones, and `[[local_zones]]` hung into them."""
    found: dict[str, Region] = {}
    taken: set[str] = set()
    locals_of = _read_local_zones(top)
    sections = top.tables("regions")
    if not sections:
        top.complain("regions", "a fleet needs at least one [[regions]]")
    for section in sections:
        name = section.text("name", pattern=REGION_PATTERN, hint="a Region like us-east-1")
        if name in found:
            section.complain("name", f"{name} is there twice")
        zones = _read_zones(section, name, taken)
        found[name] = Region(
            name=name,
            partition=section.text("partition", "aws", pattern=r"aws[a-z-]*"),
            opt_in=section.flag("opt_in", False),
            zones=(*zones, *(zone for _, zone in locals_of if zone.region == name)),
        )
    _check_local_zones(locals_of, found, taken)
    return found


def _read_zones(section: Section, region: str, taken: set[str]) -> tuple[Zone, ...]:
    ids = section.texts("zones", pattern=ZONE_PATTERN)
    if not 1 <= len(ids) <= AVAILABILITY_ZONES_MAX:
        section.complain("zones", f"must name 1 to {AVAILABILITY_ZONES_MAX} zone ids, not {len(ids)}")
    for zone_id in ids:
        if zone_id in taken:
            section.complain("zones", f"{zone_id} is there twice; a zone id means one place")
        taken.add(zone_id)
    return tuple(Zone(zone_id, region) for zone_id in ids)


def _read_local_zones(top: Section) -> list[tuple[Section, Zone]]:
    return [
        (
            section,
            Zone(
                id=section.text("id", pattern=ZONE_PATTERN),
                region=section.text("region"),
                kind=ZoneKind.LOCAL_ZONE,
                name=section.text("name", pattern=ZONE_PATTERN, hint="a zone name like us-east-1-atl-2a"),
                parent=section.text("parent"),
            ),
        )
        for section in top.tables("local_zones")
    ]


def _check_local_zones(
    found: list[tuple[Section, Zone]], regions: Mapping[str, Region], taken: set[str]
) -> None:
    for section, zone in found:
        region = regions.get(zone.region)
        if region is None:
            section.complain("region", f"{zone.region!r} is not among the [[regions]]")
        elif zone.parent not in {z.id for z in region.availability_zones}:
            section.complain("parent", f"{zone.parent!r} is not a zone id of {zone.region}")
        if zone.id in taken:
            section.complain("id", f"{zone.id} is there twice; a zone id means one place")
        taken.add(zone.id)


# -- hardware --------------------------------------------------------------------------------------------


def read_hardware(top: Section) -> dict[str, Hardware]:
    """`[[hardware]]`: a type, its names by service, and what SageMaker sells it for."""
    found: dict[str, Hardware] = {}
    taken: set[str] = set()
    sections = top.tables("hardware")
    if not sections:
        top.complain("hardware", "a fleet needs at least one [[hardware]]")
    for section in sections:
        name = section.text("type", pattern=TYPE_PATTERN, hint="a type like p5.48xlarge")
        if name in found:
            section.complain("type", f"{name} is there twice")
        faces = _read_faces(section, name)
        for instance_type in faces.values():
            if instance_type in taken:
                section.complain("faces", f"{instance_type} is the name of other hardware already")
            taken.add(instance_type)
        found[name] = Hardware(
            name=name,
            faces=faces,
            targets=_read_targets(section, frozenset(map(Target, _PLAN_TARGETS))),
            unit=section.integer("unit", 1, low=1, high=64),
            self_service=section.flag("self_service", True),
        )
    return found


def _read_faces(section: Section, hardware: str) -> dict[str, str]:
    table = section.table("faces")
    if table is None:
        return {"ec2": hardware, "sagemaker": f"ml.{hardware}"}
    faces = {}
    for face in FACES:
        prefix = r"ml\." if face == SAGEMAKER else ""
        if table.has(face):
            faces[face] = table.text(face, pattern=prefix + TYPE_PATTERN, hint="a type of that service")
    if not faces:
        section.complain("faces", f"must name at least one of {', '.join(FACES)}")
    return faces


def _read_targets(section: Section, default: frozenset[Target]) -> frozenset[Target]:
    words = section.texts("targets", tuple(sorted(default)))
    wrong = [word for word in words if word not in _PLAN_TARGETS]
    if wrong:
        section.complain("targets", f"{wrong[0]!r} is not one of {', '.join(_PLAN_TARGETS)}")
    return frozenset(Target(word) for word in words if word in _PLAN_TARGETS)


# -- pools -----------------------------------------------------------------------------------------------


def read_pools(
    top: Section, regions: Mapping[str, Region], hardware: Mapping[str, Hardware]
) -> dict[str, Pool]:
    """`[[pools]]`: one table for a hardware type in some zones, one pool for each zone that it names."""
    zones = {zone.id: zone for region in regions.values() for zone in region.zones}
    default = top.table("shares")
    found: dict[str, Pool] = {}
    for section in top.tables("pools"):
        name = section.text("hardware")
        kind = hardware.get(name)
        if kind is None:
            section.complain("hardware", f"{name!r} is not among the [[hardware]] types")
            kind = Hardware(name, {}, frozenset(), 1, True)
        caps = _read_caps(section, kind)
        targets = _read_targets(section, kind.targets)
        shares = section.table("shares") or default
        for zone_id, hosts, line in _read_hosts(section, kind):
            if zone_id not in zones:
                line.complain(zone_id, "is not a zone id of this fleet")
                continue
            key = pool_key(zone_id, name)
            if key in found:
                line.complain(zone_id, f"the pool {key} is there twice")
            if len(key) > KEY_MAX:
                line.complain(zone_id, f"zone id and type together must be at most {KEY_MAX} characters")
            found[key] = Pool(
                zone_id=zone_id,
                region=zones[zone_id].region,
                hardware=name,
                hosts=hosts,
                shares=_read_shares(shares, hosts, kind.unit),
                faces={face: Face(type_, caps.get(face)) for face, type_ in kind.faces.items()},
                targets=targets,
                unit=kind.unit,
                self_service=kind.self_service,
            )
    if not found:
        top.complain("pools", "a fleet needs at least one [[pools]]")
    return found


def _read_hosts(section: Section, kind: Hardware) -> Iterator[tuple[str, int, Section]]:
    """(zone id, hosts, the table that says so) of each zone of a pools table."""
    table = section.table("hosts", required=True)
    for zone_id in table.keys() if table is not None else ():
        assert table is not None
        hosts = table.integer(zone_id, low=1, high=HOSTS_MAX)
        if hosts % kind.unit:
            table.complain(
                zone_id, f"must be a multiple of {kind.unit}, the unit of {kind.name}, not {hosts}"
            )
        yield zone_id, hosts, table


def _read_caps(section: Section, kind: Hardware) -> dict[str, int]:
    table = section.table("caps")
    if table is None:
        return {}
    for face in FACES:
        if table.has(face) and face not in kind.faces:
            table.complain(face, f"{kind.name} has no {face} face")
    return {face: table.integer(face, low=0, high=HOSTS_MAX) for face in FACES if table.has(face)}


def _read_shares(section: Section | None, hosts: int, unit: int) -> Shares:
    """Counts from counts or percents. What is not on-demand or spare is reservable, unless told less."""
    if section is None:
        return Shares(reservable=hosts, on_demand=0, spare=0)
    on_demand = _share(section, "on_demand", hosts, unit, 0)
    spare = _share(section, "spare", hosts, unit, 0)
    rest = max(0, hosts - on_demand - spare)
    reservable = _share(section, "reservable", hosts, unit, rest - rest % unit)
    if reservable + on_demand + spare > hosts:
        section.complain(None, f"shares come to {reservable + on_demand + spare} of {hosts} hosts")
    return Shares(reservable, on_demand, spare)


def _share(section: Section, key: str, hosts: int, unit: int, default: int) -> int:
    """A share in hosts: a count, or a percentage rounded down to whole units."""
    value = section.raw(key, default)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= HOSTS_MAX:
        return value
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if percent is None or int(percent.group(1)) > 100:
        section.complain(key, f'must be a count of hosts or a percentage like "80%", not {value!r}')
        return default
    share = hosts * int(percent.group(1)) // 100
    return share - share % unit
