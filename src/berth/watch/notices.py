"""Telling somebody: a webhook on this machine, or whatever the library apprise can reach.

A notice is told once. What is not known to have failed is taken as told: a message twice in the night is
worse than one that is shown when the same command is typed again.
"""

from __future__ import annotations

import http.client
import importlib
import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit

from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.text import plain

TIMEOUT_S = 10.0


class NotTold(Exception):
    """The notice is known not to have been told; the text says why."""


class InDoubt(Exception):
    """Whether the notice was told is not known; the text says why."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What is told: a line for a title, and the text."""

    title: str
    text: str


class Channel(Protocol):
    """One way to tell somebody."""

    @property
    def shown(self) -> str:
        """The channel for people, without the secrets that its address may hold."""
        ...

    @property
    def key(self) -> str:
        """What it is known by in the history: a digest, since addresses hold secrets."""
        ...

    def tell(self, notice: Notice) -> None:
        """Tell it once. Raises NotTold or InDoubt."""
        ...


def channels(urls: Sequence[str]) -> tuple[Channel, ...]:
    """The channels of these addresses, each once.

    Raises BerthError (bad request) for an address that nobody serves, before anything is waited for.
    """
    return tuple(_channel(url) for url in dict.fromkeys(urls))


def _channel(url: str) -> Channel:
    parts = urlsplit(url)
    if parts.scheme in {"http", "https"} and _is_here(parts.hostname or ""):
        return Webhook(url, parts)
    return Apprised(url, parts)


def _key(url: str) -> str:
    return sha256(url.encode()).hexdigest()[:32]


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Webhook:
    """A program on this machine that takes `{"title": ..., "text": ...}` as JSON by POST."""

    def __init__(self, url: str, parts: SplitResult) -> None:
        self._parts = parts
        self.key = _key(url)
        self.shown = f"{parts.scheme}://{plain(parts.netloc.rpartition('@')[2], 80)}"

    def tell(self, notice: Notice) -> None:
        """POST it. An answer outside 200 to 299, and no connection at all, are known not to have told."""
        secure = self._parts.scheme == "https"
        made = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        host, port = self._parts.hostname or "", self._parts.port
        connection = made(host, port, timeout=TIMEOUT_S)
        body = json.dumps({"title": notice.title, "text": notice.text})
        target = (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")
        try:
            self._connect(connection)
            connection.request("POST", target, body, {"Content-Type": "application/json"})
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as problem:
            raise InDoubt(plain(problem, 120)) from None
        finally:
            connection.close()
        if not 200 <= status < 300:
            raise NotTold(f"it answered {status}")

    @staticmethod
    def _connect(connection: http.client.HTTPConnection) -> None:
        try:
            connection.connect()
        except OSError as problem:
            raise NotTold(plain(problem, 120)) from None


class Apprised:
    """An address of apprise: mail, Slack, Teams, ntfy and many more."""

    def __init__(self, url: str, parts: SplitResult) -> None:
        self.key = _key(url)
        self.shown = plain(parts.scheme or "an address without a scheme", 40)
        try:
            library: Any = importlib.import_module("apprise")
        except ModuleNotFoundError:
            raise BerthError(
                ExitCode.BAD_REQUEST,
                f"--notify {self.shown}: only a webhook on this machine can be told without apprise",
                "pip install 'gpu-berth[notify]'",
            ) from None
        self._sender = library.Apprise()
        if not self._sender.add(url):
            raise BerthError(
                ExitCode.BAD_REQUEST,
                f"--notify {self.shown}: apprise knows no such address",
                "its own list of services says how each is written",
            )

    def tell(self, notice: Notice) -> None:
        """Hand it to apprise, which says yes or no and not why."""
        if not self._sender.notify(title=notice.title, body=notice.text):
            raise InDoubt("apprise could not say that it was delivered")
