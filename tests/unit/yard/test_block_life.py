"""Capacity Blocks from purchase to the end, by the clock alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from berth.terms.money import Money
from berth.terms.window import Window
from berth.yard.errors import ServiceError
from berth.yard.faults import Fault, FaultKind
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.fleet_file import load_fleet
from berth.yard.lifecycle.moves import CAPACITY_BLOCK
from berth.yard.services.ec2.block_seed import BlockSeed, seed_block
from berth.yard.services.ec2.blocks import (
    find_block,
    free_places,
    give_back_places,
    reclaim_at,
    reclaiming,
    take_places,
)
from berth.yard.services.operation import Call

from .bench import Bench

FLEET = load_fleet(Path(__file__).with_name("blocks.toml").read_text("utf-8"), "blocks.toml")
NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
TICK = timedelta(microseconds=1)
DAY = timedelta(days=1)


class Desk(Bench):
    """A yard that sells blocks, with short ways to ask EC2."""

    def __init__(self, path: Path, fleet: Fleet = FLEET) -> None:
        super().__init__(path, fleet)

    def ec2(self, name: str, **params: Any) -> Any:
        """One EC2 operation."""
        return self.call(name, service="ec2", **params)

    def offers(self, count: int = 1, hours: int = 24, **more: Any) -> list[dict[str, Any]]:
        """The offerings for p5.48xlarge, unless told otherwise."""
        asked = {"InstanceType": "p5.48xlarge", **more}
        found: list[dict[str, Any]] = self.ec2(
            "DescribeCapacityBlockOfferings", InstanceCount=count, CapacityDurationHours=hours, **asked
        )["CapacityBlockOfferings"]
        return found

    def buy(self, offering_id: str | None = None, **more: Any) -> Any:
        """Buy that offering, or the first that starts tomorrow or later; the reservation."""
        if offering_id is None:
            offering_id = self.offers(StartDateRange=NOW + DAY)[0]["CapacityBlockOfferingId"]
        return self.ec2(
            "PurchaseCapacityBlock",
            **{"CapacityBlockOfferingId": offering_id, "InstancePlatform": "Linux/UNIX", **more},
        )["CapacityReservation"]

    def block(self, reservation_id: str) -> Any:
        """One reservation as it is described."""
        return self.ec2("DescribeCapacityReservations", CapacityReservationIds=[reservation_id])[
            "CapacityReservations"
        ][0]

    def row(self, reservation_id: str) -> Any:
        """Its row."""
        account = self.account
        call = Call(account, "us-east-1", "ec2", "RunInstances", {}, "r", self.yard.clock.now())
        return self.do(lambda tx: find_block(call, tx, reservation_id))


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    """One such yard."""
    found = Desk(tmp_path / "y")
    yield found
    found.close()


@pytest.fixture
def desk_with(tmp_path: Path) -> Any:
    """Makes one over another fleet."""
    made: list[Desk] = []

    def make(**changed: Any) -> Desk:
        made.append(Desk(tmp_path / "y", replace(FLEET, **changed)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_block_goes_through_its_states_at_the_right_instants(desk: Desk) -> None:
    """payment-pending, scheduled five minutes later, active at its start, expired at its end: to the
    microsecond."""
    bought = desk.buy()
    assert bought["State"] == "payment-pending"
    name, start, end = bought["CapacityReservationId"], bought["StartDate"], bought["EndDate"]
    assert (start, end) == (
        datetime(2026, 12, 2, 11, 30, tzinfo=UTC),
        datetime(2026, 12, 3, 11, 30, tzinfo=UTC),
    )
    for instant, before, after in (
        (NOW + timedelta(minutes=5), "payment-pending", "scheduled"), (start, "scheduled", "active"),
        (end, "active", "expired"),
    ):  # fmt: skip
        desk.move(instant - TICK)
        assert desk.block(name)["State"] == before
        desk.move(instant)
        assert desk.block(name)["State"] == after
    assert [move[1:] for move in desk.moves(name)] == [
        (None, "payment-pending"), ("payment-pending", "scheduled"), ("scheduled", "active"),
        ("active", "expired"),
    ]  # fmt: skip


def test_counts_are_zero_before_the_start_and_the_size_stands_in_a_tag(desk: Desk) -> None:
    """AWS shows 0 of 0 until the block begins; the two aws: tags are there from the purchase on."""
    bought = desk.buy(desk.offers(count=3, StartDateRange=NOW + DAY)[0]["CapacityBlockOfferingId"])
    name = bought["CapacityReservationId"]
    tags = {tag["Key"]: tag["Value"] for tag in bought["Tags"]}
    assert tags == {
        "aws:ec2capacityreservation:incrementalRequestedQuantity": "3",
        "aws:ec2capacityreservation:capacityReservationType": "capacity-block",
    }
    counts = []
    for instant in (NOW + timedelta(minutes=6), bought["StartDate"], bought["EndDate"]):
        desk.move(instant)
        found = desk.block(name)
        counts.append((found["TotalInstanceCount"], found["AvailableInstanceCount"]))
    assert counts == [(0, 0), (3, 3), (3, 0)]


def test_the_fee_is_billed_once_when_it_is_paid(desk: Desk) -> None:
    """Nothing before, one entry of the shown fee after, for ever."""
    offer = desk.offers(StartDateRange=NOW + DAY)[0]
    name = desk.buy(offer["CapacityBlockOfferingId"])["CapacityReservationId"]
    assert desk.rows("SELECT * FROM ledger") == []
    desk.advance(days=40)
    (entry,) = desk.rows("SELECT * FROM ledger")
    assert (entry["amount_micros"], offer["UpfrontFee"]) == (1_146_170_000, "1146.17")
    assert entry["subject"].endswith(name)


def test_a_payment_that_fails_gives_the_hosts_back_and_bills_nothing(desk: Desk) -> None:
    """payment-failed for good, no timers but the one that forgets it, its hosts for sale again."""
    one = {"StartDateRange": NOW + DAY, "EndDateRange": NOW + 3 * DAY}
    both = [offer["CapacityBlockOfferingId"] for offer in desk.offers(count=4, **one)]
    desk.yard.faults.arm(Fault(1, FaultKind.PAYMENT_FAILURE, times=1))
    failed = desk.buy(both[0])["CapacityReservationId"]
    desk.buy(both[0])
    desk.buy(both[1])
    assert desk.offers(count=1, **one) == []
    desk.advance(minutes=5)
    assert desk.block(failed)["State"] == "payment-failed"
    assert len(desk.rows("SELECT * FROM ledger")) == 2
    assert [offer["InstanceCount"] for offer in desk.offers(count=4, **one)] == [4]
    assert [row["kind"] for row in desk.rows(f"SELECT * FROM timers WHERE subject LIKE '%{failed}'")] == [
        "block-forget"
    ]


def test_payments_drawn_from_a_spread_come_before_the_deadline(desk_with: Callable[..., Desk]) -> None:
    """With up to two weeks of delay everything is paid within 12 hours, and 5 minutes before the start."""
    desk = desk_with(blocks=replace(FLEET.blocks, payment_delay_max=14 * DAY))
    soon = next(offer for offer in desk.offers() if offer["StartDate"] == NOW + timedelta(minutes=30))
    late = desk.offers(StartDateRange=NOW + 5 * DAY)[0]
    names = [desk.buy(offer["CapacityBlockOfferingId"])["CapacityReservationId"] for offer in (soon, late)]
    due = [
        row["due_us"]
        for row in desk.rows("SELECT * FROM timers WHERE kind = 'block-payment' ORDER BY due_us")
    ]
    desk.move(NOW + timedelta(minutes=25))
    assert desk.block(names[0])["State"] == "scheduled"
    desk.move(NOW + timedelta(hours=12))
    assert desk.block(names[1])["State"] == "scheduled"
    assert len(set(due)) == 2


def test_one_id_buys_again_while_hosts_last(desk: Desk) -> None:
    """The worst case for a client that sends again: eight hosts, eight blocks, then no more."""
    offer = desk.offers(StartDateRange=NOW + DAY)[0]["CapacityBlockOfferingId"]
    names = {desk.buy(offer)["CapacityReservationId"] for _ in range(8)}
    assert len(names) == 8
    with pytest.raises(ServiceError) as refused:
        desk.buy(offer)
    assert refused.value.code == "InvalidCapacityBlockOfferingIdExpired"


def test_a_plan_and_a_block_take_from_the_same_hosts(desk: Desk) -> None:
    """What one face sells the other cannot sell."""
    window = {"StartDateRange": NOW + DAY, "EndDateRange": NOW + 3 * DAY}
    plan = desk.call(
        "SearchTrainingPlanOfferings", InstanceType="ml.p5.48xlarge", InstanceCount=8, DurationHours=24,
        TargetResources=["endpoint"], StartTimeAfter=NOW + DAY,
    )["TrainingPlanOfferings"][0]  # fmt: skip
    stale = next(o for o in desk.offers(count=8, **window))["CapacityBlockOfferingId"]
    desk.call(
        "CreateTrainingPlan", TrainingPlanName="p", TrainingPlanOfferingId=plan["TrainingPlanOfferingId"]
    )
    assert desk.offers(count=5, **window) == []
    with pytest.raises(ServiceError, match="no longer available"):
        desk.buy(stale)


def test_places_are_taken_and_given_back_and_never_twice(desk: Desk) -> None:
    """Only of an active block, never more than were bought, none once reclaiming has begun."""
    bought = desk.buy(desk.offers(count=2, StartDateRange=NOW + DAY)[0]["CapacityBlockOfferingId"])
    name = bought["CapacityReservationId"]
    take: Callable[[int], bool] = lambda n: desk.do(lambda tx: take_places(tx, name, n))  # noqa: E731
    assert free_places(None, desk.row(name)) == 0  # type: ignore[arg-type]
    assert not take(1)
    desk.move(bought["StartDate"])
    assert [take(1), take(2), take(1), take(1)] == [True, False, True, False]
    assert desk.block(name)["AvailableInstanceCount"] == 0
    desk.do(lambda tx: give_back_places(tx, name, 1))
    assert free_places(None, desk.row(name)) == 1  # type: ignore[arg-type]
    desk.move(bought["EndDate"] - timedelta(minutes=30))
    assert not take(1)
    assert desk.block(name)["AvailableInstanceCount"] == 1
    desk.move(bought["EndDate"])
    desk.do(lambda tx: give_back_places(tx, name, 1))
    assert desk.row(name)["in_use"] == 0


def test_reclaiming_begins_half_an_hour_before_the_end_and_an_hour_for_ultraservers(desk: Desk) -> None:
    """As state of the row, as question, and as an event."""
    ultra = desk.offers(count=4, InstanceType="p6e-gb200.36xlarge", StartDateRange=NOW + DAY)[0]
    for offer, minutes in ((desk.offers(StartDateRange=NOW + DAY)[0], 30), (ultra, 60)):
        bought = desk.buy(offer["CapacityBlockOfferingId"])
        name, row = bought["CapacityReservationId"], desk.row(bought["CapacityReservationId"])
        at = reclaim_at(desk.yard, row)
        assert at == bought["EndDate"] - timedelta(minutes=minutes)
        assert (reclaiming(desk.yard, row, at - TICK), reclaiming(desk.yard, row, at)) == (False, True)
    desk.move(at)
    assert desk.row(name)["reclaimed"] == 1
    assert any("taken back" in row["reason"] for row in desk.rows("SELECT * FROM events"))


def test_an_ended_block_is_described_for_a_month_then_not_found(desk: Desk) -> None:
    """So are its tags; ledger and events stay."""
    name = desk.buy()["CapacityReservationId"]
    desk.move(datetime(2027, 1, 2, 11, 29, tzinfo=UTC))
    assert desk.block(name)["State"] == "expired"
    desk.move(datetime(2027, 1, 2, 11, 30, tzinfo=UTC))
    with pytest.raises(ServiceError) as refused:
        desk.block(name)
    assert refused.value.code == "InvalidCapacityReservationId.NotFound"
    assert desk.ec2("DescribeTags")["Tags"] == []
    assert len(desk.rows("SELECT * FROM ledger")) == 1


def test_what_lives_is_counted_again_after_a_restart(tmp_path: Path) -> None:
    """Reservations, places and timers are rows: the same offers, the same states as without the restart."""
    first = Desk(tmp_path / "y")
    name = first.buy(first.offers(count=8, StartDateRange=NOW + DAY)[0]["CapacityBlockOfferingId"])[
        "CapacityReservationId"
    ]
    window = {"StartDateRange": NOW + DAY, "EndDateRange": NOW + 3 * DAY}
    ids = [offer["CapacityBlockOfferingId"] for offer in first.offers(**window)]
    first.close()
    again = Desk(tmp_path / "y")
    assert [offer["CapacityBlockOfferingId"] for offer in again.offers(**window)] == ids
    again.advance(days=1, hours=4)
    assert again.block(name)["State"] == "active"
    again.close()


def test_a_pools_number_stays_when_the_fleet_file_changes(tmp_path: Path) -> None:
    """An id given out before still names the same pool, or is no longer sold."""
    first = Desk(tmp_path / "y")
    offer = first.offers(InstanceType="p5.4xlarge", StartDateRange=NOW + DAY)[0]["CapacityBlockOfferingId"]
    first.close()
    pools = dict(FLEET.pools)
    moved = pools.pop("use1-az1/p5.48xlarge")
    pools["use1-az2/p4de.24xlarge"] = replace(moved, zone_id="use1-az2", hardware="p4de.24xlarge")
    again = Desk(tmp_path / "y", replace(FLEET, pools=pools))
    assert again.buy(offer)["InstanceType"] == "p5.4xlarge"
    again.close()


def seed(desk: Desk, state: str, window: Window, **more: Any) -> dict[str, str]:
    """Put a block in."""
    facts: dict[str, Any] = {
        "account": desk.account.account_id, "region": "us-east-1", "instance_type": "p5.48xlarge", "count": 2,
        "platform": "Linux/UNIX", "window": window, "fee": Money.parse("10.00"), "state": state,
        "zone_id": None, "tags": {}, **more,
    }  # fmt: skip
    made: dict[str, str] = desk.do(lambda tx: seed_block(tx, desk.yard, BlockSeed(**facts)))
    return made


WINDOWS = {
    "active": Window(NOW - DAY, NOW + DAY),
    "expired": Window(NOW - 2 * DAY, NOW - DAY),
}


@pytest.mark.parametrize("state", sorted(CAPACITY_BLOCK.moves))
def test_a_block_of_any_state_can_be_seeded_and_goes_on_from_there(desk: Desk, state: str) -> None:
    """The timers of what is to come play without complaint; only what lives holds hosts."""
    window = WINDOWS.get(state, Window(NOW + DAY, NOW + 2 * DAY))
    made = seed(desk, state, window, tags={"team": "a"}, zone_id="use1-az2")
    found = desk.block(made["capacity_reservation_id"])
    assert (found["State"], found["AvailabilityZoneId"]) == (state, "use1-az2")
    assert {"Key": "team", "Value": "a"} in found["Tags"]
    holds = len(desk.rows("SELECT * FROM bookings WHERE holder = ?", made["arn"]))
    assert holds == (state in ("payment-pending", "scheduled", "active"))
    desk.advance(days=3)
    after = desk.block(made["capacity_reservation_id"])["State"]
    assert after == ("expired" if holds else state)


def test_a_seed_that_makes_no_sense_is_refused(desk: Desk) -> None:
    """A state that does not go with the window, no room, bad values: ValueError, and nothing written."""
    ahead = Window(NOW + DAY, NOW + 2 * DAY)
    for state, window, more in (
        ("active", ahead, {}), ("scheduled", WINDOWS["active"], {}), ("expired", ahead, {}),
        ("payment-pending", Window(NOW + timedelta(minutes=2), NOW + DAY), {}), ("dreaming", ahead, {}),
        ("scheduled", ahead, {"count": 9}), ("scheduled", ahead, {"count": 0}),
        ("scheduled", ahead, {"count": 65}),
        ("scheduled", ahead, {"zone_id": "use1-az3"}), ("scheduled", ahead, {"platform": "Windows"}),
        ("scheduled", ahead, {"fee": Money.parse("-1")}), ("scheduled", ahead, {"tags": {"aws:x": "y"}}),
        ("expired", WINDOWS["expired"], {"instance_type": "m5.large"}),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            seed(desk, state, window, **more)
    assert desk.rows("SELECT * FROM capacity_reservations") == []
