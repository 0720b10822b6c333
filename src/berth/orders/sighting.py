"""What a look at AWS for an order's reservation sees, and by what the reservation would be known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from berth.orders.names import reservation_name
from berth.orders.order import Order, OrderKey
from berth.orders.seen import SeenReservation
from berth.planner.offers import Offer


@dataclass(frozen=True, slots=True)
class Trace:
    """By what an order's reservation is known in AWS.

    `arn` is None until it is known. `offer` and `sent_at` say what the latest paid call asked for, and when
    its intent was committed: by them a reservation that lost its mark would be known; None when no call was
    sent. `intents` are those of all attempts.
    """

    key: OrderKey
    name: str
    arn: str | None = None
    offer: Offer | None = None
    sent_at: datetime | None = None
    intents: frozenset[str] = frozenset()


def trace_of(order: Order) -> Trace:
    """The trace of an order of the journal."""
    return Trace(
        order.key, order.plan_name, order.reservation_arn, order.offer, order.attempt.started_at,
        frozenset(attempt.intent_id for attempt in order.attempts),
    )  # fmt: skip


def trace_of_key(key: OrderKey) -> Trace:
    """The trace of an order that this journal may not know."""
    return Trace(key, reservation_name(key))


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a look saw.

    `reservation` is the order's, or one that looks like it; None when none was seen. `ours` says whether it
    carries our mark; None when that could not be read. `complete`: every read answered in full, so that not
    seeing means not there (five minutes after a write); `trouble` says what did not. `note` is something that
    a person should read all the same.
    """

    reservation: SeenReservation | None
    ours: bool | None
    complete: bool
    trouble: str = ""
    note: str = ""
