"""`berth doctor` at a yard over HTTP: what is there, missing, or not known; it spends nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import botocore.auth
import botocore.compat
import pytest

from berth.aws.permissions import Role
from berth.aws.policies import Scope, policy
from berth.terms.clock import SystemClock

BLOCKS = """
name = "eval"
instance_type = "p5.48xlarge"
count = {count}
duration = "24h"
target = "instances"
regions = [{regions}]
[launch]
image = "{image}"
"""

SERVED = """
name = "served"
instance_type = "ml.p6-b200.48xlarge"
count = 16
duration = "24h"
target = "endpoint"
regions = ["us-east-1"]
"""


class Doctor:
    """The command line of one account with one policy."""

    def __init__(self, berth: Any, account: str) -> None:
        self.berth = berth
        self.clients = berth.yard.clients_of(account)
        self.image: str = self.clients.ec2.describe_images()["Images"][0]["ImageId"]

    def __call__(self, *more: str, count: int = 2, regions: str = '"us-east-1"') -> Any:
        """Run `berth doctor` for a need of instances."""
        file = self.berth.folder / "eval.toml"
        file.write_text(BLOCKS.format(count=count, regions=regions, image=self.image))
        return self.berth("doctor", str(file), *more)


@pytest.fixture
def doctor(house: Any, at_yard: Callable[..., Any]) -> Iterator[Callable[..., Doctor]]:
    """Makes the command line of an account: `doctor("name", policy)`."""

    def make(name: str, document: dict[str, Any] | None = None) -> Doctor:
        house.account(name, document)
        return Doctor(at_yard(house, name), name)

    yield make
    house.clear_faults()


def found(ended: Any) -> dict[str, dict[str, Any]]:
    """The findings of an answer in JSON, by what they are about."""
    return {one["what"]: one for one in ended.json["findings"]}


def test_where_nothing_is_missing_it_is_done_and_nothing_was_spent(
    house: Any, doctor: Callable[..., Doctor]
) -> None:
    """Each Region, right and quota is told; no call of it wrote anything, and nothing was billed."""
    run = doctor("whole")
    before = len(house.log)
    ended = run("--json")
    assert ended.code == 0, ended.out
    assert ended.json["schema"] == "berth.doctor/1"
    assert {one["state"] for one in ended.json["findings"]} == {"ok"}
    assert {"us-east-1", "plan", "buy", "launch", "clean", "caller", "clock"} <= set(found(ended))
    assert found(ended)["us-east-1 L-DA6814F2"]["wanted"] == 384
    assert not any(call["wrote"] for call in house.log[before:])
    assert house.ledger == []
    text = run().out
    assert "  ok       buy: all " in text
    assert max(map(len, text.splitlines())) <= 80 or str(run.berth.folder) in text


def test_a_policy_for_reading_lacks_what_buys(doctor: Callable[..., Doctor]) -> None:
    """Exit 13; the verbs that lack something are named with the command that prints their policy."""
    ended = doctor("reader", policy(Role.READ, Scope()))("--json")
    assert ended.code == 13
    assert found(ended)["plan"]["state"] == "ok"
    assert found(ended)["buy"]["state"] == found(ended)["launch"]["state"] == "missing"
    says = {one["action"]: one["say"] for one in found(ended)["buy"]["rights"]}
    assert says["ec2:PurchaseCapacityBlock"] == "denied"
    assert says["ec2:DescribeCapacityBlockOfferings"] == "allowed"
    assert "ask for the rights of: berth policy buy --region us-east-1" in ended.json["todo"]
    assert ended.err.strip().endswith("nothing was spent")


def test_without_the_right_to_ask_iam_nothing_is_fine(doctor: Callable[..., Doctor]) -> None:
    """What DryRun tells is known; what only doing would tell is unknown: exit 14, and who can help."""
    document = policy(Role.BUY, Scope())
    for statement in document["Statement"]:
        statement["Action"] = [one for one in statement["Action"] if not one.startswith("iam:")]
    document["Statement"] = [one for one in document["Statement"] if one["Action"]]
    run = doctor("unasked", document)
    ended = run("--json")
    assert ended.code == 14
    assert found(ended)["simulation"]["state"] == "unknown"
    says = {one["action"]: one["say"] for one in found(ended)["buy"]["rights"]}
    assert says["ec2:DescribeCapacityReservations"] == "allowed"
    assert says["ec2:PurchaseCapacityBlock"] == "not-asked"
    assert any("iam:SimulatePrincipalPolicy" in one for one in ended.json["todo"])


def test_a_quota_that_is_too_small_has_the_command_that_asks_for_more(
    doctor: Callable[..., Doctor],
) -> None:
    """SageMaker's reserved capacity and its endpoint usage are two; an open request is seen, not repeated."""
    run = doctor("small")
    file = run.berth.folder / "served.toml"
    file.write_text(SERVED)
    ended = run.berth("doctor", str(file), "--json")
    assert ended.code == 11
    plans, reserved, usage = (one for one in ended.json["findings"] if one["topic"] == "quotas")
    assert (plans["state"], usage["state"], usage["name"]) == (
        "ok", "ok", "ml.p6-b200.48xlarge for endpoint usage",
    )  # fmt: skip
    assert (reserved["state"], reserved["value"], reserved["wanted"]) == ("missing", 8.0, 16)
    asks = f"--region us-east-1 --service-code sagemaker --quota-code {reserved['code']}"
    assert reserved["todo"] == f"aws service-quotas request-service-quota-increase {asks} --desired-value 16"
    run.clients("service-quotas").request_service_quota_increase(
        ServiceCode="sagemaker", QuotaCode=reserved["code"], DesiredValue=16
    )
    again = run.berth("doctor", str(file), "--json")
    (waiting,) = (one for one in again.json["findings"] if one["state"] == "missing")
    assert waiting["pending"] == [{"value": 16.0, "status": "PENDING"}]
    assert waiting["todo"].startswith(
        "aws service-quotas list-requested-service-quota-change-history-by-quota"
    )


def test_on_demand_that_is_too_small_is_a_warning_for_a_block(doctor: Callable[..., Doctor]) -> None:
    """A block does not count against it (field fault 37)."""
    ended = doctor("warned")("--json", count=64)
    short = found(ended)["us-east-1 L-417A185B"]
    assert (short["state"], short["only_for"]) == ("warning", "on demand")
    assert ended.code == 0


def test_a_mistyped_region_is_named_with_what_was_meant(doctor: Callable[..., Doctor]) -> None:
    """The others are looked at all the same."""
    ended = doctor("mistyped")("--json", regions='"us-east-1", "us-esat-1"')
    assert found(ended)["us-esat-1"]["state"] == "missing"
    assert "us-east-1" in found(ended)["us-esat-1"]["said"]
    assert found(ended)["us-east-1"]["state"] == "ok"
    assert {one["region"] for one in ended.json["findings"] if one["topic"] == "quotas"} == {"us-east-1"}
    assert ended.json["todo"] == ["write Regions like us-east-1"]


def test_an_image_that_is_not_there_is_missing(doctor: Callable[..., Doctor]) -> None:
    """Before the window is open and the clock of a paid block runs."""
    run = doctor("pictured")
    run.image = "ami-0123456789abcdef0"
    ended = run("--json")
    assert ended.code == 20
    assert found(ended)["image ami-0123456789abcdef0"]["state"] == "missing"


def test_a_clock_five_minutes_off_is_told_though_every_call_is_refused(
    doctor: Callable[..., Doctor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signing fails, so the login looks broken: the clock is what to mend, and no login is renewed for it."""
    run = doctor("late")
    off, now = timedelta(minutes=5, seconds=30), SystemClock.now

    def skewed(remove_tzinfo: bool = True) -> datetime:
        return botocore.compat.get_current_datetime(remove_tzinfo) - off

    monkeypatch.setattr(botocore.auth, "get_current_datetime", skewed)
    monkeypatch.setattr(SystemClock, "now", lambda self: now(self) - off)
    ended = run("--json")
    assert ended.code == 13
    assert found(ended)["caller"]["state"] == found(ended)["clock"]["state"] == "missing"
    assert -335 < found(ended)["clock"]["ahead_s"] < -325
    assert ["set the clock of this machine" in one for one in ended.json["todo"]] == [True]


def test_without_keys_the_rest_of_what_this_machine_knows_is_told(
    doctor: Callable[..., Doctor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SDK and journal are looked at; the clock is unknown; exit 13 with the command that brings keys."""
    run = doctor("keyless")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    ended = run("--json")
    assert ended.code == 13
    assert ended.json["account"] is None
    assert {one["topic"]: one["state"] for one in ended.json["findings"]} == {
        "identity": "missing", "clock": "unknown", "SDK": "ok", "journal": "ok",
    }  # fmt: skip
    assert ended.json["todo"][0].startswith("eval")


def test_a_journal_that_cannot_be_written_is_missing(
    doctor: Callable[..., Doctor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a need too: login, clock, Regions, SDK and journal are always looked at."""
    run = doctor("unwritten")
    blocked = run.berth.folder / "a-file"
    blocked.write_text("")
    monkeypatch.setenv("BERTH_HOME", str(blocked / "home"))
    ended = run.berth("doctor", "--json")
    assert ended.code == 20
    assert found(ended)["journal"]["state"] == "missing"
    assert {one["topic"] for one in ended.json["findings"]} == {
        "identity",
        "clock",
        "SDK",
        "journal",
        "Regions",
    }
