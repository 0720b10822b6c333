"""A running yard: one process, one event loop, two listeners: AWS's APIs on a port, admin on a socket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from berth import __version__
from berth.terms.clock import Clock
from berth.terms.instants import iso
from berth.yard.admin.app import make_admin
from berth.yard.admin.desk import Addresses, Desk
from berth.yard.app import App
from berth.yard.calls import CallLog
from berth.yard.data_folder import DataFolder
from berth.yard.identity.accounts import AccessKey, access_keys
from berth.yard.identity.roles import roles
from berth.yard.identity.sessions import Roles
from berth.yard.lifecycle.clock import next_due
from berth.yard.line import Line
from berth.yard.opening import OpenYard
from berth.yard.rest import Rest
from berth.yard.throttles import Throttles

log = logging.getLogger(__name__)

FLUSH_EVERY_S = 0.5
STOP_PATIENCE_S = 3  # what has not been answered so long after `stop` is cut off
HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Listening:
    """What the server listens on, bound before all else so that a port that is taken is said at once."""

    aws: socket.socket
    admin: socket.socket

    @property
    def url(self) -> str:
        """Base URL of the AWS side."""
        host, port = self.aws.getsockname()[:2]
        return f"http://{host}:{port}"


def bind(folder: DataFolder, port: int) -> Listening:
    """Bind the AWS port on loopback (0 = any free one) and the admin socket, mode 0600. Raises OSError."""
    aws = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    aws.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    aws.bind((HOST, port))
    folder.admin_socket.unlink(missing_ok=True)  # ours: the folder's lock is held
    admin = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)  # the mode must be right from the first instant; servers widen it afterwards
    try:
        admin.bind(str(folder.admin_socket))
    finally:
        os.umask(before)
    return Listening(aws, admin)


class LineProtocol(HttpToolsProtocol):
    """Offers the application its line, as an extension of the scope."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(transport)
        self.line = Line(transport)
        self.transport = self.line  # type: ignore[assignment]

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.scope["extensions"] = {"berth.line": self.line}  # type: ignore[dict-item]


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the yard's business: two servers share one loop."""
        yield


def _uvicorn(app: Any, protocol: type[asyncio.Protocol]) -> _Server:
    return _Server(
        uvicorn.Config(
            app, http=protocol, loop="none", ws="none", lifespan="off", log_config=None, access_log=False,
            server_header=False, date_header=True, timeout_keep_alive=75, backlog=1024, proxy_headers=False,
            timeout_graceful_shutdown=STOP_PATIENCE_S,
        )
    )  # fmt: skip


class KeyRing:
    """The access keys and the roles in memory; read again when one was added or changed."""

    def __init__(self, opened: OpenYard) -> None:
        self._opened = opened
        self._keys: Mapping[str, AccessKey] = {}
        self._roles: Roles = {}
        self.refresh()

    def refresh(self) -> None:
        """Read all keys and roles."""
        self._keys = self._opened.writer.submit(access_keys).result()
        self._roles = self._opened.writer.submit(roles).result()

    def __call__(self) -> Mapping[str, AccessKey]:
        return self._keys

    def roles(self) -> Roles:
        """The roles, by account id and name."""
        return self._roles


class Server:
    """Serves an opened yard until stopped."""

    def __init__(
        self,
        opened: OpenYard,
        folder: DataFolder,
        listening: Listening,
        *,
        s3_url: str | None,
        real: Clock,
        ready: Callable[[], None],
        rest: Rest | None = None,
        throttle_scale: float = 1.0,
    ) -> None:
        self._opened = opened
        self._folder = folder
        self._listening = listening
        self._ready = ready
        self._stop = asyncio.Event()
        keys = KeyRing(opened)
        self._calls = CallLog(opened.writer)
        throttles = Throttles(opened.yard.fleet, throttle_scale)
        app = App(
            opened.yard, writer=opened.writer, reader=opened.reader, calls=self._calls,
            throttles=throttles, keys=keys, roles=keys.roles, stopping=self._stop, rest=rest,
        )  # fmt: skip
        self._facts = {
            "version": __version__,
            "fleet": opened.yard.fleet.name,
            "kind": opened.yard.fleet.kind.value,
            "data": str(folder.path),
            "pid": os.getpid(),
            "started": iso(real.now()),
            "rest": rest.address.url if rest is not None else None,
        }
        self._addresses = Addresses(listening.url, s3_url)
        desk = Desk(
            opened.yard, writer=opened.writer, timekeeper=opened.timekeeper, calls=self._calls,
            addresses=self._addresses, facts=self._facts, refresh_keys=keys.refresh,
        )  # fmt: skip
        self._aws = _uvicorn(app, LineProtocol)
        self._admin = _uvicorn(make_admin(desk, self._stop.set), HttpToolsProtocol)

    async def run(self) -> None:
        """Serve until SIGTERM, SIGINT or the admin's stop; then end in order."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        # Before the first request: a container started by one must not be taken for one from before.
        await asyncio.to_thread(self._opened.restart)
        serving = [
            asyncio.create_task(self._aws.serve(sockets=[self._listening.aws])),
            asyncio.create_task(self._admin.serve(sockets=[self._listening.admin])),
        ]
        while not (self._aws.started and self._admin.started):
            await asyncio.sleep(0.002)
        os.chmod(self._folder.admin_socket, 0o600)
        if not self._opened.yard.clock.stopped:
            self._opened.timekeeper.run_in_thread(self._next_due)
        self._folder.announce({**self._facts, "url": self._addresses.url, "s3_url": self._addresses.s3_url})
        self._ready()
        flushing = asyncio.create_task(self._flush())
        await self._stop.wait()
        log.info("stopping")
        self._opened.timekeeper.stop()
        flushing.cancel()
        self._aws.should_exit = self._admin.should_exit = True
        await asyncio.gather(*serving)
        await asyncio.wrap_future(self._calls.flush())

    def _next_due(self) -> Any:
        return self._opened.writer.submit(next_due).result()

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_EVERY_S)
            self._calls.flush()
            self._opened.timekeeper.wake()


def serve(make: Callable[[], Server]) -> None:
    """Run a server in a uvloop of its own until it is stopped."""

    async def main() -> None:
        await make().run()

    uvloop.run(main())
