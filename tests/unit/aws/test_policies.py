"""The printed policies: what each allows and never allows, and where it holds."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore import xform_name

import berth
from berth.aws.guards import Power
from berth.aws.permissions import FOUR_PAID, ROLES, SENT, VERBS, Role, sent_by
from berth.aws.policies import (
    GRANTS,
    LARGEST_CONTROL_POLICY,
    LARGEST_POLICY,
    Scope,
    control_policy,
    partition_of,
    policy,
    size,
)
from berth.cli.main import VERBS as TYPED
from berth.cli.main import run

SOURCE = Path(berth.__file__).parent
ACCOUNT = "123456789012"
BUYER = f"arn:aws:iam::{ACCOUNT}:role/buyer"
HERE = Scope(ACCOUNT, ("us-east-1",))


def actions(document: dict[str, Any]) -> set[str]:
    """All actions that a policy names."""
    return {action for statement in document["Statement"] for action in listed(statement["Action"])}


def listed(value: str | list[str]) -> list[str]:
    """IAM writes one as itself and several as a list."""
    return [value] if isinstance(value, str) else value


def statements(document: dict[str, Any], action: str) -> list[dict[str, Any]]:
    """The statements that name an action."""
    return [one for one in document["Statement"] if action in listed(one["Action"])]


def test_every_verb_has_its_row() -> None:
    """A verb without a row could send nothing; a row without a verb would widen a policy for nothing."""
    assert set(VERBS) == set(TYPED)
    assert {verb for verbs in ROLES.values() for verb in verbs} | {
        "run",
        "audit",
        "policy",
        "history",
    } == set(TYPED)
    assert sent_by(Role.BUY) | sent_by(Role.DEPLOY) >= VERBS["run"]


def test_the_rows_are_operations_that_exist() -> None:
    """Each row names an operation of AWS's models, so that no policy has a mistyped action."""
    session = botocore.session.get_session()
    runtime = {"InvokeEndpoint": "sagemaker-runtime"}
    for row in sorted({row for rows in VERBS.values() for row in rows}):
        service, _, name = row.partition(":")
        model = session.get_service_model(runtime.get(name, service))
        assert name in model.operation_names, row
        assert xform_name(name)
    assert set(GRANTS) <= {row for rows in VERBS.values() for row in rows}


def called_in_the_source() -> set[str]:
    """Names of AWS operations whose boto methods stand in the client's source, as calls or as texts."""
    session = botocore.session.get_session()
    services = {row.partition(":")[0] for rows in VERBS.values() for row in rows} | {"sagemaker-runtime"}
    methods = {
        xform_name(name): name
        for service in services
        for name in session.get_service_model(service).operation_names
    }
    del methods["search"]  # SageMaker's Search; our own methods have that name too
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        if path.is_relative_to(SOURCE / "yard"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            word = node.attr if isinstance(node, ast.Attribute) else getattr(node, "value", None)
            if isinstance(word, str) and word in methods:
                found.add(methods[word])
    return found


def test_the_table_holds_exactly_what_the_source_calls() -> None:
    """Nothing more, so that no policy allows what Berth never sends; boto's own upload and its providers of
    roles send the rest."""
    upload = {name for name in SENT if "Multipart" in name} | {"PutObject", "UploadPart"}
    assert called_in_the_source() == SENT - upload - {"AssumeRole"}


def test_a_client_sends_nothing_that_no_verb_is_listed_with() -> None:
    """The guards and the policies live by one table: what is not in it leaves with no power."""
    for power in Power:
        assert not power.allows("DescribeVolumes")
        assert not power.allows("CreateTrainingJob")
        assert {name for name in SENT if power.allows(name)} != set()
    assert Power.READ.allows("DescribeRegions")


@pytest.mark.parametrize("role", [Role.READ, Role.WATCH, Role.DEPLOY])
def test_who_does_not_buy_is_allowed_no_paid_call(role: Role) -> None:
    """None of the four, by name or by a wildcard, and nothing that writes for those who only look."""
    allowed = actions(policy(role))
    assert allowed & set(FOUR_PAID) == set()
    assert not any("*" in action for action in allowed)
    assert "sagemaker:CreateReservedCapacity" not in allowed
    if role is not Role.DEPLOY:
        assert all(Power.READ.allows(action.partition(":")[2]) for action in allowed)


def test_a_buyer_may_buy_and_mark_and_nothing_more() -> None:
    """What `buy` and `extend` send, AWS's permission-only action, tags at purchase or with a mark."""
    made = policy(Role.BUY, HERE)
    beyond = actions(made) - actions(policy(Role.READ, HERE))
    assert beyond == {
        "ec2:PurchaseCapacityBlock",
        "ec2:PurchaseCapacityBlockExtension",
        "ec2:CreateTags",
        "sagemaker:CreateTrainingPlan",
        "sagemaker:ExtendTrainingPlan",
        "sagemaker:CreateReservedCapacity",
        "sagemaker:DescribeReservedCapacity",
        "sagemaker:AddTags",
    }
    adopted = {"Null": {"aws:RequestTag/berth:order": "false"}}
    bought, later = (one["Condition"] for one in statements(made, "sagemaker:AddTags"))
    assert bought["StringEquals"]["sagemaker:TaggingAction"] == [
        "CreateReservedCapacity", "CreateTrainingPlan",
    ]  # fmt: skip
    assert later == adopted
    bought, later = (one["Condition"] for one in statements(made, "ec2:CreateTags"))
    assert bought == {"StringEquals": {"ec2:CreateAction": "PurchaseCapacityBlock"}}
    assert later == adopted
    (purchase,) = statements(made, "ec2:PurchaseCapacityBlock")
    assert purchase["Resource"] == f"arn:aws:ec2:us-east-1:{ACCOUNT}:capacity-reservation/*"


def test_instances_are_launched_in_blocks_and_only_marked_ones_end() -> None:
    """RunInstances on an instance has the market as condition, so on-demand is not allowed."""
    made = policy(Role.DEPLOY, HERE)
    on_instances = [
        one
        for one in statements(made, "ec2:RunInstances")
        if any(":instance/*" in arn for arn in listed(one["Resource"]))
    ]  # fmt: skip
    assert [one["Condition"] for one in on_instances] == [
        {"StringEquals": {"ec2:InstanceMarketType": "capacity-block"}}
    ]
    (ends,) = statements(made, "ec2:TerminateInstances")
    assert ends["Condition"] == {"Null": {"aws:ResourceTag/berth:order": "false"}}


def test_roles_are_passed_only_where_named() -> None:
    """Without a role no iam:PassRole: whoever may pass any role may become any."""
    assert "iam:PassRole" not in actions(policy(Role.DEPLOY, HERE))
    scope = Scope(ACCOUNT, ("us-east-1",), pass_roles=(BUYER,))
    (passing,) = statements(policy(Role.DEPLOY, scope), "iam:PassRole")
    assert passing["Resource"] == [BUYER]
    assert "iam:PassRole" not in actions(policy(Role.BUY, scope))


def resources(document: dict[str, Any]) -> Iterator[str]:
    """Every resource of every statement."""
    for statement in document["Statement"]:
        yield from listed(statement["Resource"])


@pytest.mark.parametrize("role", list(Role))
def test_account_and_regions_are_in_every_resource(role: Role) -> None:
    """`*` alone only where an action knows no resource; each other one is of the account and a Region."""
    made = policy(role, Scope(ACCOUNT, ("us-east-1", "us-gov-west-1")))
    assert [one["Sid"] for one in made["Statement"] if one["Resource"] == "*"] == ["NoResourceKnown"]
    for arn in set(resources(made)) - {"*"}:
        of_iam = arn.split(":")[2] == "iam"  # which is one for all Regions of a partition
        assert of_iam or "us-east-1" in arn or ("us-gov-west-1" in arn and arn.startswith("arn:aws-us-gov:"))
        assert ACCOUNT in arn or arn.split(":")[5] in {"image/*", "snapshot/*"}
    everywhere = set(resources(policy(role))) - {"*"}
    assert all(arn.startswith("arn:aws:") for arn in everywhere)


@pytest.mark.parametrize("role", list(Role))
def test_the_policies_fit_into_iam(role: Role) -> None:
    """Three Regions are still one managed policy, each Sid is one word and stands once."""
    made = policy(role, Scope(ACCOUNT, ("us-east-1", "us-west-2", "eu-north-1"), pass_roles=(BUYER,)))
    assert size(made) <= LARGEST_POLICY
    sids = [one["Sid"] for one in made["Statement"]]
    assert len(set(sids)) == len(sids)
    assert all(sid.isalnum() for sid in sids)


def test_the_grants_of_a_statement_have_one_condition() -> None:
    """Else the first one's condition would be said of all."""
    found: dict[str, list[object]] = {}
    for grants in GRANTS.values():
        for grant in grants:
            found.setdefault(grant.sid, []).append(grant.condition)
    assert [sid for sid, conditions in found.items() if any(one != conditions[0] for one in conditions)] == []


def test_partitions_are_those_of_botocore() -> None:
    """A Region's name tells its partition."""
    session = botocore.session.get_session()
    for partition in session.get_available_partitions():
        for region in session.get_available_regions("ec2", partition):
            assert partition_of(region) == partition, region


def test_an_organisation_leaves_paying_to_one_role() -> None:
    """All four denied everywhere, to everybody but the buyer's sessions; small enough for Organizations."""
    made = control_policy([BUYER])
    (statement,) = made["Statement"]
    assert statement["Effect"] == "Deny"
    assert tuple(statement["Action"]) == FOUR_PAID
    assert statement["Resource"] == "*"
    assert statement["Condition"] == {"ArnNotEquals": {"aws:PrincipalArn": [BUYER]}}
    assert size(made) <= LARGEST_CONTROL_POLICY


WRONG = [
    (("read", "--account", "12345"), "12 digits"),
    (("read", "--region", "*"), "a Region like us-east-1"),
    (("deploy", "--bucket", "a/*"), "a bucket's name"),
    (("deploy", "--role", "*"), "not the ARN of one IAM role"),
    (("read", "--role", BUYER), "knows no --role"),
    (("read", "--buyer-role", BUYER), "knows no --buyer-role"),
    (("org", "--region", "us-east-1", "--buyer-role", BUYER), "knows no --account and --region"),
    (("org",), "who may pay?"),
    (
        ("org", "--buyer-role", f"arn:aws:sts::{ACCOUNT}:assumed-role/buyer/ada"),
        "not the ARN of one IAM role",
    ),
    (("org", "--buyer-role", f"arn:aws:iam::{ACCOUNT}:role/*"), "not the ARN of one IAM role"),
    (("everything",), "everything"),
]


@pytest.mark.parametrize(("asked", "said"), WRONG, ids=[" ".join(one[0])[:40] for one in WRONG])
def test_what_would_widen_or_say_nothing_is_refused(
    asked: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, nothing on stdout: half a policy is none."""
    assert run(["policy", *asked]) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert said in written.err


@pytest.mark.parametrize("kind", ["read", "buy", "watch", "deploy", "org"])
def test_it_needs_no_keys_and_no_network(
    kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy is JSON on stdout; no session is made and no socket opened."""

    def no_network(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr("socket.socket.connect", no_network)
    monkeypatch.setattr("botocore.session.Session.__init__", no_network)
    more = ["--buyer-role", BUYER] if kind == "org" else ["--account", ACCOUNT, "--region", "us-east-1"]
    assert run(["policy", kind, *more]) == 0
    assert json.loads(capsys.readouterr().out)["Version"] == "2012-10-17"


def test_a_policy_that_aws_would_not_take_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Too many Regions for one managed policy: printed whole, and said."""
    regions = [f"us-east-{number}" for number in range(1, 20)]
    assert run(["policy", "deploy", *(word for region in regions for word in ("--region", region))]) == 0
    assert "AWS takes 6,144" in capsys.readouterr().err
