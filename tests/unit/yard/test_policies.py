"""IAM policies in a yard: what they say, what is refused, and SimulatePrincipalPolicy over them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.yard.errors import ServiceError
from berth.yard.identity.accounts import Account
from berth.yard.identity.authorisation import authorise
from berth.yard.identity.policies import Decision, Place, PolicyRefused, evaluate, read_policy

from .bench import Bench

ALLOWED, IMPLICIT, EXPLICIT = "allowed", "implicitDeny", "explicitDeny"
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/p"


def policy(*statements: dict[str, Any]) -> str:
    """A document of these statements."""
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(action: Any, resource: Any = "*", **more: Any) -> dict[str, Any]:
    """One that allows."""
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def deny(action: Any, resource: Any = "*", **more: Any) -> dict[str, Any]:
    """One that denies."""
    return {"Effect": "Deny", "Action": action, "Resource": resource, **more}


def said(document: str, action: str, resource: Any = "*", **context: str) -> str:
    """The decision."""
    keys = {name.replace("__", ":").lower(): (value,) for name, value in context.items()}
    return evaluate(read_policy(document), action, resource, keys).decision.value


MARKET = {"Condition": {"StringEquals": {"ec2:InstanceMarketType": "capacity-block"}}}


@pytest.mark.parametrize(
    ("document", "action", "resource", "decision"),
    [
        ("", "ec2:RunInstances", "*", ALLOWED),
        (policy(allow("ec2:Describe*")), "ec2:DescribeRegions", "*", ALLOWED),
        (policy(allow("EC2:describeregions")), "ec2:DescribeRegions", "*", ALLOWED),
        (policy(allow("ec2:Describe*")), "ec2:RunInstances", "*", IMPLICIT),
        (policy(allow("*"), deny("ec2:Run?nstances")), "ec2:RunInstances", "*", EXPLICIT),
        (policy(allow("sagemaker:*", PLAN)), "sagemaker:DescribeTrainingPlan", PLAN, ALLOWED),
        (policy(allow("sagemaker:*", PLAN)), "sagemaker:DescribeTrainingPlan", "*", IMPLICIT),
        (policy(allow("sagemaker:*", PLAN[:-1] + "*")), "sagemaker:DescribeTrainingPlan", PLAN, ALLOWED),
        (policy(allow("*", "*", **MARKET)), "ec2:RunInstances", "*", IMPLICIT),
        (
            policy({"Effect": "Allow", "NotAction": "iam:*", "NotResource": "arn:aws:s3:::a"}),
            "ec2:X", "*", ALLOWED,
        ),
        (
            policy({"Effect": "Allow", "NotAction": "iam:*", "NotResource": "arn:aws:s3:::a"}),
            "iam:GetUser", "*", IMPLICIT,
        ),
    ],
)  # fmt: skip
def test_what_a_policy_says(document: str, action: str, resource: str, decision: str) -> None:
    """Explicit denial over allowance over nothing; actions without case; wildcards as IAM's."""
    assert said(document, action, resource) == decision


def test_conditions_hold_by_their_values_and_missing_keys_are_told() -> None:
    """A key without a value fails a plain operator, passes a negated one and IfExists, and is named."""
    plain = policy(allow("*", Condition={"StringLike": {"aws:RequestedRegion": ["us-*", "eu-*"]}}))
    assert said(plain, "ec2:X", aws__RequestedRegion="us-west-2") == ALLOWED
    assert said(plain, "ec2:X", aws__RequestedRegion="ap-south-1") == IMPLICIT
    verdict = evaluate(read_policy(plain), "ec2:X", "*", {})
    assert (verdict.decision, verdict.missing) == (Decision.IMPLICIT_DENY, ("aws:RequestedRegion",))
    negated = policy(allow("*"), deny("*", Condition={"StringNotEquals": {"aws:RequestedRegion": "us-a-1"}}))
    assert said(negated, "ec2:X") == EXPLICIT
    assert said(negated, "ec2:X", aws__RequestedRegion="us-a-1") == ALLOWED
    exists = policy(allow("*", Condition={"StringEqualsIfExists": {"aws:RequestedRegion": "us-a-1"}}))
    assert said(exists, "ec2:X") == ALLOWED
    null = policy(allow("*", Condition={"Null": {"aws:ResourceTag/berth:order": "false"}}))
    assert said(null, "ec2:X") == IMPLICIT
    assert said(null, "ec2:X", **{"aws__ResourceTag/berth:order": "x"}) == ALLOWED


@pytest.mark.parametrize(
    "document",
    [
        "{", "[]", "{}", '{"Statement": []}', '{"Statement": [1]}',
        policy({"Effect": "Maybe", "Action": "*", "Resource": "*"}),
        policy({"Effect": "Allow", "Resource": "*"}),
        policy({"Effect": "Allow", "Action": "*", "NotAction": "*", "Resource": "*"}),
        policy(allow("*", Principal="*")),
        policy(allow([])),
        policy(allow("*", "arn:aws:s3:::${aws:username}")),
        policy(allow("*", Condition={"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}})),
        policy(allow("*", Condition={"ForAnyValue:StringLike": {"aws:TagKeys": "a"}})),
    ],
)  # fmt: skip
def test_a_document_that_cannot_be_decided_is_refused_when_it_is_given(document: str) -> None:
    """Never taken and then misread."""
    with pytest.raises(PolicyRefused):
        read_policy(document)


TEXTS = st.text(alphabet="ab:*?", min_size=1, max_size=6)


@settings(deadline=None, max_examples=200)
@given(statements=st.lists(st.tuples(st.booleans(), TEXTS, TEXTS), min_size=1, max_size=5), action=TEXTS)
def test_a_denial_is_never_outvoted(statements: list[tuple[bool, str, str]], action: str) -> None:
    """Adding a statement that denies everything makes any decision an explicit denial; adding one that allows
    everything never makes an explicit denial anything else."""
    made = [(allow if allows else deny)(actions, resource) for allows, actions, resource in statements]
    before = said(policy(*made), action)
    assert said(policy(*made, deny("*")), action) == EXPLICIT
    after = said(policy(*made, allow("*")), action)
    assert after == (EXPLICIT if before == EXPLICIT else ALLOWED)


def test_a_call_whose_resource_is_not_known_is_held_to_what_is_known() -> None:
    """Region and account of a resource's pattern count; denying some resources denies nothing for sure."""
    place = Place("us-east-1", "111122223333")
    assert said(policy(allow("*", PLAN)), "sagemaker:X", place) == ALLOWED
    assert said(policy(allow("*", PLAN.replace("us-east-1", "us-west-2"))), "sagemaker:X", place) == IMPLICIT
    assert said(policy(allow("*"), deny("*", PLAN)), "sagemaker:X", place) == ALLOWED
    assert said(policy(allow("*"), deny("*")), "sagemaker:X", place) == EXPLICIT
    assert said(policy(allow("*", "arn:aws:s3:::b/*")), "s3:X", place) == ALLOWED


def test_who_may_launch_in_blocks_only_launches_nothing_on_demand() -> None:
    """The market of a launch is known to the yard."""
    account = Account("111122223333", "me", policy(allow("ec2:RunInstances", "*", **MARKET)))
    block = {"InstanceMarketOptions": {"MarketType": "capacity-block"}}
    authorise(account, "ec2", "RunInstances", block)
    with pytest.raises(ServiceError, match="UnauthorizedOperation"):
        authorise(account, "ec2", "RunInstances", {})
    authorise(account, "sts", "GetCallerIdentity", {})  # needs no right
    with pytest.raises(ServiceError, match="servicequotas:GetServiceQuota"):
        authorise(account, "service-quotas", "GetServiceQuota", {})


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A yard."""
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def simulate(bench: Bench, document: str, **params: Any) -> Any:
    """SimulatePrincipalPolicy by an account with this policy."""
    account = Account(bench.account.account_id, bench.account.name, document)
    source = f"arn:aws:iam::{account.account_id}:user/{account.name}"
    asked = {"PolicySourceArn": source, **params}
    return bench.call("SimulatePrincipalPolicy", service="iam", account=account, **asked)


def test_simulation_answers_each_action_on_each_resource(bench: Bench) -> None:
    """By pages, in the order asked; with matched statements and keys that had no value."""
    document = policy(
        allow("ec2:Describe*", Sid="Look"), deny("ec2:RunInstances", Sid="Never"),
        allow("sagemaker:*", PLAN, Condition={"Bool": {"aws:SecureTransport": True}}),
    )  # fmt: skip
    asked = {
        "ActionNames": ["ec2:DescribeRegions", "ec2:RunInstances", "sagemaker:X"],
        "ResourceArns": ["*", PLAN],
    }
    found, marker = [], {}
    while True:
        page = simulate(bench, document, MaxItems=4, **asked, **marker)
        found += page["EvaluationResults"]
        assert page["IsTruncated"] == ("Marker" in page)
        if not page["IsTruncated"]:
            break
        marker = {"Marker": page["Marker"]}
    assert [one["EvalDecision"] for one in found] == [
        ALLOWED,
        ALLOWED,
        EXPLICIT,
        EXPLICIT,
        IMPLICIT,
        IMPLICIT,
    ]
    assert [one["EvalResourceName"] for one in found] == ["*", PLAN] * 3
    assert found[2]["MatchedStatements"] == [{"SourcePolicyId": "Never", "SourcePolicyType": "IAM Policy"}]
    assert found[5]["MissingContextValues"] == ["aws:SecureTransport"]
    entry = {
        "ContextKeyName": "aws:SecureTransport",
        "ContextKeyValues": ["true"],
        "ContextKeyType": "boolean",
    }
    again = simulate(bench, document, **asked, ContextEntries=[entry])["EvaluationResults"]
    assert again[5]["EvalDecision"] == ALLOWED


def test_simulation_takes_further_policies_and_a_boundary(bench: Bench) -> None:
    """A boundary takes away what it does not allow, and says so."""
    asked = {"ActionNames": ["ec2:DescribeRegions"]}
    more = simulate(bench, policy(deny("iam:*")), **asked, PolicyInputList=[policy(allow("ec2:*"))])
    assert more["EvaluationResults"][0]["EvalDecision"] == ALLOWED
    bound = simulate(bench, "", **asked, PermissionsBoundaryPolicyInputList=[policy(allow("s3:*"))])
    assert bound["EvaluationResults"][0]["EvalDecision"] == IMPLICIT
    detail = bound["EvaluationResults"][0]["PermissionsBoundaryDecisionDetail"]
    assert detail == {"AllowedByPermissionsBoundary": False}


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"PolicySourceArn": "arn:aws:iam::999999999999:user/nobody"}, "NoSuchEntity"),
        ({"CallerArn": "arn:aws:iam::999999999999:user/nobody"}, "InvalidInput"),
        ({"ActionNames": ["no action"]}, "InvalidInput"),
        ({"PolicyInputList": ["{"]}, "InvalidInput"),
        ({"ResourcePolicy": "{}"}, "InvalidInput"),
        ({"Marker": "made-up"}, "InvalidInput"),
    ],
)
def test_what_cannot_be_simulated_is_refused(bench: Bench, params: dict[str, Any], code: str) -> None:
    """In IAM's words."""
    with pytest.raises(ServiceError) as refused:
        simulate(bench, "", **{"ActionNames": ["ec2:DescribeRegions"], **params})
    assert refused.value.code == code
