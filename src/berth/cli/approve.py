"""`berth approve`: agree to what somebody else wants to buy, with a proof of who agrees. It cannot pay."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.desks import Counter, counter
from berth.cli.options import Profile
from berth.cli.output import Output
from berth.cli.spending import request_lines
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.text import plain

if TYPE_CHECKING:
    from berth.aws.proofs import Proof
    from berth.orders.approvals import ApprovalRequest

_LARGEST_REQUEST = 100_000  # bytes; a request has about one thousand


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("approve")(approve)


def approve(
    hashes: Annotated[
        list[str] | None, typer.Argument(metavar="HASH", help="Requests, by hash or 8 digits of it.")
    ] = None,
    *,
    request: Annotated[
        Path | None, typer.Option("--request", metavar="FILE", help="Request as JSON, without a journal.")
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="FILE", help="Write the proof; - stdout.")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="PLACE", help="Hand it to a listener: port or socket.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    profile: Profile = None,
) -> int:
    """Approve what somebody else wants to buy. Signs a proof of who you are, good for 15 minutes."""
    output = Output()
    _check_delivery(output, hashes, request, out, to)
    with counter(output, profile=profile) as at:
        wanted = [_read_request(request)] if request is not None else _found(at, hashes or [])
        for one in wanted:
            _consider(at, one, yes=yes)
        _deliver(at, [_signed(at, one) for one in wanted], out, to)
    return ExitCode.DONE


def _check_delivery(
    output: Output, hashes: list[str] | None, request: Path | None, out: str | None, to: str | None
) -> None:
    if bool(hashes) == (request is not None):
        raise BerthError(ExitCode.USAGE, "name requests by their hash, or one with --request FILE")
    if (out is None) == (to is None):
        raise BerthError(
            ExitCode.USAGE,
            "say where the proof goes: --out FILE, --out - for a pipe, or --to a listener; it is a secret for"
            " 15 minutes",
        )
    if out == "-" and output.answers_to_terminal():
        raise BerthError(ExitCode.USAGE, "a proof is not shown on a terminal: pipe it on, or use --out FILE")


def _found(at: Counter, hashes: Sequence[str]) -> list[ApprovalRequest]:
    from berth.orders.approval_book import find

    return list({one.hash: one for one in (find(at.journal, text) for text in hashes)}.values())


def _read_request(file: Path) -> ApprovalRequest:
    """A request that came as a document (`berth approvals show HASH --json`)."""
    import json

    from berth.orders.approvals import request_from
    from berth.terms.clock import SystemClock

    try:
        with file.open("rb") as stream:
            value = json.loads(stream.read(_LARGEST_REQUEST))
        if isinstance(value, dict) and "request" in value:
            value = value["request"]
        if not isinstance(value, dict):
            raise ValueError("it is no JSON object")
        return request_from(value, SystemClock().now())
    except (OSError, ValueError, RecursionError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else plain(problem, 200)
        raise BerthError(ExitCode.BAD_REQUEST, f"{file}: {why}") from None


def _consider(at: Counter, request: ApprovalRequest, *, yes: bool) -> None:
    """Show the request, and stop whoever may not approve it, as far as can be seen here."""
    from berth.orders.approvals import not_approver
    from berth.terms.instants import iso

    identity = at.door.identity
    at.output.talk("\n".join(["asked to approve:", *request_lines(at, request)]))
    at.output.talk(f"  you      {identity.arn}")
    if request.realm != identity.realm:
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"the request is of {plain(request.realm, 100)}, this is {identity.realm}: nothing was signed",
        )
    if at.door.clock.now() >= request.expires_at:
        raise BerthError(ExitCode.DECISION_NEEDED, f"the request ended at {iso(request.expires_at)}")
    rule = at.gate.rules.approval if at.gate.rules is not None else None
    approvers = rule.approvers if rule is not None else (_anybody(identity.arn),)
    stops = not_approver(identity.arn, approvers, (request.requester,))
    if stops:
        raise BerthError(ExitCode.CREDENTIALS, f"nothing was signed: {stops}")
    if not yes and not at.output.ask(f"Approve {request.amount} for order {request.key}?"):
        raise BerthError(ExitCode.DECISION_NEEDED, "not confirmed: nothing was signed")


def _anybody(arn: str) -> str:
    """Without rules here, whoever verifies the proof decides who may approve."""
    from berth.orders.approvals import principal

    return principal(arn) or ""


def _signed(at: Counter, request: ApprovalRequest) -> Proof:
    from berth.aws.proofs import make_proof

    return make_proof(at.door, request.hash, request.header)


def _deliver(at: Counter, proofs: Sequence[Proof], out: str | None, to: str | None) -> None:
    if to is not None:
        from berth.cli.approvals_wire import hand_over

        for proof in proofs:
            at.output.talk(plain(hand_over(to, proof.text()), 300))
        return
    text = "".join(f"{proof.text()}\n" for proof in proofs)
    if out == "-":
        at.output.answer(text.rstrip("\n"))
        return
    assert out is not None
    _write_secret(Path(out), text)
    at.output.talk(
        f"the proof is in {plain(out, 200)}, readable by you alone; it proves something for 15 minutes.\n"
        "next: whoever buys types their command again with --proof FILE, or berth approvals take FILE"
    )


def _write_secret(file: Path, text: str) -> None:
    """Write a new file with mode 0600. Raises BerthError where there is one."""
    try:
        opened = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as problem:
        raise BerthError(
            ExitCode.BAD_REQUEST, f"{plain(str(file), 200)} cannot be written: {problem.strerror}"
        ) from None
