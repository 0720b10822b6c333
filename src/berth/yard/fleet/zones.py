"""Regions and zones of a fleet, and the names by which each account knows its zones.

A zone id (`use1-az6`) means one place for everybody and is used everywhere inside. A zone name
(`us-east-1a`) means another place to each account, as on AWS, so names exist only at the wire. A Local Zone
has one name for all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_lowercase

AVAILABILITY_ZONES_MAX = len(ascii_lowercase)


class ZoneKind(StrEnum):
    """What a zone is; the values are EC2's `ZoneType`."""

    AVAILABILITY_ZONE = "availability-zone"
    LOCAL_ZONE = "local-zone"


@dataclass(frozen=True, slots=True)
class Zone:
    """One zone. `name` and `parent` (a zone id) exist for Local Zones only, None for availability zones."""

    id: str
    region: str
    kind: ZoneKind = ZoneKind.AVAILABILITY_ZONE
    name: str | None = None
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """One Region of a fleet. `opt_in`: an account must enable it first. `zones` are in the file's order."""

    name: str
    partition: str
    opt_in: bool
    zones: tuple[Zone, ...]

    @property
    def availability_zones(self) -> tuple[Zone, ...]:
        """The zones that are not Local Zones."""
        return tuple(z for z in self.zones if z.kind is ZoneKind.AVAILABILITY_ZONE)


@dataclass(frozen=True, slots=True)
class ZoneNames:
    """The zone names of one account in one Region, both ways."""

    region: str
    ids: Mapping[str, str]  # name -> id
    names: Mapping[str, str]  # id -> name

    @classmethod
    def for_account(cls, account_id: str, region: Region) -> ZoneNames:
        """Names after a permutation that depends on nothing but account, Region and zone ids.

        The zones are put in the order of a keyed digest and lettered a, b, c...: the same in every process
        and every version, and spread evenly over all permutations. Two accounts may agree by chance.
        """

        def draw(zone: Zone) -> bytes:
            text = f"{account_id}/{region.name}/{zone.id}"
            return hashlib.blake2b(text.encode(), digest_size=16, person=b"berth-zone-names").digest()

        shuffled = sorted(region.availability_zones, key=draw)
        names = {
            zone.id: region.name + letter for zone, letter in zip(shuffled, ascii_lowercase, strict=False)
        }
        names |= {zone.id: zone.name for zone in region.zones if zone.name is not None}
        return cls(region.name, {name: zone_id for zone_id, name in names.items()}, names)

    def name(self, zone_id: str) -> str:
        """The account's name of the zone. Raises KeyError for a zone that the Region lacks."""
        return self.names[zone_id]

    def id(self, name: str) -> str | None:
        """The zone id behind one of the account's names; None when the account has no such name."""
        return self.ids.get(name)
