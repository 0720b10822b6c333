"""Describing instances, types, network and images: filters, pages, lag, tags."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from berth.yard.store.transaction import Transaction

from .ec2_bench import P5, Ec2Bench


def found(bench: Ec2Bench, **filters: str) -> list[str]:
    """The ids that DescribeInstances finds; `tag__team` stands for the filter `tag:team`."""
    named = [
        {"Name": name.replace("__", ":").replace("_", "-"), "Values": value.split("|")}
        for name, value in filters.items()
    ]
    answer = bench.ec2("DescribeInstances", Filters=named)
    return [one["InstanceId"] for entry in answer["Reservations"] for one in entry["Instances"]]


def test_filters(ec2: Ec2Bench) -> None:
    """By state, type, reservation, lifecycle, token, zone, tag; values ORed, filters ANDed."""
    block = ec2.block()
    (inside,) = ec2.launch(block, ClientToken="t")
    (outside,) = ec2.launch(InstanceType="trn1.32xlarge")
    ec2.ec2("CreateTags", Resources=[outside], Tags=[{"Key": "team", "Value": "a"}])
    both = [inside, outside]
    assert found(ec2, instance_state_name="pending") == both
    assert found(ec2, instance_state_code="16") == []
    assert found(ec2, instance_type="p5.48xlarge|trn1.32xlarge") == both
    assert found(ec2, instance_type="p5.*") == [inside]
    assert found(ec2, capacity_reservation_id=block) == [inside]
    assert found(ec2, instance_lifecycle="capacity-block") == [inside]
    assert found(ec2, client_token="t") == [inside]
    assert found(ec2, availability_zone_id="use1-az1") == both
    assert found(ec2, tag__team="a", instance_type=P5) == []
    assert found(ec2, tag__team="?") == [outside]
    assert found(ec2, tag_key="team") == [outside]
    ec2.advance(minutes=1)
    assert found(ec2, instance_state_name="running") == both
    assert ec2.refused("DescribeInstances", Filters=[{"Name": "colour", "Values": ["x"]}]).code == (
        "InvalidParameterValue"
    )
    wish = "capacity-reservation-specification.capacity-reservation-target.capacity-reservation-id"
    answer = ec2.ec2("DescribeInstances", Filters=[{"Name": wish, "Values": [block]}])
    assert answer["Reservations"][0]["Instances"][0]["InstanceId"] == inside


def test_launches_are_told_apart(ec2: Ec2Bench) -> None:
    """Instances of one RunInstances come as one reservation, with their place in the launch."""
    first, second = ec2.launch(None, 2), ec2.launch(InstanceType="trn1.32xlarge")
    entries = ec2.ec2("DescribeInstances")["Reservations"]
    assert [[one["InstanceId"] for one in entry["Instances"]] for entry in entries] == [first, second]
    assert [one["AmiLaunchIndex"] for one in entries[0]["Instances"]] == [0, 1]
    named = [{"Name": "reservation-id", "Values": [entries[1]["ReservationId"]]}]
    assert ec2.ec2("DescribeInstances", Filters=named)["Reservations"] == entries[1:]


def test_ids_and_a_page_size_do_not_go_together(ec2: Ec2Bench) -> None:
    """As EC2 documents it."""
    (made,) = ec2.launch()
    for name in ("DescribeInstances", "DescribeInstanceStatus"):
        refused = ec2.refused(name, InstanceIds=[made], MaxResults=5)
        assert refused.code == "InvalidParameterCombination"


def test_statuses(ec2: Ec2Bench) -> None:
    """Running ones only, unless all are asked for; checks pass while an instance runs."""
    running, ended = ec2.launch(None, 2)
    assert ec2.ec2("DescribeInstanceStatus")["InstanceStatuses"] == []
    ec2.advance(minutes=1)
    ec2.ec2("TerminateInstances", InstanceIds=[ended])
    (status,) = ec2.ec2("DescribeInstanceStatus")["InstanceStatuses"]
    assert (status["InstanceId"], status["InstanceStatus"]["Status"]) == (running, "ok")
    every = ec2.ec2("DescribeInstanceStatus", IncludeAllInstances=True)["InstanceStatuses"]
    assert [one["InstanceStatus"]["Status"] for one in every] == ["ok", "not-applicable"]
    filters = [{"Name": "instance-status.status", "Values": ["not-applicable"]}]
    (other,) = ec2.ec2("DescribeInstanceStatus", IncludeAllInstances=True, Filters=filters)[
        "InstanceStatuses"
    ]
    assert other["InstanceId"] == ended
    assert ec2.refused("DescribeInstanceStatus", InstanceIds=[running] * 101).code == "InvalidParameterValue"


def test_a_lagging_read_sees_the_past(ec2: Ec2Bench) -> None:
    """Neither a launch nor an end of the last five minutes, also where filters ask for a state."""
    lag = timedelta(minutes=5)
    (made,) = ec2.launch()
    assert ec2.ec2("DescribeInstances", lag=lag) == {"Reservations": []}
    ec2.advance(minutes=10)
    ec2.ec2("TerminateInstances", InstanceIds=[made])
    running = [{"Name": "instance-state-name", "Values": ["running"]}]
    (entry,) = ec2.ec2("DescribeInstances", lag=lag, Filters=running)["Reservations"]
    assert "StateReason" not in entry["Instances"][0]
    assert ec2.ec2("DescribeInstances", Filters=running) == {"Reservations": []}
    assert len(ec2.ec2("DescribeInstanceStatus", lag=lag)["InstanceStatuses"]) == 1


def test_why_an_instance_ended(ec2: Ec2Bench) -> None:
    """EC2's reason of somebody's own call, and no network any more once it is terminated."""
    (made,) = ec2.launch()
    ec2.ec2("TerminateInstances", InstanceIds=[made])
    shown = ec2.instance(made)
    assert shown["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    assert shown["StateTransitionReason"] == "User initiated (2026-12-01 09:00:00 GMT)"
    assert shown["PrivateIpAddress"].startswith("172.31.")
    ec2.advance(minutes=2)
    assert "PrivateIpAddress" not in ec2.instance(made)


def test_tags_at_the_launch(ec2: Ec2Bench) -> None:
    """Tags of instances stay; those of volumes and interfaces, which a yard has not, are dropped."""
    (made,) = ec2.launch(
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "n"}]},
            {"ResourceType": "volume", "Tags": [{"Key": "Name", "Value": "v"}]},
        ]
    )
    assert ec2.instance(made)["Tags"] == [{"Key": "Name", "Value": "n"}]
    kinds = [row["resource_type"] for row in ec2.rows("SELECT * FROM ec2_tags")]
    assert kinds == ["instance"]
    ec2.ec2("TerminateInstances", InstanceIds=[made])
    ec2.advance(hours=2)
    assert ec2.rows("SELECT * FROM ec2_tags") == []


def _plant(tx: Transaction, bench: Ec2Bench, count: int) -> None:
    """Many running instances at once, as rows."""
    account = bench.account.account_id
    tx.insert(
        "launches", launch_id="r-many", account_id=account, region="us-east-1", scope="", client_token="",
        request="", created_us=0,
    )  # fmt: skip
    for n in range(count):
        tx.insert(
            "instances",
            instance_id=f"i-{n:017x}", arn=f"arn:many/{n}", launch_id="r-many", launch_index=n,
            account_id=account, region="us-east-1", status="running", instance_type=P5, quota_family="p",
            vcpus=192, pool=f"use1-az1/{P5}", zone_id="use1-az1", rate_label="", image_id="ami-1",
            platform_details="Linux/UNIX", usage_operation="", architecture="x86_64", vpc_id="vpc-1",
            subnet_id="subnet-1", private_ip="172.31.0.9", client_token="",
            details='{"KeyName": null, "EbsOptimized": false, "Monitoring": "disabled", "SecurityGroups": [],'
            ' "CapacityReservationPreference": null, "CapacityReservationTarget": null}',
            created_us=0,
        )  # fmt: skip


def test_a_page_reads_as_many_rows_as_it_shows(ec2: Ec2Bench) -> None:
    """A page is read from an index in the order of launching: no sort, no scan of the table, at any depth."""
    ec2.do(lambda tx: _plant(tx, ec2, 1500))
    for filters in ([], [{"Name": "instance-type", "Values": [P5]}]):
        seen: list[Any] = []
        token = None
        while token or not seen:
            more = {"NextToken": token} if token else {}
            answer = ec2.ec2("DescribeInstances", MaxResults=700, Filters=filters, **more)
            seen += [one["InstanceId"] for entry in answer["Reservations"] for one in entry["Instances"]]
            token = answer.get("NextToken")
        assert seen == [f"i-{n:017x}" for n in range(1500)]
    plan = ec2.rows(
        "EXPLAIN QUERY PLAN SELECT * FROM instances WHERE account_id = ? AND region = ? AND created_us <= ?"
        " AND (number) > (?) ORDER BY number LIMIT ?",
        ec2.account.account_id, "us-east-1", 1, 1, 101,
    )  # fmt: skip
    assert [row["detail"] for row in plan] == [
        "SEARCH instances USING INDEX instances_of (account_id=? AND region=? AND rowid>?)"
    ]


def test_the_quota_is_counted_from_an_index(ec2: Ec2Bench) -> None:
    """What an account runs on demand is summed without reading its other instances."""
    plan = ec2.rows(
        "EXPLAIN QUERY PLAN SELECT coalesce(sum(vcpus), 0) AS n FROM instances WHERE account_id = ?"
        " AND region = ? AND quota_family = ? AND reservation_id IS NULL"
        " AND status IN ('pending', 'running')",
        "a", "r", "p",
    )  # fmt: skip
    assert "COVERING INDEX instances_on_demand" in plan[0]["detail"]


# -- types -----------------------------------------------------------------------------------------------
def types(bench: Ec2Bench, region: str = "us-east-1", **filters: str) -> list[str]:
    """Names that DescribeInstanceTypes finds."""
    named = [{"Name": name.replace("_", "-"), "Values": [value]} for name, value in filters.items()]
    answer = bench.ec2("DescribeInstanceTypes", region=region, Filters=named)
    return [one["InstanceType"] for one in answer["InstanceTypes"]]


def test_types_are_those_of_the_region(ec2: Ec2Bench) -> None:
    """By name, wildcard and usage class; a type without an on-demand price has no such class."""
    assert types(ec2) == [P5, "p5e.48xlarge", "trn1.32xlarge"]
    assert types(ec2, region="us-west-2") == ["p5e.48xlarge"]
    assert types(ec2, instance_type="p5*") == [P5, "p5e.48xlarge"]
    assert types(ec2, supported_usage_class="on-demand") == [P5, "trn1.32xlarge"]
    assert types(ec2, current_generation="true") == types(ec2, hypervisor="nitro") == types(ec2)
    assert ec2.refused("DescribeInstanceTypes", InstanceTypes=[P5, "m5.large"]).code == "InvalidInstanceType"
    named = [{"Name": "vcpu-info.default-vcpus", "Values": ["128"]}]
    (trn,) = ec2.ec2("DescribeInstanceTypes", Filters=named)["InstanceTypes"]
    assert trn["NeuronInfo"]["NeuronDevices"] == [{"Name": "Trainium", "Count": 16}]


def test_local_zones_are_listed_once_opted_into(ec2: Ec2Bench) -> None:
    """DescribeInstanceTypeOfferings shows the zones that the account has opened."""

    def zones() -> set[str]:
        answer = ec2.ec2("DescribeInstanceTypeOfferings", LocationType="availability-zone-id")
        return {one["Location"] for one in answer["InstanceTypeOfferings"]}

    assert zones() == {"use1-az1", "use1-az2"}
    ec2.ec2("ModifyAvailabilityZoneGroup", GroupName="us-east-1-atl-2", OptInStatus="opted-in")
    assert zones() == {"use1-az1", "use1-az2", "use1-atl2-az1"}
    assert ec2.ec2("DescribeInstanceTypeOfferings", LocationType="outpost")["InstanceTypeOfferings"] == []


# -- network and images ----------------------------------------------------------------------------------
def test_every_zone_has_one_subnet(ec2: Ec2Bench) -> None:
    """A default one in each availability zone; addresses do not overlap; names are the account's own."""
    subnets = ec2.ec2("DescribeSubnets")["Subnets"]
    assert {one["AvailabilityZoneId"]: one["DefaultForAz"] for one in subnets} == {
        "use1-az1": True, "use1-az2": True, "use1-az3": True, "use1-atl2-az1": False,
    }  # fmt: skip
    assert len({one["CidrBlock"] for one in subnets}) == 4
    names = ec2.yard.zone_names(ec2.account.account_id, "us-east-1")
    assert all(names.id(one["AvailabilityZone"]) == one["AvailabilityZoneId"] for one in subnets)
    again = {one["SubnetId"] for one in Ec2Bench(ec2.path).ec2("DescribeSubnets")["Subnets"]}
    assert again == {one["SubnetId"] for one in subnets}


@pytest.mark.parametrize(
    ("name", "ids", "code"),
    [
        ("DescribeVpcs", "VpcIds", "InvalidVpcID.NotFound"),
        ("DescribeSubnets", "SubnetIds", "InvalidSubnetID.NotFound"),
        ("DescribeSecurityGroups", "GroupIds", "InvalidGroup.NotFound"),
        ("DescribeSecurityGroups", "GroupNames", "InvalidGroup.NotFound"),
        ("DescribeImages", "ImageIds", "InvalidAMIID.Malformed"),
    ],
)
def test_what_is_not_there(ec2: Ec2Bench, name: str, ids: str, code: str) -> None:
    """Each noun has EC2's code for an id that nobody has."""
    assert ec2.refused(name, **{ids: ["nothing"]}).code == code


def test_images_by_platform_owner_and_name(ec2: Ec2Bench) -> None:
    """One or more for each platform that a block may have; common filters find them."""
    images = ec2.ec2("DescribeImages")["Images"]
    assert {one["PlatformDetails"] for one in images} == {
        "Linux/UNIX", "Red Hat Enterprise Linux", "Red Hat Enterprise Linux with High Availability",
        "SUSE Linux", "Ubuntu Pro",
    }  # fmt: skip
    ubuntu = ec2.ec2(
        "DescribeImages", Owners=["099720109477"],
        Filters=[{"Name": "name", "Values": ["ubuntu/images/hvm-ssd*/ubuntu-noble-24.04-amd64-server-*"]}],
    )["Images"]  # fmt: skip
    assert len(ubuntu) == 1
    assert ec2.ec2("DescribeImages", Owners=["self"])["Images"] == []
    assert {one["ImageId"] for one in images}.isdisjoint(
        one["ImageId"] for one in ec2.ec2("DescribeImages", region="us-west-2")["Images"]
    )
