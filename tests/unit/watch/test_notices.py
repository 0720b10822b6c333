"""Telling somebody: a webhook on this machine, and what apprise is for."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from berth.terms.outcomes import BerthError, ExitCode
from berth.watch.notices import InDoubt, Notice, NotTold, channels

NOTICE = Notice("Berth: something fits", "wait-1: 1 x p5.48xlarge, $1,146.17 in all")


class Listening(HTTPServer):
    """A webhook that answers as it is told and keeps what it hears; status 0 cuts the line."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 204
        self.heard: list[tuple[str, dict[str, Any]]] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Listening

    def do_POST(self) -> None:
        """Take a notice."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append((self.path, json.loads(body)))
        if self.server.status:
            self.send_response(self.server.status)
            self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's word
        """Say nothing."""


@pytest.fixture
def webhook() -> Iterator[Listening]:
    """One that listens."""
    server = Listening()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_webhook_on_this_machine_is_told(webhook: Listening) -> None:
    """By POST, as JSON, at its path; the same address twice is one channel; its secret is never shown."""
    url = f"{webhook.url.replace('//', '//user:secret@')}/hook?token=s3cret"
    (channel,) = channels([url, url])
    channel.tell(NOTICE)
    assert webhook.heard == [("/hook?token=s3cret", {"title": NOTICE.title, "text": NOTICE.text})]
    assert channel.shown == webhook.url
    assert "s3cret" not in channel.key


def test_what_is_known_not_to_be_told_is_not_in_doubt(webhook: Listening) -> None:
    """A refusal and a closed port are certain; a line that is cut after the request is not."""
    (channel,) = channels([webhook.url])
    webhook.status = 503
    with pytest.raises(NotTold, match="it answered 503"):
        channel.tell(NOTICE)
    webhook.status = 0
    with pytest.raises(InDoubt):
        channel.tell(NOTICE)
    with pytest.raises(NotTold):
        channels(["http://127.0.0.1:1"])[0].tell(NOTICE)


def test_another_address_needs_apprise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said before anything is waited for, with the extra to install."""
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(BerthError) as ended:
        channels(["mailto://user:secret@example.invalid"])
    assert ended.value.exit_code is ExitCode.BAD_REQUEST
    assert "secret" not in str(ended.value)
    assert ended.value.next_step == "pip install 'gpu-berth[notify]'"


class FakeApprise:
    """The part of apprise that is used; `delivers` is what it says."""

    delivers = True

    def add(self, url: str) -> bool:
        """Whether it knows the address."""
        return url.startswith("ntfy://")

    def notify(self, title: str, body: str) -> bool:
        """Send it."""
        return self.delivers


def test_apprise_takes_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it knows is told; what it cannot confirm is in doubt; what it does not know is refused at once."""
    monkeypatch.setitem(sys.modules, "apprise", type("Module", (), {"Apprise": FakeApprise}))
    (channel,) = channels(["ntfy://topic"])
    channel.tell(NOTICE)
    monkeypatch.setattr(FakeApprise, "delivers", False)
    with pytest.raises(InDoubt):
        channel.tell(NOTICE)
    with pytest.raises(BerthError):
        channels(["nonsense"])
