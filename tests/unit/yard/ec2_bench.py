"""A yard over the fleet of ec2.toml, with short ways to blocks and instances."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from berth.terms.money import Money
from berth.terms.window import Window
from berth.yard.errors import ServiceError
from berth.yard.fleet.fleet_file import load_fleet
from berth.yard.services.ec2.block_seed import BlockSeed, seed_block

from .bench import Bench

FLEET = Path(__file__).with_name("ec2.toml")
P5 = "p5.48xlarge"


class Ec2Bench(Bench):
    """The same yard as `Bench`, over another fleet, asked through EC2."""

    def __init__(self, path: Path, fleet_text: str | None = None, **settings: Any) -> None:
        text = FLEET.read_text("utf-8") if fleet_text is None else fleet_text
        super().__init__(path, load_fleet(text, "ec2.toml"), **settings)

    def ec2(self, name: str, **params: Any) -> Any:
        """One operation of EC2."""
        return self.call(name, service="ec2", **params)

    def refused(self, name: str, **params: Any) -> ServiceError:
        """The refusal of one operation of EC2."""
        try:
            answer = self.ec2(name, **params)
        except ServiceError as refused:
            return refused
        raise AssertionError(f"not refused: {answer}")

    def image(self, platform: str = "Linux/UNIX", region: str = "us-east-1") -> str:
        """The id of the first image of a platform (PlatformDetails)."""
        found = self.ec2(
            "DescribeImages", region=region, Filters=[{"Name": "platform-details", "Values": [platform]}]
        )
        image_id: str = found["Images"][0]["ImageId"]
        return image_id

    def subnet(self, zone_id: str) -> str:
        """The id of the subnet in a zone."""
        found = self.ec2("DescribeSubnets", Filters=[{"Name": "availability-zone-id", "Values": [zone_id]}])
        subnet_id: str = found["Subnets"][0]["SubnetId"]
        return subnet_id

    def block(
        self,
        count: int = 2,
        *,
        state: str = "active",
        start: datetime | None = None,
        hours: float = 24,
        zone: str | None = "use1-az1",
        kind: str = P5,
        platform: str = "Linux/UNIX",
        account: str | None = None,
    ) -> str:
        """A block; the id of its Capacity Reservation. It began an hour ago unless told otherwise."""
        begun = start if start is not None else self.yard.clock.now() - timedelta(hours=1)
        seed = BlockSeed(
            account or self.account.account_id, "us-east-1", kind, count, platform,
            Window(begun, begun + timedelta(hours=hours)), Money.parse("1146.17"), state, zone, {},
        )  # fmt: skip
        made: dict[str, str] = self.do(lambda tx: seed_block(tx, self.yard, seed))
        return made["capacity_reservation_id"]

    def launching(self, block: str | None = None, count: int = 1, **more: Any) -> dict[str, Any]:
        """The parameters of a launch, into a block or on demand."""
        target = {
            "InstanceMarketOptions": {"MarketType": "capacity-block"},
            "CapacityReservationSpecification": {
                "CapacityReservationTarget": {"CapacityReservationId": block}
            },
        }
        return {
            "ImageId": self.image(), "InstanceType": P5, "MinCount": count, "MaxCount": count,
            **(target if block else {}), **more,
        }  # fmt: skip

    def launch(self, block: str | None = None, count: int = 1, **more: Any) -> list[str]:
        """Launch; the ids of the instances."""
        answer = self.ec2("RunInstances", **self.launching(block, count, **more))
        return [instance["InstanceId"] for instance in answer["Instances"]]

    def no_launch(self, block: str | None = None, count: int = 1, **more: Any) -> ServiceError:
        """The refusal of a launch."""
        return self.refused("RunInstances", **self.launching(block, count, **more))

    def instance(self, instance_id: str) -> Any:
        """DescribeInstances of one."""
        (launch,) = self.ec2("DescribeInstances", InstanceIds=[instance_id])["Reservations"]
        (found,) = launch["Instances"]
        return found

    def state(self, instance_id: str) -> str:
        """The state of an instance."""
        found: str = self.instance(instance_id)["State"]["Name"]
        return found

    def free_in(self, block: str) -> int:
        """AvailableInstanceCount of a block."""
        (found,) = self.ec2("DescribeCapacityReservations", CapacityReservationIds=[block])[
            "CapacityReservations"
        ]
        free: int = found["AvailableInstanceCount"]
        return free
