"""Instance types without accelerators (head nodes, login nodes), and what could stand in for one."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from berth.facts.tables import Provenance, provenance, rows

_SMALL = {"medium": Decimal(1), "large": Decimal(2), "xlarge": Decimal(4)}


@dataclass(frozen=True, slots=True)
class GeneralType:
    """One size of a general family (C, M, R) as published; `architecture` is `arm64` or `x86_64`."""

    name: str
    architecture: str
    generation: int
    vcpus: int
    memory_gib: int
    provenance: Provenance


def general_type(name: str) -> GeneralType | None:
    """The type called `name` (`c7g.2xlarge`); None when the table lacks it, which says nothing about EC2."""
    return _by_name().get(name)


def stand_ins(name: str, most: int = 2) -> tuple[str, ...]:
    """Types that run the same work as `name`: same architecture and vCPUs, as much memory or more.

    The least memory first, then the newest; at most `most`. Empty where the table lacks `name`.
    """
    wanted = general_type(name)
    if wanted is None:
        return ()
    others = [
        t
        for t in _by_name().values()
        if t.name != name
        and (t.architecture, t.vcpus) == (wanted.architecture, wanted.vcpus)
        and t.memory_gib >= wanted.memory_gib
    ]
    others.sort(key=lambda t: (t.memory_gib, -t.generation, t.name))
    return tuple(t.name for t in others[:most])


def general_type_names() -> tuple[str, ...]:
    """Every name of the table."""
    return tuple(_by_name())


def _vcpus(size: str) -> Decimal:
    return _SMALL.get(size) or 4 * Decimal(size.removesuffix("xlarge"))


@cache
def _by_name() -> dict[str, GeneralType]:
    found: dict[str, GeneralType] = {}
    for row in rows("general_types.csv"):
        for size in row["sizes"].split(";"):
            vcpus = int(_vcpus(size))
            name = f"{row['family']}.{size}"
            memory = vcpus * int(row["gib_per_vcpu"])
            found[name] = GeneralType(
                name, row["architecture"], int(row["generation"]), vcpus, memory, provenance(row)
            )
    return found
