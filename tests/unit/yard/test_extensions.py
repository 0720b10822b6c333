"""Extensions of Capacity Blocks and of training plans, by the clock alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from berth.terms.money import Money
from berth.terms.ways import Target
from berth.terms.window import Window
from berth.yard.errors import ServiceError
from berth.yard.faults import Fault, FaultKind
from berth.yard.services.ec2.block_seed import BlockSeed, seed_block
from berth.yard.services.sagemaker.plan_seed import PlanSeed, seed_training_plan

from .bench import Bench
from .ec2_bench import P5, Ec2Bench

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
END = datetime(2026, 12, 4, 11, 30, tzinfo=UTC)
DAY, HOUR, MINUTE, TICK = timedelta(1), timedelta(hours=1), timedelta(minutes=1), timedelta(microseconds=1)
SEARCH, BUY = "DescribeCapacityBlockExtensionOfferings", "PurchaseCapacityBlockExtension"
HISTORY = "DescribeCapacityBlockExtensionHistory"
FLEET = Path(__file__).with_name("blocks.toml").read_text("utf-8")


class Desk(Ec2Bench):
    """A yard with blocks, and short ways to extend them."""

    def __init__(self, path: Path, **settings: Any) -> None:
        super().__init__(path, FLEET, **settings)

    def seed(self, end: datetime = END, state: str = "active", count: int = 2, **more: Any) -> str:
        """A block that ends then; its reservation id."""
        start = more.pop("start", NOW - HOUR)
        seed = BlockSeed(
            self.account.account_id, "us-east-1", P5, count, "Linux/UNIX", Window(start, end),
            Money.parse("100"), state, "use1-az1", {},
        )  # fmt: skip
        return str(self.do(lambda tx: seed_block(tx, self.yard, seed))["capacity_reservation_id"])

    def offers(self, block: str, hours: int = 168, **more: Any) -> list[Any]:
        """The extension offerings."""
        asked = {"CapacityReservationId": block, "CapacityBlockExtensionDurationHours": hours, **more}
        return list(self.ec2(SEARCH, **asked)["CapacityBlockExtensionOfferings"])

    def extend(self, block: str, hours: int = 168, offer: str | None = None, **more: Any) -> Any:
        """Buy that extension, or the first of that length; what is answered of it."""
        offer = offer or self.offers(block, hours, **more)[0]["CapacityBlockExtensionOfferingId"]
        asked = {"CapacityReservationId": block, "CapacityBlockExtensionOfferingId": offer, **more}
        (made,) = self.ec2(BUY, **asked)["CapacityBlockExtensions"]
        return made

    def block_of(self, block: str, **more: Any) -> Any:
        """One reservation as it is described."""
        asked = {"CapacityReservationIds": [block], **more}
        return self.ec2("DescribeCapacityReservations", **asked)["CapacityReservations"][0]

    def history(self, **asked: Any) -> list[Any]:
        """The whole history."""
        return list(self.ec2(HISTORY, **asked)["CapacityBlockExtensions"])

    def bill(self) -> list[tuple[str, str]]:
        """Kind and amount of what was billed for extensions."""
        found = self.rows("SELECT * FROM ledger WHERE kind LIKE '%extension' ORDER BY entry_id")
        return [(row["kind"], str(Money.from_micros(row["amount_micros"]).amount)) for row in found]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """One such yard."""
    found = Desk(tmp_path / "y")
    yield found
    found.close()


def code(call: Callable[[], Any]) -> str:
    """The code with which a call is refused."""
    with pytest.raises(ServiceError) as refused:
        call()
    return refused.value.code


# -- blocks ----------------------------------------------------------------------------------------------
def test_an_extension_that_is_paid_moves_the_end_of_the_block(desk: Desk) -> None:
    """Hosts at once, money and the new end five minutes later; reclaimed and expired by the new end alone."""
    block = desk.seed()
    (offer,) = desk.offers(block)
    assert offer["CapacityBlockExtensionStartDate"] == END
    assert offer["CapacityBlockExtensionEndDate"] == END + 7 * DAY
    assert (offer["InstanceCount"], offer["CapacityBlockExtensionDurationHours"]) == (2, 168)
    made = desk.extend(block)
    assert made["CapacityBlockExtensionStatus"] == "payment-pending"
    assert desk.block_of(block)["EndDate"] == END
    assert desk.bill() == []
    desk.advance(minutes=5)
    assert desk.block_of(block)["EndDate"] == END + 7 * DAY
    assert [one["CapacityBlockExtensionStatus"] for one in desk.history()] == ["payment-succeeded"]
    assert desk.bill() == [("capacity-block-extension", offer["UpfrontFee"])]
    desk.move(END + DAY)
    assert desk.block_of(block)["State"] == "active"
    assert desk.free_in(block) == 2
    desk.move(END + 7 * DAY - TICK)
    assert desk.block_of(block)["State"] == "active"
    desk.move(END + 7 * DAY)
    assert desk.block_of(block)["State"] == "expired"
    assert [one[1:] for one in desk.moves("extension-1")] == [
        (None, "payment-pending"), ("payment-pending", "payment-succeeded"),
    ]  # fmt: skip


def test_instances_run_on_past_the_old_end_when_it_is_paid_and_are_taken_back_when_it_failed(
    desk: Desk,
) -> None:
    """Two blocks, one extension paid, one not."""
    paid, unpaid = desk.seed(), desk.seed()
    (kept,), (lost,) = desk.launch(paid), desk.launch(unpaid)
    desk.extend(paid)
    desk.yard.faults.arm(Fault(1, FaultKind.PAYMENT_FAILURE, BUY, None, 1))
    desk.extend(unpaid)
    desk.move(END - 30 * MINUTE)
    assert (desk.state(kept), desk.state(lost)) == ("running", "shutting-down")
    desk.move(END + DAY)
    assert (desk.block_of(paid)["State"], desk.block_of(unpaid)["State"]) == ("active", "expired")
    assert len(desk.bill()) == 1
    statuses = {one["CapacityReservationId"]: one["CapacityBlockExtensionStatus"] for one in desk.history()}
    assert statuses == {paid: "payment-succeeded", unpaid: "payment-failed"}
    desk.move(END + 7 * DAY - 30 * MINUTE)
    assert desk.state(kept) == "shutting-down"


def test_a_failed_payment_frees_the_hosts_and_another_may_be_bought(desk: Desk) -> None:
    """The calendar is as it was, and the next extension is paid."""
    block = desk.seed()
    pool = desk.yard.calendars.pool(desk.rows("SELECT pool FROM capacity_reservations")[0]["pool"])
    before = pool.committed_max(Window(END, END + 7 * DAY))
    desk.yard.faults.arm(Fault(1, FaultKind.PAYMENT_FAILURE, BUY, None, 1))
    desk.extend(block)
    assert pool.committed_max(Window(END, END + 7 * DAY)) == before + 2
    desk.advance(minutes=5)
    assert pool.committed_max(Window(END, END + 7 * DAY)) == before
    desk.extend(block)
    desk.advance(minutes=5)
    assert desk.block_of(block)["EndDate"] == END + 7 * DAY
    assert [one["CapacityBlockExtensionStatus"] for one in desk.history()] == [
        "payment-failed", "payment-succeeded",
    ]  # fmt: skip


def test_when_a_block_may_be_extended(desk: Desk) -> None:
    """Scheduled or active; from 56 days to one hour before the end, to the microsecond."""
    refusal = "InvalidCapacityReservationState"
    far = desk.seed(NOW + 56 * DAY + MINUTE)
    assert code(lambda: desk.offers(far)) == refusal
    desk.advance(minutes=1)
    assert desk.offers(far)
    soon = desk.seed(start=NOW + 2 * DAY, end=NOW + 3 * DAY, state="scheduled")
    assert desk.offers(soon)
    assert code(lambda: desk.offers(desk.seed(start=NOW + DAY, state="payment-pending"))) == refusal
    gone = desk.seed(start=NOW - 3 * DAY, end=NOW - DAY, state="expired")
    assert code(lambda: desk.offers(gone)) == refusal
    block = desk.seed()
    desk.move(END - HOUR)
    offer = desk.offers(block)[0]["CapacityBlockExtensionOfferingId"]
    desk.move(END - HOUR + TICK)
    assert code(lambda: desk.offers(block)) == refusal
    assert code(lambda: desk.extend(block, offer=offer)) == refusal
    assert code(lambda: desk.offers("cr-0")) == "InvalidCapacityReservationId.Malformed"
    assert code(lambda: desk.offers("cr-" + "0" * 17)) == "InvalidCapacityReservationId.NotFound"


def test_one_unpaid_at_a_time_and_an_offering_buys_once(desk: Desk) -> None:
    """The second call is refused while the first is unpaid, and when the end has moved."""
    block = desk.seed()
    offer = desk.offers(block)[0]["CapacityBlockExtensionOfferingId"]
    desk.extend(block, offer=offer)
    assert code(lambda: desk.extend(block, offer=offer)) == "InvalidCapacityReservationState"
    assert code(lambda: desk.offers(block)) == "InvalidCapacityReservationState"
    desk.advance(minutes=5)
    assert code(lambda: desk.extend(block, offer=offer)) == "InvalidCapacityBlockOfferingIdNotFound"
    desk.extend(block, 24)
    desk.advance(minutes=5)
    assert desk.block_of(block)["EndDate"] == END + 8 * DAY
    assert len(desk.bill()) == 2


def test_lengths_ids_prices_and_dry_runs(desk: Desk) -> None:
    """AWS's steps; 182 days with the block; ids are of one block and one account; a dearer offer is gone."""
    block, other = desk.seed(), desk.seed()
    for hours in (0, 12, 25, 360, 4392):
        assert code(lambda hours=hours: desk.offers(block, hours)) == "InvalidParameterValue"  # type: ignore[misc]
    assert code(lambda: desk.offers(block, 4368)) == "InvalidParameterValue"
    assert desk.offers(block, 4200)
    offer = desk.offers(block)[0]["CapacityBlockExtensionOfferingId"]
    assert len(offer) == 21
    assert offer.startswith("cbe-")
    unknown = "InvalidCapacityBlockOfferingIdNotFound"
    assert code(lambda: desk.extend(other, offer=offer)) == unknown
    assert code(lambda: desk.extend(block, offer="cbe-" + "0" * 17)) == unknown
    assert code(lambda: desk.extend(block, offer="cb-1")) == "InvalidCapacityBlockOfferingIdMalformed"
    assert code(lambda: desk.extend(block, offer=offer, DryRun=True)) == "DryRunOperation"
    assert code(lambda: desk.offers(block, DryRun=True)) == "DryRunOperation"
    assert code(lambda: desk.history(DryRun=True)) == "DryRunOperation"
    desk.yard.faults.arm(Fault(1, FaultKind.PRICE_CHANGE, SEARCH, None, None, "2"))
    assert code(lambda: desk.extend(block, offer=offer)) == "InvalidCapacityBlockOfferingIdExpired"
    dear = desk.offers(block)[0]["UpfrontFee"]
    desk.yard.faults.clear()
    assert float(dear) == pytest.approx(2 * float(desk.offers(block)[0]["UpfrontFee"]))
    desk.yard.faults.arm(Fault(2, FaultKind.GONE, BUY, None, 1))
    assert code(lambda: desk.extend(block, offer=offer)) == "InvalidCapacityBlockOfferingIdExpired"
    desk.advance(days=1)
    assert code(lambda: desk.extend(block, offer=offer)) == "InvalidCapacityBlockOfferingIdExpired"
    assert desk.history() == []


def test_no_hosts_no_offer(desk: Desk) -> None:
    """What somebody else holds behind the block cannot be had, also when it was free at the search."""
    block = desk.seed(count=2)
    offer = desk.offers(block)[0]["CapacityBlockExtensionOfferingId"]
    free = 1
    while True:
        try:
            desk.seed(start=END + DAY, end=END + 2 * DAY, state="scheduled", count=free)
        except ValueError:
            break
    assert desk.offers(block) == []
    assert code(lambda: desk.extend(block, offer=offer)) == "InvalidCapacityBlockOfferingIdExpired"
    assert desk.offers(block, 24)


def test_the_history_is_paged_filtered_and_outlives_the_block(desk: Desk) -> None:
    """Oldest first; by block, state and offering; another account sees nothing."""
    blocks = [desk.seed(count=1) for _ in range(3)]
    made = [desk.extend(block, 24) for block in blocks]
    first = desk.ec2(HISTORY, MaxResults=2)
    second = desk.ec2(HISTORY, MaxResults=2, NextToken=first["NextToken"])
    found = first["CapacityBlockExtensions"] + second["CapacityBlockExtensions"]
    assert [one["CapacityReservationId"] for one in found] == blocks
    assert "NextToken" not in second
    assert [
        one["CapacityReservationId"] for one in desk.history(CapacityReservationIds=blocks[1:2])
    ] == blocks[1:2]
    offering = made[2]["CapacityBlockExtensionOfferingId"]
    wanted = [{"Name": "capacity-block-extension-offering-id", "Values": [offering]}]
    assert [one["CapacityReservationId"] for one in desk.history(Filters=wanted)] == blocks[2:]
    paid = [{"Name": "capacity-block-extension-status", "Values": ["payment-succeeded"]}]
    assert desk.history(Filters=paid) == []
    assert code(lambda: desk.history(Filters=[{"Name": "x", "Values": ["y"]}])) == "InvalidParameterValue"
    other = desk.add_account("other")
    assert desk.history(account=other) == []
    assert code(lambda: desk.history(account=other, CapacityReservationIds=blocks[:1])).endswith("NotFound")
    desk.move(END + 60 * DAY)
    assert len(desk.history(CapacityReservationIds=blocks[:1])) == 1


def test_a_lagging_read_sees_neither_purchase_nor_new_end(desk: Desk) -> None:
    """Five minutes late, like everything else."""
    lag = timedelta(minutes=5)
    block = desk.seed()
    desk.advance(minutes=10)
    desk.extend(block)
    assert desk.history(lag=lag) == []
    desk.advance(minutes=6)
    assert desk.block_of(block)["EndDate"] == END + 7 * DAY
    assert desk.block_of(block, lag=lag)["EndDate"] == END
    assert desk.history(lag=lag)[0]["CapacityBlockExtensionStatus"] == "payment-pending"
    desk.advance(minutes=5)
    assert desk.block_of(block, lag=lag)["EndDate"] == END + 7 * DAY


def test_a_yard_that_comes_back_has_the_same_promises_and_timers(tmp_path: Path) -> None:
    """Closed between purchase and payment, opened again: the hosts are promised, the payment comes."""
    desk = Desk(tmp_path / "y")
    block = desk.seed()
    desk.extend(block)
    pool = desk.rows("SELECT pool FROM capacity_reservations")[0]["pool"]
    added = Window(END, END + 7 * DAY)
    promised = desk.yard.calendars.pool(pool).committed_max(added)
    desk.close()
    desk = Desk(tmp_path / "y")
    assert desk.yard.calendars.pool(pool).committed_max(added) == promised
    desk.advance(minutes=5)
    assert desk.block_of(block)["EndDate"] == END + 7 * DAY
    desk.close()


# -- plans -----------------------------------------------------------------------------------------------
class PlanDesk(Bench):
    """A yard with plans, and short ways to extend them."""

    def seed(
        self, name: str = "p", end: datetime = END, state: str = "Active", start: datetime = NOW - HOUR
    ) -> str:
        """A plan that ends then; its ARN."""
        seed = PlanSeed(
            self.account.account_id, "us-east-1", name, "ml.trn1.32xlarge", 1, Target.ENDPOINT,
            Window(start, end), Money.parse("10"), state,
        )  # fmt: skip
        return str(self.do(lambda tx: seed_training_plan(tx, self.yard, seed)))

    def offers(self, arn: str, hours: int | None = 168) -> list[Any]:
        """The extension offerings of a plan."""
        asked = {"TrainingPlanArn": arn} | ({"DurationHours": hours} if hours is not None else {})
        found = self.call("SearchTrainingPlanOfferings", **asked)
        assert found["TrainingPlanOfferings"] == []
        return list(found["TrainingPlanExtensionOfferings"])

    def extend(self, arn: str, offer: str | None = None) -> list[Any]:
        """Buy; the whole history that the answer holds."""
        offer = offer or self.offers(arn)[0]["TrainingPlanExtensionOfferingId"]
        answer = self.call("ExtendTrainingPlan", TrainingPlanExtensionOfferingId=offer)
        return list(answer["TrainingPlanExtensions"])

    def history(self, arn: str, **more: Any) -> list[Any]:
        """The history of a plan."""
        return list(
            self.call("DescribeTrainingPlanExtensionHistory", TrainingPlanArn=arn, **more)[
                "TrainingPlanExtensions"
            ]
        )


@pytest.fixture
def plans(tmp_path: Path) -> Iterator[PlanDesk]:
    """One such yard."""
    found = PlanDesk(tmp_path / "y")
    yield found
    found.close()


def test_an_extension_of_a_plan_moves_its_end(plans: PlanDesk) -> None:
    """Pending, Scheduled when paid, Active from the old end, Expired at the new; the plan stays Active."""
    arn = plans.seed()
    (offer,) = plans.offers(arn)
    assert (offer["StartDate"], offer["EndDate"], offer["DurationHours"]) == (END, END + 7 * DAY, 168)
    (made,) = plans.extend(arn)
    assert (made["Status"], made["PaymentStatus"]) == ("Pending", "Pending")
    assert plans.plan("p")["EndTime"] == END
    plans.advance(minutes=5)
    assert plans.plan("p")["EndTime"] == END + 7 * DAY
    assert plans.plan("p")["ReservedCapacitySummaries"][0]["EndTime"] == END + 7 * DAY
    seen = []
    for instant in (NOW + HOUR, END, END + 7 * DAY):
        plans.move(instant)
        (row,) = plans.history(arn)
        seen.append((plans.plan("p")["Status"], row["Status"], row["PaymentStatus"]))
    assert seen == [
        ("Active", "Scheduled", "Completed"), ("Active", "Active", "Completed"),
        ("Expired", "Expired", "Completed"),
    ]  # fmt: skip
    (billed,) = plans.rows("SELECT * FROM ledger WHERE kind = 'training-plan-extension'")
    assert (billed["subject"], f"{billed['amount_micros'] / 1e6:.2f}") == (arn, offer["UpfrontFee"])


def test_a_plans_extension_that_is_not_paid_leaves_the_plan_as_it_was(plans: PlanDesk) -> None:
    """Failed, unbilled, and its hosts are free for the next."""
    arn = plans.seed()
    plans.yard.faults.arm(Fault(1, FaultKind.PAYMENT_FAILURE, "ExtendTrainingPlan", None, 1))
    plans.extend(arn)
    plans.advance(minutes=5)
    assert [(one["Status"], one["PaymentStatus"]) for one in plans.history(arn)] == [("Failed", "Failed")]
    assert len(plans.extend(arn)) == 2
    plans.advance(minutes=5)
    assert plans.plan("p")["EndTime"] == END + 7 * DAY
    assert len(plans.history(arn, MaxResults=1)) == 1


def test_when_a_plan_may_be_extended(plans: PlanDesk) -> None:
    """Active or Scheduled, 56 days to an hour before the end, one unpaid at a time, AWS's lengths."""
    arn = plans.seed()
    assert [one["DurationHours"] for one in plans.offers(arn, None)] == [24, 48, 72]
    assert plans.offers(arn, 25)[0]["DurationHours"] == 48
    for hours in (15 * 24, 400):
        assert code(lambda hours=hours: plans.offers(arn, hours)) == "ValidationException"  # type: ignore[misc]
    offer = plans.offers(arn)[0]["TrainingPlanExtensionOfferingId"]
    plans.extend(arn, offer)
    assert code(lambda: plans.extend(arn, offer)) == "ValidationException"
    plans.advance(minutes=5)
    assert code(lambda: plans.extend(arn, offer)) == "ResourceNotFound"
    far = plans.seed("far", start=NOW + 56 * DAY, end=NOW + 57 * DAY, state="Scheduled")
    assert code(lambda: plans.offers(far)) == "ValidationException"
    expired = plans.seed("old", start=NOW - 2 * DAY, end=NOW - DAY, state="Expired")
    assert code(lambda: plans.offers(expired)) == "ValidationException"
    assert code(lambda: plans.offers(arn.replace("/p", "/q"))) == "ResourceNotFound"
    assert code(lambda: plans.history(arn.replace("/p", "/q"))) == "ResourceNotFound"
    for wrong in ("tpeo-00", "tpo-1", "tpeo-" + "0" * 200):
        assert code(lambda wrong=wrong: plans.extend(arn, wrong)) == "ResourceNotFound"  # type: ignore[misc]


def test_an_endpoint_in_a_plan_runs_on_past_the_old_end(plans: PlanDesk) -> None:
    """The engine is told to stop 30 minutes before the new end, not before the old."""
    arn = plans.seed()
    plans.config("c", arn)
    plans.create_endpoint("e", "c")
    plans.extend(arn)
    plans.advance(minutes=5)
    plans.move(END + DAY)
    assert plans.engine.stopped == []
    plans.move(END + 7 * DAY - 30 * MINUTE)
    plans.settle()
    assert len(plans.engine.stopped) == 1
