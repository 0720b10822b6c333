"""Instances in Capacity Blocks: what may be launched, when, and what becomes of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from .ec2_bench import FLEET, P5, Ec2Bench

FULL = "ReservationCapacityExceeded"


def test_an_instance_says_what_it_runs_in(ec2: Ec2Bench) -> None:
    """Lifecycle, reservation and target are read back, so a launcher can compare them with its wish."""
    block = ec2.block()
    (made,) = ec2.launch(block)
    shown = ec2.instance(made)
    assert shown["InstanceLifecycle"] == "capacity-block"
    assert shown["CapacityReservationId"] == block
    assert shown["CapacityReservationSpecification"]["CapacityReservationTarget"] == {
        "CapacityReservationId": block
    }
    assert shown["Placement"]["AvailabilityZoneId"] == "use1-az1"
    assert (shown["PlatformDetails"], shown["InstanceType"]) == ("Linux/UNIX", P5)


def test_states_by_the_clock_alone(ec2: Ec2Bench) -> None:
    """Pending, running after the starting time, shutting-down while it is cleaned, terminated, forgotten."""
    block = ec2.block()
    (made,) = ec2.launch(block)
    ec2.advance(seconds=30)
    ec2.ec2("TerminateInstances", InstanceIds=[made])
    ec2.advance(hours=2)
    assert ec2.moves(made) == [
        ("2026-12-01T09:00:00Z", None, "pending"),
        ("2026-12-01T09:00:30Z", "pending", "running"),
        ("2026-12-01T09:00:30Z", "running", "shutting-down"),
        ("2026-12-01T09:10:30Z", "shutting-down", "terminated"),
    ]
    assert ec2.refused("DescribeInstances", InstanceIds=[made]).code == "InvalidInstanceID.NotFound"
    assert ec2.rows("SELECT * FROM instances") == []
    assert ec2.rows("SELECT * FROM timers WHERE kind LIKE 'instance%'") == []


def test_a_place_returns_only_after_cleaning(ec2: Ec2Bench) -> None:
    """A full block takes nothing while the ended instance is being cleaned, and takes one right after."""
    block = ec2.block(2)
    first, _ = ec2.launch(block, 2)
    assert ec2.free_in(block) == 0
    assert ec2.no_launch(block).code == FULL
    ec2.ec2("TerminateInstances", InstanceIds=[first])
    ec2.advance(minutes=9, seconds=59)
    assert (ec2.free_in(block), ec2.state(first)) == (0, "shutting-down")
    assert ec2.no_launch(block).code == FULL
    ec2.advance(seconds=1)
    assert (ec2.free_in(block), ec2.state(first)) == (1, "terminated")
    ec2.launch(block)


def test_the_fleet_file_says_how_long_cleaning_takes(tmp_path: Path) -> None:
    """`cleaning` in [instances] is how long a place stays taken."""
    text = FLEET.read_text("utf-8") + '\n[instances]\ncleaning = "3m"\nstarting = "1s"\n'
    bench = Ec2Bench(tmp_path / "y", text)
    (made,) = bench.launch(bench.block(1))
    bench.advance(seconds=1)
    assert bench.state(made) == "running"
    bench.ec2("TerminateInstances", InstanceIds=[made])
    bench.advance(minutes=3)
    assert bench.state(made) == "terminated"
    bench.close()


def test_nothing_is_launched_before_the_start(ec2: Ec2Bench) -> None:
    """Field fault 18 and 39: scheduled and unpaid blocks answer PendingActivation, and no host is taken."""
    later = datetime(2026, 12, 2, 11, 30, tzinfo=UTC)
    for state in ("scheduled", "payment-pending"):
        refused = ec2.no_launch(ec2.block(1, state=state, start=later))
        assert refused.code == "InvalidCapacityReservationState.PendingActivation"
    assert ec2.rows("SELECT * FROM instances") == []


def test_launching_begins_in_the_instant_of_the_start(ec2: Ec2Bench) -> None:
    """A microsecond earlier is refused, the start itself is not."""
    start = datetime(2026, 12, 2, 11, 30, tzinfo=UTC)
    block = ec2.block(1, state="scheduled", start=start)
    ec2.move(start - timedelta(microseconds=1))
    assert ec2.no_launch(block).code.endswith("PendingActivation")
    ec2.move(start)
    ec2.launch(block)


def test_no_launch_once_reclaiming_has_begun(ec2: Ec2Bench) -> None:
    """Field fault 21: in the last 30 minutes a block takes nothing, whatever count it shows."""
    block = ec2.block(2)
    end = ec2.yard.clock.now() + timedelta(hours=23)
    ec2.move(end - timedelta(minutes=30, microseconds=1))
    ec2.launch(block)
    ec2.move(end - timedelta(minutes=30))
    assert ec2.no_launch(block).code == FULL
    ec2.move(end)
    assert ec2.no_launch(block).code == "InvalidCapacityReservationState"


def test_reclaiming_ends_what_runs(ec2: Ec2Bench) -> None:
    """Thirty minutes before the end every instance goes, with a reason, whether it had started or not."""
    block = ec2.block(2)
    (running,) = ec2.launch(block)
    end = ec2.yard.clock.now() + timedelta(hours=23)
    ec2.move(end - timedelta(minutes=30, seconds=5))
    (young,) = ec2.launch(block)
    ec2.move(end - timedelta(minutes=30))
    for instance_id in (running, young):
        shown = ec2.instance(instance_id)
        assert shown["State"]["Name"] == "shutting-down"
        assert shown["StateReason"]["Code"] == "Server.ScheduledStop"
    ec2.move(end - timedelta(minutes=20))
    assert ec2.state(running) == ec2.state(young) == "terminated"
    ec2.advance(days=60)
    assert ec2.rows("SELECT * FROM instances") == []


def test_nothing_falls_back_to_on_demand(ec2: Ec2Bench) -> None:
    """Field fault 12: where the block cannot take a launch nothing starts and nothing is booked or billed."""
    block = ec2.block(1)
    ec2.launch(block)
    assert ec2.no_launch(block, CapacityReservationSpecification={
        "CapacityReservationTarget": {"CapacityReservationId": block},
        "CapacityReservationPreference": "capacity-reservations-only",
    }).code == FULL  # fmt: skip
    assert ec2.rows("SELECT * FROM bookings WHERE end_us IS NULL") == []
    ec2.advance(days=2)
    assert [row["kind"] for row in ec2.rows("SELECT kind FROM ledger")] == ["capacity-block"]


def test_a_block_without_its_market_type_is_refused_in_known_words(ec2: Ec2Bench) -> None:
    """Field fault 31: the id alone is not enough."""
    refused = ec2.no_launch(ec2.block(), InstanceMarketOptions={})
    assert refused.code == "InvalidParameterValue"
    assert refused.message == (
        "The market type (purchasing) option is not valid. Choose a different market type and try again"
    )


def test_a_market_type_without_a_block_is_refused(ec2: Ec2Bench) -> None:
    """The market type alone is not enough either, and never becomes on-demand."""
    refused = ec2.no_launch(InstanceMarketOptions={"MarketType": "capacity-block"})
    assert refused.code == "InvalidParameterCombination"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"InstanceType": "trn1.32xlarge"}, FULL),
        ({"Placement": {"AvailabilityZoneId": "use1-az2"}}, FULL),
        ({"Placement": {"Tenancy": "dedicated"}}, FULL),
        ({"Placement": {"GroupName": "cluster"}}, "InvalidParameterCombination"),
    ],
)
def test_what_does_not_match_the_block(ec2: Ec2Bench, more: dict[str, object], code: str) -> None:
    """Field faults 32, 34 and 38: type, zone, tenancy and placement group."""
    assert ec2.no_launch(ec2.block(), **more).code == code


def test_a_subnet_and_a_platform_must_be_the_blocks(ec2: Ec2Bench) -> None:
    """A subnet of another zone, or an image of another platform, does not match; the right ones do."""
    linux, ubuntu = ec2.block(), ec2.block(1, zone="use1-az2", platform="Ubuntu Pro")
    assert ec2.no_launch(linux, SubnetId=ec2.subnet("use1-az2")).code == FULL
    assert ec2.no_launch(ubuntu).code == FULL
    (here,) = ec2.launch(linux, SubnetId=ec2.subnet("use1-az1"))
    (pro,) = ec2.launch(ubuntu, ImageId=ec2.image("Ubuntu Pro"))
    assert ec2.instance(here)["SubnetId"] == ec2.subnet("use1-az1")
    assert ec2.instance(pro)["UsageOperation"] == "RunInstances:0g00"


def test_rhel_with_ha_goes_by_two_names(ec2: Ec2Bench) -> None:
    """A reservation calls it `RHEL with HA`, an image spells it out; they are one platform."""
    block = ec2.block(1, platform="RHEL with HA")
    ec2.launch(block, ImageId=ec2.image("Red Hat Enterprise Linux with High Availability"))


def test_a_range_takes_what_is_free(ec2: Ec2Bench) -> None:
    """Between MinCount and MaxCount as many start as there are places; below MinCount nothing does."""
    block = ec2.block(2)
    assert ec2.no_launch(block, MinCount=3, MaxCount=5).code == FULL
    assert len(ec2.launch(block, MinCount=1, MaxCount=5)) == 2


def test_several_blocks_are_filled_one_after_the_other(ec2: Ec2Bench) -> None:
    """Field fault 35: overlapping blocks of one type and zone each take their own."""
    first, second, third = (ec2.block(n, zone="use1-az2") for n in (2, 2, 2))
    made = [ec2.launch(block, MinCount=1, MaxCount=4) for block in (first, second, third)]
    assert [len(ids) for ids in made] == [2, 2, 2]
    assert [ec2.free_in(block) for block in (first, second, third)] == [0, 0, 0]


def test_the_on_demand_quota_is_no_matter_in_a_block(tmp_path: Path) -> None:
    """Field fault 37: with a quota of 0 vCPUs the block's places can be used, and on demand nothing can."""
    bench = Ec2Bench(tmp_path / "y", FLEET.read_text("utf-8").replace("p = 768", "p = 0"))
    assert bench.no_launch().code == "VcpuLimitExceeded"
    bench.launch(bench.block(2), 2)
    bench.close()


def test_another_account_neither_sees_nor_uses_it(ec2: Ec2Bench) -> None:
    """Blocks and instances of one account do not exist for another."""
    block = ec2.block()
    (mine,) = ec2.launch(block)
    other = ec2.add_account("other")
    wish = ec2.launching(block)
    assert ec2.refused("RunInstances", account=other, **wish).code == "InvalidCapacityReservationId.NotFound"
    for name in ("DescribeInstances", "TerminateInstances", "DescribeInstanceStatus"):
        assert ec2.refused(name, account=other, InstanceIds=[mine]).code == "InvalidInstanceID.NotFound"
    assert ec2.ec2("DescribeInstances", account=other) == {"Reservations": []}
    assert ec2.refused("CreateTags", account=other, Resources=[mine], Tags=[{"Key": "a"}]).code == (
        "InvalidInstanceID.NotFound"
    )


def test_a_dry_run_says_that_it_would_have_worked_and_takes_nothing(ec2: Ec2Bench) -> None:
    """Or what is wrong."""
    block = ec2.block(1)
    assert ec2.no_launch(block, DryRun=True).code == "DryRunOperation"
    assert ec2.no_launch(block, 2, DryRun=True).code == FULL
    assert ec2.free_in(block) == 1


def test_a_restart_keeps_instances_and_places(ec2: Ec2Bench) -> None:
    """Field fault 67: what ran runs on, what was being cleaned is cleaned, places stay taken."""
    block = ec2.block(2)
    kept, gone = ec2.launch(block, 2)
    ec2.advance(minutes=1)
    ec2.ec2("TerminateInstances", InstanceIds=[gone])
    ec2.close()
    again = Ec2Bench(ec2.path)
    assert (again.state(kept), again.state(gone), again.free_in(block)) == ("running", "shutting-down", 0)
    again.advance(minutes=10)
    assert (again.state(kept), again.state(gone), again.free_in(block)) == ("running", "terminated", 1)
    again.close()
