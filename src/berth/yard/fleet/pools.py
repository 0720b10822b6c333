"""Pools: all hosts of one hardware type in one zone, and what of them may be sold to whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from berth.terms.ways import Target

EC2 = "ec2"
SAGEMAKER = "sagemaker"
FACES = (EC2, SAGEMAKER)


@dataclass(frozen=True, slots=True)
class Face:
    """One service's view of a pool: `p5.48xlarge` on EC2, `ml.p5.48xlarge` on SageMaker.

    `cap` is the most hosts that may be committed through this face at one instant; None = no cap of its own,
    only the pool's.
    """

    instance_type: str
    cap: int | None = None


@dataclass(frozen=True, slots=True)
class Shares:
    """How many hosts of a pool serve what; the three add up to the pool's hosts at most.

    `reservable` may be promised for windows, `on_demand` may run without an end, `spare` replaces what fails.
    """

    reservable: int
    on_demand: int
    spare: int


@dataclass(frozen=True, slots=True)
class Pool:
    """All hosts of one hardware type in one zone.

    `unit` hosts are sold together (18 for an UltraServer of 18 instances; 1 for all else). `targets` are
    what SageMaker plans on this pool may be for. With `self_service` False a search never shows the pool:
    AWS sells such types through an account manager only.
    """

    zone_id: str
    region: str
    hardware: str
    hosts: int
    shares: Shares
    faces: Mapping[str, Face]
    targets: frozenset[Target]
    unit: int = 1
    self_service: bool = True

    @property
    def key(self) -> str:
        """The pool's name for good: `use1-az6/trn1.32xlarge`."""
        return pool_key(self.zone_id, self.hardware)

    def limit(self, face: str) -> int:
        """The most hosts of this pool that may be reserved through `face` at one instant."""
        found = self.faces.get(face)
        if found is None:
            return 0
        return self.shares.reservable if found.cap is None else min(found.cap, self.shares.reservable)


def pool_key(zone_id: str, hardware: str) -> str:
    """The key of the pool of that hardware in that zone."""
    return f"{zone_id}/{hardware}"
