"""Looking at instances and ending them: DescribeInstances, DescribeInstanceStatus, TerminateInstances."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.lifecycle.moves import INSTANCE
from berth.yard.services.ec2.filters import (
    Facet,
    always,
    check_filters,
    never,
    one,
    passes,
    prefilter,
    refuse_dry_run,
    with_tags,
)
from berth.yard.services.ec2.instance_life import by_user, end_instance
from berth.yard.services.ec2.instance_shapes import grouped, instance_shapes, state_shape, status_shape
from berth.yard.services.ec2.paging import check_page, page
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.ec2.tags import Taggable, taggable
from berth.yard.services.lag import horizon_us
from berth.yard.services.operation import Call, reads, writes
from berth.yard.store.transaction import Reading, Row, Transaction, Value

TERMINATED_AT_ONCE_MAX = 1000
STATUSES_BY_ID_MAX = 100
_ID = re.compile(r"i-[0-9a-f]{8}(?:[0-9a-f]{9})?")
NOT_FOUND = "InvalidInstanceID.NotFound"
taggable("i-", Taggable(INSTANCE.kind, "instances", "instance_id", NOT_FOUND))


# -- finding ---------------------------------------------------------------------------------------------
def find_instances(call: Call, rows: Reading, ids: Iterable[str]) -> list[Row]:
    """The caller's instances of these ids, in the order of launching, each once.

    Raises InvalidInstanceID.Malformed and .NotFound, the latter naming all that are not there: one bad id
    fails the whole call.
    """
    found, missing = {}, []
    for instance_id in dict.fromkeys(ids):
        if not _ID.fullmatch(instance_id):
            raise ServiceError(
                "InvalidInstanceID.Malformed", f'Invalid id: "{instance_id[:64]}" (expecting "i-...")'
            )
        row = rows.one(
            "SELECT * FROM instances WHERE instance_id = ? AND account_id = ? AND region = ?"
            " AND created_us <= ?",
            instance_id, call.account.account_id, call.region, horizon_us(call),
        )  # fmt: skip
        if row is None:
            missing.append(instance_id)
        else:
            found[row["number"]] = row
    if missing:
        names = f"ID '{missing[0]}' does" if len(missing) == 1 else f"IDs '{', '.join(missing)}' do"
        raise ServiceError(NOT_FOUND, f"The instance {names} not exist")
    return [found[number] for number in sorted(found)]


# -- DescribeInstances -----------------------------------------------------------------------------------
def _at(outer: str, inner: str) -> Facet:
    return lambda shape: one(inner)(shape.get(outer) or {})


def _target(member: str) -> Facet:
    return lambda shape: one(member)(
        shape["CapacityReservationSpecification"].get("CapacityReservationTarget") or {}
    )


def _groups(member: str) -> Facet:
    return lambda shape: [group[member] for group in shape.get("SecurityGroups", ())]


_WISH = "capacity-reservation-specification.capacity-reservation-"
_FACETS: Mapping[str, Facet] = with_tags(
    {
        "instance-id": one("InstanceId"),
        "instance-type": one("InstanceType"),
        "instance-state-name": _at("State", "Name"),
        "instance-state-code": _at("State", "Code"),
        "instance-lifecycle": one("InstanceLifecycle"),
        "instance.group-id": _groups("GroupId"),
        "instance.group-name": _groups("GroupName"),
        "group-id": never,
        "group-name": never,
        "architecture": one("Architecture"),
        "availability-zone": _at("Placement", "AvailabilityZone"),
        "availability-zone-id": _at("Placement", "AvailabilityZoneId"),
        "capacity-reservation-id": one("CapacityReservationId"),
        f"{_WISH}preference": _at("CapacityReservationSpecification", "CapacityReservationPreference"),
        f"{_WISH}target.capacity-reservation-id": _target("CapacityReservationId"),
        f"{_WISH}target.capacity-reservation-resource-group-arn": never,
        "client-token": one("ClientToken"),
        "dns-name": never,  # nothing has a public address
        "ebs-optimized": one("EbsOptimized"),
        "hypervisor": one("Hypervisor"),
        "ip-address": never,
        "image-id": one("ImageId"),
        "key-name": one("KeyName"),
        "launch-index": one("AmiLaunchIndex"),
        "launch-time": one("LaunchTime"),
        "monitoring-state": _at("Monitoring", "State"),
        "network-interface.availability-zone": _at("Placement", "AvailabilityZone"),
        "network-interface.group-id": _groups("GroupId"),
        "network-interface.group-name": _groups("GroupName"),
        "network-interface.private-ip-address": one("PrivateIpAddress"),
        "network-interface.subnet-id": one("SubnetId"),
        "network-interface.vpc-id": one("VpcId"),
        "operator.managed": always("false"),
        "owner-id": one("OwnerId"),
        "platform": never,  # EC2 has a word for Windows only
        "placement-group-name": never,
        "platform-details": one("PlatformDetails"),
        "private-dns-name": one("PrivateDnsName"),
        "private-ip-address": one("PrivateIpAddress"),
        "reason": one("StateTransitionReason"),
        "reservation-id": one("ReservationId"),
        "root-device-type": one("RootDeviceType"),
        "spot-instance-request-id": never,
        "state-reason-code": _at("StateReason", "Code"),
        "state-reason-message": _at("StateReason", "Message"),
        "subnet-id": one("SubnetId"),
        "tenancy": always("default"),
        "usage-operation": one("UsageOperation"),
        "virtualization-type": one("VirtualizationType"),
        "vpc-id": one("VpcId"),
    }
)
# Only what a terminated instance shows too: a column is what is shown, whatever the state.
_COLUMNS = {
    "instance-id": "instance_id",
    "instance-type": "instance_type",
    "availability-zone-id": "zone_id",
    "capacity-reservation-id": "reservation_id",
    "client-token": "client_token",
    "image-id": "image_id",
    "reservation-id": "launch_id",
}
_STATUS_COLUMN = {"instance-state-name": "status"}


def _where(
    call: Call, rows: Reading, filters: Sequence[Mapping[str, Any]], columns: Mapping[str, str]
) -> tuple[list[str], list[Value]]:
    """The caller's rows of the Region, of the asked ids, that may pass the filters."""
    if not call.lag:  # while a rehearsal lags the column holds another state than the one that is shown
        columns = {**columns, **_STATUS_COLUMN}
    clauses, bound = prefilter(filters, columns, call=call, tagged_by="instance_id")
    where = ["account_id = ?", "region = ?", "created_us <= ?", *clauses]
    values: list[Value] = [call.account.account_id, call.region, horizon_us(call), *bound]
    ids = call.params.get("InstanceIds")
    if ids:
        numbers = [row["number"] for row in find_instances(call, rows, ids)]
        where.append(f"number IN ({', '.join('?' * len(numbers))})")
        values += numbers
    return where, values


@reads("ec2", "DescribeInstances")
def describe_instances(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """By launch, in the order of launching. A page counts instances; a launch may go on in the next."""
    filters = call.params.get("Filters", ())
    check_page(call, "InstanceIds")
    check_filters(filters, _FACETS)
    refuse_dry_run(call)
    where, values = _where(call, rows, filters, _COLUMNS)
    kept: dict[str, Row] = {}

    def shapes(some: list[Row]) -> list[Shape | None]:
        made = instance_shapes(call, yard, rows, some)
        kept.update((row["instance_id"], row) for row in some)
        return [
            shape if passes(_with_launch(row, shape), filters, _FACETS) else None
            for row, shape in zip(some, made, strict=True)
        ]

    found, token = page(call, rows, table="instances", where=where, values=values, shapes=shapes)
    answer: dict[str, Any] = {"Reservations": grouped([kept[shape["InstanceId"]] for shape in found], found)}
    return {**answer, **({"NextToken": token} if token else {})}


def _with_launch(row: Row, shape: Shape) -> Shape:
    """With the members of its launch, after which one may filter too."""
    return {**shape, "ReservationId": row["launch_id"], "OwnerId": row["account_id"]}


# -- DescribeInstanceStatus ------------------------------------------------------------------------------
_STATUS_FACETS: Mapping[str, Facet] = {
    "availability-zone": one("AvailabilityZone"),
    "availability-zone-id": one("AvailabilityZoneId"),
    "event.code": never,
    "event.description": never,
    "event.instance-event-id": never,
    "event.not-after": never,
    "event.not-before": never,
    "event.not-before-deadline": never,
    "instance-state-code": _at("InstanceState", "Code"),
    "instance-state-name": _at("InstanceState", "Name"),
    "instance-status.status": _at("InstanceStatus", "Status"),
    "instance-status.reachability": lambda shape: [
        check["Status"] for check in shape["InstanceStatus"].get("Details", ())
    ],
    "system-status.status": _at("SystemStatus", "Status"),
    "system-status.reachability": lambda shape: [
        check["Status"] for check in shape["SystemStatus"].get("Details", ())
    ],
    "attached-ebs-status.status": never,
}


@reads("ec2", "DescribeInstanceStatus")
def describe_instance_status(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Running instances only, unless IncludeAllInstances."""
    filters = call.params.get("Filters", ())
    ids = call.params.get("InstanceIds") or ()
    check_page(call, "InstanceIds")
    if len(ids) > STATUSES_BY_ID_MAX:
        raise ServiceError(
            "InvalidParameterValue", f"A request takes at most {STATUSES_BY_ID_MAX} instance IDs."
        )
    check_filters(filters, _STATUS_FACETS)
    refuse_dry_run(call)
    where, values = _where(call, rows, filters, {"availability-zone-id": "zone_id"})
    everyone = bool(call.params.get("IncludeAllInstances"))

    def shapes(some: list[Row]) -> list[Shape | None]:
        made = [status_shape(call, yard, rows, row) for row in some]
        return [
            shape
            if (everyone or shape["InstanceState"]["Name"] == "running")
            and passes(shape, filters, _STATUS_FACETS)
            else None
            for shape in made
        ]

    found, token = page(call, rows, table="instances", where=where, values=values, shapes=shapes)
    return {"InstanceStatuses": found, **({"NextToken": token} if token else {})}


# -- TerminateInstances ----------------------------------------------------------------------------------
@writes("ec2", "TerminateInstances")
def terminate_instances(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """All or none; again is fine and changes nothing."""
    ids = call.params["InstanceIds"]
    if not 1 <= len(ids) <= TERMINATED_AT_ONCE_MAX:
        raise ServiceError(
            "InvalidParameterValue", f"A request takes from 1 to {TERMINATED_AT_ONCE_MAX} instance IDs."
        )
    rows = find_instances(call, tx, ids)
    refuse_dry_run(call)
    changes = []
    for row in rows:
        before = after = row["status"]
        if INSTANCE.may(before, "shutting-down"):
            end_instance(tx, yard, row, by_user(tx))
            after = "shutting-down"
        changes.append(
            {
                "InstanceId": row["instance_id"],
                "PreviousState": state_shape(before),
                "CurrentState": state_shape(after),
            }
        )
    return {"TerminatingInstances": changes}
