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


def test_the_newly_returned_id_is_bought(shopper: Any) -> None:
    """Not the approved offer's old id, but that of the search made just before the call."""
    bought = shopper.buy()
    assert bought.order.attempt.offering_id != shopper.approved.offering_id
    narrowed = shopper.aws.searches[-1]
    assert narrowed.start_after == shopper.approved.paid_window.start - timedelta(seconds=1)
    assert narrowed.end_before == shopper.approved.paid_window.end + timedelta(seconds=1)


def test_buying_again_pays_nothing(shopper: Any) -> None:
    """The same order a second time is told that it is bought."""
    shopper.buy()
    assert shopper.buy().how is How.ALREADY
    assert len(shopper.aws.ledger) == 1


@pytest.mark.parametrize("fault", LOST)
def test_a_lost_answer_is_found_by_looking(shopper: Any, fault: str) -> None:
    """The call is never repeated: the plan is found by its name and mark (field fault 1)."""
    shopper.aws.fault = fault
    assert shopper.buy().how is How.FOUND
    assert shopper.buy().how is How.ALREADY
    assert len(shopper.aws.ledger) == 1
    assert shopper.effects.log.count(f"{shopper.aws.paid}:before") == 1


@pytest.mark.parametrize("fault", LOST)
def test_a_lost_answer_with_lag_stays_unknown_until_it_shows(shopper: Any, fault: str) -> None:
    """AWS shows the write 5 minutes late: unknown, exit 40, then adopted; never bought again."""
    shopper.aws.fault, shopper.aws.lag = fault, timedelta(minutes=5)
    with pytest.raises(BerthError) as caught:
        shopper.buy()
    assert caught.value.exit_code is ExitCode.OUTCOME_UNKNOWN
    assert caught.value.spent.line().startswith("not known whether 228.77 USD was paid, order eval:")
    with pytest.raises(BerthError):
        shopper.buy()
    shopper.clock.advance(minutes=5)
    assert shopper.buy().how is How.FOUND
    assert len(shopper.aws.ledger) == 1


def test_not_bought_takes_complete_looks_over_six_minutes(shopper: Any) -> None:
    """A 500 that did nothing is known to have done nothing only after looks that span six minutes."""
    shopper.aws.fault = "500 before"
    for minutes in (0, 2, 3.9):
        shopper.clock.advance(minutes=minutes)
        with pytest.raises(BerthError) as caught:
            shopper.buy()
        assert caught.value.exit_code is ExitCode.OUTCOME_UNKNOWN
    assert shopper.aws.ledger == []
    shopper.clock.advance(minutes=0.2)
    bought = shopper.buy()
    assert bought.how is How.BOUGHT
    assert bought.order.attempt.number == 2
    assert bought.order.key.sequence == 1
    assert len(shopper.aws.ledger) == 1


def test_a_clock_that_is_fast_until_it_is_told_settles_nothing_early(shopper: Any) -> None:
    """A new process believes its machine's clock until the first answer: 2 minutes fast make no 6 minutes.

    Found by the simulation: the paid reservation showed a second after it had been called absent, and a
    second one was paid.
    """
    shopper.aws.fault, shopper.aws.lag = "lost reply", timedelta(minutes=5)
    with pytest.raises(BerthError):
        shopper.buy()
    shopper.clock.advance(minutes=4, seconds=59)

    def told(operation: str) -> None:
        shopper.clock.ahead = timedelta(0)

    shopper.clock.ahead, shopper.aws.read_fault = timedelta(minutes=2), told
    with pytest.raises(BerthError) as caught:
        shopper.buy()
    assert caught.value.exit_code is ExitCode.OUTCOME_UNKNOWN
    shopper.clock.advance(minutes=1)
    assert shopper.buy().how is How.FOUND
    assert len(shopper.aws.ledger) == 1


def test_one_look_long_after_is_not_enough(shopper: Any) -> None:
    """However late the first look comes, a second one six minutes after it is needed."""
    shopper.aws.fault = "500 before"

    def fail_after_the_call(operation: str) -> None:
        if f"{shopper.aws.paid}:before" in shopper.effects.log:
            raise TimeoutError(operation)

    shopper.aws.read_fault = fail_after_the_call
    with pytest.raises(BerthError):
        shopper.buy()
    shopper.aws.read_fault = lambda operation: None
    shopper.clock.advance(hours=12)
    with pytest.raises(BerthError) as caught:
        shopper.buy()
    assert caught.value.exit_code is ExitCode.OUTCOME_UNKNOWN


@pytest.mark.parametrize(
    ("sells", "operation"),
    [
        ("plans", "DescribeTrainingPlan"),
        ("plans", "ListTrainingPlans"),
        ("blocks", "DescribeCapacityReservations"),
    ],
)
def test_incomplete_looks_never_settle(make_world: Callable[..., Any], sells: str, operation: str) -> None:
    """A look of which one read failed proves nothing, however long the looks go on."""
    world = make_world(sells)
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


def test_looks_after_the_window_prove_nothing(shopper: Any) -> None:
    """AWS stops showing reservations that have ended: not seeing one then is not 'not bought'."""
    shopper.aws.fault = "500 before"
    with pytest.raises(BerthError):
        shopper.buy()
    shopper.clock.at = shopper.approved.paid_window.end
    for _ in range(3):
        with pytest.raises(BerthError) as caught:
            shopper.buy()
        assert caught.value.exit_code is ExitCode.OUTCOME_UNKNOWN
        shopper.clock.advance(minutes=7)
    assert "the account's bill" in caught.value.message


@pytest.mark.parametrize("fault", CERTAIN)
def test_a_certain_refusal_spends_nothing(shopper: Any, fault: str) -> None:
    """A refusal that says that nothing was done ends with its own exit code and 'nothing was spent'."""
    shopper.aws.fault = fault
    with pytest.raises(BerthError) as caught:
        shopper.buy()
    assert caught.value.exit_code is CERTAIN[fault]
    assert caught.value.spent.line() == "nothing was spent"
    assert shopper.order().state is OrderState.REFUSED
    assert shopper.spending[-1].spent is Spent.NOTHING
    assert shopper.buy().how is How.BOUGHT
    assert len(shopper.aws.ledger) == 1


def test_a_code_that_nobody_knows_is_unknown(shopper: Any) -> None:
    """An error code outside of the table proves nothing about money."""
    shopper.aws.fault = "strange"
    with pytest.raises(BerthError) as caught:
        shopper.buy()
    assert caught.value.exit_code is ExitCode.OUTCOME_UNKNOWN


def test_a_moved_price_is_a_decision(shopper: Any) -> None:
    """One cent more, with room under the cap: nothing is bought, and both prices are named."""
    shopper.aws.fee = Decimal("228.78")
    with pytest.raises(BerthError) as caught:
        shopper.buy()
    assert caught.value.exit_code is ExitCode.DECISION_NEEDED
    assert "the price moved: 228.77 USD to 228.78 USD" in caught.value.message
    assert "(+0.01 USD)" in caught.value.message
    assert shopper.aws.ledger == []
    assert shopper.journal.order(OrderKey("111122223333", "eval", 1)) is None


def test_an_offer_that_is_gone_is_a_decision(shopper: Any) -> None:
    """Sold out between plan and purchase: exit 15, and the next is never bought silently (field fault 8)."""
    shopper.aws.zone_id = "use1-az6"
    with pytest.raises(BerthError) as caught:
        shopper.buy()
    assert caught.value.exit_code is ExitCode.DECISION_NEEDED
    assert "the offer is gone" in caught.value.message
    assert "use1-az6: 228.77 USD (+0.00 USD)" in caught.value.message
    assert shopper.aws.ledger == []


def test_a_search_that_fails_is_not_an_offer_that_is_gone(shopper: Any) -> None:
    """Throttled while searching again: exit 12, not 15."""
    shopper.aws.on_sale, shopper.aws.outcome = False, PlaceOutcome.THROTTLED
    with pytest.raises(BerthError) as caught:
        shopper.buy()
    assert caught.value.exit_code is ExitCode.THROTTLED


def test_the_cap_holds(shopper: Any) -> None:
    """A fee over --max is refused before the intent."""
    with pytest.raises(BerthError) as caught:
        shopper.buy(cap="228.76")
    assert caught.value.exit_code is ExitCode.DECISION_NEEDED
    assert shopper.aws.ledger == []


def test_an_immediate_offer_moves_with_the_clock(shopper: Any) -> None:
    """Twenty minutes later it starts later and costs less, at the same rate: that is the same offer."""
    shopper.aws.starts_at_once = True
    shopper.approved = shopper.aws.offer()
    shopper.clock.advance(minutes=20)
    bought = shopper.buy(cap="500")
    assert bought.how is How.BOUGHT
    assert shopper.aws.ledger[0][1] < shopper.approved.fee.amount
    assert shopper.aws.searches[-1].start_after is None


def test_an_immediate_offer_too_late_is_gone(shopper: Any) -> None:
    """More than thirty minutes later it is another offer."""
    shopper.aws.starts_at_once = True
    shopper.approved = shopper.aws.offer()
    shopper.clock.advance(minutes=31)
    with pytest.raises(BerthError) as caught:
        shopper.buy()
    assert "the offer is gone" in caught.value.message


def test_an_immediate_offer_at_another_rate_moved(shopper: Any) -> None:
    """A higher rate hides behind fewer hours: the total fell, the rate did not stay."""
    shopper.aws.starts_at_once = True
    shopper.approved = shopper.aws.offer()
    shopper.clock.advance(minutes=29)
    shopper.aws.fee += Decimal("1")
    with pytest.raises(BerthError) as caught:
        shopper.buy()
    assert "hourly rate moved" in caught.value.message


def test_a_look_alike_goes_to_a_person(world: Any, make_world: Any) -> None:
    """Our name without our mark is not ours: nothing is bought, nothing adopted."""
    bought = world.buy()
    world.aws.tags[bought.order.reservation_arn] = {}
    other = make_world()
    other.aws = world.aws
    with pytest.raises(BerthError) as caught:
        other.buy()
    assert caught.value.exit_code is ExitCode.DECISION_NEEDED
    assert caught.value.spent.spent is Spent.NOTHING
    assert len(world.aws.ledger) == 1


def test_a_look_alike_found_in_doubt_is_disputed(shopper: Any, crash: type[BaseException]) -> None:
    """A plan of our name that shows up without our mark while an outcome is unknown settles nothing."""
    shopper.aws.fault = "500 before"
    with pytest.raises(BerthError):
        shopper.buy()
    shopper.aws.sell_to_nobody(shopper.order(), shopper.approved)
    shopper.clock.advance(minutes=10)
    with pytest.raises(BerthError) as caught:
        shopper.buy()
    assert caught.value.exit_code is ExitCode.OUTCOME_UNKNOWN
    assert "look-alike" in caught.value.message
    assert shopper.order().state is OrderState.DISPUTED


@pytest.mark.parametrize("sells", ["plans", "blocks"])
def test_another_journal_adopts_what_carries_our_mark(make_world: Callable[..., Any], sells: str) -> None:
    """A colleague's run of the same need: told that it is bought already, and nothing is paid."""
    world, other = make_world(sells), make_world(sells)
    world.buy()
    other.aws = world.aws
    bought = other.buy()
    assert bought.how is How.ELSEWHERE
    assert bought.order.state is OrderState.BOUGHT
    assert bought.order.attempt.fee.amount == Decimal("228.77")
    assert len(world.aws.ledger) == 1


def test_a_name_in_use_is_looked_at(world: Any, make_world: Callable[..., Any]) -> None:
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


@pytest.mark.parametrize("sells", ["plans", "blocks"])
def test_a_second_buyer_is_told_that_it_is_being_bought(make_world: Callable[..., Any], sells: str) -> None:
    """While one process is inside the paid call, another one on the same journal does not call."""
    world = make_world(sells)
    told: list[BerthError] = []
    pays = world.aws.shop.pays
    real = getattr(world.aws, pays)

    def meanwhile(**request: Any) -> Any:
        mine, world.holders.name = world.holders.name, "p9"
        world.holders.alive.add("p9")
        world.clock.advance(minutes=20)
        with pytest.raises(BerthError) as caught:
            world.buy()
        told.append(caught.value)
        world.holders.name = mine
        return real(**request)

    setattr(world.aws, pays, meanwhile)
    assert world.buy().how is How.BOUGHT
    assert told[0].exit_code is ExitCode.OUTCOME_UNKNOWN
    assert "already being bought" in told[0].message
    assert len(world.aws.ledger) == 1


def test_a_failed_payment_makes_the_order_failed(shopper: Any) -> None:
    """A plan that AWS fails is of no use: the order says so, and the next one has another name."""
    shopper.buy()
    shopper.aws.fail_plan(shopper.order())
    with pytest.raises(BerthError) as caught:
        shopper.buy()
    assert caught.value.exit_code is ExitCode.DECISION_NEEDED
    assert shopper.order().state is OrderState.FAILED


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


def test_reading_back_may_fail(shopper: Any) -> None:
    """After the purchase a failure is one of reporting: the purchase stands, with a warning."""

    def fail(operation: str) -> None:
        if shopper.aws.ledger:
            raise TimeoutError(operation)

    shopper.aws.read_fault = fail
    assert shopper.buy().order.state is OrderState.BOUGHT
    assert any("could not be read" in said for said in shopper.warnings)
