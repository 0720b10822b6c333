"""The whole: an order of several pieces, agreed to at once. Each piece is an order of its own. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from berth.orders.approvals import what_is_bought
from berth.orders.order import Approval, Order, OrderKey, OrderState, key_of_mark
from berth.orders.rows import tags_of_context
from berth.planner.offers import Offer
from berth.terms.money import Money
from berth.terms.outcomes import Spending


class WholeState(StrEnum):
    """Whether somebody is buying. How far it is, its pieces tell."""

    BUYING = "buying"  # pieces that are not intended yet count against caps
    HALTED = "halted"  # nobody buys; pieces may be missing
    BOUGHT = "bought"  # every piece was bought


@dataclass(frozen=True, slots=True)
class Piece:
    """One reservation of a whole. `offer` is what was agreed to, with its fee.

    `key` is the piece's own order: its account is where it is bought. `instead_of` is the number of a piece
    that AWS has failed or that could not be had, and that this one replaces; None: of none. Its own number:
    nothing was bought of it, and a later plan does without it.
    """

    number: int
    key: OrderKey
    offer: Offer
    instead_of: int | None = None

    @property
    def fee(self) -> Money:
        """What was agreed for it. Raises ValueError for an offer without a fee."""
        if self.offer.fee is None:
            raise ValueError(f"piece {self.key} names no fee")
        return self.offer.fee


@dataclass(frozen=True, slots=True)
class Agreement:
    """What bounds a whole: `cap` (`--max`) and the need's `budget` over all pieces; None means not bounded.

    `context` is kept with each piece (see `Order`).
    """

    cap: Money | None = None
    budget: Money | None = None
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Whole:
    """An order of several pieces, as the journal holds it; `holder` is the process that bought last."""

    key: OrderKey
    state: WholeState
    pieces: tuple[Piece, ...]
    agreement: Agreement
    holder: str
    created_at: datetime
    changed_at: datetime

    @property
    def of(self) -> int | None:
        """How many pieces it has; None for one that was made anew from marks, where no tag tells."""
        if self.holder:
            return len(self.live)
        told = self.agreement.context.get("pieces")
        return told if isinstance(told, int) else None

    @property
    def live(self) -> tuple[Piece, ...]:
        """The pieces that stand: those that none replaces."""
        return live(self.pieces)


def is_begun(orders: Iterable[Order]) -> bool:
    """Whether money of a whole may have left: any of its pieces' orders is more than known to be refused."""
    return any(order.state is not OrderState.REFUSED for order in orders)


def replanned(old: Sequence[Piece], new: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces of a later plan for a whole of which nothing was bought; those beyond them are dropped."""
    numbers = {piece.number for piece in new}
    dropped = (replace(p, instead_of=p.number) for p in old if p.number not in numbers)
    return (*new, *dropped)


def made_anew(key: OrderKey, orders: Sequence[Order]) -> Whole | None:
    """The whole of pieces that a journal knows without it, since AWS keeps their marks and not the whole.

    Its holder is empty: whether there were more pieces, only a tag tells (`Whole.of`). A piece that AWS has
    failed is left out where as many others are bought as there were. None without pieces.
    """
    own = [o for o in orders if o.key.piece and replace(o.key, piece=0) == key]
    if not own:
        return None
    told = pieces_told(own)
    had = [order for order in own if order.state is OrderState.BOUGHT]
    own = had if told is not None and len(had) >= told else own
    pieces = tuple(
        Piece(order.key.piece, order.key, replace(order.offer, fee=order.attempt.fee))
        for order in sorted(own, key=lambda order: order.key)
    )
    began, changed = min(o.created_at for o in own), max(o.changed_at for o in own)
    context = {**own[0].context, "pieces": told}
    return Whole(key, WholeState.HALTED, pieces, Agreement(context=context), "", began, changed)


def whole_of(order: Order) -> OrderKey:
    """Of which whole a piece is: what its context says, else that of its own account."""
    own = replace(order.key, piece=0)
    return key_of_mark(str(order.context.get("whole", ""))) or own


def pieces_told(orders: Iterable[Order]) -> int | None:
    """How many pieces a whole has, as its pieces' contexts tell; None where none does."""
    told = (order.context.get("pieces") for order in orders)
    return max((many for many in told if isinstance(many, int)), default=None)


def live(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces that no other one replaces."""
    replaced = {piece.instead_of for piece in pieces}
    return tuple(piece for piece in pieces if piece.number not in replaced)


def numbered(key: OrderKey, offers: Iterable[tuple[str, Offer]]) -> tuple[Piece, ...]:
    """Pieces of the whole `key` for (account, offer), numbered from 1 by start, place, type and count.

    The same offers in another order get the same numbers, so two machines that buy one plan mark alike.
    """
    ranked = sorted(offers, key=lambda one: (*_place(one[1]), one[0]))
    return tuple(
        Piece(number, replace(key, account=account, piece=number), offer)
        for number, (account, offer) in enumerate(ranked, start=1)
    )


def _place(offer: Offer) -> tuple[Any, ...]:
    window = offer.paid_window
    return (window.start, window.end, offer.region, offer.zones, offer.instance_type, -offer.count)


def total_of(pieces: Sequence[Piece]) -> Money:
    """What they cost together. Raises ValueError for none, and for fees in several currencies: these are
    never added."""
    if not pieces:
        raise ValueError("there is no piece to add up")
    fee = pieces[0].fee
    for piece in pieces[1:]:
        if piece.fee.currency != fee.currency:
            raise ValueError(f"{fee.currency} and {piece.fee.currency} cannot be added")
        fee = fee + piece.fee
    return fee


def what_of(pieces: Sequence[Piece], context: Mapping[str, Any]) -> dict[str, Any]:
    """All pieces as plain JSON values that an approval is bound to."""
    each = [
        {**what_is_bought(piece.offer), "piece": piece.number, "account": piece.key.account}
        for piece in sorted(pieces, key=lambda piece: piece.number)
    ]
    return {"kind": "purchase", "pieces": each, "tags": tags_of_context(context)}


def approval_of(whole: OrderKey, piece: Piece, agreement: Agreement, of: int) -> Approval:
    """What is agreed to for one piece of `of`: its own offer, at no more than its own fee."""
    context = {**agreement.context, "whole": whole.mark, "pieces": of}
    return Approval(piece.offer, cap=piece.fee, context=context)


def spending_of(whole: OrderKey, orders: Sequence[Order]) -> Spending:
    """What is known about the money of a whole, from the orders of its pieces.

    One piece in doubt makes it not known, and that piece is named.
    """
    for order in orders:
        if order.spending.spent is Spending.not_known(order.attempt.fee, "").spent:
            return order.spending
    bought = [order.held.fee or order.attempt.fee for order in orders if order.state is OrderState.BOUGHT]
    if not bought:
        return Spending.nothing()
    paid = bought[0]
    for fee in bought[1:]:
        paid = paid + fee
    return Spending.paid(paid, str(whole))
