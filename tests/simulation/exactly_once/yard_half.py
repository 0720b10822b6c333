"""The service's half: a whole yard behind its HTTP application, with a store that survives its process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from berth.terms.ids import SeededIds
from berth.terms.instants import iso
from berth.yard.app import App
from berth.yard.calls import CallLog
from berth.yard.data_folder import DataFolder
from berth.yard.engines.engine import Answer, Container, Invocation, Report, ReportKind
from berth.yard.engines.provisioner import ArtefactProblem, Order
from berth.yard.faults import Fault, FaultKind
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.fleet_file import load_fleet
from berth.yard.identity.accounts import AccessKey, access_keys
from berth.yard.opening import Doors, open_yard
from berth.yard.store.transaction import Row
from berth.yard.throttles import Throttles
from berth.yard.wire.http import Request, Response

from .moments import MachineClock, TrueTime

FLEET = Path(__file__).with_name("fleet.toml")
_KEY_SEED = 7  # the keys are the same in every store, so that clients are made once


class Inline(Executor):
    """Does what is submitted at once, in the caller's thread: one order of things for one seed."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Do it now."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as problem:  # noqa: BLE001 - the future carries it
            future.set_exception(problem)
        return future


class PromptEngine:
    """Containers without processes: ready, or at their end, as soon as the clock moves."""

    name = "prompt"

    def __init__(self, report: Callable[[Report], None]) -> None:
        self._report = report
        self._news: list[Report] = []

    def tell(self) -> None:
        """Report what has become of containers since."""
        news, self._news = self._news, []
        for one in news:
            self._report(one)

    def start(self, container: Container) -> None:
        """It will be ready."""
        self._news.append(Report(container.key, ReportKind.READY))

    def stop(self, key: str) -> None:
        """It will have ended."""
        self._news.append(Report(key, ReportKind.STOPPED))

    async def invoke(self, key: str, invocation: Invocation) -> Answer:
        """Echo."""
        return Answer(200, {}, invocation.body)

    def settled(self) -> bool:
        """Always: nobody waits for a process."""
        return True

    def describe(self) -> Mapping[str, str]:
        """Nothing to say."""
        return {}

    def allow_accounts(self, count: int) -> None:
        """As many as one likes."""

    def logs(self, key: str, last_bytes: int = 4096) -> str:
        """Nothing was printed."""
        return ""

    def close(self) -> None:
        """Nothing to end."""


class InMemoryLine:
    """The line to one client: it remembers whether it was cut, and what was answered."""

    def __init__(self) -> None:
        self.was_cut = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""

    def cut(self) -> None:
        """Cut without an answer."""
        self.was_cut = True

    def hold(self) -> None:
        """Everything is sent at once anyway."""

    def release(self) -> None:
        """Everything is sent at once anyway."""

    async def send(self, message: dict[str, Any]) -> None:
        """One message of ASGI."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {key.decode(): value.decode() for key, value in message["headers"]}
        else:
            self.body += message.get("body", b"")


@cache
def the_fleet() -> Fleet:
    """The fleet of fleet.toml."""
    return load_fleet(FLEET.read_text("utf-8"), FLEET.name)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def no_artefacts(order: Order, url: str, into: Path) -> None:
    """Models here have no data."""
    raise ArtefactProblem(f"there is nothing at {url}")


class YardHalf:
    """A yard whose process may be killed; what it has stored stays in `folder`."""

    def __init__(self, folder: Path, time: TrueTime, seed: int) -> None:
        self.folder = DataFolder(folder)
        self._time = time
        self._ids = SeededIds(seed)
        self._open()
        self.account = next(iter(self._keys.values())).account.account_id
        self.secret = next(iter(self._keys.values())).secret

    def _open(self) -> None:
        engines: list[PromptEngine] = []

        def engine(report: Callable[[Report], None]) -> PromptEngine:
            engines.append(PromptEngine(report))
            return engines[0]

        real = MachineClock(self._time)
        doors = Doors(engine, no_artefacts, real, self._ids, threaded=False)
        self.opened = open_yard(self.folder, the_fleet(), iso(self._time.now), doors)
        self.engine = engines[0]
        self.yard = self.opened.yard
        self.yard.provisioner._threads.shutdown()
        self.yard.provisioner._threads = Inline()  # type: ignore[assignment]
        self.opened.restart()
        self._keys: Mapping[str, AccessKey] = self.opened.writer.submit(access_keys).result()
        self._app = App(
            self.yard, writer=self.opened.writer, reader=self.opened.reader,
            calls=CallLog(self.opened.writer), throttles=Throttles(self.yard.fleet),
            keys=lambda: self._keys, stopping=asyncio.Event(),
        )  # fmt: skip

    def close(self) -> None:
        """Close the store."""
        self.opened.close()

    def restart(self) -> None:
        """The process is killed and started again: armed events are gone, standing conditions stay."""
        standing = [fault for fault in self.yard.faults.armed() if fault.times is None]
        self.close()
        self._open()
        for fault in standing:
            self.yard.faults.arm(fault)

    def follow(self, to: datetime) -> None:
        """Move the yard's clock to `to`; what is due on the way happens."""
        self.engine.tell()
        if to > self.yard.clock.now():
            self.opened.timekeeper.move_to(to)
        self.engine.tell()

    def serve(self, request: Request) -> Response | None:
        """The answer to one signed request; None when the line was cut."""
        line = InMemoryLine()
        scope = {
            "type": "http",
            "method": request.method,
            "raw_path": request.path.encode("latin-1"),
            "query_string": request.query.encode("latin-1"),
            "headers": [(k.encode("latin-1"), v.encode("latin-1")) for k, v in request.headers.items()],
            "extensions": {"berth.line": line},
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": request.body}

        _loop().run_until_complete(self._app(scope, receive, line.send))
        return None if line.was_cut else Response(line.status, line.headers, line.body)

    def arm(self, kind: FaultKind, operation: str = "*", times: int | None = 1, amount: str = "") -> None:
        """Arm a fault of the yard's own."""
        self.yard.faults.arm(Fault(0, kind, operation, None, times, amount))

    def well(self) -> None:
        """Nothing is wrong any more."""
        self.yard.faults.clear()

    def rows(self, sql: str, *values: str | int | None) -> list[Row]:
        """What the store holds."""
        return self.opened.reader.all(sql, *values)


def template(folder: Path, start: datetime) -> Path:
    """A migrated store with one account, whose clock stands at `start`; made once, then copied."""
    if not folder.exists():
        folder.mkdir(parents=True)
        DataFolder(folder).prepare()
        YardHalf(folder, TrueTime(start), _KEY_SEED).close()
    return folder
