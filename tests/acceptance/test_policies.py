"""What the verbs really send at a yard, beside what their printed policies allow."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from berth.aws import session
from berth.aws.guards import guard
from berth.aws.permissions import FOUR_PAID, ROLES, VERBS, Role
from berth.terms.instants import parse_instant

ROLE = "arn:aws:iam::123456789012:role/serving"
BLOCK = """
name = "{name}"
instance_type = "p5.48xlarge"
count = 1
duration = "24h"
target = "instances"
regions = ["us-east-1"]
"""
SERVED = f'[deployment]\nimage = "rehearsal/echo:1"\ndata = "model"\nrole = "{ROLE}"\n'
# S3's rights are named apart from its operations (S3 user guide, permissions for API operations).
S3_RIGHTS = {
    "s3:HeadObject": "s3:GetObject",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:CreateMultipartUpload": "s3:PutObject",
    "s3:UploadPart": "s3:PutObject",
    "s3:CompleteMultipartUpload": "s3:PutObject",
}


class Watched:
    """The command line of one account; `sent` maps each verb to the IAM actions of the calls that it made."""

    def __init__(self, berth: Any, account: str, s3: list[str]) -> None:
        self.berth = berth
        caller = berth.yard.clients_of(account).sts.get_caller_identity()
        self.id: str = caller["Account"]
        self.arn: str = caller["Arn"]
        self.ec2 = berth.yard.clients_of(account).ec2
        self.sent: dict[str, set[str]] = {}
        self._s3 = s3

    def __call__(self, verb: str, *words: str, ends: tuple[int, ...] = (0,)) -> Any:
        """Run `berth VERB WORDS`, and keep what the yard's log and the client saw."""
        before = len(self.berth.yard.log)
        self._s3.clear()
        ended = self.berth(verb, *words)
        assert ended.code in ends, ended.err
        calls = [call for call in self.berth.yard.log[before:] if call["account_id"] == self.id]
        rows = {f"{call['service'].removesuffix('-runtime')}:{call['operation']}" for call in calls}
        self.sent.setdefault(verb, set()).update(rows, (S3_RIGHTS.get(one, one) for one in self._s3))
        return ended

    def open(self, name: str) -> None:
        """Move the yard's clock to a minute after the order's window opens."""
        start = parse_instant(self.berth("show", name, "--json").json["seen"]["start"])
        self.berth.yard.clock.set(start + timedelta(minutes=1))

    def allowed(self, role: str) -> set[str]:
        """The actions of the policy that `berth policy ROLE` prints."""
        more = ("--role", ROLE) if role == "deploy" else ()
        ended = self.berth("policy", role, "--account", self.id, "--region", "us-east-1", *more)
        assert ended.code == 0, ended.err
        found: set[str] = set()
        for statement in json.loads(ended.out)["Statement"]:
            said = statement["Action"]
            found |= {said} if isinstance(said, str) else set(said)
        return found


@pytest.fixture
def watched(
    house: Any,
    at_yard: Callable[..., Any],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Watched]:
    """The command line with an account of its own. S3 stands beside the yard, so its calls are seen here."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:30].strip("-")
    house.account(name)
    s3: list[str] = []

    def listening(power: Any) -> Callable[..., None]:
        refuse = guard(power)

        def hear(*, model: Any, **more: Any) -> None:
            refuse(model=model, **more)
            if model.service_model.service_name == "s3":
                s3.append(f"s3:{model.name}")

        return hear

    monkeypatch.setattr(session, "guard", listening)
    yield Watched(at_yard(house, name), name, s3)
    house.clear_faults()


def _action(row: str) -> str:
    """IAM's name of what is sent: it calls Service Quotas otherwise than botocore does."""
    return row.replace("service-quotas:", "servicequotas:")


def check(watched: Watched) -> None:
    """Each call is in its verb's row, and in the printed policy of every role that runs the verb."""
    for verb, sent in watched.sent.items():
        actions = {_action(row) for row in sent}
        rows = {S3_RIGHTS.get(row, _action(row)) for row in VERBS[verb]}
        assert actions <= rows, verb
        for role in Role:
            if verb in ROLES[role]:
                assert actions <= watched.allowed(role), (verb, role)
    both = watched.allowed("buy") | watched.allowed("deploy")
    assert watched.sent.get("run", set()) <= both
    for role in ("read", "watch", "deploy"):
        assert watched.allowed(role).isdisjoint(FOUR_PAID)


def test_what_a_training_plan_takes_is_allowed(watched: Watched) -> None:
    """Plan, buy, deploy, ask, look, clear up: every call of each verb is in its policies."""
    need = watched.berth.need("served", more=SERVED)
    watched("plan", need)
    watched("buy", "served#1", "--yes", "--max", "500")
    watched.open("served")
    watched("renewal", "served", ends=(0, 10))
    watched("extend", "served", "--by", "1d", "--yes", "--max", "500")
    watched("deploy", "served")
    watched("invoke", "served", "{}")
    watched("show")
    watched("show", "served", "--history")
    watched("ls")
    watched("clean", "served", ends=(31,))
    watched("audit")
    check(watched)
    assert watched.sent["audit"] == set()
    assert "sagemaker:CreateTrainingPlan" in watched.sent["buy"]
    assert "sagemaker:ExtendTrainingPlan" in watched.sent["extend"]
    assert "sagemaker:DescribeTrainingPlanExtensionHistory" in watched.sent["show"]
    assert {"s3:PutObject", "s3:ListBucket", "s3:GetObject"} <= watched.sent["deploy"]
    assert "sagemaker:DeleteModel" in watched.sent["clean"]
    assert "sagemaker:ListEndpoints" in watched.sent["ls"]


def test_what_a_capacity_block_takes_is_allowed(watched: Watched) -> None:
    """Plan, buy, launch, look, clear up, and `run` for all of it; then who it was is in the audit."""
    need = watched.berth.folder / "block.toml"
    need.write_text(BLOCK.format(name="block"))
    watched("plan", str(need))
    watched("buy", "block#1", "--yes", "--max", "9000")
    watched.open("block")
    linux = [{"Name": "platform-details", "Values": ["Linux/UNIX"]}]
    image = watched.ec2.describe_images(Filters=linux)["Images"][0]["ImageId"]
    watched("launch", "block", "--image", image)
    watched("renewal", "block", "--by", "7d", ends=(0, 10))
    watched("extend", "block", "--by", "7d", "--yes", "--max", "9000")
    watched("show", "block")
    watched("ls", "--region", "us-east-1")
    watched("clean", "block", ends=(30, 31))
    watched("run", str(need), ends=(0, 30))
    check(watched)
    assert "ec2:PurchaseCapacityBlock" in watched.sent["buy"]
    assert "ec2:PurchaseCapacityBlockExtension" in watched.sent["extend"]
    assert "ec2:DescribeCapacityBlockExtensionHistory" in watched.sent["show"]
    assert {"ec2:RunInstances", "ec2:DescribeSubnets"} <= watched.sent["launch"]
    assert "ec2:TerminateInstances" in watched.sent["clean"]
    (bought,) = (one for one in watched.berth("audit", "--json").json["events"] if one["kind"] == "bought")
    assert bought["amount"] == {"amount": "1146.17", "currency": "USD"}
    assert bought["caller"] == watched.arn
    assert "process" in bought["process"]


def test_what_checking_adopting_and_leaving_take_is_allowed(watched: Watched) -> None:
    """Doctor asks IAM and Service Quotas, adopting tags, leaving looks everywhere."""
    need = watched.berth.folder / "held.toml"
    need.write_text(BLOCK.format(name="held"))
    watched("doctor", str(need))
    offers = watched.ec2.describe_capacity_block_offerings(
        InstanceType="p5.48xlarge", InstanceCount=1, CapacityDurationHours=24
    )["CapacityBlockOfferings"]
    bought = watched.ec2.purchase_capacity_block(
        CapacityBlockOfferingId=offers[0]["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX"
    )["CapacityReservation"]["CapacityReservationId"]
    watched("adopt", bought, "--as", "held", "--paid", offers[0]["UpfrontFee"])
    watched("leave", "--region", "us-east-1", ends=(31,))
    check(watched)
    assert {"iam:SimulatePrincipalPolicy", "service-quotas:GetServiceQuota"} <= watched.sent["doctor"]
    assert "ec2:CreateTags" in watched.sent["adopt"]
    assert "service-quotas:ListRequestedServiceQuotaChangeHistory" in watched.sent["leave"]
