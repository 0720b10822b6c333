"""An order of several pieces in words and as JSON: how each piece stands, and the whole. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from berth.orders.order import Order, OrderKey, OrderState, key_of_mark
from berth.orders.pieces.scarcity import Ranked
from berth.orders.pieces.whole import Piece, Whole, WholeState, spending_of, total_of
from berth.orders.rows import tags_of_context
from berth.orders.seen import SeenReservation
from berth.orders.wording import called, next_step, order_json
from berth.planner.best.combination import Piece as Mixed
from berth.planner.offers import money_json
from berth.planner.phrases import label, money_text, window_text
from berth.terms.money import Money

SCHEMA = "berth.whole/1"
Orders = Mapping[int, Order]


def whole_json(whole: Whole, orders: Orders) -> dict[str, Any]:
    """The document of schema `berth.whole/1`."""
    spending = spending_of(whole.key, list(orders.values()))
    return {
        "schema": SCHEMA,
        "order": str(whole.key),
        "account": whole.key.account,
        "need": whole.key.need,
        "sequence": whole.key.sequence,
        "state": state_of(whole, orders),
        "agreed": money_json(total_of(whole.live)),
        "money": {
            "known": spending.spent.value,
            "amount": money_json(spending.amount),
            "line": spending.line(),
        },
        "tags": tags_of_context(whole.agreement.context),
        "pieces": [_piece_json(piece, orders.get(piece.number)) for piece in whole.pieces],
    }


def _piece_json(piece: Piece, order: Order | None) -> dict[str, Any]:
    return {
        "piece": piece.number,
        "order": str(piece.key),
        "account": piece.key.account,
        "instead_of": piece.instead_of,
        "state": order.state.value if order is not None else "missing",
        "agreed": money_json(piece.fee),
        "offer": piece.offer.to_json(),
        "bought": None if order is None else order_json(order, _seen(order)),
    }


def state_of(whole: Whole, orders: Orders) -> str:
    """How far the whole is: `bought`, `in doubt`, `failed` (a piece), `buying`, or `N of M pieces bought`."""
    states = [orders[piece.number].state for piece in whole.live if piece.number in orders]
    bought = states.count(OrderState.BOUGHT)
    if any(state in {OrderState.BUYING, OrderState.UNKNOWN, OrderState.DISPUTED} for state in states):
        return "in doubt"
    if bought == len(whole.live):
        return _all_known(whole, bought)
    if OrderState.FAILED in states:
        return "failed"
    return "buying" if whole.state is WholeState.BUYING else f"{bought} of {many(len(whole.live))} bought"


def _all_known(whole: Whole, bought: int) -> str:
    """The state where every piece that is known is bought: a journal made anew may know too few."""
    if whole.of is None:
        return "bought, as far as is known"
    return "bought" if bought >= whole.of else f"{bought} of {many(whole.of)} known"


def many(number: int) -> str:
    """`1 piece`, `2 pieces`."""
    return f"{number} {'piece' if number == 1 else 'pieces'}"


def whole_lines(whole: Whole, orders: Orders, now: datetime) -> list[str]:
    """How an order of several pieces stands, piece by piece."""
    known = list(orders.values())
    lines = [
        f"order    {whole.key}: {state_of(whole, orders)}, {many(len(whole.live))}",
        f"money    {spending_of(whole.key, known).line()}; agreed {total_of(whole.live)}",
    ]
    tags = tags_of_context(whole.agreement.context)
    if tags:
        lines.append(f"tags     {', '.join(f'{key}={value}' for key, value in sorted(tags.items()))}")
    lines += _anew_lines(whole)
    for piece in whole.live:
        lines += _piece_lines(whole, piece, orders.get(piece.number))
    return [*lines, f"next     {next_of_whole(whole, orders, now)}"]


def _anew_lines(whole: Whole) -> list[str]:
    """What a journal that was made anew does not know of the whole."""
    if whole.holder:
        return []
    if whole.of is None:
        return ["note     the journal was made anew: whether there were more pieces is not known"]
    if len(whole.live) >= whole.of:
        return []
    return [
        f"note     the journal was made anew: of {many(whole.of)} these are known; the others were",
        "         never bought, are over, or are another account's",
    ]


def _piece_lines(whole: Whole, piece: Piece, order: Order | None) -> list[str]:
    offer = order.held if order is not None else piece.offer
    state = "missing, nothing paid" if order is None else _state(order)
    elsewhere = "" if piece.key.account == whole.key.account else f", account {piece.key.account}"
    window = order.window if order is not None else piece.offer.paid_window
    what = f"{offer.count} x {offer.instance_type}, {', '.join(offer.zones)}"
    paid = f"{called(order)}, {offer.fee}" if order is not None else str(piece.fee)
    return [
        f"  {piece.key}: {state}{elsewhere}",
        f"           {what}, {window_text(window, fixed=False)}",
        f"           {paid}",
    ]


def piece_line(piece: Piece, order: Order | None) -> str:
    """A piece in one line: its name, how it stands, what it is, until when; as the journal knows it."""
    if order is None:
        return f"  {piece.key}: missing, nothing paid"
    offer = order.held
    ends = f"{order.window.end:%Y-%m-%dT%H:%MZ}"
    return f"  {piece.key}: {_state(order)}, {offer.count} x {offer.instance_type} until {ends}"


def _state(order: Order) -> str:
    seen = _seen(order)
    return f"{order.state}, {seen.state}" if seen and order.state is OrderState.BOUGHT else order.state.value


def _seen(order: Order) -> SeenReservation | None:
    return SeenReservation.from_json(order.seen) if order.seen else None


def next_of_whole(whole: Whole, orders: Orders, now: datetime) -> str:
    """The one thing to do now: what is in doubt first, then what is missing, then the earliest window."""
    standing = [orders[piece.number] for piece in whole.live if piece.number in orders]
    for order in standing:
        if order.state in {OrderState.BUYING, OrderState.UNKNOWN, OrderState.DISPUTED}:
            return next_step(order, _seen(order), now)
    bought = [order for order in standing if order.state is OrderState.BOUGHT]
    if len(bought) < len(whole.live):
        return f"berth buy {whole.key}#best: buys what is missing, and nothing twice"
    if whole.of is not None and len(bought) < whole.of and whole_told(whole) == whole.key:
        return f"berth plan the need, then berth buy {whole.key}#best: buys what no mark is found of"
    open_now = [order for order in bought if order.window.end > now] or bought
    first = min(open_now, key=lambda order: order.window.start)
    return next_step(first, _seen(first), now)


def whole_told(whole: Whole) -> OrderKey:
    """The order that its pieces' tags name: one made anew may be another account's."""
    return key_of_mark(str(whole.agreement.context.get("whole", ""))) or whole.key


def question_lines(
    queue: Sequence[Ranked], total: Money, missing: Money, unconfirmed: Sequence[str]
) -> list[str]:
    """What is about to be bought, in the order of buying, for the question."""
    lines = [f"  pieces   {len(queue)}, the scarcest first; each is searched again before it is paid"]
    for ranked in queue:
        offer, piece = ranked.piece.offer, ranked.piece
        what = f"{offer.count} x {offer.instance_type}, {label(offer.way)}"
        lines += [
            f"  {piece.key}",
            f"           {what}, {offer.region}, {', '.join(offer.zones)}",
            f"           {window_text(offer.paid_window, fixed=False)}, account {piece.key.account}",
            f"           {piece.fee}, {_instead(ranked)}",
        ]
    lines.append(f"  fee      {missing}, taken at once, piece by piece")
    if missing != total:
        lines.append(f"  in all   {total}, with what is bought already")
    lines += [
        "  no refund, no cancelling, no change: what is bought stays paid, also",
        "           where a later piece cannot be had any more",
    ]
    return lines + [f"  care     {sentence}" for sentence in unconfirmed]


def _instead(ranked: Ranked) -> str:
    number = len(ranked.instead)
    if not number:
        return "nothing else would do in its place"
    return f"{number} other {'offer' if number == 1 else 'offers'} would do in its place"


def day_lines(pieces: Sequence[Mixed]) -> list[str]:
    """What is paid by the hour and launched on the day: told, never bought."""
    return [
        f"  on the day: {piece.count} x {piece.instance_type}, {label(piece.way)},"
        f" {piece.zone_id or piece.region}, {window_text(piece.paid[0], fixed=False)},"
        f" about {money_text(piece.cost)}; it may be refused then"
        for piece in pieces
    ]
