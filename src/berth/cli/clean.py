"""`berth clean`: remove what was made for an order, and say what goes on being paid for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from berth.cli.desks import Counter, counter, tell_spending
from berth.cli.named import order_named, whole_named
from berth.cli.options import Json, Name, Profile, waiting
from berth.cli.output import Output
from berth.cli.pieces import Documents, each_piece
from berth.terms.outcomes import ExitCode

if TYPE_CHECKING:
    from berth.orders.order import Order


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("clean")(clean)


def clean(
    name: Name,
    *,
    wait: Annotated[bool, waiting("until all is gone")] = False,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """End what runs in order NAME's reservation, which stays paid. Ends instances, removes the endpoint."""
    output = Output(as_json=as_json)
    with counter(output, profile=profile, need=name.partition("/")[0]) as at:
        whole = whole_named(at, name)
        if whole is None:
            return clean_order(at, order_named(at, name), wait=wait)
        told = Documents(at, "berth.clean-pieces/1", str(whole.key))
        code = each_piece(at, whole, lambda there, order: clean_order(there, order, wait=wait, tell=told.add))
        told.tell()
        return code


def clean_order(
    at: Counter, order: Order, *, wait: bool = False, tell: Callable[[dict[str, Any]], None] | None = None
) -> int:
    """Clear up and account for it; exit 31 while the reservation goes on being paid, else 0."""
    from berth.cli.standing import reservation, settled
    from berth.orders.wording import called
    from berth.terms.durations import spoken
    from berth.terms.instants import iso
    from berth.workloads.clean import still_paid
    from berth.workloads.report import make_report, report_lines

    order, seen = reservation(at, settled(at, order, wait=False))
    tell_spending(order.spending)
    removed = _remove(at, order, wait=wait)
    now = at.door.clock.now()
    report = make_report(order, at.journal.events(order.key), now, at.journal.launches(order.key))
    paid = still_paid(order, seen, now)
    (tell or at.output.document)(
        {
            "schema": "berth.clean/1",
            "order": str(order.key),
            "removed": list(removed),
            "paid_until": iso(paid.until) if paid else None,
            "unused": {"amount": f"{paid.unused.amount:f}", "currency": paid.unused.currency}
            if paid
            else None,
            "report": report.to_json(),
        }
    )
    at.output.answer("\n".join(f"removed {what}" for what in removed) or "nothing of this order was left")
    if order.reservation_arn is not None:
        at.output.answer("\n".join(report_lines(report)))
    if paid is None:
        return ExitCode.DONE
    at.output.talk(
        f"the {called(order)} stays paid until {iso(paid.until)}"
        f" ({spoken(paid.until - now)}), {paid.unused} of the fee unused; it cannot be given back"
    )
    at.output.talk(order.spending.line())
    return ExitCode.CLEANED_STILL_PAID


def _remove(at: Counter, order: Order, *, wait: bool) -> tuple[str, ...]:
    """Remove what runs for the order; what was removed, in words."""
    from berth.terms.ways import Way
    from berth.workloads.clean import clean as remove
    from berth.workloads.clean_instances import clean_instances

    site = at.site(order.offer.region)
    if order.offer.way is not Way.CAPACITY_BLOCK:
        return remove(site, order)
    return clean_instances(site, order, wait=wait)
