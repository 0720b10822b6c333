"""Approval by another identity: what is asked, what it is bound to, and who counts as another. Pure.

A request is bound to the order, the offer and the amount by its hash. The approver proves who they are to AWS
STS, with that hash and the amount signed into the proof (`aws.proofs`); nothing else approves anything.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from berth.orders.matching import LATER_START
from berth.orders.order import OrderKey
from berth.planner.offers import Offer
from berth.terms.instants import iso, parse_instant
from berth.terms.money import Money
from berth.terms.text import plain

SCHEMA = "berth.approval-request/1"
_MEMBERS = frozenset(
    {"schema", "realm", "account", "need", "sequence", "what", "amount", "currency", "requester", "expires"}
)


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What somebody else is asked to agree to.

    `realm` is `aws` or a yard's address. `what` says what is bought, as plain JSON values
    (`what_is_bought`). `requester` is the ARN of whoever asks. It holds until `expires_at`; `asked_at` is no
    part of the hash.
    """

    realm: str
    key: OrderKey
    what: Mapping[str, Any]
    amount: Money
    requester: str
    expires_at: datetime
    asked_at: datetime

    def document(self) -> dict[str, Any]:
        """The request as plain values: all that its hash is over."""
        return {
            "schema": SCHEMA,
            "realm": self.realm,
            "account": self.key.account,
            "need": self.key.need,
            "sequence": self.key.sequence,
            **({"piece": self.key.piece} if self.key.piece else {}),
            "what": dict(self.what),
            "amount": f"{self.amount.amount:f}",
            "currency": self.amount.currency,
            "requester": self.requester,
            "expires": iso(self.expires_at),
        }

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical document (UTF-8, members sorted, no white space), 64 hex digits."""
        return hashlib.sha256(canonical(self.document()).encode()).hexdigest()

    @property
    def header(self) -> str:
        """The value of `x-berth-approval` that the approver signs: hash, amount, currency."""
        return f"{self.hash} {self.amount.amount:f} {self.amount.currency}"


@dataclass(frozen=True, slots=True)
class GivenApproval:
    """An approval that STS has borne out: who, when, of which request, how much. Never the proof itself."""

    hash: str
    approver: str
    at: datetime
    amount: Money


def canonical(document: Mapping[str, Any]) -> str:
    """The one spelling of a document that a hash is made of."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def request_from(document: Mapping[str, Any], asked_at: datetime) -> ApprovalRequest:
    """The request that `document` wrote. Raises ValueError for a member too many or too few, or a value that
    is none: a document that carries its own approval is no request."""
    strange = sorted(str(key) for key in document if key not in _MEMBERS | {"piece"})
    lacking = sorted(_MEMBERS - set(document))
    if strange or lacking or document["schema"] != SCHEMA or not isinstance(document["what"], Mapping):
        words = [f"unknown: {', '.join(strange)}"] if strange else []
        words += [f"missing: {', '.join(lacking)}"] if lacking else []
        raise ValueError(plain(f"not a request for approval ({SCHEMA}) {'; '.join(words)}".strip(), 300))
    texts = ("realm", "account", "need", "amount", "currency", "requester", "expires")
    numbers = (document["sequence"], document.get("piece", 0))
    if not all(isinstance(document[name], str) for name in texts) or not all(
        isinstance(number, int) for number in numbers
    ):
        raise ValueError(f"not a request for approval ({SCHEMA}): a value of the wrong kind")
    return ApprovalRequest(
        realm=document["realm"],
        key=OrderKey(document["account"], document["need"], *numbers),
        what=dict(document["what"]),
        amount=Money.parse(document["amount"], document["currency"]),
        requester=document["requester"],
        expires_at=parse_instant(document["expires"]),
        asked_at=asked_at,
    )


def what_is_bought(offer: Offer) -> dict[str, Any]:
    """What an offer buys: way, place, type, count, target, and each part's window and zone."""
    return {
        "kind": "purchase",
        "way": offer.way.value,
        "region": offer.region,
        "instance_type": offer.instance_type,
        "count": offer.count,
        "target": offer.target,
        "platform": offer.platform,
        "starts_at_once": offer.starts_at_once,
        "parts": [
            {
                "start": iso(part.window.start),
                "end": iso(part.window.end),
                "zone": part.zone_id or part.zone_name or "",
                "instance_type": part.instance_type,
                "count": part.count,
            }
            for part in offer.segments
        ],
    }


def not_covered(request: ApprovalRequest, what: Mapping[str, Any], amount: Money, now: datetime) -> str:
    """Why the request does not stand for buying `what` for `amount` now; '' when it does.

    A price that fell is covered, one that rose is not. What starts at once may start 30 minutes later than
    was shown, as with every purchase (`matching`).
    """
    if now >= request.expires_at:
        return f"it ended at {iso(request.expires_at)}"
    if amount.currency != request.amount.currency:
        return f"it is for {request.amount}, and the fee is {amount}"
    if amount > request.amount:
        return f"the price rose: {request.amount} to {amount}"
    if not _same(request.what, what):
        return "it is for another offer"
    return ""


def _same(asked: Mapping[str, Any], fresh: Mapping[str, Any]) -> bool:
    if "pieces" in asked and "pieces" in fresh:
        return _same_pieces(asked, fresh)
    if not asked.get("starts_at_once"):
        return canonical(asked) == canonical(fresh)
    first, again = asked["parts"][0], (fresh.get("parts") or [{}])[0]
    if "start" not in again or parse_instant(again["start"]) > parse_instant(first["start"]) + LATER_START:
        return False
    moved = {**fresh, "parts": [{**again, "start": first["start"]}, *fresh["parts"][1:]]}
    return canonical(asked) == canonical(moved)


def _same_pieces(asked: Mapping[str, Any], fresh: Mapping[str, Any]) -> bool:
    """Whether two wholes are the same, piece by piece, and the same beside them."""
    if len(asked["pieces"]) != len(fresh["pieces"]):
        return False
    pairs = zip(asked["pieces"], fresh["pieces"], strict=True)
    beside = ({key: value for key, value in one.items() if key != "pieces"} for one in (asked, fresh))
    return all(_same(one, other) for one, other in pairs) and len({canonical(one) for one in beside}) == 1


def principal(arn: str) -> str | None:
    """The IAM identity behind a caller's ARN: the role of a session, a user, or the account's root.

    Two sessions of one role are one identity: whoever may assume the role chooses the session's name. A role
    is named without its path, which STS does not tell. None for an identity that somebody else can make up
    at will (federated users), or that is not known.
    """
    found = re.fullmatch(r"(arn:aws[a-z-]*):(iam|sts)::(\d{12}):(\w[\w-]*)(?:/(.+))?", arn, re.ASCII)
    if found is None:
        return None
    partition, service, account, kind, rest = found.groups()
    if service == "sts":
        role = (rest or "").partition("/")[0]
        return f"{partition}:iam::{account}:role/{role}" if kind == "assumed-role" and role else None
    if kind == "root" and rest is None:
        return f"{partition}:iam::{account}:root"
    if kind in {"user", "role"} and rest:
        name = rest if kind == "user" else rest.rpartition("/")[2]
        return f"{partition}:iam::{account}:{kind}/{name}"
    return None


def is_same_identity(one: str, other: str) -> bool:
    """Whether two callers' ARNs are of one identity; what is not known counts as the same."""
    first, second = principal(one), principal(other)
    return first is None or second is None or first == second


def is_among(arn: str, patterns: Iterable[str]) -> bool:
    """Whether the caller is one of the identities that the rules name (`*`: any characters)."""
    whose = principal(arn)
    return whose is not None and any(_matches(whose, pattern) for pattern in patterns)


def _matches(whose: str, pattern: str) -> bool:
    head, slash, rest = pattern.partition("/")
    if slash and head.endswith(":role"):
        pattern = f"{head}/{rest.rpartition('/')[2]}"
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), whose, re.ASCII) is not None


def not_approver(arn: str, approvers: Iterable[str], others: Iterable[str]) -> str:
    """Why this caller may not approve; '' when they may. `others`: ARNs of who asks and who pays."""
    if principal(arn) is None:
        return f"{arn} is no user or role: such an identity can be made up by whoever asks"
    for other in others:
        if is_same_identity(arn, other):
            return (
                f"{arn} is the identity that asks or pays ({other}); two sessions of one role are one"
                " identity"
            )
    if not is_among(arn, approvers):
        return f"{arn} is not among the approvers that the rules name"
    return ""
