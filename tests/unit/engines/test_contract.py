"""Speaking HTTP to a container that may answer anything, or nothing."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from berth.yard.engines import contract
from berth.yard.engines.contract import ANSWER_BYTES_MAX, Address, invoke, ping
from berth.yard.engines.engine import Answer, ContainerUnreachable, Invocation

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def asked(folder: Path, serve: Serve, ask: Callable[[Address], Awaitable[object]]) -> object:
    """What `ask` gets from a container that serves a connection by `serve`."""
    tasks: set[asyncio.Task[None]] = set()

    def hand_out() -> None:
        caller, _ = desk.accept()
        with caller, socket.socket() as line:
            socket.send_fds(caller, [b"s"], [line.fileno()])

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await serve(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    loop = asyncio.get_running_loop()
    server = await asyncio.start_server(served, "127.0.0.1", 0)
    place = os.open(folder, os.O_PATH)
    address = Address(place, "c.sock", server.sockets[0].getsockname()[1])
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as desk:
        desk.bind(address.path)
        desk.listen()
        loop.add_reader(desk, hand_out)
        try:
            return await ask(address)
        finally:
            loop.remove_reader(desk)
            os.close(place)
            server.close()
            for task in tasks:
                task.cancel()


def answering(*pieces: bytes, hang: bool = False) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if hang:
            await asyncio.sleep(60)

    return serve


def invoked(folder: Path, *pieces: bytes, hang: bool = False) -> Answer:
    call = Invocation(b"body", {"content-type": "text/csv"})
    answer = asyncio.run(asked(folder, answering(*pieces, hang=hang), lambda address: invoke(address, call)))
    assert isinstance(answer, Answer)
    return answer


OK = b"HTTP/1.1 200 OK\r\n"

GOOD = {
    "with a length": (OK + b"content-length: 3\r\n\r\nabc",),
    "in pieces": (OK[:9], OK[9:] + b"content-le", b"ngth: 3\r\n\r\na", b"bc"),
    "in chunks": (OK + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n", b"2\r\nbc\r\n0\r\n\r\n"),
    "ended by hanging up": (OK + b"connection: close\r\n\r\nab", b"c"),
    "after an interim answer": (
        b"HTTP/1.1 100 Continue\r\nx: y\r\n\r\n",
        OK + b"content-length: 3\r\n\r\nabc",
    ),
    "as HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\nabc",),
}


@pytest.mark.parametrize("case", GOOD)
def test_an_answer_is_read_however_it_comes(tmp_path: Path, case: str) -> None:
    """By length, chunks or closing, whole or in pieces: the body is the same."""
    answer = invoked(tmp_path, *GOOD[case])
    assert (answer.status, answer.body) == (200, b"abc")
    assert "x" not in answer.headers


def test_a_container_that_keeps_the_line_open_is_not_waited_for(tmp_path: Path) -> None:
    """A complete answer is an answer, also if the container does not hang up."""
    assert invoked(tmp_path, OK + b"content-length: 2\r\n\r\nok", hang=True).body == b"ok"


def test_status_and_headers_are_passed_on_without_those_of_the_line(tmp_path: Path) -> None:
    """Names are lower case, a header sent twice is joined, what concerns the connection stays behind."""
    head = b"HTTP/1.1 418 Teapot\r\nX-A: 1\r\nx-a: 2\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    answer = invoked(tmp_path, head)
    assert (answer.status, dict(answer.headers), answer.body) == (418, {"x-a": "1, 2"}, b"")


BAD = {
    "nothing": ((), "hung up"),
    "half a body": ((OK + b"content-length: 9\r\n\r\nabc",), "hung up"),
    "half its chunks": ((OK + b"transfer-encoding: chunked\r\n\r\n5\r\nab",), "hung up"),
    "half its headers": ((OK + b"content-le",), "hung up"),
    "only an interim answer": ((b"HTTP/1.1 100 Continue\r\n\r\n",), "hung up"),
    "something else than HTTP": ((b"SSH-2.0-OpenSSH\r\n",), "not HTTP"),
    "headers without end": ([OK, *[b"x: " + b"y" * 1000 + b"\r\n"] * 80], "too much around"),
    "a body too large": ([OK + b"\r\n", *[b"x" * 1_000_000] * 8], f"more than {ANSWER_BYTES_MAX}"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_answer_is_told_as_such(tmp_path: Path, case: str) -> None:
    """Cut short, no HTTP or beyond bounds: the container is unreachable, with the reason."""
    pieces, complaint = BAD[case]
    with pytest.raises(ContainerUnreachable, match=complaint):
        invoked(tmp_path, *pieces)


def test_the_request_is_sagemakers(tmp_path: Path) -> None:
    """POST /invocations with the body and the headers that came, without those of the caller's line."""
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        seen.append(await reader.readexactly(5))
        writer.write(OK + b"content-length: 0\r\n\r\n")

    call = Invocation(b"a,b,c", {"Content-Type": "text/csv", "Connection": "keep-alive", "Host": "aws"})
    asyncio.run(asked(tmp_path, serve, lambda address: invoke(address, call)))
    assert seen[0].startswith(b"POST /invocations HTTP/1.1\r\n")
    assert b"content-type: text/csv\r\n" in seen[0]
    assert b"content-length: 5\r\n" in seen[0]
    assert b"connection: close\r\n" in seen[0]
    assert b"keep-alive" not in seen[0]
    assert b"host: aws" not in seen[0]
    assert seen[1] == b"a,b,c"


def test_a_header_cannot_end_its_line(tmp_path: Path) -> None:
    """A line break in a header would be a second request in the container."""
    call = Invocation(b"", {"x": "1\r\ny: 2"})
    with pytest.raises(ValueError, match="line break"):
        asyncio.run(asked(tmp_path, answering(OK), lambda address: invoke(address, call)))


def test_a_large_body_to_a_container_that_does_not_read(tmp_path: Path) -> None:
    """An answer that comes before the whole body was read is still the answer."""
    call = Invocation(b"x" * ANSWER_BYTES_MAX, {})
    head = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n"
    answer = asyncio.run(asked(tmp_path, answering(head, hang=True), lambda address: invoke(address, call)))
    assert isinstance(answer, Answer)
    assert answer.status == 413


def test_a_ping_waits_its_time_and_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence beyond the time-out is no passed ping."""
    monkeypatch.setattr(contract, "PING_TIMEOUT_S", 0.1)
    with pytest.raises(ContainerUnreachable, match=r"no answer within 0\.1 seconds"):
        asyncio.run(asked(tmp_path, answering(hang=True), ping))


def test_where_nobody_is_there_is_nobody(tmp_path: Path) -> None:
    """No socket, or a port on which nothing listens."""
    place = os.open(tmp_path, os.O_PATH)
    with pytest.raises(ContainerUnreachable, match="No such file"):
        asyncio.run(ping(Address(place, "none.sock", 1)))
    os.close(place)
    with pytest.raises(ContainerUnreachable, match="no connection"):
        asyncio.run(asked(tmp_path, answering(), lambda a: ping(Address(a.folder, a.name, 1))))
