"""Accelerated instance types: what is in one, and what it may be bought or used for."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from berth.facts.tables import Provenance, provenance, rows

ML_PREFIX = "ml."


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One accelerated instance type (or UltraServer) as published.

    `accelerator_memory_gib` is the total over all accelerators; an optional member is None where it is not
    known. The flags say what AWS's own lists allow: `capacity_block` and `spot` are EC2 usage classes,
    the `sagemaker_*` flags the enums of the SageMaker model, `training_plan` its reserved-capacity enum
    (None = not known). None of them says that a Region has any.
    """

    name: str
    is_ultraserver: bool
    accelerator: str
    vendor: str
    accelerator_count: int
    accelerator_memory_gib: Decimal | None
    vcpus: int | None
    memory_gib: Decimal | None
    network_gbps: Decimal | None
    efa: bool
    capacity_block: bool
    spot: bool
    training_plan: bool | None
    sagemaker_training: bool
    sagemaker_hosting: bool
    sagemaker_hyperpod: bool
    provenance: Provenance
    note: str

    @property
    def ml_name(self) -> str:
        """SageMaker's name of the same hardware, such as ml.p5.48xlarge."""
        return ML_PREFIX + self.name


def instance_type(name: str) -> InstanceType | None:
    """The type called `name` (`p5.48xlarge`, or `ml.p5.48xlarge` alike); None when the table lacks it."""
    return _by_name().get(name.removeprefix(ML_PREFIX))


def instance_types() -> tuple[InstanceType, ...]:
    """Every type of the table, in its order (family, then size)."""
    return tuple(_by_name().values())


def types_with(accelerator: str) -> tuple[InstanceType, ...]:
    """Types with that accelerator (`H100`, `Trainium`; letter case ignored), without UltraServers."""
    wanted = accelerator.casefold()
    return tuple(t for t in instance_types() if t.accelerator.casefold() == wanted and not t.is_ultraserver)


def _number(text: str) -> Decimal | None:
    return Decimal(text) if text else None


def _made(row: dict[str, str]) -> InstanceType:
    plan = {"yes": True, "no": False}.get(row["training_plan"])
    return InstanceType(
        name=row["instance_type"],
        is_ultraserver=row["kind"] == "ultraserver",
        accelerator=row["accelerator"],
        vendor=row["accelerator_vendor"],
        accelerator_count=int(row["accelerator_count"]),
        accelerator_memory_gib=_number(row["accelerator_memory_gib_total"]),
        vcpus=int(row["vcpus"]) if row["vcpus"] else None,
        memory_gib=_number(row["memory_gib"]),
        network_gbps=_number(row["network_gbps"]),
        efa=row["efa"] == "yes",
        capacity_block=row["capacity_block"] == "yes",
        spot=row["spot"] == "yes",
        training_plan=plan,
        sagemaker_training=row["sagemaker_training"] == "yes",
        sagemaker_hosting=row["sagemaker_hosting"] == "yes",
        sagemaker_hyperpod=row["sagemaker_hyperpod"] == "yes",
        provenance=provenance(row),
        note=row["note"],
    )


@cache
def _by_name() -> dict[str, InstanceType]:
    return {row["instance_type"]: _made(row) for row in rows("instance_types.csv")}
