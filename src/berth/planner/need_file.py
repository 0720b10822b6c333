"""Reading a need from a TOML file and from flags; flags win. Every complaint says what would be right."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo

from berth.facts.instance_types import ML_PREFIX, InstanceType, instance_type, instance_types
from berth.planner.framework.limits import LONGEST, PLAN_COUNTS
from berth.planner.launch import Launch
from berth.planner.local_dates import day_end, day_start, read_day, read_instant, read_zone
from berth.planner.need import NAME_PATTERN, Deployment, Need
from berth.planner.need_parts import read_deployment, read_launch, read_tags
from berth.planner.platforms import LINUX, PLATFORMS
from berth.terms.durations import spoken
from berth.terms.money import Money
from berth.terms.settings import Complaint, Section, SettingsError, read_settings
from berth.terms.ways import Target

FLAGS = {
    "name": "--name",
    "instance_type": "--type",
    "count": "--count",
    "duration": "--duration",
    "target": "--target",
    "regions": "--region",
    "zone_ids": "--zone-id",
    "start": "--start",
    "earliest_start": "--from",
    "latest_end": "--until",
    "budget": "--budget",
    "account": "--account",
    "utilisation": "--utilisation",
    "time_zone": "--time-zone",
    "platform": "--platform",
}
_TARGETS = tuple(t.value for t in Target)
_LAST_YEAR = 2999  # far beyond any offer, and far enough from the end of the calendar to add a duration
_SHORTEST = timedelta(hours=1)
_NAME_HINT = "lower-case letters, digits and hyphens, at most 40, a letter or digit first"


class NeedError(SettingsError):
    """A need that cannot be: complaints about the file name its lines, those about flags name the flag."""

    def __init__(self, source: str, in_file: Sequence[Complaint], in_flags: Sequence[Complaint]) -> None:
        self._in_flags = tuple(in_flags)
        super().__init__(source, in_file)

    def lines(self) -> list[str]:
        """One printable line a complaint."""
        about_flags = [f"{FLAGS.get(c.key, c.key)}: {c.message}" for c in self._in_flags]
        return [*super().lines(), *about_flags]


def read_need(
    text: str, source: str, now: datetime, flags: Mapping[str, str | Sequence[str]] | None = None
) -> Need:
    """The need in the TOML `text` of file `source`, with `flags` (key of FLAGS to what was typed) over it.

    Raises NeedError with everything that is wrong; `now` decides what lies in the past.
    """
    both = _Both(read_settings(text, source), _flags_section(flags or {}), source, now)
    return both.need()


def need_from_flags(flags: Mapping[str, str | Sequence[str]], now: datetime) -> Need:
    """The need that the flags alone describe. Raises NeedError."""
    return read_need("", "(no need file)", now, flags)


def _flags_section(flags: Mapping[str, str | Sequence[str]]) -> Section:
    lines = []
    for key, typed in flags.items():
        value: Any = typed if isinstance(typed, str) else list(typed)
        if key == "count" and isinstance(typed, str) and typed.lstrip("-").isdecimal():
            value = int(typed)
        lines.append(f"{key} = {json.dumps(value)}")
    return read_settings("\n".join(lines), "flags")


@dataclass(slots=True)
class _Both:
    """The file and the flags, read together."""

    file: Section
    flags: Section
    source: str
    now: datetime

    def at(self, key: str) -> Section:
        """Where `key` is read: the flags if it was typed, else the file."""
        if self.flags.has(key):
            self.file.raw(key, None)
            return self.flags
        return self.file

    def need(self) -> Need:
        zone = self._zone()
        target = Target(self._required("target").choice("target", _TARGETS, Target.ENDPOINT.value))
        kind = self._instance_type(target)
        start = self._instant("start", zone)
        earliest, latest = self._earliest(zone), self._latest(zone)
        made = Need(
            name=self._required("name").text("name", "", pattern=NAME_PATTERN, hint=_NAME_HINT),
            instance_type=kind,
            count=self._count(target),
            duration=self._duration(),
            target=target,
            regions=self.at("regions").texts("regions", (), pattern=r"[a-z]{2,}(-[a-z0-9]+)+"),
            zone_ids=self._zone_ids(),
            start=start,
            earliest_start=earliest,
            latest_end=latest,
            budget=self._budget(),
            account=self._account(),
            utilisation=self._utilisation(),
            time_zone=zone.key if zone else None,
            deployment=self._deployment(),
            platform=self._platform(target),
            tags=self._tags(),
            launch=self._launch(target),
        )
        self._check_times(made)
        self._finish()
        return made

    def _required(self, key: str) -> Section:
        section = self.at(key)
        if not section.has(key):
            section.complain(None, f"{key} is missing; write it there or use {FLAGS[key]}")
        return section

    def _value(self, key: str) -> Any:
        return self.at(key).raw(key, None)

    def _zone(self) -> ZoneInfo | None:
        name = self.at("time_zone").text("time_zone", "")
        try:
            return read_zone(name) if name else None
        except ValueError as problem:
            self.at("time_zone").complain("time_zone", str(problem))
            return None

    def _instance_type(self, target: Target) -> str:
        name = self._required("instance_type").text("instance_type", "")
        if name and self._value("target") in _TARGETS:
            try:
                check_type(name, target)
            except ValueError as problem:
                self.at("instance_type").complain("instance_type", str(problem))
        return name

    def _count(self, target: Target) -> int:
        section = self.at("count")
        count = section.integer("count", 1, low=1, high=256)
        if target is not Target.INSTANCES and count not in PLAN_COUNTS:
            nearest = [c for c in PLAN_COUNTS if c < count][-1:] + [c for c in PLAN_COUNTS if c > count][:1]
            section.complain(
                "count",
                f"plans are sold in 1, 2, 4, 8, 16, 32 or 64 instances, not {count}; "
                f"nearest: {' or '.join(map(str, nearest))}",
            )
        return count

    def _duration(self) -> timedelta:
        section = self._required("duration")
        span = section.duration("duration", timedelta(0))
        if section.has("duration") and span and not _SHORTEST <= span <= LONGEST:
            section.complain("duration", f"must be from 1 h to 182 days, not {spoken(span)}")
        return span or _SHORTEST

    def _zone_ids(self) -> tuple[str, ...]:
        section = self.at("zone_ids")
        found = section.texts("zone_ids", ())
        for zone_id in found:
            if "-az" not in zone_id:
                section.complain(
                    "zone_ids",
                    f"{zone_id!r} is no zone id; write ids like use1-az6 (names like us-east-1a mean "
                    "another zone in every account)",
                )
        return found

    def _instant(self, key: str, zone: ZoneInfo | None) -> datetime | None:
        value = self._value(key)
        if value is None:
            return None
        try:
            if isinstance(value, date) and not isinstance(value, datetime):
                raise ValueError("must be an instant with a time of day, like 2026-12-02T11:30Z")
            return read_instant(value, zone)
        except ValueError as problem:
            self.at(key).complain(key, str(problem))
            return None

    def _earliest(self, zone: ZoneInfo | None) -> datetime | None:
        day = self._day("earliest_start", zone)
        if day is None or zone is None:
            return self._instant("earliest_start", zone) if day is None else None
        if day_end(day, zone) <= self.now:
            self.at("earliest_start").complain("earliest_start", f"{day} is over in {zone.key}")
        # A day that has begun means from now on: its midnight is in the past for the service.
        return max(day_start(day, zone), self.now)

    def _latest(self, zone: ZoneInfo | None) -> datetime | None:
        day = self._day("latest_end", zone)
        if day is None or zone is None:
            return self._instant("latest_end", zone) if day is None else None
        return day_end(day, zone)

    def _day(self, key: str, zone: ZoneInfo | None) -> date | None:
        try:
            day = read_day(self._value(key), zone, self.now)
            if day is not None and zone is not None:
                day_start(day, zone), day_end(day, zone)  # neither exists at the ends of the calendar
            return day
        except ValueError as problem:
            self.at(key).complain(key, str(problem))
            # What stands in is never used: the complaint ends the reading.
            return self.now.date()

    def _budget(self) -> Money | None:
        value = self._value("budget")
        if value is None:
            return None
        try:
            budget = Money.parse(str(value)) if isinstance(value, str) else Money(Decimal(value))
            if budget.amount <= 0:
                raise ValueError("must be more than zero")
            return budget
        except (ValueError, TypeError, InvalidOperation) as problem:
            self.at("budget").complain("budget", str(problem))
            return None

    def _account(self) -> str | None:
        hint = "an account has twelve digits, in quotes"
        text = self.at("account").text("account", "", pattern=r"\d{12}|\d{4}-\d{4}-\d{4}", hint=hint)
        return text.replace("-", "") or None

    def _utilisation(self) -> Decimal | None:
        value = self._value("utilisation")
        if value is None:
            return None
        try:
            share = Decimal(str(value))
        except InvalidOperation:
            share = Decimal(0)
        if not (share.is_finite() and 0 < share <= 1):
            self.at("utilisation").complain("utilisation", f"must be over 0 and at most 1, not {value}")
            return None
        return share

    def _deployment(self) -> Deployment | None:
        section = self.file.table("deployment")
        return None if section is None else read_deployment(section)

    def _platform(self, target: Target) -> str:
        section = self.at("platform")
        platform = section.choice("platform", PLATFORMS, LINUX)
        if platform != LINUX and target is not Target.INSTANCES:
            section.complain("platform", "is for target instances; SageMaker chooses its own")
        return platform

    def _tags(self) -> tuple[tuple[str, str], ...]:
        section = self.file.table("tags")
        return () if section is None else read_tags(section)

    def _launch(self, target: Target) -> Launch | None:
        section = self.file.table("launch")
        if section is None:
            return None
        if target is not Target.INSTANCES:
            section.complain(None, f"[launch] is for target instances; {target} needs [deployment]")
        return read_launch(section)

    def _check_times(self, need: Need) -> None:
        for key in ("start", "earliest_start", "latest_end"):
            instant = getattr(need, key)
            if instant is not None and instant < self.now:
                self.at(key).complain(key, f"{_minute(instant)} is past; it is {_minute(self.now)}")
            if instant is not None and instant.year > _LAST_YEAR:
                self.at(key).complain(key, f"{_minute(instant)} is after the year {_LAST_YEAR}")
                return
        if need.start and (need.earliest_start or need.latest_end):
            self.at("start").complain("start", "is fixed already: leave out earliest_start and latest_end")
            return
        begin = need.earliest_start or self.now
        if need.latest_end and self.now <= need.latest_end < begin + need.duration:
            self.at("latest_end").complain(
                "latest_end",
                f"leaves {spoken(max(need.latest_end - begin, timedelta(0)))} after the earliest start, "
                f"less than the duration of {spoken(need.duration)}",
            )

    def _finish(self) -> None:
        in_file, in_flags = _complaints(self.file), _complaints(self.flags)
        if in_file or in_flags:
            raise NeedError(self.source, in_file, in_flags)


def _minute(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}Z"


def _complaints(section: Section) -> tuple[Complaint, ...]:
    try:
        section.finish()
    except SettingsError as found:
        return found.complaints
    return ()


def check_type(name: str, target: Target) -> InstanceType:
    """The type called `name`, if `target` can have it. Raises ValueError saying which name would be right."""
    on_sagemaker = target is not Target.INSTANCES
    bare = name.removeprefix(ML_PREFIX)
    kind = instance_type(bare)
    if kind is None:
        prefix = ML_PREFIX if on_sagemaker else ""
        near = difflib.get_close_matches(bare, [t.name for t in instance_types()], 3, 0.5)
        hint = f"; near: {', '.join(prefix + n for n in near)}" if near else ""
        raise ValueError(f"{name!r} is not a known accelerated instance type{hint}")
    right = kind.ml_name if on_sagemaker else kind.name
    if name != right:
        who = "SageMaker" if on_sagemaker else "EC2"
        raise ValueError(f"{name!r}: {who} calls it {right!r}, and target {target.value} is {who}'s")
    if kind.is_ultraserver:
        raise ValueError(f"{name} is a whole UltraServer, sold through the AWS account team only")
    hosts = {
        Target.ENDPOINT: kind.sagemaker_hosting,
        Target.TRAINING_JOB: kind.sagemaker_training,
        Target.HYPERPOD_CLUSTER: kind.sagemaker_hyperpod,
    }.get(target, True)
    if not hosts:
        raise ValueError(f"{name} does not exist for target {target.value}")
    return kind
