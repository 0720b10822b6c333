"""One container from its start to its end, as one readable course of events."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from berth.yard.engines import contract
from berth.yard.engines.contract import Address
from berth.yard.engines.engine import Container, ContainerUnreachable, Report, ReportKind, ReportTo
from berth.yard.engines.held import Ended
from berth.yard.engines.launch import CannotStart, Launched, ProcessLauncher
from berth.yard.engines.logs import last_line

REASON_MAX = 1024  # FailureReason's length in the SageMaker model
FIRST_PING_S, SLOWEST_PING_S = 0.02, 1.0  # between pings while it starts: often at first, then less so


@dataclass(frozen=True, slots=True)
class Timing:
    """Between pings once ready, and from SIGTERM to SIGKILL, in real seconds; failed pings that are death.

    AWS does not document how often it pings (docs/reference/unconfirmed.md). It kills 30 s after SIGTERM.
    """

    ping_every_s: float = 5.0
    failed_pings: int = 3
    stop_grace_s: float = 30.0


class Running:
    """A container that was asked for and is not yet gone. Lives in the engine's event loop."""

    def __init__(
        self,
        container: Container,
        launcher: ProcessLauncher,
        report: ReportTo,
        timing: Timing,
        before: Running | None,
    ) -> None:
        """`before` is the container of the same key that must be gone first, None when there is none."""
        self.container = container
        self.address: Address | None = None
        self.stopping = False
        self.over = False  # it has failed or died, and only clears up
        self.tell_when_gone = False  # STOPPED is wanted; the engine tells it
        self.gone = asyncio.Event()
        self._launcher, self._report, self._timing, self._before = launcher, report, timing, before
        self._launched: Launched | None = None
        self._reported = False
        self._started_s = time.monotonic()

    @property
    def settled(self) -> bool:
        """Whether its first report was made and nobody asked it to end."""
        return self._reported and not self.stopping

    def stop(self, grace_s: float) -> None:
        """Ask it to end, and have it killed after `grace_s`."""
        self.stopping = True
        if self._launched is not None:
            self._launched.held.stop(grace_s)

    async def run(self) -> None:
        """Start it, watch it, report, until nothing of it is left."""
        try:
            if self._before is not None:
                await self._before.gone.wait()
            if not self.stopping:
                await self._run()
        finally:
            self.gone.set()

    async def _run(self) -> None:
        self._started_s = time.monotonic()
        try:
            # In a thread: it touches the disk, and may have to copy a model.
            self._launched = await asyncio.to_thread(self._launcher.launch, self.container)
        except (CannotStart, OSError) as problem:
            if not self.stopping:
                self._tell(ReportKind.FAILED, str(problem))
            return
        self.address = self._launched.address
        ending = asyncio.ensure_future(self._launched.held.ended())
        try:
            if not self.stopping:
                await self._watch(self._launched, ending)
        finally:
            self.address = None
            self._launched.held.kill()
            await ending
            self._launcher.forget(self._launched)

    async def _watch(self, launched: Launched, ending: asyncio.Future[Ended]) -> None:
        """Until it has ended by itself, was stopped, or does not answer as it should."""
        problem = await self._become_ready(launched, ending)
        kind = ReportKind.FAILED
        if problem is None and not self.stopping:
            self._tell(ReportKind.READY, "")
            kind = ReportKind.DIED
            problem = await self._stay_ready(launched, ending)
        if self.stopping:
            await ending
        elif problem is not None:
            self._tell(kind, ping_failed(self.container.variant_name, problem))

    async def _become_ready(self, launched: Launched, ending: asyncio.Future[Ended]) -> str | None:
        """Ping until it answers 200; None then, else what went wrong."""
        limit_s = self.container.startup_limit_s
        pause_s, said = FIRST_PING_S, "no ping was tried"
        while not ending.done():
            said = await self._ping(launched.address)
            if said == "":
                return None
            if time.monotonic() - self._started_s >= limit_s:
                return f"It was not ready within {limit_s:g} seconds: {said}."
            await asyncio.wait([ending], timeout=pause_s)
            pause_s = min(pause_s * 1.5, SLOWEST_PING_S)
        return self._how_it_ended(ending.result(), launched)

    async def _stay_ready(self, launched: Launched, ending: asyncio.Future[Ended]) -> str:
        """Ping for ever; what went wrong."""
        failed = 0
        while True:
            await asyncio.wait([ending], timeout=self._timing.ping_every_s)
            if ending.done():
                return self._how_it_ended(ending.result(), launched)
            said = await self._ping(launched.address)
            failed = failed + 1 if said else 0
            if failed >= self._timing.failed_pings and not ending.done():
                return f"{failed} pings in a row failed, at last: {said}."

    async def _ping(self, address: Address) -> str:
        """Empty when the ping passed, else what was wrong."""
        try:
            status = await contract.ping(address)
        except ContainerUnreachable as problem:
            return str(problem)
        return "" if status == 200 else f"/ping answered {status}"

    def _how_it_ended(self, ended: Ended, launched: Launched) -> str:
        after_s = time.monotonic() - self._started_s
        how = f"signal {ended.status - 128}" if ended.status > 128 else f"exit code {ended.status}"
        words = [f"The container ended with {how} after {after_s:.1f} seconds."]
        if ended.out_of_memory:
            words.append("It used more memory than the yard allows it.")
        if ended.problem is not None:
            words.append(f"The yard says: {ended.problem}.")
        line = last_line(launched.log)
        if line:
            words.append(f"Its last words: {line}")
        return " ".join(words)

    def _tell(self, kind: ReportKind, reason: str) -> None:
        # Over before it is told: who hears of it may start the same again at once. Settled after it is told:
        # who waits for `settled` finds the report made.
        self.over = kind is not ReportKind.READY
        self._report(Report(self.container.key, kind, reason[:REASON_MAX]))
        self._reported = True


def ping_failed(variant_name: str, detail: str) -> str:
    """The reason in SageMaker's words (seen in public threads), then ours."""
    return (
        f"The primary container for production variant {variant_name} did not pass the ping health check. "
        f"Please check CloudWatch logs for this endpoint. {detail}"
    )
