"""Faults on demand: what a rehearsal does wrong when it is told to.

A fault is armed with `berth yard fault KIND`, for an operation (or all), an account (or all), a number of
times (or until cleared). The kinds are the troubles of docs/internals/faults.md; none exists outside a
rehearsal, and a rehearsal never de-duplicates requests, so a client's resends show.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase


class FaultKind(StrEnum):
    """What goes wrong. The meaning of `amount` follows each."""

    LOST_REPLY = "lost-reply"  # done and committed, then the line is cut
    ERROR_AFTER_COMMIT = "error-after-commit"  # done and committed, then 500
    STALL = "stall"  # done and committed, then no answer for `amount` real seconds (default 65)
    THROTTLE = "throttle"  # refused with the service's throttling error, nothing done
    GONE = "gone"  # the offering is sold to somebody else between search and purchase
    PRICE_CHANGE = "price-change"  # from now on fees are multiplied by `amount` (default 1.15)
    PAYMENT_FAILURE = "payment-failure"  # the payment of the next purchase fails
    LAG = "lag"  # reads do not see a write for `amount` yard minutes (default 5)
    ABSENT_MEMBERS = "absent-members"  # the members named in `amount` (comma separated) are left out
    UNKNOWN_VALUES = "unknown-values"  # the members named in `amount` hold a value that no model knows
    MALFORMED_BODY = "malformed-body"  # the answer's body is cut in the middle


@dataclass(frozen=True, slots=True)
class Fault:
    """One armed fault. `operation` may use `*`; `times` None means until cleared."""

    fault_id: int
    kind: FaultKind
    operation: str = "*"
    account_id: str | None = None
    times: int | None = None
    amount: str = ""

    def meets(self, operation: str, account_id: str) -> bool:
        """Whether the fault concerns this call."""
        return fnmatchcase(operation, self.operation) and self.account_id in (None, account_id)


class Faults:
    """The armed faults, oldest first. Safe from any thread."""

    def __init__(self, armed: Iterable[Fault] = ()) -> None:
        self._lock = threading.Lock()
        self._armed: tuple[Fault, ...] = tuple(armed)

    def armed(self) -> tuple[Fault, ...]:
        """What is armed now."""
        return self._armed

    def arm(self, fault: Fault) -> None:
        """Add a fault."""
        with self._lock:
            self._armed = (*self._armed, fault)

    def clear(self) -> int:
        """Disarm everything; how many there were."""
        with self._lock:
            count, self._armed = len(self._armed), ()
            return count

    def standing(self, kind: FaultKind, operation: str, account_id: str) -> Fault | None:
        """The first fault of `kind` for this call, without using it up."""
        for fault in self._armed:
            if fault.kind is kind and fault.meets(operation, account_id):
                return fault
        return None

    def take(self, kind: FaultKind, operation: str, account_id: str) -> Fault | None:
        """The first fault of `kind` for this call; one of its times is used up."""
        if not self._armed:
            return None
        with self._lock:
            fault = self.standing(kind, operation, account_id)
            if fault is None or fault.times is None:
                return fault
            left = replace(fault, times=fault.times - 1)
            self._armed = tuple(
                left if f is fault else f for f in self._armed if f is not fault or left.times != 0
            )
            return fault
