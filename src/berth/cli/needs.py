"""The need of a command line: a file, flags over it, and the paths in it made absolute."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.planner.need import Need

Flags = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True, slots=True)
class TypedNeed:
    """What was typed: the file's text and name ('' for none), the flags by key of the need file, and the
    name of the part that is meant (None: the one that the need plans)."""

    text: str
    source: str
    folder: Path
    flags: Flags
    part: str | None = None

    def read(self, now: datetime | None) -> Need:
        """The need, checked against `now` (see `read_need`).

        Raises SettingsError with every complaint, BerthError for a part that the need does not have.
        """
        from berth.planner.need_file import need_from_flags, read_need

        if not self.source:
            return _part_of(need_from_flags(self.flags, now), self.part)
        need = read_need(self.text, self.source, now, self.flags)
        return _part_of(_absolute(need, self.folder), self.part)

    def draft(self) -> Need:
        """The need with everything checked that asks for no clock: the one that counts may be a yard's."""
        return self.read(None)


def typed_need(
    file: Path | None, flags: Mapping[str, str | Sequence[str] | None], part: str | None = None
) -> TypedNeed:
    """Take `file` and the flags that were given (None and empty ones were not). Raises BerthError."""
    given = {key: value for key, value in flags.items() if value}
    if file is None:
        if not given:
            raise BerthError(ExitCode.USAGE, "say what you need: a need file, or flags", "berth plan --help")
        return TypedNeed("", "", Path.cwd(), given, part)
    text = _read(file)
    return TypedNeed(text, str(file), file.absolute().parent, given, part)


def _part_of(need: Need, name: str | None) -> Need:
    if name is None:
        return need
    part = next((part for part in need.parts if part.name == name), None)
    if part is None:
        there = ", ".join(part.name for part in need.parts)
        raise BerthError(ExitCode.USAGE, f"--part {name}: the need has no such part; it has {there}")
    if not part.reserve:
        raise BerthError(
            ExitCode.USAGE,
            f"--part {name}: it is not held ahead, so there is nothing to plan",
            "launch it on demand beside the others, or write reserve = true",
        )
    return need.alone(part)


def _read(file: Path) -> str:
    """The file's text. No more is read than a need file may hold: it may be a device without end."""
    from berth.terms.settings import MAX_BYTES

    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {MAX_BYTES:,} bytes")
        return raw.decode("utf-8-sig")  # editors of Windows begin a file with a mark that is no TOML
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        step = "berth plan --guide asks for a need and writes it" if not file.exists() else None
        raise BerthError(ExitCode.BAD_REQUEST, f"{file} cannot be read: {reason}", step) from None


def _absolute(need: Need, folder: Path) -> Need:
    """The need with a local artefact's path made absolute: a later verb may run in another folder."""
    deployment = need.deployment
    if deployment is None or deployment.data is None or "://" in deployment.data:
        return need
    return replace(need, deployment=replace(deployment, data=str((folder / deployment.data).resolve())))
