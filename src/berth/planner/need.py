"""The need: what somebody wants, as a value. Reading one from a file or from flags is `need_file`'s work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from berth.planner.launch import Launch
from berth.planner.offers import money_from_json, money_json
from berth.planner.platforms import LINUX
from berth.terms.instants import iso, parse_instant
from berth.terms.money import Money
from berth.terms.ways import Target
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


@dataclass(frozen=True, slots=True)
class Need:
    """What somebody wants.

    `instance_type` carries SageMaker's prefix (`ml.trn1.32xlarge`) for SageMaker's targets and none for
    `instances`. `duration` is the time to hold and to pay; what can be used of it is shorter and is shown.
    `zone_ids` empty means any zone. `start` is a fixed start; without one the window may lie anywhere from
    `earliest_start` (None: now) to `latest_end` (None: as far ahead as the way sells). `utilisation` is the
    share of the usable time in which something will run, from 0 (exclusive) to 1; None: not known. `budget`
    bounds the total; `account` pins the account; `time_zone` is an IANA name in which local dates were read
    and local times are shown beside UTC. None always means: not said.

    `platform` is the operating system platform of instances, in EC2's words; SageMaker chooses its own.
    `tags` say whose need it is (`team = "a"`): what the account owns and somebody else has tagged is not
    counted. `launch` says how instances are launched, `deployment` what SageMaker runs.
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

    @property
    def zone(self) -> ZoneInfo | None:
        """The zone to show local times in, None when none was named."""
        return ZoneInfo(self.time_zone) if self.time_zone else None

    @property
    def fixed_window(self) -> Window | None:
        """The span that a fixed start asks for; None when the start may move."""
        return Window(self.start, self.start + self.duration) if self.start else None

    @property
    def is_endpoint(self) -> bool:
        """Whether an inference endpoint is what will run."""
        return self.target is Target.ENDPOINT

    def handle(self, number: int) -> str:
        """The name by which `berth buy` knows choice `number`: `eval-1#1`."""
        return f"{self.name}#{number}"

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
            # Absent from documents of the first release.
            platform=value.get("platform", LINUX),
            tags=tuple(sorted(value.get("tags", {}).items())),
            launch=Launch.from_json(value["launch"]) if value.get("launch") else None,
        )


NEED_KEYS = tuple(f.name for f in fields(Need))


def _seconds(span: timedelta | None) -> int | None:
    return None if span is None else int(span.total_seconds())


def _span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def _iso(instant: datetime | None) -> str | None:
    return None if instant is None else iso(instant)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)
