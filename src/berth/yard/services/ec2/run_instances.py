"""RunInstances: into a Capacity Block, or on demand. Everything is checked and taken in one transaction."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.fleet.fleet import quota_class
from berth.yard.lifecycle.moves import INSTANCE
from berth.yard.market.bookings import book_open
from berth.yard.services.arns import ec2_arn
from berth.yard.services.ec2.blocks import take_places
from berth.yard.services.ec2.filters import refuse_dry_run
from berth.yard.services.ec2.instance_life import begin_instance
from berth.yard.services.ec2.instance_shapes import as_reservations
from berth.yard.services.ec2.instance_types import vcpus_of
from berth.yard.services.ec2.launch_request import LaunchRequest, read_launch
from berth.yard.services.ec2.launch_targets import LaunchTarget, find_target, no_room
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.ec2.tags import put_tags
from berth.yard.services.operation import Call, writes
from berth.yard.store.transaction import Row, Transaction

_BY_LAUNCH = "SELECT * FROM instances WHERE launch_id = ? ORDER BY launch_index"
_FIRST_ADDRESS, _LAST_KEPT = 4, 1  # EC2 keeps the first four addresses of a subnet, and the last


@writes("ec2", "RunInstances")
def run_instances(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Launch from MinCount to MaxCount instances; the same client token gives the same instances again."""
    asked = read_launch(call, yard)
    rows = _launched_before(call, tx, asked)
    if rows is None:
        target = find_target(call, yard, tx, asked)
        subnet = _subnet(asked, target)
        refuse_dry_run(call)
        rows = _launch(call, yard, tx, asked=asked, target=target, subnet=subnet)
    (answer,) = as_reservations(call, yard, tx, rows)
    return answer


def _subnet(asked: LaunchRequest, target: LaunchTarget) -> Shape:
    """The named subnet, else that of the launch's zone. Raises MissingInput where there is none."""
    subnet = asked.subnet or asked.around.subnet_in(target.pool.zone_id)
    if subnet is None:
        vpc = asked.around.default_vpc()
        where = f"the default VPC '{vpc['VpcId']}'" if vpc is not None else "a default VPC"
        raise ServiceError("MissingInput", f"No subnets found for {where}. Please specify a subnet.")
    return subnet


def _launched_before(call: Call, tx: Transaction, asked: LaunchRequest) -> list[Row] | None:
    """The instances of the launch that had this client token; None when there was none.

    Raises IdempotentParameterMismatch when the parameters were others, IdempotentInstanceTerminated when
    nothing of it runs any more.
    """
    if not asked.token or call.params.get("DryRun"):
        return None
    launch = tx.one(
        "SELECT * FROM launches WHERE account_id = ? AND region = ? AND scope = ? AND client_token = ?"
        " AND client_token != ''",
        call.account.account_id, call.region, asked.scope, asked.token,
    )  # fmt: skip
    if launch is None:
        return None
    if launch["request"] != asked.digest:
        raise ServiceError(
            "IdempotentParameterMismatch",
            "Arguments on this idempotent request are inconsistent with arguments used in previous"
            " request(s).",
        )
    rows = tx.all(_BY_LAUNCH, launch["launch_id"])
    if not any(row["status"] in ("pending", "running") for row in rows):
        raise ServiceError(
            "IdempotentInstanceTerminated",
            "The client token belongs to an earlier request whose instances have been terminated.",
        )
    return rows


def _launch(
    call: Call, yard: Yard, tx: Transaction, *, asked: LaunchRequest, target: LaunchTarget, subnet: Shape
) -> list[Row]:
    """Take the hosts and write the instances; their rows."""
    if target.block is not None and not take_places(tx, target.block["reservation_id"], target.count):
        raise no_room()
    launch_id = f"r-{tx.ids.hex(17)}"
    tx.insert(
        "launches",
        launch_id=launch_id, account_id=call.account.account_id, region=call.region, scope=asked.scope,
        client_token=asked.token, request=asked.digest, created_us=tx.now_us,
    )  # fmt: skip
    for index in range(target.count):
        arn = _add_instance(
            call, tx, asked=asked, target=target, subnet=subnet, launch_id=launch_id, index=index
        )
        if target.block is None:
            book_open(tx, yard.calendars, pool=target.pool.key, count=1, holder=arn)
        begin_instance(tx, yard, arn)
    return tx.all(_BY_LAUNCH, launch_id)


def _add_instance(
    call: Call, tx: Transaction, *, asked: LaunchRequest, target: LaunchTarget, subnet: Shape, launch_id: str,
    index: int,
) -> str:  # fmt: skip
    """One row of an instance, with its tags; its ARN."""
    account_id, block, image = call.account.account_id, target.block, asked.image
    instance_id = f"i-{tx.ids.hex(17)}"
    arn = ec2_arn(call.region, account_id, "instance", instance_id)
    number = tx.insert(
        "instances",
        instance_id=instance_id, arn=arn, launch_id=launch_id, launch_index=index, account_id=account_id,
        region=call.region, status="pending", instance_type=asked.instance_type,
        quota_family=quota_class(asked.instance_type), vcpus=vcpus_of(asked.instance_type),
        pool=target.pool.key, zone_id=target.pool.zone_id,
        reservation_id=block["reservation_id"] if block is not None else None,
        block_id=block["block_id"] if block is not None else None,
        usd_per_hour=str(target.rate.usd_per_hour) if target.rate is not None else None,
        rate_label=target.rate.label if target.rate is not None else "",
        image_id=image["ImageId"], platform_details=image["PlatformDetails"],
        usage_operation=image.get("UsageOperation", ""), architecture=image.get("Architecture", "x86_64"),
        vpc_id=subnet["VpcId"], subnet_id=subnet["SubnetId"], private_ip="", client_token=asked.token,
        details=json.dumps(_details(call, asked)), created_us=tx.now_us,
    )  # fmt: skip
    address = _address(subnet["CidrBlock"], number)
    tx.run("UPDATE instances SET private_ip = ? WHERE number = ?", address, number)
    put_tags(tx, instance_id, INSTANCE.kind, asked.tags, account_id=account_id, region=call.region)
    tx.event(arn, INSTANCE.kind, "launched", account_id=account_id, region=call.region, to_state="pending")
    return arn


def _address(cidr: str, number: int) -> str:
    """An address of the subnet: the next one for each instance, round and round."""
    network = IPv4Network(cidr)
    room = max(1, network.num_addresses - _FIRST_ADDRESS - _LAST_KEPT)
    return str(network[min(_FIRST_ADDRESS, network.num_addresses - 1) + number % room])


def _details(call: Call, asked: LaunchRequest) -> dict[str, Any]:
    """What is shown as it was given."""
    wish = call.params.get("CapacityReservationSpecification", {})
    return {
        "KeyName": call.params.get("KeyName"),
        "EbsOptimized": bool(call.params.get("EbsOptimized", False)),
        "Monitoring": "enabled" if call.params.get("Monitoring", {}).get("Enabled") else "disabled",
        "SecurityGroups": [
            {"GroupId": group["GroupId"], "GroupName": group["GroupName"]} for group in asked.groups
        ],
        "CapacityReservationPreference": wish.get("CapacityReservationPreference"),
        "CapacityReservationTarget": wish.get("CapacityReservationTarget"),
    }
