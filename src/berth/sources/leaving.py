"""What runs with an order's mark, and which quota requests are open, in all Regions at once. Only read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from berth.aws.refusals import Kind, Refusal
from berth.aws.session import Door
from berth.facts.list_prices import on_demand_hourly
from berth.inventory.leaving import MoreOfRegion, OpenRequest, RunningInstance
from berth.planner.owned import ORDER_TAG
from berth.sources.asking import Lane, ask_all
from berth.sources.reading import every_page, mappings, tags, text
from berth.terms.text import plain

INTERRUPTED = "interrupted before it answered"
_OVER = frozenset({"terminated"})
_OPEN = frozenset({"PENDING", "CASE_OPENED"})


def look_further(door: Door, regions: Sequence[str]) -> tuple[MoreOfRegion, ...]:
    """What every Region shows, all asked at once. Ctrl-C keeps what is there."""
    found: dict[str, MoreOfRegion] = {}

    def hear(one: MoreOfRegion) -> None:
        found[one.region] = one

    ask_all([_lane(door, region) for region in regions], hear)
    return tuple(found.get(region, MoreOfRegion(region, troubles=(INTERRUPTED,))) for region in regions)


def _lane(door: Door, region: str) -> Lane[MoreOfRegion]:
    def lane(hand_over: Callable[[MoreOfRegion], None]) -> None:
        instances, no_instances = _instances(door.reader("ec2", region), region)
        requests, no_requests = _requests(door.reader("service-quotas", region), region)
        said = (no_instances, no_requests)
        hand_over(MoreOfRegion(region, instances, requests, tuple(one for one in said if one)))

    return lane


def _instances(ec2: Any, region: str) -> tuple[tuple[RunningInstance, ...], str]:
    filters = [{"Name": "tag-key", "Values": [ORDER_TAG]}]
    groups, stopped = every_page(
        ec2.describe_instances, "Reservations", absent_is_empty=True, Filters=filters, MaxResults=1000
    )
    rows = [row for group in groups for row in mappings(group.get("Instances"))]
    read = (_instance(row, region) for row in rows)
    return tuple(one for one in read if one is not None and one.state not in _OVER), _trouble(stopped)


def _instance(row: Mapping[str, Any], region: str) -> RunningInstance | None:
    mark = dict(tags(row.get("Tags"))).get(ORDER_TAG)
    if mark is None:
        return None
    state = row.get("State")
    block, kind = text(row.get("CapacityReservationId")), text(row.get("InstanceType"), 64)
    listed = on_demand_hourly(kind, region) if kind and block is None else None
    return RunningInstance(
        region=region,
        id=text(row.get("InstanceId")) or "unknown",
        state=(text(state.get("Name")) if isinstance(state, Mapping) else None) or "unknown",
        order=mark.partition("/")[2].removesuffix("/1"),
        instance_type=kind,
        block=block,
        hourly=listed.money if listed is not None else None,
    )


def _requests(client: Any, region: str) -> tuple[tuple[OpenRequest, ...], str]:
    rows, stopped = every_page(
        client.list_requested_service_quota_change_history, "RequestedQuotas", MaxResults=100
    )
    found = (_request(row, region) for row in rows)
    return tuple(one for one in found if one.status in _OPEN), _trouble(stopped)


def _request(row: Mapping[str, Any], region: str) -> OpenRequest:
    wish = row.get("DesiredValue")
    return OpenRequest(
        region=region,
        service=text(row.get("ServiceCode")) or "unknown",
        code=text(row.get("QuotaCode")) or "unknown",
        name=text(row.get("QuotaName"), 200) or "name not shown",
        desired=float(wish) if isinstance(wish, int | float) and not isinstance(wish, bool) else None,
        status=text(row.get("Status")) or "unknown",
    )


def _trouble(stopped: Refusal | None) -> str:
    if stopped is None or stopped.kind is Kind.UNKNOWN_OPERATION:
        return ""
    return plain(str(stopped), 200)
