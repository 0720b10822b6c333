"""What the verbs that spend share about rules and approvals: checked early, asked for, taken."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from berth.cli.desks import Counter
from berth.cli.output import WIDTH
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.text import plain

if TYPE_CHECKING:
    from berth.aws.proofs import Proof
    from berth.orders.approvals import ApprovalRequest
    from berth.orders.desk import Desk
    from berth.orders.order import Approval, Order, OrderKey
    from berth.orders.spending_gate import NotApproved
    from berth.planner.plan import Plan

SCHEMA = "berth.approval/1"
_TAG_KEY, _TAG_VALUE = 128, 256  # characters (EC2 User Guide, tag restrictions)
_MOST_TAGS = 40  # EC2 takes 50 a resource, and the order's own are among them


def tagged(plan: Plan, tags: list[str] | None) -> Plan:
    """The plan with tags typed as KEY=VALUE over those of its need. Raises BerthError (usage)."""
    if not tags:
        return plan
    made = {**dict(plan.need.tags), **dict(_tag(text) for text in tags)}
    if len(made) > _MOST_TAGS:
        raise BerthError(ExitCode.USAGE, f"--tag: {len(made)} tags, and there is room for {_MOST_TAGS}")
    return replace(plan, need=replace(plan.need, tags=tuple(sorted(made.items()))))


def _tag(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key or not value or len(key) > _TAG_KEY or len(value) > _TAG_VALUE:
        raise BerthError(ExitCode.USAGE, f"--tag: {text[:80]!r} is no tag; write it like team=research")
    if key.lower().startswith(("aws:", "berth:")):
        raise BerthError(ExitCode.USAGE, f"--tag: {key!r} begins like AWS's own or berth's own tags")
    return key, value


def check_early(at: Counter, desk: Desk, key: OrderKey, approval: Approval, with_proof: str) -> None:
    """Say before the question what a rule would refuse.

    The rules are asked again with the intent. `with_proof` as for `asked_for`. Raises BerthError; where only
    an approval lacks, the offer is searched anew and the approval is asked for.
    """
    from berth.orders.purchase import fresh_offer
    from berth.orders.spending_gate import NotApproved, check_spending, proposal_of

    if at.gate.rules is None:
        return
    ledger = at.journal.ledger()
    try:
        check_spending(at.gate, ledger, proposal_of(key, approval), at.door.clock.now())
    except NotApproved:
        offer, _ = fresh_offer(desk, approval.offer)
        now = at.door.clock.now()
        try:
            check_spending(at.gate, ledger, proposal_of(key, replace(approval, offer=offer)), now)
        except NotApproved as missing:
            raise asked_for(at, missing, with_proof) from None


def check_use(at: Counter, order: Order) -> None:
    """Whether the rules let something run in what the order has paid for.

    Allow-lists hold. A required tag that lacks is a warning: what is paid does not stand idle for want of it.
    Raises BerthError (decision needed).
    """
    from berth.orders.spending_gate import check_spending, use_of

    rules, use = at.gate.rules, use_of(order)
    if rules is None:
        return
    gate = replace(at.gate, rules=replace(rules, tags=()))
    check_spending(gate, at.journal.ledger(), use, at.door.clock.now())
    for complaint in filter(None, (rule.complaint(use.spend.tags) for rule in rules.tags)):
        at.warn(f"order {order.key}: {complaint} ({rules.source})")


SAME = "run the same command with --proof proof.json"
"""How a verb that plans anew, or names no choice, goes on once somebody has approved."""


def buying(handle: str) -> str:
    """How a choice is bought once somebody has approved; `handle` is `eval#1`."""
    return f"run `berth buy {handle} --proof proof.json`"


def asked_for(at: Counter, missing: NotApproved, with_proof: str) -> BerthError:
    """Ask for the approval that lacks, and how the command ends: a decision is needed, nothing was bought.

    `with_proof` says what is run with the proof: `SAME`, or `buying(HANDLE)`.
    """
    from berth.orders.approval_book import ask

    asked = ask(at.journal, at.gate, missing.proposal, at.door.clock.now())
    request = asked.request
    if asked.alarm:
        at.output.talk(f"ALARM: order {request.key} waits for somebody to approve {request.amount}")
    at.output.talk("\n".join(request_lines(at, request, at.door.payer.arn)))
    at.output.document(request_json(at, request, at.door.payer.arn))
    return BerthError(
        ExitCode.DECISION_NEEDED,
        missing.message,
        f"somebody else runs `berth approve {request.hash[:12]} --out proof.json`; within 15 minutes"
        f" {with_proof}",
    )


def request_lines(at: Counter, request: ApprovalRequest, payer: str | None = None) -> list[str]:
    """A request in words. `payer`: whose credentials pay, where this process would pay."""
    from berth.orders.approval_book import advisory
    from berth.terms.instants import iso

    what = request.what
    pieces = what.get("pieces") or [what]
    things = [line for number, one in enumerate(pieces, 1) for line in _thing_lines(one, number, len(pieces))]
    tags = what.get("tags") or {}
    tagged_with = [f"  tags     {', '.join(f'{key}={value}' for key, value in tags.items())}"] if tags else []
    note = advisory(at.gate.rules, request.requester, payer)
    lines = [
        f"  order    {request.key}, account {request.key.account}",
        *things,
        *tagged_with,
        f"  amount   {request.amount}, taken at once: no refund, no cancelling, no change",
        f"  asks     {request.requester}",
        f"  until    {iso(request.expires_at)}",
        f"  hash     {request.hash}",
        *textwrap.wrap(f"  note     {note}", WIDTH, subsequent_indent="           ", break_on_hyphens=False),
    ]
    return [plain(line, 300) for line in lines]


def _thing_lines(what: Mapping[str, Any], number: int, of: int) -> list[str]:
    """What, where and when of one purchase, or of one piece of several."""
    parts = what.get("parts") or []
    window = f"{parts[0]['start']} to {parts[-1]['end']}" if parts else str(what.get("end", "not said"))
    zones = ", ".join(dict.fromkeys(part["zone"] for part in parts))
    kind = "" if what.get("kind") == "purchase" else f"{what.get('kind')}, "
    thing = f"{what.get('count', '?')} x {what.get('instance_type', '?')}"
    account = f", account {what['account']}" if of > 1 and "account" in what else ""
    return [
        *([f"  piece    {number} of {of}{account}"] if of > 1 else []),
        f"  what     {thing}, {kind}{str(what.get('way', '?')).replace('-', ' ')}",
        f"  where    {what.get('region', '?')}, {zones or 'zone not said'}",
        f"  window   {window}",
    ]


def request_json(at: Counter, request: ApprovalRequest, payer: str | None = None) -> dict[str, Any]:
    """The document of schema `berth.approval/1`: a request, how it stands, and who has approved it."""
    from berth.orders.approval_book import advisory, state_of
    from berth.planner.offers import money_json
    from berth.terms.instants import iso

    given = at.journal.ledger().given(request)
    return {
        "schema": SCHEMA,
        "hash": request.hash,
        "state": state_of(request, given, at.gate.rules, at.door.clock.now()),
        "asked": iso(request.asked_at),
        "request": request.document(),
        "approvals": [
            {"approver": one.approver, "at": iso(one.at), "amount": money_json(one.amount)} for one in given
        ],
        "note": advisory(at.gate.rules, request.requester, payer),
    }


def read_proofs(source: str | None) -> list[Proof]:
    """The proofs in a file, or on stdin (`-`), one a line; none of None. Raises BerthError (bad request)."""
    from berth.aws.proofs import LARGEST, read_proof

    if source is None:
        return []
    most = LARGEST * 8
    try:
        if source == "-":
            text = sys.stdin.read(most)
        else:
            with Path(source).open(encoding="utf-8") as stream:
                text = stream.read(most)
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is not text"
        raise BerthError(ExitCode.BAD_REQUEST, f"the proof {source} cannot be read: {why}") from None
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise BerthError(ExitCode.BAD_REQUEST, f"there is no proof in {source}", "berth approve HASH")
    return [read_proof(line) for line in lines]


def take_proofs(at: Counter, proofs: Sequence[Proof]) -> None:
    """Verify each at STS and keep the approvals. Raises BerthError: it approves nothing.

    One that proves nothing any more, of a request that was approved before, is told and no obstacle: the same
    command typed again after a crash must look what became of its order.
    """
    from berth.orders.approval_book import find

    for one in proofs:
        try:
            take_proof(at, one)
        except BerthError as problem:
            if not at.journal.ledger().given(find(at.journal, one.hash)):
                raise
            at.output.talk(f"the proof is not taken: {problem.message}; its request was approved before")


def take_proof(at: Counter, proof: Proof) -> ApprovalRequest:
    """Verify a proof at STS; keep the approval, never the proof. Raises BerthError: it approves nothing."""
    from berth.aws.proofs import verify_proof
    from berth.orders.approval_book import find, take

    request = find(at.journal, proof.hash)
    proven = verify_proof(at.door, proof, request.header)
    given = take(at.journal, at.gate.rules, request, proven.arn, at.door.clock.now())
    at.output.talk(f"approved: order {request.key}, {given.amount}, by {plain(given.approver, 200)}")
    return request
