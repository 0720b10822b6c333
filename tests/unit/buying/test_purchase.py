"""Buying once: the paid call, what may go wrong around it, and what is then known about money."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from berth.orders.order import OrderKey, OrderState
from berth.orders.purchase import How
from berth.planner.offers import PlaceOutcome
from berth.terms.outcomes import BerthError, ExitCode, Spent

LOST = ["lost reply", "500 after", "malformed", "no ARN"]
CERTAIN = {
    "gone": ExitCode.DECISION_NEEDED,
    "throttled": ExitCode.THROTTLED,
    "no quota": ExitCode.QUOTA,
    "no line": ExitCode.INCOMPLETE,
}


def test_a_purchase_pays_once_and_reads_back(world: Any) -> None:
    """The plan is bought under the order's name, with our mark, at the fee that was approved."""
    bought = world.buy()
    assert bought.how is How.BOUGHT
    assert bought.order.state is OrderState.BOUGHT
    assert world.aws.ledger == [(bought.order.reservation_name, Decimal("228.77"))]
    assert world.aws.tags[bought.order.reservation_arn]["berth:order"] == "111122223333/eval/1"
    assert bought.seen is not None
    assert bought.seen.state == "Pending"
    assert world.warnings == []
    assert world.spending[-1].spent is Spent.PAID


def test_the_newly_returned_id_is_bought(world: Any) -> None:
    """Not the approved offer's old id, but that of the search made just before the call."""
    bought = world.buy()
    assert bought.order.attempt.offering_id != world.approved.offering_id
    narrowed = world.aws.searches[-1]
    assert narrowed.start_after == world.approved.paid_window.start - timedelta(seconds=1)
    assert narrowed.end_before == world.approved.paid_window.end + timedelta(seconds=1)


def test_buying_again_pays_nothing(world: Any) -> None:
    """The same order a second time is told that it is bought."""
    world.buy()
    assert world.buy().how is How.ALREADY
    assert len(world.aws.ledger) == 1


@pytest.mark.parametrize("fault", LOST)
def test_a_lost_answer_is_found_by_looking(world: Any, fault: str) -> None:
    """The call is never repeated: the plan is found by its name and mark (field fault 1)."""
    world.aws.fault = fault
    assert world.buy().how is How.FOUND
    assert world.buy().how is How.ALREADY
    assert len(world.aws.ledger) == 1
    assert world.effects.log.count("CreateTrainingPlan:before") == 1


@pytest.mark.parametrize("fault", LOST)
def test_a_lost_answer_with_lag_stays_unknown_until_it_shows(world: Any, fault: str) -> None:
    """AWS shows the write 5 minutes late: unknown, exit 40, then adopted; never bought again."""
    world.aws.fault, world.aws.lag = fault, timedelta(minutes=5)
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert caught.value.exit_code is ExitCode.OUTCOME_UNKNOWN
    assert caught.value.spent.line().startswith("not known whether 228.77 USD was paid, order eval:")
    with pytest.raises(BerthError):
        world.buy()
    world.clock.advance(minutes=5)
    assert world.buy().how is How.FOUND
    assert len(world.aws.ledger) == 1


def test_not_bought_takes_complete_looks_over_six_minutes(world: Any) -> None:
    """A 500 that did nothing is known to have done nothing only after looks that span six minutes."""
    world.aws.fault = "500 before"
    for minutes in (0, 2, 3.9):
        world.clock.advance(minutes=minutes)
        with pytest.raises(BerthError) as caught:
            world.buy()
        assert caught.value.exit_code is ExitCode.OUTCOME_UNKNOWN
    assert world.aws.ledger == []
    world.clock.advance(minutes=0.2)
    bought = world.buy()
    assert bought.how is How.BOUGHT
    assert bought.order.attempt.number == 2
    assert bought.order.key.sequence == 1
    assert len(world.aws.ledger) == 1


def test_one_look_long_after_is_not_enough(world: Any) -> None:
    """However late the first look comes, a second one six minutes after it is needed."""
    world.aws.fault = "500 before"

    def fail_after_the_call(operation: str) -> None:
        if "CreateTrainingPlan:before" in world.effects.log:
            raise TimeoutError(operation)

    world.aws.read_fault = fail_after_the_call
    with pytest.raises(BerthError):
        world.buy()
    world.aws.read_fault = lambda operation: None
    world.clock.advance(hours=12)
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert caught.value.exit_code is ExitCode.OUTCOME_UNKNOWN


@pytest.mark.parametrize("operation", ["DescribeTrainingPlan", "ListTrainingPlans"])
def test_incomplete_looks_never_settle(world: Any, operation: str) -> None:
    """A look of which one read failed proves nothing, however long the looks go on."""
    world.aws.fault = "500 before"
    with pytest.raises(BerthError):
        world.buy()
    world.clock.advance(minutes=10)

    def fail(asked: str) -> None:
        if asked == operation:
            raise TimeoutError(asked)

    world.aws.read_fault = fail
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert caught.value.exit_code is ExitCode.OUTCOME_UNKNOWN
    assert any(operation in said for said in world.warnings)
    assert world.aws.ledger == []


@pytest.mark.parametrize("fault", CERTAIN)
def test_a_certain_refusal_spends_nothing(world: Any, fault: str) -> None:
    """A refusal that says that nothing was done ends with its own exit code and 'nothing was spent'."""
    world.aws.fault = fault
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert caught.value.exit_code is CERTAIN[fault]
    assert caught.value.spent.line() == "nothing was spent"
    assert world.order().state is OrderState.REFUSED
    assert world.spending[-1].spent is Spent.NOTHING
    assert world.buy().how is How.BOUGHT
    assert len(world.aws.ledger) == 1


def test_a_code_that_nobody_knows_is_unknown(world: Any) -> None:
    """An error code outside of the table proves nothing about money."""
    world.aws.fault = "strange"
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert caught.value.exit_code is ExitCode.OUTCOME_UNKNOWN


def test_a_moved_price_is_a_decision(world: Any) -> None:
    """One cent more, with room under the cap: nothing is bought, and both prices are named."""
    world.aws.fee = Decimal("228.78")
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert caught.value.exit_code is ExitCode.DECISION_NEEDED
    assert "the price moved: 228.77 USD to 228.78 USD" in caught.value.message
    assert "(+0.01 USD)" in caught.value.message
    assert world.aws.ledger == []
    assert world.journal.order(OrderKey("111122223333", "eval", 1)) is None


def test_an_offer_that_is_gone_is_a_decision(world: Any) -> None:
    """Sold out between plan and purchase: exit 15, and the next is never bought silently (field fault 8)."""
    world.aws.zone_id = "use1-az6"
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert caught.value.exit_code is ExitCode.DECISION_NEEDED
    assert "the offer is gone" in caught.value.message
    assert "use1-az6: 228.77 USD (+0.00 USD)" in caught.value.message
    assert world.aws.ledger == []


def test_a_search_that_fails_is_not_an_offer_that_is_gone(world: Any) -> None:
    """Throttled while searching again: exit 12, not 15."""
    world.aws.on_sale, world.aws.outcome = False, PlaceOutcome.THROTTLED
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert caught.value.exit_code is ExitCode.THROTTLED


def test_the_cap_holds(world: Any) -> None:
    """A fee over --max is refused before the intent."""
    with pytest.raises(BerthError) as caught:
        world.buy(cap="228.76")
    assert caught.value.exit_code is ExitCode.DECISION_NEEDED
    assert world.aws.ledger == []


def test_an_immediate_offer_moves_with_the_clock(world: Any) -> None:
    """Twenty minutes later it starts later and costs less, at the same rate: that is the same offer."""
    world.aws.starts_at_once = True
    world.approved = world.aws.offer()
    world.clock.advance(minutes=20)
    bought = world.buy(cap="500")
    assert bought.how is How.BOUGHT
    assert world.aws.ledger[0][1] < world.approved.fee.amount
    assert world.aws.searches[-1].start_after is None


def test_an_immediate_offer_too_late_is_gone(world: Any) -> None:
    """More than thirty minutes later it is another offer."""
    world.aws.starts_at_once = True
    world.approved = world.aws.offer()
    world.clock.advance(minutes=31)
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert "the offer is gone" in caught.value.message


def test_an_immediate_offer_at_another_rate_moved(world: Any) -> None:
    """A higher rate hides behind fewer hours: the total fell, the rate did not stay."""
    world.aws.starts_at_once = True
    world.approved = world.aws.offer()
    world.clock.advance(minutes=29)
    world.aws.fee += Decimal("1")
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert "hourly rate moved" in caught.value.message


def test_a_look_alike_goes_to_a_person(world: Any) -> None:
    """Our name without our mark is not ours: nothing is bought, nothing adopted."""
    bought = world.buy()
    world.aws.tags[bought.order.reservation_arn] = {}
    other = type(world)(world.file.parent.parent)
    other.aws = world.aws
    with pytest.raises(BerthError) as caught:
        other.buy()
    assert caught.value.exit_code is ExitCode.DECISION_NEEDED
    assert caught.value.spent.spent is Spent.NOTHING
    assert len(world.aws.ledger) == 1
    other.journal.close()


def test_a_look_alike_found_in_doubt_is_disputed(world: Any, crash: type[BaseException]) -> None:
    """A plan of our name that shows up without our mark while an outcome is unknown settles nothing."""
    world.aws.fault = "500 before"
    with pytest.raises(BerthError):
        world.buy()
    world.aws.sell(world.order().reservation_name, world.approved, {})
    world.clock.advance(minutes=10)
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert caught.value.exit_code is ExitCode.OUTCOME_UNKNOWN
    assert "look-alike" in caught.value.message
    assert world.order().state is OrderState.DISPUTED


def test_another_journal_adopts_what_carries_our_mark(world: Any, make_world: Callable[[], Any]) -> None:
    """Two machines that order the same need make one plan: the name is the lock, the mark the proof."""
    world.buy()
    other = make_world()
    other.aws = world.aws
    bought = other.buy()
    assert bought.how is How.FOUND
    assert bought.order.state is OrderState.BOUGHT
    assert len(world.aws.ledger) == 1


def test_a_name_in_use_is_looked_at(world: Any, make_world: Callable[[], Any]) -> None:
    """Another machine buys between our look and our call: ResourceInUse, then adoption."""
    other = make_world()
    other.aws = world.aws
    real = world.aws.create_training_plan

    def race(**request: Any) -> Any:
        world.aws.create_training_plan = real
        other.buy()
        return real(**request)

    world.aws.create_training_plan = race
    assert world.buy().how is How.FOUND
    assert len(world.aws.ledger) == 1


def test_a_second_buyer_is_told_that_it_is_being_bought(world: Any, make_world: Callable[[], Any]) -> None:
    """While one process is inside the paid call, another one on the same journal does not call."""
    told: list[BerthError] = []
    real = world.aws.create_training_plan

    def meanwhile(**request: Any) -> Any:
        mine, world.holders.name = world.holders.name, "p9"
        world.holders.alive.add("p9")
        world.clock.advance(minutes=20)
        with pytest.raises(BerthError) as caught:
            world.buy()
        told.append(caught.value)
        world.holders.name = mine
        return real(**request)

    world.aws.create_training_plan = meanwhile
    assert world.buy().how is How.BOUGHT
    assert told[0].exit_code is ExitCode.OUTCOME_UNKNOWN
    assert "already being bought" in told[0].message
    assert len(world.aws.ledger) == 1


def test_a_failed_payment_makes_the_order_failed(world: Any) -> None:
    """A plan that AWS fails is of no use: the order says so, and the next one has another name."""
    world.buy()
    world.aws.plans[world.order().reservation_name]["Status"] = "Failed"
    with pytest.raises(BerthError) as caught:
        world.buy()
    assert caught.value.exit_code is ExitCode.DECISION_NEEDED
    assert world.order().state is OrderState.FAILED


MEMBERS = [
    "TrainingPlanName", "Status", "StatusMessage", "UpfrontFee", "CurrencyCode", "StartTime", "EndTime",
    "TotalInstanceCount", "AvailableInstanceCount", "InUseInstanceCount", "TargetResources",
    "ReservedCapacitySummaries", "TrainingPlanArn",
]  # fmt: skip


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("value", [None, "strange", 7, [], [None]])
def test_a_strange_answer_after_the_purchase_is_a_warning(world: Any, member: str, value: object) -> None:
    """Bought stays bought, whatever the description leaves out or adds (field faults 2 and 40)."""

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        del answer[member]
        return answer if value is None else {**answer, member: value, "Unheard": {"Of": 1}}

    world.aws.change_answer = change
    bought = world.buy()
    assert bought.order.state is OrderState.BOUGHT
    assert world.buy().how is How.ALREADY
    assert len(world.aws.ledger) == 1


def test_reading_back_may_fail(world: Any) -> None:
    """After the purchase a failure is one of reporting: the purchase stands, with a warning."""

    def fail(operation: str) -> None:
        if world.aws.ledger:
            raise TimeoutError(operation)

    world.aws.read_fault = fail
    assert world.buy().order.state is OrderState.BOUGHT
    assert any("could not be read" in said for said in world.warnings)
