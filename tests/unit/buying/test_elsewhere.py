"""What was bought elsewhere: whatever AWS leaves out, it is an order with a fee, or a refusal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.orders.elsewhere import check, check_block_id, look, offer_for, put_mark, reference, with_fee
from berth.orders.order import OrderKey
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Way

ACCOUNT = "123456789012"
KEY = OrderKey(ACCOUNT, "lab", 1)
NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
PAID = Money(Decimal("1146.17"), "USD")
BLOCK: dict[str, Any] = {
    "CapacityReservationId": "cr-0123456789abcdef0",
    "CapacityReservationArn": f"arn:aws:ec2:us-east-1:{ACCOUNT}:capacity-reservation/cr-0123456789abcdef0",
    "OwnerId": ACCOUNT,
    "ReservationType": "capacity-block",
    "State": "scheduled",
    "InstanceType": "p5.48xlarge",
    "InstancePlatform": "Linux/UNIX",
    "AvailabilityZone": "us-east-1a",
    "AvailabilityZoneId": "use1-az6",
    "Tenancy": "default",
    "StartDate": NOW + timedelta(hours=2),
    "EndDate": NOW + timedelta(hours=26),
    "CreateDate": NOW,
    "TotalInstanceCount": 2,
    "AvailableInstanceCount": 0,
    "Tags": [{"Key": "aws:ec2capacityreservation:incrementalRequestedQuantity", "Value": "2"}],
}
PART = {
    "InstanceType": "ml.p5.48xlarge", "TotalInstanceCount": 1, "AvailabilityZone": "us-east-1a",
    "StartTime": NOW, "EndTime": NOW + timedelta(hours=24),
}  # fmt: skip
LATER = {**PART, "StartTime": NOW + timedelta(hours=48), "EndTime": NOW + timedelta(hours=72)}
PLAN: dict[str, Any] = {
    "TrainingPlanArn": f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/inference-1",
    "TrainingPlanName": "inference-1",
    "Status": "Scheduled",
    "UpfrontFee": "500.00",
    "CurrencyCode": "USD",
    "StartTime": NOW,
    "EndTime": NOW + timedelta(hours=72),
    "TotalInstanceCount": 1,
    "TargetResources": ["endpoint"],
    "ReservedCapacitySummaries": [LATER, PART],
}

REFUSALS = {
    ExitCode.INCOMPLETE, ExitCode.BAD_REQUEST, ExitCode.DECISION_NEEDED, ExitCode.CREDENTIALS,
}  # fmt: skip


class Service:
    """A service that shows one thing."""

    def __init__(self, shown: dict[str, Any], tags: list[dict[str, str]] | None = None) -> None:
        self.shown, self.tags = shown, tags
        self.marked: list[dict[str, Any]] = []

    def describe_capacity_reservations(self, **_: Any) -> dict[str, Any]:
        """The block."""
        return {"CapacityReservations": [self.shown]}

    def describe_training_plan(self, **_: Any) -> dict[str, Any]:
        """The plan."""
        return self.shown

    def list_tags(self, **_: Any) -> dict[str, Any]:
        """Its tags, or a refusal."""
        if self.tags is None:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "ListTags")
        return {"Tags": self.tags}

    def create_tags(self, **request: Any) -> dict[str, Any]:
        """Remember it."""
        self.marked.append(request)
        return {}


def held(shown: dict[str, Any], named: str, tags: list[dict[str, str]] | None = None) -> Any:
    """What is seen of it."""
    return look(reference(named), "us-east-1", Service(shown, [] if tags is None else tags))


@settings(deadline=None, max_examples=150)
@given(
    shown=st.sampled_from([("cr-0123456789abcdef0", BLOCK), ("inference-1", PLAN)]), data=st.data(),
    strange=st.sampled_from([None, "", "never-heard-of", 7, [], {}]),
)  # fmt: skip
def test_whatever_is_left_out_it_is_an_order_with_a_fee_or_a_refusal(
    shown: tuple[str, dict[str, Any]], data: st.DataObject, strange: object
) -> None:
    """Members absent, of another type or with unknown words: never a crash, and never a fee of zero."""
    named, whole = shown
    absent = data.draw(st.sets(st.sampled_from(sorted(whole)), max_size=4))
    odd = data.draw(st.sets(st.sampled_from(sorted(whole)), max_size=1))
    answer = {k: strange if k in odd else v for k, v in whole.items() if k not in absent}
    try:
        found = held(answer, named)
        check(found, KEY, NOW, {}, whoever=False)
        offer = offer_for(with_fee(found, PAID if named.startswith("cr-") else None), NOW)
    except BerthError as refused:
        if refused.exit_code not in REFUSALS:
            raise
        return
    assert offer.fee is not None
    assert offer.fee.amount > 0
    assert offer.count > 0
    assert offer.paid_window.start < offer.paid_window.end


def test_a_plan_of_two_parts_keeps_its_gap() -> None:
    """In order of start; only what is paid for counts as its time."""
    offer = offer_for(held(PLAN, "inference-1"), NOW)
    assert [part.window.start for part in offer.segments] == [NOW, NOW + timedelta(hours=48)]
    assert offer.paid_time == timedelta(hours=48)
    assert (offer.way, offer.target, offer.fee) == (
        Way.TRAINING_PLAN,
        "endpoint",
        Money(Decimal("500.00"), "USD"),
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"OwnerId": "999999999999"}, ExitCode.CREDENTIALS),
        ({"State": "expired"}, ExitCode.BAD_REQUEST),
        ({"State": "cancelled"}, ExitCode.BAD_REQUEST),
        ({"State": "payment-failed"}, ExitCode.BAD_REQUEST),
        ({"EndDate": NOW}, ExitCode.BAD_REQUEST),
        ({"Tags": [{"Key": "berth:order", "Value": f"{ACCOUNT}/other/1"}]}, ExitCode.DECISION_NEEDED),
        ({"Tags": [{"Key": "owner", "Value": "lee"}]}, ExitCode.DECISION_NEEDED),
    ],
)
def test_what_may_not_be_taken(change: dict[str, Any], code: ExitCode) -> None:
    """Another account's, what is over, what is another's; the order's own mark is no obstacle."""
    with pytest.raises(BerthError) as refused:
        check(held({**BLOCK, **change}, "cr-0123456789abcdef0"), KEY, NOW, {}, whoever=False)
    assert refused.value.exit_code is code
    own = [{"Key": "berth:order", "Value": KEY.mark}, {"Key": "owner", "Value": "lee"}]
    check(held({**BLOCK, "Tags": own}, "cr-0123456789abcdef0"), KEY, NOW, {}, whoever=False)
    if code is ExitCode.DECISION_NEEDED:
        check(held({**BLOCK, **change}, "cr-0123456789abcdef0"), KEY, NOW, {"owner": "x"}, whoever=True)


def test_tags_that_cannot_be_read_are_not_taken_for_none() -> None:
    """Whose it is, is not known then."""
    found = look(reference("inference-1"), "us-east-1", Service(PLAN))
    with pytest.raises(BerthError, match="is not known"):
        check(found, KEY, NOW, {}, whoever=False)
    check(found, KEY, NOW, {}, whoever=True)


def test_an_on_demand_reservation_has_no_fee_to_adopt() -> None:
    """It is billed by the hour."""
    with pytest.raises(BerthError, match="billed by the hour"):
        held({**BLOCK, "ReservationType": "default"}, "cr-0123456789abcdef0")


def test_the_mark_names_the_order_and_what_was_paid() -> None:
    """So that every other journal knows both."""
    service = Service(BLOCK)
    put_mark(with_fee(held(BLOCK, "cr-0123456789abcdef0"), PAID), KEY, service)
    (request,) = service.marked
    assert request["Tags"] == [
        {"Key": "berth:order", "Value": KEY.mark}, {"Key": "berth:fee", "Value": "1146.17 USD"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("named", "way", "region"),
    [
        ("cr-0123456789abcdef0", Way.CAPACITY_BLOCK, None),
        (BLOCK["CapacityReservationArn"], Way.CAPACITY_BLOCK, "us-east-1"),
        ("From-Console", Way.TRAINING_PLAN, None),
        (PLAN["TrainingPlanArn"], Way.TRAINING_PLAN, "us-east-1"),
    ],
)
def test_what_a_person_may_name(named: str, way: Way, region: str | None) -> None:
    """An id, a name, an ARN."""
    found = reference(named)
    assert (found.way, found.region) == (way, region)


@pytest.mark.parametrize("named", ["cb-0123456789abcdef0", "cr-xyz", "", "a b", "arn:aws:s3:::bucket"])
def test_what_names_no_reservation(named: str) -> None:
    """A block's own id is corrected in one line (field fault 70)."""
    with pytest.raises(BerthError) as refused:
        reference(named)
    assert refused.value.exit_code is ExitCode.BAD_REQUEST
    assert "\n" not in refused.value.message
    check_block_id("cr-0123456789abcdef0")
