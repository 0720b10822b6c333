"""Which rights a need takes, how IAM is asked for them, and what its answers mean."""

from __future__ import annotations

import json
from typing import Any

import pytest

from berth.aws.permissions import VERBS, Role
from berth.aws.policies import Scope, policy
from berth.checkup.findings import State
from berth.checkup.rights import Answer, Right, Say, judged, questions, right_findings, rights_of, verbs_of
from berth.planner.need import Need
from berth.terms.ways import Target
from berth.yard.identity.policies import evaluate, read_policy

from .conftest import ACCOUNT, ROLE, need_of


def results(document: str, right: Right) -> list[dict[str, Any]]:
    """What a yard's policies say of one right, as IAM's simulation shapes it."""
    context = {key.lower(): values for key, values in right.context}
    verdict = evaluate(read_policy(document), right.action, right.resource, context)
    return [
        {
            "EvalActionName": right.action,
            "EvalResourceName": right.resource,
            "EvalDecision": verdict.decision.value,
            "MissingContextValues": list(verdict.missing),
        }
    ]


def ask(document: str, need: Need, uploads: bool = False) -> list[Answer]:
    """Every right of the need, judged by a policy."""
    rights = rights_of(need, ACCOUNT, "us-east-1", uploads)
    found: list[Answer] = []
    for question in questions(rights):
        said = [one for right in question.rights for one in results(document, right)]
        found += judged(question, said)
    assert len(found) == len(rights)
    return found


def both(*roles: Role) -> str:
    """The printed policies of some roles in one document."""
    scope = Scope(ACCOUNT, ("us-east-1",), None, (ROLE,))
    return json.dumps({"Statement": [one for role in roles for one in policy(role, scope)["Statement"]]})


@pytest.mark.parametrize("target", [Target.INSTANCES, Target.ENDPOINT])
def test_the_printed_policies_have_every_right_that_is_asked_for(
    target: Target, blocks: Need, served: Need
) -> None:
    """What `berth policy buy` and `deploy` print is what doctor asks IAM about: by actions, resources and
    conditions alike; an administrator has them too."""
    need = blocks if target is Target.INSTANCES else served
    for document in (both(Role.BUY, Role.DEPLOY), ""):
        answers = ask(document, need, uploads=need is served)
        assert {one.say for one in answers} == {Say.ALLOWED}, [a for a in answers if a.say is not Say.ALLOWED]


def test_a_reader_lacks_what_buys_and_launches(blocks: Need) -> None:
    """Each missing action is named, in the verbs that send it; the others are whole."""
    findings = {one.what: one for one in right_findings(blocks, ask(both(Role.READ), blocks), "")}
    assert list(findings) == list(verbs_of(blocks)) == ["plan", "buy", "launch", "show", "clean"]
    assert {what for what, one in findings.items() if one.state is State.OK} == {"plan", "show"}
    assert "ec2:PurchaseCapacityBlock" in findings["buy"].said
    assert findings["buy"].todo == "ask for the rights of: berth policy buy --region us-east-1"
    assert "ec2:TerminateInstances" in findings["clean"].said


def test_only_what_the_need_sends_is_asked_for(blocks: Need, served: Need) -> None:
    """A block takes no right of SageMaker, an endpoint buys no block, and S3 is for local artefacts alone."""
    of_blocks = {one.action for one in rights_of(blocks, ACCOUNT, "us-east-1", False)}
    assert {"ec2:PurchaseCapacityBlock", "ec2:RunInstances"} <= of_blocks
    assert not any(one.startswith(("sagemaker:", "s3:")) for one in of_blocks)
    of_served = {one.action for one in rights_of(served, ACCOUNT, "us-east-1", False)}
    assert {"sagemaker:CreateTrainingPlan", "sagemaker:CreateEndpoint", "iam:PassRole"} <= of_served
    assert not any(one.startswith(("ec2:Purchase", "s3:")) for one in of_served)
    assert {"s3:PutObject"} <= {one.action for one in rights_of(served, ACCOUNT, "us-east-1", True)}
    assert verbs_of(need_of(Target.TRAINING_JOB)) == ("plan", "buy", "show")
    assert set(verbs_of(blocks)) <= set(VERBS)


def one_right() -> Right:
    """Some right."""
    return Right(
        "ec2:RunInstances", "*", (("aws:RequestedRegion", ("us-east-1",)),), "us-east-1", ("launch",)
    )


@pytest.mark.parametrize(
    ("more", "say", "why"),
    [
        ({"EvalDecision": "allowed"}, Say.ALLOWED, ""),
        ({"EvalDecision": "allowed", "MissingContextValues": ["aws:MFA"]}, Say.DEPENDS, "MFA"),
        ({"EvalDecision": "implicitDeny", "MissingContextValues": ["aws:Ip"]}, Say.DEPENDS, "aws:Ip"),
        ({"EvalDecision": "implicitDeny"}, Say.DENIED, "no policy allows it"),
        ({"EvalDecision": "explicitDeny", "MissingContextValues": ["a"]}, Say.DENIED, "policy"),
        (
            {
                "EvalDecision": "implicitDeny",
                "OrganizationsDecisionDetail": {"AllowedByOrganizations": False},
            },
            Say.DENIED, "organisation",
        ),
        (
            {
                "EvalDecision": "implicitDeny",
                "PermissionsBoundaryDecisionDetail": {"AllowedByPermissionsBoundary": False},
            },
            Say.DENIED, "boundary",
        ),
        ({"EvalDecision": "perhaps"}, Say.NOT_ASKED, "perhaps"),
        ({}, Say.NOT_ASKED, "None"),
        (
            {
                "EvalDecision": "allowed", "EvalResourceName": "x",
                "ResourceSpecificResults": [
                    {"EvalResourceName": "*", "EvalResourceDecision": "explicitDeny"}
                ],
            },
            Say.DENIED, "denied",
        ),
        ({"EvalActionName": "ec2:Other", "EvalDecision": "allowed"}, Say.NOT_ASKED, "did not answer"),
    ],
)  # fmt: skip
def test_what_an_answer_means(more: dict[str, Any], say: Say, why: str) -> None:
    """Allowed without a doubt, or not allowed, or not known; an unknown word is never fine."""
    (question,) = questions([one_right()])
    result = {"EvalActionName": "ec2:RunInstances", "EvalResourceName": "*", **more}
    (answer,) = judged(question, [result])
    assert answer.say is say
    assert why in answer.why


def test_where_iam_could_not_be_asked_nothing_is_fine(blocks: Need) -> None:
    """The right to ask is named as missing knowledge, and each verb stays unknown."""
    rights = rights_of(blocks, ACCOUNT, "us-east-1", False)
    answers = [Answer(right, Say.NOT_ASKED, "cannot be tried without doing it") for right in rights]
    findings = right_findings(blocks, answers, "AccessDenied: no")
    assert {one.state for one in findings} == {State.UNKNOWN}
    assert findings[0].what == "simulation"
    assert {one.state for one in right_findings(blocks, [], "")} == {State.UNKNOWN}
