"""Accounts of a need: opened, shut, and which side refuses a role."""

from __future__ import annotations

import pytest

from berth.aws.identity import Identity
from berth.checkup.accounts import AccountLook, account_finding
from berth.checkup.findings import State, Topic
from berth.checkup.rights import Say
from berth.planner.need_accounts import NeedAccount
from berth.terms.outcomes import BerthError, ExitCode

from .conftest import ACCOUNT

OTHER = "444455556666"
ROLE = f"arn:aws:iam::{OTHER}:role/buyer"
CALLER = Identity(ACCOUNT, f"arn:aws:iam::{ACCOUNT}:user/ada", ("us-east-1",), None)
NAMED = NeedAccount(OTHER, None, ROLE, "cluster-7")
REFUSED = BerthError(
    ExitCode.CREDENTIALS,
    f"the role {ROLE} could not be assumed: AccessDenied: not authorized to perform: sts:AssumeRole",
    "berth doctor tells which is missing",
)


def test_an_account_that_opens_is_fine() -> None:
    """With whose session it is."""
    session = f"arn:aws:sts::{OTHER}:assumed-role/buyer/berth"
    found = account_finding(AccountLook(NAMED, Identity(OTHER, session, (), None)), CALLER)
    assert (found.topic, found.state, found.what) == (Topic.IDENTITY, State.OK, "account 4444-5555-6666")
    assert found.said == f"opens as role buyer ({session})"
    assert found.facts == {"account": OTHER, "role": ROLE, "profile": None, "arn": session}


@pytest.mark.parametrize(
    ("say", "said", "todo"),
    [
        (Say.ALLOWED, "does not trust the caller", f"trust policy of {ROLE} name {CALLER.arn}"),
        (Say.DENIED, "do not allow sts:AssumeRole on it", f"berth policy read --assume-role {ROLE}"),
        (Say.NOT_ASKED, "could not be asked which side", "the external id that it asks for"),
        (Say.DEPENDS, "could not be asked which side", f"allow {CALLER.arn} sts:AssumeRole"),
    ],
)
def test_a_role_that_is_refused_says_which_side(say: Say, said: str, todo: str) -> None:
    """What IAM tells of the caller's own right decides; without it both are named."""
    found = account_finding(AccountLook(NAMED, None, REFUSED, say), CALLER)
    assert found.state is State.MISSING
    assert said in found.said
    assert found.todo is not None
    assert todo in found.todo
    assert found.facts["arn"] is None


@pytest.mark.parametrize(
    ("named", "trouble", "state"),
    [
        (NAMED, BerthError(ExitCode.INCOMPLETE, "STS did not answer", "try again"), State.UNKNOWN),
        (
            NeedAccount(OTHER, "gpu-b"),
            BerthError(ExitCode.CREDENTIALS, "no login", "try again"),
            State.MISSING,
        ),
        (NAMED, BerthError(ExitCode.CREDENTIALS, "no login", "try again"), State.MISSING),
    ],
)
def test_what_is_no_refusal_of_a_role_is_told_as_it_is(
    named: NeedAccount, trouble: BerthError, state: State
) -> None:
    """Not reached is not known; a login that is missing has its own next step."""
    found = account_finding(AccountLook(named, None, trouble), CALLER)
    assert (found.state, found.said, found.todo) == (state, trouble.message, "try again")


def test_what_was_interrupted_is_not_known() -> None:
    """Nothing opened, and no reason."""
    assert account_finding(AccountLook(NAMED), CALLER).state is State.UNKNOWN
