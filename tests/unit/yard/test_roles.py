"""Roles in a yard: who may assume one, for how long, and what their sessions may do."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.terms.ids import SeededIds
from berth.yard.errors import ServiceError
from berth.yard.identity.accounts import Account, AssumedRole, add_user
from berth.yard.identity.authorisation import authorise, caller_arn, principal_arn
from berth.yard.identity.policies import PolicyRefused
from berth.yard.identity.roles import Role, RoleRefused, may_assume, named_in, put_role, roles
from berth.yard.identity.sessions import SESSION_PREFIX, begin_session, key_of_session

from .bench import Bench

OWN, OTHER = "111122223333", "444455556666"
NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
KEY = b"of this yard"


def policy(effect: str, action: str, resource: str = "*") -> str:
    """A document of one statement."""
    statement = {"Effect": effect, "Action": action, "Resource": resource}
    return json.dumps({"Version": "2012-10-17", "Statement": statement})


def role(*trusted: str, account: str = OTHER, **more: Any) -> Role:
    """A role `buyer` that trusts these."""
    return Role("AROA" + "A" * 17, account, "gpu-b", "buyer", trusted, **more)


def account_of(account_id: str) -> str:
    """The ARN that stands for an account."""
    return f"arn:aws:iam::{account_id}:root"


def assumed(wanted: Role, caller: Account, external_id: str = "") -> bool:
    """Whether `caller` may assume the role."""
    arns = [caller_arn(caller, "us-east-1"), principal_arn(caller, "us-east-1")]
    return may_assume(wanted, caller, arns, external_id, arn=wanted.arn(), context={})


ADA = Account(OWN, "me", further_user="ada")
ADA_ARN = f"arn:aws:iam::{OWN}:user/ada"


@pytest.mark.parametrize(
    ("trusted", "theirs", "own_policy", "allowed"),
    [
        (account_of(OWN), OTHER, "", True),
        (account_of(OTHER), OTHER, "", False),
        (ADA_ARN, OTHER, "", True),
        (f"arn:aws:iam::{OWN}:user/eve", OTHER, "", False),
        # Across accounts the caller's own policy must allow it too.
        (ADA_ARN, OTHER, policy("Allow", "ec2:*"), False),
        (ADA_ARN, OTHER, policy("Allow", "sts:AssumeRole"), True),
        (ADA_ARN, OTHER, policy("Allow", "sts:AssumeRole", f"arn:aws:iam::{OTHER}:role/else"), False),
        # Within one, a role that names the caller asks for no policy, and one that names the account does.
        (ADA_ARN, OWN, policy("Allow", "ec2:*"), True),
        (account_of(OWN), OWN, policy("Allow", "ec2:*"), False),
        (ADA_ARN, OWN, policy("Deny", "sts:*"), False),
    ],
)
def test_trust_and_own_right_are_both_asked(
    trusted: str, theirs: str, own_policy: str, allowed: bool
) -> None:
    """As IAM's policy evaluation has it for roles of the same and of another account."""
    caller = Account(OWN, "me", own_policy, "ada")
    assert assumed(role(trusted, account=theirs), caller) is allowed


def test_an_external_id_must_be_known_where_one_is_asked_for() -> None:
    """The very same; one that nobody asked for does no harm."""
    asked = role(account_of(OWN), external_id="xyz-1")
    assert assumed(asked, ADA, "xyz-1")
    assert not assumed(asked, ADA)
    assert not assumed(asked, ADA, "xyz-2")
    assert assumed(role(account_of(OWN)), ADA, "xyz-1")


def test_a_session_is_trusted_by_its_role_or_by_its_own_name() -> None:
    """Chaining: the trust may name the role, one session of it, or its account."""
    caller = Account(OWN, "me", as_role=AssumedRole("first", "AROA" + "B" * 17, "ada"))
    for arn, allowed in (
        (f"arn:aws:iam::{OWN}:role/first", True),
        (f"arn:aws:sts::{OWN}:assumed-role/first/ada", True),
        (f"arn:aws:sts::{OWN}:assumed-role/first/eve", False),
        (account_of(OWN), True),
        (ADA_ARN, False),
    ):
        assert assumed(role(arn), caller) is allowed, arn


def test_a_session_does_what_role_and_session_both_allow() -> None:
    """A session's own policy only takes away."""
    taken = AssumedRole("buyer", "AROA" + "A" * 17, "ada", policy("Allow", "ec2:Describe*"))
    account = Account(OTHER, "gpu-b", policy("Allow", "ec2:*"), as_role=taken)
    authorise(account, "ec2", "DescribeInstances", {})
    for operation in ("RunInstances", "TerminateInstances"):
        with pytest.raises(ServiceError, match="UnauthorizedOperation"):
            authorise(account, "ec2", operation, {})
    with pytest.raises(ServiceError, match="assumed-role/buyer/ada is not authorized"):
        authorise(account, "sagemaker", "ListTrainingPlans", {})


# -- sessions --------------------------------------------------------------------------------------------
def test_a_session_is_read_back_by_the_yard_that_made_it() -> None:
    """Who, until when, with which secret: from the token and the yard's key alone."""
    wanted = role(ADA_ARN)
    made = begin_session(KEY, wanted, "ada", now=NOW, span=timedelta(hours=1), policy="", ids=SeededIds(1))
    found = key_of_session(KEY, made.key.access_key_id, made.token, {wanted.key: wanted})
    assert found == made.key
    assert made.key.access_key_id.startswith(SESSION_PREFIX)
    assert made.until == NOW + timedelta(hours=1)
    assert len(made.key.secret) == 40
    assert made.token not in repr(made)
    assert made.key.secret not in repr(made)
    assert made.key.secret not in base64.urlsafe_b64decode(made.token.partition(".")[0]).decode()


def test_a_session_of_another_yard_or_of_a_role_that_is_gone_is_none() -> None:
    """Another yard's key, another key id, no role, another role of that name: not a session."""
    wanted = role(ADA_ARN)
    known = {wanted.key: wanted}
    made = begin_session(KEY, wanted, "ada", now=NOW, span=timedelta(hours=1), policy="", ids=SeededIds(1))
    key_id, token = made.key.access_key_id, made.token
    assert key_of_session(b"of another", key_id, token, known) is None
    assert key_of_session(KEY, key_id + "0", token, known) is None
    assert key_of_session(KEY, key_id, token, {}) is None
    other = Role("AROA" + "C" * 17, OTHER, "gpu-b", "buyer", (ADA_ARN,))
    assert key_of_session(KEY, key_id, token, {other.key: other}) is None


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=300), st.integers(0, 400), st.characters())
def test_a_token_that_was_touched_is_none(noise: str, where: int, letter: str) -> None:
    """Any other text, and the token with one letter changed."""
    wanted = role(ADA_ARN)
    known = {wanted.key: wanted}
    made = begin_session(KEY, wanted, "ada", now=NOW, span=timedelta(hours=1), policy="", ids=SeededIds(1))
    at = where % len(made.token)
    for token in (noise, made.token[:at] + letter + made.token[at + 1 :]):
        found = key_of_session(KEY, made.key.access_key_id, token, known)
        assert (found is not None) is (token == made.token)


# -- a whole yard ----------------------------------------------------------------------------------------
@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A yard."""
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def given_role(bench: Bench, *, trusted: str = "", **more: Any) -> Role:
    """The role `buyer` of a further account `gpu-b`; it trusts the first account unless told otherwise."""
    if not bench.rows("SELECT 1 FROM accounts WHERE name = 'gpu-b'"):
        bench.add_account("gpu-b")
    wanted = Role("", "", "", "buyer", (trusted or account_of(bench.account.account_id),), **more)
    made: Role = bench.do(lambda tx: put_role(tx, "gpu-b", wanted))
    return made


def assume(bench: Bench, wanted: Role, **params: Any) -> Any:
    """AssumeRole by the first account."""
    asked = {"RoleArn": wanted.arn(), "RoleSessionName": "ada", **params}
    account = asked.pop("account", None)
    return bench.call("AssumeRole", service="sts", account=account, **asked)


def test_a_role_that_is_put_again_keeps_its_id(bench: Bench) -> None:
    """Trust, rights and bounds are the new ones; sessions that were begun go on."""
    first = given_role(bench)
    again = given_role(bench, external_id="xyz", max_session=timedelta(hours=12))
    assert again.role_id == first.role_id
    assert bench.do(roles) == {again.key: again}
    with pytest.raises(ServiceError, match="AccessDenied"):
        assume(bench, again)
    assert assume(bench, again, ExternalId="xyz", DurationSeconds=43_200)["Credentials"]


def test_the_answer_tells_whose_session_it_is(bench: Bench) -> None:
    """ARN and id of the session, and the policy's share of what fits in."""
    wanted = given_role(bench)
    answer = assume(bench, wanted, Policy=policy("Allow", "ec2:*"))
    assert answer["AssumedRoleUser"] == {
        "AssumedRoleId": f"{wanted.role_id}:ada",
        "Arn": f"arn:aws:sts::{wanted.account_id}:assumed-role/buyer/ada",
    }
    assert 0 < answer["PackedPolicySize"] < 10
    keys = answer["Credentials"]
    found = key_of_session(bench.yard.session_key, keys["AccessKeyId"], keys["SessionToken"], bench.do(roles))
    assert found is not None
    who = bench.call("GetCallerIdentity", service="sts", account=found.account)
    assert who == {
        "Account": wanted.account_id,
        "UserId": f"{wanted.role_id}:ada",
        "Arn": f"arn:aws:sts::{wanted.account_id}:assumed-role/buyer/ada",
    }


def test_what_cannot_be_is_refused_in_aws_words(bench: Bench) -> None:
    """Sessions too long, chained ones over an hour, policies that are none, members that nobody serves."""
    wanted = given_role(bench)
    chained = Account(
        bench.account.account_id, bench.account.name, as_role=AssumedRole("first", "AROA1", "ada")
    )
    for refused, params in (
        ("ValidationError: The requested DurationSeconds exceeds the MaxSession", {"DurationSeconds": 3601}),
        ("1 hour session limit for roles assumed by role", {"DurationSeconds": 3601, "account": chained}),
        ("MalformedPolicyDocument", {"Policy": "{"}),
        ("PackedPolicyTooLarge", {"Policy": policy("Allow", "ec2:" + "x" * 2048)}),
        ("SourceIdentity is not served", {"SourceIdentity": "ada"}),
        (r"AccessDenied: User: arn:aws:iam::\d+:user/default is not auth", {"RoleArn": wanted.arn() + "s"}),
        ("AccessDenied", {"RoleArn": wanted.arn("aws-cn")}),
        ("AccessDenied", {"RoleArn": "arn:aws:iam::no-such-thing"}),
    ):
        with pytest.raises(ServiceError, match=refused):
            assume(bench, wanted, **params)
    assert assume(bench, wanted, account=chained, DurationSeconds=3600)["Credentials"]


def test_iam_simulates_a_role(bench: Bench) -> None:
    """By the role's ARN, for whoever is in its account: a user, and a session of the role itself."""
    wanted = given_role(bench, policy=policy("Allow", "ec2:*"))
    user = bench.do(lambda tx: add_user(tx, "gpu-b", "eve")).account
    session = Account(wanted.account_id, "gpu-b", wanted.policy, as_role=AssumedRole("buyer", "A", "ada"))
    for caller in (user, session):
        answer = bench.call(
            "SimulatePrincipalPolicy", service="iam", account=caller, PolicySourceArn=wanted.arn(),
            ActionNames=["ec2:RunInstances", "sagemaker:CreateModel"],
        )  # fmt: skip
        said = [one["EvalDecision"] for one in answer["EvaluationResults"]]
        assert said == ["allowed", "implicitDeny"]
    with pytest.raises(ServiceError, match="NoSuchEntity"):
        bench.call(
            "SimulatePrincipalPolicy", service="iam", PolicySourceArn=wanted.arn(), ActionNames=["ec2:X"]
        )


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"name": "a b"}, "name"),
        ({"trusted": ()}, "trusts 1 to 20"),
        ({"trusted": ("arn:aws:iam::1:root",)}, "cannot be trusted"),
        ({"trusted": ("*",)}, "cannot be trusted"),
        ({"external_id": "x"}, "external id"),
        ({"max_session": timedelta(minutes=59)}, "between 1h and 12h"),
        ({"max_session": timedelta(hours=13)}, "between 1h and 12h"),
        ({"policy": "{"}, "JSON"),
    ],
)
def test_a_role_that_could_not_be_is_refused(bench: Bench, changed: dict[str, Any], why: str) -> None:
    """Nothing is stored of it."""
    fine: dict[str, Any] = {"name": "buyer", "trusted": (account_of(OWN),)}
    given = {**fine, **changed}
    with pytest.raises((RoleRefused, PolicyRefused), match=why):
        bench.do(lambda tx: put_role(tx, "default", Role("", "", "", **given)))
    assert bench.do(roles) == {}


def test_only_the_arn_of_a_role_names_one() -> None:
    """No path, no user, no session."""
    assert named_in(f"arn:aws:iam::{OWN}:role/buyer") == (OWN, "buyer")
    for text in (f"arn:aws:iam::{OWN}:user/buyer", f"arn:aws:iam::{OWN}:role/a/buyer", "buyer", ""):
        assert named_in(text) is None
