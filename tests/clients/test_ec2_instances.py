"""A Capacity Block from search to the last instance, with AWS's own clients."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

pytestmark = [pytest.mark.clients, pytest.mark.yard(clock="2026-12-01T09:00:00Z")]

P5 = "p5.48xlarge"
LINUX = "Linux/UNIX"
IMAGES = "al2023-ami-2023.*-x86_64"


def test_block_and_instance_with_the_aws_cli(aws: Any, yard: Any) -> None:
    """Search, purchase, describe, launch when it is active and not before, look, terminate."""
    wanted = ("--instance-type", P5, "--instance-count", "1", "--capacity-duration-hours", "24")
    offers = aws("ec2", "describe-capacity-block-offerings", *wanted)["CapacityBlockOfferings"]
    offer = max(offers, key=lambda one: str(one["StartDate"]))
    bought = aws(
        "ec2", "purchase-capacity-block", "--capacity-block-offering-id", offer["CapacityBlockOfferingId"],
        "--instance-platform", LINUX,
    )["CapacityReservation"]  # fmt: skip
    block = bought["CapacityReservationId"]
    assert Decimal(offer["UpfrontFee"]) > 0
    image = aws(
        "ec2", "describe-images", "--owners", "amazon", "--filters", f"Name=name,Values={IMAGES}"
    )["Images"][0]["ImageId"]  # fmt: skip
    zone = bought["AvailabilityZone"]
    subnet = aws("ec2", "describe-subnets", "--filters", f"Name=availability-zone,Values={zone}")["Subnets"][
        0
    ]
    launch = (
        "ec2", "run-instances", "--image-id", image, "--instance-type", P5, "--count", "1", "--subnet-id",
        subnet["SubnetId"], "--instance-market-options", "MarketType=capacity-block",
        "--capacity-reservation-specification",
        f"CapacityReservationTarget={{CapacityReservationId={block}}}",
    )  # fmt: skip
    assert "(InvalidCapacityReservationState.PendingActivation)" in aws.refused(*launch)
    yard.clock.set(datetime.fromisoformat(offer["StartDate"]))
    made = aws(*launch)["Instances"][0]["InstanceId"]
    yard.clock.advance(minutes=1)
    aws("ec2", "wait", "instance-running", "--instance-ids", made)
    (entry,) = aws("ec2", "describe-instances", "--instance-ids", made)["Reservations"]
    assert entry["Instances"][0]["CapacityReservationId"] == block
    aws("ec2", "terminate-instances", "--instance-ids", made)
    yard.clock.advance(minutes=10)
    aws("ec2", "wait", "instance-terminated", "--instance-ids", made)


def test_block_and_instance_with_the_javascript_sdk(javascript: Any, yard: Any) -> None:
    """The same with the SDK for JavaScript."""
    offers = javascript(
        "ec2", "DescribeCapacityBlockOfferings", InstanceType=P5, InstanceCount=1, CapacityDurationHours=24
    )["CapacityBlockOfferings"]  # fmt: skip
    offer = max(offers, key=lambda one: str(one["StartDate"]))
    bought = javascript(
        "ec2", "PurchaseCapacityBlock", CapacityBlockOfferingId=offer["CapacityBlockOfferingId"],
        InstancePlatform=LINUX,
    )["CapacityReservation"]  # fmt: skip
    block = bought["CapacityReservationId"]
    image = javascript("ec2", "DescribeImages", Filters=[{"Name": "name", "Values": [IMAGES]}])["Images"][0]
    launch = {
        "ImageId": image["ImageId"], "InstanceType": P5, "MinCount": 1, "MaxCount": 1,
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": block}},
    }  # fmt: skip
    early = javascript.refused("ec2", "RunInstances", **launch)
    assert early.name == "InvalidCapacityReservationState.PendingActivation"
    yard.clock.set(datetime.fromisoformat(offer["StartDate"]))
    made = javascript("ec2", "RunInstances", **launch)["Instances"][0]
    assert made["Placement"]["AvailabilityZone"] == bought["AvailabilityZone"]
    yard.clock.advance(minutes=1)
    status = javascript("ec2", "DescribeInstanceStatus", InstanceIds=[made["InstanceId"]])
    assert status["InstanceStatuses"][0]["InstanceStatus"]["Status"] == "ok"
    ended = javascript("ec2", "TerminateInstances", InstanceIds=[made["InstanceId"]])
    assert ended["TerminatingInstances"][0]["CurrentState"]["Name"] == "shutting-down"
