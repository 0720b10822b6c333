"""Reading what a part may be: types or accelerators, least and wanted count, the count over time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from berth.facts.instance_types import instance_type
from berth.planner.acceptable import check_ec2_name, check_type, types_for
from berth.planner.part import Accelerators, Level, TypeCount, check_count, check_profile
from berth.terms.durations import parse_duration
from berth.terms.settings import Section
from berth.terms.ways import Target

At = Callable[[str], Section]
"""Where a key is read: a flag stands over the file."""

TYPE_KEYS = ("type", "instance_type", "accelerators")
_SHORT = re.compile(r"([^:]+):(\d+)(?::(\d+(?:\.\d+)?))?")
_ACCELERATORS_HINT = 'write {kind = "H200", count = 16}, with least_memory_gib too if you like, or "H200:16"'
# What a complaint leaves in the place of a value; never used, since the complaint ends the reading.
_STAND_IN = TypeCount("", 1, 1)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the keys of one part say."""

    types: tuple[TypeCount, ...]
    profile: tuple[Level, ...] = ()
    accelerators: Accelerators | None = None


def read_wanted(at: At, target: Target, *, held: bool = True) -> Wanted:
    """The types and counts of a part; `held` False: it is not bought ahead, so any EC2 type will do.

    Notes a complaint for each thing that is wrong.
    """
    return _Reader(at, target, held).wanted()


@dataclass(slots=True)
class _Reader:
    at: At
    target: Target
    held: bool

    def wanted(self) -> Wanted:
        given = [key for key in TYPE_KEYS if self.at(key).has(key)]
        for key in TYPE_KEYS:
            self.at(key).raw(key, None)
        if len(given) != 1:
            self._one_of_them(given)
            given = given[:1]
        if given == ["accelerators"]:
            return self._from_accelerators()
        names = self._names(given[0]) if given else ()
        profile = self._profile()
        least, most = self._counts(max(level.count for level in profile)) if profile else self._counts(None)
        return Wanted(tuple(TypeCount(n, least, most) for n in names) or (_STAND_IN,), profile)

    def _one_of_them(self, given: list[str]) -> None:
        section = self.at(given[-1] if given else "type")
        if given:
            section.complain(given[-1], f"{given[0]} says already what it may be: leave out one of them")
        else:
            section.complain(None, "type is missing; write it there or use --type (or name accelerators)")

    # -- types ---------------------------------------------------------------------------------------------
    def _names(self, key: str) -> tuple[str, ...]:
        section = self.at(key)
        value = section.raw(key, None)
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
            section.complain(key, 'must be a type in quotes like "p5.48xlarge", or a list of them')
            return ()
        for name in names:
            self._check(section, key, name)
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            section.complain(key, f"{twice[0]} is named twice")
        return tuple(dict.fromkeys(names))

    def _check(self, section: Section, key: str, name: str) -> None:
        try:
            if self.held or self.target is not Target.INSTANCES or instance_type(name) is not None:
                check_type(name, self.target)
            else:
                check_ec2_name(name)
        except ValueError as problem:
            section.complain(key, str(problem))

    # -- counts --------------------------------------------------------------------------------------------
    def _counts(self, peak: int | None) -> tuple[int, int]:
        """The least and the wanted count; `peak` is the profile's, which then stands for both."""
        if peak is not None:
            for key in ("count", "count_wanted"):
                if self.at(key).raw(key, None) is not None:
                    self.at(key).complain(key, f"the profile says how many: leave out {key}")
            return peak, peak
        least = self._count("count", 1)
        wanted = self._count("count_wanted", least)
        if wanted < least:
            self.at("count_wanted").complain(
                "count_wanted", f"must be the least count of {least} or more, not {wanted}"
            )
            wanted = least
        return least, wanted

    def _count(self, key: str, default: int) -> int:
        section = self.at(key)
        value = section.raw(key, None)
        if value is None:
            return default
        try:
            return check_count(_quoted(value))
        except ValueError as problem:
            section.complain(key, str(problem))
            return default

    def _profile(self) -> tuple[Level, ...]:
        section = self.at("profile")
        value = section.raw("profile", None)
        if value is None:
            return ()
        try:
            profile = tuple(self._levels(value))
            check_profile(profile)
            if len(profile) < 2:
                raise ValueError("one level is a count: write count")
            return profile
        except ValueError as problem:
            section.complain("profile", str(problem))
            return ()

    def _levels(self, value: object) -> Iterator[Level]:
        if not isinstance(value, list) or not all(isinstance(level, dict) for level in value):
            raise ValueError('must be levels like [{from = "0h", count = 2}, {from = "48h", count = 8}]')
        for level in value:
            strange = set(level) - {"from", "count"}
            if strange:
                raise ValueError(f"unknown key {min(strange)}; a level has from and count")
            yield Level(_offset(level.get("from")), check_count(_quoted(level.get("count"))))

    # -- accelerators --------------------------------------------------------------------------------------
    def _from_accelerators(self) -> Wanted:
        section = self.at("accelerators")
        for key in ("count", "count_wanted", "profile"):
            if self.at(key).raw(key, None) is not None:
                self.at(key).complain(key, f"accelerators say how many: leave out {key}, or name types")
        try:
            asked, at_best = _accelerators(section.raw("accelerators", None))
            return Wanted(types_for(asked, at_best, self.target), (), asked)
        except ValueError as problem:
            section.complain("accelerators", str(problem))
            return Wanted((_STAND_IN,))


def _quoted(value: object) -> object:
    """A value as the file writes it, so that `not "1"` shows what is wrong with it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else value


def _offset(value: object) -> timedelta:
    if isinstance(value, str) and re.fullmatch(r"\s*0\s*[a-z]*\s*", value):
        return timedelta(0)
    if not isinstance(value, str):
        raise ValueError('a level begins after a time like "48h" (from)')
    return parse_duration(value)


def _accelerators(value: object) -> tuple[Accelerators, int]:
    """What is asked, and how many accelerators are wanted at best."""
    table = _short(value) if isinstance(value, str) else value
    if not isinstance(table, dict):
        raise ValueError(_ACCELERATORS_HINT)
    strange = set(table) - {"kind", "count", "count_wanted", "least_memory_gib"}
    if strange:
        raise ValueError(f"unknown key {min(strange)}; {_ACCELERATORS_HINT}")
    kinds = [table.get("kind")] if isinstance(table.get("kind"), str) else table.get("kind")
    if not isinstance(kinds, list) or not kinds or not all(isinstance(k, str) for k in kinds):
        raise ValueError(f"kind is missing; {_ACCELERATORS_HINT}")
    count = _whole(table.get("count"), "count")
    at_best = _whole(table.get("count_wanted", count), "count_wanted")
    if at_best < count:
        raise ValueError(f"count_wanted must be the least count of {count} or more, not {at_best}")
    return Accelerators(tuple(kinds), count, _memory(table)), at_best


def _short(text: str) -> dict[str, Any]:
    found = _SHORT.fullmatch(text.strip())
    if found is None:
        raise ValueError(_ACCELERATORS_HINT)
    kind, count, memory = found.groups()
    least = {} if memory is None else {"least_memory_gib": Decimal(memory)}
    return {"kind": kind.strip(), "count": int(count), **least}


def _whole(value: object, key: str) -> int:
    most = 64_000  # 1,000 instances of the largest that there is: of 64
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{key} of accelerators must be a whole number from 1 to {most:,}, not {value}")
    return value


def _memory(table: Mapping[str, Any]) -> Decimal | None:
    value = table.get("least_memory_gib")
    if value is None:
        return None
    try:
        least = Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
    except InvalidOperation:
        least = None
    if least is None or not least.is_finite() or not 0 < least <= 10_000:
        raise ValueError(f"least_memory_gib must be GiB of one accelerator, over 0, not {value}")
    return least
