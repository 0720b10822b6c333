"""The desk: everything outside of itself that buying leans on, handed in as one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from berth.orders.calls import ReservationReads
from berth.orders.holder import Holders
from berth.orders.journal import Journal
from berth.planner.offers import PlaceAnswer, Query
from berth.terms.clock import Clock
from berth.terms.ids import IdSource
from berth.terms.outcomes import Spending


@dataclass(frozen=True, slots=True)
class Desk:
    """Journal, clock, ids and reading doors. Nothing in it can pay.

    `reads` is a SageMaker client of the order's Region; `search` asks a search API again; `tell_spending`
    hears what is known about money whenever that changes; `warn` hears what a person should read.
    """

    journal: Journal
    clock: Clock
    ids: IdSource
    holders: Holders
    reads: ReservationReads
    search: Callable[[Query], PlaceAnswer]
    tell_spending: Callable[[Spending], None]
    warn: Callable[[str], None]
