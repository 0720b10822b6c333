"""The orders of an account as a list: how each stands, what it is of, what it cost, who ordered it. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from berth.orders.journal import NOBODY, Who
from berth.orders.order import Order, OrderKey
from berth.orders.seen import SeenReservation
from berth.orders.wording import reservation_id, reservation_window
from berth.planner.offers import money_json
from berth.terms.instants import iso
from berth.terms.money import Money
from berth.terms.text import plain
from berth.terms.ways import Way

SCHEMA = "berth.order-list/1"
_SHORT = {Way.TRAINING_PLAN: "plan", Way.CAPACITY_BLOCK: "block"}
WIDTH = 80
KEPT: Any = {"break_long_words": False, "break_on_hyphens": False}
_COLUMNS = "{:<22} {:<9} {:<6} {:<26} {:>13}"


def list_json(account: str, orders: Sequence[Order], who: Mapping[OrderKey, Who]) -> dict[str, Any]:
    """The document of `berth.order-list/1`."""
    return {
        "schema": SCHEMA,
        "account": account,
        "orders": [_order_json(order, who.get(order.key, NOBODY)) for order in orders],
    }


def list_lines(orders: Sequence[Order], who: Mapping[OrderKey, Who]) -> list[str]:
    """Two lines an order in 80 columns: how it stands; what it is and who ordered it."""
    if not orders:
        return ["no orders of this account"]
    lines = [_COLUMNS.format("ORDER", "STATE", "WAY", "WINDOW", "FEE")]
    for order in orders:
        start, end = _window(order)
        window = f"{start:%Y-%m-%d %H:%M} to {end:%m-%d}Z"
        way = _SHORT.get(order.offer.way, order.offer.way.value)
        lines.append(_COLUMNS.format(str(order.key), order.state.value, way, window, str(_fee(order))))
        lines.append(f"  {reservation_id(order) or 'no reservation known'}, {order.offer.region}")
        lines.append(f"  by {_by(who.get(order.key, NOBODY))}")
    folded = (textwrap.wrap(plain(line, 400), WIDTH, subsequent_indent="     ", **KEPT) for line in lines)
    return [line for lines_of_one in folded for line in lines_of_one]


def _order_json(order: Order, who: Who) -> dict[str, Any]:
    start, end = _window(order)
    return {
        "order": str(order.key),
        "need": order.key.need,
        "sequence": order.key.sequence,
        "piece": order.key.piece,
        "state": order.state.value,
        "way": order.offer.way.value,
        "region": order.offer.region,
        "window": {"start": iso(start), "end": iso(end)},
        "fee": money_json(_fee(order)),
        "money": order.spending.spent.value,
        "reservation": reservation_id(order),
        "changed_at": iso(order.changed_at),
        "caller": who.caller,
        "process": who.process,
    }


def _fee(order: Order) -> Money:
    """All that was paid for what is held: with the extensions that its window holds."""
    return order.held.fee or order.attempt.fee if order.extended else order.attempt.fee


def _window(order: Order) -> tuple[Any, Any]:
    """As AWS showed it last, else as approved."""
    return reservation_window(order, SeenReservation.from_json(order.seen) if order.seen else None)


def _by(who: Who) -> str:
    return ", ".join(filter(None, (who.caller, who.process))) or "nobody known: written by an older program"
