"""Local Zones: which of them an account has opted into (ModifyAvailabilityZoneGroup)."""

from __future__ import annotations

from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.fleet.zones import Region, Zone
from berth.yard.services.ec2.filters import refuse_dry_run
from berth.yard.services.operation import Call, writes
from berth.yard.store.transaction import Reading, Transaction

OPTED_IN = "opted-in"
NOT_OPTED_IN = "not-opted-in"


def group_of(zone: Zone) -> str:
    """The zone group: the Region for an availability zone, `us-east-1-atl-2` for the zone
    `us-east-1-atl-2a`."""
    return zone.region if zone.name is None else zone.name[:-1]


def opted_in(rows: Reading, account_id: str, region: Region) -> frozenset[str]:
    """The ids of the Region's Local Zones that the account has opted into."""
    groups = {
        row["group_name"]
        for row in rows.all("SELECT group_name FROM zone_opt_ins WHERE account_id = ?", account_id)
    }
    return frozenset(zone.id for zone in region.zones if zone.parent is not None and group_of(zone) in groups)


@writes("ec2", "ModifyAvailabilityZoneGroup")
def modify_availability_zone_group(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Opt the account into a group of Local Zones. Out again only AWS Support brings one, so that is
    refused."""
    group, status = call.params["GroupName"], call.params["OptInStatus"]
    region = yard.fleet.regions[call.region]
    if group not in {group_of(zone) for zone in region.zones if zone.parent is not None}:
        raise ServiceError("InvalidParameterValue", f"Invalid value '{group[:128]}' for GroupName.")
    if status == NOT_OPTED_IN:
        raise ServiceError(
            "UnsupportedOperation",
            f"To opt out of the zone group {group}, contact AWS Support.",
        )
    if status != OPTED_IN:
        raise ServiceError("InvalidParameterValue", f"Invalid value '{status[:64]}' for OptInStatus.")
    refuse_dry_run(call)
    tx.run(
        "INSERT OR IGNORE INTO zone_opt_ins (account_id, group_name) VALUES (?, ?)",
        call.account.account_id, group,
    )  # fmt: skip
    return {"Return": True}
