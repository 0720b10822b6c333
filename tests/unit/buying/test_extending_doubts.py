"""Extensions in doubt: what ends the doubt, and what is said of the money until then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from berth.orders.extensions.extending import How, extend
from berth.orders.extensions.extension import ExtensionState
from berth.orders.extensions.settling import doubt, is_past_looks, settled_late
from berth.orders.extensions.wish import Wish
from berth.terms.money import Money
from berth.terms.outcomes import ExitCode, Spending, Spent

from .conftest import World
from .fake_aws import KEY, WINDOW, client_error
from .test_extending import BY_A_WEEK, FAKES, WEEK, Longer, refusal


@pytest.fixture(params=sorted(FAKES))
def longer(request: pytest.FixtureRequest, make_world: Callable[..., World]) -> Longer:
    """An order that is bought, and its extensions: one for each way."""
    return Longer(make_world(request.param), request.param)


def test_the_refusal_of_a_second_copy_is_no_refusal_of_the_call(longer: Longer) -> None:
    """The network delivers the call twice, and the answer is the refusal of the second copy."""
    longer.aws.fault = "twice"
    assert longer.extend().how is How.BOUGHT
    longer.books_equal_ledger()


def test_the_refusal_of_a_second_copy_is_looked_at_while_writes_show_late(longer: Longer) -> None:
    """Until the history shows the first copy's nothing is known, and nothing is bought beside it."""
    longer.aws.fault, longer.aws.lag = "twice", timedelta(minutes=3)
    ended = refusal(longer.extend)
    assert (ended.exit_code, ended.spent.spent) == (ExitCode.OUTCOME_UNKNOWN, Spent.NOT_KNOWN)
    longer.world.clock.advance(minutes=3)
    assert longer.extend().how is How.FOUND
    longer.books_equal_ledger()


def test_what_was_in_doubt_and_is_found_is_told_as_paid_however_the_command_ends(longer: Longer) -> None:
    """The next wish has to wait for the payment of the one that was found: its money is known by now."""
    longer.aws.fault, longer.aws.lag = "lost reply", timedelta(minutes=3)
    refusal(longer.extend)
    longer.world.clock.advance(minutes=3)
    told: list[Spending] = []
    desk = replace(longer.world.desk(), tell_spending=told.append)
    further = Wish(until=WINDOW.end + 2 * WEEK)
    ended = refusal(lambda: extend(desk, longer.till(), longer.order, further, None))
    assert "is being paid" in ended.message
    assert told[-1] == Spending.paid(Money.parse("7000.00"), str(KEY))


def over(answer: dict[str, Any]) -> dict[str, Any]:
    """A reservation whose window is over, as either way shows it."""
    word = {"State": "expired"} if "State" in answer else {"Status": "Expired"}
    return {**answer, **word}


def test_a_reservation_that_ended_as_it_would_have_settles_what_is_in_doubt(longer: Longer) -> None:
    """A payment would have moved the end: nothing was spent, and that is said before that it is over."""
    longer.aws.fault = "500 before"
    refusal(longer.extend)
    longer.world.clock.advance(days=30)
    longer.world.aws.change_answer = lambda answer: over(longer._later(answer))
    told: list[Spending] = []
    desk = replace(longer.world.desk(), tell_spending=told.append)
    ended = refusal(lambda: extend(desk, longer.till(), longer.order, BY_A_WEEK, None))
    assert (ended.exit_code, told[-1]) == (ExitCode.BAD_REQUEST, Spending.nothing())
    assert [one.state for one in longer.order.extensions] == [ExtensionState.REFUSED]


def test_of_a_reservation_that_is_over_and_shows_no_end_nothing_is_known(longer: Longer) -> None:
    """The doubt is what is told, not that it is over."""
    longer.aws.fault = "500 before"
    refusal(longer.extend)
    longer.world.clock.advance(days=30)
    ends = {"EndDate", "EndTime"}
    longer.world.aws.change_answer = lambda answer: over(
        {name: value for name, value in answer.items() if name not in ends}
    )
    ended = refusal(longer.extend)
    assert (ended.exit_code, ended.spent.spent) == (ExitCode.OUTCOME_UNKNOWN, Spent.NOT_KNOWN)
    assert [one.state for one in longer.order.extensions] == [ExtensionState.UNKNOWN]


def test_when_its_time_has_begun_the_end_of_the_reservation_settles_it(longer: Longer) -> None:
    """Until then only the history does; then no look at the history is waited for, and the end tells."""
    longer.aws.fault = "500 before"
    refusal(longer.extend)
    desk, shop = longer.world.desk(), longer.till().shop
    (one,) = longer.order.extensions
    assert not is_past_looks(desk, one)
    assert "complete looks over 6 minutes settle it" in doubt(desk, longer.order, one, shop).message
    longer.world.clock.advance(days=30)
    assert is_past_looks(desk, one)
    assert settled_late(desk, longer.order, (one,)) == (one,)  # AWS shows it active still
    assert "looking for longer tells nothing" in doubt(desk, longer.order, one, shop).message
    longer.world.aws.change_answer = lambda answer: over(longer._later(answer))
    (settled,) = settled_late(desk, longer.order, (one,))
    assert settled.state is ExtensionState.REFUSED
    assert [one.state for one in longer.order.extensions] == [ExtensionState.REFUSED]


def test_the_failed_payment_of_an_extension_that_another_journal_bought_is_seen(longer: Longer) -> None:
    """Taken over while it was being paid: when that fails, the wish is open again and is met."""
    longer.aws.fail_payment = True
    longer.aws._buy(longer.aws._search(168)[0]["id"])
    longer.world.clock.advance(minutes=3)
    assert longer.extend().how is How.ALREADY
    longer.world.clock.advance(minutes=3)
    longer.aws.fail_payment = False
    assert longer.extend().how is How.BOUGHT
    states = [one.state for one in longer.order.extensions]
    assert states == [ExtensionState.FAILED, ExtensionState.BOUGHT]


def test_what_another_one_takes_the_place_of_was_not_bought(longer: Longer) -> None:
    """The history shows an extension that begins there, not by this call: known at once, without waiting."""
    offers = longer.aws._search(168)
    meanwhile = longer.till()
    bought = replace(meanwhile, buyer=lambda: longer.aws._buy(offers[0]["id"]) and longer.aws)
    shown, longer.aws.lag = longer.aws.lag, timedelta(seconds=1)  # the look before the call misses it

    def arrives(operation: str) -> None:
        if longer.aws.calls == 2:
            longer.aws.lag = shown

    longer.aws.read_fault = arrives
    ended = refusal(lambda: extend(longer.world.desk(), bought, longer.order, BY_A_WEEK, Money.parse("8000")))
    assert ended.exit_code is ExitCode.DECISION_NEEDED
    assert "another extension begins there" in ended.message
    assert [one.state for one in longer.order.extensions] == [ExtensionState.REFUSED]
    assert longer.extend().how is How.ALREADY
    longer.books_equal_ledger()


def test_what_cannot_be_extended_yet_is_a_decision(longer: Longer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is being paid, or somebody was faster: exit 15, what to wait for, and no call that pays."""
    code = next(iter(longer.aws.shop.taken))

    def refused(hours: int) -> list[dict[str, Any]]:
        raise client_error(code)

    monkeypatch.setattr(longer.aws, "_search", refused)
    ended = refusal(longer.extend)
    assert "could not be searched" in ended.message
    assert ended.exit_code is ExitCode.DECISION_NEEDED
    assert "once it is paid" in (ended.next_step or "")
    assert (longer.aws.calls, longer.order.extensions) == (0, ())
