"""Training plans from purchase to end, by the clock alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from berth.yard.errors import ServiceError
from berth.yard.faults import Fault, FaultKind

from .bench import Bench

# The one scheduled offering in this span: from 11:30 to 11:30.
ONE_DAY = {
    "StartTimeAfter": datetime(2026, 12, 1, 11, tzinfo=UTC),
    "EndTimeBefore": datetime(2026, 12, 2, 12, tzinfo=UTC),
}


def test_a_plan_goes_through_its_states_at_the_right_instants(bench: Bench) -> None:
    """Pending at purchase, Scheduled when paid, Active from start to end, then Expired."""
    bench.buy("p", StartTimeAfter=datetime(2026, 12, 2, 11, tzinfo=UTC))
    bench.advance(days=4)
    assert bench.moves("training-plan/p") == [
        ("2026-12-01T09:00:00Z", None, "Pending"),
        ("2026-12-01T09:05:00Z", "Pending", "Scheduled"),
        ("2026-12-02T11:30:00Z", "Scheduled", "Active"),
        ("2026-12-03T11:30:00Z", "Active", "Expired"),
    ]


def test_nothing_changes_before_its_instant(bench: Bench) -> None:
    """A microsecond before the payment, the start and the end the plan is still what it was."""
    bench.buy("p")
    start, end = bench.plan("p")["StartTime"], bench.plan("p")["EndTime"]
    tick = timedelta(microseconds=1)
    paid = datetime(2026, 12, 1, 9, 5, tzinfo=UTC)
    for instant, before, after in (
        (paid, "Pending", "Scheduled"), (start, "Scheduled", "Active"), (end, "Active", "Expired"),
    ):  # fmt: skip
        bench.move(instant - tick)
        assert bench.plan("p")["Status"] == before
        bench.move(instant)
        assert bench.plan("p")["Status"] == after


def test_the_fee_is_billed_once_when_it_is_paid(bench: Bench) -> None:
    """The ledger is empty until the payment, and has one entry of the shown fee for ever after."""
    offer = bench.offer()
    bench.buy("p")
    assert bench.rows("SELECT * FROM ledger") == []
    bench.advance(days=40)
    (entry,) = bench.rows("SELECT * FROM ledger")
    assert entry["amount_micros"] == round(float(offer["UpfrontFee"]) * 1_000_000)
    assert entry["subject"].endswith("training-plan/p")


def test_a_payment_that_fails_gives_the_hosts_back_and_bills_nothing(bench: Bench) -> None:
    """The plan is Failed for good, its timers are gone, its hosts can be sold again; its name stays taken."""
    bench.yard.faults.arm(Fault(1, FaultKind.PAYMENT_FAILURE, times=1))
    bench.buy("p", count=4, **ONE_DAY)
    assert bench.offer(count=4, **ONE_DAY) is None
    bench.advance(minutes=5)
    assert bench.plan("p")["Status"] == "Failed"
    assert bench.rows("SELECT * FROM ledger") == []
    assert bench.rows("SELECT * FROM timers WHERE subject LIKE '%training-plan/p'") == []
    bench.buy("q", count=4, **ONE_DAY)
    with pytest.raises(ServiceError, match="already exists"):
        bench.buy("p", count=1)


def test_reclaiming_begins_thirty_minutes_before_the_end(bench: Bench) -> None:
    """From then on the plan is Active and has nothing to give."""
    bench.active_plan("p", count=2)
    assert (bench.plan("p")["AvailableInstanceCount"], bench.plan("p")["InUseInstanceCount"]) == (2, 0)
    bench.move(bench.plan("p")["EndTime"] - timedelta(minutes=30))
    assert bench.plan("p")["Status"] == "Active"
    assert bench.plan("p")["AvailableInstanceCount"] == 0


def test_ends_come_before_starts_at_one_instant(bench: Bench) -> None:
    """Two plans that share a host and meet at 11:30: the first is over before the second begins."""
    first = bench.buy("first", count=4)
    end = bench.plan("first")["EndTime"]
    bench.buy("second", count=4, StartTimeAfter=end)
    assert bench.plan("second")["StartTime"] == end
    bench.move(end)
    at_end = [row["subject"] for row in bench.rows("SELECT * FROM events WHERE reason LIKE 'its window%'")]
    assert at_end[-2:] == [first, first.replace("first", "second")]


def test_a_plan_outlives_a_yard(open_bench: type[Bench]) -> None:
    """Rows, timers and calendar are there again: it starts and ends, and its hosts stay sold."""
    bench = open_bench()
    bench.buy("p", count=4, **ONE_DAY)
    bench = open_bench()
    assert bench.offer(count=4, **ONE_DAY) is None
    bench.advance(days=3)
    assert [to for _, _, to in bench.moves("training-plan/p")] == [
        "Pending",
        "Scheduled",
        "Active",
        "Expired",
    ]
    assert len(bench.rows("SELECT * FROM ledger")) == 1


@pytest.mark.parametrize(
    "named",
    [{"StartTimeAfter": datetime(2026, 12, 2, 11, tzinfo=UTC)}, {}],
    ids=["scheduled", "immediate"],
)
def test_describe_tells_the_plan_that_was_offered(bench: Bench, named: dict[str, datetime]) -> None:
    """Window, fee, type, count, target and zone of the plan are those of the offering, to the cent and
    minute."""
    offer = bench.offer(count=2, **named)
    bench.call(
        "CreateTrainingPlan", TrainingPlanName="p", TrainingPlanOfferingId=offer["TrainingPlanOfferingId"]
    )
    plan, (capacity,) = bench.plan("p"), offer["ReservedCapacityOfferings"]
    for member in ("UpfrontFee", "CurrencyCode", "DurationHours", "DurationMinutes", "TargetResources"):
        assert plan[member] == offer[member], member
    (reserved,) = plan["ReservedCapacitySummaries"]
    for member in ("InstanceType", "AvailabilityZone", "StartTime", "EndTime", "DurationHours"):
        assert reserved[member] == capacity[member], member
    assert plan["TotalInstanceCount"] == capacity["InstanceCount"] == 2
