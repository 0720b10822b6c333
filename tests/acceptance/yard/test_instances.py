"""EC2 instances with boto3: types, network, images, launches, waiters and paginators, and lost answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from berth.yard.testing.process import YardProcess

FLEET = Path(__file__).parents[2] / "unit" / "yard" / "ec2.toml"
YARD = {"fleet": FLEET}
P5 = "p5.48xlarge"
QUICK = {"Delay": 1, "MaxAttempts": 2}


def image(client: Any) -> str:
    """The newest Amazon Linux, found as scripts find it."""
    found = client.describe_images(
        Owners=["amazon"],
        Filters=[
            {"Name": "name", "Values": ["al2023-ami-2023.*-x86_64"]},
            {"Name": "state", "Values": ["available"]},
        ],
    )["Images"]
    newest: str = max(found, key=lambda one: str(one["CreationDate"]))["ImageId"]
    return newest


def wish(client: Any, block: str | None = None, count: int = 1, **more: Any) -> dict[str, Any]:
    """The parameters of a launch."""
    asked = {"ImageId": image(client), "InstanceType": P5, "MinCount": count, "MaxCount": count, **more}
    if block is not None:
        asked["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
        asked["CapacityReservationSpecification"] = {
            "CapacityReservationTarget": {"CapacityReservationId": block}
        }
    return asked


def launch(client: Any, block: str | None = None, count: int = 1, **more: Any) -> list[str]:
    """Launch; the ids."""
    answer = client.run_instances(**wish(client, block, count, **more))
    return [one["InstanceId"] for one in answer["Instances"]]


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    """EC2's error code."""
    return str(error.value.response["Error"]["Code"])


@pytest.mark.yard(fleet=FLEET)
def test_from_block_to_clean_account(yard: YardProcess) -> None:
    """Launch into a block with tags and network, wait until running, look, end, wait until terminated."""
    client = yard.clients.ec2
    block = yard.seed.block(count=2, zone="use1-az2")["capacity_reservation_id"]
    zone = client.describe_capacity_reservations(CapacityReservationIds=[block])["CapacityReservations"][0][
        "AvailabilityZone"
    ]
    subnets = client.describe_subnets(Filters=[{"Name": "availability-zone", "Values": [zone]}])["Subnets"]
    (vpc,) = client.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
    (group,) = client.describe_security_groups(
        Filters=[{"Name": "vpc-id", "Values": [vpc["VpcId"]]}, {"Name": "group-name", "Values": ["default"]}]
    )["SecurityGroups"]
    ids = launch(
        client, block, 2, SubnetId=subnets[0]["SubnetId"], SecurityGroupIds=[group["GroupId"]],
        TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "order", "Value": "o-1"}]}],
    )  # fmt: skip
    assert client.describe_instance_status(InstanceIds=ids)["InstanceStatuses"] == []
    yard.clock.advance(minutes=1)
    client.get_waiter("instance_running").wait(InstanceIds=ids, WaiterConfig=QUICK)
    client.get_waiter("instance_status_ok").wait(InstanceIds=ids, WaiterConfig=QUICK)
    mine = {"Name": "tag:order", "Values": ["o-*"]}
    (reservation,) = client.describe_instances(Filters=[mine])["Reservations"]
    for instance in reservation["Instances"]:
        assert instance["CapacityReservationId"] == block
        assert instance["Placement"]["AvailabilityZone"] == zone
        assert instance["VpcId"] == vpc["VpcId"]
        assert instance["Tags"] == [{"Key": "order", "Value": "o-1"}]
    client.terminate_instances(InstanceIds=ids)
    yard.clock.advance(minutes=10)
    client.get_waiter("instance_terminated").wait(InstanceIds=ids, WaiterConfig=QUICK)
    assert [entry["kind"] for entry in yard.ledger] == ["capacity-block"]


@pytest.mark.yard(fleet=FLEET)
def test_a_lost_answer_of_a_launch_starts_nothing_twice(yard: YardProcess) -> None:
    """boto3 fills in a client token: its resend after a lost answer gets the same instances."""
    client = yard.clients.ec2
    block = yard.seed.block(count=2)["capacity_reservation_id"]
    asked = wish(client, block)
    yard.fault("lost-reply", "RunInstances", times=2)
    answer = client.run_instances(**asked)
    assert len(yard.log_of("RunInstances")) == 3
    found = client.describe_instances()["Reservations"]
    assert [one["InstanceId"] for entry in found for one in entry["Instances"]] == [
        answer["Instances"][0]["InstanceId"]
    ]


@pytest.mark.yard(fleet=FLEET)
def test_a_shortage_shows_as_retries(yard: YardProcess) -> None:
    """No capacity is HTTP 500, so boto3's default tries again and again before it says so."""
    client = yard.clients.ec2
    asked = wish(client, None, 3)
    with pytest.raises(ClientError) as error:
        client.run_instances(**asked)
    assert code_of(error) == "InsufficientInstanceCapacity"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    tries = yard.log_of("RunInstances")
    assert len(tries) > 1
    assert len({call["invocation_id"] for call in tries}) == 1


@pytest.mark.yard(fleet=FLEET)
def test_lagging_describes(yard: YardProcess) -> None:
    """A launch is not seen for five minutes; then it is, in the state of five minutes ago."""
    client = yard.clients.ec2
    yard.fault("lag", "Describe*", times=None)
    (made,) = launch(client, yard.seed.block()["capacity_reservation_id"])
    with pytest.raises(ClientError) as error:
        client.describe_instances(InstanceIds=[made])
    assert code_of(error) == "InvalidInstanceID.NotFound"
    assert client.describe_instances()["Reservations"] == []
    yard.clock.advance(minutes=5)
    (seen,) = client.describe_instances(InstanceIds=[made])["Reservations"][0]["Instances"]
    assert seen["State"]["Name"] == "pending"
    running = {"Name": "instance-state-name", "Values": ["running"]}
    assert client.describe_instances(Filters=[running])["Reservations"] == []
    yard.clock.advance(minutes=1)
    assert len(client.describe_instances(Filters=[running])["Reservations"]) == 1


@pytest.mark.yard(fleet=FLEET)
def test_two_accounts_and_a_restart(yard: YardProcess) -> None:
    """Nothing of one account is seen by another; what runs survives kill -9."""
    client = yard.clients.ec2
    (made,) = launch(client)
    yard.account("other")
    other = yard.clients_of("other").ec2
    assert other.describe_instances()["Reservations"] == []
    with pytest.raises(ClientError) as error:
        other.terminate_instances(InstanceIds=[made])
    assert code_of(error) == "InvalidInstanceID.NotFound"
    own = {one["VpcId"] for one in client.describe_vpcs()["Vpcs"]}
    assert own.isdisjoint({one["VpcId"] for one in other.describe_vpcs()["Vpcs"]})
    yard.kill()
    yard.start()
    yard.clock.advance(minutes=1)
    client.get_waiter("instance_running").wait(InstanceIds=[made], WaiterConfig=QUICK)


def test_types_and_where_they_are(shared: YardProcess) -> None:
    """Types that can be sold as blocks, what is in them, and their zones under the account's own names."""
    client = shared.clients.ec2
    pages = client.get_paginator("describe_instance_types").paginate(
        Filters=[{"Name": "supported-usage-class", "Values": ["capacity-block"]}],
        PaginationConfig={"PageSize": 5},
    )
    types = {one["InstanceType"]: one for page in pages for one in page["InstanceTypes"]}
    assert set(types) == {P5, "p5e.48xlarge", "trn1.32xlarge"}
    p5 = types[P5]
    assert p5["VCpuInfo"]["DefaultVCpus"] == 192
    assert p5["GpuInfo"]["Gpus"][0] == {
        "Name": "H100", "Manufacturer": "NVIDIA", "Count": 8, "MemoryInfo": {"SizeInMiB": 81920},
    }  # fmt: skip
    assert p5["NetworkInfo"]["EfaInfo"]["MaximumEfaInterfaces"] == 32
    assert types["trn1.32xlarge"]["NeuronInfo"]["NeuronDevices"] == [{"Name": "Trainium", "Count": 16}]
    assert "TotalNeuronDeviceMemoryInMiB" not in types["trn1.32xlarge"]["NeuronInfo"]
    assert types["p5e.48xlarge"]["SupportedUsageClasses"].count("on-demand") == 0

    pages = client.get_paginator("describe_instance_type_offerings").paginate(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": ["p5.*"]}],
    )  # fmt: skip
    places = {one["Location"] for page in pages for one in page["InstanceTypeOfferings"]}
    zones = client.describe_availability_zones(ZoneIds=["use1-az1", "use1-az2"])["AvailabilityZones"]
    assert places == {one["ZoneName"] for one in zones}
    by_id = client.describe_instance_type_offerings(LocationType="availability-zone-id")
    assert {one["Location"] for one in by_id["InstanceTypeOfferings"]} == {"use1-az1", "use1-az2"}


def test_pages_of_instances(shared: YardProcess) -> None:
    """Paginators bring every instance once, filtered ones too, however small the page."""
    client = shared.clients.ec2
    block = shared.seed.block(count=6, zone="use1-az2")["capacity_reservation_id"]
    ids = launch(client, block, 2) + launch(client, block, 4)
    for filters in ([], [{"Name": "capacity-reservation-id", "Values": [block]}]):
        pages = client.get_paginator("describe_instances").paginate(
            Filters=filters, PaginationConfig={"PageSize": 5}
        )
        seen = [
            one["InstanceId"]
            for page in pages
            for entry in page["Reservations"]
            for one in entry["Instances"]
        ]
        assert seen == ids
    client.terminate_instances(InstanceIds=ids)


def test_one_bad_id_fails_the_whole_call(shared: YardProcess) -> None:
    """Nothing is terminated when one id is not there; terminating twice is fine."""
    client = shared.clients.ec2
    (made,) = launch(client, InstanceType="trn1.32xlarge")
    for bad, code in (("i-0000000000000000f", "NotFound"), ("x", "Malformed")):
        with pytest.raises(ClientError) as error:
            client.terminate_instances(InstanceIds=[made, bad])
        assert code_of(error) == f"InvalidInstanceID.{code}"
    (alive,) = client.describe_instances(InstanceIds=[made])["Reservations"][0]["Instances"]
    assert alive["State"]["Name"] != "shutting-down"
    first = client.terminate_instances(InstanceIds=[made])["TerminatingInstances"]
    again = client.terminate_instances(InstanceIds=[made, made])["TerminatingInstances"]
    assert first[0]["CurrentState"] == again[0]["PreviousState"] == again[0]["CurrentState"]


def test_dry_run(shared: YardProcess) -> None:
    """boto3 reads the answer to a dry run as the error that EC2 makes of it."""
    client = shared.clients.ec2
    for call, more in (
        (client.run_instances, wish(client, InstanceType="trn1.32xlarge")), (client.describe_instances, {}),
    ):  # fmt: skip
        with pytest.raises(ClientError) as error:
            call(DryRun=True, **more)
        assert code_of(error) == "DryRunOperation"


def test_spot_history_and_price_list(shared: YardProcess) -> None:
    """Both through their paginators; the price list signs as `pricing`."""
    client = shared.clients.ec2
    pages = client.get_paginator("describe_spot_price_history").paginate(
        InstanceTypes=[P5], PaginationConfig={"PageSize": 100, "MaxItems": 250}
    )
    assert len([one for page in pages for one in page["SpotPriceHistory"]]) == 250
    pricing = shared.clients("pricing")
    pages = pricing.get_paginator("get_products").paginate(
        ServiceCode="AmazonEC2", Filters=[{"Type": "TERM_MATCH", "Field": "instanceType", "Value": P5}],
    )  # fmt: skip
    texts = [text for page in pages for text in page["PriceList"]]
    assert len(texts) == 3
    assert all(isinstance(text, str) for text in texts)
