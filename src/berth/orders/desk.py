"""The desk: everything outside of itself that buying leans on, handed in as one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from berth.orders.holder import Holders
from berth.orders.journal import Journal
from berth.orders.shops.shop import Shop
from berth.orders.spending_gate import OPEN, Gate
from berth.terms.clock import Clock
from berth.terms.ids import IdSource
from berth.terms.outcomes import Spending


@dataclass(frozen=True, slots=True)
class Desk:
    """Journal, clock, ids and the shop of one way. Nothing in it can pay.

    `shop` reads and searches in the order's Region; `tell_spending` hears what is known about money whenever
    that changes; `talk` hears what happens, `warn` what a person should read. `gate` holds the rules of
    spending, which every intent has to pass.
    """

    journal: Journal
    clock: Clock
    ids: IdSource
    holders: Holders
    shop: Shop
    tell_spending: Callable[[Spending], None]
    talk: Callable[[str], None]
    warn: Callable[[str], None]
    gate: Gate = OPEN
