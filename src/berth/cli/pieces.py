"""Orders of several pieces, for the verbs that take an order's name: which order is meant, piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from berth.cli.desks import Counter, tell_spending
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.orders.order import Order
    from berth.orders.pieces.whole import Whole


def settled_pieces(at: Counter, whole: Whole, *, wait: bool = False) -> tuple[Whole, dict[int, Order]]:
    """The whole, and the orders of its pieces by number after looking for what became of each.

    Where the process that was buying has died, what is missing counts against caps no longer. Raises
    BerthError (outcome unknown) while one is in doubt.
    """
    from berth.cli.accounts import beside
    from berth.cli.standing import reservation, settled
    from berth.orders.pieces.book import WholeBook
    from berth.orders.pieces.buying import halt_if_left
    from berth.orders.pieces.whole import spending_of

    book = WholeBook(at.journal)
    for order in book.orders(whole).values():
        there = beside(at, order.key.account, whole.agreement)
        reservation(there, settled(there, order, wait=wait))
    orders = book.orders(whole)
    tell_spending(spending_of(whole.key, list(orders.values())))
    first = whole.live[0].offer
    return halt_if_left(book, at.desk(first), whole), orders


def show_whole(at: Counter, whole: Whole, *, wait: bool, history: bool) -> int:
    """`berth show` of an order of several pieces."""
    from berth.cli.standing import event_lines
    from berth.orders.pieces.wording import whole_json, whole_lines
    from berth.terms.text import plain

    whole, orders = settled_pieces(at, whole, wait=wait)
    at.output.document(whole_json(whole, orders))
    lines = whole_lines(whole, orders, at.door.clock.now())
    if history:
        lines += ["", *(line for event in at.journal.events(whole.key) for line in event_lines(event))]
    at.output.answer("\n".join(plain(line, 2000) for line in lines))
    return ExitCode.DONE


Act = Callable[[Counter, "Order"], int]


def each_piece(at: Counter, whole: Whole, act: Act) -> int:
    """Do `act` for each piece that is bought, by its start; the worst of the exit codes.

    A piece of another account is done with that account's keys. What fails with one piece keeps no other one
    from being done: all failures are told, and the last of them ends the command.
    """
    from berth.cli.accounts import beside
    from berth.orders.order import OrderState
    from berth.orders.pieces.whole import spending_of

    _, orders = settled_pieces(at, whole)
    bought = [order for order in orders.values() if order.state is OrderState.BOUGHT]
    code, failed = 0, list[BerthError]()
    for order in sorted(bought, key=lambda order: (order.window.start, order.key)):
        at.output.talk(f"piece {order.key}:")
        try:
            code = max(code, act(beside(at, order.key.account, whole.agreement), order))
        except BerthError as problem:
            at.output.talk(f"piece {order.key}: {problem.message}")
            failed.append(problem)
    if failed:
        worst = max(failed, key=lambda problem: problem.exit_code)
        spent = spending_of(whole.key, list(orders.values()))
        raise BerthError(worst.exit_code, worst.message, worst.next_step, spent)
    return code


class Documents:
    """The documents of pieces, told as one."""

    def __init__(self, at: Counter, schema: str, order: str) -> None:
        self._at = at
        self._schema = schema
        self._order = order
        self._pieces: list[dict[str, Any]] = []

    def add(self, document: dict[str, Any]) -> None:
        """Hear one piece's."""
        self._pieces.append(document)

    def tell(self) -> None:
        """Answer with all of them."""
        self._at.output.document({"schema": self._schema, "order": self._order, "pieces": self._pieces})
