"""The measured servers as child processes, and requests for them exactly as boto3 would send them."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.awsrequest import AWSResponse
from botocore.config import Config

HERE = Path(__file__).parent
FLEET = HERE / "fleet.toml"
REGION = "us-east-1"
INSTANCE_TYPE = "ml.trn1.32xlarge"
START_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: where it listens, and its process."""

    port: int
    pid: int

    def cpu_s(self) -> float:
        """Processor seconds that the process has used, all threads, user and system."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self) -> float:
        """Resident memory in MB (10^6 bytes)."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def _child(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


@contextlib.contextmanager
def bare(size: int) -> Iterator[Server]:
    """The server that answers `size` ready-made bytes."""
    with _child([sys.executable, str(HERE / "bare.py"), str(size)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        yield Server(int(child.stdout.readline()), child.pid)


@contextlib.contextmanager
def moto() -> Iterator[Server]:
    """`moto_server` (threaded, one process), its log of requests thrown away."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with _child(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            if child.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("moto_server did not start")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.02)
        yield Server(port, child.pid)


def client(url: str, key_id: str, secret: str) -> Any:
    """A SageMaker client with one attempt a call."""
    session = boto3.session.Session(
        aws_access_key_id=key_id, aws_secret_access_key=secret, region_name=REGION
    )
    return session.client("sagemaker", endpoint_url=url, config=Config(retries={"total_max_attempts": 1}))


class _Empty:
    """The body of the answer that nobody sends."""

    def stream(self) -> Iterator[bytes]:
        yield b"{}"


def recorded(sagemaker: Any, make: Callable[[Any], None]) -> list[bytes]:
    """The whole HTTP requests, signed, that boto3 sends for the calls that `make` makes. None is sent."""
    found: list[bytes] = []

    def keep(request: Any, **_: Any) -> AWSResponse:
        headers = {
            name: value.decode() if isinstance(value, bytes) else str(value)
            for name, value in request.headers.items()
        }
        headers["Host"] = urlsplit(request.url).netloc
        body = request.body or b""
        body = body.encode() if isinstance(body, str) else body
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        found.append(f"POST {urlsplit(request.url).path or '/'} HTTP/1.1\r\n{head}\r\n".encode() + body)
        return AWSResponse(request.url, 200, {"content-type": "application/x-amz-json-1.1"}, _Empty())

    sagemaker.meta.events.register_first("before-send.sagemaker.*", keep)
    try:
        make(sagemaker)
    finally:
        sagemaker.meta.events.unregister("before-send.sagemaker.*", keep)
    return found
