"""An engine on a test's bench: containers started and waited for, and what is left of them."""

from __future__ import annotations

import asyncio
import os
import queue
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from berth.yard.engines.engine import (
    Answer,
    Container,
    Invocation,
    Report,
    ReportKind,
)
from berth.yard.engines.launch import ProcessLauncher
from berth.yard.engines.local import LocalEngine
from berth.yard.engines.running import Timing
from berth.yard.engines.sandbox import Confinement

IMAGES = {
    "echo": ["{python}", "-I", "{images}/echo_server.py"],
    "sklearn": ["{python}", "-I", "{images}/sklearn_server.py"],
    "nothing": ["/no/such/program"],
}
PATIENCE_S = 30.0
QUICK = Timing(ping_every_s=0.05, failed_pings=2, stop_grace_s=0.5)
UNCONFINED = Confinement(None, why_not="this test says so")


@dataclass
class Bench:
    """An engine with what it reported, and containers that carry its mark."""

    engine: LocalEngine
    folder: Path
    mark: str
    reports: queue.Queue[Report] = field(default_factory=queue.Queue)

    def container(self, image: str = "echo", model_dir: Path | None = None, **env: str) -> Container:
        key = f"{self.mark}-{uuid.uuid4().hex[:8]}"
        return Container(key, "111122223333", image, {"MARK": self.mark, **env}, model_dir)

    def report(self, key: str) -> Report:
        """The next report, which must be about `key`."""
        report = self.reports.get(timeout=PATIENCE_S)
        assert report.key == key, report
        return report

    def started(self, container: Container) -> Container:
        self.engine.start(container)
        report = self.report(container.key)
        assert report.kind is ReportKind.READY, report
        return container

    def invoke(self, container: Container, body: bytes, **headers: str) -> Answer:
        return asyncio.run(self.engine.invoke(container.key, Invocation(body, headers)))

    def inside(self, container: Container, expression: str) -> Any:
        """The value of a Python expression inside the container."""
        text = self.invoke(container, f"eval {expression}".encode()).body.decode()
        return eval(text)

    def stopped(self, container: Container) -> None:
        self.engine.stop(container.key)
        assert self.report(container.key).kind is ReportKind.STOPPED


def bench(folder: Path, confinement: Confinement, **options: Any) -> Bench:
    mark = f"mark{uuid.uuid4().hex[:12]}"
    reports: queue.Queue[Report] = queue.Queue()
    timing = options.pop("timing", QUICK)
    launcher = ProcessLauncher(folder / mark, IMAGES, confinement, **options)
    return Bench(LocalEngine(launcher, reports.put, 1, timing), folder / mark, mark, reports)


def processes_of(mark: str) -> list[int]:
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            told = Path(f"/proc/{name}/environ").read_bytes() + Path(f"/proc/{name}/cmdline").read_bytes()
            if mark.encode() in told and int(name) != os.getpid():
                found.append(int(name))
    return found


def cgroups_of(folder: Path) -> list[Path]:
    from berth.yard.engines.limits import prefix_of

    return [path for root in Path("/sys/fs/cgroup").glob("*") for path in root.rglob(f"{prefix_of(folder)}*")]


def wait_until(what: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < deadline, f"did not happen within {within_s} seconds"
        time.sleep(0.01)
