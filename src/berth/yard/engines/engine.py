"""What every engine can do: run containers somewhere and say what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Container:
    """A container to run under SageMaker's inference contract.

    `key` names it for good (one per endpoint and variant; safe as a file name); `image` is the name the
    fleet file maps to a command; `model_dir` the unpacked artefact, None when the model has none;
    `startup_limit_s` the real seconds until `/ping` must have answered 200 (60 to 3600, AWS's default 480).
    """

    key: str
    account_id: str
    image: str
    environment: Mapping[str, str]
    model_dir: Path | None
    startup_limit_s: float = 480
    variant_name: str = "AllTraffic"
    hostname: str | None = None


class ReportKind(StrEnum):
    """What an engine tells about a container."""

    READY = "ready"  # /ping answered 200 for the first time
    FAILED = "failed"  # it never became ready; `reason` says why
    DIED = "died"  # it had been ready and ended by itself; `reason` says how
    STOPPED = "stopped"  # it has ended because `stop` was called (told for unknown keys too)


@dataclass(frozen=True, slots=True)
class Report:
    """News of one container. `reason` is for FailureReason: at most 1024 characters, empty when READY."""

    key: str
    kind: ReportKind
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call to `/invocations`. `headers` are those that SageMaker lets through."""

    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the container answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ContainerUnreachable(Exception):
    """The container did not answer: not there, closed the line, or took longer than AWS's 60 seconds."""


class EngineRefused(Exception):
    """The engine may not do this here; the message says why and what would help."""


class Engine(Protocol):
    """Where workloads run. All methods are safe to call from any thread; none waits for a container."""

    name: str

    def start(self, container: Container) -> None:
        """Begin to run `container`; what becomes of it is told through the report callback."""
        ...

    def stop(self, key: str) -> None:
        """Begin to end the container `key` (SIGTERM, 30 s later SIGKILL); STOPPED tells when it has ended."""
        ...

    async def invoke(self, key: str, invocation: Invocation) -> Answer:
        """Relay one invocation. Raises ContainerUnreachable."""
        ...

    def settled(self) -> bool:
        """Whether no container is between start and first report, or between stop and its end."""
        ...

    def describe(self) -> Mapping[str, str]:
        """Words for `status`: confinement (`bubblewrap` or `none: why`), limits (`cgroup v1` ...)."""
        ...

    def allow_accounts(self, count: int) -> None:
        """Asked before the yard has `count` accounts. Raises EngineRefused."""
        ...

    def logs(self, key: str, last_bytes: int = 4096) -> str:
        """The end of what the container printed, kept after it ended; empty when unknown."""
        ...

    def close(self) -> None:
        """End every container and wait until they are gone."""
        ...


ReportTo = Callable[[Report], None]
