"""Accounts by role: several in one order, roles that fail, sessions that end, approvers in a role."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from berth.aws.permissions import VERBS
from berth.aws.roles import check_answer
from berth.aws.session import Door

from .conftest import UNTHROTTLED

FLEET = Path(__file__).with_name("several_pieces.toml")
HUNDRED = """
name = "{name}"
type = "p5.48xlarge"
count = 100
duration = "24h"
target = "instances"
start = "2026-12-03T11:30:00Z"
regions = ["us-east-1"]
zone_ids = ["use1-az1"]

[[accounts]]
id = "{own}"

[[accounts]]
role = "{role}"
{more}
"""
BUY = ("--yes", "--max", "99000", "--unconfirmed")


@pytest.fixture(scope="module")
def wide() -> Iterator[Any]:
    """A yard with room for several blocks at once; no test is throttled by what others have asked."""
    from berth.yard.testing.process import YardProcess

    with (
        tempfile.TemporaryDirectory(prefix="yard-") as folder,
        YardProcess(Path(folder), fleet=FLEET, throttle_scale=UNTHROTTLED) as one,
    ):
        yield one


class Firm:
    """Two accounts of one firm: the caller's, and one that is reached by the role `buyer` alone."""

    def __init__(self, berth: Any, name: str) -> None:
        self.berth, self.yard = berth, berth.yard
        self.name, self.other = name, f"{name}-b"
        self.own: str = self.yard.account(name)["account"]
        self.there: str = self.yard.account(self.other)["account"]
        self.role: str = self.trust(name)
        self.policy: dict[str, Any] | None = None

    def trust(self, *whom: str, external_id: str = "", policy: dict[str, Any] | None = None) -> str:
        """Give the other account the role, or change it."""
        arn: str = self.yard.role(self.other, "buyer", trust=whom, external_id=external_id, policy=policy)
        return arn

    def need(self, name: str, more: str = "") -> str:
        """Write the need for a hundred; its path."""
        file: Path = self.berth.folder / f"{name}.toml"
        file.write_text(HUNDRED.format(name=name, own=self.own, role=self.role, more=more))
        return str(file)

    def planned(self, name: str, more: str = "") -> None:
        """Plan it."""
        ended = self.berth("plan", self.need(name, more), "--json")
        assert ended.code == 0, ended.err

    def bought(self) -> tuple[int, int]:
        """How many blocks the own account has, and the other."""
        clients = (self.yard.clients_of(name).ec2 for name in (self.name, self.other))
        own, there = (len(one.describe_capacity_reservations()["CapacityReservations"]) for one in clients)
        return own, there


@pytest.fixture
def firm(
    wide: Any, at_yard: Callable[..., Any], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Firm]:
    """The command line with two accounts of its own. The first has room for 64 instances more."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:24].strip("-[")
    berth = at_yard(wide)
    made = Firm(berth, name)
    berth.account = name
    for key, value in wide.environment_of(name).items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr("berth.cli.buy_pieces._held", lambda there: 192 if there.account == made.own else 0)
    yield made
    wide.clear_faults()


def said(ended: Any) -> str:
    """What a command said, without its line breaks."""
    return " ".join(ended.err.split())


def test_pieces_of_two_accounts_by_role_are_one_order(firm: Firm) -> None:
    """64 with the caller's keys, 36 in the role: searched, paid, shown; never twice, trust or no trust."""
    berth = firm.berth
    firm.planned("spread")
    bought = berth("buy", "spread#best", *BUY, "--json")
    assert bought.code == 0, bought.err
    assert {(one["account"], one["offer"]["count"]) for one in bought.json["pieces"]} == {
        (firm.own, 64),
        (firm.there, 36),
    }
    assert f"also: {firm.there[:4]}-{firm.there[4:8]}-{firm.there[8:]}, role buyer" in bought.err
    assert firm.bought() == (1, 1)
    shown = berth("show", "spread", "--json")
    assert shown.code == 0, shown.err
    assert shown.json["state"] == "bought"
    firm.trust(firm.other)
    shut = berth("show", "spread")
    assert shut.code == 13
    assert f"the role {firm.role} could not be assumed" in shut.err
    assert shut.money != "nothing was spent"
    firm.trust(firm.name)
    again = berth("buy", "spread#best", *BUY)
    assert again.code == 0, again.err
    assert firm.bought() == (1, 1)


def test_whoever_orders_may_hold_nothing_and_reach_two_accounts_by_role(firm: Firm) -> None:
    """An account that only orders: 64 in one role, 36 in another; one order of the caller's, one sum."""
    berth, yard = firm.berth, firm.yard
    third: str = yard.account(f"{firm.name}-c")["account"]
    second = yard.role(f"{firm.name}-c", "buyer", trust=[firm.name])
    file = Path(firm.need("hub", f'\n[[accounts]]\nrole = "{second}"'))
    file.write_text(file.read_text().replace(f'[[accounts]]\nid = "{firm.own}"\n', ""))
    assert berth("plan", str(file)).code == 0
    with pytest.MonkeyPatch.context() as patch:
        held = {firm.there: 192, third: 0}
        patch.setattr("berth.cli.buy_pieces._held", lambda there: held[there.account])
        bought = berth("buy", "hub#best", *BUY, "--json")
        assert bought.code == 0, bought.err
        again = berth("buy", "hub#best", *BUY)
    assert again.code == 0, again.err
    assert {(one["account"], one["offer"]["count"]) for one in bought.json["pieces"]} == {
        (firm.there, 64),
        (third, 36),
    }
    assert firm.bought() == (0, 1)
    yard.clock.advance(minutes=6)
    shown = berth("show", "hub", "--json")
    assert (shown.code, shown.json["state"]) == (0, "bought"), shown.err
    billed = [entry["account_id"] for entry in yard.ledger]
    assert [billed.count(account) for account in (firm.own, firm.there, third)] == [0, 1, 1]


def test_a_role_that_cannot_be_assumed_means_nothing_is_bought(firm: Firm) -> None:
    """Not trusted, or without the external id: told before anything is paid, and then bought."""
    berth = firm.berth
    firm.trust(firm.name, external_id="cluster-7")
    firm.planned("whole")
    refused = berth("buy", "whole#best", *BUY)
    assert (refused.code, refused.money) == (13, "nothing was spent")
    assert f"the role {firm.role} could not be assumed: AccessDenied" in refused.err
    assert "berth doctor NEED tells which is missing" in said(refused)
    assert firm.bought() == (0, 0)
    firm.planned("whole", 'external_id = "cluster-7"')
    bought = berth("buy", "whole#best", *BUY)
    assert bought.code == 0, bought.err
    assert firm.bought() == (1, 1)


def test_the_doctor_says_which_side_refuses_a_role(firm: Firm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opens; the role does not trust the caller; the caller lacks the right; the account is another's."""
    need, berth = firm.need("looked-at"), firm.berth

    def told() -> dict[str, Any]:
        ended = berth("doctor", need, "--json")
        found = [one for one in ended.json["findings"] if one.get("account") == firm.there]
        assert len(found) == 1
        return {**found[0], "code": ended.code}

    fine = told()
    assert (fine["state"], fine["code"]) == ("ok", 0)
    assert fine["arn"] == f"arn:aws:sts::{firm.there}:assumed-role/buyer/berth"
    caller = f"arn:aws:iam::{firm.own}:user/{firm.name}"
    firm.trust(firm.other)
    untrusted = told()
    assert (untrusted["state"], untrusted["code"]) == ("missing", 13)
    assert "so the role does not trust the caller" in untrusted["said"]
    assert f"let the trust policy of {firm.role} name {caller}" in untrusted["todo"]
    firm.trust(firm.name)
    everything_else = {"Effect": "Allow", "NotAction": "sts:*", "Resource": "*"}
    firm.yard.user(firm.name, "eve", {"Version": "2012-10-17", "Statement": everything_else})
    for key, value in firm.yard.environment_of(firm.name, "eve").items():
        monkeypatch.setenv(key, value)
    powerless = told()
    assert "do not allow sts:AssumeRole on it" in powerless["said"]
    assert f"berth policy read --assume-role {firm.role}" in powerless["todo"]


def test_printed_policies_are_enough_on_both_sides(firm: Firm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever orders has the buyer's policy and the right to assume the role, and the role the buyer's."""
    berth = firm.berth
    own = json.loads(berth("policy", "buy", "--account", firm.own, "--assume-role", firm.role).out)
    there = json.loads(berth("policy", "buy", "--account", firm.there).out)
    assert own["Statement"][-1] == {
        "Sid": "AssumeRoles",
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Resource": [firm.role],
    }
    assert "sts:AssumeRole" not in json.dumps(there)
    firm.yard.user(firm.name, "ada", own)
    firm.trust(f"arn:aws:iam::{firm.own}:user/ada", policy=there)
    for key, value in firm.yard.environment_of(firm.name, "ada").items():
        monkeypatch.setenv(key, value)
    before = len(firm.yard.log)
    firm.planned("least")
    bought = berth("buy", "least#best", *BUY)
    assert bought.code == 0, bought.err
    assert firm.bought() == (1, 1)
    sent = [call for call in firm.yard.log[before:] if call["account_id"] in (firm.own, firm.there)]
    assert {
        f"{call['service']}:{call['operation']}" for call in sent if call["operation"] == "AssumeRole"
    } <= (VERBS["buy"] & VERBS["doctor"])
    assert sum(call["operation"] == "AssumeRole" for call in sent) == 1


def test_a_session_that_ends_in_the_middle_buys_exactly_once(
    firm: Firm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paid, the answer lost, the session over at the look: in doubt, then settled by looking, and once."""
    berth, yard = firm.berth, firm.yard
    firm.planned("middle")
    yard.fault("lost-reply", "PurchaseCapacityBlock", account=firm.there)
    pay = Door.buyer

    def buyer(door: Door, region: str, service: str = "sagemaker") -> Any:
        if door.identity.account == firm.there:
            yard.fault("expired-session", "Describe*", times=None, account=firm.there)
        return pay(door, region, service)

    with monkeypatch.context() as patch:
        patch.setattr(Door, "buyer", buyer)
        first = berth("buy", "middle#best", *BUY)
    assert first.code == 40, first.err
    assert "the look at AWS was not complete: DescribeCapacityReservations: RequestExpired" in said(first)
    assert first.money.startswith("not known whether 27,184.90 USD was paid, order middle/1.2")
    yard.clear_faults()
    again = berth("buy", "middle#best", *BUY)
    assert again.code == 0, again.err
    assert firm.bought() == (1, 1)
    yard.clock.advance(minutes=6)
    assert len([entry for entry in yard.ledger if entry["account_id"] == firm.there]) == 1
    shown = berth("show", "middle", "--json")
    assert (shown.code, shown.json["state"]) == (0, "bought"), shown.err


def test_no_secret_and_no_token_of_a_session_is_told_or_kept(
    firm: Firm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in what is printed, logged or written: refused at the paid call, bought then, shown, exported."""
    given: list[str] = []

    def hear(*, parsed: Any, **more: Any) -> None:
        check_answer(parsed=parsed, **more)
        keys = parsed.get("Credentials", {})
        given.extend(str(keys[name]) for name in ("SecretAccessKey", "SessionToken") if name in keys)

    monkeypatch.setattr("berth.aws.session.check_answer", hear)
    berth = firm.berth
    firm.planned("quiet")
    firm.yard.fault("expired-session", "PurchaseCapacityBlock", account=firm.there)
    ended = [berth("buy", "quiet#best", *BUY, "--json") for _ in range(2)]
    assert "RequestExpired" in ended[0].err
    assert [one.code == 0 for one in ended] == [False, True]
    doctor = ("doctor", firm.need("quiet"))
    ended += [berth(*words, "--json") for words in (("show", "quiet"), ("audit",), doctor)]
    said = [text for one in ended for text in (one.out, one.err)] + [caplog.text]
    home = Path(os.environ["BERTH_HOME"])
    kept = [file.read_bytes().decode("latin-1") for file in home.rglob("*") if file.is_file()]
    assert firm.bought() == (1, 1)
    assert len(given) >= 4
    for secret in given:
        assert not [text for text in (*said, *kept) if secret in text]
