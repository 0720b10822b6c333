"""An extension: the durable record of wanting one later end, and the table of its states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from berth.orders.looks import Look
from berth.terms.money import Money
from berth.terms.outcomes import Spending
from berth.terms.window import Window


class ExtensionState(StrEnum):
    """Where an extension stands. Only BUYING and UNKNOWN may hide money that has left."""

    BUYING = "buying"  # the intent is committed; the paid call may be under way, or its process died
    UNKNOWN = "unknown"  # the paid call ended without telling what became of it
    BOUGHT = "bought"  # AWS's history has it; its payment may still be under way
    REFUSED = "refused"  # known: nothing was bought
    FAILED = "failed"  # AWS had it, and its payment failed: nothing was paid, the end is the old one


EXTENSION_MOVES: Mapping[ExtensionState, frozenset[ExtensionState]] = {
    ExtensionState.BUYING: frozenset(
        {ExtensionState.UNKNOWN, ExtensionState.BOUGHT, ExtensionState.REFUSED, ExtensionState.FAILED}
    ),
    ExtensionState.UNKNOWN: frozenset({ExtensionState.BOUGHT, ExtensionState.REFUSED, ExtensionState.FAILED}),
    ExtensionState.BOUGHT: frozenset({ExtensionState.FAILED}),
    ExtensionState.REFUSED: frozenset(),
    ExtensionState.FAILED: frozenset(),
}

IN_DOUBT = frozenset({ExtensionState.BUYING, ExtensionState.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Extension:
    """One intent to extend, and the one paid call that it allows.

    `number` counts from 1 within the order. `window` is what is added: from the end before to the new end.
    `fee` is the whole fee. `payment` is AWS's last word on the payment, '' when none was read. `holder` is
    the process that made the intent.
    """

    number: int
    state: ExtensionState
    window: Window
    offering_id: str
    fee: Money
    intent_id: str
    holder: str
    started_at: datetime
    changed_at: datetime
    payment: str = ""
    detail: str = ""
    looks: tuple[Look, ...] = ()

    @property
    def in_doubt(self) -> bool:
        """Whether money may have left for it without anybody knowing."""
        return self.state in IN_DOUBT

    def spending(self, order: str) -> Spending:
        """What is known about its money; `order` as `berth show` takes it."""
        if self.state is ExtensionState.BOUGHT:
            return Spending.paid(self.fee, order)
        return Spending.not_known(self.fee, order) if self.in_doubt else Spending.nothing()
