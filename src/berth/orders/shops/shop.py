"""A shop: all that is different about buying one way. What the ways have in common is `orders.purchase`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Protocol

from berth.orders.names import FEE_TAG, INTENT_TAG, ORDER_TAG, PIECES_TAG, WHOLE_TAG
from berth.orders.order import Order
from berth.orders.sighting import Sighting, Trace
from berth.planner.need import Need
from berth.planner.offers import PlaceAnswer, Query
from berth.terms.ways import Way

NOUNS: Mapping[Way, str] = {Way.TRAINING_PLAN: "training plan", Way.CAPACITY_BLOCK: "Capacity Block"}
"""What is bought, in AWS's words."""


class Shop(Protocol):
    """One way of buying, in one Region. It reads, and says how to pay; it holds nothing that can pay."""

    @property
    def service(self) -> str:
        """boto's name of the service whose client pays."""
        ...

    @property
    def pays(self) -> str:
        """boto's name of the paid operation."""
        ...

    @property
    def noun(self) -> str:
        """What is bought, in AWS's words: `training plan`, `Capacity Block`."""
        ...

    @property
    def gone(self) -> frozenset[str]:
        """Codes of the paid call that mean: the offer is not on sale any more, nothing was done."""
        ...

    @property
    def taken(self) -> frozenset[str]:
        """Codes of the paid call that mean: the order's name is in use, so look who has it."""
        ...

    @property
    def unseen(self) -> str:
        """What nobody can see before paying, in a sentence; '' where AWS itself keeps the order unique."""
        ...

    def search(self, query: Query) -> PlaceAnswer:
        """Ask the search API again."""
        ...

    def shortest_search(self, query: Query) -> timedelta:
        """The least span from start to end that the search API takes."""
        ...

    def request(self, order: Order) -> dict[str, Any]:
        """The parameters of the one paid call for the order's latest attempt, our mark among them."""
        ...

    def bought(self, answer: Mapping[str, Any]) -> str | None:
        """What the answer to the paid call names as bought (ARN, else id); None when it names nothing."""
        ...

    def glance(self, trace: Trace) -> Sighting:
        """The cheapest look that is complete for a reservation that is known or has a name."""
        ...

    def look(self, trace: Trace) -> Sighting:
        """Look everywhere: all pages, all states, by mark."""
        ...

    def inspect(self, trace: Trace) -> str:
        """The AWS CLI command with which a person looks for themselves."""
        ...


def tags_of(order: Order) -> list[dict[str, str]]:
    """The tags of what the order's latest attempt buys: the need's own, our mark, the attempt, its fee; of a
    piece its whole too, so that a lost journal can be told how many there were."""
    need = order.context.get("need")
    fee = order.attempt.fee
    tags = {
        **(dict(Need.from_json(need).tags) if need else {}),
        ORDER_TAG: order.key.mark,
        INTENT_TAG: order.attempt.intent_id,
        FEE_TAG: f"{fee.amount:f} {fee.currency}",
        **_piece_tags(order),
    }
    return [{"Key": name, "Value": value} for name, value in tags.items()]


def _piece_tags(order: Order) -> dict[str, str]:
    whole, pieces = order.context.get("whole"), order.context.get("pieces")
    if not order.key.piece or whole is None or pieces is None:
        return {}
    return {WHOLE_TAG: str(whole), PIECES_TAG: str(pieces)}
