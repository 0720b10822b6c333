"""What a reservation was worth: paid, usable, used, idle, and what its use would have cost on demand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from berth.orders.journal import Event
from berth.orders.launches import Launch
from berth.orders.order import Order
from berth.orders.steps import StepKind, StepState
from berth.planner.cost import BreakEven, HourlyRate, OfferCost, break_even_of
from berth.planner.offers import Offer, hours_of, money_from_json, money_json
from berth.terms.durations import clock_hours, spoken
from berth.terms.instants import iso
from berth.terms.money import Money
from berth.terms.ways import Way
from berth.terms.window import Window


@dataclass(frozen=True, slots=True)
class Report:
    """The account of one order at `at`. Times are of the window, not times the instances.

    `used` is the time in which an endpoint of ours was in service inside the usable windows; `idle` the
    usable time so far without one; `idle_money` that time's share of the fee. For a block `used` is weighted:
    an hour in which one of two instances ran is half an hour. `on_demand_for_used` is what
    the used hours would have cost at the list rate, None where no rate is known; so is `break_even`.
    """

    order: str
    at: datetime
    paid: Money
    paid_time: timedelta
    usable: timedelta
    used: timedelta
    idle: timedelta
    idle_money: Money
    on_demand_for_used: Money | None
    break_even: BreakEven | None
    use: str = "with an endpoint in service"

    def to_json(self) -> dict[str, Any]:
        """The document of schema `berth.report/1`. Spans are whole seconds."""
        return {
            "schema": "berth.report/1",
            "order": self.order,
            "at": iso(self.at),
            "paid": money_json(self.paid),
            "paid_s": int(self.paid_time.total_seconds()),
            "usable_s": int(self.usable.total_seconds()),
            "used_s": int(self.used.total_seconds()),
            "idle_s": int(self.idle.total_seconds()),
            "idle_money": money_json(self.idle_money),
            "on_demand_for_used": money_json(self.on_demand_for_used),
            "break_even": self.break_even.to_json() if self.break_even else None,
        }


def make_report(
    order: Order, events: Sequence[Event], now: datetime, launches: Sequence[Launch] = ()
) -> Report:
    """The account of an order from what the journal holds. Pure."""
    offer = order.held
    fee = None if order.extended else money_from_json((order.seen or {}).get("fee"))
    fee = fee or (offer.fee if order.extended else None) or order.attempt.fee
    passed = [window for window in (_until(usable, now) for usable in offer.usable) if window]
    used = _used(order, events, launches, now, passed)
    idle = sum((window.duration for window in passed), timedelta()) - used
    usable_s = offer.usable_time.total_seconds()
    idle_share = Decimal(int(idle.total_seconds())) / Decimal(int(usable_s)) if usable_s else Decimal(0)
    even = _break_even(order, offer, fee)
    return Report(
        order=str(order.key),
        at=now,
        paid=fee,
        paid_time=offer.paid_time,
        usable=offer.usable_time,
        used=used,
        idle=idle,
        idle_money=Money(fee.amount * idle_share, fee.currency).rounded(),
        on_demand_for_used=_on_demand(even.rate if even else None, used, offer.count),
        break_even=even,
        use=_USES[order.offer.way is Way.CAPACITY_BLOCK],
    )


_USES = {False: "with an endpoint in service", True: "with instances running, of all its places"}


def _used(
    order: Order, events: Sequence[Event], launches: Sequence[Launch], now: datetime, passed: Sequence[Window]
) -> timedelta:
    if order.offer.way is not Way.CAPACITY_BLOCK:
        return _overlap(in_service(events, now), passed)
    block = (order.reservation_arn or "").rpartition("/")[2]
    spent = timedelta()
    for launch in launches:
        end = launch.removing_at or now
        if launch.block == block and launch.made_at is not None and launch.made_at < end:
            spent += _overlap([Window(launch.made_at, end)], passed) * len(launch.instance_ids)
    return min(spent / order.offer.count, sum((window.duration for window in passed), timedelta()))


def in_service(events: Iterable[Event], now: datetime) -> list[Window]:
    """The spans in which the order's endpoint was in service, from its history; an open one ends `now`."""
    spans, since = [], None
    for event in events:
        if event.kind == f"{StepKind.ENDPOINT} {StepState.MADE}" and since is None:
            since = event.at
        elif event.kind == f"{StepKind.ENDPOINT} {StepState.REMOVING}" and since is not None:
            if event.at > since:
                spans.append(Window(since, event.at))
            since = None
    if since is not None and now > since:
        spans.append(Window(since, now))
    return spans


def report_lines(report: Report) -> list[str]:
    """The account in words, for 80 columns."""
    lines = [
        f"paid           {report.paid} for {clock_hours(report.paid_time)} h",
        f"usable         {clock_hours(report.usable)} h (AWS takes the instances back before the end)",
        f"used           {clock_hours(report.used)} h {report.use}",
        f"idle           {clock_hours(report.idle)} h, that is {report.idle_money} of the fee",
    ]
    if report.break_even is None:
        return [*lines, "on demand      not known: no list price of this type and Region"]
    rate = report.break_even.rate
    lines.append(f"on demand      {report.on_demand_for_used} for the hours used, at {rate.hourly}/h")
    lines.append(f"               (list rate of {rate.as_of}, {rate.source})")
    after = spoken(report.break_even.after)
    if report.break_even.ever_pays:
        return [*lines, f"pays           from {after} of use"]
    return [*lines, f"pays           never: it would take {after} of use, more than can be used"]


def _break_even(order: Order, held: Offer, fee: Money) -> BreakEven | None:
    """The break-even as it was planned; reckoned anew for what is held longer by now."""
    cost = OfferCost.from_json(order.context["cost"]) if order.context.get("cost") else None
    if cost is None or cost.break_even is None or not order.extended:
        return cost.break_even if cost else None
    total = fee
    if cost.surcharge is not None:
        if cost.surcharge.total is None or cost.surcharge.total.currency != fee.currency:
            return None
        total = fee + cost.surcharge.total * (held.paid_hours / order.offer.paid_hours)
    return break_even_of(total.rounded(), held, cost.break_even.rate)


def _on_demand(rate: HourlyRate | None, used: timedelta, count: int) -> Money | None:
    if rate is None or rate.hourly is None:
        return None
    return (rate.hourly * (hours_of(used) * count)).rounded()


def _until(window: Window, now: datetime) -> Window | None:
    if now <= window.start:
        return None
    return Window(window.start, min(window.end, now))


def _overlap(spans: Iterable[Window], windows: Sequence[Window]) -> timedelta:
    total = timedelta()
    for span in spans:
        for window in windows:
            if span.overlaps(window):
                total += min(span.end, window.end) - max(span.start, window.start)
    return total
