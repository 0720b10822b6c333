"""Field fault 66: an emulator that answers and does not behave. What was bought is what is described."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from berth.yard.testing.process import YardProcess

REGION = "eu-north-1"
TYPE = "trn1.32xlarge"


def bought(ec2: Any) -> tuple[dict[str, Any], str]:
    """Four machines for two days: the offering and the id of the reservation that was bought."""
    offering = ec2.describe_capacity_block_offerings(
        InstanceType=TYPE, InstanceCount=4, CapacityDurationHours=48
    )["CapacityBlockOfferings"][-1]
    answer = ec2.purchase_capacity_block(
        CapacityBlockOfferingId=offering["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX"
    )
    return offering, answer["CapacityReservation"]["CapacityReservationId"]


def test_what_is_described_is_what_was_bought(yard: YardProcess) -> None:
    """Type, count, zone, window are the offering's; the state follows the clock; a launch waits for it."""
    ec2 = yard.clients("ec2", region=REGION)
    offering, reservation_id = bought(ec2)

    def seen() -> dict[str, Any]:
        (found,) = ec2.describe_capacity_reservations(CapacityReservationIds=[reservation_id])[
            "CapacityReservations"
        ]
        return dict(found)

    yard.clock.advance(minutes=10)
    asked = seen()
    assert asked["State"] == "scheduled"
    assert (asked["InstanceType"], asked["AvailabilityZone"]) == (TYPE, offering["AvailabilityZone"])
    assert (asked["StartDate"], asked["EndDate"]) == (offering["StartDate"], offering["EndDate"])
    tags = {tag["Key"]: tag["Value"] for tag in asked["Tags"]}
    assert tags["aws:ec2capacityreservation:incrementalRequestedQuantity"] == "4"

    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    launch = {
        "ImageId": image,
        "InstanceType": TYPE,
        "MinCount": 1,
        "MaxCount": 1,
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
        "CapacityReservationSpecification": {
            "CapacityReservationTarget": {"CapacityReservationId": reservation_id}
        },
    }
    with pytest.raises(ClientError) as early:
        ec2.run_instances(**launch)
    assert early.value.response["Error"]["Code"] == "InvalidCapacityReservationState.PendingActivation"

    yard.clock.set(offering["StartDate"])
    assert (seen()["State"], seen()["TotalInstanceCount"], seen()["AvailableInstanceCount"]) == (
        "active",
        4,
        4,
    )
    assert len(ec2.run_instances(**launch)["Instances"]) == 1
    assert seen()["AvailableInstanceCount"] == 3
    yard.clock.set(offering["EndDate"])
    assert seen()["State"] == "expired"
