"""What is known about money while pieces are bought one by one: never less than what is paid already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from berth.orders.order import Order, OrderKey
from berth.orders.pieces.survey import Seat, Seats
from berth.orders.pieces.whole import Piece
from berth.terms.money import Money
from berth.terms.outcomes import Spending, Spent


class Tally:
    """Adds up what each piece says of its money, and tells the whole's."""

    def __init__(self, whole: OrderKey, tell: Callable[[Spending], None]) -> None:
        self._whole = whole
        self._tell = tell
        self._known: dict[OrderKey, Spending] = {}

    def over(self, seats: Seats) -> Seats:
        """The same seats, whose desks tell this tally."""
        made: dict[OrderKey, Seat] = {}

        def seat(piece: Piece) -> Seat:
            if piece.key not in made:
                one = seats(piece)

                def hear(spending: Spending, key: OrderKey = piece.key) -> None:
                    self._known[key] = spending
                    self.tell()

                made[piece.key] = replace(one, desk=replace(one.desk, tell_spending=hear))
            return made[piece.key]

        return seat

    def paid(self, order: Order) -> None:
        """Hear of an order that is bought."""
        self._known[order.key] = order.spending
        self.tell()

    @property
    def spending(self) -> Spending:
        """What is known of all pieces: one in doubt first, else the sum of what is paid."""
        for spending in self._known.values():
            if spending.spent is Spent.NOT_KNOWN:
                return spending
        amounts = [s.amount for s in self._known.values() if s.spent is Spent.PAID and s.amount is not None]
        if not amounts:
            return Spending.nothing()
        return Spending.paid(_sum(amounts), str(self._whole))

    def tell(self) -> None:
        """Tell it to whoever ends the command."""
        self._tell(self.spending)


def _sum(amounts: list[Money]) -> Money:
    """Pieces of one whole have one currency (`whole.total_of`)."""
    total = amounts[0]
    for amount in amounts[1:]:
        total = total + amount
    return total
