"""Which zones of a Region have a type at all: what tells "not sold here" from "none on sale"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from berth.facts.instance_types import instance_type
from berth.facts.regions import region
from berth.sources.reading import every_page, text

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Listing:
    """The zones (by id) that list a type, and what stood in the way of reading them ('' when nothing did).

    `complete` is False where the Region has Local Zones with blocks: those that the account has not opted in
    to list nothing, and sell all the same.
    """

    zone_ids: tuple[str, ...]
    complete: bool
    trouble: str = ""

    @property
    def absent(self) -> bool:
        """Whether the Region is known not to have the type. What could not be read is not absent."""
        return not self.zone_ids and self.complete and not self.trouble


def listing(ec2: Any, code: str, kind: str) -> Listing:
    """What DescribeInstanceTypeOfferings says of `kind` in the client's Region `code`. Raises nothing.

    A listing says that the type exists there, not that any can be had. UltraServers are in no such list.
    """
    if is_ultraserver(kind):
        return Listing((), False)
    rows, stopped = every_page(
        ec2.describe_instance_type_offerings, "InstanceTypeOfferings", absent_is_empty=True,
        LocationType="availability-zone-id", MaxResults=_PAGE,
        Filters=[{"Name": "instance-type", "Values": [kind]}],
    )  # fmt: skip
    found = sorted({zone for zone in (text(row.get("Location"), 64) for row in rows) if zone})
    trouble = f"whether the type exists here at all is not known ({stopped.code})" if stopped else ""
    known = region(code)
    return Listing(tuple(found), known is not None and not known.local_zones, trouble)


def is_ultraserver(kind: str) -> bool:
    """Whether the type is an UltraServer (`u-p6e-gb200x72`), by the tables or by its prefix."""
    known = instance_type(kind)
    return known.is_ultraserver if known else kind.removeprefix("ml.").startswith("u-")
