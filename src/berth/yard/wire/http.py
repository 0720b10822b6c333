"""One HTTP request and one answer, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Request:
    """A whole request. `path` and `query` are as sent, still percent-encoded (signatures cover them so).

    `headers` has lower-case names; of a header sent twice the values are joined with a comma.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer. `headers` lacks content-length, date and server; the server adds them."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
