"""An ear that must hear nothing, and a small yard that answers what the client asks at the door."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import botocore.session
import pytest
from botocore.loaders import create_loader

ACCOUNT = "111122223333"
KEYS = ("YARD0000000000000001", "secret")


@pytest.fixture(autouse=True, scope="session")
def models_read_once() -> Iterator[None]:
    """Share botocore's parsed service models between sessions: reading EC2's takes a tenth of a second."""
    loaders: dict[str | None, Any] = {}

    def cached(path: str | None = None) -> Any:
        return loaders.setdefault(path, create_loader(path))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", cached)
        yield


class Ear:
    """A listening socket on loopback; `heard` is True as soon as anybody connected."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    @property
    def heard(self) -> bool:
        """Whether somebody connected since it was last asked."""
        try:
            connection, _ = self._socket.accept()
        except BlockingIOError:
            return False
        connection.close()
        return True

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


@dataclass
class SmallYard:
    """Answers by operation; `asked` holds (operation, body, headers) of every request, `time` its clock."""

    url: str = ""
    time: str | None = "2026-12-01T09:00:00Z"
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    redirect: str = ""

    def operations(self) -> list[str]:
        """The operations asked, in order."""
        return [operation for operation, _, _ in self.asked]


STS = f"""<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::{ACCOUNT}:user/ada</Arn><UserId>U</UserId><Account>{ACCOUNT}</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>"""
ZONES = """<DescribeAvailabilityZonesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><availabilityZoneInfo>
<item><zoneName>us-east-1f</zoneName><zoneId>use1-az6</zoneId></item>
</availabilityZoneInfo></DescribeAvailabilityZonesResponse>"""


def _handler(yard: SmallYard) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            target = self.headers.get("X-Amz-Target", "")
            operation = target.rpartition(".")[2] or body.partition("Action=")[2].partition("&")[0]
            yard.asked.append((operation, body, dict(self.headers)))
            status, text = yard.answers.get(operation, (400, json.dumps({"__type": "InvalidAction"})))
            self.send_response(status)
            if yard.time is not None:
                self.send_header("x-yard-time", yard.time)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def do_GET(self) -> None:
            """A presigned request; with `redirect` it is sent elsewhere."""
            yard.asked.append(("presigned", self.path, dict(self.headers)))
            status, text = yard.answers.get("presigned", (200, STS))
            self.send_response(302 if yard.redirect else status)
            if yard.redirect:
                self.send_header("Location", yard.redirect)
            if yard.time is not None:
                self.send_header("x-yard-time", yard.time)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            return

    return Handler


@pytest.fixture
def ear() -> Iterator[Ear]:
    """A place that nothing may ever be sent to."""
    made = Ear()
    yield made
    made.close()


@pytest.fixture
def small_yard() -> Iterator[SmallYard]:
    """A small yard on loopback."""
    yard = SmallYard(answers={"GetCallerIdentity": (200, STS), "DescribeAvailabilityZones": (200, ZONES)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(yard))
    yard.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield yard
    server.shutdown()
    server.server_close()


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch, ear: Ear) -> Callable[..., None]:
    """`surroundings(NAME=value, ...)`: these variables, and every way out of the machine ends at the ear."""

    def made(**variables: str) -> None:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
            monkeypatch.setenv(name, ear.url)
        monkeypatch.setenv("NO_PROXY", "")
        monkeypatch.setenv("no_proxy", "")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return made


@pytest.fixture
def in_a_rehearsal(surroundings: Callable[..., None], small_yard: SmallYard) -> Callable[..., None]:
    """The environment that `berth yard env` prints, for the small yard; variables may be added."""

    def made(**more: str) -> None:
        base = {
            "AWS_ENDPOINT_URL": small_yard.url,
            "BERTH_YARD": small_yard.url,
            "AWS_ACCESS_KEY_ID": KEYS[0],
            "AWS_SECRET_ACCESS_KEY": KEYS[1],
            "AWS_REGION": "us-east-1",
        }
        surroundings(**(base | more))

    return made
