"""A load generator: ready-made requests over some connections, one at a time on each, no pipelining.

A program of its own, so that it costs the measured server no time of its interpreter. Standard input: one
JSON document (see `Spec`); standard output: one JSON document with the counts and latencies.
A server that closes the connection after its answer is met by a new connection, whose time counts.
"""

from __future__ import annotations

import base64
import json
import select
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

TURN_LIMIT_S = 240.0  # signatures are good for five minutes


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


class Connection:
    """One connection: a request, its whole answer, the next request. A closed one is opened again."""

    def __init__(self, run: Run, port: int, poll: select.epoll, open_ones: dict[int, Connection]) -> None:
        self._run = run
        self._port = port
        self._poll = poll
        self._open = open_ones
        self._socket: socket.socket | None = None
        self._received = b""
        self._sent = 0.0
        self._next()

    def _next(self) -> None:
        request = self._run.take()
        if request is None:
            self._close()
            return
        self._sent = time.perf_counter()
        if self._socket is None:
            self._connect()
        assert self._socket is not None
        self._socket.sendall(request)

    def _connect(self) -> None:
        self._socket = socket.create_connection(("127.0.0.1", self._port), TURN_LIMIT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open[self._socket.fileno()] = self
        self._poll.register(self._socket.fileno(), select.EPOLLIN)

    def _close(self) -> None:
        if self._socket is not None:
            del self._open[self._socket.fileno()]
            self._socket.close()  # which takes it out of the poll
            self._socket = None

    def readable(self) -> None:
        """Something has arrived."""
        assert self._socket is not None
        received = self._socket.recv(262_144)
        if not received:
            raise ConnectionError("the server closed before it answered")
        data = self._received + received if self._received else received
        end = data.find(b"\r\n\r\n")
        head = data[:end].lower()
        if end < 0 or len(data) < end + 4 + content_length(head):
            self._received = data
            return
        self._received = b""
        self._run.note(self._sent, head, data[end + 4 :])
        if b"connection: close" in head or head.startswith(b"http/1.0"):
            self._close()
        self._next()


def content_length(head: bytes) -> int:
    """The length of the body; `head` in lower case. Raises ValueError where the server does not say."""
    _, found, rest = head.partition(b"content-length:")
    if not found:
        raise ValueError("an answer without content-length")
    return int(rest.partition(b"\r\n")[0])


def perform(spec: Spec) -> Outcome:
    """Send everything, gather what came back."""
    run = Run([base64.b64decode(text) for text in spec.requests], spec.seconds)
    open_ones: dict[int, Connection] = {}
    with select.epoll() as poll:
        for _ in range(spec.connections):
            Connection(run, spec.port, poll, open_ones)
        while open_ones:
            ready = poll.poll(TURN_LIMIT_S)
            if not ready:
                raise TimeoutError(f"no answer in {TURN_LIMIT_S:.0f} s")
            for number, _ in ready:
                open_ones[number].readable()
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
        input=json.dumps(asdict(spec)), capture_output=True, text=True, check=False,
        timeout=TURN_LIMIT_S + (seconds or 0),
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the load generator failed: {done.stderr[-2000:]}")
    return Outcome(**json.loads(done.stdout))


def main() -> None:
    """Read the specification, do it, say what came of it."""
    spec = Spec(**json.load(sys.stdin))
    json.dump(asdict(perform(spec)), sys.stdout)


if __name__ == "__main__":
    main()
