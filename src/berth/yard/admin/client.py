"""Asking a running yard's administration over its unix socket: what the command line and the fixture use."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

TIMEOUT_S = 1_000.0  # moving a clock may wait for containers


class NoYard(RuntimeError):
    """No yard runs on this data folder."""


class AdminRefused(RuntimeError):
    """The yard said no; the text is its reason."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket file."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def ask(admin_socket: Path, method: str, path: str, body: Any = None, **query: Any) -> Any:
    """One request; the JSON of the answer. Raises NoYard, AdminRefused."""
    wanted = {name: value for name, value in query.items() if value is not None}
    connection = _UnixConnection(admin_socket)
    try:
        connection.request(
            method,
            f"{path}?{urlencode(wanted)}" if wanted else path,
            body=json.dumps(body) if body is not None else None,
        )
        response = connection.getresponse()
        text = response.read()
    except (FileNotFoundError, ConnectionRefusedError):
        raise NoYard(f"no yard runs on {admin_socket.parent}") from None
    except (ConnectionError, http.client.HTTPException):
        raise NoYard(f"the yard on {admin_socket.parent} ended before it answered") from None
    finally:
        connection.close()
    answer = json.loads(text) if response.headers.get_content_type() == "application/json" else {}
    if response.status >= 400:
        raise AdminRefused(str(answer.get("error") or f"{response.status} {response.reason}"))
    return answer
