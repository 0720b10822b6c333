"""Instances on demand: the share that they take, the quota, what they cost; client tokens."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from berth.terms.money import Money
from berth.yard.services.ec2.instance_life import charge

from .ec2_bench import P5, Ec2Bench

IN_1 = {"Placement": {"AvailabilityZoneId": "use1-az1"}}
IN_2 = {"Placement": {"AvailabilityZoneId": "use1-az2"}}


def test_the_on_demand_share_is_all_that_there_is(ec2: Ec2Bench) -> None:
    """Two hosts a zone run on demand; the third is answered with HTTP 500, which SDKs try again."""
    ec2.launch(None, 2, **IN_1)
    refused = ec2.no_launch(**IN_1)
    assert (refused.code, refused.status) == ("InsufficientInstanceCapacity", 500)
    names = ec2.yard.zone_names(ec2.account.account_id, "us-east-1").names
    assert f"in the Availability Zone you requested ({names['use1-az1']})" in refused.message
    assert names["use1-az2"] in refused.message.split("choosing ")[1]
    ec2.launch(None, 2)
    assert "choosing" not in ec2.no_launch().message


def test_all_instances_of_a_launch_are_in_one_zone(ec2: Ec2Bench) -> None:
    """Two zones with two free hosts each cannot take three; one that is named takes what it has."""
    assert ec2.no_launch(None, 3).code == "InsufficientInstanceCapacity"
    made = ec2.launch(MinCount=1, MaxCount=4)
    assert len({ec2.instance(one)["Placement"]["AvailabilityZoneId"] for one in made}) == 1
    assert len(made) == 2


def test_the_share_is_not_the_reservable_one(ec2: Ec2Bench) -> None:
    """A zone sold out for blocks still runs its share on demand, and the other way round."""
    ec2.block(2)
    ec2.launch(None, 2, **IN_1)
    ec2.block(6, zone="use1-az2")
    assert ec2.yard.calendars.pool(f"use1-az1/{P5}").committed_max_from(ec2.yard.clock.now()) == 2


def test_a_host_is_free_again_when_its_instance_is_terminated(ec2: Ec2Bench) -> None:
    """A minute after the end, at any minute of the half hour."""
    first, _ = ec2.launch(None, 2, **IN_1)
    ec2.advance(minutes=7)
    ec2.ec2("TerminateInstances", InstanceIds=[first])
    assert ec2.no_launch(**IN_1).code == "InsufficientInstanceCapacity"
    ec2.advance(minutes=1)
    assert ec2.state(first) == "terminated"
    ec2.launch(**IN_1)
    assert ec2.no_launch(**IN_1).code == "InsufficientInstanceCapacity"


def test_on_demand_runs_on_over_restarts_and_years(ec2: Ec2Bench) -> None:
    """An open booking is counted again at every start, and the calendar never rolls past it."""
    ec2.launch(None, 2, **IN_1)
    ec2.advance(days=400)
    assert ec2.no_launch(**IN_1).code == "InsufficientInstanceCapacity"
    ec2.close()
    again = Ec2Bench(ec2.path)
    assert again.no_launch(**IN_1).code == "InsufficientInstanceCapacity"
    ids = [row["instance_id"] for row in again.rows("SELECT instance_id FROM instances")]
    again.ec2("TerminateInstances", InstanceIds=ids)
    again.advance(minutes=1)
    assert len(again.launch(None, 2, **IN_1)) == 2
    again.close()


def test_the_vcpu_quota(ec2: Ec2Bench) -> None:
    """768 vCPUs are four p5.48xlarge, pending ones included and ended ones not; each class has its own."""
    made = [*ec2.launch(None, 2, **IN_1), *ec2.launch(None, 2, **IN_2)]
    refused = ec2.no_launch(**IN_1)
    assert refused.code == "VcpuLimitExceeded"
    assert "current vCPU limit of 768" in refused.message
    ec2.launch(InstanceType="trn1.32xlarge")
    ec2.ec2("TerminateInstances", InstanceIds=made[:1])
    assert ec2.no_launch(**IN_1).code == "InsufficientInstanceCapacity"


def test_the_quota_cuts_a_range(ec2: Ec2Bench) -> None:
    """256 vCPUs are two trn1.32xlarge of the four that are free."""
    assert len(ec2.launch(InstanceType="trn1.32xlarge", MinCount=1, MaxCount=4)) == 2


def test_hours_go_to_the_ledger_at_the_end(ec2: Ec2Bench) -> None:
    """From running to shutting-down, by the second, at the fleet's rate; nothing before."""
    (made,) = ec2.launch()
    ec2.advance(hours=1, seconds=30)
    assert ec2.rows("SELECT * FROM ledger") == []
    ec2.ec2("TerminateInstances", InstanceIds=[made])
    ec2.ec2("TerminateInstances", InstanceIds=[made])
    ec2.advance(days=1)
    (entry,) = ec2.rows("SELECT * FROM ledger")
    assert (entry["kind"], entry["amount_micros"]) == ("on-demand", 55_040_000)
    assert (
        entry["description"]
        == "p5.48xlarge on demand: 3600 s at 55.04 USD an hour (pricelist-2026-09-25, 2026-09-25)"
    )


def test_a_rehearsal_price_says_so_in_the_ledger(ec2: Ec2Bench) -> None:
    """An assumed rate is labelled wherever it shows; a minute is the least that is billed."""
    (made,) = ec2.launch(InstanceType="trn1.32xlarge")
    ec2.advance(seconds=31)
    ec2.ec2("TerminateInstances", InstanceIds=[made])
    (entry,) = ec2.rows("SELECT * FROM ledger")
    assert entry["amount_micros"] == 358_333
    assert entry["description"] == "trn1.32xlarge on demand: 60 s at 21.50 USD an hour (rehearsal price)"


def test_what_never_ran_costs_nothing(ec2: Ec2Bench) -> None:
    """An instance ended while pending is not billed."""
    (made,) = ec2.launch()
    ec2.ec2("TerminateInstances", InstanceIds=[made])
    ec2.advance(days=1)
    assert ec2.rows("SELECT * FROM ledger") == []


@pytest.mark.parametrize(
    ("seconds", "amount"),
    [(0, "0.917333"), (59.2, "0.917333"), (60, "0.917333"), (60.1, "0.932622"), (3600, "55.04")],
)
def test_the_charge(seconds: float, amount: str) -> None:
    """By the second begun, 60 at least, to the millionth half up."""
    assert charge(Money(Decimal("55.04")), timedelta(seconds=seconds)) == Money(Decimal(amount))


def test_a_type_without_a_price_is_not_sold(ec2: Ec2Bench) -> None:
    """No public on-demand price of p5e is known: unknown is not free."""
    assert ec2.no_launch(InstanceType="p5e.48xlarge").code == "Unsupported"


def test_a_type_elsewhere(ec2: Ec2Bench) -> None:
    """A zone without the type is told from a Region without it, as EC2 tells them."""
    refused = ec2.no_launch(InstanceType="trn1.32xlarge", **IN_2)
    assert refused.code == "Unsupported"
    assert "is not supported in your requested Availability Zone" in refused.message
    assert ec2.no_launch(InstanceType="p4d.24xlarge").message.startswith("The requested configuration")


def test_local_zones_are_never_chosen(ec2: Ec2Bench) -> None:
    """Without a named zone only availability zones count; by its name or subnet a Local Zone can be used."""
    ec2.launch(None, 2, **IN_1)
    ec2.launch(None, 1, **IN_2)
    assert len(ec2.launch(MinCount=1, MaxCount=2)) == 1
    assert ec2.yard.calendars.free_on_demand(
        ec2.yard.fleet.pools[f"use1-atl2-az1/{P5}"], ec2.yard.clock.now()
    ) == 2  # fmt: skip
    block = ec2.block(2, zone="use1-az2")
    assert ec2.no_launch(block, SubnetId=ec2.subnet("use1-atl2-az1")).code == "ReservationCapacityExceeded"


def test_spot_is_refused_as_where_there_is_none(ec2: Ec2Bench) -> None:
    """A yard has no Spot capacity."""
    refused = ec2.no_launch(InstanceMarketOptions={"MarketType": "spot"})
    assert (refused.code, refused.status) == ("InsufficientInstanceCapacity", 500)


def test_only_reservations_means_never_on_demand(ec2: Ec2Bench) -> None:
    """The preference capacity-reservations-only without a target finds no open reservation here."""
    wish = {"CapacityReservationPreference": "capacity-reservations-only"}
    assert ec2.no_launch(CapacityReservationSpecification=wish).code == "ReservationCapacityExceeded"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"ImageId": ""}, "MissingParameter"),
        ({"InstanceType": None}, "MissingParameter"),
        ({"ImageId": "ami-00000000000000000"}, "InvalidAMIID.NotFound"),
        ({"ImageId": "p5.48xlarge"}, "InvalidAMIID.Malformed"),
        ({"SubnetId": "subnet-00000000000000000"}, "InvalidSubnetID.NotFound"),
        ({"SecurityGroupIds": ["sg-00000000000000000"]}, "InvalidGroup.NotFound"),
        ({"SecurityGroups": ["web"]}, "InvalidGroup.NotFound"),
        ({"Placement": {"AvailabilityZone": "us-east-1z"}}, "InvalidParameterValue"),
        ({"Placement": {"AvailabilityZoneId": "usw2-az1"}}, "InvalidParameterValue"),
        ({"Placement": {"GroupName": "cluster"}}, "InvalidPlacementGroup.Unknown"),
        ({"Placement": {"Tenancy": "host"}}, "Unsupported"),
        ({"Placement": {"HostId": "h-1"}}, "UnsupportedOperation"),
        ({"LaunchTemplate": {"LaunchTemplateId": "lt-1"}}, "UnsupportedOperation"),
        ({"MinCount": 0}, "InvalidParameterValue"),
        ({"MinCount": 3, "MaxCount": 2}, "InvalidParameterCombination"),
        ({"MaxCount": 1001}, "InvalidParameterValue"),
        ({"ClientToken": "x" * 65}, "InvalidParameterValue"),
        ({"ClientToken": "\u00e9"}, "InvalidParameterValue"),
        ({"TagSpecifications": [{"ResourceType": "vpc", "Tags": []}]}, "InvalidParameterValue"),
        (
            {
                "CapacityReservationSpecification": {
                    "CapacityReservationTarget": {"CapacityReservationId": "cr-1"},
                    "CapacityReservationPreference": "open",
                }
            },
            "InvalidParameterCombination",
        ),
        (
            {
                "CapacityReservationSpecification": {
                    "CapacityReservationTarget": {"CapacityReservationId": "cr-1"}
                }
            },
            "InvalidCapacityReservationId.Malformed",
        ),
        (
            {
                "CapacityReservationSpecification": {
                    "CapacityReservationTarget": {"CapacityReservationResourceGroupArn": "arn:aws:x"}
                }
            },
            "InvalidLaunchTargets",
        ),
        (
            {"InstanceMarketOptions": {"MarketType": "interruptible-capacity-reservation"}},
            "UnsupportedOperation",
        ),
        ({"SubnetId": "subnet-1", "NetworkInterfaces": [{"DeviceIndex": 0}]}, "InvalidParameterCombination"),
    ],
)
def test_what_is_wrong_with_a_launch(ec2: Ec2Bench, more: dict[str, object], code: str) -> None:
    """Each mistake has EC2's code, and nothing is launched."""
    assert ec2.no_launch(**more).code == code
    assert ec2.rows("SELECT * FROM instances") == []
    assert ec2.rows("SELECT * FROM launches") == []


def test_efa_interfaces_name_subnet_and_groups(ec2: Ec2Bench) -> None:
    """A launch with network interfaces has its subnet and groups there."""
    subnet = ec2.subnet("use1-az2")
    group = ec2.ec2("DescribeSecurityGroups")["SecurityGroups"][0]["GroupId"]
    cards = [
        {
            "DeviceIndex": min(card, 1), "NetworkCardIndex": card, "InterfaceType": "efa", "SubnetId": subnet,
            "Groups": [group],
        }
        for card in range(4)
    ]  # fmt: skip
    (made,) = ec2.launch(NetworkInterfaces=cards)
    shown = ec2.instance(made)
    assert shown["SubnetId"] == subnet
    assert [one["GroupId"] for one in shown["SecurityGroups"]] == [group]


# -- client tokens ---------------------------------------------------------------------------------------
def test_the_same_token_gives_the_same_instances(ec2: Ec2Bench) -> None:
    """Also when nothing is free any more, and with states that have moved on."""
    block = ec2.block(2)
    first = ec2.launch(block, 2, ClientToken="t")
    ec2.advance(minutes=1)
    again = ec2.ec2("RunInstances", **ec2.launching(block, 2, ClientToken="t"))
    assert [one["InstanceId"] for one in again["Instances"]] == first
    assert {one["State"]["Name"] for one in again["Instances"]} == {"running"}
    assert ec2.free_in(block) == 0
    assert len(ec2.rows("SELECT * FROM launches")) == 1


def test_the_same_token_with_other_parameters(ec2: Ec2Bench) -> None:
    """One parameter is enough, the order of tags is one."""
    ec2.launch(ClientToken="t")
    assert ec2.no_launch(ClientToken="t", KeyName="k").code == "IdempotentParameterMismatch"


def test_a_token_counts_within_the_zone_that_is_named(ec2: Ec2Bench) -> None:
    """The same token launches once a zone, and once more without a zone; other accounts have their own."""
    made = [ec2.launch(ClientToken="t", **where) for where in (IN_1, IN_2, {})]
    assert len({one for ids in made for one in ids}) == 3
    assert ec2.launch(ClientToken="t", **IN_1) == made[0]
    other = ec2.add_account("other")
    answer = ec2.ec2(
        "RunInstances", account=other, **ec2.launching(ClientToken="t", InstanceType="trn1.32xlarge")
    )  # fmt: skip
    assert answer["Instances"][0]["InstanceId"] not in {one for ids in made for one in ids}


def test_a_token_whose_instances_have_ended(ec2: Ec2Bench) -> None:
    """It is refused for good, also once the instances are no longer described."""
    (made,) = ec2.launch(ClientToken="t")
    ec2.ec2("TerminateInstances", InstanceIds=[made])
    assert ec2.no_launch(ClientToken="t").code == "IdempotentInstanceTerminated"
    ec2.advance(days=2)
    assert ec2.no_launch(ClientToken="t").code == "IdempotentInstanceTerminated"


def test_a_launch_that_failed_leaves_its_token_free(ec2: Ec2Bench) -> None:
    """The same call works later, when there is room."""
    held = ec2.launch(None, 2, **IN_1)
    assert ec2.no_launch(ClientToken="t", **IN_1).code == "InsufficientInstanceCapacity"
    ec2.ec2("TerminateInstances", InstanceIds=held)
    ec2.advance(minutes=1)
    ec2.launch(ClientToken="t", **IN_1)
