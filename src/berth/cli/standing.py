"""How an order stands: looking until its outcome, its payment or its reservation is known. Never spends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from berth.cli.desks import Counter, tell_spending
from berth.terms.instants import iso
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.orders.journal import Event
    from berth.orders.order import Order
    from berth.orders.seen import SeenReservation

Result = TypeVar("Result")


def settled(at: Counter, order: Order, *, wait: bool) -> Order:
    """The order after looking for what became of it, once or (`wait`) until that is known.

    Raises BerthError (outcome unknown) when it still is not.
    """
    from berth.orders.reconcile import UNSETTLED, doubt, settle_doubt
    from berth.watch.waiting import wait_for

    desk = at.desk(order.offer)
    last = [order]

    def look() -> Order:
        last[0] = settle_doubt(desk, last[0])
        return last[0]

    def standing(seen: Order) -> None:
        at.output.talk(at.standing_clock("6m"))

    limit = None if wait else 0.0
    order = wait_for(
        look, lambda seen: seen.state not in UNSETTLED, at.door.clock, standing=standing, limit_s=limit
    )
    tell_spending(order.spending)
    if order.state in UNSETTLED:
        raise doubt(desk, order)
    return order


def reservation(at: Counter, order: Order) -> tuple[Order, SeenReservation | None]:
    """The order and its reservation as AWS shows it now; what was seen last where AWS shows nothing."""
    from berth.orders.order import OrderState
    from berth.orders.reconcile import refresh
    from berth.orders.seen import GONE, SeenReservation
    from berth.orders.wording import called

    if order.state is not OrderState.BOUGHT:
        return order, None
    order, seen = refresh(at.desk(order.offer), order)
    tell_spending(order.spending)
    if seen is not None or order.seen is None:
        return order, seen
    last = SeenReservation.from_json(order.seen)
    if at.door.clock.now() >= order.window.end:
        return order, replace(last, state=GONE)
    at.output.talk(f"warning: AWS does not show the {called(order)} now; below is what it showed last")
    return order, last


def until_paid(at: Counter, order: Order) -> SeenReservation | None:
    """Look until the payment is settled; what was seen last. Raises BerthError when AWS fails the plan."""
    from berth.orders.order import OrderState
    from berth.orders.purchase import failed
    from berth.orders.reconcile import refresh
    from berth.orders.seen import Stage
    from berth.watch.waiting import wait_for

    desk = at.desk(order.offer)

    def done(seen: tuple[Order, SeenReservation | None]) -> bool:
        return seen[0].state is OrderState.FAILED or (
            seen[1] is not None and seen[1].stage is not Stage.PAYING
        )

    def standing(seen: object) -> None:
        at.output.talk(at.standing_clock("5m"))

    order, seen = wait_for(
        lambda: refresh(desk, order), done, at.door.clock,
        known=lambda seen: (order.offer.paid_window.start,), standing=standing,
    )  # fmt: skip
    if order.state is OrderState.FAILED:
        raise failed(order)
    return seen


def until_known(at: Counter, once: Callable[[], Result]) -> Result:
    """Try until the outcome is known; while it is not, each try only looks."""
    from berth.watch.waiting import wait_for

    def attempt() -> Result | BerthError:
        try:
            return once()
        except BerthError as error:
            if error.exit_code is not ExitCode.OUTCOME_UNKNOWN:
                raise
            return error

    def standing(seen: Result | BerthError) -> None:
        at.output.talk(at.standing_clock("6m"))

    last = wait_for(attempt, lambda seen: not isinstance(seen, BerthError), at.door.clock, standing=standing)
    if isinstance(last, BerthError):
        raise last
    return last


def event_lines(event: Event) -> list[str]:
    """What happened, and who wrote it where that is known."""
    who = ", ".join(filter(None, (event.who.caller, event.who.process)))
    what = f"{iso(event.at)}  {event.kind}: {event.detail}"
    return [what, *([f"  by {who}"] if who else [])]
