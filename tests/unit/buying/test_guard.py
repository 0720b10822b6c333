"""The guard: bounds, worlds, sequences; and whether a fresh offer is the approved one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.orders.guard import check_money, check_permission, check_time, check_world, sequence_to_buy
from berth.orders.looks import Look, known_absent
from berth.orders.matching import alternatives, askable, match, narrowed
from berth.orders.order import Approval, OrderState
from berth.terms.instants import EPOCH
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.window import Window


def order(sequence: int, state: OrderState) -> Any:
    """As much of an order as the guard reads."""
    return SimpleNamespace(key=SimpleNamespace(sequence=sequence, need="eval"), state=state)


@pytest.mark.parametrize(
    ("yes", "cap", "can_ask", "code"),
    [
        (False, None, True, None),
        (False, None, False, ExitCode.DECISION_NEEDED),
        (False, "5", False, ExitCode.DECISION_NEEDED),
        (True, None, True, ExitCode.USAGE),
        (True, None, False, ExitCode.USAGE),
        (True, "5", False, None),
        (True, "5", True, None),
    ],
)
def test_who_may_pay(yes: bool, cap: str | None, can_ask: bool, code: ExitCode | None) -> None:
    """A person who can be asked, or --yes with --max; nothing else."""
    bound = None if cap is None else Money(Decimal(cap))
    if code is None:
        check_permission(yes=yes, cap=bound, can_ask=can_ask)
        return
    with pytest.raises(BerthError) as caught:
        check_permission(yes=yes, cap=bound, can_ask=can_ask)
    assert caught.value.exit_code is code


@settings(deadline=None, max_examples=100)
@given(
    fee=st.decimals("0.01", "99999", places=2),
    cap=st.none() | st.decimals("0.01", "99999", places=2),
    budget=st.none() | st.decimals("0.01", "99999", places=2),
)
def test_no_bound_is_ever_passed(fee: Decimal, cap: Decimal | None, budget: Decimal | None) -> None:
    """A fee passes exactly when it is within every bound."""
    offer: Any = None
    approval = Approval(offer, None if cap is None else Money(cap), None if budget is None else Money(budget))
    within = all(bound is None or fee <= bound for bound in (cap, budget))
    try:
        assert check_money(Money(fee), approval) == Money(fee)
    except BerthError as error:
        assert not within
        assert error.exit_code is ExitCode.DECISION_NEEDED  # noqa: PT017 - both ends are right
    else:
        assert within


@pytest.mark.parametrize("fee", [None, Money(Decimal(0)), Money(Decimal(-1)), Money(Decimal(1), "CNY")])
def test_no_price_is_no_bargain(fee: Money | None) -> None:
    """Missing, zero, negative, or of another currency: never bought."""
    offer: Any = None
    with pytest.raises(BerthError):
        check_money(fee, Approval(offer, Money(Decimal(100))))


def test_old_offers_and_late_starts_are_refused(world: Any) -> None:
    """Older than two minutes, or with under five minutes for the payment: not paid for."""
    offer, now = world.approved, world.clock.now()
    check_time(offer, now)
    with pytest.raises(BerthError, match="too old"):
        check_time(offer, now + timedelta(minutes=3))
    start = offer.paid_window.start
    with pytest.raises(BerthError, match="5 minutes before"):
        check_time(replace(offer, seen_at=start), start - timedelta(minutes=4))


@pytest.mark.parametrize(
    ("states", "again", "asked", "expected"),
    [
        ([], False, None, 1),
        ([], True, None, 1),
        ([], False, 2, None),
        (["bought"], False, None, 1),
        (["bought"], True, None, 2),
        (["bought"], False, 2, 2),
        (["bought"], False, 1, 1),
        (["bought"], False, 3, None),
        (["failed"], False, None, 2),
        (["failed"], False, 1, 1),
        (["refused"], False, None, 1),
        (["refused"], True, None, 1),
        (["unknown"], False, None, 1),
        (["unknown"], True, None, 1),
        (["unknown"], False, 2, None),
        (["buying"], True, None, 1),
        (["disputed"], True, None, 1),
        (["bought", "unknown"], True, None, 2),
        (["bought", "unknown"], False, 1, None),
        (["bought", "bought"], False, 1, 1),
        (["failed", "bought"], True, None, 3),
        (["bought", "bought"], True, None, None),
        (["bought", "bought"], True, 3, 3),
        (["bought", "bought"], False, 3, 3),
        (["failed", "bought", "bought"], True, None, None),
        (["bought", "failed"], True, None, 3),
        (["bought", "failed"], False, None, 1),
        (["bought", "refused"], False, None, 1),
        (["bought", "refused"], True, None, 2),
        (["bought", "refused"], False, 2, 2),
        (["bought", "bought", "refused"], False, None, 2),
        (["failed", "refused"], False, None, 2),
        (["refused", "failed"], False, None, 3),
    ],
)
def test_which_order_a_purchase_is_for(
    states: list[str], again: bool, asked: int | None, expected: int | None
) -> None:
    """A later sequence only by --again or by number, or after a failure; never while one is in doubt."""
    orders = [order(number, OrderState(state)) for number, state in enumerate(states, start=1)]
    if expected is None:
        with pytest.raises(BerthError):
            sequence_to_buy(orders, again=again, asked=asked)
    else:
        assert sequence_to_buy(orders, again=again, asked=asked) == expected


@pytest.mark.parametrize(
    ("made", "here", "code"),
    [
        ((None, "1"), (None, "1"), None),
        ((None, "1"), ("http://y", "1"), ExitCode.DECISION_NEEDED),
        (("http://y", "1"), (None, "1"), ExitCode.DECISION_NEEDED),
        ((None, "1"), (None, "2"), ExitCode.CREDENTIALS),
    ],
)
def test_a_plan_of_another_world_is_not_bought(made: Any, here: Any, code: ExitCode | None) -> None:
    """A rehearsal's plan is never paid, AWS's never rehearsed, another account's never bought."""
    need = SimpleNamespace(name="eval", account=None)
    plan: Any = SimpleNamespace(need=need, rehearsal=made[0], account=made[1])
    if code is None:
        check_world(plan, account=here[1], rehearsal=here[0])
        return
    with pytest.raises(BerthError) as caught:
        check_world(plan, account=here[1], rehearsal=here[0])
    assert caught.value.exit_code is code


CHANGES: dict[str, Callable[[Any], Any]] = {
    "zone": lambda s: replace(s, zone_id="use1-az1"),
    "count": lambda s: replace(s, count=2),
    "type": lambda s: replace(s, instance_type="ml.p5.48xlarge"),
    "end": lambda s: replace(s, window=Window(s.window.start, s.window.end + timedelta(days=1))),
    "start": lambda s: replace(s, window=Window(s.window.start - timedelta(minutes=1), s.window.end)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_another_place_time_or_kind_is_gone(world: Any, what: str) -> None:
    """Zone id, type, count, start and end of every segment must be the approved ones."""
    fresh = replace(world.approved, segments=(CHANGES[what](world.approved.segments[0]),))
    assert match(world.approved, [fresh]).reason == "the offer is gone"
    assert match(world.approved, [fresh, world.approved]).offer == world.approved


def test_a_second_segment_counts(world: Any) -> None:
    """An offer that is split where the approved one was whole is another offer."""
    part = world.approved.segments[0]
    later = replace(part, window=Window(part.window.end, part.window.end + timedelta(days=1)))
    split = replace(world.approved, segments=(part, later))
    assert match(world.approved, [split]).offer is None
    assert match(split, [split]).offer == split
    assert match(split, [replace(split, segments=(part, CHANGES["zone"](later)))]).offer is None


def test_the_search_is_narrowed_as_far_as_aws_allows(world: Any) -> None:
    """A start in the past is left out; an end less than a day away is widened to the first question's."""
    query = narrowed(
        world.approved, world.approved.paid_window.start + timedelta(seconds=5), timedelta(hours=24)
    )
    assert query.start_after is None
    assert query.end_before == world.approved.query.end_before


def test_no_bound_is_asked_that_aws_refuses(world: Any) -> None:
    """A question that ends too soon by now is asked without an end: so gone is told from not known."""
    day, end = timedelta(hours=24), world.approved.paid_window.end
    asked = replace(world.approved, query=replace(world.approved.query, end_before=end))
    for hours in (0, 1, 12, 23, 30):
        now = world.approved.paid_window.start + timedelta(hours=hours)
        for query in (narrowed(asked, now, day), askable(asked.query, now, day)):
            assert query.start_after is None or query.start_after > now
            assert query.end_before is None or query.end_before >= (query.start_after or now) + day
    later = replace(asked, segments=(replace(asked.segments[0], window=Window(end, end + day)),))
    assert alternatives(asked, [later]) == []


def test_alternatives_name_their_difference(world: Any) -> None:
    """Cheapest first, each with what it costs more or less."""
    dearer = replace(world.approved, fee=Money(Decimal("300.00")))
    cheaper = replace(world.approved, fee=Money(Decimal("200.00")))
    lines = alternatives(world.approved, [dearer, cheaper])
    assert lines[0].endswith("200.00 USD (-28.77 USD)")
    assert lines[1].endswith("300.00 USD (+71.23 USD)")


looks = st.lists(st.tuples(st.integers(0, 900), st.integers(0, 30), st.booleans(), st.booleans()), max_size=8)


@settings(deadline=None, max_examples=300)
@given(looks)
def test_absence_is_never_known_too_early(drawn: list[tuple[int, int, bool, bool]]) -> None:
    """Known absent needs two complete looks with at least six minutes between, and nothing ever found."""
    made = tuple(
        Look(EPOCH + timedelta(seconds=at), EPOCH + timedelta(seconds=at + took), whole, found)
        for at, took, whole, found in drawn
    )
    whole = [look for look in made if look.complete]
    apart = any(b.began_at - a.ended_at >= timedelta(minutes=6) for a in whole for b in whole)
    assert known_absent(made) == (apart and not any(look.found for look in made))
