"""What a checkup finds: one line each, what it means for the exit code, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from berth.terms.instants import iso
from berth.terms.outcomes import ExitCode

SCHEMA = "berth.doctor/1"


class State(StrEnum):
    """How one thing stands. What was not or could not be asked is unknown, never ok."""

    OK = "ok"
    WARNING = "warning"  # nothing is in the way of this need; a person should read it
    MISSING = "missing"
    UNKNOWN = "unknown"


class Topic(StrEnum):
    """What is looked at, in the order of the list."""

    IDENTITY = "identity"
    CLOCK = "clock"
    SDK = "SDK"
    JOURNAL = "journal"
    REGIONS = "Regions"
    RIGHTS = "rights"
    QUOTAS = "quotas"
    NEED = "need"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. `what` is short, `said` a sentence without a full stop; `todo` is one thing to do, often a
    command (None: nothing). `facts` are plain values for JSON."""

    topic: Topic
    state: State
    what: str
    said: str
    todo: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "topic": self.topic.value,
            "state": self.state.value,
            "what": self.what,
            "said": self.said,
            "todo": self.todo,
            **self.facts,
        }


# What is missing first decides the exit code: without a login nothing else is known.
_CODES: Mapping[Topic, ExitCode] = {
    Topic.IDENTITY: ExitCode.CREDENTIALS,
    Topic.CLOCK: ExitCode.CREDENTIALS,
    Topic.RIGHTS: ExitCode.CREDENTIALS,
    Topic.SDK: ExitCode.BAD_REQUEST,
    Topic.JOURNAL: ExitCode.BAD_REQUEST,
    Topic.REGIONS: ExitCode.BAD_REQUEST,
    Topic.NEED: ExitCode.BAD_REQUEST,
    Topic.QUOTAS: ExitCode.QUOTA,
}


@dataclass(frozen=True, slots=True)
class Checkup:
    """All that was found at `at`. `need` is its name, None where only the caller was looked at; `account` is
    None where nobody is logged in; `rehearsal` is the yard's URL, None on AWS."""

    at: datetime
    need: str | None
    account: str | None
    rehearsal: str | None
    findings: tuple[Finding, ...]

    def having(self, *states: State) -> tuple[Finding, ...]:
        """The findings that stand so."""
        return tuple(one for one in self.findings if one.state in states)

    @property
    def exit_code(self) -> ExitCode:
        """Done; or the code of the first thing that is missing; or incomplete where something is unknown."""
        missing = {one.topic for one in self.having(State.MISSING)}
        for topic, code in _CODES.items():
            if topic in missing:
                return code
        return ExitCode.INCOMPLETE if self.having(State.UNKNOWN) else ExitCode.DONE

    @property
    def todo(self) -> tuple[str, ...]:
        """What to do, each thing once: what is missing first, then what is unknown or worth a look."""
        ranked = (*self.having(State.MISSING), *self.having(State.UNKNOWN), *self.having(State.WARNING))
        return tuple(dict.fromkeys(one.todo for one in ranked if one.todo))

    def to_json(self) -> dict[str, Any]:
        """The document described in docs/reference/json.md."""
        return {
            "schema": SCHEMA,
            "at": iso(self.at),
            "need": self.need,
            "account": self.account,
            "rehearsal": self.rehearsal,
            "exit_code": int(self.exit_code),
            "findings": [one.to_json() for one in self.findings],
            "todo": list(self.todo),
        }


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """By topic; within a topic as they came."""
    order = {topic: number for number, topic in enumerate(Topic)}
    return tuple(sorted(findings, key=lambda one: order[one.topic]))
