"""SageMaker's inference contract, spoken to a container: `GET /ping` and `POST /invocations` over HTTP/1.1.

Source: docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-inference-code.html.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

import httptools

from berth.yard.engines.engine import Answer, ContainerUnreachable, Invocation

PORT = 8080
PING_TIMEOUT_S = 2.0
INVOCATION_TIMEOUT_S = 60.0
ANSWER_BYTES_MAX = 6_291_456  # the runtime model's bound on a body, both ways
HEADER_BYTES_MAX = 65_536
HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "content-length", "host"}
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a container is: the unix socket `name` in the folder open as `folder`, and the port inside.

    The folder is a descriptor because the path of a unix socket ends at 107 bytes (unix(7)) and the yard's
    data may lie deeper than that.
    """

    folder: int
    name: str
    port: int

    @property
    def path(self) -> str:
        """A path of the socket that is always short enough."""
        return f"/proc/self/fd/{self.folder}/{self.name}"


async def ping(address: Address) -> int:
    """The status that `/ping` answers. Raises ContainerUnreachable, after two seconds at most."""
    answer = await _timed(address, _request("GET", "/ping", {}, b""), PING_TIMEOUT_S)
    return answer.status


async def invoke(address: Address, invocation: Invocation) -> Answer:
    """What `/invocations` answers. Raises ContainerUnreachable, after sixty seconds at most."""
    request = _request("POST", "/invocations", invocation.headers, invocation.body)
    return await _timed(address, request, INVOCATION_TIMEOUT_S)


def _request(method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """One request, whole. Raises ValueError for a header that would end its line."""
    lines = [f"{method} {path} HTTP/1.1", "host: localhost:8080", "connection: close"]
    for name, value in headers.items():
        if any(sign in name + value for sign in "\r\n\0"):
            raise ValueError(f"header {name!r} holds a line break")
        if name.lower() not in HOP_BY_HOP:
            lines.append(f"{name.lower()}: {value}")
    if body or method == "POST":
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


async def _timed(address: Address, request: bytes, limit_s: float) -> Answer:
    try:
        async with asyncio.timeout(limit_s):
            return await _exchange(address, request)
    except TimeoutError as late:
        raise ContainerUnreachable(f"no answer within {limit_s:g} seconds") from late
    except OSError as problem:
        raise ContainerUnreachable(f"no connection: {problem.strerror or problem}") from problem


async def _exchange(address: Address, request: bytes) -> Answer:
    line = await _line_into(address)
    try:
        reader, writer = await asyncio.open_connection(sock=line)
    except BaseException:
        line.close()
        raise
    try:
        sending = asyncio.ensure_future(_send(writer, request))
        try:
            return await _read_answer(reader)
        finally:
            sending.cancel()
    finally:
        writer.close()


async def _send(writer: asyncio.StreamWriter, request: bytes) -> None:
    """Send while the answer is awaited: a container may answer, and hang up, before it has read all."""
    writer.write(request)
    try:
        await writer.drain()
    except ConnectionError:
        return  # whether there was an answer, its reader knows


async def _line_into(address: Address) -> socket.socket:
    """A TCP connection to the port inside, made from a socket that the container's init hands out."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as desk:
        desk.setblocking(False)
        desk.connect(address.path)
        ready = asyncio.Event()
        loop.add_reader(desk.fileno(), ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(desk.fileno())
        line = _received(desk)
    try:
        line.setblocking(False)
        await loop.sock_connect(line, ("127.0.0.1", address.port))
    except BaseException:
        line.close()
        raise
    return line


def _received(desk: socket.socket) -> socket.socket:
    """The socket that came over `desk`. Raises OSError when none came, or not a fresh TCP socket."""
    _, descriptors, _, _ = socket.recv_fds(desk, 16, 1)
    if len(descriptors) != 1:
        for descriptor in descriptors:
            os.close(descriptor)
        raise ConnectionError("the container is ending")
    line = socket.socket(fileno=descriptors[0])
    if (line.family, line.type) != (socket.AF_INET, socket.SOCK_STREAM):
        line.close()
        raise ConnectionError("the container handed out something that is no TCP socket")
    line.set_inheritable(False)
    return line


@dataclass(slots=True)
class _Collector:
    """What httptools calls while it parses; bounded in what it keeps."""

    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    header_bytes: int = 0
    headers_complete: bool = False
    complete: bool = False

    def on_message_begin(self) -> None:
        """Also after an interim answer (100 Continue), of which nothing is kept."""
        self.headers.clear()
        self.body.clear()
        self.headers_complete = self.complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.header_bytes += len(name) + len(value)
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        self.headers_complete = True

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.complete = True


async def _read_answer(reader: asyncio.StreamReader) -> Answer:
    """Read until the answer is complete. Raises ContainerUnreachable."""
    collector = _Collector()
    parser = httptools.HttpResponseParser(collector)
    received = 0
    while not (collector.complete and parser.get_status_code() >= 200):
        data = await reader.read(262_144)
        received += len(data)
        if not data:
            return _ended_by_closing(parser, collector)
        try:
            parser.feed_data(data)
        except httptools.HttpParserError as problem:
            raise ContainerUnreachable(f"what it answered is not HTTP: {problem}") from problem
        _check_bounds(collector, received)
    return _answer(parser, collector)


def _check_bounds(collector: _Collector, received: int) -> None:
    if len(collector.body) > ANSWER_BYTES_MAX:
        raise ContainerUnreachable(f"it answered more than {ANSWER_BYTES_MAX} bytes")
    if collector.header_bytes > HEADER_BYTES_MAX or received > 2 * ANSWER_BYTES_MAX + HEADER_BYTES_MAX:
        raise ContainerUnreachable("it answered with too much around its body")


def _ended_by_closing(parser: httptools.HttpResponseParser, collector: _Collector) -> Answer:
    """The container hung up: fine where nothing else tells where the body ends (RFC 9112, 6.3)."""
    told_where = collector.headers.keys() & {"content-length", "transfer-encoding"}
    if told_where or not collector.headers_complete or parser.get_status_code() < 200:
        raise ContainerUnreachable("it hung up before its answer was complete")
    return _answer(parser, collector)


def _answer(parser: httptools.HttpResponseParser, collector: _Collector) -> Answer:
    headers = {name: value for name, value in collector.headers.items() if name not in HOP_BY_HOP}
    return Answer(parser.get_status_code(), headers, bytes(collector.body))
