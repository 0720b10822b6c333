"""A lost journal made anew: only marks make orders, twice is once, and what could not be read is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.orders.journal import Journal, open_journal
from berth.orders.names import FEE_TAG, ORDER_TAG, reservation_name
from berth.orders.order import OrderKey, OrderState, key_of_mark
from berth.orders.rebuild import Fate, Seen, marked_in, ours_by_name, restore
from berth.terms.outcomes import BerthError

from .fake_aws import ACCOUNT, KEY, client_error


class Nothing:
    """The service of which the account has nothing."""

    def describe_capacity_reservations(self, **request: Any) -> dict[str, Any]:
        """No blocks."""
        return {"CapacityReservations": []}

    def list_training_plans(self, **request: Any) -> dict[str, Any]:
        """No plans."""
        return {"TrainingPlanSummaries": []}


class Both:
    """A client of reservations and of their extensions."""

    def __init__(self, aws: Any, longer: Any) -> None:
        self._aws, self._longer = aws, longer

    def __getattr__(self, name: str) -> Any:
        """The operation, from whichever has it."""
        return getattr(self._longer if name.endswith("extension_history") else self._aws, name)


def seen_in(world: Any, longer: Any = None) -> Seen:
    """What one Region of the world shows; `longer` has the extensions (None: there are none)."""
    shown = Both(world.aws, longer or world.aws)
    blocks = hasattr(world.aws, "describe_capacity_reservations")
    ec2, sagemaker = (shown, Nothing()) if blocks else (Nothing(), shown)
    return marked_in("us-east-1", ec2, sagemaker, ACCOUNT)


def rebuilt(world: Any, journal: Journal) -> list[tuple[Fate, str | None]]:
    """What became of each reservation."""
    told = restore(journal, ACCOUNT, seen_in(world).found, world.clock.now)
    return [(one.fate, one.order) for one in told]


@pytest.fixture
def fresh(new_place: Callable[[], Any]) -> Journal:
    """A new journal, after the other was lost."""
    return open_journal(new_place(), "aws")


def test_orders_come_back_as_they_were(shopper: Any, fresh: Journal) -> None:
    """State, reservation, fee, window, count, type; a second run finds them known and writes nothing."""
    was = shopper.buy().order
    assert rebuilt(shopper, fresh) == [(Fate.RESTORED, "eval")]
    now = fresh.order(KEY)
    assert now is not None
    assert (now.state, now.reservation_arn) == (OrderState.BOUGHT, was.reservation_arn)
    assert now.attempt.fee == was.attempt.fee
    assert now.offer.paid_window == was.offer.paid_window
    assert (now.offer.instance_type, now.offer.count, now.offer.way, now.offer.target) == (
        was.offer.instance_type, was.offer.count, was.offer.way, was.offer.target,
    )  # fmt: skip
    history = fresh.events(KEY)
    assert rebuilt(shopper, fresh) == [(Fate.KNOWN, "eval")]
    assert fresh.events(KEY) == history
    assert len(shopper.aws.ledger) == 1


def test_a_restored_order_is_not_bought_again(shopper: Any, fresh: Journal) -> None:
    """The journal that was made anew guards as the lost one did."""
    shopper.buy()
    rebuilt(shopper, fresh)
    shopper.journal.close()
    shopper.journal = fresh
    assert shopper.buy().how.value == "already"
    assert len(shopper.aws.ledger) == 1


def test_a_look_alike_is_told_and_left(world: Any, fresh: Journal) -> None:
    """A plan with an order's name and without its mark becomes no order."""
    bought = world.buy().order
    world.aws.strip(bought)
    (told,) = restore(fresh, ACCOUNT, seen_in(world).found, world.clock.now)
    assert (told.fate, told.order) == (Fate.LEFT, None)
    assert "look-alike" in told.why
    assert fresh.orders(None) == ()


def test_a_block_without_a_mark_is_nobodys_order(make_world: Any, fresh: Journal) -> None:
    """A block that looks like what was ordered is not even named: thousands may look so."""
    world = make_world("blocks")
    world.aws.strip(world.buy().order)
    assert rebuilt(world, fresh) == []


def test_a_payment_that_failed_comes_back_as_failed(shopper: Any, fresh: Journal) -> None:
    """So that the next purchase of the need gets the next number, as before the loss."""
    shopper.aws.fail_plan(shopper.buy().order)
    assert rebuilt(shopper, fresh) == [(Fate.RESTORED, "eval")]
    order = fresh.order(KEY)
    assert order is not None
    assert order.state is OrderState.FAILED


def test_two_blocks_of_one_mark_are_one_order_and_a_warning(make_world: Any, fresh: Journal) -> None:
    """The older is the order; the other was paid too, and that is said."""
    world = make_world("blocks")
    first = world.buy().order
    world.clock.advance(minutes=1)
    offer = world.aws.offer()
    second = world.aws.sell(offer, {ORDER_TAG: KEY.mark, FEE_TAG: "228.77 USD"})
    told = restore(fresh, ACCOUNT, seen_in(world).found, world.clock.now)
    assert {one.reservation: one.fate for one in told}[second] is Fate.LEFT
    assert "paid as well" in next(one.why for one in told if one.reservation == second)
    order = fresh.order(KEY)
    assert order is not None
    assert order.reservation_arn == first.reservation_arn


def test_marks_of_others_are_left(make_world: Any, fresh: Journal) -> None:
    """Another account's order, and a tag that is no mark."""
    world = make_world("blocks")
    world.aws.sell(world.approved, {ORDER_TAG: "999988887777/eval/1", FEE_TAG: "1.00 USD"})
    world.aws.sell(world.approved, {ORDER_TAG: "somebody", FEE_TAG: "1.00 USD"})
    told = restore(fresh, ACCOUNT, seen_in(world).found, world.clock.now)
    assert [(one.fate, one.order) for one in told] == [(Fate.LEFT, None)] * 2
    assert fresh.orders(None) == ()


def test_an_unknown_fee_is_asked_for(make_world: Any, fresh: Journal) -> None:
    """AWS shows nobody what a block cost; without our tag it is unknown, and unknown is not zero."""
    world = make_world("blocks")
    world.aws.sell(world.approved, {ORDER_TAG: KEY.mark})
    (told,) = restore(fresh, ACCOUNT, seen_in(world).found, world.clock.now)
    assert told.fate is Fate.LEFT
    assert "berth adopt" in told.why
    assert fresh.orders(None) == ()


def test_an_order_in_doubt_is_left_to_looking(shopper: Any) -> None:
    """The journal holds an intent whose call may be under way: rebuilding does not conclude it."""
    shopper.aws.fault, shopper.aws.lag = "lost reply", timedelta(minutes=5)
    with pytest.raises(BerthError, match="not known"):
        shopper.buy()
    shopper.clock.advance(minutes=5)
    assert rebuilt(shopper, shopper.journal) == [(Fate.LEFT, "eval")]
    assert shopper.order().state is OrderState.UNKNOWN


def test_an_order_that_was_thought_refused_is_corrected(make_world: Any) -> None:
    """The journal says that nothing was bought; AWS shows the mark, so it was."""
    world = make_world("blocks")
    world.aws.fault = "throttled"
    with pytest.raises(BerthError, match="refused"):
        world.buy()
    world.aws.sell(world.approved, {ORDER_TAG: KEY.mark, FEE_TAG: "228.77 USD"})
    assert rebuilt(world, world.journal) == [(Fate.RESTORED, "eval")]
    assert world.order().state is OrderState.BOUGHT


@pytest.mark.parametrize("operation", ["ListTrainingPlans", "ListTags", "DescribeTrainingPlan"])
def test_what_could_not_be_read_is_a_trouble(world: Any, operation: str) -> None:
    """Each read that fails makes the look incomplete, and says which."""
    world.buy()

    def fault(called: str) -> None:
        if called == operation:
            raise client_error("AccessDeniedException")

    world.aws.read_fault = fault
    seen = seen_in(world)
    assert seen.troubles
    assert seen.found == ()


def test_every_page_is_read(make_world: Any, fresh: Journal) -> None:
    """More than one page, and every order is there."""
    for sells in ("plans", "blocks"):
        world = make_world(sells)
        world.aws.page_size = 1
        keys = [replace(KEY, sequence=number) for number in (1, 2, 3)]
        for key in keys:
            world.buy(key)
        assert len(seen_in(world).found) == 3


MEMBERS = (
    "TrainingPlanName", "Status", "UpfrontFee", "CurrencyCode", "StartTime", "EndTime", "TotalInstanceCount",
    "TargetResources", "ReservedCapacitySummaries", "State", "InstanceType", "StartDate", "EndDate",
    "AvailabilityZoneId", "InstancePlatform", "CreateDate", "ReservationType", "OwnerId",
)  # fmt: skip


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dropped=st.sets(st.sampled_from(MEMBERS)),
    strange=st.sampled_from([None, "", "later-state", 7, [], {}]),
    changed=st.sampled_from(MEMBERS),
)
@pytest.mark.parametrize("sells", ["plans", "blocks"])
def test_whatever_is_left_out_nothing_crashes(
    make_world: Any, sells: str, dropped: set[str], strange: Any, changed: str
) -> None:
    """Each reservation is restored, known, left with a reason, or told as not read; nothing is bought."""
    world = make_world(sells)
    world.buy()

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in answer.items() if name not in dropped}
        return {**kept, changed: strange} if changed in answer else kept

    world.aws.change_answer = change
    seen = seen_in(world)
    knows_nothing = open_journal(world.place, "another realm")
    told = restore(knows_nothing, ACCOUNT, seen.found, world.clock.now)
    assert all(one.why for one in told)
    assert told or seen.troubles or {"ReservationType", "TrainingPlanName"} & {*dropped, changed}
    assert len(world.aws.ledger) == 1
    knows_nothing.close()
    world.journal.close()


@pytest.mark.parametrize(
    "mark",
    ["", "eval", "1/eval/1", f"{ACCOUNT}/eval/0", f"{ACCOUNT}//1", f"{ACCOUNT}/a/b/1", f"{ACCOUNT}/e/1 "],
)
def test_what_is_no_mark_is_none(mark: str) -> None:
    """Twelve digits, a name, a number from 1."""
    assert key_of_mark(mark) is None


def test_marks_and_names_are_read_back() -> None:
    """What an order writes, it is known by."""
    key = OrderKey(ACCOUNT, "eval-1", 12)
    assert key_of_mark(key.mark) == key
    assert ours_by_name("eval-1-1-7k2m", ACCOUNT) is None
    assert ours_by_name(reservation_name(key), ACCOUNT) == key
    assert ours_by_name(reservation_name(key), "999988887777") is None
