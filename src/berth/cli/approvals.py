"""`berth approvals`: what somebody else has to agree to, and who has. None of its verbs can pay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from berth.cli.desks import counter
from berth.cli.options import Json, Profile, Tags
from berth.cli.output import Output
from berth.cli.spending import (
    asked_for,
    buying,
    read_proofs,
    request_json,
    request_lines,
    tagged,
    take_proof,
)
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.text import plain

Hash = Annotated[str, typer.Argument(metavar="HASH", help="Hash of a request, or its first 8 digits.")]
SCHEMA = "berth.approvals/1"

approvals = typer.Typer(
    help="Requests for approval: list, show, ask, take, listen. Spends nothing.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.add_typer(approvals, name="approvals")


@approvals.command("ls")
def list_requests(*, profile: Profile = None, as_json: Json = False) -> int:
    """List the requests for approval that this journal knows."""
    output = Output(as_json=as_json)
    with counter(output, profile=profile) as at:
        found = [(one, request_json(at, one)) for one in at.journal.ledger().requests()]
        output.document({"schema": SCHEMA, "approvals": [document for _, document in found]})
        if not found:
            output.talk("no requests for approval")
        for request, document in found:
            until = document["request"]["expires"]
            output.answer(
                f"{request.hash[:12]}  {document['state']:<8}  {request.key}  {request.amount}  until {until}"
            )
    return ExitCode.DONE


@approvals.command("show")
def show_request(hash_: Hash, *, profile: Profile = None, as_json: Json = False) -> int:
    """Show one request, how it stands, and who has approved it."""
    from berth.orders.approval_book import find

    output = Output(as_json=as_json)
    with counter(output, profile=profile) as at:
        request = find(at.journal, hash_)
        document = request_json(at, request)
        output.document(document)
        lines = [f"request {request.hash[:12]}: {document['state']}", *request_lines(at, request)]
        lines += [f"  approved {one['at']} by {plain(one['approver'], 200)}" for one in document["approvals"]]
        output.answer("\n".join(lines))
    return ExitCode.DONE


@approvals.command("request")
def request_approval(
    handle: Annotated[str, typer.Argument(metavar="NAME#1", help="Choice 1 of the plan NAME.")],
    *,
    again: Annotated[bool, typer.Option("--again", help="For one more, beside what is bought.")] = False,
    tag: Tags = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Ask for an approval without buying; says so when the rules ask for none."""
    from berth.cli.buy import approval_of, read_best_handle, read_handle, recalled, what_to_buy
    from berth.orders.purchase import fresh_offer
    from berth.orders.spending_gate import NotApproved, check_spending, proposal_of

    output = Output(as_json=as_json)
    if (best := read_best_handle(handle)) is not None:
        return _request_whole(output, best, handle, again=again, tag=tag, profile=profile)
    need, asked, number = read_handle(handle)
    with counter(output, profile=profile, need=need) as at:
        plan = tagged(recalled(at, need), tag)
        choice, key = what_to_buy(at, plan, number, again=again, asked=asked)
        offer, _ = fresh_offer(at.desk(choice.offer), choice.offer)
        proposal = proposal_of(key, replace(approval_of(plan, choice), offer=offer))
        try:
            check_spending(at.gate, at.journal.ledger(), proposal, at.door.clock.now())
        except NotApproved as missing:
            asked_for(at, missing, buying(handle))
            return ExitCode.DONE
    output.answer(f"order {key} needs no approval: berth buy {handle}")
    return ExitCode.DONE


def _request_whole(
    output: Output,
    best: tuple[str, int | None],
    handle: str,
    *,
    again: bool,
    tag: list[str] | None,
    profile: str | None,
) -> int:
    """The same for all pieces of the best combination: one approval of the whole."""
    from berth.cli.buy import recalled
    from berth.cli.buy_pieces import Asked, why_not_allowed

    need, sequence = best
    with counter(output, profile=profile, need=need) as at:
        asked = Asked(None, again=again, sequence=sequence)
        key, missing = why_not_allowed(at, tagged(recalled(at, need), tag), asked)
        if missing is not None:
            asked_for(at, missing, buying(handle))
            return ExitCode.DONE
    output.answer(f"order {key} needs no approval: berth buy {handle}")
    return ExitCode.DONE


@approvals.command("take")
def take_approval(
    proof: Annotated[str, typer.Argument(metavar="FILE", help="Proof of an approver; - reads stdin.")],
    *,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Verify a proof at AWS STS and keep the approval. Buys nothing."""
    output = Output(as_json=as_json)
    proofs = read_proofs(proof)
    with counter(output, profile=profile) as at:
        taken = [request_json(at, take_proof(at, one)) for one in proofs]
        output.document({"schema": SCHEMA, "approvals": taken})
    return ExitCode.DONE


@approvals.command("listen")
def listen(
    *,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1 (0: any free one).")
    ] = None,
    socket: Annotated[Path | None, typer.Option("--socket", help="Unix socket, made with mode 0600.")] = None,
    once: Annotated[bool, typer.Option("--once", help="End after the first approval.")] = False,
    profile: Profile = None,
) -> int:
    """Take proofs over HTTP on this machine, verify each at AWS STS, and keep the approvals."""
    from berth.cli.approvals_wire import Place, serve

    output = Output()
    if (port is None) == (socket is None):
        raise BerthError(ExitCode.USAGE, "listen on --port N of 127.0.0.1, or on --socket PATH")
    with counter(output, profile=profile) as at:
        if at.gate.rules is None or at.gate.rules.approval is None:
            raise BerthError(ExitCode.BAD_REQUEST, "no rules of spending say here who may approve")
        serve(
            Place(port, socket),
            lambda proof: request_json(at, take_proof(at, proof)),
            once=once,
            ready=lambda where: output.talk(f"listening on {where}; Ctrl-C ends it"),
        )
    return ExitCode.DONE
