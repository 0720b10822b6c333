"""`berth show`: how orders stand. Looks for what is in doubt; never spends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from berth.cli.desks import Counter, counter, tell_spending, waiting
from berth.cli.extend import settled_extensions
from berth.cli.options import Json, Profile
from berth.cli.output import Output
from berth.cli.pieces import show_whole, whole_named
from berth.terms.instants import iso
from berth.terms.outcomes import ExitCode

if TYPE_CHECKING:
    from berth.orders.journal import Event
    from berth.orders.order import Order
    from berth.orders.seen import SeenReservation


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("show")(show)


def show(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Order: eval, eval/2, eval/1.2 for a piece; none: all."),
    ] = None,
    *,
    wait: Annotated[bool, waiting("until what is in doubt is known")] = False,
    history: Annotated[
        bool, typer.Option("--history", help="What happened to the order, line by line.")
    ] = False,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Show the orders, or one in full, with what to do next. Settles what is in doubt. Spends nothing."""
    output = Output(as_json=as_json)
    need = name.partition("/")[0] if name else None
    with counter(output, profile=profile, need=need) as at:
        if name is None:
            return _show_all(at)
        whole = whole_named(at, name)
        if whole is not None:
            return show_whole(at, whole, wait=wait, history=history)
        order = settled_extensions(at, settled(at, at.order(name), wait=wait), wait=wait)
        return _show_one(at, order, history=history)


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


def _show_all(at: Counter) -> int:
    from berth.orders.wording import order_json, table

    orders = at.journal.orders(at.account)
    at.output.document({"schema": "berth.orders/1", "orders": [order_json(order, None) for order in orders]})
    at.output.answer(
        "\n".join(table(orders)) if orders else "no orders yet: berth plan a need, then berth buy"
    )
    return ExitCode.DONE


def _show_one(at: Counter, order: Order, *, history: bool) -> int:
    from berth.orders.extensions.wording import extension_json, extension_lines
    from berth.orders.wording import next_step, order_json, order_lines
    from berth.terms.text import plain
    from berth.workloads.report import make_report, report_lines

    order, seen = reservation(at, order)
    endpoint, instances = _what_runs(at, order)
    now = at.door.clock.now()
    events = at.journal.events(order.key)
    report = make_report(order, events, now, at.journal.launches(order.key))
    document = order_json(order, seen, endpoint=endpoint, instances=instances)
    document["extensions"] = [extension_json(one) for one in order.extensions]
    document["report"] = report.to_json()
    document["history"] = [
        {
            "number": e.number,
            "at": iso(e.at),
            "kind": e.kind,
            "detail": e.detail,
            "caller": e.who.caller,
            "process": e.who.process,
        }
        for e in events
    ]
    at.output.document(document)
    lines = (
        order_lines(order, seen, now)
        + extension_lines(order.extensions)
        + _endpoint_lines(endpoint)
        + _instance_lines(instances)
    )
    if order.reservation_arn is not None and now >= order.window.start:
        lines += ["", *report_lines(report)]
    if history:
        lines += ["", *(line for event in events for line in _event_lines(event))]
    status = endpoint["status"] if endpoint else None
    step = next_step(order, seen, now, endpoint=status, running=sum(not one["ending"] for one in instances))
    lines += ["", f"next     {step}"]
    at.output.answer("\n".join(plain(line, 2000) for line in lines))
    return ExitCode.DONE


def _event_lines(event: Event) -> list[str]:
    """What happened, and who wrote it where that is known."""
    who = ", ".join(filter(None, (event.who.caller, event.who.process)))
    what = f"{iso(event.at)}  {event.kind}: {event.detail}"
    return [what, *([f"  by {who}"] if who else [])]


def _what_runs(at: Counter, order: Order) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """The order's endpoint, and its instances; nothing is asked about an order that nothing can run in."""
    from berth.terms.ways import Way
    from berth.workloads.status import endpoint_now, instances_now

    site = at.site(order.offer.region)
    if order.offer.way is not Way.CAPACITY_BLOCK:
        return endpoint_now(site, order), []
    return None, instances_now(site, order)


def _instance_lines(instances: list[dict[str, Any]]) -> list[str]:
    lines = []
    for one in instances:
        where = f", {one['zone']}" if one["zone"] else ""
        lines.append(f"instance {one['id']}: {one['state']}{where}")
        lines += [f"         ALARM: {one['stray']}"] if one["stray"] else []
    return lines


def _endpoint_lines(endpoint: dict[str, Any] | None) -> list[str]:
    if endpoint is None:
        return []
    lines = [f"endpoint {endpoint['name']}: {endpoint['status']}"]
    if endpoint["reason"]:
        lines.append(f"         {endpoint['reason']}")
    return lines + [f"         ALARM: {stray}" for stray in endpoint["strays"]]
