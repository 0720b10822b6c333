"""Buying, deploying and clearing up through the command line, against a yard over HTTP, under its faults."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

ROLE = "arn:aws:iam::123456789012:role/serving"
ECHO = f"""
[deployment]
image = "rehearsal/echo:1"
data = "model"
role = "{ROLE}"
"""


def test_a_plan_is_bought_once(berth: Any) -> None:
    """Planned, bought, shown; bought again nothing is spent; books equal ledger."""
    fee = berth.plan("once")["choices"][0]["offer"]["fee"]["amount"]
    first = berth.buy("once", "--json")
    assert first.code == 0, first.err
    assert first.json["state"] == "bought"
    again = berth.buy("once")
    assert again.code == 0
    assert "bought already" in again.err
    assert [Decimal(sale["amount"]) for sale in berth.sold("once")] == [Decimal(fee)]
    assert berth("show", "once", "--json").json["money"]["line"] == f"paid {fee} USD, order once"


@pytest.mark.parametrize("fault", ["lost-reply", "error-after-commit", "malformed-body"])
def test_a_lost_answer_is_one_plan_found_again(berth: Any, fault: str) -> None:
    """The answer is lost after the sale: found by name and mark, one call in the yard's log."""
    berth.plan(fault)
    before = len(berth.yard.log_of("CreateTrainingPlan"))
    berth.yard.fault(fault, "CreateTrainingPlan")
    ended = berth.buy(fault)
    assert ended.code == 0, ended.err
    assert "found in AWS" in ended.err
    assert berth.buy(fault).code == 0
    assert len(berth.sold(fault)) == 1
    assert len(berth.yard.log_of("CreateTrainingPlan")) == before + 1


def test_a_later_plan_of_the_same_need_replaces_nothing(berth: Any) -> None:
    """Field fault 3: an hour later every offering id is another one; planned and bought again, one sale."""
    first = berth.plan("stays")["choices"][0]["offer"]["offering_id"]
    assert berth.buy("stays").code == 0
    berth.yard.clock.advance(hours=1)
    later = berth.plan("stays")
    assert first not in {choice["offer"]["offering_id"] for choice in later["choices"]}
    again = berth.buy("stays")
    assert again.code in {0, 15}
    assert "nothing was spent" in again.err
    assert len(berth.sold("stays")) == 1


@pytest.mark.parametrize("verb", ["buy", "show", "clean", "deploy", "invoke", "run"])
def test_a_door_that_does_not_open_never_hides_an_order(
    berth: Any, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bought for all one knows, then the login is wrong: the last line still says what the journal knows."""
    berth.plan(f"shut-{verb}")
    berth.yard.fault("lag", "*")
    berth.yard.fault("lost-reply", "CreateTrainingPlan")
    assert berth.buy(f"shut-{verb}").code == 40
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    asked = {
        "buy": ("buy", f"shut-{verb}#1", "--yes", "--max", "500"),
        "invoke": ("invoke", f"shut-{verb}", "x"),
        "run": ("run", str(berth.folder / f"shut-{verb}.toml"), "--yes", "--max", "500"),
    }.get(verb, (verb, f"shut-{verb}"))
    ended = berth(*asked)
    assert ended.code == 13, ended.err
    assert ended.money.startswith(f"not known whether 228.77 USD was paid, order shut-{verb}: do not buy")


def test_a_journal_that_cannot_be_used_is_named(berth: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the folder should be: every verb says which journal and what to do; nothing is a trace."""
    blocked = berth.folder / "blocked"
    blocked.write_text("")
    need = berth.need("blocked")
    monkeypatch.setenv("BERTH_HOME", str(blocked))
    for asked in (("plan", str(need)), ("show",), ("buy", "blocked#1", "--yes", "--max", "500")):
        ended = berth(*asked)
        assert ended.code == 1
        assert f"the journal {blocked}/journal.sqlite cannot be used" in ended.err
        assert "BERTH_HOME" in ended.err
        assert ended.money == "nothing was spent"


def test_a_journal_that_cannot_be_read_is_no_journal_of_nothing(
    berth: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order may have been paid: not to be bought by hand. Where there is no journal, nothing was."""
    berth.plan("unread")
    assert berth.buy("unread").code == 0
    file = Path(os.environ["BERTH_HOME"]) / "journal.sqlite"
    file.write_text("no database " * 100)
    for asked in (("show", "unread"), ("buy", "unread#1", "--yes", "--max", "500")):
        ended = berth(*asked)
        assert ended.code == 1
        assert "what was paid for unread before is in it, and not known: do not buy by hand" in ended.err
    monkeypatch.setenv("BERTH_HOME", "/dev/null/none")
    assert "before" not in berth("show", "unread").err


def test_a_journal_that_fails_in_the_middle_is_named(berth: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full at the intent: the journal and what to do, no trace of a fault, nothing paid."""
    from berth.orders.journal import Journal

    def full(*_: Any, **__: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    berth.plan("middle")
    monkeypatch.setattr(Journal, "intend", full)
    ended = berth.buy("middle")
    assert ended.code == 1
    assert ended.money == "nothing was spent"
    assert "journal.sqlite cannot be used: database or disk is full" in " ".join(ended.err.split())
    assert "trace" not in ended.err
    assert berth.sold("middle") == []


def test_lagging_describes_leave_it_unknown(berth: Any) -> None:
    """A lost answer, reads 5 minutes late: exit 40, never a second call; known once the clock moved."""
    berth.plan("lag")
    berth.yard.fault("lag", "*")
    berth.yard.fault("lost-reply", "CreateTrainingPlan")
    ended = berth.buy("lag")
    assert ended.code == 40
    assert ended.money.startswith("not known whether 228.77 USD was paid, order lag: do not buy by hand")
    assert berth.buy("lag").code == 40
    assert berth("show", "lag").code == 40
    berth.yard.clock.advance(minutes=6)
    assert berth("show", "lag").code == 0
    assert berth.buy("lag").code == 0
    assert len(berth.sold("lag")) == 1


def test_a_plan_that_was_refused_can_be_bought_after(berth: Any) -> None:
    """Gone between search and purchase: exit 15 and nothing spent; a new plan is then bought."""
    berth.plan("gone")
    berth.yard.fault("gone", "CreateTrainingPlan")
    ended = berth.buy("gone")
    assert ended.code == 15, ended.err
    assert "the offer is gone" in ended.err
    assert ended.money == "nothing was spent"
    assert berth.sold("gone") == []


def test_a_moved_price_is_a_decision(berth: Any) -> None:
    """Dearer than planned, though under the cap: exit 15, both prices, nothing spent."""
    berth.plan("dearer")
    berth.yard.fault("price-change", "SearchTrainingPlanOfferings", amount="1.01")
    ended = berth.buy("dearer")
    assert ended.code == 15
    assert "the price moved: 228.77 USD to 231.06 USD" in ended.err
    assert ended.money == "nothing was spent"
    assert berth.sold("dearer") == []


def test_a_failed_payment_leads_to_a_new_name(berth: Any) -> None:
    """Payment fails: the order says so, nothing was spent, and the next purchase is order NAME/2."""
    berth.plan("payment")
    berth.yard.fault("payment-failure", "CreateTrainingPlan")
    assert berth.buy("payment").code == 0
    berth.yard.clock.advance(minutes=6)
    shown = berth("show", "payment", "--json")
    assert shown.json["state"] == "failed"
    assert shown.json["money"]["line"] == "nothing was spent"
    berth.plan("payment")
    second = berth.buy("payment", "--json")
    assert second.code == 0, second.err
    assert second.json["order"] == "payment/2"


def test_absent_members_and_unknown_values_are_warnings(berth: Any) -> None:
    """After the purchase a strange description is a warning, exit 0."""
    berth.plan("strange")
    absent = "UpfrontFee,TargetResources"
    berth.yard.fault("absent-members", "DescribeTrainingPlan", amount=absent, times=None)
    berth.yard.fault("unknown-values", "DescribeTrainingPlan", amount="Status", times=None)
    ended = berth.buy("strange")
    assert ended.code == 0, ended.err
    assert "does not show the reservation's fee" in ended.err
    assert berth.buy("strange").code == 0
    assert len(berth.sold("strange")) == 1


def test_without_a_terminal_nothing_is_bought(berth: Any) -> None:
    """Both --yes and --max are needed; neither alone buys."""
    berth.plan("asked")
    assert berth("buy", "asked#1").code == 15
    assert berth("buy", "asked#1", "--max", "500").code == 15
    assert berth("buy", "asked#1", "--yes").code == 2
    assert berth("buy", "asked#1", "--yes", "--max", "228.76").code == 15
    assert berth("buy", "asked#9", "--yes", "--max", "500").code == 20
    assert berth("buy", "nobody#1", "--yes", "--max", "500").code == 20
    assert berth("buy", "asked", "--yes", "--max", "500").code == 2
    assert berth.sold("asked") == []


def test_again_is_a_second_order(berth: Any) -> None:
    """--again buys one more, under a name of its own; NAME/2#1 names it and is safe to repeat."""
    berth.plan("twice")
    assert berth.buy("twice").code == 0
    again = berth.buy("twice", "--again", "--json")
    assert again.json["order"] == "twice/2"
    repeated = berth("buy", "twice/2#1", "--yes", "--max", "500")
    assert repeated.code == 0
    assert len(berth.sold("twice")) == 2


def test_one_more_that_was_refused_is_bought_only_when_asked_for(berth: Any) -> None:
    """--again refused: the name alone means the first again, for `buy`, `run`, `show`; no second is paid."""
    berth.plan("once-more")
    assert berth.buy("once-more").code == 0
    berth.yard.fault("gone", "CreateTrainingPlan")
    assert berth.buy("once-more", "--again").code != 0
    assert berth.buy("once-more", "--json").json["order"] == "once-more"
    assert (
        berth("run", berth.need("once-more"), "--yes", "--max", "500", "--json").json["order"] == "once-more"
    )
    assert berth("show", "once-more", "--json").json["order"] == "once-more"
    assert len(berth.sold("once-more")) == 1


def test_deploy_serve_and_clean(berth: Any) -> None:
    """Refused before Active; then in service on the reservation; cleared up in order, exit 31, then again."""
    berth.plan("serve", more=ECHO)
    assert berth.buy("serve").code == 0
    early = berth("deploy", "serve")
    assert early.code == 30
    assert "opens at" in early.err
    assert early.money == "paid 228.77 USD, order serve"
    berth.open_window("serve")
    deployed = berth("deploy", "serve", "--json")
    assert deployed.code == 0, deployed.err
    assert "reserved: 1 of 1 instances" in deployed.err
    answered = berth("invoke", "serve", '{"x": 1}')
    assert answered.out == '{"x": 1}'
    assert " ms" in answered.err
    assert berth("deploy", "serve").code == 0
    berth.yard.clock.advance(hours=6)
    cleaned = berth("clean", "serve", "--json")
    assert cleaned.code == 31, cleaned.err
    assert [what.rsplit(" ", 1)[0] for what in cleaned.json["removed"]] == [
        "endpoint", "endpoint configuration", "model",
    ]  # fmt: skip
    assert cleaned.json["report"]["used_s"] == 6 * 3600
    assert cleaned.json["unused"]["amount"] == "171.42"
    assert berth("clean", "serve").code == 31
    sagemaker = berth.yard.clients.sagemaker
    assert sagemaker.list_endpoints()["Endpoints"] == []
    assert sagemaker.list_models()["Models"] == []
    berth.yard.clock.advance(days=1)
    assert berth("clean", "serve").code == 0


def test_a_model_that_existed_stays(berth: Any) -> None:
    """--model uses a model of somebody's; clearing up leaves it, and a colleague's endpoint, alone."""
    sagemaker = berth.yard.clients.sagemaker
    sagemaker.create_model(
        ModelName="theirs", ExecutionRoleArn=ROLE, PrimaryContainer={"Image": "rehearsal/echo:1"}
    )
    berth.plan("borrow")
    assert berth.buy("borrow").code == 0
    berth.open_window("borrow")
    assert berth("deploy", "borrow", "--model", "nobody").code == 20
    deployed = berth("deploy", "borrow", "--model", "theirs")
    assert deployed.code == 0, deployed.err
    assert berth("clean", "borrow").code == 31
    assert [model["ModelName"] for model in sagemaker.list_models()["Models"]] == ["theirs"]


def test_a_plan_for_another_target_is_refused_locally(berth: Any) -> None:
    """Bought for training jobs: no endpoint call is sent; plans that fit are listed (field fault 16)."""
    berth.yard.seed.plan(name="fits", state="Active", target="endpoint")
    berth.plan("train", target="training-job")
    assert berth.buy("train").code == 0
    before = len(berth.yard.log_of("CreateEndpoint")) + len(berth.yard.log_of("CreateEndpointConfig"))
    ended = berth("deploy", "train", "--model", "any")
    assert ended.code == 20
    assert "training-job" in ended.err
    assert "fits: fits: Active" in ended.err
    after = len(berth.yard.log_of("CreateEndpoint")) + len(berth.yard.log_of("CreateEndpointConfig"))
    assert after == before


def test_run_goes_on_where_it_was(berth: Any) -> None:
    """`berth run` ends with a time to wait for; run again then, it deploys; at the end it clears up."""
    file = berth.need("whole", more=ECHO)
    first = berth("run", file, "--yes", "--max", "500")
    assert first.code == 0, first.err
    assert "waiting until" in first.out
    assert berth("run", file).code == 0
    berth.open_window("whole")
    serving = berth("run", file, "--json")
    assert serving.code == 0, serving.err
    assert serving.json["stage"] == "serving"
    berth.yard.clock.advance(hours=23, minutes=40)
    over = berth("run", file)
    assert over.code == 31
    assert "removed endpoint" in over.out
    assert len(berth.sold("whole")) == 1


def test_no_other_verb_spends(berth: Any) -> None:
    """Every read verb, every --help and a bad need leave no paid call in the log (field fault 9)."""
    before = len(berth.yard.log_of("CreateTrainingPlan"))
    berth.plan("look")
    for verb in ("plan", "buy", "deploy", "invoke", "show", "clean", "run"):
        assert berth(verb, "--help").code == 0
    berth("show")
    for verb in ("show", "deploy", "clean", "invoke"):
        berth(verb, "look", *(["x"] if verb == "invoke" else []))
    bad = berth.folder / "bad.toml"
    bad.write_text("name = 1\nunknown = 2")
    assert berth("run", str(bad), "--yes", "--max", "500").code == 20
    assert len(berth.yard.log_of("CreateTrainingPlan")) == before


def test_killed_between_call_and_reply(
    yard: Any, at_yard: Callable[..., Any], until: Callable[..., None]
) -> None:
    """Kill -9 while the yard stalls its answer: the next run finds the plan and pays nothing."""
    berth = at_yard(yard)
    berth.plan("killed")
    yard.fault("stall", "CreateTrainingPlan", amount="8")
    child = subprocess.Popen(
        [sys.executable, "-m", "berth", "buy", "killed#1", "--yes", "--max", "500"],
        env=berth.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until(lambda: any(event["kind"] == "training-plan" for event in yard.events))
    busy = berth.buy("killed")
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert busy.code == 0, busy.err  # it looked, and found what the other one had bought
    after = berth.buy("killed")
    assert after.code == 0, after.err
    assert len(berth.sold("killed")) == 1
    assert len(yard.log_of("CreateTrainingPlan")) == 1
