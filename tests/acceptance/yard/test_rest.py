"""A yard with another emulator beside it: what it does not serve is answered there."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer

from berth.yard.testing.process import YardProcess

FLEET = Path(__file__).parents[2] / "unit" / "yard" / "ec2.toml"
P5 = "p5.48xlarge"


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """Another emulator; its URL."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def yard(moto: str, make_yard: Callable[..., YardProcess]) -> YardProcess:
    """A yard beside it."""
    return make_yard(fleet=FLEET, rest=moto)


def beside(url: str, service: str = "ec2") -> Any:
    """A client of the other emulator itself."""
    return boto3.client(
        service, endpoint_url=url, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y"
    )  # fmt: skip


def test_what_is_not_served_is_answered_there(yard: YardProcess, moto: str) -> None:
    """Operations of EC2, and services that a yard knows nothing of; the log of calls tells of the former."""
    client = yard.clients.ec2
    made = client.create_launch_template(
        LaunchTemplateName="lt", LaunchTemplateData={"InstanceType": P5}
    )["LaunchTemplate"]["LaunchTemplateId"]  # fmt: skip
    found = beside(moto).describe_launch_templates(LaunchTemplateIds=[made])["LaunchTemplates"]
    assert found[0]["LaunchTemplateName"] == "lt"
    assert [call["outcome"] for call in yard.log_of("CreateLaunchTemplate")] == ["passed on"]
    queue = yard.clients("sqs").create_queue(QueueName="q")["QueueUrl"]
    assert queue.startswith(yard.url)  # so that what follows goes through the yard too
    (there,) = beside(moto, "sqs").list_queues()["QueueUrls"]
    assert there.rsplit("/", 1)[1] == "q"
    assert yard.status["rest"] == moto


def test_network_and_images_are_the_emulators(yard: YardProcess, moto: str) -> None:
    """Its VPC, also one that is made later; an instance stands in its subnet and runs its image."""
    client = yard.clients.ec2
    there = beside(moto)
    assert {one["VpcId"] for one in client.describe_vpcs()["Vpcs"]} == {
        one["VpcId"] for one in there.describe_vpcs()["Vpcs"]
    }
    vpc = client.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    zone = client.describe_availability_zones(ZoneIds=["use1-az2"])["AvailabilityZones"][0]["ZoneId"]
    subnet = client.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24", AvailabilityZoneId=zone)["Subnet"]
    (seen,) = client.describe_subnets(SubnetIds=[subnet["SubnetId"]])["Subnets"]
    assert seen["AvailabilityZoneId"] == "use1-az2"
    group = client.create_security_group(GroupName="g", Description="d", VpcId=vpc)["GroupId"]
    image = client.describe_images(
        Owners=["amazon"], Filters=[{"Name": "architecture", "Values": ["x86_64"]},
                                    {"Name": "platform-details", "Values": ["Linux/UNIX"]}],
    )["Images"][0]["ImageId"]  # fmt: skip
    (instance,) = client.run_instances(
        ImageId=image, InstanceType=P5, MinCount=1, MaxCount=1, SubnetId=subnet["SubnetId"],
        SecurityGroupIds=[group],
    )["Instances"]  # fmt: skip
    assert (instance["VpcId"], instance["SubnetId"]) == (vpc, subnet["SubnetId"])
    assert instance["PrivateIpAddress"].startswith("10.0.1.")
    assert there.describe_instances()["Reservations"] == []


def test_only_whoever_has_a_key_is_answered(yard: YardProcess) -> None:
    """A signature that the yard does not know goes nowhere."""
    stranger = beside(yard.url, "sqs")
    with pytest.raises(ClientError):
        stranger.list_queues()


@pytest.mark.parametrize("url", ["http://192.0.2.1:5000", "http://127.0.0.1:1"])
def test_no_yard_starts_without_its_emulator(url: str) -> None:
    """Another address is refused, and so is one where nothing answers; one sentence says so."""
    with tempfile.TemporaryDirectory(prefix="yard-") as folder:
        command = [
            sys.executable,
            "-m",
            "berth",
            "yard",
            "start",
            "--data",
            folder,
            "--port",
            "0",
            "--rest",
            url,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 20
    assert "127.0.0.1" in done.stderr.splitlines()[0]
