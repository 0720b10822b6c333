"""Zone names to zone ids: `us-east-1f` means another zone in every account, `use1-az6` the same in all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from berth.terms.text import plain


def zone_ids(ec2: Any) -> Mapping[str, str]:
    """Zone name to zone id for the caller's account in the client's Region, Local Zones included.

    `ec2` is a client that can read. Raises what botocore raises.
    """
    answer = ec2.describe_availability_zones(AllAvailabilityZones=True)
    return {
        plain(zone["ZoneName"], 64): plain(zone["ZoneId"], 64)
        for zone in answer.get("AvailabilityZones", ())
        if zone.get("ZoneName") and zone.get("ZoneId")
    }
