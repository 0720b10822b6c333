"""What an instance looks like in answers: alone, in its launch (EC2's "reservation"), as a status."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby

from berth.terms.instants import from_micros
from berth.yard.assembly import Yard
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.ec2.tags import tags_of
from berth.yard.services.lag import status_seen
from berth.yard.services.operation import Call
from berth.yard.store.transaction import Reading, Row

# EC2 API Reference, InstanceState.
STATE_CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48}
BLOCK_LIFECYCLE = "capacity-block"


def state_shape(name: str) -> Shape:
    """InstanceState."""
    return {"Code": STATE_CODES[name], "Name": name}


def instance_shapes(call: Call, yard: Yard, rows: Reading, found: Sequence[Row]) -> list[Shape]:
    """Each row as an Instance."""
    tags = tags_of(call, rows, [row["instance_id"] for row in found])
    return [_instance(call, yard, rows, row, tags) for row in found]


def as_reservations(call: Call, yard: Yard, rows: Reading, found: Sequence[Row]) -> list[Shape]:
    """The instances by launch; those of one launch must follow each other."""
    return grouped(found, instance_shapes(call, yard, rows, found))


def grouped(found: Sequence[Row], shapes: Sequence[Shape]) -> list[Shape]:
    """`shapes`, each the Instance of the row at the same place, as Reservations."""
    both = groupby(zip(found, shapes, strict=True), key=lambda pair: pair[0]["launch_id"])
    answers = []
    for launch_id, pairs in both:
        inside = list(pairs)
        answers.append(
            {
                "ReservationId": launch_id,
                "OwnerId": inside[0][0]["account_id"],
                "Groups": [],
                "Instances": [shape for _, shape in inside],
            }
        )
    return answers


def _instance(call: Call, yard: Yard, rows: Reading, row: Row, tags: Mapping[str, list[Shape]]) -> Shape:
    state = status_seen(call, rows, row)
    details = json.loads(row["details"])
    ended = state in ("shutting-down", "terminated")
    shape: Shape = {
        "InstanceId": row["instance_id"],
        "ImageId": row["image_id"],
        "InstanceType": row["instance_type"],
        "State": state_shape(state),
        "LaunchTime": from_micros(row["created_us"]),
        "AmiLaunchIndex": row["launch_index"],
        "Placement": _placement(call, yard, row),
        "Monitoring": {"State": details["Monitoring"]},
        "Architecture": row["architecture"],
        "ClientToken": row["client_token"],
        "EbsOptimized": details["EbsOptimized"],
        "Hypervisor": "xen",
        "VirtualizationType": "hvm",
        "RootDeviceType": "ebs",
        "PlatformDetails": row["platform_details"],
        "UsageOperation": row["usage_operation"] or None,
        "KeyName": details["KeyName"],
        "StateTransitionReason": row["transition_reason"] if ended else "",
        "PublicDnsName": "",
        "CapacityReservationSpecification": _wish(details),
        "Tags": tags.get(row["instance_id"], []),
    }
    if ended:
        shape["StateReason"] = {"Code": row["reason_code"], "Message": row["reason_message"]}
    if state == "pending":
        shape["StateReason"] = {"Code": "pending", "Message": "pending"}
    if state != "terminated":
        shape |= _network(row, details)
    if row["reservation_id"] is not None:
        shape["InstanceLifecycle"] = BLOCK_LIFECYCLE
        shape["CapacityReservationId"] = row["reservation_id"]
        shape["CapacityBlockId"] = row["block_id"]
    return shape


def _placement(call: Call, yard: Yard, row: Row) -> Shape:
    names = yard.zone_names(call.account.account_id, call.region)
    return {
        "AvailabilityZone": names.name(row["zone_id"]),
        "AvailabilityZoneId": row["zone_id"],
        "GroupName": "",
        "Tenancy": "default",
    }


def _network(row: Row, details: Shape) -> Shape:
    """What EC2 no longer tells of a terminated instance."""
    region = row["region"]
    domain = "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"
    return {
        "VpcId": row["vpc_id"],
        "SubnetId": row["subnet_id"],
        "PrivateIpAddress": row["private_ip"],
        "PrivateDnsName": f"ip-{row['private_ip'].replace('.', '-')}.{domain}",
        "SecurityGroups": details["SecurityGroups"],
    }


def _wish(details: Shape) -> Shape:
    """CapacityReservationSpecification: a target, or the preference, which is `open` when none was given."""
    target = details["CapacityReservationTarget"]
    if target:
        return {
            "CapacityReservationTarget": target,
            "CapacityReservationPreference": details["CapacityReservationPreference"],
        }
    return {"CapacityReservationPreference": details["CapacityReservationPreference"] or "open"}


def status_shape(call: Call, yard: Yard, rows: Reading, row: Row) -> Shape:
    """InstanceStatus: checks pass while it runs, and begin while it starts."""
    state = status_seen(call, rows, row)
    names = yard.zone_names(call.account.account_id, call.region)
    return {
        "InstanceId": row["instance_id"],
        "AvailabilityZone": names.name(row["zone_id"]),
        "AvailabilityZoneId": row["zone_id"],
        "InstanceState": state_shape(state),
        "InstanceStatus": _checks(state),
        "SystemStatus": _checks(state),
    }


def _checks(state: str) -> Shape:
    if state == "running":
        return {"Status": "ok", "Details": [{"Name": "reachability", "Status": "passed"}]}
    if state == "pending":
        return {"Status": "initializing", "Details": [{"Name": "reachability", "Status": "initializing"}]}
    return {"Status": "not-applicable"}
