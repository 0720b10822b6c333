"""How much of an order of several pieces came back when its journal was made anew. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.orders.names import ORDER_TAG, PIECES_TAG, WHOLE_TAG
from berth.orders.order import Order, OrderKey, OrderState, key_of_mark
from berth.orders.pieces.whole import pieces_told, whole_of

_OURS = ("aws:", "berth:")


def context_of(tags: Mapping[str, str]) -> dict[str, Any]:
    """What the tags of a reservation tell of its order: the need's own tags, and of a piece its whole and how
    many pieces that has. What no tag tells is absent."""
    own = {key: value for key, value in tags.items() if not key.lower().startswith(_OURS)}
    whole, many = tags.get(WHOLE_TAG), tags.get(PIECES_TAG, "")
    context: dict[str, Any] = {"tags": own} if own else {}
    piece = key_of_mark(tags.get(ORDER_TAG, ""))
    if piece is None or not piece.piece:
        return context
    if whole is not None and key_of_mark(whole) is not None:
        context["whole"] = whole
    if many.isascii() and many.isdigit() and int(many) > 0:
        context["pieces"] = int(many)
    return context


@dataclass(frozen=True, slots=True)
class Counted:
    """A whole by its key: how many of its pieces this journal knows as bought, of how many (None: no tag
    tells). `elsewhere`: it is an order of another account, or has pieces there."""

    whole: OrderKey
    found: int
    of: int | None
    account: str

    @property
    def says(self) -> str:
        """A sentence for whoever made the journal anew."""
        name = str(self.whole)
        if self.whole.account != self.account:
            name += f" of account {self.whole.account}"
        if self.of is None:
            return f"order {name}: {self.found} pieces; how many it had is on no tag"
        if self.found >= self.of:
            return f"order {name}: all {self.of} pieces"
        return (
            f"order {name}: {self.found} of {self.of} pieces; the others were never bought, are over, or are"
            " another account's"
        )

    def to_json(self) -> dict[str, Any]:
        """As `berth.rebuild/1` has it."""
        return {
            "order": str(self.whole),
            "account": self.whole.account,
            "found": self.found,
            "of": self.of,
        }


def counted(orders: Sequence[Order], account: str) -> tuple[Counted, ...]:
    """The wholes of the pieces among `orders`, by name; `account` is the one that looked."""
    pieces: dict[OrderKey, list[Order]] = {}
    for order in orders:
        if order.key.piece and order.state is OrderState.BOUGHT:
            pieces.setdefault(whole_of(order), []).append(order)
    return tuple(
        Counted(whole, len(found), pieces_told(found), account) for whole, found in sorted(pieces.items())
    )
