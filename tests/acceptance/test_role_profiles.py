"""Profiles that name a role, as caller and as buyer, and approvers who act in a role, at a yard over HTTP."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

NUMBERS = count(1)


class Desk:
    """The command line in an account of its own, with profiles in a configuration file of its own."""

    def __init__(self, berth: Any, name: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.berth, self.name, self.folder = berth, name, folder
        self.account: str = berth.yard.account(name)["account"]
        self.caller = f"arn:aws:iam::{self.account}:user/{name}"
        self.patch = patch
        self.become(name)
        patch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))
        keys = berth.yard.environment_of(name)
        (folder / "credentials").write_text(
            f"[source]\naws_access_key_id = {keys['AWS_ACCESS_KEY_ID']}\n"
            f"aws_secret_access_key = {keys['AWS_SECRET_ACCESS_KEY']}\n"
        )

    def become(self, name: str, user: str | None = None) -> None:
        """Act with these keys from now on."""
        for key, value in self.berth.yard.environment_of(name, user).items():
            self.patch.setenv(key, value)

    def role(self, name: str, **more: Any) -> str:
        """A role of the account that its first user may assume; its ARN."""
        arn: str = self.berth.yard.role(self.name, name, **{"trust": [self.caller], **more})
        return arn

    def profile(self, name: str, **said: Any) -> None:
        """Write a profile."""
        lines = [f"[profile {name}]", *(f"{key} = {value}" for key, value in said.items())]
        with (self.folder / "config").open("a") as file:
            file.write("\n".join([*lines, ""]))

    def assumed(self) -> int:
        """How often the account's user assumed a role."""
        calls = self.berth.yard.log_of("AssumeRole")
        return sum(call["account_id"] == self.account and call["outcome"] == "ok" for call in calls)


@pytest.fixture
def desk(berth: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk of an account that no other test has."""
    return Desk(berth, f"desk-{next(NUMBERS)}", tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "source",
    [{"source_profile": "source"}, {"credential_source": "Environment"}],
    ids=["file", "environment"],
)
def test_a_profile_may_name_a_role(desk: Desk, source: dict[str, str]) -> None:
    """The caller is the role's session, assumed once for the whole command, with its own session name."""
    arn = desk.role("planner", external_id="cluster-7")
    desk.profile("planner", role_arn=arn, external_id="cluster-7", role_session_name="ada", **source)
    planned = desk.berth("plan", desk.berth.need("by-role"), "--profile", "planner", "--json")
    assert planned.code == 0, planned.err
    assert desk.assumed() == 1
    doctor = desk.berth("doctor", "--region", "us-east-1", "--profile", "planner", "--json")
    caller = next(one for one in doctor.json["findings"] if one["what"] == "caller")
    assert caller["arn"] == f"arn:aws:sts::{desk.account}:assumed-role/planner/ada"


def test_a_chain_of_roles_is_followed(desk: Desk) -> None:
    """A source that is a role itself; the second role trusts the first."""
    first = desk.role("first")
    second = desk.role("second", trust=[first])
    desk.profile("first", role_arn=first, source_profile="source")
    desk.profile("second", role_arn=second, source_profile="first")
    ended = desk.berth("plan", desk.berth.need("chained"), "--profile", "second", "--json")
    assert ended.code == 0, ended.err
    assert desk.assumed() == 2


def test_keys_of_a_role_are_renewed_before_they_end(desk: Desk) -> None:
    """botocore asks anew from 15 minutes before the end: of a session of 15 minutes, again and again."""
    desk.profile("short", role_arn=desk.role("planner"), source_profile="source", duration_seconds=900)
    ended = desk.berth("plan", desk.berth.need("renewed"), "--profile", "short", "--json")
    assert ended.code == 0, ended.err
    assert desk.assumed() > 3


def test_paid_calls_alone_may_act_in_a_role(desk: Desk) -> None:
    """`--buyer-profile` of a profile that names a role: who plans may not pay, the role pays."""
    berth = desk.berth
    read, buy = (
        json.loads(berth("policy", which, "--account", desk.account).out) for which in ("read", "buy")
    )
    role = desk.role("payer", policy=buy)
    desk.profile("payer", role_arn=role, source_profile="source")
    berth.yard.user(desk.name, "reader", read)
    desk.become(desk.name, "reader")
    berth.plan("paid")
    alone = berth.buy("paid")
    assert (alone.code, alone.money) == (13, "nothing was spent")
    bought = berth.buy("paid", "--buyer-profile", "payer")
    assert bought.code == 0, bought.err
    assert "paid calls: role payer, profile payer" in bought.err
    history = [event["detail"] for event in berth("show", "paid", "--json").json["history"]]
    assert any(f"paid by arn:aws:sts::{desk.account}:assumed-role/payer/" in text for text in history)


@pytest.mark.parametrize(
    ("said", "code", "why"),
    [
        ({"source_profile": "source"}, 13, "could not be assumed: AccessDenied"),
        ({"source_profile": "nowhere"}, 13, 'source_profile "nowhere"'),
        ({}, 13, "source_profile or credential_source"),
    ],
)
def test_a_buyer_whose_role_cannot_be_had_pays_nothing(
    desk: Desk, said: dict[str, str], code: int, why: str
) -> None:
    """Not trusted, no such source, no source: told in words before anything is bought."""
    role = desk.berth.yard.role(desk.name, "payer", trust=[f"arn:aws:iam::{desk.account}:user/eve"])
    desk.profile("payer", role_arn=role, **said)
    desk.berth.plan("unpaid")
    ended = desk.berth.buy("unpaid", "--buyer-profile", "payer")
    assert (ended.code, ended.money) == (code, "nothing was spent")
    assert why in " ".join(ended.err.split())


@pytest.mark.parametrize("missing", ["Credentials", "SessionToken", "Expiration"])
def test_an_answer_of_sts_that_lacks_a_member_is_told(desk: Desk, missing: str) -> None:
    """No crash, no purchase, and no word of what the answer held."""
    desk.profile("payer", role_arn=desk.role("payer"), source_profile="source")
    desk.berth.plan("lacking")
    desk.berth.yard.fault("absent-members", "AssumeRole", amount=missing, times=None)
    ended = desk.berth.buy("lacking", "--buyer-profile", "payer")
    desk.berth.yard.clear_faults()
    assert (ended.code, ended.money) == (13, "nothing was spent")
    assert "STS answered without" in ended.err


def test_an_approver_may_act_in_a_role(
    desk: Desk, lead: Any, rules: Any, approve: Any, tmp_path: Path
) -> None:
    """Named by the role's ARN, proven by the session's; a session named in the rules is refused in words."""
    berth, yard = desk.berth, desk.berth.yard
    role = yard.role("lead", "approver", trust=["lead"])
    account = role.split(":")[4]
    desk.profile("lead", role_arn=role, credential_source="Environment", role_session_name="grace")
    text = '[approval]\nabove = "100.00 USD"\napprovers = ["{}"]\n'
    rules(text.format(f"arn:aws:sts::{account}:assumed-role/approver/grace"))
    berth.plan("in-a-role")
    refused = berth.buy("in-a-role")
    assert (refused.code, refused.money) == (20, "nothing was spent")
    assert f"name the role, {role}" in " ".join(refused.err.split())
    rules(text.format(role))
    asked = berth.buy("in-a-role", "--json")
    assert (asked.code, asked.money) == (15, "nothing was spent")
    given = approve(asked.json["hash"], "--profile", "lead")
    assert given.code == 0, given.err
    bought = berth.buy("in-a-role", "--proof", str(tmp_path / "proof.json"))
    assert bought.code == 0, bought.err
    approved = f"by arn:aws:sts::{account}:assumed-role/approver/grace"
    assert approved in " ".join(bought.err.split())


def test_who_asks_and_who_approves_in_one_role_are_one(
    desk: Desk, lead: Any, rules: Any, approve: Any, tmp_path: Path
) -> None:
    """Two sessions of one role, whatever their names: whoever may assume it makes up both."""
    berth = desk.berth
    role = berth.yard.role(desk.name, "both", trust=[desk.caller, "lead"])
    desk.profile("asks", role_arn=role, source_profile="source", role_session_name="ada")
    desk.profile("approves", role_arn=role, credential_source="Environment", role_session_name="grace")
    rules(f'[approval]\nabove = "100.00 USD"\napprovers = ["{role}"]\n')
    planned = berth("plan", berth.need("one-role"), "--profile", "asks", "--json")
    assert planned.code == 0, planned.err
    buy = ("--profile", "asks")
    given = approve(berth.buy("one-role", *buy, "--json").json["hash"], "--profile", "approves")
    bought = (
        berth.buy("one-role", *buy, "--proof", str(tmp_path / "proof.json")) if given.code == 0 else given
    )
    assert (bought.code != 0, bought.money) == (True, "nothing was spent")
    assert "two sessions of one role are one identity" in " ".join(bought.err.split())
