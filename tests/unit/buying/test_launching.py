"""Launching into blocks and ending: checked first, one launch a block, read back, stopped at every effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.aws.guards import into_block
from berth.orders.journal import LostRace
from berth.orders.order import OrderKey
from berth.orders.steps import StepState
from berth.planner.launch import Launch
from berth.terms.outcomes import BerthError, ExitCode
from berth.workloads.instances import read_instances
from berth.workloads.launch import launch, until_running
from berth.workloads.report import make_report, report_lines
from berth.workloads.status import instances_now

from .rented_block import ACCOUNT, IMAGE, SAID, Rented


@pytest.fixture
def rented(make_world: Callable[..., Any]) -> Rented:
    """A bought, open block of two."""
    return Rented(make_world("blocks"))


def findings(rented: Rented, code: ExitCode, said: Launch = SAID, **more: Any) -> str:
    """What is told when nothing may be launched; no launch was called."""
    before = rented.world.effects.log.count("RunInstances:before")
    with pytest.raises(BerthError) as caught:
        rented.launch(said, **more)
    assert caught.value.exit_code is code
    assert caught.value.spent.line().startswith("paid 457.54 USD")
    assert rented.world.effects.log.count("RunInstances:before") == before
    return caught.value.message


def test_a_launch_names_market_block_zone_and_mark(rented: Rented) -> None:
    """One request: the market, the block's id, its type, a subnet in its zone, our mark (field fault 31)."""
    running = rented.launch(Launch(image=IMAGE, role="arn:aws:iam::111122223333:instance-profile/x"))
    assert [one.state for one in running.instances] == ["running", "running"]
    assert running.started == 2
    (asked,) = rented.ec2.launches
    assert asked["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    assert asked["block"] == rented.block
    assert (asked["MinCount"], asked["MaxCount"], asked["InstanceType"]) == (1, 2, "p5.48xlarge")
    assert asked["SubnetId"] == "subnet-1"
    assert asked["IamInstanceProfile"] == {"Arn": "arn:aws:iam::111122223333:instance-profile/x"}
    assert {"Key": "berth:order", "Value": "111122223333/eval/1"} in asked["TagSpecifications"][0]["Tags"]
    assert "Placement" not in asked


def test_launching_again_starts_nothing_more(rented: Rented) -> None:
    """What runs is counted first; what is missing is started, and no more."""
    rented.launch()
    assert rented.launch().started == 0
    rented.ec2.terminate_instances(InstanceIds=[rented.ec2.running[0]])
    rented.world.clock.advance(minutes=10)
    assert rented.launch().started == 1
    assert len(rented.ec2.running) == 2


def test_every_misfit_is_one_sentence(rented: Rented) -> None:
    """Zone and count, both told at once, and nothing is called (field fault 32)."""
    said = findings(
        rented, ExitCode.BAD_REQUEST, Launch(image=IMAGE, subnet="subnet-2"), wanted=3
    ).splitlines()
    assert said == [
        f"subnet subnet-2 is in use1-az1, {rented.block} in use1-az4",
        "3 wanted, 2 reserved",
    ]


def test_platform_account_and_tenancy_are_checked(rented: Rented) -> None:
    """An image of another platform, another account's block, a template of another tenancy."""
    rented.ec2.platform = "Red Hat Enterprise Linux with High Availability"
    rented.ec2.template = {"ImageId": IMAGE, "Placement": {"Tenancy": "dedicated"}}
    rented.world.aws.blocks[rented.block]["OwnerId"] = "999988887777"
    said = findings(rented, ExitCode.BAD_REQUEST, Launch(template="lt-1"))
    assert "is for RHEL with HA" in said
    assert "belongs to account 999988887777" in said
    assert "asks for tenancy dedicated" in said


def test_what_is_not_there_is_said(rented: Rented) -> None:
    """No image, an unknown one, an unknown subnet, no default subnet: each in a sentence."""
    assert "no image is named" in findings(rented, ExitCode.BAD_REQUEST, Launch())
    assert "image ami-9" in findings(rented, ExitCode.BAD_REQUEST, Launch(image="ami-9"))
    gone = Launch(image=IMAGE, subnet="subnet-9")
    assert "subnet subnet-9" in findings(rented, ExitCode.BAD_REQUEST, gone)
    rented.ec2.default_subnet = None
    assert "no default subnet in use1-az4" in findings(rented, ExitCode.BAD_REQUEST)
    assert "is an offer" in findings(rented, ExitCode.BAD_REQUEST, others=("cb-0123",))
    assert "there is no cr-9" in findings(rented, ExitCode.BAD_REQUEST, others=("cr-9",))


def test_a_placement_group_is_dropped_with_a_note(rented: Rented) -> None:
    """Blocks have none: the template's is overridden, and that is said (field fault 34)."""
    rented.ec2.template = {"ImageId": IMAGE, "Placement": {"GroupName": "cluster"}}
    rented.launch(Launch(template="gpu", template_version="3"))
    (asked,) = rented.ec2.launches
    assert asked["LaunchTemplate"] == {"LaunchTemplateName": "gpu", "Version": "3"}
    assert asked["Placement"] == {"Tenancy": "default"}
    assert any("placement group cluster is left out" in said for said in rented.world.warnings)


def test_a_dedicated_block_is_launched_into_as_dedicated(rented: Rented) -> None:
    """The launch carries the reservation's tenancy (field fault 38)."""
    rented.world.aws.blocks[rented.block]["Tenancy"] = "dedicated"
    rented.launch()
    assert rented.ec2.launches[0]["Placement"] == {"Tenancy": "dedicated"}


def test_a_template_with_interfaces_keeps_its_subnet(rented: Rented) -> None:
    """EFA interfaces come from the template: the subnet is theirs, or the default one of the block's zone."""
    rented.ec2.template = {"ImageId": IMAGE, "NetworkInterfaces": [{"SubnetId": "subnet-2"}]}
    assert "is in use1-az1" in findings(rented, ExitCode.BAD_REQUEST, Launch(template="lt-1"))
    named = Launch(template="lt-1", subnet="subnet-1")
    assert "leave out the subnet" in findings(rented, ExitCode.BAD_REQUEST, named)
    rented.ec2.template = {"ImageId": IMAGE, "NetworkInterfaces": [{"InterfaceType": "efa"}]}
    rented.launch(Launch(template="lt-1"))
    assert rented.ec2.launches[0]["Placement"] == {"AvailabilityZone": "us-east-1d"}
    assert "SubnetId" not in rented.ec2.launches[0]


def test_nothing_is_launched_before_the_start(rented: Rented) -> None:
    """A countdown and no call, whether AWS shows the block or not (field faults 18 and 39)."""
    rented.world.clock.at = rented.order.offer.paid_window.start - timedelta(hours=2, minutes=10)
    assert "starts in 2 h 10 min" in findings(rented, ExitCode.BOUGHT_NOT_LAUNCHED)
    with pytest.raises(BerthError) as caught:
        launch(rented.site(), rented.order, None, SAID)
    assert "starts in 2 h 10 min" in caught.value.message
    start = f"{rented.order.window.start:%Y-%m-%dT%H:%M:%SZ}"
    assert caught.value.next_step == f"wait until {start}, then berth launch {rented.order.key}; --wait waits"
    assert rented.ec2.launches == []


def test_nothing_is_launched_while_the_block_is_taken_back(rented: Rented) -> None:
    """25 minutes before the end there are no places, whatever AvailableInstanceCount says (fault 21)."""
    rented.world.clock.at = rented.order.offer.paid_window.end - timedelta(minutes=25)
    assert "too late in this block" in findings(rented, ExitCode.BOUGHT_NOT_LAUNCHED)
    rented.world.clock.at = rented.order.offer.paid_window.end
    assert "is over" in findings(rented, ExitCode.BOUGHT_NOT_LAUNCHED)
    with pytest.raises(BerthError) as over:
        launch(rented.site(), rented.order, None, SAID)
    assert over.value.next_step == f"berth clean {rented.order.key}", "launching again can never work"


def test_a_state_that_lags_is_tried(rented: Rented) -> None:
    """`scheduled` may be shown for minutes after the start while launches work already."""
    rented.world.aws.blocks[rented.block]["State"] = "scheduled"
    assert len(rented.launch().instances) == 2


def test_a_block_that_is_not_open_yet_is_said(rented: Rented) -> None:
    """EC2 itself says that the start has not come: nothing runs, exit 30; the next try launches."""
    rented.ec2.fault = "not started"
    with pytest.raises(BerthError) as caught:
        rented.launch()
    assert caught.value.exit_code is ExitCode.BOUGHT_NOT_LAUNCHED
    assert "has not opened" in caught.value.message
    rented.ec2.fault = None
    assert rented.launch().started == 2


def test_several_blocks_are_used_in_turn(make_world: Callable[..., Any]) -> None:
    """Blocks of 2, 2 and 4 places and 8 wanted: three launches, no error (field fault 35)."""
    rented = Rented(make_world("blocks"), 2)
    others = (rented.more(2), rented.more(4))
    running = rented.launch(wanted=8, others=others)
    assert [one["got"] for one in rented.ec2.launches] == [2, 2, 4]
    assert [one["block"] for one in rented.ec2.launches] == [rented.block, *others]
    assert len(running.instances) == 8
    assert rented.clean()
    assert rented.ec2.running == []


def test_a_full_block_says_how_many_run(rented: Rented) -> None:
    """A colleague's instance sits in the block: one of two runs, exit 30, and it stays."""
    rented.ec2.free[rented.block] = 1
    with pytest.raises(BerthError) as caught:
        rented.launch()
    assert caught.value.exit_code is ExitCode.BOUGHT_NOT_LAUNCHED
    assert "1 of 2 instances run" in caught.value.message
    assert len(rented.ec2.running) == 1


def test_a_block_that_was_full_when_seen_last_is_asked(rented: Rented) -> None:
    """What was seen may be old: EC2 is asked, and says itself when no place is free."""
    last = replace(rented.seen(), instances_free=0)
    running = launch(rented.site(), rented.world.order(), last, SAID)
    assert running.started == 2


def test_a_lost_answer_is_repeated_by_its_token(rented: Rented) -> None:
    """The same token and the same parameters give the same instances, also while EC2 does not show them."""
    rented.ec2.fault = "lost"
    with pytest.raises(BerthError) as caught:
        rented.launch()
    assert "is safe" in caught.value.message
    rented.ec2.hidden_until = rented.world.clock.now() + timedelta(minutes=5)
    rented.ec2.free[rented.block] += 2
    assert len(rented.launch().instances) == 2
    assert len(rented.ec2.running) == 2


def test_what_was_just_launched_counts_while_it_is_not_shown(rented: Rented) -> None:
    """EC2 describes instances late: a second run at once starts nothing more."""
    rented.ec2.hidden_until = rented.world.clock.now() + timedelta(minutes=5)
    rented.launch()
    assert any("describes 0 of 2" in said for said in rented.world.warnings)
    rented.ec2.free[rented.block] = 2
    assert rented.launch().started == 0
    assert len(rented.ec2.running) == 2


def test_a_lost_journal_goes_on_with_what_runs(rented: Rented, make_world: Callable[..., Any]) -> None:
    """Another journal counts what carries the mark, and passes over tokens of ended launches."""
    rented.launch()
    fresh = make_world("blocks")
    fresh.aws, fresh.clock = rented.world.aws, rented.world.clock
    fresh.approved = rented.world.approved
    fresh.aws.fault = None
    order = fresh.buy(cap="5000").order
    again = launch(rented.site(fresh.journal), order, rented.seen(), SAID)
    assert again.started == 0
    rented.ec2.terminate_instances(InstanceIds=rented.ec2.running)
    relaunched = launch(rented.site(fresh.journal), order, rented.seen(), SAID)
    assert relaunched.started == 2


@pytest.mark.parametrize(
    "change",
    [
        {"CapacityReservationId": "cr-another"},
        {"InstanceLifecycle": "spot"},
        {"CapacityReservationId": None, "InstanceLifecycle": None},
    ],
)
def test_an_instance_outside_the_block_is_an_alarm(rented: Rented, change: dict[str, Any]) -> None:
    """Read back, it shows another reservation, another market, or neither: ended at once, exit 30."""
    rented.ec2.change = lambda answer: {k: v for k, v in (answer | change).items() if v is not None}
    with pytest.raises(BerthError) as caught:
        rented.launch()
    assert caught.value.message.startswith("ALARM")
    assert "on demand" in caught.value.message
    assert rented.ec2.running == []


@pytest.mark.parametrize(
    ("change", "answers"),
    [
        ({"CapacityReservationId": None, "InstanceLifecycle": None}, 2),
        ({"CapacityReservationId": "cr-another"}, 2),
        ({"CapacityReservationId": "never-heard-of"}, 1000),
        ({"InstanceLifecycle": "never-heard-of"}, 1000),
    ],
)
def test_a_garbled_answer_ends_nothing(rented: Rented, change: dict[str, Any], answers: int) -> None:
    """One description that says otherwise, or words that EC2 does not use, end no instance."""
    rented.launch()
    left = [answers]

    def garble(answer: dict[str, Any]) -> dict[str, Any]:
        left[0] -= 1
        said = answer | change if left[0] >= 0 else answer
        return {k: v for k, v in said.items() if v is not None}

    rented.ec2.change = garble
    assert len(rented.launch().instances) == 2
    assert len(rented.ec2.running) == 2


def test_an_instance_that_we_did_not_launch_is_never_ended(rented: Rented) -> None:
    """With our mark and on demand, but not from this journal: an alarm, and a person decides."""
    rented.launch()
    first = rented.ec2.running[0]
    stray = {**rented.ec2.instances[first], "InstanceId": "i-stray"}
    del stray["CapacityReservationId"], stray["InstanceLifecycle"]
    rented.ec2.instances["i-stray"] = stray
    with pytest.raises(BerthError) as caught:
        rented.launch(wanted=2)
    assert "i-stray" in caught.value.message
    assert "left as they are" in caught.value.message
    assert "i-stray" in rented.ec2.running


def test_one_member_not_shown_is_no_alarm(rented: Rented) -> None:
    """What is left out of two proves nothing."""
    rented.ec2.change = lambda answer: {k: v for k, v in answer.items() if k != "InstanceLifecycle"}
    assert len(rented.launch().instances) == 2


def test_a_crash_at_every_effect_of_launching_and_ending(
    make_world: Callable[..., Any], crash: type[BaseException]
) -> None:
    """Stopped anywhere and run again: two instances and no more, then none, and the journal says so."""
    stop, crashed = 0, True
    while crashed:
        stop += 1
        rented = Rented(make_world("blocks"))
        world = rented.world
        crashed = False
        world.stop_after(stop)
        try:
            rented.launch()
            rented.clean()
        except crash:
            crashed = True
            world.crash()
        world.effects.stop_at = None
        world.clock.advance(minutes=7)
        if any(one.state is not StepState.REMOVED for one in world.journal.launches(rented.order.key)):
            rented.launch()
            assert len(rented.ec2.running) == 2
        rented.clean()
        assert rented.ec2.running == []
        assert rented.ec2.free[rented.block] == 2
        assert {one.state for one in world.journal.launches(rented.order.key)} <= {
            StepState.REMOVED, StepState.REFUSED,
        }  # fmt: skip
        world.journal.close()
    assert stop > 12


def test_what_is_not_ours_stays(rented: Rented) -> None:
    """Another's instance in our block, and one of ours whose mark was taken off, are left alone."""
    rented.launch()
    first, second = rented.ec2.running
    rented.ec2.instances["i-theirs"] = {**rented.ec2.instances[first], "InstanceId": "i-theirs", "Tags": []}
    rented.ec2.instances[second]["Tags"] = []
    assert rented.clean() == (f"instance {first}",)
    assert any(second in said and "left alone" in said for said in rented.world.warnings)
    assert sorted(rented.ec2.running) == sorted([second, "i-theirs"])


def test_a_filter_that_is_not_obeyed_ends_nobody_elses(rented: Rented) -> None:
    """Whatever EC2 (or what plays it) answers to the filter, only what carries our mark is ours."""
    rented.launch()
    first, _ = rented.ec2.running
    rented.ec2.instances["i-theirs"] = {**rented.ec2.instances[first], "InstanceId": "i-theirs", "Tags": []}
    everybody = lambda **_: {"Reservations": [{"Instances": list(rented.ec2.instances.values())}]}  # noqa: E731
    rented.ec2.describe_instances = everybody  # type: ignore[method-assign]
    rented.clean()
    assert rented.ec2.running == ["i-theirs"]


def test_two_processes_cannot_begin_the_same_launch(rented: Rented) -> None:
    """A number is begun once: the second process is told, and its parameters replace nothing."""
    rented.launch()
    (record,) = rented.world.journal.launches(rented.order.key)
    now = rented.world.clock.now()
    with pytest.raises(LostRace):
        rented.world.journal.put_launch(rented.order.key, replace(record, state=StepState.BEGUN), now)
    assert rented.world.journal.launches(rented.order.key) == (record,)


def test_a_standing_clock_does_not_hold_clearing_up(rented: Rented) -> None:
    """Hosts are cleaned in the yard's time: told, exit 30, and done once the clock was moved."""
    rented.launch()
    rented.ec2.ends_at_once = False
    rented.world.clock.stands = True
    with pytest.raises(BerthError) as caught:
        rented.clean()
    assert caught.value.exit_code is ExitCode.BOUGHT_NOT_LAUNCHED
    assert "shutting-down" in caught.value.message
    assert any("advance 10m" in said for said in rented.world.talk)
    for one in rented.ec2.instances.values():
        one["State"] = {"Name": "terminated"}
    assert rented.clean() == ()
    assert {one.state for one in rented.world.journal.launches(rented.order.key)} == {StepState.REMOVED}


def test_waiting_until_instances_run(rented: Rented) -> None:
    """Pending at first; running after a while; one that ends instead is told with EC2's reason."""
    running = rented.launch()
    for one in rented.ec2.instances.values():
        one["State"] = {"Name": "pending"}
    looks: list[int] = []

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        looks.append(1)
        return answer | ({"State": {"Name": "running"}} if len(looks) > 4 else {})

    rented.ec2.change = change
    done = until_running(rented.site(), rented.order, running)
    assert {one.state for one in done.instances} == {"running"}
    rented.ec2.change = lambda answer: answer | {
        "State": {"Name": "terminated"}, "StateReason": {"Message": "Server.InternalError"},
    }  # fmt: skip
    with pytest.raises(BerthError) as caught:
        until_running(rented.site(), rented.order, running)
    assert "Server.InternalError" in caught.value.message


def test_use_is_counted_by_places(rented: Rented) -> None:
    """One of two instances for ten hours is five hours of the block; ended instances count no more."""
    rented.ec2.free[rented.block] = 1
    with pytest.raises(BerthError):
        rented.launch()
    rented.world.clock.advance(hours=10)
    rented.clean()
    rented.world.clock.advance(hours=2)
    launches = rented.world.journal.launches(rented.order.key)
    report = make_report(rented.world.order(), [], rented.world.clock.now(), launches)
    assert report.used == timedelta(hours=5)
    assert report.idle == timedelta(hours=7, minutes=1)
    assert "of all its places" in report_lines(report)[2]


def test_showing_tells_strays(rented: Rented) -> None:
    """`show` reads each instance's block, and nothing of ended ones."""
    rented.launch()
    shown = instances_now(rented.site(), rented.world.order())
    assert [one["stray"] for one in shown] == ["", ""]
    rented.ec2.change = lambda answer: answer | {"CapacityReservationId": "cr-x"}
    assert all("cr-x" in one["stray"] for one in instances_now(rented.site(), rented.world.order()))


strange = st.sampled_from([None, "", "unheard", 7, True, [], [None], {}, {"Name": 3}, {"Key": "a"}])
MEMBERS = ["InstanceId", "State", "CapacityReservationId", "InstanceLifecycle", "InstanceType", "Placement",
           "ClientToken", "LaunchTime", "StateReason", "Tags"]  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.lists(st.dictionaries(st.sampled_from(MEMBERS), strange), max_size=4))
def test_no_instance_breaks_the_reading(found: list[dict[str, Any]]) -> None:
    """Every member may be missing, of another type, or hold an unknown word (field fault 40)."""
    for one in read_instances(found, OrderKey(ACCOUNT, "eval", 1)):
        assert one.id
        assert one.to_json()["state"]
        one.strays(["cr-1"])


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({}, True),
        ({"InstanceMarketOptions": {"MarketType": "spot"}}, False),
        ({"InstanceMarketOptions": {}}, False),
        ({"InstanceMarketOptions": None}, False),
        ({"CapacityReservationSpecification": {"CapacityReservationPreference": "open"}}, False),
        ({"CapacityReservationSpecification": None}, False),
    ],
)
def test_only_launches_into_a_named_block_may_leave(change: dict[str, Any], allowed: bool) -> None:
    """The client that launches can launch on demand under no circumstances."""
    target = {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}
    request = {
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
        "CapacityReservationSpecification": target,
    }
    assert into_block("RunInstances", request | change) is allowed
    assert not into_block("CreateFleet", request | change)
