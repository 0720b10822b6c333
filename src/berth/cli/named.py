"""Which order a name means, and what to say where it means none, or several at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.cli.desks import Counter, tell_spending
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.orders.order import Order
    from berth.orders.pieces.whole import Whole


def order_named(at: Counter, text: str, again: str = "") -> Order:
    """The order of that name. Raises BerthError (bad request) when there is none, or it is of several
    pieces: then `again` is what is typed for one of them, `berth extend {} --by 7d` ('': not known).
    """
    from berth.orders.guard import latest_standing
    from berth.orders.order import OrderKey, split_order_name

    _check_no_id(text)
    try:
        need, sequence, piece = split_order_name(text)
    except ValueError as problem:
        raise BerthError(ExitCode.BAD_REQUEST, str(problem)) from None
    _check_one(at, text, again)
    if sequence is not None:
        found = at.journal.order(OrderKey(at.account, need, sequence, piece))
        orders: tuple[Order, ...] = (found,) if found else ()
    else:
        orders = at.journal.orders(at.account, need)
    if not orders:
        known = ", ".join(str(order.key) for order in at.journal.orders(at.account))
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"there is no order {text} of account {at.account} here; known: {known or 'none'}",
            "berth show lists them" if known else "berth plan a need, then berth buy it",
        )
    order = latest_standing(orders)
    tell_spending(order.spending)
    return order


def whole_named(at: Counter, text: str) -> Whole | None:
    """The order of several pieces of that name; None where the name is of one reservation, or of a piece.

    `eval` is the latest order of the need. Of a journal made anew it is what the pieces tell.
    """
    from berth.orders.order import OrderKey, split_order_name
    from berth.orders.pieces.book import WholeBook
    from berth.orders.pieces.whole import made_anew

    try:
        need, sequence, piece = split_order_name(text)
    except ValueError:
        return None
    if piece:
        return None
    book, orders = WholeBook(at.journal), at.journal.orders(at.account, need)
    if sequence is None:
        known = [whole.key.sequence for whole in book.wholes(at.account, need)]
        several = max((*known, *(o.key.sequence for o in orders if o.key.piece)), default=0)
        if several <= max((o.key.sequence for o in orders if not o.key.piece), default=0):
            return None
        sequence = several
    key = OrderKey(at.account, need, sequence)
    return book.whole(key) or made_anew(key, orders)


def _check_one(at: Counter, text: str, again: str) -> None:
    """Raise BerthError for the name of an order of several pieces: each is an order by itself.

    They are listed as the journal knows them, bought ones first to be named. `again` as in `order_named`.
    """
    from berth.orders.order import OrderState
    from berth.orders.pieces.book import WholeBook
    from berth.orders.pieces.wording import many, piece_line

    whole = whole_named(at, text)
    if whole is None:
        return
    orders = WholeBook(at.journal).orders(whole)
    had = [
        piece
        for piece in whole.live
        if piece.number in orders and orders[piece.number].state is OrderState.BOUGHT
    ]
    first = str((had or whole.live)[0].key)
    more = ", and so on for each" if len(had) > 1 else ""
    said = f"order {whole.key} is of {many(len(whole.live))}, and this is done for one at a time"
    raise BerthError(
        ExitCode.BAD_REQUEST,
        "\n".join([said, *(piece_line(piece, orders.get(piece.number)) for piece in whole.live)]),
        f"{again.format(first)}{more}" if again else f"name one of them: {first}",
    )


def _check_no_id(text: str) -> None:
    """An order is not named by what AWS calls its parts (field fault 70). Raises BerthError in one line."""
    what = {"cb": "an offering's or a block's", "cr": "a reservation's", "tpo": "an offering's"}
    kind, _, rest = text.partition("-")
    if kind in what and len(rest) >= 8 and not rest.strip("0123456789abcdef"):
        instead = f"berth adopt {text}" if kind == "cr" else "berth show"
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"{text} is {what[kind]} id, and an order is named like its need: eval, or eval/2",
            instead,
        )
