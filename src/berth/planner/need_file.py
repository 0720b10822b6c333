"""Reading a need from a TOML file and from flags; flags win. Every complaint says what would be right."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from berth.planner.launch import Launch
from berth.planner.need import NAME_PATTERN, Deployment, Goal, Need, Subnet
from berth.planner.need_accounts import read_accounts
from berth.planner.need_parts import read_parts, read_planned
from berth.planner.need_tables import (
    read_deployment,
    read_launch,
    read_money,
    read_rates,
    read_subnets,
    read_tags,
    read_zone_ids,
)
from berth.planner.need_times import Times, read_time_zone
from berth.planner.need_types import TYPE_KEYS
from berth.planner.need_ways import read_same_zone, read_ways
from berth.planner.own_rates import OwnRates
from berth.planner.part import Part
from berth.planner.platforms import LINUX, PLATFORMS
from berth.terms.durations import read_range, spoken
from berth.terms.money import Money
from berth.terms.settings import Complaint, Section, SettingsError, read_settings
from berth.terms.ways import Target

FLAGS = {
    "name": "--name",
    "type": "--type",
    "accelerators": "--accelerators",
    "count": "--count",
    "count_wanted": "--count-wanted",
    "duration": "--duration",
    "goal": "--goal",
    "target": "--target",
    "regions": "--region",
    "zone_ids": "--zone-id",
    "subnet_zones": "--subnet-zone",
    "same_zone": "--same-zone",
    "ways": "--only-way",
    "not_ways": "--not-way",
    "start": "--start",
    "earliest_start": "--from",
    "latest_end": "--until",
    "gap_at_most": "--gap-at-most",
    "interruptible": "--interruptible",
    "checkpoint_every": "--checkpoint-every",
    "retryable": "--retryable",
    "startup": "--startup",
    "budget": "--budget",
    "account": "--account",
    "utilisation": "--utilisation",
    "time_zone": "--time-zone",
    "platform": "--platform",
}
"""Every key of a need file that is no table, and its flag. `instance_type` is the older word for `type`."""
_NUMBERS = {"count", "count_wanted"}
_YES_NO = {"interruptible", "retryable", "same_zone"}
_TARGETS = tuple(t.value for t in Target)
_SHORTEST = timedelta(hours=1)
# The longest term of a Savings Plan; how long each way sells is its own matter.
_LONGEST = timedelta(days=3 * 365)
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
    text: str, source: str, now: datetime | None, flags: Mapping[str, str | Sequence[str]] | None = None
) -> Need:
    """The need in the TOML `text` of file `source`, with `flags` (key of FLAGS to what was typed) over it.

    Raises NeedError with everything that is wrong. `now` decides what words like `Monday` mean and what lies
    in the past; None, where the clock to ask is not known yet, leaves both open: what moves with it is None.
    """
    both = _Both(read_settings(text, source), _flags_section(flags or {}), source, now)
    return both.need()


def need_from_flags(flags: Mapping[str, str | Sequence[str]], now: datetime | None) -> Need:
    """The need that the flags alone describe. Raises NeedError."""
    return read_need("", "(no need file)", now, flags)


def _flags_section(flags: Mapping[str, str | Sequence[str]]) -> Section:
    lines = []
    for key, typed in flags.items():
        value: Any = typed if isinstance(typed, str) else list(typed)
        if key in _NUMBERS and isinstance(typed, str) and typed.lstrip("-").isdecimal():
            value = int(typed)
        if key in _YES_NO and typed in {"yes", "no"}:
            value = typed == "yes"
        lines.append(f"{key} = {json.dumps(value)}")
    return read_settings("\n".join(lines), "flags")


@dataclass(slots=True)
class _Both:
    """The file and the flags, read together."""

    file: Section
    flags: Section
    source: str
    now: datetime | None

    def at(self, key: str) -> Section:
        """Where `key` is read: the flags if it was typed, else the file."""
        if self.flags.has(key):
            self.file.raw(key, None)
            return self.flags
        return self.file

    def types_at(self, key: str) -> Section:
        """As `at`, but a typed word for the type stands over each word of the file for it."""
        if key not in TYPE_KEYS or not any(self.flags.has(word) for word in TYPE_KEYS):
            return self.at(key)
        self.file.raw(key, None)
        return self.flags

    def need(self) -> Need:
        times = Times(self.at, read_time_zone(self.at), self.now)
        target = Target(self._target_section().choice("target", _TARGETS, Target.ENDPOINT.value))
        planned, beside = self._parts(target)
        first, *others = planned.types
        duration, longest = self._duration()
        start, earliest = times.start(), times.earliest()
        made = Need(
            name=self._required("name").text("name", "", pattern=NAME_PATTERN, hint=_NAME_HINT),
            instance_type=first.instance_type,
            count=first.count,
            count_wanted=first.wanted if first.wanted > first.count else None,
            alternatives=tuple(others),
            accelerators=planned.accelerators,
            profile=planned.profile,
            duration=duration,
            longest=longest,
            goal=self._goal(is_range=longest is not None),
            target=planned.target,
            regions=self.at("regions").texts("regions", (), pattern=r"[a-z]{2,}(-[a-z0-9]+)+"),
            zone_ids=read_zone_ids(self.at("zone_ids"), "zone_ids"),
            subnets=self._subnets(),
            start=start,
            earliest_start=earliest,
            latest_end=times.latest(earliest),
            readings=tuple(times.readings),
            ways=read_ways(self.at),
            same_zone=read_same_zone(self.at),
            budget=self._budget(),
            account=(pinned := self._account()),
            accounts=read_accounts(self.file.tables("accounts"), pinned),
            utilisation=self._utilisation(),
            time_zone=times.zone.key if times.zone else None,
            deployment=self._deployment(),
            platform=self._platform(planned.target),
            tags=self._tags(),
            launch=self._launch(planned.target),
            rates=self._rates(),
            part_name=planned.name,
            reserve=planned.reserve,
            beside=beside,
            **self._tolerances(),
        )
        times.check(made)
        self._check_lengths(made)
        self._check_names(made)
        self._finish()
        return made

    def _required(self, key: str) -> Section:
        section = self.at(key)
        if not section.has(key):
            section.complain(None, f"{key} is missing; write it there or use {FLAGS[key]}")
        return section

    def _value(self, key: str) -> Any:
        return self.at(key).raw(key, None)

    def _target_section(self) -> Section:
        """With parts, each may say its own target; without, there is one and it must be said."""
        section = self.at("target")
        if section.has("target") or all("target" in part for part in self._written_parts()):
            return section
        return self._required("target")

    def _written_parts(self) -> list[Mapping[str, Any]]:
        written = self.file.raw("parts", [])
        parts: list[Mapping[str, Any]] = []
        if isinstance(written, list):
            parts += [part for part in written if isinstance(part, dict)]
        return parts or [{}]

    def _parts(self, target: Target) -> tuple[Part, tuple[Part, ...]]:
        """The part that is planned, and those beside it: the first that is held ahead is planned."""
        sections = self.file.tables("parts")
        if not sections:
            return read_planned(self.types_at, target), ()
        for key in (*TYPE_KEYS, "count", "count_wanted", "profile"):
            if self.at(key).raw(key, None) is not None:
                self.at(key).complain(key, f"each of the [[parts]] says its own: leave out {key} here")
        parts = read_parts(sections, target)
        planned = next((part for part in parts if part.reserve), None)
        if planned is None:
            self.file.complain("parts", "none is held ahead, so there is nothing to plan: reserve = true")
            planned = parts[0]
        return planned, tuple(part for part in parts if part is not planned)

    # -- how long ------------------------------------------------------------------------------------------
    def _duration(self) -> tuple[timedelta, timedelta | None]:
        """The shortest and the longest duration; the longest is None where one is written."""
        section = self._required("duration")
        value = section.raw("duration", None)
        if not isinstance(value, str) or ".." not in value:
            span = section.duration("duration", timedelta(0)) or _SHORTEST
            self._check_span(section, span)
            return span, None
        try:
            shortest, longest = read_range(value)
            self._check_span(section, shortest)
            self._check_span(section, longest)
            return shortest, longest if longest > shortest else None
        except ValueError as problem:
            section.complain("duration", str(problem))
            return _SHORTEST, None

    def _check_span(self, section: Section, span: timedelta) -> None:
        if section.has("duration") and not _SHORTEST <= span <= _LONGEST:
            section.complain("duration", f"must be from 1 h to 1,095 days, not {spoken(span)}")

    def _goal(self, *, is_range: bool) -> Goal:
        section = self.at("goal")
        goal = Goal(section.choice("goal", tuple(Goal), Goal.SHORTEST))
        if section.has("goal") and not is_range and goal is not Goal.CHEAPEST:
            section.complain("goal", 'chooses among durations, and there is one: write a range like "5d..9d"')
        if goal is Goal.LONGEST and self._value("budget") is None:
            section.complain("goal", "the longest that the budget pays needs a budget")
        return goal

    def _tolerances(self) -> dict[str, Any]:
        checkpoint = self._span("checkpoint_every")
        interruptible = self._yes_no("interruptible")
        if checkpoint is not None and interruptible is False:
            self.at("checkpoint_every").complain(
                "checkpoint_every", "work that keeps checkpoints is interruptible: leave out one of them"
            )
        return {
            "gap_at_most": self._span("gap_at_most", zero=True),
            "interruptible": True if checkpoint is not None else interruptible,
            "checkpoint_every": checkpoint,
            "retryable": self._yes_no("retryable"),
            "startup": self._span("startup", zero=True),
        }

    def _span(self, key: str, *, zero: bool = False) -> timedelta | None:
        """A span of time, "0h" too where `zero`; None where nothing is written."""
        section = self.at(key)
        if not section.has(key):
            return None
        if zero and re.fullmatch(r"0\s*[a-z]+", str(section.raw(key))):
            return timedelta(0)
        return section.duration(key)

    def _yes_no(self, key: str) -> bool | None:
        section = self.at(key)
        return section.flag(key) if section.has(key) else None

    # -- where ---------------------------------------------------------------------------------------------
    def _subnets(self) -> tuple[Subnet, ...]:
        sections = self.file.tables("subnets")
        zones = read_zone_ids(self.at("subnet_zones"), "subnet_zones")
        if sections and zones:
            self.at("subnet_zones").complain(
                "subnet_zones", "the [[subnets]] say where they are: leave out one of them"
            )
        return read_subnets(sections) or tuple(Subnet(zone) for zone in zones)

    def _rates(self) -> OwnRates | None:
        section = self.file.table("rates")
        return None if section is None else read_rates(section)

    def _budget(self) -> Money | None:
        value = self._value("budget")
        if value is None:
            return None
        try:
            return read_money(value)
        except ValueError as problem:
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

    def _check_lengths(self, need: Need) -> None:
        late = [level for level in need.profile if level.offset >= need.duration]
        if late:
            self.at("profile").complain(
                "profile",
                f"a level from {spoken(late[0].offset)} on is not within the shortest duration "
                f"of {spoken(need.duration)}",
            )
        if need.startup is not None and need.startup >= need.duration:
            self.at("startup").complain(
                "startup", f"takes all of the {spoken(need.duration)}: nothing would be left to use"
            )

    def _check_names(self, need: Need) -> None:
        """A part that is held by itself is a need of its own, and its name a name of orders."""
        for part in need.beside:
            alone = need.alone(part).name
            if part.reserve and not re.fullmatch(NAME_PATTERN, alone):
                self.file.complain(
                    "parts",
                    f"{alone} names what is bought for {part.name}, and is longer than 40: shorten it",
                )

    def _finish(self) -> None:
        in_file, in_flags = _complaints(self.file), _complaints(self.flags)
        if in_file or in_flags:
            raise NeedError(self.source, in_file, in_flags)


def _complaints(section: Section) -> tuple[Complaint, ...]:
    try:
        section.finish()
    except SettingsError as found:
        return found.complaints
    return ()
