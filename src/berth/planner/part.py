"""A part of a need: which types it may be, how many of them, and whether it must be reserved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from berth.terms.ways import Target

COUNT_MAX = 1000
"""The most instances that one On-Demand Capacity Reservation holds (EC2 guide, read 2026-11; field fault 57).
No other way holds more by one call."""
MAIN = "main"


def check_count(count: object) -> int:
    """`count` if it is a number of instances that can be asked for: the one refusal, whatever the path.

    Raises ValueError with the bounds.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= COUNT_MAX:
        told = f"{count:.1e}" if isinstance(count, int) and count > 10**15 else str(count)
        raise ValueError(f"must be a whole number from 1 to {COUNT_MAX}, not {told[:40]}")
    return count


@dataclass(frozen=True, slots=True)
class TypeCount:
    """One acceptable instance type, and how many of it are enough.

    `count` is the least number, `wanted` the number wanted at best, which is `count` or more.
    """

    instance_type: str
    count: int
    wanted: int

    def __post_init__(self) -> None:
        check_count(self.count)
        check_count(self.wanted)
        if self.wanted < self.count:
            raise ValueError(f"{self.wanted} wanted is less than the least count of {self.count}")

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"instance_type": self.instance_type, "count": self.count, "wanted": self.wanted}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TypeCount:
        """The value that `to_json` wrote."""
        return cls(value["instance_type"], int(value["count"]), int(value["wanted"]))


@dataclass(frozen=True, slots=True)
class Accelerators:
    """How the types were chosen: `count` accelerators of one of `kinds` (`H200`, `Trainium2`).

    `least_memory_gib` is the memory that each must have, None when not said.
    """

    kinds: tuple[str, ...]
    count: int
    least_memory_gib: Decimal | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        least = self.least_memory_gib
        return {
            "kinds": list(self.kinds),
            "count": self.count,
            "least_memory_gib": None if least is None else str(least),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Accelerators:
        """The value that `to_json` wrote."""
        least = value["least_memory_gib"]
        return cls(tuple(value["kinds"]), int(value["count"]), None if least is None else Decimal(least))


@dataclass(frozen=True, slots=True)
class Level:
    """From `offset` after the start on (until the next level, or the end), `count` instances."""

    offset: timedelta
    count: int

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"offset_s": int(self.offset.total_seconds()), "count": self.count}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Level:
        """The level that `to_json` wrote."""
        return cls(timedelta(seconds=value["offset_s"]), int(value["count"]))


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a need, such as eight GPU nodes, or their head node.

    `types` are acceptable, in order of preference, at least one. `profile` is the count over time where it
    changes; empty means that it does not. `reserve` says whether the part must be held ahead: False means
    that it is launched on demand beside what is held, in the same zone. `accelerators` is what the types were
    derived from, None where types were named.
    """

    name: str
    types: tuple[TypeCount, ...]
    target: Target
    reserve: bool = True
    profile: tuple[Level, ...] = ()
    accelerators: Accelerators | None = None

    def __post_init__(self) -> None:
        if not self.types:
            raise ValueError(f"part {self.name} names no type")
        check_profile(self.profile)

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "types": [t.to_json() for t in self.types],
            "target": self.target.value,
            "reserve": self.reserve,
            "profile": [level.to_json() for level in self.profile],
            "accelerators": self.accelerators.to_json() if self.accelerators else None,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Part:
        """The part that `to_json` wrote."""
        chosen = value["accelerators"]
        return cls(
            value["name"],
            tuple(TypeCount.from_json(t) for t in value["types"]),
            Target(value["target"]),
            bool(value["reserve"]),
            tuple(Level.from_json(level) for level in value["profile"]),
            Accelerators.from_json(chosen) if chosen else None,
        )


def check_profile(profile: tuple[Level, ...]) -> None:
    """Raise ValueError unless `profile` is empty, or begins at the start and goes on in time."""
    if not profile:
        return
    for level in profile:
        check_count(level.count)
    if profile[0].offset != timedelta(0):
        raise ValueError("a profile begins at the start: its first level is from 0h")
    for one, other in pairwise(profile):
        if other.offset <= one.offset:
            raise ValueError("each level of a profile begins later than the one before it")
        if other.count == one.count:
            raise ValueError("each level of a profile has another count than the one before it")


def instance_time(profile: tuple[Level, ...], span: timedelta) -> timedelta:
    """How long all instances of `profile` run within `span` from the start, added up: 2 for 24 h are 48 h."""
    ends = (*(level.offset for level in profile[1:]), span)
    spans = (
        max(min(end, span) - level.offset, timedelta(0)) for level, end in zip(profile, ends, strict=True)
    )
    return sum((level.count * each for level, each in zip(profile, spans, strict=True)), timedelta(0))


@dataclass(frozen=True, slots=True)
class Layer:
    """What one offer can hold of a profile: `count` instances from `begin` to `end` after the start."""

    count: int
    begin: timedelta
    end: timedelta


def layers(profile: tuple[Level, ...], duration: timedelta) -> tuple[Layer, ...]:
    """The profile cut level by level, from the bottom: their sum is the profile, the longest come first.

    2 instances, and 8 from 48 h on, for 96 h: 2 for all 96 h, and 6 from 48 h to 96 h. Levels that begin at
    `duration` or later are left out; an empty profile has no layers.
    """
    if not profile:
        return ()
    inside = [level for level in profile if level.offset < duration]
    ends = [level.offset for level in inside[1:]] + [duration]
    spans = [(level.count, level.offset, end) for level, end in zip(inside, ends, strict=True)]
    made: list[Layer] = []
    floor = 0
    for height in sorted({count for count, _, _ in spans}):
        for begin, end in _runs([(b, e) for count, b, e in spans if count >= height]):
            made.append(Layer(height - floor, begin, end))
        floor = height
    return tuple(sorted(made, key=lambda layer: (layer.begin - layer.end, layer.begin)))


def _runs(spans: list[tuple[timedelta, timedelta]]) -> list[tuple[timedelta, timedelta]]:
    """Spans in order of time, those that touch joined."""
    joined: list[tuple[timedelta, timedelta]] = []
    for begin, end in spans:
        if joined and joined[-1][1] == begin:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined
