"""What an operation is, and the register of those that the yard serves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from berth.yard.identity.accounts import Account
from berth.yard.store.transaction import Reading, Transaction

if TYPE_CHECKING:
    from berth.yard.assembly import Yard


@dataclass(frozen=True, slots=True)
class Call:
    """One request that passed signature and validation.

    `params` has botocore's member names; instants in it are aware UTC. `now` is the yard's clock when the
    call came in. `lag` is how long after a write this call does not see it yet (a fault; else zero).
    """

    account: Account
    region: str
    service: str
    operation: str
    params: Mapping[str, Any]
    request_id: str
    now: datetime
    lag: timedelta = timedelta(0)


class Kind(StrEnum):
    """How an operation is run."""

    READ = "read"  # on the event loop, one snapshot of the store
    WRITE = "write"  # in the writer, one transaction
    RELAY = "relay"  # awaited: it talks to a container


ReadFn = Callable[[Call, "Yard", Reading], dict[str, Any]]
WriteFn = Callable[[Call, "Yard", Transaction], dict[str, Any]]
RelayFn = Callable[[Call, "Yard", Reading], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One served operation."""

    service: str
    name: str
    kind: Kind
    run: Callable[..., Any]


_REGISTER: dict[tuple[str, str], Operation] = {}


def _register(service: str, name: str, kind: Kind, run: Callable[..., Any]) -> None:
    if (service, name) in _REGISTER:
        raise ValueError(f"{service} {name} is registered twice")
    _REGISTER[(service, name)] = Operation(service, name, kind, run)


def reads(service: str, name: str) -> Callable[[ReadFn], ReadFn]:
    """Register an operation that only reads."""

    def register(run: ReadFn) -> ReadFn:
        _register(service, name, Kind.READ, run)
        return run

    return register


def writes(service: str, name: str) -> Callable[[WriteFn], WriteFn]:
    """Register an operation that changes something."""

    def register(run: WriteFn) -> WriteFn:
        _register(service, name, Kind.WRITE, run)
        return run

    return register


def relays(service: str, name: str) -> Callable[[RelayFn], RelayFn]:
    """Register an operation that talks to a container."""

    def register(run: RelayFn) -> RelayFn:
        _register(service, name, Kind.RELAY, run)
        return run

    return register


def find(service: str, name: str) -> Operation | None:
    """The operation, or None when the yard does not serve it."""
    return _REGISTER.get((service, name))


def served() -> list[tuple[str, str]]:
    """Everything served, as (service, operation), sorted."""
    return sorted(_REGISTER)
