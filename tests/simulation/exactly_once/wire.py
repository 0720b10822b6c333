"""The wire between the halves: real requests and real answers, and everything that a line can do to them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import urlsplit

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from berth.yard.faults import FaultKind
from berth.yard.wire.http import Request, Response

from .effects import Effects
from .moments import TrueTime
from .troubles import Script, Trouble
from .yard_half import YardHalf

LATEST = timedelta(seconds=55)
"""How long after it was sent a service may still do what the client has given up. The six-minute rule rests
on it: a minute for this, five until the write shows."""
UNDEFENDED = frozenset({"PurchaseCapacityBlock"})
"""The paid call that AWS cannot tell from a second wish: a request that the network delivers twice buys
twice, and nothing that a client does can help. The simulation delivers it once. Of extensions AWS sells one
unpaid at a time, so the second copy is refused, and it is the refusal that the client hears."""
PAID = UNDEFENDED | {"CreateTrainingPlan", "ExtendTrainingPlan", "PurchaseCapacityBlockExtension"}


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that is under way though its client has given up."""

    due: datetime
    operation: str
    request: Request


class Wire:
    """One line for all processes. `paid` hears of every paid call before it is sent."""

    def __init__(
        self,
        yard: YardHalf,
        time: TrueTime,
        chance: random.Random,
        *,
        tells_time: bool,
        paid: Callable[[str, Request], None],
    ) -> None:
        self._yard = yard
        self._time = time
        self._chance = chance
        self._tells_time = tells_time
        self._paid = paid
        self.late: list[Sent] = []
        self.spoil: Callable[[str, Response], Response] = lambda operation, response: response
        self.calls: dict[str, int] = {}

    def exchange(self, effects: Effects, script: Script, operation: str, raw: Any) -> AWSResponse:
        """Send, serve, answer; raises what botocore's own connection would."""
        effects(f"wire {operation}:before")
        trouble = script.take_wire()
        request = _request(raw)
        if operation in PAID:
            self._paid(operation, request)
        response = self._served(operation, request, trouble)
        if response is not None and trouble is Trouble.TWICE and operation not in UNDEFENDED:
            response = self._serve(operation, request)
        effects(f"wire {operation}:done")
        troubles = (trouble, script.take_reply())
        if response is None or Trouble.LOST_REPLY in troubles:
            raise ConnectionClosedError(endpoint_url=raw.url)
        if Trouble.GARBLED in troubles:
            response = Response(response.status, response.headers, response.body[: len(response.body) // 2])
        return self._answer(raw.url, self.spoil(operation, response))

    def deliver(self, until: datetime) -> None:
        """Do what is still under way and due by then, each at its instant."""
        while self.late and min(one.due for one in self.late) <= until:
            first = min(self.late, key=lambda one: one.due)
            self.late.remove(first)
            self._yard.follow(first.due)
            self._serve(first.operation, first.request)

    def _served(self, operation: str, request: Request, trouble: Trouble | None) -> Response | None:
        if trouble is Trouble.LOST_BEFORE:
            return None
        if trouble is Trouble.LATE:
            wait = timedelta(seconds=self._chance.uniform(0.1, LATEST.total_seconds()))
            self.late.append(Sent(self._time.now + wait, operation, request))
            raise ReadTimeoutError(endpoint_url=request.path)
        if trouble is Trouble.THROTTLE:
            self._yard.arm(FaultKind.THROTTLE, operation)
        if trouble is Trouble.ERROR_AFTER:
            self._yard.arm(FaultKind.ERROR_AFTER_COMMIT, operation)
        return self._serve(operation, request)

    def _serve(self, operation: str, request: Request) -> Response | None:
        self.calls[operation] = self.calls.get(operation, 0) + 1
        return self._yard.serve(request)

    def _answer(self, url: str, response: Response) -> AWSResponse:
        headers = {**response.headers, "date": format_datetime(self._time.now, usegmt=True)}
        if not self._tells_time:
            headers.pop("x-yard-time", None)
        answer = AWSResponse(url, response.status, headers, None)
        answer._content = response.body
        return answer


def _request(raw: Any) -> Request:
    """botocore's prepared request as it would come over a line."""
    parts = urlsplit(raw.url)
    headers = {name.lower(): _text(value) for name, value in raw.headers.items()}
    headers.setdefault("host", parts.netloc)
    body = raw.body or b""
    return Request(
        raw.method, parts.path or "/", parts.query, headers, body.encode() if isinstance(body, str) else body
    )


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
