"""An order in words: how it stands, how long until what, and what to do next. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from berth.orders.order import Order, OrderState
from berth.orders.rows import tags_of_context
from berth.orders.seen import SeenReservation, Stage
from berth.orders.shops.shop import NOUNS
from berth.planner.offers import Offer, money_json, reclaim_before_end
from berth.terms.durations import spoken
from berth.terms.instants import iso
from berth.terms.money import Money
from berth.terms.ways import Way

SCHEMA = "berth.order/1"
_LABELS = {Way.TRAINING_PLAN: "plan     ", Way.CAPACITY_BLOCK: "block    "}


def order_json(
    order: Order,
    seen: SeenReservation | None,
    *,
    endpoint: Mapping[str, Any] | None = None,
    instances: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """The document of schema `berth.order/1` (docs/reference/journal.md); `endpoint` None: none."""
    plan = order.offer.way is Way.TRAINING_PLAN
    return {
        "schema": SCHEMA,
        "order": str(order.key),
        "account": order.key.account,
        "need": order.key.need,
        "sequence": order.key.sequence,
        "piece": order.key.piece,
        "state": order.state.value,
        "way": order.offer.way.value,
        "reservation": reservation_id(order),
        "reservation_arn": order.reservation_arn,
        "training_plan": order.plan_name if plan else None,
        "training_plan_arn": order.reservation_arn if plan else None,
        "money": {
            "known": order.spending.spent.value,
            "amount": money_json(order.spending.amount),
            "line": order.spending.line(),
        },
        "tags": tags_of_context(order.context),
        "offer": order.offer.to_json(),
        "attempts": len(order.attempts),
        "seen": None if seen is None else seen.to_json(),
        "endpoint": None if endpoint is None else dict(endpoint),
        "instances": [dict(one) for one in instances],
    }


def reservation_id(order: Order) -> str | None:
    """The plan's name, or the block's id; None for a block that is not known yet."""
    if order.offer.way is Way.TRAINING_PLAN:
        return order.plan_name
    return None if order.reservation_arn is None else order.reservation_arn.rpartition("/")[2]


def called(order: Order) -> str:
    """What was bought, for a sentence: `training plan eval-1-menp`, `Capacity Block cr-...`."""
    named = reservation_id(order)
    return f"{NOUNS[order.offer.way]} {named}" if named else f"{NOUNS[order.offer.way]} of order {order.key}"


def offer_lines(offer: Offer, fee: Money, unseen: str = "") -> list[str]:
    """What is about to be bought, for the question. `unseen`: what nobody can see before paying."""
    window = offer.paid_window
    usable = window.end - reclaim_before_end(offer.target)
    platform = f", {offer.platform}" if offer.platform else ""
    return [
        f"  what     {offer.count} x {offer.instance_type}, {NOUNS[offer.way]}{platform}",
        f"  where    {offer.region}, {', '.join(offer.zones)}",
        f"  window   {iso(window.start)} to {iso(window.end)} ({spoken(offer.paid_time)} paid)",
        *_parts(offer),
        f"  usable   until {iso(usable)}: then AWS takes the instances back",
        f"  target   {offer.target}, fixed for good",
        f"  fee      {fee}, taken at once",
        "  no refund, no cancelling, no change: it is paid whether used or not",
        *([f"  not seen {unseen}"] if unseen else []),
    ]


def _parts(offer: Offer) -> list[str]:
    """Each segment of an offer of several, so that the gaps are seen before the question is answered."""
    if len(offer.segments) == 1:
        return []
    return [
        f"  part {number}   {iso(part.window.start)} to {iso(part.window.end)}"
        for number, part in enumerate(offer.segments, start=1)
    ]


def order_lines(order: Order, seen: SeenReservation | None, now: datetime) -> list[str]:
    """How an order stands."""
    offer = order.offer
    state = f", {seen.state}" if seen is not None and order.state is OrderState.BOUGHT else ""
    lines = [
        f"order    {order.key}: {order.state}{state}",
        f"{_LABELS[offer.way]}{called(order)}, {offer.region}, {', '.join(offer.zones)}",
        f"what     {offer.count} x {offer.instance_type} for {offer.target}{_platform(offer)}",
    ]
    start, end = reservation_window(order, seen)
    lines.append(f"window   {iso(start)} to {iso(end)}{_countdown(start, end, now)}")
    lines.append(f"money    {order.spending.line()}")
    tags = tags_of_context(order.context)
    if tags:
        lines.append(f"tags     {', '.join(f'{key}={value}' for key, value in sorted(tags.items()))}")
    if seen is not None and seen.message:
        lines.append(f"says     {seen.message}")
    counted = seen is not None and (seen.instances_free is not None or seen.stage is Stage.OPEN)
    if seen is not None and seen.instances is not None and counted:
        free = "?" if seen.instances_free is None else str(seen.instances_free)
        lines.append(f"free     {free} of {seen.instances} instances")
    return lines


def next_step(
    order: Order,
    seen: SeenReservation | None,
    now: datetime,
    *,
    endpoint: str | None = None,
    running: int = 0,
) -> str:
    """The one thing to do now. `endpoint` is the status of ours, None when there is none; `running` counts
    our instances that are not ended."""
    key = order.key
    if order.state in {OrderState.BUYING, OrderState.UNKNOWN}:
        return f"berth show {key} --wait: look until it is known; do not buy by hand"
    if order.state is OrderState.DISPUTED:
        return "judge the look-alike by hand; berth does not touch it"
    if order.state in {OrderState.REFUSED, OrderState.FAILED}:
        return f"berth plan the need {key.need} again; nothing was bought by this order"
    if order.offer.way is Way.CAPACITY_BLOCK:
        return _next_of_block(order, seen, now, running)
    return _next_of_plan(order, seen, now, endpoint)


def reservation_window(order: Order, seen: SeenReservation | None) -> tuple[datetime, datetime]:
    """Start and end as AWS shows them, else as approved."""
    window = order.window
    return (seen.start if seen and seen.start else window.start), (
        seen.end if seen and seen.end else window.end
    )


def table(orders: Sequence[Order]) -> list[str]:
    """One line an order, in 80 columns where names allow."""
    rows = [("ORDER", "STATE", "WINDOW", "FEE")]
    rows += [
        (
            str(order.key),
            _state(order),
            f"{order.window.start:%Y-%m-%d %H:%M} to {order.window.end:%m-%d %H:%M}Z",
            str(order.held.fee if order.extended else order.attempt.fee),
        )
        for order in orders
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _state(order: Order) -> str:
    """The order's state, and that of its extension where that is in doubt."""
    doubts = [f", extension {one.state}" for one in order.extensions if one.in_doubt]
    return order.state.value + "".join(doubts)


def _next_of_plan(order: Order, seen: SeenReservation | None, now: datetime, endpoint: str | None) -> str:
    start, end = reservation_window(order, seen)
    last = end - reclaim_before_end(order.offer.target)
    if endpoint is not None:
        if now >= last:
            return f"berth clean {order.key}: the window is over or about to be"
        return f"berth invoke {order.key}; berth clean {order.key} before {iso(last)}"
    if now >= last or (seen is not None and seen.stage is Stage.OVER):
        return "nothing: the window is over"
    if seen is not None and seen.stage is Stage.OPEN:
        return f"berth deploy {order.key}"
    return f"wait until {iso(start)}, then berth deploy {order.key}"


def _next_of_block(order: Order, seen: SeenReservation | None, now: datetime, running: int) -> str:
    start, end = reservation_window(order, seen)
    last = end - reclaim_before_end(order.offer.target)
    over = now >= last or (seen is not None and seen.stage is Stage.OVER)
    if running:
        when = "the window is over or about to be" if over else f"before {iso(last)}"
        return f"berth clean {order.key}: {when}"
    if over:
        return "nothing: the window is over"
    if seen is not None and seen.stage is Stage.LOST:
        return "ask AWS Support what became of the block and of its fee"
    if now >= start:
        return f"berth launch {order.key}"
    return f"wait until {iso(start)}, then berth launch {order.key}"


def _platform(offer: Offer) -> str:
    return f", {offer.platform}" if offer.platform else ""


def _countdown(start: datetime, end: datetime, now: datetime) -> str:
    if now < start:
        return f", opens in {spoken(start - now)}"
    if now < end:
        return f", ends in {spoken(end - now)}"
    return ", over"
