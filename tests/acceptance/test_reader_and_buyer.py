"""Who reads and who buys are two users of one account, each with the printed policy and no right more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def test_who_only_reads_buys_and_extends_by_the_buyers_keys_alone(
    house: Any, berth: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two users of one account, with the policies that `berth policy` prints, no right more: the reader alone
    pays nothing, with the buyer's profile the paid calls pass, and the history says who paid."""
    may = {role: berth("policy", role).out for role in ("read", "buy")}
    house.account("parted", json.loads(may["read"]))
    house.user("parted", "buyer", json.loads(may["buy"]))
    for key, value in house.environment_of("parted").items():
        monkeypatch.setenv(key, value)
    keys = house.environment_of("parted", "buyer")
    (tmp_path / "credentials").write_text(
        f"[buyer]\naws_access_key_id = {keys['AWS_ACCESS_KEY_ID']}\n"
        f"aws_secret_access_key = {keys['AWS_SECRET_ACCESS_KEY']}\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    assert berth.plan("parted")["may_buy"] == "denied"
    alone = berth.buy("parted")
    assert (alone.code, alone.money) == (13, "nothing was spent")
    assert berth.buy("parted", "--buyer-profile", "buyer").code == 0
    house.clock.advance(minutes=6)
    longer = ("extend", "parted", "--by", "1d", "--yes", "--max", "500")
    assert (berth(*longer).code, berth(*longer, "--buyer-profile", "buyer").code) == (13, 0)
    said = [event["detail"] for event in berth("show", "parted", "--json").json["history"]]
    account = house.clients_of("parted").sts.get_caller_identity()["Account"]
    assert sum(f"paid by arn:aws:iam::{account}:user/buyer" in text for text in said) == 2


def test_a_plan_says_whether_whoever_asks_may_buy(
    house: Any, berth: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader's plan says so under its first line; the buyer's does not, nor that of who may not ask."""
    may = {role: json.loads(berth("policy", role).out) for role in ("read", "buy")}
    blind = json.loads(json.dumps(may["read"]))
    for statement in blind["Statement"]:
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        statement["Action"] = [one for one in actions if not one.startswith("iam:")]
    blind["Statement"] = [statement for statement in blind["Statement"] if statement["Action"]]
    said = {}
    for name, policy in (("plans", may["read"]), ("pays", may["buy"]), ("blind", blind)):
        house.account(name, policy)
        for key, value in house.environment_of(name).items():
            monkeypatch.setenv(key, value)
        need = berth.need(f"who-{name}")
        said[name] = berth("plan", need), berth("plan", need, "--json").json["may_buy"]
    assert {name: word for name, (_, word) in said.items()} == {
        "plans": "denied",
        "pays": "allowed",
        "blind": "not-asked",
    }
    told = " ".join(said["plans"][0].out.split())
    assert "user plans cannot buy: sagemaker:CreateTrainingPlan: no policy allows it." in told
    assert "--buyer-profile NAME" in told
    assert max(map(len, said["plans"][0].out.splitlines())) <= 80
    assert all("cannot buy" not in said[name][0].out for name in ("pays", "blind"))
    assert [ended.code for ended, _ in said.values()] == [0, 0, 0]
