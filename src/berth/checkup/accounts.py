"""The accounts that a need names: whether they open, and where one does not, what is missing. Pure.

STS answers alike where a role is not there, does not trust the caller, or the caller may not ask for it; IAM
tells what the caller may, and the rest follows (IAM user guide, "Troubleshoot IAM roles", read 2026-11).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from berth.aws.identity import Identity
from berth.checkup.findings import Finding, State, Topic
from berth.checkup.rights import Say
from berth.planner.need_accounts import NeedAccount
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.text import plain


@dataclass(frozen=True, slots=True)
class AccountLook:
    """One account of a need, as it was tried. `identity` None: it did not open, and `trouble` says why.

    `may_assume` is what the caller's own policies say of assuming its role, which is asked only then.
    """

    named: NeedAccount
    identity: Identity | None = None
    trouble: BerthError | None = None
    may_assume: Say = Say.NOT_ASKED


def account_finding(look: AccountLook, caller: Identity) -> Finding:
    """The line about one account."""
    what = f"account {replace(caller, account=look.named.id).account_shown}"
    facts = {"account": look.named.id, "role": look.named.role, "profile": look.named.profile}
    if look.identity is not None:
        said = f"opens as {look.identity.role} ({plain(look.identity.arn, 200)})"
        return Finding(Topic.IDENTITY, State.OK, what, said, None, {**facts, "arn": look.identity.arn})
    trouble = look.trouble or BerthError(ExitCode.INCOMPLETE, "interrupted before it answered")
    missing = trouble.exit_code is ExitCode.CREDENTIALS
    said, todo = plain(trouble.message.splitlines()[0], 400), trouble.next_step
    if missing and look.named.role is not None and "AssumeRole" in said:
        more, todo = _which(look, caller)
        said = f"{said}; {more}"
    state = State.MISSING if missing else State.UNKNOWN
    return Finding(Topic.IDENTITY, state, what, said, todo, {**facts, "arn": None})


def _which(look: AccountLook, caller: Identity) -> tuple[str, str]:
    """What is missing for a role, and what to do about it."""
    role, arn = look.named.role, plain(caller.arn, 200)
    external = (
        "the external id that it asks for" if look.named.external_id else "an external id that it may ask for"
    )
    trust = f"let the trust policy of {role} name {arn}, and compare {external} with external_id in the need"
    right = f"allow {arn} sts:AssumeRole on it, as berth policy read --assume-role {role} prints"
    if look.may_assume is Say.ALLOWED:
        return (
            "the caller's own policies allow it, so the role does not trust the caller, or is not there",
            trust,
        )
    if look.may_assume is Say.DENIED:
        return "the caller's own policies do not allow sts:AssumeRole on it", right
    return "IAM could not be asked which side refuses", f"{right}; and {trust}"
