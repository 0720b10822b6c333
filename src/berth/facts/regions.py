"""AWS Regions, their zones, and which zones list which type."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache

from berth.facts.tables import Provenance, provenance, rows


@dataclass(frozen=True, slots=True)
class LocalZone:
    """A Local Zone in which Capacity Blocks were seen: its name (the same for every account) and zone id."""

    name: str
    zone_id: str


@dataclass(frozen=True, slots=True)
class Region:
    """One Region. `zone_ids` are zone ids (`use1-az6`), never names, which differ by account.

    `opt_in` is True where an account must enable the Region first; Regions of other partitions, which need
    an account of their own, count as False. `zone_ids` is empty where they are not known.
    """

    code: str
    name: str
    partition: str
    opt_in: bool
    zone_ids: tuple[str, ...]
    local_zones: tuple[LocalZone, ...]
    provenance: Provenance


def region(code: str) -> Region | None:
    """The Region with that code (`us-east-1`), or None when the table lacks it."""
    return _by_code().get(code)


def in_local_zone(code: str, zone_id: str | None) -> bool:
    """Whether `zone_id` is a Local Zone of that Region; False for what the table does not know."""
    known = region(code)
    return known is not None and zone_id in {zone.zone_id for zone in known.local_zones}


def regions(partition: str | None = None) -> tuple[Region, ...]:
    """All Regions of a partition (`aws`, `aws-us-gov`, ...); None = of every partition."""
    return tuple(r for r in _by_code().values() if partition in (None, r.partition))


def regions_near(code: str) -> tuple[str, ...]:
    """Up to three codes that look like `code`, the most alike first: what a mistyped one may mean."""
    return tuple(difflib.get_close_matches(code, list(_by_code()), 3, 0.7))


def zones_offering(instance_type: str, code: str) -> tuple[str, ...] | None:
    """Zone ids of Region `code` in which DescribeInstanceTypeOfferings lists the type; None = not known.

    A listing says that the type exists there, not that any can be had. The source lacks Local Zones,
    GovCloud, China and the newest Regions.
    """
    return _offerings().get((instance_type.removeprefix("ml."), code))


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split(";")) if text else ()


def _made(row: dict[str, str]) -> Region:
    names = _split(row["capacity_block_local_zones"])
    ids = _split(row["capacity_block_local_zone_ids"])
    return Region(
        code=row["region"],
        name=row["name"],
        partition=row["partition"],
        opt_in=row["opt_in_required"] == "yes",
        zone_ids=_split(row["zone_ids"]),
        local_zones=tuple(LocalZone(name, zone) for name, zone in zip(names, ids, strict=True)),
        provenance=provenance(row),
    )


@cache
def _by_code() -> dict[str, Region]:
    return {row["region"]: _made(row) for row in rows("regions.csv")}


@cache
def _offerings() -> dict[tuple[str, str], tuple[str, ...]]:
    return {
        (row["instance_type"], row["region"]): _split(row["zone_ids"])
        for row in rows("instance_type_zones.csv")
    }
