"""What another journal bought for the same order: its own fee is what was paid, whatever was tried here."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from berth.orders.journal import ReservationTaken
from berth.orders.order import Approval, OrderKey, OrderState
from berth.terms.money import Money

KEY = OrderKey("111122223333", "eval")
OTHER = Money(Decimal("199.99"))


def intended(world: Any) -> Any:
    """An order that is being bought here."""
    return world.journal.intend(
        KEY, Approval(world.approved), intent_id="i1", holder="p1", now=world.clock.now()
    )


def test_an_order_that_was_refused_here_takes_over_the_other_ones_fee(world: Any) -> None:
    """The refused attempt stays as it was; what was found is an attempt of its own."""
    journal, now = world.journal, world.clock.now()
    journal.settle(intended(world), OrderState.REFUSED, now=now, detail="gone")
    seen = {"arn": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/x", "state": "Scheduled",
            "fee": {"amount": "199.99", "currency": "USD"}}  # fmt: skip
    order = journal.adopt(KEY, Approval(world.approved), seen=seen, now=now)
    assert order.state is OrderState.BOUGHT
    assert [(one.number, one.outcome) for one in order.attempts] == [(1, "refused"), (2, "bought")]
    assert order.attempts[0].fee == world.approved.fee
    assert order.attempt.fee == OTHER


def test_an_order_in_doubt_here_takes_over_the_other_ones_fee(world: Any) -> None:
    """Our own call bought nothing, and what carries the mark cost something else."""
    order = world.journal.settle(
        intended(world), OrderState.BOUGHT, now=world.clock.now(), detail="found", arn="arn:x", fee=OTHER
    )
    assert order.attempt.fee == OTHER
    assert order.spending.amount == OTHER


def test_a_reservation_becomes_one_order_only(world: Any) -> None:
    """Two adopters under two names: the second write finds whose it is, and the first order stands."""
    journal, now = world.journal, world.clock.now()
    seen = {"arn": "arn:aws:sagemaker:us-east-1:111122223333:training-plan/x", "state": "Scheduled",
            "fee": {"amount": "199.99", "currency": "USD"}}  # fmt: skip
    first = journal.adopt(KEY, Approval(world.approved), seen=seen, now=now)
    with pytest.raises(ReservationTaken) as taken:
        journal.adopt(OrderKey(KEY.account, "other"), Approval(world.approved), seen=seen, now=now)
    assert taken.value.order.key == first.key
    assert [order.key for order in journal.orders(KEY.account)] == [KEY]
