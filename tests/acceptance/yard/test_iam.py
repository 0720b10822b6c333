"""IAM of a yard with a stock client: signed for the global endpoint, and the caller's own rights count."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from berth.aws.permissions import Role
from berth.aws.policies import policy

MAY_SIMULATE = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": ["iam:SimulatePrincipalPolicy", "ec2:Describe*"], "Resource": "*"}
    ],
}


def test_a_stock_client_simulates_its_own_policy(shared: Any) -> None:
    """Through pages, whatever Region the client has: IAM is signed for us-east-1 or for that."""
    shared.account("simulating", MAY_SIMULATE)
    clients = shared.clients_of("simulating")
    source = clients.sts.get_caller_identity()["Arn"]
    for region in ("us-east-1", "us-west-2"):
        pages = clients("iam", region=region).get_paginator("simulate_principal_policy").paginate(
            PolicySourceArn=source, ActionNames=["ec2:DescribeRegions", "ec2:RunInstances"],
            PaginationConfig={"PageSize": 1},
        )  # fmt: skip
        found = [
            (one["EvalActionName"], one["EvalDecision"])
            for page in pages
            for one in page["EvaluationResults"]
        ]
        assert found == [("ec2:DescribeRegions", "allowed"), ("ec2:RunInstances", "implicitDeny")]
    with pytest.raises(ClientError, match="sagemaker:ListTrainingPlans"):
        clients.sagemaker.list_training_plans()
    assert clients.ec2.describe_regions()["Regions"]


def test_simulating_needs_its_own_right(shared: Any) -> None:
    """A policy without it, such as one for watching, is denied; stock clients read the code."""
    shared.account("blind", {**MAY_SIMULATE, "Statement": [
        {"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"}
    ]})  # fmt: skip
    clients = shared.clients_of("blind")
    source = clients.sts.get_caller_identity()["Arn"]
    with pytest.raises(ClientError) as refused:
        clients("iam").simulate_principal_policy(PolicySourceArn=source, ActionNames=["ec2:DescribeRegions"])
    assert refused.value.response["Error"]["Code"] == "AccessDenied"
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


@pytest.mark.parametrize("role", Role)
def test_the_printed_policies_are_ones_that_a_yard_takes(shared: Any, role: Role) -> None:
    """`berth policy` and `berth yard account add --policy` speak of the same language."""
    shared.account(f"with-{role.value}", policy(role))
    assert shared.clients_of(f"with-{role.value}").ec2.describe_capacity_reservations() is not None


def test_two_users_of_one_account_are_two_identities(shared: Any) -> None:
    """Each has a name and rights of its own; what one makes is the account's, and the other sees it."""
    added = shared.account("firm")
    shared.user("firm", "planner", policy(Role.READ))
    owner, planner = shared.clients_of("firm"), shared.clients_of("firm", "planner")
    seen = [clients.sts.get_caller_identity() for clients in (owner, planner)]
    assert [one["Account"] for one in seen] == [added["account"]] * 2
    assert [one["Arn"].rpartition("/")[2] for one in seen] == ["firm", "planner"]
    assert len({one["UserId"] for one in seen}) == 2
    offer = owner.ec2.describe_capacity_block_offerings(
        InstanceType="p5.48xlarge", InstanceCount=1, CapacityDurationHours=24
    )["CapacityBlockOfferings"][0]["CapacityBlockOfferingId"]
    asked = {"CapacityBlockOfferingId": offer, "InstancePlatform": "Linux/UNIX"}
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        planner.ec2.purchase_capacity_block(**asked)
    owner.ec2.purchase_capacity_block(**asked)
    assert len(planner.ec2.describe_capacity_reservations()["CapacityReservations"]) == 1
    source, paid = seen[1]["Arn"], ["ec2:PurchaseCapacityBlock"]
    (result,) = owner("iam").simulate_principal_policy(PolicySourceArn=source, ActionNames=paid)[
        "EvaluationResults"
    ]
    assert result["EvalDecision"] == "implicitDeny"


@pytest.mark.parametrize(
    ("account", "name", "says"),
    [("nobody", "ada", "no account"), ("crowd", "crowd", "has a user named"), ("crowd", "a b", "letters")],
)
def test_a_user_that_cannot_be_is_refused(shared: Any, account: str, name: str, says: str) -> None:
    """An account that is not there, a name that is taken, a name that is none."""
    if "crowd" not in {one["name"] for one in shared.status["accounts"]}:
        shared.account("crowd")
    with pytest.raises(Exception, match=says):
        shared.user(account, name)
    with pytest.raises(Exception, match="has no user"):
        shared.environment_of("crowd", "ada")


def test_a_policy_that_is_none_is_refused(shared: Any) -> None:
    """With the reason, and no account is made."""
    with pytest.raises(Exception, match="no statement"):
        shared.account("broken", {"Statement": []})
    assert "broken" not in {one["name"] for one in shared.status["accounts"]}
