"""`berth show`: how orders stand. Looks for what is in doubt; never spends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from berth.cli.desks import Counter, counter
from berth.cli.extend import settled_extensions
from berth.cli.named import order_named, whole_named
from berth.cli.options import Json, Profile, waiting
from berth.cli.output import Output
from berth.cli.pieces import show_whole
from berth.cli.standing import event_lines, reservation, settled
from berth.terms.instants import iso
from berth.terms.outcomes import ExitCode

if TYPE_CHECKING:
    from berth.orders.order import Order


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
        order = settled_extensions(at, settled(at, order_named(at, name), wait=wait), wait=wait)
        return _show_one(at, order, history=history)


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
        lines += ["", *(line for event in events for line in event_lines(event))]
    status = endpoint["status"] if endpoint else None
    step = next_step(order, seen, now, endpoint=status, running=sum(not one["ending"] for one in instances))
    lines += ["", f"next     {step}"]
    at.output.answer("\n".join(plain(line, 2000) for line in lines))
    return ExitCode.DONE


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
