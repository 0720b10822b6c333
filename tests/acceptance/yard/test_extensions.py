"""Extensions as boto3 meets them: found, bought, in the history, once whatever happens to the answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from berth.yard.testing.process import YardProcess

from .conftest import refused

BLOCKS = Path(__file__).parents[2] / "unit" / "yard" / "blocks.toml"
END = datetime(2026, 12, 4, 11, 30, tzinfo=UTC)
WEEK = timedelta(days=7)


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[YardProcess]:
    """A yard of its own: these tests kill it."""
    with YardProcess(tmp_path / "y", fleet=BLOCKS) as found:
        yield found


def block(yard: YardProcess) -> str:
    """An active block that ends at END."""
    made = yard.seed.block(
        count=2, state="active", start=END - WEEK, duration="168h", fee="100.00", zone="use1-az1"
    )
    return made["capacity_reservation_id"]


def offer(client: Any, reservation: str) -> Any:
    """The first offering for a week."""
    pages = client.get_paginator("describe_capacity_block_extension_offerings").paginate(
        CapacityReservationId=reservation, CapacityBlockExtensionDurationHours=168
    )
    return next(one for page in pages for one in page["CapacityBlockExtensionOfferings"])


def history(client: Any) -> list[Any]:
    """All pages of the history."""
    pages = client.get_paginator("describe_capacity_block_extension_history").paginate()
    return [one for page in pages for one in page["CapacityBlockExtensions"]]


def test_a_block_is_extended_over_the_wire(yard: YardProcess) -> None:
    """Search, purchase, history, the new end, the bill; and what an SDK that resends meets."""
    client, reservation = yard.clients.ec2, block(yard)
    found = offer(client, reservation)
    assert found["CapacityBlockExtensionEndDate"] == END + WEEK
    wanted = {
        "CapacityReservationId": reservation,
        "CapacityBlockExtensionOfferingId": found["CapacityBlockExtensionOfferingId"],
    }
    dry = refused(lambda: client.purchase_capacity_block_extension(**wanted, DryRun=True))
    assert dry.code == "DryRunOperation"
    yard.fault("error-after-commit", "PurchaseCapacityBlockExtension", times=1)
    # The SDK sends it again after the 500: AWS sells no second while the first is unpaid.
    with pytest.raises(ClientError):
        client.purchase_capacity_block_extension(**wanted)
    (one,) = history(client)
    assert one["CapacityBlockExtensionStatus"] == "payment-pending"
    yard.clock.advance(minutes=5)
    (described,) = client.describe_capacity_reservations(CapacityReservationIds=[reservation])[
        "CapacityReservations"
    ]
    assert described["EndDate"] == END + WEEK
    assert [entry["amount"] for entry in yard.ledger if "extension" in entry["kind"]] == [found["UpfrontFee"]]


def test_an_extension_survives_a_yard_that_is_killed_right_after_it(yard: YardProcess) -> None:
    """Committed, the line cut, the yard killed: after a restart it is there once, and is paid."""
    client, reservation = yard.clients("ec2", retries={"total_max_attempts": 1}), block(yard)
    wanted = offer(client, reservation)["CapacityBlockExtensionOfferingId"]
    yard.fault("lost-reply", "PurchaseCapacityBlockExtension", times=1)
    with pytest.raises(BotoCoreError):
        client.purchase_capacity_block_extension(
            CapacityReservationId=reservation, CapacityBlockExtensionOfferingId=wanted
        )
    yard.kill()
    yard.restart()
    client = yard.clients.ec2
    assert len(history(client)) == 1
    yard.clock.advance(minutes=5)
    assert [one["CapacityBlockExtensionStatus"] for one in history(client)] == ["payment-succeeded"]


def test_a_plan_is_extended_over_the_wire(yard: YardProcess) -> None:
    """Search by ARN, ExtendTrainingPlan, history, the new end."""
    made = yard.seed.plan(
        name="p", instance_type="ml.p5.48xlarge", state="Active", start=END - WEEK, duration="168h"
    )
    client, arn = yard.clients.sagemaker, made["arn"]
    found = client.search_training_plan_offerings(TrainingPlanArn=arn, DurationHours=160)
    (offered,) = found["TrainingPlanExtensionOfferings"]
    assert offered["EndDate"] == END + WEEK
    answer = client.extend_training_plan(
        TrainingPlanExtensionOfferingId=offered["TrainingPlanExtensionOfferingId"]
    )
    (extension,) = answer["TrainingPlanExtensions"]
    assert extension["PaymentStatus"] == "Pending"
    yard.clock.advance(minutes=5)
    page = client.describe_training_plan_extension_history(TrainingPlanArn=arn)
    assert [one["PaymentStatus"] for one in page["TrainingPlanExtensions"]] == ["Completed"]
    assert client.describe_training_plan(TrainingPlanName="p")["EndTime"] == END + WEEK
