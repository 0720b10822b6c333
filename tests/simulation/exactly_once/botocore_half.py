"""botocore under simulated time: production's clients, made once, whose requests never leave the process."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import cache
from typing import Any
from unittest.mock import patch

import botocore.session
from botocore.retries import quota

from berth.aws.guards import Power
from berth.aws.session import _Clients
from berth.aws.worlds import Yard
from berth.aws.yard_clock import FollowingClock
from berth.terms.clock import SystemClock

URL = "http://127.0.0.1:4599"  # nothing listens there: if a request ever left, it would reach nobody
HERE = Yard(URL, None)
REGION = "us-east-1"


class LeftTheProcess(BaseException):
    """A request got past the simulated wire. Nothing may catch this."""


class NoNetwork:
    """In the place of botocore's connections."""

    def send(self, request: Any) -> Any:
        """Never."""
        raise LeftTheProcess(request.url)

    def close(self) -> None:
        """Nothing is open."""


class Acting:
    """Who acts now: botocore asks one global clock, and signs and sleeps by it."""

    def __init__(self) -> None:
        self.now: Callable[[], datetime] = SystemClock().now
        self.sleep: Callable[[float], None] = _never


def _never(seconds: float) -> None:
    raise LeftTheProcess(f"somebody sleeps {seconds} s for real")


ACTING = Acting()


class _Time:
    """In the place of the module `time` in botocore's endpoint."""

    @staticmethod
    def sleep(seconds: float) -> None:
        """Sleep on the clock of who acts."""
        ACTING.sleep(seconds)


def _signing_time(remove_tzinfo: bool = True) -> datetime:
    now = ACTING.now()
    return now.replace(tzinfo=None) if remove_tzinfo else now


@contextmanager
def simulated_botocore(seed: int) -> Iterator[None]:
    """botocore's time and randomness are the simulation's inside."""
    before = random.getstate()
    with ExitStack() as patches:
        for module in ("auth", "endpoint"):
            patches.enter_context(patch(f"botocore.{module}.get_current_datetime", _signing_time))
        patches.enter_context(patch("botocore.endpoint.time", _Time))
        random.seed(seed)  # the jitter of botocore's own retries
        try:
            yield
        finally:
            random.setstate(before)
            ACTING.now, ACTING.sleep = SystemClock().now, _never


class WiredClients(_Clients):
    """Production's clients with production's hooks, and one more: what would be sent goes to `exchange`."""

    def __init__(self, session: botocore.session.Session) -> None:
        super().__init__(session, HERE, FollowingClock(SystemClock()), REGION)
        self.exchange: Callable[[str, Any], Any] = _nobody
        self.answered: Callable[[str], None] = lambda operation: None
        self.parsed: Callable[[str, dict[str, Any]], None] = lambda operation, answer: None
        self._quotas: list[Any] = []

    def lend(
        self, clock: FollowingClock, exchange: Callable[[str, Any], Any], answered: Callable[[str], None]
    ) -> None:
        """Give the clients to another process: its clock, its wire, nothing left of the one before."""
        self.clock, self.exchange, self.answered = clock, exchange, answered
        for one in self._quotas:
            one._available_capacity = one._max_capacity

    def _create(self, service: str, region: str, power: Power, **keys: Any) -> Any:
        quotas = self._quotas

        class Remembered(quota.RetryQuota):
            def __init__(self, *args: Any, **more: Any) -> None:
                super().__init__(*args, **more)
                quotas.append(self)

        with (
            patch("botocore.retries.quota.RetryQuota", Remembered),
            patch.dict("os.environ", {"AWS_ENDPOINT_URL": URL}),
        ):
            client = super()._create(service, region, power, **keys)
        client._endpoint.http_session = NoNetwork()
        events = client.meta.events
        events.register("before-send", self._send)
        events.register("after-call", self._answered)
        return client

    def _send(self, *, request: Any, event_name: str, **_: Any) -> Any:
        return self.exchange(event_name.rpartition(".")[2], request)

    def _answered(self, *, event_name: str, parsed: dict[str, Any], **_: Any) -> None:
        operation = event_name.rpartition(".")[2]
        self.answered(operation)
        self.parsed(operation, parsed)


def _nobody(operation: str, request: Any) -> Any:
    raise LeftTheProcess(f"{operation} by a process that is gone")


@cache
def clients_of(machine: int, access_key: str, secret: str) -> WiredClients:
    """The clients of a machine, made at the first asking and lent to one process after another."""
    session = botocore.session.Session(profile=None)
    session.set_credentials(access_key, secret)
    return WiredClients(session)
