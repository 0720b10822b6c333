"""Engine `local`: every container is a process of this machine, shut in by bubblewrap where that works."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from berth.yard.engines import contract
from berth.yard.engines.engine import (
    Answer,
    Container,
    ContainerUnreachable,
    EngineRefused,
    Invocation,
    Report,
    ReportKind,
    ReportTo,
)
from berth.yard.engines.launch import ProcessLauncher
from berth.yard.engines.limits import Limits
from berth.yard.engines.logs import tail
from berth.yard.engines.probe import find_confinement
from berth.yard.engines.running import Running, Timing
from berth.yard.engines.sandbox import Grants

SAFE_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", re.ASCII)
CLOSE_GRACE_S = 2.0


def open_local_engine(
    folder: Path,
    images: Mapping[str, Sequence[str]],
    report: ReportTo,
    *,
    accounts: int = 1,
    limits: Limits | None = None,
    grants: Grants | None = None,
    hidden: Sequence[Path] = (),
) -> LocalEngine:
    """An engine that is confined as well as this machine allows, found out by trying (some 0.1 s).

    Arguments as for `ProcessLauncher`; `accounts` as for `LocalEngine`. Raises EngineRefused, OSError.
    """
    granted = grants or Grants()
    confinement = find_confinement(granted)
    launcher = ProcessLauncher(folder, images, confinement, limits=limits, grants=granted, hidden=hidden)
    try:
        return LocalEngine(launcher, report, accounts)
    except EngineRefused:
        launcher.close()
        raise


class LocalEngine:
    """Runs containers as processes of this machine. Safe to call from any thread."""

    name = "local"

    def __init__(
        self, launcher: ProcessLauncher, report: ReportTo, accounts: int = 1, timing: Timing | None = None
    ) -> None:
        """Start the engine's one thread. `accounts` is how many the yard has now.

        Raises EngineRefused when there are several and containers cannot be confined.
        """
        self._launcher = launcher
        self._report = report
        self._timing = timing or Timing()
        self.allow_accounts(accounts)
        self._lock = threading.Lock()
        self._newest: dict[str, Running] = {}
        self._alive: set[Running] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = threading.Event()
        self._idle.set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="berth-engine-local", daemon=True)
        self._thread.start()

    def allow_accounts(self, count: int) -> None:
        """Called before the yard has `count` accounts.

        Raises EngineRefused when that is more than one and containers run unconfined: one account's
        container could read what another's serves.
        """
        confinement = self._launcher.confinement
        if count > 1 and confinement.bubblewrap is None:
            raise EngineRefused(
                f"engine local serves {count} accounts only with a working bubblewrap: "
                f"{confinement.why_not}. Install bubblewrap (on Debian: apt-get install bubblewrap) "
                "or keep to one account."
            )

    def start(self, container: Container) -> None:
        """Begin to run `container`; the same again while it runs is ignored, another of its key replaces it.

        Raises ValueError for a key that is no safe file name.
        """
        if not SAFE_KEY.fullmatch(container.key):
            raise ValueError(
                f"container key {container.key!r}: letters, digits, '.', '_' and '-' only, 200 at most"
            )
        with self._lock:
            before = self._newest.get(container.key)
            if before is not None and before.container == container and not (before.stopping or before.over):
                return
            running = Running(container, self._launcher, self._report, self._timing, before)
            self._newest[container.key] = running
            self._alive.add(running)
            self._idle.clear()
        if before is not None:
            self._end(before, self._timing.stop_grace_s)
        self._loop.call_soon_threadsafe(self._begin, running)

    def _begin(self, running: Running) -> None:
        task = self._loop.create_task(running.run())
        self._tasks.add(task)  # the loop itself would not keep it
        task.add_done_callback(lambda _task: self._gone(running, task))

    def _gone(self, running: Running, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        with self._lock:
            if self._newest.get(running.container.key) is running:
                del self._newest[running.container.key]
        # A `stop` either came before this, and is answered here, or finds the key unknown and answers itself.
        if running.tell_when_gone:
            self._report(Report(running.container.key, ReportKind.STOPPED))
        with self._lock:
            self._alive.discard(running)
            if not self._alive:
                self._idle.set()
        task.result()  # a fault of ours goes to the event loop's handler, which logs it

    def stop(self, key: str) -> None:
        """Begin to end the container: SIGTERM, SIGKILL 30 s later; then STOPPED (unknown keys: at once)."""
        with self._lock:
            running = self._newest.get(key)
            if running is not None:
                running.stopping = running.tell_when_gone = True
        if running is None:
            self._report(Report(key, ReportKind.STOPPED))
            return
        self._end(running, self._timing.stop_grace_s)

    def _end(self, running: Running, grace_s: float) -> None:
        self._loop.call_soon_threadsafe(running.stop, grace_s)

    async def invoke(self, key: str, invocation: Invocation) -> Answer:
        """Relay one invocation, from any event loop. Raises ContainerUnreachable."""
        running = self._newest.get(key)
        if running is None or running.address is None:
            raise ContainerUnreachable("the container is not running")
        return await contract.invoke(running.address, invocation)

    def settled(self) -> bool:
        """Whether no container is between start and first report, or between stop and its end."""
        with self._lock:
            return all(running.settled for running in self._alive)

    def describe(self) -> Mapping[str, str]:
        """`confinement`, `limits` and `network` in words, for `status`."""
        return self._launcher.describe()

    def logs(self, key: str, last_bytes: int = 4096) -> str:
        """The end of what the container printed, kept after it ended; empty when unknown."""
        if not SAFE_KEY.fullmatch(key):
            return ""
        return tail(self._launcher.log_of(key), last_bytes)

    def close(self) -> None:
        """End every container (SIGTERM, SIGKILL 2 s later), wait until they are gone, end the thread.

        Reports nothing about them: a yard that closes wants them again when it opens.
        """
        with self._lock:
            alive = list(self._alive)
            for running in alive:
                running.stopping = True
        for running in alive:
            self._end(running, CLOSE_GRACE_S)
        self._idle.wait()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        self._launcher.close()
