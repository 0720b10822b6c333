"""The gate: the rules of spending, asked before every paid call, in the write that commits its intent.

`check_spending` is the one function for all that spends: blocks and plans (`Journal.intend`), their
extensions, and what comes. Called before the question it says early what would be refused; called inside of
the write it is what two processes cannot both get past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from berth.orders.approvals import (
    ApprovalRequest,
    GivenApproval,
    is_among,
    not_approver,
    not_covered,
    what_is_bought,
)
from berth.orders.order import Approval, Order, OrderKey
from berth.orders.pieces.rows import Agreed
from berth.orders.rows import tags_of_context
from berth.orders.spending import (
    ApprovalRule,
    Booked,
    Rules,
    Spend,
    approval_needed,
    complaints,
    looks_back_to,
)
from berth.planner.offers import Offer
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode


class Ledger(Protocol):
    """What a journal knows of money in its realm (`spending_rows.JournalLedger`)."""

    def booked(
        self, since: datetime | None, order: str, about: frozenset[str] = frozenset()
    ) -> tuple[Booked, ...]:
        """What was spent or may have been at or after `since` (None: ever), and all of the order `order`.

        With pieces that somebody is about to buy, but for those whose marks are in `about`.
        """
        ...

    def whole_of(self, order: str) -> str:
        """The mark of the order whose money it is: of the whole for a piece's, else the same."""
        ...

    def agreed(self, key: OrderKey) -> Agreed | None:
        """What a piece is bought under; None when the journal knows of no such whole."""
        ...

    def requests(self, key: OrderKey) -> tuple[ApprovalRequest, ...]:
        """The requests for approval of the order, the latest first."""
        ...

    def given(self, request: ApprovalRequest) -> tuple[GivenApproval, ...]:
        """The approvals of the request."""
        ...


@dataclass(frozen=True, slots=True)
class Gate:
    """The rules that hold (None: nobody wrote any), the ARN of who asks, and of whose credentials pay."""

    rules: Rules | None = None
    caller: str = ""
    payer: str = ""

    @property
    def paid_by(self) -> str:
        """For the history: whose credentials pay, where they are not the caller's; '' where they are."""
        return f", paid by {self.payer}" if self.payer not in {"", self.caller} else ""


OPEN = Gate()
"""No rules: nothing is asked."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One paid call that is about to be intended: for which order, what it spends, and on what.

    `what` are plain JSON values that an approval is bound to.
    """

    key: OrderKey
    spend: Spend
    what: Mapping[str, Any]


class NotApproved(BerthError):
    """Somebody else has to agree first, and has not; `proposal` is what they have to agree to."""

    def __init__(self, proposal: Proposal, reason: str, missing: str) -> None:
        super().__init__(ExitCode.DECISION_NEEDED, f"{reason}; {missing}: nothing is bought")
        self.proposal = proposal
        self.reason = reason


def check_spending(gate: Gate, ledger: Ledger, proposal: Proposal, now: datetime) -> None:
    """Return when every rule lets the proposal pass.

    Call it inside the write that commits the intent, with a ledger of the same write. Raises BerthError
    (decision needed) naming every rule in the way, NotApproved where only an approval lacks.
    """
    rules = gate.rules
    if rules is None:
        return
    spend = replace(proposal.spend, order=ledger.whole_of(proposal.spend.order))
    about = frozenset({proposal.key.mark})
    booked = (
        ledger.booked(looks_back_to(rules, now), spend.order, about) if rules.caps and spend.amount else ()
    )
    _refuse(rules, [*complaints(rules, spend, booked, now), *_payer(rules, gate, spend)])
    if rules.approval is not None and spend.amount is not None:
        _check_approval(rules.approval, gate, ledger, _approved_as(ledger, proposal), now)


@dataclass(frozen=True, slots=True)
class WholeProposal:
    """Several paid calls that are about to be agreed to at once, as pieces of the order `key`.

    `pieces` are those that are still to be paid, each with the gate of whoever pays it; `missing` is what
    they cost, `total` what all pieces of the order do, `what` says them all.
    """

    key: OrderKey
    pieces: Sequence[tuple[Gate, Proposal]]
    missing: Money
    total: Money
    what: Mapping[str, Any]


def check_whole(ledger: Ledger, whole: WholeProposal, now: datetime) -> None:
    """Return when every rule lets all pieces pass together: what each is, and the sum of what they cost.

    Call it inside the write that makes the order, and `check_spending` for each piece in that of its intent.
    Raises as `check_spending` does.
    """
    gate, first = whole.pieces[0]
    rules = gate.rules
    if rules is None:
        return
    together = replace(first.spend, order=whole.key.mark, amount=whole.missing)
    about = frozenset(proposal.key.mark for _, proposal in whole.pieces)
    booked = ledger.booked(looks_back_to(rules, now), whole.key.mark, about) if rules.caps else ()
    broken = [
        sentence
        for paying, proposal in whole.pieces
        for sentence in (
            *complaints(rules, replace(proposal.spend, amount=None), (), now),
            *_payer(rules, paying, proposal.spend),
        )
    ]
    _refuse(rules, list(dict.fromkeys([*broken, *complaints(rules, together, booked, now)])))
    if rules.approval is not None:
        agreed = Proposal(whole.key, replace(together, amount=whole.total), whole.what)
        _check_approval(rules.approval, gate, ledger, agreed, now)


def _approved_as(ledger: Ledger, proposal: Proposal) -> Proposal:
    """What an approval has to be of: a piece is approved with all others of its order, at what all cost."""
    under = ledger.agreed(proposal.key) if proposal.what.get("kind") == "purchase" else None
    if under is None:
        return proposal
    return Proposal(under.whole, replace(proposal.spend, amount=under.total), under.what)


def _refuse(rules: Rules, broken: list[str]) -> None:
    """Raise BerthError with every rule in the way; nothing when none is."""
    if broken:
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            "\n".join([f"the rules of spending ({rules.source}) do not allow it:",
                       *(f"  {sentence}" for sentence in broken)]),
            "change what is asked for, or have the rules changed by whoever keeps them",
        )  # fmt: skip


def _payer(rules: Rules, gate: Gate, spend: Spend) -> list[str]:
    payers = rules.allow.payers
    if not payers or spend.amount is None or is_among(gate.payer, payers):
        return []
    return [f"{gate.payer or 'nobody known'} may not pay; allowed: {', '.join(payers)} (--buyer-profile)"]


def _check_approval(
    rule: ApprovalRule, gate: Gate, ledger: Ledger, proposal: Proposal, now: datetime
) -> None:
    amount = proposal.spend.amount
    reason = approval_needed(rule, amount)
    if reason is None or amount is None:
        return
    missing = "nobody has approved it"
    for request in ledger.requests(proposal.key):
        if request.what.get("kind") != proposal.what.get("kind"):
            continue  # an order's purchase and its extensions are approved one by one
        given = ledger.given(request)
        why_not = not_covered(request, proposal.what, amount, now)
        if why_not:
            missing = f"the approval of {request.amount} does not hold, since {why_not}" if given else missing
            continue
        others = (request.requester, gate.caller, gate.payer)
        stops = [not_approver(one.approver, rule.approvers, others) for one in given]
        if "" in stops:
            return
        missing = stops[0] if stops else missing
    raise NotApproved(proposal, reason, missing)


def proposal_of(key: OrderKey, approval: Approval) -> Proposal:
    """The proposal of buying an offer as order `key`; its tags are those of the need."""
    offer = approval.offer
    tags = tags_of_context(approval.context)
    return Proposal(key, spend_of(key, offer, offer.fee, tags), {**what_is_bought(offer), "tags": tags})


def spend_of(key: OrderKey, offer: Offer, amount: Money | None, tags: Mapping[str, str]) -> Spend:
    """What buying, extending or using the offer of order `key` spends (`amount` None: nothing more)."""
    return Spend(
        order=key.mark,
        account=key.account,
        region=offer.region,
        zone_ids=offer.zones,
        instance_type=offer.instance_type,
        way=offer.way.value,
        amount=amount,
        tags=tags,
    )


def use_of(order: Order) -> Proposal:
    """Running something in what the order has paid for: nothing more is spent; allow-lists and tags hold."""
    spend = spend_of(order.key, order.offer, None, tags_of_context(order.context))
    return Proposal(order.key, spend, {"kind": "use", "order": order.key.mark})
