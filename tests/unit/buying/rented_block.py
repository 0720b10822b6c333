"""A bought Capacity Block and EC2 in memory: images, subnets, templates, instances, client tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

from berth.aws.guards import into_block
from berth.orders.block_descriptions import described_block
from berth.planner.launch import Launch
from berth.workloads.clean_instances import clean_instances
from berth.workloads.launch import Running, launch
from berth.workloads.sites import Site

ACCOUNT = "111122223333"
IMAGE = "ami-0123456789abcdef0"
SAID = Launch(image=IMAGE)


def refused(code: str, status: int = 400) -> ClientError:
    """An error as botocore raises it."""
    return ClientError(
        {"Error": {"Code": code, "Message": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "Any"
    )


class FakeEc2:
    """Instances, images, subnets and templates of one account; the blocks are those of the shared fake."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.instances: dict[str, dict[str, Any]] = {}
        self.launches: list[dict[str, Any]] = []
        self.tokens: dict[str, tuple[dict[str, Any], list[str]]] = {}
        self.free: dict[str, int] = {}
        self.fault: str | None = None
        self.change: Callable[[dict[str, Any]], dict[str, Any]] = lambda answer: answer
        self.platform = "Linux/UNIX"
        self.subnets = {"subnet-1": "use1-az4", "subnet-2": "use1-az1"}
        self.default_subnet: str | None = "subnet-1"
        self.template: dict[str, Any] = {}
        self.hidden_until: Any = None
        self.ends_at_once = True

    # -- launching -------------------------------------------------------------------------------------
    def run_instances(self, **request: Any) -> Mapping[str, Any]:
        """RunInstances: a token launches once; then its instances, or that they are ended."""
        assert into_block("RunInstances", request)
        self.world.effects("RunInstances:before")
        if self.fault == "not started":
            raise refused("InvalidCapacityReservationState.PendingActivation")
        token, asked = request["ClientToken"], {k: v for k, v in request.items() if k != "ClientToken"}
        if token in self.tokens:
            known, ids = self.tokens[token]
            if known != asked:
                raise refused("IdempotentParameterMismatch")
            if not any(self.instances[one]["State"]["Name"] == "running" for one in ids):
                raise refused("IdempotentInstanceTerminated")
        else:
            ids = self._launch(asked, token)
        if self.fault == "lost":
            self.fault = None
            raise ReadTimeoutError(endpoint_url="http://127.0.0.1:1")
        self.world.effects("RunInstances:after")
        return {"Instances": [self.change(dict(self.instances[one])) for one in ids]}

    def _launch(self, asked: dict[str, Any], token: str) -> list[str]:
        block = asked["CapacityReservationSpecification"]["CapacityReservationTarget"][
            "CapacityReservationId"
        ]
        if self.free.get(block, 0) < 1:
            raise refused("ReservationCapacityExceeded")
        number = min(self.free[block], asked["MaxCount"])
        self.free[block] -= number
        (specification,) = asked["TagSpecifications"]
        ids = [f"i-{len(self.instances) + n:017x}" for n in range(number)]
        for one in ids:
            self.instances[one] = {
                "InstanceId": one, "State": {"Name": "running"}, "ClientToken": token,
                "InstanceLifecycle": "capacity-block", "CapacityReservationId": block,
                "InstanceType": asked["InstanceType"], "Placement": {"AvailabilityZone": "us-east-1d"},
                "Tags": specification["Tags"], "LaunchTime": self.world.clock.now(),
            }  # fmt: skip
        self.launches.append({**asked, "block": block, "got": number})
        self.tokens[token] = (asked, ids)
        return ids

    def describe_instances(self, **request: Any) -> Mapping[str, Any]:
        """DescribeInstances by one filter."""
        self.world.effects("DescribeInstances:before")
        ((one,),) = (request["Filters"],)
        if one["Name"] == "instance-id":
            found = [self.instances[i] for i in one["Values"] if i in self.instances]
        else:
            assert one["Name"] == "tag:berth:order"
            tag = {"Key": "berth:order", "Value": one["Values"][0]}
            found = [i for i in self.instances.values() if tag in i["Tags"]]
        if self.hidden_until is not None and self.world.clock.now() < self.hidden_until:
            found = []
        self.world.effects("DescribeInstances:after")
        return {"Reservations": [{"Instances": [self.change(dict(i))]} for i in found]}

    def terminate_instances(self, *, InstanceIds: list[str]) -> Mapping[str, Any]:  # noqa: N803
        """TerminateInstances; hosts are cleaned at once, or when the test says so."""
        self.world.effects("TerminateInstances:before")
        for one in InstanceIds:
            if self.instances[one]["State"]["Name"] == "running":
                self.free[self.instances[one]["CapacityReservationId"]] += 1
                self.instances[one]["State"] = {"Name": "shutting-down"}
            if self.ends_at_once:
                self.instances[one]["State"] = {"Name": "terminated"}
        self.world.effects("TerminateInstances:after")
        return {}

    # -- what surrounds it -----------------------------------------------------------------------------
    def describe_images(self, *, ImageIds: list[str]) -> Mapping[str, Any]:  # noqa: N803
        """DescribeImages."""
        if ImageIds != [IMAGE]:
            raise refused("InvalidAMIID.NotFound")
        return {"Images": [{"ImageId": IMAGE, "PlatformDetails": self.platform}]}

    def describe_subnets(self, **request: Any) -> Mapping[str, Any]:
        """DescribeSubnets by id, or the default one of a zone."""
        ids = request.get("SubnetIds") or [self.default_subnet]
        if "Filters" in request:
            asked = {one["Name"]: one["Values"] for one in request["Filters"]}
            assert asked == {"availability-zone-id": ["use1-az4"], "default-for-az": ["true"]}
        if ids == [None]:
            return {"Subnets": []}
        if ids[0] not in self.subnets:
            raise refused("InvalidSubnetID.NotFound")
        return {"Subnets": [{"SubnetId": ids[0], "AvailabilityZoneId": self.subnets[ids[0]]}]}

    def describe_launch_template_versions(self, **request: Any) -> Mapping[str, Any]:
        """DescribeLaunchTemplateVersions."""
        return {"LaunchTemplateVersions": [{"LaunchTemplateData": self.template}]}

    def describe_capacity_reservations(self, **request: Any) -> Mapping[str, Any]:
        """DescribeCapacityReservations."""
        described: Mapping[str, Any] = self.world.aws.describe_capacity_reservations(**request)
        return described

    @property
    def running(self) -> list[str]:
        """Instances that run."""
        return [i for i, one in self.instances.items() if one["State"]["Name"] == "running"]


class Rented:
    """A bought block of two, open, and the machines in it."""

    def __init__(self, world: Any, count: int = 2) -> None:
        self.world = world
        self.ec2 = FakeEc2(world)
        world.aws.fee *= count
        offer = world.aws.offer
        world.aws.offer = lambda query=None: sized(offer(query), count, world.aws)
        world.approved = world.aws.offer()
        self.order = world.buy(cap="5000").order
        self.block = world.aws.ledger[0][0]
        self.open(self.block, count)

    def open(self, block: str, count: int) -> None:
        """The block's window opens."""
        made = self.world.aws.blocks[block]
        made.update(State="active", TotalInstanceCount=count, AvailableInstanceCount=count)
        self.ec2.free[block] = count
        self.world.clock.at = self.order.offer.paid_window.start + timedelta(minutes=1)

    def more(self, count: int) -> str:
        """One more block of the account, open, bought by whoever."""
        offer = sized(self.world.approved, count, self.world.aws)
        block: str = self.world.aws.sell(offer, {})
        self.open(block, count)
        return block

    def site(self, journal: Any = None) -> Site:
        """What launching leans on."""
        world = self.world
        return Site(
            journal or world.journal, world.clock, lambda service: self.ec2, ACCOUNT, world.talk.append,
            world.warnings.append,
        )  # fmt: skip

    def seen(self) -> Any:
        """The block as AWS shows it; its free places as they are."""
        made = self.world.aws.blocks[self.block]
        block = described_block({**made, "AvailableInstanceCount": self.ec2.free[self.block]})
        return block.seen if block else None

    def launch(self, said: Launch = SAID, **more: Any) -> Running:
        """Launch what the block holds."""
        return launch(self.site(), self.world.order(), self.seen(), said, **more)

    def clean(self) -> tuple[str, ...]:
        """Clear up."""
        return clean_instances(self.site(), self.world.order(), wait=False)


def sized(offer: Any, count: int, aws: Any) -> Any:
    """The offer for so many instances."""
    from dataclasses import replace

    part = replace(offer.segments[0], count=count)
    made = replace(offer, count=count, segments=(part,))
    aws.offers[made.offering_id] = made
    return made
