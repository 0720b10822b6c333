"""Faults on demand: what a rehearsal does wrong when it is told to.

A fault is armed with `berth yard fault arm KIND`, for an operation (or all), an account (or all), a number of
times (or until cleared). The kinds are the troubles of docs/internals/faults.md; none exists outside a
rehearsal, and a rehearsal never de-duplicates requests, so a client's resends show.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any


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
    EXPIRED_SESSION = "expired-session"  # the keys of a role's session are refused as over, nothing done


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


# Kinds that are a condition and not an event: nothing uses them up, they hold until they are cleared.
STANDING = frozenset({FaultKind.LAG, FaultKind.PRICE_CHANGE})
# Kinds that can meet these operations only.
_PURCHASES = (
    "CreateTrainingPlan",
    "ExtendTrainingPlan",
    "PurchaseCapacityBlock",
    "PurchaseCapacityBlockExtension",
)
_ONLY_AT = {
    FaultKind.GONE: _PURCHASES,
    FaultKind.PAYMENT_FAILURE: _PURCHASES,
    FaultKind.PRICE_CHANGE: (
        "SearchTrainingPlanOfferings",
        "DescribeCapacityBlockOfferings",
        "DescribeCapacityBlockExtensionOfferings",
    ),
}
_NUMBERS = frozenset({FaultKind.STALL, FaultKind.LAG, FaultKind.PRICE_CHANGE})
_NAMES = frozenset({FaultKind.ABSENT_MEMBERS, FaultKind.UNKNOWN_VALUES})
AMOUNT_MAX = 100_000


def read_fault(
    body: Mapping[str, Any], account_id: str | None, fault_id: int, operations: Collection[str]
) -> Fault:
    """A fault as somebody asks for it: `kind`, `operation`, `times`, `amount`. Raises ValueError.

    `operations` are the names of those that are served. What could never happen is refused, since a fault
    that stays away looks like a client that copes.
    """
    try:
        kind = FaultKind(str(body.get("kind")))
    except ValueError:
        known = ", ".join(kind.value for kind in FaultKind)
        raise ValueError(f"no fault {body.get('kind')!r}; there are: {known}") from None
    operation = str(body.get("operation") or "*")
    _check_operation(kind, operation, operations)
    times = body.get("times")
    if times is not None and (type(times) is not int or times < 1):
        raise ValueError("times must be a whole number from 1, or absent for until cleared")
    amount = str(body.get("amount") or "")
    _check_amount(kind, amount)
    return Fault(fault_id, kind, operation, account_id, None if kind in STANDING else times, amount)


def _check_operation(kind: FaultKind, operation: str, operations: Collection[str]) -> None:
    only = _ONLY_AT.get(kind)
    if not any(fnmatchcase(name, operation) for name in only or operations):
        what = (
            f"{kind.value} concerns {' and '.join(only)}"
            if only
            else f"served are {', '.join(sorted(operations))}"
        )
        raise ValueError(f"no operation matches {operation!r}: {what}")


def _check_amount(kind: FaultKind, amount: str) -> None:
    if kind in _NAMES:
        if not amount.strip(", "):
            raise ValueError(f"{kind.value} needs an amount: the names of members, comma separated")
    elif kind not in _NUMBERS:
        if amount:
            raise ValueError(f"{kind.value} takes no amount")
    elif amount and not (_NUMBER.fullmatch(amount) and 0 < float(amount) < AMOUNT_MAX):
        raise ValueError(
            f"{kind.value}: amount must be a number above zero and below {AMOUNT_MAX}, not {amount!r}"
        )


_NUMBER = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)


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
