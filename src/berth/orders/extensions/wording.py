"""Extensions in words and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from berth.orders.extensions.extending import Extended
from berth.orders.extensions.extension import Extension, ExtensionState
from berth.orders.extensions.offers import ExtensionOffer
from berth.orders.extensions.wish import minute
from berth.orders.order import Order
from berth.orders.wording import called
from berth.planner.offers import money_json, reclaim_before_end
from berth.terms.durations import spoken
from berth.terms.instants import iso

SCHEMA = "berth.extension/1"


def extension_json(one: Extension) -> dict[str, Any]:
    """One extension of the journal."""
    return {
        "number": one.number,
        "state": one.state.value,
        "from": iso(one.window.start),
        "until": iso(one.window.end),
        "fee": money_json(one.fee),
        "payment": one.payment or None,
        "offering_id": one.offering_id,
    }


def extended_json(done: Extended) -> dict[str, Any]:
    """The document of schema `berth.extension/1` (docs/reference/journal.md)."""
    spent = done.extension.spending(str(done.order.key)) if done.extension else None
    return {
        "schema": SCHEMA,
        "order": str(done.order.key),
        "account": done.order.key.account,
        "reservation": done.order.reservation_arn,
        "how": done.how.value,
        "says": done.says,
        "until": iso(done.until),
        "extension": None if done.extension is None else extension_json(done.extension),
        "money": {
            "known": "nothing" if spent is None else spent.spent.value,
            "amount": None if spent is None else money_json(spent.amount),
            "now": done.bought_now,
        },
    }


def offer_lines(order: Order, offer: ExtensionOffer) -> list[str]:
    """What is about to be bought, for the question."""
    usable = offer.window.end - reclaim_before_end(order.offer.target)
    return [
        f"  what     {called(order)}, {order.offer.count} x {order.offer.instance_type}, longer",
        f"  where    {order.offer.region}, {', '.join(order.offer.zones)}",
        f"  from     {minute(offer.window.start)}, the end of now",
        f"  until    {minute(offer.window.end)} ({spoken(offer.window.duration)} more)",
        f"  usable   until {minute(usable)}: then AWS takes the instances back",
        f"  fee      {offer.fee}, taken within 12 hours; the end moves when it is paid",
        "  no refund, no cancelling, no change: it is paid whether used or not",
    ]


def extension_lines(extensions: Sequence[Extension]) -> list[str]:
    """The extensions of an order, one line each; those that came to nothing are left out."""
    shown = (one for one in extensions if one.state is not ExtensionState.REFUSED)
    return [f"longer   until {minute(one.window.end)} for {one.fee}: {_how(one)}" for one in shown]


def _how(one: Extension) -> str:
    if one.state is ExtensionState.BOUGHT:
        return one.payment or "bought"
    if one.state is ExtensionState.FAILED:
        return f"{one.payment or 'failed'}, nothing was paid for it"
    return f"{one.state.value}: whether it is bought is not known"
