"""What DescribeInstanceTypes says of a type, for the types that are sold as Capacity Blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from berth.facts.tables import Provenance, provenance, rows


@dataclass(frozen=True, slots=True)
class Ec2Shape:
    """One type as EC2's DescribeInstanceTypes describes it.

    `device` is the accelerator's name, `vendor` who makes it (`NVIDIA`: EC2 calls it a GPU; `AWS`: a Neuron
    device). `device_memory_mib` is the memory of one device, None where not known. `network_performance`
    is EC2's own words.
    """

    name: str
    vcpus: int
    memory_mib: int
    device_count: int
    device: str
    vendor: str
    device_memory_mib: int | None
    efa_interfaces_max: int
    network_cards_max: int
    network_performance: str
    provenance: Provenance


def ec2_shape(name: str) -> Ec2Shape | None:
    """The shape of the EC2 type `name`; None when the table lacks it."""
    return _by_name().get(name)


def _made(row: dict[str, str]) -> Ec2Shape:
    return Ec2Shape(
        name=row["instance_type"],
        vcpus=int(row["vcpus"]),
        memory_mib=int(row["memory_mib"]),
        device_count=int(row["device_count"]),
        device=row["device"],
        vendor=row["vendor"],
        device_memory_mib=int(row["device_memory_mib"]) if row["device_memory_mib"] else None,
        efa_interfaces_max=int(row["efa_interfaces_max"]),
        network_cards_max=int(row["network_cards_max"]),
        network_performance=row["network_performance"],
        provenance=provenance(row),
    )


@cache
def _by_name() -> dict[str, Ec2Shape]:
    return {row["instance_type"]: _made(row) for row in rows("ec2_shapes.csv")}
