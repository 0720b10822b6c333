"""Field faults 1, 2, 8 and 40 with both halves in one process: the paid call lost, spoiled, and run again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from berth.orders.order import OrderState
from berth.terms.outcomes import ExitCode, Spent
from berth.yard.faults import FaultKind

from .exactly_once.books import sales
from .exactly_once.cases import BLOCK, NEED, PLAN, prepared
from .exactly_once.members import Change, How
from .exactly_once.settling import settle
from .exactly_once.troubles import Script, Trouble
from .exactly_once.verbs import buy, plan_for, show
from .exactly_once.world import Weather, World, world

WAYS = {"training plan": ("buy a training plan", 12), "block": ("buy a block", 15)}
"""The prepared world, and the number of the effect right before the paid call is sent."""
PAID = ("CreateTrainingPlan", "PurchaseCapacityBlock")


def paid_calls(made: World) -> int:
    """How many paid calls the service got."""
    return sum(made.wire.calls.get(one, 0) for one in PAID)


@pytest.mark.parametrize(
    "trouble", [Trouble.LOST_REPLY, Trouble.ERROR_AFTER, Trouble.LATE, Trouble.KILLED, Trouble.GARBLED]
)
@pytest.mark.parametrize("way", WAYS)
def test_the_purchase_call_cannot_be_deduplicated(way: str, trouble: Trouble) -> None:
    """Fault 1: cut after the commit, 500 after it, a stall, a process killed between call and reply."""
    name, paid = WAYS[way]
    with world(1, like=prepared(name)) as made:
        at = paid + 1 if trouble is Trouble.KILLED else paid
        first = made.run(buy, NEED, Script({at: trouble}))
        made.advance(minutes=2)
        again = settle(made, NEED)
        assert again.code is ExitCode.DONE
        assert first.was_killed or first.code in (ExitCode.DONE, ExitCode.OUTCOME_UNKNOWN)
        assert paid_calls(made) == 1
        assert settle(made, NEED).code is ExitCode.DONE
        assert paid_calls(made) == 1
        made.calm()
        settle(made, NEED)
        assert made.check() == 1


@pytest.mark.parametrize("member", ["tagSet", "endDateType", "availabilityZone", "state", "startDate"])
def test_an_answer_without_optional_fields_is_no_failed_purchase(member: str) -> None:
    """Fault 2: the paid call's answer lacks a field: bought, exit 0, and the next run buys nothing."""
    with world(1, like=prepared("buy a block")) as made:
        made.wire.spoil = Change("PurchaseCapacityBlock", How.ABSENT, member, member)
        assert made.run(buy, NEED).code is ExitCode.DONE
        assert made.run(buy, NEED).code is ExitCode.DONE
        assert paid_calls(made) == 1
        made.calm()
        assert made.check() == 1


def test_an_answer_with_a_member_that_nobody_knows() -> None:
    """Faults 2 and 40: every structure holds one unknown field more: bought, and nothing is said of it."""
    with world(1, like=prepared("buy a block")) as made:
        made.wire.spoil = Change("PurchaseCapacityBlock", How.ADDED)
        ended = made.run(buy, NEED)
        assert ended.code is ExitCode.DONE
        assert "warning" not in ended.said
        made.calm()
        assert made.check() == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_price_that_moved_between_search_and_purchase(way: str) -> None:
    """Nothing is bought, nothing else in its place, and the money line says so."""
    with world(1, like=prepared(WAYS[way][0])) as made:
        made.yard.arm(FaultKind.PRICE_CHANGE, "*", None, "1.15")
        ended = made.run(buy, NEED)
        assert ended.code is ExitCode.DECISION_NEEDED
        assert ended.money.spent is Spent.NOTHING
        assert paid_calls(made) == 0


@pytest.mark.parametrize("way", WAYS)
def test_sold_out_between_search_and_purchase(way: str) -> None:
    """The paid call is refused: known to have bought nothing."""
    with world(1, like=prepared(WAYS[way][0])) as made:
        made.yard.arm(FaultKind.GONE)
        ended = made.run(buy, NEED)
        assert ended.code is ExitCode.DECISION_NEEDED
        assert ended.money.spent is Spent.NOTHING
        assert not sales(made.yard)
        (order,) = made.journal(made.machines[0]).orders(made.account, NEED)
        assert order.state is OrderState.REFUSED


@pytest.mark.parametrize("way", WAYS)
def test_a_payment_that_fails_is_told_and_not_paid(way: str) -> None:
    """The reservation fails minutes later: the books hold nothing, and so does the ledger."""
    with world(1, like=prepared(WAYS[way][0])) as made:
        made.yard.arm(FaultKind.PAYMENT_FAILURE)
        made.run(buy, NEED)
        made.calm()
        made.run(show, NEED)
        assert made.check() == 0


def test_a_request_that_the_network_delivers_twice() -> None:
    """The second delivery finds the name taken; the order is bought once."""
    with world(1, like=prepared("buy a training plan")) as made:
        assert made.run(buy, NEED, Script({12: Trouble.TWICE})).code is ExitCode.DONE
        assert paid_calls(made) == 2
        made.calm()
        assert made.check() == 1


@pytest.mark.parametrize(("wish", "most"), [(PLAN, 1), (BLOCK, 2)], ids=["training plan", "block"])
def test_two_journals_buy_for_one_need_in_the_same_moment(wish: object, most: int) -> None:
    """A plan's name is the lock everywhere. Of blocks each journal may buy one, and a look names both."""
    weather = Weather(off=(timedelta(0), timedelta(0)), shared=False)
    with world(2, weather) as made:
        made.yard.arm(FaultKind.LAG, "*", None, "5")
        for machine in made.machines:
            settle(made, NEED, machine, plan_for(wish))  # type: ignore[arg-type]
            made.run(buy, NEED, machine=machine)
        made.calm()
        for machine in made.machines:
            settle(made, NEED, machine)
        made.check()
        assert len(sales(made.yard)) <= most


@pytest.mark.parametrize("way", WAYS)
def test_two_machines_with_one_journal_make_one_order(way: str, each: Callable[[str], int]) -> None:
    """Whatever comes first at each effect: one purchase, also where writes show late."""
    assert each(way) == 1


@pytest.fixture
def each() -> Callable[[str], int]:
    """Buys on two machines at once in twelve orders of events; the most reservations that came of it."""
    from .exactly_once.baton import Baton

    def played(way: str) -> int:
        most = 0
        for seed in range(12):
            with world(seed, Weather(off=(timedelta(0), timedelta(seconds=3)))) as made:
                settle(made, NEED, verb=plan_for(PLAN if way == "training plan" else BLOCK))
                made.yard.arm(FaultKind.LAG, "*", None, "5")
                Baton(made, made.chance).play(NEED, [buy, buy], made.machines, [Script(), Script()])
                made.calm()
                for machine in made.machines:
                    settle(made, NEED, machine)
                made.check()
                most = max(most, len(sales(made.yard)))
        return most

    return played
