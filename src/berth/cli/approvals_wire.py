"""Handing a proof over: a small HTTP listener on this machine, and the one POST that reaches it.

It listens on loopback or on a unix socket of mode 0600, takes one kind of request, and forgets its body. A
browser cannot be made to speak to it: it wants its own media type, and its own address as the host.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import socketserver
import stat
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from berth.aws.proofs import LARGEST, Proof, read_proof
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.text import plain

MEDIA_TYPE = "application/vnd.berth.approval-proof+json"
PATIENCE_S = 20
Take = Callable[[Proof], Mapping[str, Any]]
"""Verifies a proof and keeps its approval; what is answered. Raises BerthError."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the listener is: a port of 127.0.0.1, or a unix socket; one of the two."""

    port: int | None
    socket: Path | None


class _Tcp(HTTPServer):
    """An HTTP server on a port of 127.0.0.1."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        _end_unless_gone()


def _end_unless_gone() -> None:
    """A client that went away is its own affair; whatever else fails ends the listener aloud."""
    problem = sys.exception()
    if problem is not None and not isinstance(problem, OSError):
        raise problem


class _Unix(socketserver.UnixStreamServer):
    """An HTTP server on a unix socket."""

    def server_bind(self) -> None:
        self._remove_stale()
        before = os.umask(0o177)  # the mode must be right from the first instant
        try:
            super().server_bind()
        finally:
            os.umask(before)

    def _remove_stale(self) -> None:
        """Take away a socket of ours on which nobody listens: a listener that was killed has left it."""
        place = Path(str(self.server_address))
        try:
            held = place.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(held.st_mode) or held.st_uid != os.getuid():
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            try:
                asking.connect(str(place))
            except ConnectionRefusedError:
                place.unlink(missing_ok=True)

    def get_request(self) -> tuple[Any, Any]:
        request, _ = super().get_request()
        return request, ("local", 0)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _end_unless_gone()


def serve(
    place: Place,
    take: Take,
    *,
    once: bool,
    ready: Callable[[str], None],
    patience_s: float = PATIENCE_S,
) -> None:
    """Take proofs until interrupted, or with `once` until the first approval.

    A request has to be there in `patience_s` seconds. Raises BerthError.
    """
    approved: list[Mapping[str, Any]] = []

    def keep(proof: Proof) -> Mapping[str, Any]:
        approved.append(take(proof))
        return approved[-1]

    with _server(place, _handler(keep, patience_s)) as server:
        ready(_address(place, server))
        try:
            while not (once and approved):
                server.handle_request()
        finally:
            if place.socket is not None:
                place.socket.unlink(missing_ok=True)


def hand_over(to: str, text: str) -> str:
    """Give a proof to a listener on this machine: a port, or a unix socket's path. What it said.

    Raises BerthError: nobody listens there, or it took the proof for none.
    """
    try:
        status, said = _post(to, text)
    except (OSError, http.client.HTTPException, ValueError) as problem:
        why = getattr(problem, "strerror", None) or type(problem).__name__
        raise BerthError(
            ExitCode.INCOMPLETE,
            f"nobody takes the proof at {plain(to, 200)}: {why}; it was not handed over",
            "berth approvals listen, on the machine that pays; or --out FILE",
        ) from None
    if status != 200:
        raise BerthError(ExitCode.CREDENTIALS, f"the listener did not take the approval: {plain(said, 300)}")
    return said


def _post(to: str, text: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(
        "127.0.0.1", int(to) if to.isdecimal() else 80, timeout=PATIENCE_S
    )
    if not to.isdecimal():
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.settimeout(PATIENCE_S)
        line.connect(to)
        connection.sock = line
    with contextlib.closing(connection):
        connection.request("POST", "/", text.encode(), {"Content-Type": MEDIA_TYPE})
        answer = connection.getresponse()
        value = json.loads(answer.read(LARGEST))
    return answer.status, str(value.get("message", ""))


def _server(place: Place, handler: type[BaseHTTPRequestHandler]) -> socketserver.BaseServer:
    try:
        if place.socket is not None:
            return _Unix(str(place.socket), handler)
        return _Tcp(("127.0.0.1", place.port or 0), handler)
    except (OSError, OverflowError) as problem:
        where = place.socket or f"port {place.port}"
        why = getattr(problem, "strerror", None) or problem
        raise BerthError(ExitCode.BAD_REQUEST, f"cannot listen on {where}: {why}") from None


def _address(place: Place, server: socketserver.BaseServer) -> str:
    if isinstance(server, _Tcp):
        return f"port {server.server_port} of 127.0.0.1"
    return str(place.socket)


class _InTime(BaseHTTPRequestHandler):
    """A request has to be there in `timeout` seconds, also from a client that sends a letter now and then."""

    def setup(self) -> None:
        super().setup()
        self._late = threading.Timer(self.timeout or PATIENCE_S, self._read_no_more)
        self._late.daemon = True
        self._late.start()

    def finish(self) -> None:
        self._late.cancel()
        super().finish()

    def _read_no_more(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RD)


def _handler(take: Take, patience_s: float) -> type[BaseHTTPRequestHandler]:
    class Handler(_InTime):
        timeout = patience_s  # a client that sends nothing does not hold the listener up for long

        def do_POST(self) -> None:
            status, message = self._taken()
            body = json.dumps({"message": message}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _taken(self) -> tuple[int, str]:
            if self.headers.get("Content-Type") != MEDIA_TYPE or not self._is_here():
                return 415, f"a proof comes as {MEDIA_TYPE}, to 127.0.0.1"
            length = self.headers.get("Content-Length", "")
            if not (length.isascii() and length.isdigit() and len(length) <= 6 and int(length) <= LARGEST):
                return 413, f"a proof has {LARGEST:,} bytes at most"
            try:
                proof = read_proof(self.rfile.read(int(length)).decode("utf-8", "replace"))
                done = take(proof)
            except BerthError as error:
                return 403, plain(error.message, 300)
            who = ", ".join(str(one["approver"]) for one in done["approvals"])
            return 200, f"taken: request {str(done['hash'])[:12]} is {done['state']} ({plain(who, 200)})"

        def _is_here(self) -> bool:
            return self.headers.get("Host", "").partition(":")[0] in {"127.0.0.1", "localhost"}

        def log_message(self, *_: Any) -> None:
            return

    return Handler
