"""Berth as a library at a yard: planned, bought once, found again; nothing printed, everything typed."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from berth import api


def test_a_program_plans_and_buys_once(berth: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Plan, buy, buy again: one sale; the command line knows the order; nothing was printed."""
    file = berth.need("program")
    heard: list[str] = []
    said: list[str] = []

    class Hears(api.Listener):
        def told(self, answer: api.PlaceAnswer, so_far: api.Plan | None) -> None:
            heard.append(answer.region)

    with api.connect(talk=said.append) as world:
        assert world.identity.rehearsal is not None
        plan = world.plan(world.read_need(file), Hears())
        assert plan.best is not None
        assert plan.best.fee is not None
        first = world.buy(plan, 1, most=plan.best.fee)
        again = world.buy(world.recall("program"), 1, most=plan.best.fee)
        orders = world.orders("program")
    assert (first.how, again.how) == (api.How.BOUGHT, api.How.ALREADY)
    assert [order.state for order in orders] == [api.OrderState.BOUGHT]
    assert heard == ["us-east-1"]
    assert said
    assert capsys.readouterr() == ("", "")
    assert [Decimal(sale["amount"]) for sale in berth.sold("program")] == [plan.best.fee.amount]
    assert berth("show", "program", "--json").json["state"] == "bought"


def test_what_is_over_the_bound_is_not_bought(berth: Any) -> None:
    """The error carries exit code and money, as the command line would tell them."""
    file = berth.need("dear")
    with api.connect() as world:
        plan = world.plan(world.read_need(file))
        with pytest.raises(api.BerthError) as refused:
            world.buy(plan, 1, most=api.Money(Decimal(1)))
        assert world.orders("dear") == ()
    assert refused.value.exit_code is api.ExitCode.DECISION_NEEDED
    assert refused.value.spent.line() == "nothing was spent"
    assert berth.sold("dear") == []


def test_money_that_may_have_left_is_told_by_the_error(berth: Any) -> None:
    """The answer to the paid call is lost and reads lag behind: not known, and which order; then found."""
    file = berth.need("lost")
    with api.connect() as world:
        plan = world.plan(world.read_need(file))
        assert plan.best is not None
        assert plan.best.fee is not None
        berth.yard.fault("lost-reply", "CreateTrainingPlan")
        berth.yard.fault("lag", times=None, amount=30)
        with pytest.raises(api.BerthError) as doubt:
            world.buy(plan, 1, most=plan.best.fee)
        assert doubt.value.spent.line().startswith("not known whether 228.77 USD was paid, order lost")
        berth.yard.clear_faults()
        assert world.buy(plan, 1, most=plan.best.fee).how is api.How.FOUND
    assert len(berth.sold("lost")) == 1


def test_a_wrong_need_says_all_that_is_wrong(berth: Any) -> None:
    """Complaints come at once, by line and key; a need nobody planned is not recalled."""
    file = berth.need("wrong", more='durations = "1d"\nutilisation = 7')
    with api.connect() as world:
        with pytest.raises(api.SettingsError) as wrong:
            world.read_need(file)
        with pytest.raises(api.BerthError, match="no plan of nobody"):
            world.recall("nobody")
    assert {"durations", "utilisation"} <= {word for line in wrong.value.lines() for word in line.split(": ")}


def test_a_program_extends_once(berth: Any) -> None:
    """Bought, found, and told what is wrong; `berth show` knows of it."""
    file = berth.need("longer")
    with api.connect() as world:
        world.buy(world.plan(world.read_need(file)), 1, most=api.Money(Decimal(500)))
        berth.yard.clock.advance(minutes=6)
        with pytest.raises(api.BerthError) as dear:
            world.extend("longer", by="2d", most=api.Money(Decimal(1)))
        assert (dear.value.exit_code, dear.value.spent.line()) == (15, "nothing was spent")
        first = world.extend("longer", by="2d", most=api.Money(Decimal(600)))
        again = world.extend("longer", by="2d", most=api.Money(Decimal(600)))
        until = world.extend("longer", until=first.until, most=api.Money(Decimal(600)))
        with pytest.raises(ValueError, match="exactly one of by and until"):
            world.extend("longer", most=api.Money(Decimal(600)))
    hows = (first.how, again.how, until.how)
    assert hows == (api.HowExtended.BOUGHT, api.HowExtended.ALREADY, api.HowExtended.ALREADY)
    assert len(berth.yard.log_of("ExtendTrainingPlan")) == 1
    assert [one["state"] for one in berth("show", "longer", "--json").json["extensions"]] == ["bought"]


def test_rules_hold_for_a_program_and_a_proof_lets_it_go_on(
    berth: Any, approving: Any, approve: Any, tmp_path: Path
) -> None:
    """The gate is that of the command line: refused without a word from somebody else, bought with it."""
    approving()
    file = berth.need("ruled")
    with api.connect() as world:
        plan = world.plan(world.read_need(file))
        with pytest.raises(api.BerthError, match="nobody has approved it") as refused:
            world.buy(plan, 1, most=api.Money(Decimal(500)))
        assert refused.value.spent.line() == "nothing was spent"
        (request,) = berth("approvals", "ls", "--json").json["approvals"]
        assert approve(request["hash"]).code == 0
        bought = world.buy(plan, 1, most=api.Money(Decimal(500)), proof=tmp_path / "proof.json")
    assert bought.how is api.How.BOUGHT
    assert len(berth.sold("ruled")) == 1


def test_the_promised_names_are_there() -> None:
    """What `__all__` names can be imported, and nothing of it is private."""
    assert all(hasattr(api, name) and not name.startswith("_") for name in api.__all__)
