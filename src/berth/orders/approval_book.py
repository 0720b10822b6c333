"""Requests for approval and approvals, written into the journal. Nothing here can pay or asks a network."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from berth.orders.approvals import (
    ApprovalRequest,
    GivenApproval,
    is_among,
    is_same_identity,
    not_approver,
    not_covered,
)
from berth.orders.journal import Journal
from berth.orders.spending import Rules
from berth.orders.spending_gate import Gate, Proposal
from berth.orders.spending_rows import insert_approval, insert_request
from berth.terms.instants import iso
from berth.terms.outcomes import BerthError, ExitCode

SHORTEST = 8
"""The fewest digits of a hash that a person may type."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that stands. `alarm`: it is new, or dearer than before, so somebody must be told aloud."""

    request: ApprovalRequest
    alarm: bool


def ask(journal: Journal, gate: Gate, proposal: Proposal, now: datetime) -> Asked:
    """The request for the proposal: the one that stands, or a new one. Asked again it makes no second alarm.

    Raises BerthError (bad request) where no rules ask for approvals or nothing is to be paid.
    """
    rules, amount = gate.rules, proposal.spend.amount
    if rules is None or rules.approval is None or amount is None:
        raise BerthError(ExitCode.BAD_REQUEST, "no rules of spending ask for an approval of this")
    wanted = ApprovalRequest(
        realm=journal.realm,
        key=proposal.key,
        what=proposal.what,
        amount=amount,
        requester=gate.caller,
        expires_at=now + rules.approval.valid,
        asked_at=now,
    )
    with journal._commit("approval-asked") as db:
        before = journal.ledger().requests(proposal.key)
        for request in before:
            if request.requester == gate.caller and not not_covered(request, wanted.what, amount, now):
                return Asked(request, alarm=False)
        alarm = not any(_told(request, wanted) for request in before)
        insert_request(db, wanted, alarm)
        journal._event(
            wanted.key,
            now,
            "approval asked",
            f"{wanted.hash[:12]} for {amount} until {iso(wanted.expires_at)}",
        )
        if alarm:
            journal._event(wanted.key, now, "alarm", f"waits for an approval of {amount}")
    return Asked(wanted, alarm)


def _told(before: ApprovalRequest, wanted: ApprovalRequest) -> bool:
    """Whether an earlier request has told of this already: no dearer, and still standing."""
    return (
        before.what.get("kind") == wanted.what.get("kind")
        and before.expires_at > wanted.asked_at
        and before.amount.currency == wanted.amount.currency
        and before.amount >= wanted.amount
    )


def take(
    journal: Journal, rules: Rules | None, request: ApprovalRequest, approver: str, now: datetime
) -> GivenApproval:
    """Keep the approval of `approver` (the ARN that STS told), bound to hash and amount.

    Raises BerthError: the request is over, the approver is not another or not allowed, or no rules say who.
    """
    if now >= request.expires_at:
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"the request for order {request.key} ended at {iso(request.expires_at)}: ask anew",
            f"berth approvals request {request.key.need}#1",
        )
    if rules is None or rules.approval is None:
        raise BerthError(ExitCode.BAD_REQUEST, "no rules of spending say here who may approve")
    stops = not_approver(approver, rules.approval.approvers, (request.requester,))
    if stops:
        raise BerthError(ExitCode.CREDENTIALS, f"this approves nothing: {stops}")
    given = GivenApproval(request.hash, approver, now, request.amount)
    with journal._commit("approval-taken") as db:
        insert_approval(db, journal.realm, given)
        journal._event(
            request.key, now, "approved", f"{request.hash[:12]} for {request.amount} by {approver}"
        )
    return given


def find(journal: Journal, text: str) -> ApprovalRequest:
    """The request of that hash, or of its first digits (8 at least). Raises BerthError (bad request)."""
    typed = text.strip().lower()
    found = [one for one in journal.ledger().requests() if one.hash.startswith(typed)]
    if len(typed) < SHORTEST or not found:
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"no request for approval begins with {text[:64]!r} here"
            f" ({SHORTEST} digits of its hash at least)",
            "berth approvals ls",
        )
    if len(found) > 1:
        raise BerthError(
            ExitCode.BAD_REQUEST, f"{len(found)} requests begin with {text!r}: write more digits"
        )
    return found[0]


def state_of(
    request: ApprovalRequest, given: tuple[GivenApproval, ...], rules: Rules | None, now: datetime
) -> str:
    """How a request stands: `approved`, `open` or `over`."""
    if now >= request.expires_at:
        return "over"
    approvers = rules.approval.approvers if rules is not None and rules.approval is not None else None
    for one in given:
        if approvers is None or not not_approver(one.approver, approvers, (request.requester,)):
            return "approved"
    return "open"


def advisory(rules: Rules | None, requester: str, payer: str | None = None) -> str:
    """Whether the approval binds whoever asked, in a sentence. `payer`: whose credentials pay (None: theirs).

    Berth cannot see what AWS lets somebody do; where the rules leave paying to others than whoever asks, the
    organisation's policy makes that true. Everywhere else whoever asks may pay without Berth.
    """
    payers = rules.allow.payers if rules is not None else ()
    if payers and not is_among(requester, payers) and is_same_identity(requester, payer or requester):
        return (
            f"{requester} is not among those who may pay. It binds where the organisation's policy says the"
            " same: berth policy org --buyer-role ARN"
        )
    return (
        "advisory: these credentials may pay without berth. To make it binding, leave paying to a role of its"
        " own: berth policy org --buyer-role ARN"
    )
