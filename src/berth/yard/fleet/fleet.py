"""Fleet: everything that a fleet file says, as values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from berth.yard.fleet.pools import SAGEMAKER, Pool
from berth.yard.fleet.zones import Region, Zone
from berth.yard.market.price_lists import PriceList, Rate

ANY = "*"
_CLASS = re.compile(r"[a-z]+")


def quota_class(ec2_type: str) -> str:
    """The class of types whose vCPUs count together on demand: `p` of `p6-b200.48xlarge`, `trn`, `inf`.

    EC2 User Guide, "Amazon EC2 instance type quotas". There G and VT share a class, and so do the standard
    families; here each stands alone.
    """
    found = _CLASS.match(ec2_type)
    return found.group() if found else ec2_type


class FleetKind(StrEnum):
    """Whether the machines exist."""

    REHEARSAL = "rehearsal"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class OfferLifetimes:
    """How long after its issue minute an offering may be bought, in yard time."""

    immediate: timedelta = timedelta(minutes=20)
    scheduled: timedelta = timedelta(minutes=60)


@dataclass(frozen=True, slots=True)
class BlockSettings:
    """How Capacity Blocks are sold.

    `offerings_max` is the most that one search finds (EC2 User Guide: 6). A payment takes the fleet's
    `payment_delay`, or, with `payment_delay_max`, a span drawn between the two for each block; in yard time.
    `shown_after_end` is how long an ended block is still described.
    """

    offerings_max: int = 6
    payment_delay_max: timedelta | None = None
    shown_after_end: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class InstanceSettings:
    """How long an EC2 instance takes, in yard time.

    `starting` from the launch until it runs. `cleaning` from its end until its host has been cleaned and its
    place in a Capacity Block is free again (EC2 User Guide: "several minutes").
    """

    starting: timedelta = timedelta(seconds=30)
    cleaning: timedelta = timedelta(minutes=10)


class QuotaKind(StrEnum):
    """The kinds of limits, by their keys in the fleet file and their names in `Quotas`."""

    TRAINING_PLANS = "training_plans"
    RESERVED_CAPACITY = "reserved_capacity"
    ENDPOINT_USAGE = "endpoint_usage"
    TRAINING_USAGE = "training_usage"
    CLUSTER_USAGE = "cluster_usage"
    BLOCK_VCPUS = "block_vcpus"
    ON_DEMAND_VCPUS = "on_demand_vcpus"
    SPOT_VCPUS = "spot_vcpus"


@dataclass(frozen=True, slots=True)
class Quotas:
    """Limits of one account in one Region. The mappings go by SageMaker type, `block_vcpus` by family of
    EC2 types (`p5` of `p5.48xlarge`), `on_demand_vcpus` and `spot_vcpus` by class of types (`p`); `*` is for
    the unnamed. Nothing that a yard serves uses up `training_usage`, `cluster_usage` and `spot_vcpus`: they
    can be read and raised only."""

    training_plans: int = 25
    reserved_capacity: Mapping[str, int] = field(default_factory=lambda: {ANY: 256})
    endpoint_usage: Mapping[str, int] = field(default_factory=lambda: {ANY: 256})
    training_usage: Mapping[str, int] = field(default_factory=lambda: {ANY: 256})
    cluster_usage: Mapping[str, int] = field(default_factory=lambda: {ANY: 256})
    block_vcpus: Mapping[str, int] = field(default_factory=lambda: {ANY: 1_000_000})
    on_demand_vcpus: Mapping[str, int] = field(default_factory=lambda: {ANY: 1_000_000})
    spot_vcpus: Mapping[str, int] = field(default_factory=lambda: {ANY: 1_000_000})

    def of(self, kind: QuotaKind, name: str) -> int:
        """The limit of this kind for `name`, which counts nothing where there is one of the kind."""
        if kind is QuotaKind.TRAINING_PLANS:
            return self.training_plans
        limits: Mapping[str, int] = getattr(self, kind.value)
        return limits.get(name, limits[ANY])

    def raised(self, granted: Iterable[tuple[QuotaKind, str, int]]) -> Quotas:
        """These limits with each granted (kind, name, value) in place of a lower one."""
        changed: dict[str, Any] = {}
        for kind, name, value in granted:
            limit = max(value, self.of(kind, name))
            if kind is QuotaKind.TRAINING_PLANS:
                changed[kind.value] = limit
            else:
                changed[kind.value] = {**changed.get(kind.value, getattr(self, kind.value)), name: limit}
        return replace(self, **changed) if changed else self

    def reserved_capacity_of(self, ml_type: str) -> int:
        """Most instances of `ml_type` in reserved capacity across training plans."""
        return self.reserved_capacity.get(ml_type, self.reserved_capacity[ANY])

    def endpoint_usage_of(self, ml_type: str) -> int:
        """Most instances of `ml_type` in endpoints (`<ml_type> for endpoint usage`)."""
        return self.endpoint_usage.get(ml_type, self.endpoint_usage[ANY])

    def block_vcpus_of(self, family: str) -> int:
        """Most vCPUs of concurrently active Capacity Blocks of types of `family`."""
        return self.block_vcpus.get(family, self.block_vcpus[ANY])

    def on_demand_vcpus_of(self, name: str) -> int:
        """Most vCPUs of the class that run on demand (`p`: "Running On-Demand P instances")."""
        return self.on_demand_vcpus.get(name, self.on_demand_vcpus[ANY])


@dataclass(frozen=True, slots=True)
class QuotaIncreases:
    """What becomes of requests to raise a quota: each is decided `delay` yard time later, granted up to the
    value that `most` has for its kind (`*` for the kinds it does not name), else denied."""

    delay: timedelta = timedelta(days=1)
    most: Mapping[str, int] = field(default_factory=lambda: {ANY: 1_000_000})

    def grants(self, kind: QuotaKind, value: int) -> bool:
        """Whether so much is granted."""
        return value <= self.most.get(kind.value, self.most[ANY])


@dataclass(frozen=True, slots=True)
class Throttle:
    """A token bucket per account and Region: `size` calls at once, `refill_per_s` more a real second.

    One bucket is shared by all operations of `service` that match `operations` (names, `*` allowed).
    """

    name: str
    service: str
    operations: tuple[str, ...]
    size: int
    refill_per_s: Decimal
    source: str | None = None
    assumed: bool = False

    def covers(self, service: str, operation: str) -> bool:
        """Whether a call of `operation` takes a token of this bucket."""
        return service == self.service and any(fnmatchcase(operation, one) for one in self.operations)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Where workloads run. `images` maps an image name to a command line.

    `memory_mib` and `processes` limit one container. `network` grants containers the network.
    """

    kind: str = "local"
    images: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    memory_mib: int = 2048
    processes: int = 256
    network: bool = False


@dataclass(frozen=True, slots=True)
class S3Credentials:
    """Keys with which an account's artefacts are fetched."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class S3Settings:
    """The S3 of an own fleet. `endpoint_url` None = AWS's own; `credentials` by account id."""

    endpoint_url: str | None
    credentials: Mapping[str, S3Credentials]


@dataclass(frozen=True, slots=True)
class DemandLevel:
    """How much an outside account wants of the pools that match; None matches everything.

    `load` is the asked share of the reservable hosts, averaged over a year: at 1.0 as much is asked for as
    there is. `keep_free` reservable hosts of each such pool are never bought by it.
    """

    hardware: str | None
    region: str | None
    load: Decimal
    keep_free: int


@dataclass(frozen=True, slots=True)
class DemandSettings:
    """Background demand: the same `seed` brings the same arrivals. The first level that matches holds."""

    seed: int
    levels: tuple[DemandLevel, ...]

    def level_of(self, pool: Pool) -> DemandLevel | None:
        """The level for `pool`; None = nobody outside wants it."""
        for level in self.levels:
            if level.hardware in (None, pool.hardware) and level.region in (None, pool.region):
                return level
        return None


@dataclass(frozen=True)
class Fleet:
    """What a yard has and on what terms it sells. Read from a fleet file, never changed while the yard runs.

    `pools` goes by pool key, `regions` by name. `price_lists` are in order of their dates;
    `on_demand_rates` and `hosting_rates` have no date of effect. `payment_delay` is yard time from purchase
    to payment. `demand` None = no outside account. `s3` None = the rehearsal's own S3.
    """

    name: str
    kind: FleetKind
    regions: Mapping[str, Region]
    pools: Mapping[str, Pool]
    price_lists: tuple[PriceList, ...]
    on_demand_rates: tuple[Rate, ...] = ()
    hosting_rates: tuple[Rate, ...] = ()
    quotas: Quotas = field(default_factory=Quotas)
    quota_increases: QuotaIncreases = field(default_factory=QuotaIncreases)
    payment_delay: timedelta = timedelta(minutes=5)
    lifetimes: OfferLifetimes = field(default_factory=OfferLifetimes)
    blocks: BlockSettings = field(default_factory=BlockSettings)
    instances: InstanceSettings = field(default_factory=InstanceSettings)
    throttles: tuple[Throttle, ...] = ()
    engine: EngineSettings = field(default_factory=EngineSettings)
    s3: S3Settings | None = None
    demand: DemandSettings | None = None

    @property
    def is_rehearsal(self) -> bool:
        """Whether the machines are make-believe."""
        return self.kind is FleetKind.REHEARSAL

    @cached_property
    def zones(self) -> Mapping[str, Zone]:
        """Every zone by its id."""
        return {zone.id: zone for region in self.regions.values() for zone in region.zones}

    @cached_property
    def _by_face(self) -> Mapping[tuple[str, str, str], tuple[Pool, ...]]:
        found: dict[tuple[str, str, str], tuple[Pool, ...]] = {}
        for pool in self.pools.values():
            for name, face in pool.faces.items():
                key = (pool.region, name, face.instance_type)
                found[key] = (*found.get(key, ()), pool)
        return found

    def throttle_for(self, service: str, operation: str) -> Throttle | None:
        """The first bucket of the file that covers the operation; None = not throttled."""
        return next((one for one in self.throttles if one.covers(service, operation)), None)


def pools_for(
    fleet: Fleet,
    region: str,
    *,
    face: str = SAGEMAKER,
    type: str,  # noqa: A002 - AWS's word
) -> tuple[Pool, ...]:
    """The pools of `region` that `face` (`ec2`, `sagemaker`) knows as instance type `type`, in file order."""
    return fleet._by_face.get((region, face, type), ())
