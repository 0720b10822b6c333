"""A load generator: ready-made requests over some connections, one at a time on each, no pipelining.

A program of its own, so that it costs the measured server no time of its interpreter. Standard input: one
JSON document (see `Spec`); standard output: one JSON document with the counts and latencies.
A server that closes the connection after its answer is met by a new connection, whose time counts.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

import uvloop

TURN_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Spec:
    """What to send where. `seconds` None = every request once, in order; else round and round for so long."""

    port: int
    requests: list[str]  # base64 of whole HTTP/1.1 requests
    connections: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it. Latencies in microseconds, of every answer; `sample` is the first answer's body."""

    answers: int
    refused: int
    elapsed_s: float
    p50_us: float
    p99_us: float
    sample: str

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answers / self.elapsed_s


class Run:
    """The state that the connections share."""

    def __init__(self, requests: Sequence[bytes], seconds: float | None) -> None:
        self._requests = requests
        self._next = 0
        self._once = seconds is None
        self.begun = time.perf_counter()
        self._until = self.begun + seconds if seconds is not None else float("inf")
        self.latencies: list[float] = []
        self.refused = 0
        self.sample = b""

    def take(self) -> bytes | None:
        """The next request; None when it is time to stop."""
        index = self._next
        if index >= len(self._requests):
            if self._once:
                return None
            index = 0
        if time.perf_counter() >= self._until:
            return None
        self._next = index + 1
        return self._requests[index]

    def note(self, sent: float, head: bytes, body: bytes) -> None:
        """One answer is whole."""
        self.latencies.append(time.perf_counter() - sent)
        if head[9:12] != b"200":
            self.refused += 1
        if not self.sample or head[9:12] != b"200":
            self.sample = body


class Connection(asyncio.Protocol):
    """One connection: send, wait for the whole answer, send again."""

    def __init__(self, run: Run, done: asyncio.Future[bool], first: bytes) -> None:
        self._run = run
        self._done = done
        self._first = first
        self._buffer = b""
        self._sent = time.perf_counter()  # connecting counts
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by name
        self._transport.write(self._first)

    def data_received(self, data: bytes) -> None:
        if self._buffer:
            data = self._buffer + data
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self._buffer = data
            return
        head = data[:end].lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 : head.find(b"\r\n", at) if b"\r\n" in head[at:] else None])
        if len(data) < end + 4 + length:
            self._buffer = data
            return
        self._buffer = b""
        self._run.note(self._sent, head, data[end + 4 :])
        self._again(closing=b"connection: close" in head or head.startswith(b"http/1.0"))

    def _again(self, closing: bool) -> None:
        assert self._transport is not None
        if closing:
            self._finish(True)
            self._transport.close()
            return
        request = self._run.take()
        if request is None:
            self._finish(False)
            self._transport.close()
            return
        self._sent = time.perf_counter()
        self._transport.write(request)

    def _finish(self, more: bool) -> None:
        if not self._done.done():
            self._done.set_result(more)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(exc or ConnectionError("the server closed before it answered"))


async def drive(run: Run, port: int) -> None:
    """One connection after the other until there is no more to send."""
    loop = asyncio.get_running_loop()
    while (request := run.take()) is not None:
        done: asyncio.Future[bool] = loop.create_future()
        await loop.create_connection(lambda: Connection(run, done, request), "127.0.0.1", port)  # noqa: B023
        if not await done:
            return


def give_up(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> NoReturn:
    """A fault in a callback would leave everybody waiting: end at once instead."""
    sys.stderr.write(f"{context.get('message')}: {context.get('exception')!r}\n")
    sys.stderr.flush()
    os._exit(1)


async def perform(spec: Spec) -> Outcome:
    """Send everything, gather what came back."""
    asyncio.get_running_loop().set_exception_handler(give_up)
    run = Run([base64.b64decode(text) for text in spec.requests], spec.seconds)
    await asyncio.gather(*(drive(run, spec.port) for _ in range(spec.connections)))
    elapsed = time.perf_counter() - run.begun
    ordered = sorted(run.latencies)
    return Outcome(
        answers=len(ordered),
        refused=run.refused,
        elapsed_s=elapsed,
        p50_us=ordered[len(ordered) // 2] * 1e6,
        p99_us=ordered[int(len(ordered) * 0.99)] * 1e6,
        sample=run.sample.decode("latin-1"),
    )


def send(port: int, requests: Sequence[bytes], connections: int, seconds: float | None) -> Outcome:
    """Run the generator in a process of its own. Raises RuntimeError when it fails."""
    spec = Spec(port, [base64.b64encode(request).decode() for request in requests], connections, seconds)
    done = subprocess.run(
        [sys.executable, str(Path(__file__))],
        input=json.dumps(asdict(spec)), capture_output=True, text=True, timeout=TURN_LIMIT_S + (seconds or 0),
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the load generator failed: {done.stderr[-2000:]}")
    return Outcome(**json.loads(done.stdout))


def main() -> None:
    """Read the specification, do it, say what came of it."""
    spec = Spec(**json.load(sys.stdin))
    json.dump(asdict(uvloop.run(perform(spec))), sys.stdout)


if __name__ == "__main__":
    main()
