"""May an endpoint be put into this reservation now? Pure; asked before anything is called (fault 16)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from berth.orders.order import Order, OrderState
from berth.orders.seen import SeenReservation, Stage
from berth.planner.offers import reclaim_before_end
from berth.terms.durations import spoken
from berth.terms.instants import iso
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Target


def check_order(order: Order) -> None:
    """Whether the order has a reservation at all."""
    if order.state is not OrderState.BOUGHT:
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"order {order.key} is {order.state}: there is no reservation to deploy into",
            f"berth show {order.key}",
            order.spending,
        )


def check_target(order: Order, seen: SeenReservation | None, fitting: Iterable[SeenReservation]) -> None:
    """Whether the reservation was bought for endpoints; `fitting` are those of the account that were."""
    targets = seen.targets if seen is not None and seen.targets else order.offer.targets
    if Target.ENDPOINT.value in targets:
        return
    bought_for = ", ".join(targets) or "no known target"
    first = f"the training plan {order.plan_name} was bought for {bought_for}, which cannot be changed"
    lines = [
        f"{first}: no endpoint can run in it",
        *(f"  fits: {_line(other)}" for other in fitting),
    ]
    if len(lines) == 1:
        lines.append("  no training plan of this account and Region is for endpoints")
    raise BerthError(ExitCode.BAD_REQUEST, "\n".join(lines), None, order.spending)


def check_window(order: Order, seen: SeenReservation | None, now: datetime) -> None:
    """Whether the reservation is open: SageMaker takes an endpoint only on an Active training plan."""
    if seen is None:
        raise _not_now(order, "the reservation could not be read, so whether it is open is not known")
    window = order.window
    start, end = seen.start or window.start, seen.end or window.end
    last = end - reclaim_before_end(Target.ENDPOINT)
    if seen.stage is Stage.OPEN and now < last:
        return
    if seen.stage is Stage.OPEN:
        raise _not_now(order, f"too late in this window: AWS takes the instances back from {iso(last)} on")
    if seen.stage is Stage.OVER:
        raise _not_now(order, f"the window is over since {iso(end)}")
    if seen.stage in {Stage.PAYING, Stage.AHEAD}:
        ahead = (
            f"in {spoken(start - now)}" if start > now else "its start has come, AWS has not opened it yet"
        )
        raise _not_now(order, f"the reservation is {seen.state}; it opens at {iso(start)} ({ahead})")
    raise _not_now(order, f"the reservation is {seen.state}; only an Active one takes an endpoint")


def _not_now(order: Order, why: str) -> BerthError:
    return BerthError(
        ExitCode.BOUGHT_NOT_LAUNCHED, why, f"berth deploy {order.key} once it is Active", order.spending
    )


def _line(seen: SeenReservation) -> str:
    window = f"{iso(seen.start)} to {iso(seen.end)}" if seen.start and seen.end else "window not shown"
    kind = f"{seen.instances or '?'} x {seen.instance_type or 'type not shown'}"
    return f"{seen.name}: {seen.state}, {kind}, {window}"
