"""The need: what somebody wants, as a value. Reading one from a file or from flags is `need_file`'s work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from berth.planner.launch import Launch
from berth.planner.need_accounts import NeedAccount
from berth.planner.offers import money_from_json, money_json
from berth.planner.own_rates import OwnRates
from berth.planner.part import MAIN, Accelerators, Level, Part, TypeCount, check_profile
from berth.planner.platforms import LINUX
from berth.planner.readings import Reading
from berth.terms.instants import iso, parse_instant
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

NAME_PATTERN = r"[a-z0-9][a-z0-9-]{0,39}"


@dataclass(frozen=True, slots=True)
class Deployment:
    """What is put into the reservation.

    Either `model_name` names a SageMaker model that exists (then it is never deleted by us), or `image`,
    `data` and `role` say how to make one: a container image URI, the artefact (a local file or folder, or an `s3://`
    URL; None for an image that holds its model), and an IAM role ARN. `environment` is handed to the
    container. `startup_timeout` is how long the container may take until it answers pings (60 s to 1 h;
    None: SageMaker's own limit), `endpoint_name` the endpoint's name (None: derived from the order).
    """

    model_name: str | None = None
    image: str | None = None
    data: str | None = None
    role: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    startup_timeout: timedelta | None = None
    endpoint_name: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "model_name": self.model_name,
            "image": self.image,
            "data": self.data,
            "role": self.role,
            "environment": dict(self.environment),
            "startup_timeout_s": _seconds(self.startup_timeout),
            "endpoint_name": self.endpoint_name,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Deployment:
        """The deployment that `to_json` wrote."""
        return cls(
            value["model_name"],
            value["image"],
            value["data"],
            value["role"],
            tuple(sorted(value["environment"].items())),
            _span(value["startup_timeout_s"]),
            value["endpoint_name"],
        )


class Goal(StrEnum):
    """Which of the durations that a need accepts is best.

    `SHORTEST` that meets the need; `LONGEST` that the budget pays; `CHEAPEST`: least for a usable hour.
    """

    SHORTEST = "shortest"
    LONGEST = "longest"
    CHEAPEST = "cheapest-hour"


@dataclass(frozen=True, slots=True)
class Subnet:
    """Where instances can be put: a zone, and the subnet there (`id` None: only the zone was said)."""

    zone_id: str
    id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"zone_id": self.zone_id, "id": self.id}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Subnet:
        """The subnet that `to_json` wrote."""
        return cls(value["zone_id"], value["id"])


@dataclass(frozen=True, slots=True)
class Need:
    """What somebody wants: one part that is planned, what stands beside it, and the bounds of both.

    The part that is planned: `instance_type` is the type that is liked best, with SageMaker's prefix
    (`ml.trn1.32xlarge`) for SageMaker's targets and none for `instances`; `count` the least number of it,
    `count_wanted` the number wanted at best (None: `count`). `alternatives` are the other types that would
    do, with their own counts; `types` is all of them. `profile` is the count over time where it changes, and
    `count` then its peak. `accelerators` is what types and counts were derived from. `beside` are further
    parts (a head node); `parts` is all of them, `alone` the need of one of them.

    Time: `duration` is the time to hold and to pay, and `longest` the upper end where any span between would
    do (None: `duration` and no other); `goal` says which is best. What can be used is shorter and is shown.
    `start` is a fixed start; without one the window may lie anywhere from `earliest_start` (None: now) to
    `latest_end` (None: as far ahead as the way sells). `time_zone` is an IANA name in which local dates were
    read and local times are shown beside UTC. `readings` are the words for days among them, and what they
    were read as.

    Tolerances: `gap_at_most` is the longest gap between segments (None: not said; then only a training job
    takes any). `interruptible` says whether the work survives two minutes' notice, `checkpoint_every` how
    much work that loses at most; `retryable` whether it may be begun again. `utilisation` is the share of the
    usable time in which something will run, from 0 (exclusive) to 1; `startup` the paid time from a
    machine's start until it works.

    Places: `zone_ids` empty means any zone. `same_zone`: whether all of it must be in one zone (None: where
    several instances work together). `subnets` empty means not said; else offers in other zones need a subnet
    first. Money: `budget` bounds the total of all parts; `rates` are prices of one's own. `account` pins the
    account. `ways` are those by which what is held ahead may be had; empty: any.

    `accounts` are those over which several pieces may be spread, filled in their order; empty: the caller's.

    `platform` is the operating system platform of instances, in EC2's words; SageMaker chooses its own.
    `tags` say whose need it is (`team = "a"`): what the account owns and somebody else has tagged is not
    counted. `launch` says how instances are launched, `deployment` what SageMaker runs. `reserve` False:
    the part need not be held ahead. None always means: not said.

    Raises ValueError for counts, durations and profiles that cannot be.
    """

    name: str
    instance_type: str
    count: int
    duration: timedelta
    target: Target
    regions: tuple[str, ...]
    zone_ids: tuple[str, ...] = ()
    start: datetime | None = None
    earliest_start: datetime | None = None
    latest_end: datetime | None = None
    budget: Money | None = None
    account: str | None = None
    utilisation: Decimal | None = None
    time_zone: str | None = None
    deployment: Deployment | None = None
    platform: str = LINUX
    tags: tuple[tuple[str, str], ...] = ()
    launch: Launch | None = None
    count_wanted: int | None = None
    alternatives: tuple[TypeCount, ...] = ()
    accelerators: Accelerators | None = None
    profile: tuple[Level, ...] = ()
    longest: timedelta | None = None
    goal: Goal = Goal.SHORTEST
    gap_at_most: timedelta | None = None
    interruptible: bool | None = None
    checkpoint_every: timedelta | None = None
    retryable: bool | None = None
    startup: timedelta | None = None
    subnets: tuple[Subnet, ...] = ()
    rates: OwnRates | None = None
    part_name: str = MAIN
    reserve: bool = True
    beside: tuple[Part, ...] = ()
    accounts: tuple[NeedAccount, ...] = ()
    readings: tuple[Reading, ...] = ()
    ways: tuple[Way, ...] = ()
    same_zone: bool | None = None

    def __post_init__(self) -> None:
        TypeCount(self.instance_type, self.count, self.count_wanted or self.count)
        check_profile(self.profile)
        if self.profile and self.count != max(level.count for level in self.profile):
            raise ValueError("the count of a need with a profile is the profile's peak")
        if self.longest is not None and self.longest < self.duration:
            raise ValueError("the longest duration is not under the shortest")

    # -- what is wanted ------------------------------------------------------------------------------------
    @property
    def types(self) -> tuple[TypeCount, ...]:
        """Every type that would do, the one liked best first."""
        return (
            TypeCount(self.instance_type, self.count, self.count_wanted or self.count),
            *self.alternatives,
        )

    def type_count(self, instance_type: str) -> TypeCount | None:
        """How many of `instance_type` are enough; None when that type would not do."""
        return next((t for t in self.types if t.instance_type == instance_type), None)

    def as_type(self, wanted: TypeCount) -> Need:
        """The same need, were `wanted` the only type that would do."""
        return replace(
            self,
            instance_type=wanted.instance_type,
            count=wanted.count,
            count_wanted=wanted.wanted,
            alternatives=(),
            accelerators=None,
        )

    @property
    def parts(self) -> tuple[Part, ...]:
        """Every part, the planned one first."""
        planned = Part(self.part_name, self.types, self.target, self.reserve, self.profile, self.accelerators)
        return (planned, *self.beside)

    def alone(self, part: Part) -> Need:
        """The need of one of the parts, under a name of its own unless it is the planned one."""
        if part.name == self.part_name:
            return replace(self, beside=())
        first, *others = part.types
        return replace(
            self,
            name=f"{self.name}-{part.name}",
            instance_type=first.instance_type,
            count=first.count,
            count_wanted=first.wanted,
            alternatives=tuple(others),
            target=part.target,
            profile=part.profile,
            accelerators=part.accelerators,
            part_name=part.name,
            reserve=part.reserve,
            # What is launched beside is had on demand, as it says, whatever the rest may be had by.
            ways=self.ways if part.reserve else (),
            beside=(),
        )

    @property
    def is_range(self) -> bool:
        """Whether more than one duration would do."""
        return self.longest is not None and self.longest > self.duration

    @property
    def duration_at_most(self) -> timedelta:
        """The longest duration that is of use."""
        return self.longest or self.duration

    # -- where and when ------------------------------------------------------------------------------------
    @property
    def zone(self) -> ZoneInfo | None:
        """The zone to show local times in, None when none was named."""
        return ZoneInfo(self.time_zone) if self.time_zone else None

    @property
    def fixed_window(self) -> Window | None:
        """The span that a fixed start asks for at least; None when the start may move."""
        return Window(self.start, self.start + self.duration) if self.start else None

    @property
    def subnet_zones(self) -> tuple[str, ...]:
        """The zones that have a subnet; empty when nothing was said."""
        return tuple(dict.fromkeys(subnet.zone_id for subnet in self.subnets))

    @property
    def is_endpoint(self) -> bool:
        """Whether an inference endpoint is what will run."""
        return self.target is Target.ENDPOINT

    def handle(self, number: int) -> str:
        """The name by which `berth buy` knows choice `number`: `eval-1#1`."""
        return f"{self.name}#{number}"

    @property
    def handle_of_mix(self) -> str:
        """The name by which `berth buy` knows the best combination: `eval-1#best`."""
        return f"{self.name}#best"

    # -- as JSON -------------------------------------------------------------------------------------------
    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON: spans in whole seconds, money and shares as text, instants ISO 8601."""
        return {
            "name": self.name,
            "instance_type": self.instance_type,
            "count": self.count,
            "duration_s": _seconds(self.duration),
            "target": self.target.value,
            "regions": list(self.regions),
            "zone_ids": list(self.zone_ids),
            "start": _iso(self.start),
            "earliest_start": _iso(self.earliest_start),
            "latest_end": _iso(self.latest_end),
            "budget": money_json(self.budget),
            "account": self.account,
            "utilisation": None if self.utilisation is None else str(self.utilisation),
            "time_zone": self.time_zone,
            "deployment": self.deployment.to_json() if self.deployment else None,
            "platform": self.platform,
            "tags": dict(self.tags),
            "launch": self.launch.to_json() if self.launch else None,
            "count_wanted": self.count_wanted,
            "alternatives": [t.to_json() for t in self.alternatives],
            "accelerators": self.accelerators.to_json() if self.accelerators else None,
            "profile": [level.to_json() for level in self.profile],
            "longest_s": _seconds(self.longest),
            "goal": self.goal.value,
            "gap_at_most_s": _seconds(self.gap_at_most),
            "interruptible": self.interruptible,
            "checkpoint_every_s": _seconds(self.checkpoint_every),
            "retryable": self.retryable,
            "startup_s": _seconds(self.startup),
            "subnets": [subnet.to_json() for subnet in self.subnets],
            "rates": self.rates.to_json() if self.rates else None,
            "part_name": self.part_name,
            "reserve": self.reserve,
            "beside": [part.to_json() for part in self.beside],
            "accounts": [account.to_json() for account in self.accounts],
            "readings": [reading.to_json() for reading in self.readings],
            "ways": [way.value for way in self.ways],
            "same_zone": self.same_zone,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Need:
        """The need that `to_json` wrote. Raises KeyError or ValueError for anything else."""
        return cls(
            name=value["name"],
            instance_type=value["instance_type"],
            count=int(value["count"]),
            duration=timedelta(seconds=value["duration_s"]),
            target=Target(value["target"]),
            regions=tuple(value["regions"]),
            zone_ids=tuple(value["zone_ids"]),
            start=_instant(value["start"]),
            earliest_start=_instant(value["earliest_start"]),
            latest_end=_instant(value["latest_end"]),
            budget=money_from_json(value["budget"]),
            account=value["account"],
            utilisation=None if value["utilisation"] is None else Decimal(value["utilisation"]),
            time_zone=value["time_zone"],
            deployment=Deployment.from_json(value["deployment"]) if value["deployment"] else None,
            **_later_members(value),
        )


def _later_members(value: Mapping[str, Any]) -> dict[str, Any]:
    """What documents of earlier releases lack: each with what its absence meant."""
    accelerators, rates, launch = value.get("accelerators"), value.get("rates"), value.get("launch")
    return {
        "platform": value.get("platform", LINUX),
        "tags": tuple(sorted(value.get("tags", {}).items())),
        "launch": Launch.from_json(launch) if launch else None,
        "count_wanted": value.get("count_wanted"),
        "alternatives": tuple(TypeCount.from_json(t) for t in value.get("alternatives", ())),
        "accelerators": Accelerators.from_json(accelerators) if accelerators else None,
        "profile": tuple(Level.from_json(level) for level in value.get("profile", ())),
        "longest": _span(value.get("longest_s")),
        "goal": Goal(value.get("goal", Goal.SHORTEST)),
        "gap_at_most": _span(value.get("gap_at_most_s")),
        "interruptible": value.get("interruptible"),
        "checkpoint_every": _span(value.get("checkpoint_every_s")),
        "retryable": value.get("retryable"),
        "startup": _span(value.get("startup_s")),
        "subnets": tuple(Subnet.from_json(s) for s in value.get("subnets", ())),
        "rates": OwnRates.from_json(rates) if rates else None,
        "part_name": value.get("part_name", MAIN),
        "reserve": bool(value.get("reserve", True)),
        "beside": tuple(Part.from_json(p) for p in value.get("beside", ())),
        "accounts": tuple(NeedAccount.from_json(a) for a in value.get("accounts", ())),
        "readings": tuple(Reading.from_json(r) for r in value.get("readings", ())),
        "ways": tuple(Way(way) for way in value.get("ways", ())),
        "same_zone": value.get("same_zone"),
    }


NEED_KEYS = tuple(f.name for f in fields(Need))


def _seconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds())


def _span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def _iso(instant: datetime | None) -> str | None:
    return None if instant is None else iso(instant)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)
