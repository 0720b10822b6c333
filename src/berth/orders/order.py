"""An order: the durable record of wanting to buy one reservation, and the table of its states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from berth.orders.extensions.extension import Extension, ExtensionState
from berth.orders.looks import Look
from berth.planner.offers import Offer
from berth.terms.instants import parse_instant
from berth.terms.money import Money
from berth.terms.outcomes import Spending
from berth.terms.ways import Way
from berth.terms.window import Window


@dataclass(frozen=True, slots=True, order=True)
class OrderKey:
    """What makes an order one and the same: account, need name, sequence and piece. Nothing else does.

    `account` has 12 digits; `sequence` counts from 1, and 2 exists only when somebody asked for another
    reservation for the same need, or when the reservation of 1 is known to have failed. `piece` is 0 for an
    order of one reservation and for an order of several as a whole; a piece of such an order counts from 1
    and is in `account` even where the whole was ordered from another one.
    """

    account: str
    need: str
    sequence: int = 1
    piece: int = 0

    def __str__(self) -> str:
        """How a person writes it: `eval`, `eval/2` for a later one, `eval/1.2` for a piece."""
        if self.piece:
            return f"{self.need}/{self.sequence}.{self.piece}"
        return self.need if self.sequence == 1 else f"{self.need}/{self.sequence}"

    @property
    def mark(self) -> str:
        """The value of the tag `berth:order`: whoever finds it knows which order it belongs to."""
        piece = f".{self.piece}" if self.piece else ""
        return f"{self.account}/{self.need}/{self.sequence}{piece}"


_MARK = re.compile(
    r"(?P<account>\d{12})/(?P<need>[^/\s]{1,64})/(?P<sequence>[1-9]\d{0,5})(?:\.(?P<piece>[1-9]\d{0,3}))?",
    re.ASCII,
)
_NAME = re.compile(r"(?P<need>[^/]+)(?:/(?P<sequence>[1-9]\d*)(?:\.(?P<piece>[1-9]\d*))?)?", re.ASCII)


def key_of_mark(mark: str) -> OrderKey | None:
    """The order of which this is the mark; None when it is no order's."""
    found = _MARK.fullmatch(mark)
    if found is None:
        return None
    return OrderKey(found["account"], found["need"], int(found["sequence"]), int(found["piece"] or 0))


def split_order_name(text: str) -> tuple[str, int | None, int]:
    """`eval` -> ("eval", None, 0): the latest; `eval/2` -> ("eval", 2, 0); `eval/2.1` -> ("eval", 2, 1).

    Raises ValueError for anything else.
    """
    found = _NAME.fullmatch(text)
    if found is None:
        raise ValueError(f"not the name of an order: {text!r}; write it like eval, eval/2 or eval/1.2")
    return found["need"], int(found["sequence"]) if found["sequence"] else None, int(found["piece"] or 0)


class OrderState(StrEnum):
    """Where an order stands. Only BUYING and UNKNOWN may hide money that has left."""

    BUYING = "buying"  # the intent is committed; the paid call may be under way, or its process died
    UNKNOWN = "unknown"  # the paid call ended without telling what became of it
    BOUGHT = "bought"  # a reservation that carries our mark exists
    REFUSED = "refused"  # known: no reservation was made, nothing was spent
    FAILED = "failed"  # AWS made the reservation and then failed it (payment or capacity); it is of no use
    DISPUTED = "disputed"  # a reservation looks like ours and has not our mark: a person decides


MOVES: Mapping[OrderState, frozenset[OrderState]] = {
    OrderState.BUYING: frozenset(
        {OrderState.UNKNOWN, OrderState.BOUGHT, OrderState.REFUSED, OrderState.DISPUTED}
    ),
    OrderState.UNKNOWN: frozenset({OrderState.BOUGHT, OrderState.REFUSED, OrderState.DISPUTED}),
    OrderState.REFUSED: frozenset({OrderState.BUYING, OrderState.BOUGHT}),
    OrderState.BOUGHT: frozenset({OrderState.FAILED}),
    OrderState.DISPUTED: frozenset({OrderState.BOUGHT, OrderState.UNKNOWN}),
    OrderState.FAILED: frozenset(),
}

IN_DOUBT = frozenset({OrderState.BUYING, OrderState.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Attempt:
    """One intent and the one paid call that it allows.

    `holder` names the process that made it; `ended_at` and `outcome` are None while the call may be under
    way. `outcome` is the order state that the attempt led to.
    """

    number: int
    intent_id: str
    offering_id: str
    fee: Money
    holder: str
    started_at: datetime
    ended_at: datetime | None
    outcome: str | None
    detail: str


@dataclass(frozen=True, slots=True)
class Order:
    """An order as the journal holds it.

    `offer` is what was approved, `cap` the most that may be paid for it (None: its own fee). `context` keeps
    `need` and `cost` as the plan had them, for what comes after the purchase; either may be absent.
    `reservation_name` derives from the key: it is the name of a training plan that Berth buys, and names what
    Berth makes for the order whatever was bought. `reservation_arn` is None until a reservation is known (its
    id, for a block that AWS showed without an ARN); `seen` is the last description of it that was read (a
    JSON value, see `orders.seen`), None when none was. `extensions` are those that were intended, oldest
    first.
    """

    key: OrderKey
    state: OrderState
    reservation_name: str
    offer: Offer
    cap: Money | None
    context: Mapping[str, Any]
    reservation_arn: str | None
    seen: Mapping[str, Any] | None
    created_at: datetime
    changed_at: datetime
    attempts: tuple[Attempt, ...]
    looks: tuple[Look, ...]
    extensions: tuple[Extension, ...] = ()

    @property
    def attempt(self) -> Attempt:
        """The latest attempt; every order has one, since the intent is what makes it."""
        return self.attempts[-1]

    @property
    def window(self) -> Window:
        """The paid window as AWS showed it last, since an extension moves its end; else as approved."""
        seen, approved = self.seen or {}, self.offer.paid_window
        start = parse_instant(seen["start"]) if seen.get("start") else approved.start
        end = parse_instant(seen["end"]) if seen.get("end") else approved.end
        return Window(start, end) if start < end else approved

    @property
    def held(self) -> Offer:
        """The offer as it is held now: with the fees and the end of the extensions that are paid."""
        longer = self.extended
        if not longer:
            return self.offer
        fee = self.attempt.fee
        for one in longer:
            fee = fee + one.fee if one.fee.currency == fee.currency else fee
        *before, last = self.offer.segments
        end = max(one.window.end for one in longer)
        last = replace(last, window=Window(last.window.start, end))
        return replace(self.offer, segments=(*before, last), fee=fee)

    @property
    def extended(self) -> tuple[Extension, ...]:
        """The extensions that are bought and that the window holds already: those that are paid."""
        end = self.window.end
        bought = (one for one in self.extensions if one.state is ExtensionState.BOUGHT)
        return tuple(one for one in bought if one.window.end <= end)

    @property
    def plan_name(self) -> str:
        """The training plan's name in AWS: one that was bought elsewhere keeps its own."""
        shown = (self.seen or {}).get("name") if self.offer.way is Way.TRAINING_PLAN else None
        return shown or self.reservation_name

    @property
    def spending(self) -> Spending:
        """What is known about the order's money: with extensions that are paid, without those in doubt."""
        if self.state is OrderState.BOUGHT:
            longer = self.held.fee if self.extended else None
            return Spending.paid(longer or self.attempt.fee, str(self.key))
        if self.state in IN_DOUBT or self.state is OrderState.DISPUTED:
            return Spending.not_known(self.attempt.fee, str(self.key))
        return Spending.nothing()


@dataclass(frozen=True, slots=True)
class Approval:
    """What somebody agreed to pay for, and within what.

    `cap` bounds this purchase (`--max`), `budget` comes with the need; None means not bounded. `context` is
    kept with the order (see `Order`).
    """

    offer: Offer
    cap: Money | None = None
    budget: Money | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
