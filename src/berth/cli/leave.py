"""`berth leave`: what is still paid, armed or running, before somebody goes. Reads only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.desks import Counter, counter
from berth.cli.ls import inventory_of
from berth.cli.options import Json, Profile
from berth.cli.output import Output
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.inventory.leaving import Armed, Doubt, Leaving
    from berth.orders.approvals import ApprovalRequest
    from berth.orders.order import Order
    from berth.terms.money import Money


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("leave")(leave)


def leave(
    *,
    region: Annotated[list[str] | None, typer.Option("--region", help="Only there; may be repeated.")] = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Say what is still paid, running, in doubt or waited for, in all Regions. Spends nothing."""
    from berth.inventory.leaving import leaving
    from berth.inventory.leaving_text import leaving_text
    from berth.sources.leaving import look_further

    output = Output(as_json=as_json)
    with counter(output, profile=profile, regions=region or ()) as at:
        inventory, unlisted = inventory_of(at, region or (), everything=False)
        more = look_further(at.door, inventory.regions)
        left = leaving(inventory, more, _doubts(at), _unused(at), _armed(at))
    output.document(left.to_json())
    output.answer(leaving_text(left))
    return _end(output, left, unlisted)


def _doubts(at: Counter) -> list[Doubt]:
    """Orders and extensions in doubt. Nobody is asked about them here: `berth show` settles them."""
    from berth.inventory.leaving import Doubt
    from berth.orders.reconcile import UNSETTLED

    orders = at.journal.orders(at.account)
    doubts = [Doubt(str(one.key), one.state.value, one.spending) for one in orders if one.state in UNSETTLED]
    return doubts + [
        Doubt(str(order.key), f"{one.state.value} to be extended", one.spending(str(order.key)))
        for order in orders
        for one in order.extensions
        if one.in_doubt
    ]


def _armed(at: Counter) -> list[Armed]:
    """Purchases and extensions that were asked approval for and not made; what is made is armed no longer."""
    from berth.inventory.leaving import Armed
    from berth.orders.pieces.book import WholeBook
    from berth.orders.pieces.whole import WholeState

    ledger, now = at.journal.ledger(), at.door.clock.now()
    wholes = WholeBook(at.journal).wholes(at.account)
    whole = {one.key for one in wholes if one.state is WholeState.BOUGHT}
    found = []
    for request in ledger.requests():
        made = request.key in whole or _is_made(at.journal.order(request.key), request)
        if request.key.account == at.account and now < request.expires_at and not made:
            given = bool(ledger.given(request))
            found.append(Armed(str(request.key), request.amount, request.expires_at, given))
    return found


def _is_made(order: Order | None, request: ApprovalRequest) -> bool:
    """Whether what the request asks for has been bought: the order, or its extension to that end."""
    from berth.orders.extensions.extension import ExtensionState
    from berth.orders.order import OrderState
    from berth.terms.instants import iso

    if order is None or order.state is not OrderState.BOUGHT:
        return False
    if request.what.get("kind") != "extension":
        return True
    ends = {iso(one.window.end) for one in order.extensions if one.state is ExtensionState.BOUGHT}
    return request.what.get("end") in ends


def _unused(at: Counter) -> dict[tuple[str, str], Money]:
    """What is unused of each order's fee, by its segments."""
    from berth.orders.seen import SeenReservation
    from berth.orders.wording import reservation_id
    from berth.workloads.clean import still_paid

    found = {}
    for order in at.journal.orders(at.account):
        seen = SeenReservation.from_json(order.seen) if order.seen else None
        paid, name = still_paid(order, seen, at.door.clock.now()), reservation_id(order)
        if paid is not None and name is not None:
            found[(order.offer.region, name)] = paid.unused
    return found


_SAID = {
    ExitCode.OUTCOME_UNKNOWN: ("the outcome of an order is in doubt", "berth show the orders named above"),
    ExitCode.SOMETHING_LEFT: ("something runs, is billed or is waited for", "end what is named above"),
    ExitCode.INCOMPLETE: (
        "not every place answered; there may be more",
        "the lines NOT KNOWN say why; ask again",
    ),
}


def _end(output: Output, left: Leaving, unlisted: str) -> int:
    code = left.exit_code
    if unlisted and code in {ExitCode.DONE, ExitCode.CLEANED_STILL_PAID}:
        raise BerthError(
            ExitCode.INCOMPLETE,
            f"the account's Regions are not known ({unlisted})",
            "name them with --region",
        )
    if code is ExitCode.CLEANED_STILL_PAID:
        output.talk("nothing runs; what is paid stays paid until its end, and cannot be given back")
    if code in {ExitCode.DONE, ExitCode.CLEANED_STILL_PAID}:
        return code
    raise BerthError(code, *_SAID[code])
