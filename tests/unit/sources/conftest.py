"""EC2 as a fake that a test scripts, and a clock that moves by sleeping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
START = datetime(2026, 12, 2, 11, 30, tzinfo=UTC)


class FakeClock:
    """A clock that moves only by sleeping; `slept` adds it up."""

    throttle_scale = 1.0

    def __init__(self) -> None:
        self.slept = 0.0
        self.sleeps: list[float] = []

    def now(self) -> datetime:
        """The present."""
        return NOW + timedelta(seconds=self.slept)

    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.slept

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.slept += seconds
        self.sleeps.append(seconds)


def refused(code: str, message: str = "", operation: str = "Describe") -> ClientError:
    """A refusal of the service."""
    error = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    return ClientError(error, operation)  # type: ignore[arg-type]


class FakeService:
    """A client whose operations are functions of the test; `asked` holds each call."""

    def __init__(self, **operations: Callable[..., Mapping[str, Any]]) -> None:
        self._operations = operations
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., Mapping[str, Any]]:
        if name.startswith("_"):
            raise AttributeError(name)

        def call(**request: Any) -> Mapping[str, Any]:
            self.asked.append((name, request))
            if name not in self._operations:
                raise refused("InvalidAction")
            return self._operations[name](**request)

        return call

    def calls(self, operation: str) -> list[dict[str, Any]]:
        """What was asked of one operation."""
        return [request for name, request in self.asked if name == operation]


def zones(**_: Any) -> Mapping[str, Any]:
    """DescribeAvailabilityZones of us-east-1, as far as the tests need it."""
    return {"AvailabilityZones": [{"ZoneName": f"us-east-1{z}", "ZoneId": f"use1-az{z}"} for z in "abc"]}


@pytest.fixture
def clock() -> FakeClock:
    """A fresh clock at 1 December 2026, 09:00Z."""
    return FakeClock()
