"""Stopped at every effect and run again: nothing is bought twice, nothing is lost, books equal ledger."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from berth.orders.order import OrderState
from berth.orders.wording import reservation_id
from berth.terms.outcomes import BerthError, ExitCode

FAULTS = [None, "lost reply", "500 after", "500 before", "malformed", "no ARN"]
WAYS = ["plans", "blocks"]
LAGS = [timedelta(0), timedelta(minutes=5)]


def run_until_bought(world: Any, most: int = 12) -> None:
    """Run the purchase again and again, three minutes apart, until it says that the plan is bought."""
    for _ in range(most):
        try:
            world.buy()
        except BerthError as error:
            assert error.exit_code is ExitCode.OUTCOME_UNKNOWN  # noqa: PT017 - any other end is a fault
            world.clock.advance(minutes=3)
        else:
            return
    raise AssertionError("never settled")


def books_equal_ledger(world: Any) -> None:
    """One sale, one order, of the same reservation and fee."""
    order = world.order()
    assert order.state is OrderState.BOUGHT
    assert [(reservation_id(order), order.attempt.fee.amount)] == world.aws.ledger
    assert len(world.journal.orders(order.key.account)) == 1


@pytest.mark.parametrize("lag", LAGS, ids=["seen at once", "seen 5 minutes late"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("sells", WAYS)
def test_a_crash_at_every_effect(
    make_world: Callable[..., Any], crash: type[BaseException], sells: str, fault: str | None, lag: timedelta
) -> None:
    """Every effect of the purchase, before and after, under every fault of the paid call."""
    stop, crashed = 0, True
    while crashed:
        stop += 1
        world = make_world(sells)
        world.aws.fault, world.aws.lag = fault, lag
        world.stop_after(stop)
        crashed = False
        try:
            world.buy()
        except crash:
            crashed = True
            world.crash()
        except BerthError as error:
            assert error.exit_code is ExitCode.OUTCOME_UNKNOWN  # noqa: PT017 - any other end is a fault
        world.effects.stop_at = None
        run_until_bought(world)
        books_equal_ledger(world)
        world.journal.close()
    assert stop > 10


@pytest.mark.parametrize(
    ("new_place", "seed"),
    [("sqlite", seed) for seed in range(60)] + [("postgresql", seed) for seed in range(60, 75)],
    indirect=["new_place"],
)
@pytest.mark.parametrize("sells", WAYS)
def test_crashes_in_seeded_order(
    make_world: Callable[..., Any], crash: type[BaseException], sells: str, seed: int
) -> None:
    """Several crashes, faults, lags and clock moves in an order that the seed replays."""
    chance = random.Random(seed)
    world = make_world(sells)
    world.aws.lag = timedelta(seconds=chance.randrange(0, 301))
    for _ in range(chance.randrange(1, 7)):
        world.aws.fault = chance.choice(FAULTS)
        world.stop_after(chance.randrange(1, 30))
        try:
            world.buy()
        except crash:
            world.crash()
        except BerthError:
            pass
        world.effects.stop_at = None
        world.clock.advance(seconds=chance.choice([0, 5, 60, 299, 361, 600]))
    world.aws.fault = None
    run_until_bought(world)
    books_equal_ledger(world)
