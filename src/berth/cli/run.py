"""`berth run`: plan, buy, wait, deploy in a row. Run again it goes on where it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.buy import buy_choice, read_amount, tell_how
from berth.cli.clean import clean_order
from berth.cli.deploy import bought, deploy_order
from berth.cli.desks import Counter, Max, Wait, Yes, counter
from berth.cli.needs import TypedNeed, typed_need
from berth.cli.options import Json, NeedFile, Profile
from berth.cli.output import Output
from berth.terms.instants import iso
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.orders.order import Order
    from berth.orders.seen import SeenReservation
    from berth.planner.need import Deployment, Need
    from berth.terms.money import Money


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("run")(run)


def run(
    need: NeedFile = None,
    *,
    yes: Yes = False,
    most: Max = None,
    wait: Wait = False,
    choice: Annotated[int, typer.Option("--choice", min=1, help="Which choice of the plan to buy.")] = 1,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Do all of it for NEED: plan, buy once, wait for the window, deploy. Ends with "waiting until T"."""
    from berth.orders.guard import check_permission

    output = Output(as_json=as_json)
    typed = typed_need(need, {})
    draft = typed.draft()
    cap = read_amount(most)
    with counter(output, profile=profile, regions=draft.regions) as at:
        at.door.check_account(draft.account)
        order = latest(at, draft.name, wait=wait)
        if order is None:
            check_permission(yes=yes, cap=cap, can_ask=output.can_ask())
            order = plan_and_buy(at, typed, choice, cap=cap, yes=yes, wait=wait)
        return go_on(at, order, draft.deployment, wait=wait)


def latest(at: Counter, need: str, *, wait: bool) -> Order | None:
    """The order to go on with: the need's latest, settled; None when that is known to have bought nothing.

    Raises BerthError (outcome unknown) when looking does not settle it.
    """
    from berth.cli.show import settled
    from berth.orders.order import OrderState

    orders = at.journal.orders(at.account, need)
    if not orders:
        return None
    order = settled(at, orders[-1], wait=wait)
    return None if order.state in {OrderState.REFUSED, OrderState.FAILED} else order


def plan_and_buy(
    at: Counter, typed: TypedNeed, choice: int, *, cap: Money | None, yes: bool, wait: bool
) -> Order:
    """Plan the need, show the plan, and buy one choice of it. Raises BerthError."""
    from dataclasses import replace

    from berth.cli.plan import plan_need
    from berth.planner.wording import plan_text

    need: Need = replace(typed.read(at.door.clock.now()), regions=at.door.regions)
    made = plan_need(at.output, at.door, need)
    at.output.talk(plan_text(made, at.door.identity.header()))
    if made.best is None:
        code = ExitCode.INCOMPLETE if made.incomplete else ExitCode.NO_CAPACITY
        raise BerthError(code, "nothing that fits is on sale; nothing was bought", "widen the need")
    purchase = buy_choice(at, made, choice, cap=cap, yes=yes, wait=wait)
    tell_how(at, purchase)
    return purchase.order


def go_on(at: Counter, order: Order, deployment: Deployment | None, *, wait: bool) -> int:
    """From a bought order to an endpoint in service, or to the time to wait for; the exit code."""
    from berth.orders.order import OrderState
    from berth.orders.purchase import failed
    from berth.orders.wording import reservation_window
    from berth.planner.offers import reclaim_before_end

    order, seen = bought(at, order, wait=wait)
    if order.state is OrderState.FAILED:
        raise failed(order)
    start, end = reservation_window(order, seen)
    now = at.door.clock.now()
    if now >= end - reclaim_before_end(order.offer.target) or (seen and seen.state == "Expired"):
        at.output.talk("the window is over, or AWS is taking the instances back: clearing up")
        return clean_order(at, order)
    if seen is None or seen.state != "Active":
        state = seen.state if seen else "not shown yet"
        return _end(at, order, seen, "waiting", f"waiting until {iso(start)}: the training plan is {state}")
    if deployment is None:
        return _end(at, order, seen, "open", f"the window is open until {iso(end)}; the need deploys nothing")
    endpoint = deploy_order(at, order, seen, deployment)
    return _end(at, order, seen, "serving", f"endpoint {endpoint} is in service", endpoint=endpoint)


def _end(
    at: Counter,
    order: Order,
    seen: SeenReservation | None,
    stage: str,
    text: str,
    *,
    endpoint: str | None = None,
) -> int:
    """Say how far the run has come. `stage` is waiting, open or serving."""
    from berth.orders.wording import next_step, order_json

    status = None if endpoint is None else {"name": endpoint, "status": "InService"}
    at.output.document({**order_json(order, seen, status), "schema": "berth.run/1", "stage": stage})
    at.output.answer(text)
    step = next_step(order, seen, at.door.clock.now(), endpoint=endpoint)
    again = "; run the same command again then" if stage == "waiting" else ""
    at.output.talk(f"next: {step}{again}")
    return ExitCode.DONE
