"""What else comes back with a journal made anew: extensions with their fees, tags, the number of pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from berth.orders.extensions.extension import ExtensionState
from berth.orders.journal import Journal, open_journal
from berth.orders.names import PIECES_TAG, WHOLE_TAG
from berth.orders.order import OrderKey, OrderState
from berth.orders.pieces.book import WholeBook
from berth.orders.pieces.whole import Whole, made_anew
from berth.orders.pieces.wording import state_of, whole_lines
from berth.orders.rebuild import Fate, Told, restore
from berth.orders.rebuild_pieces import context_of, counted
from berth.terms.money import Money

from .conftest import SELLERS, World
from .fake_aws import ACCOUNT, KEY, WINDOW, client_error
from .fake_shelf import Shopping, Stock
from .test_extending import Longer
from .test_rebuild import seen_in

WEEK = timedelta(days=7)
FEE, MORE = Decimal("228.77"), Decimal("7000.00")


@pytest.fixture(params=sorted(SELLERS))
def longer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Longer]:
    """An order of each way that was extended by a week, and its extension paid."""
    world = World(tmp_path / "lost.sqlite", SELLERS[request.param])
    made = Longer(world, request.param)
    made.extend()
    world.clock.advance(minutes=6)
    yield made
    world.journal.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Journal]:
    """A new journal."""
    journal = open_journal(tmp_path / "new.sqlite", "aws")
    yield journal
    journal.close()


def rebuilt(longer: Longer, journal: Journal) -> Told:
    """Make the journal anew; what became of the one order."""
    world = longer.world
    (told,) = restore(journal, ACCOUNT, seen_in(world, longer.aws).found, world.clock.now)
    return told


def test_what_an_extension_cost_comes_back(longer: Longer, fresh: Journal) -> None:
    """The purchase with its own end and fee, the extension with its; twice is once; nothing is bought."""
    told = rebuilt(longer, fresh)
    assert told.fate is Fate.RESTORED
    (said,) = told.extended
    assert said.startswith("extended until 20")
    assert "for 7,000.00 USD, " in said
    order = fresh.order(KEY)
    assert order is not None
    (one,) = order.extensions
    assert (one.state, one.fee, one.window.duration) == (ExtensionState.BOUGHT, Money(MORE), WEEK)
    assert (order.offer.paid_window.end, order.attempt.fee) == (WINDOW.end, Money(FEE))
    assert (order.window.end, order.held.fee) == (WINDOW.end + WEEK, Money(FEE + MORE))
    assert order.spending.amount == Money(FEE + MORE)
    again = rebuilt(longer, fresh)
    assert (again.fate, again.extended) == (Fate.KNOWN, ())
    assert fresh.order(KEY) == order
    assert len(longer.aws.ledger) == 1


def test_caps_count_what_was_restored(longer: Longer, fresh: Journal) -> None:
    """Both fees stand in the books of the new journal, under the order."""
    rebuilt(longer, fresh)
    booked = fresh.ledger().booked(None, KEY.mark)
    assert sorted(one.amount.amount for one in booked) == [FEE, MORE]
    assert {one.order for one in booked} == {KEY.mark}


def test_an_extension_whose_fee_is_not_shown_is_told(longer: Longer, fresh: Journal) -> None:
    """Unknown is no zero: it is said, and not counted as anything."""
    longer.aws.change_entry = lambda entry: {**entry, "UpfrontFee": None}
    told = rebuilt(longer, fresh)
    assert told.fate is Fate.RESTORED
    assert "for a fee that AWS does not show: caps do not count it" in told.extended[0]
    order = fresh.order(KEY)
    assert order is not None
    assert order.extensions == ()
    assert order.spending.amount == Money(FEE)


def test_a_history_that_cannot_be_read_is_a_trouble(longer: Longer, fresh: Journal) -> None:
    """The order comes back; what is not known is said; the next time the extension comes back too."""

    def denied(operation: str) -> None:
        raise client_error("AccessDeniedException", operation=operation)

    longer.aws.read_fault = denied
    seen = seen_in(longer.world, longer.aws)
    assert any("ExtensionHistory" in trouble for trouble in seen.troubles)
    (told,) = restore(fresh, ACCOUNT, seen.found, longer.world.clock.now)
    assert (told.fate, told.extended) == (Fate.RESTORED, ())
    longer.aws.read_fault = lambda operation: None
    later = rebuilt(longer, fresh)
    assert (later.fate, len(later.extended)) == (Fate.KNOWN, 1)


def test_a_payment_that_failed_is_no_extension(longer: Longer, fresh: Journal) -> None:
    """Nothing was paid for it and the end is the old one."""
    longer.aws.rows[0]["fails"] = True
    told = rebuilt(longer, fresh)
    assert (told.fate, told.extended) == (Fate.RESTORED, ())
    order = fresh.order(KEY)
    assert order is not None
    assert (order.extensions, order.window.end) == ((), WINDOW.end)


def test_whose_money_it_was_comes_back_with_the_tags(make_world: Callable[..., Any], fresh: Journal) -> None:
    """The need's own tags, and so the team whose cap it counts against."""
    world = make_world("blocks")
    own = {"team": "red", "cost-centre": "4711"}
    world.buy()
    for block in world.aws.blocks.values():
        block["Tags"] = [*block["Tags"], *({"Key": key, "Value": value} for key, value in own.items())]
    restore(fresh, ACCOUNT, seen_in(world).found, world.clock.now)
    order = fresh.order(KEY)
    assert order is not None
    assert order.context == {"tags": own}
    assert [one.team for one in fresh.ledger().booked(None, KEY.mark)] == ["red"]


# -- pieces ----------------------------------------------------------------------------------------------
@pytest.fixture(params=["blocks", "plans"])
def buyer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shopping]:
    """A buyer of three pieces."""
    stock = (Stock("100.00"), Stock("200.00", after=1, count=2), Stock("300.00", after=3))
    made = Shopping(tmp_path / "lost.sqlite", request.param, *stock)
    yield made
    made.journal.close()


def whole_in(journal: Journal) -> Whole:
    """The order of several pieces as the new journal has it."""
    whole = made_anew(KEY, journal.orders(ACCOUNT))
    assert whole is not None
    return whole


def tags_of(buyer: Shopping) -> list[dict[str, str]]:
    """The tags of everything that was bought."""
    if hasattr(buyer.aws, "blocks"):
        return [{tag["Key"]: tag["Value"] for tag in one["Tags"]} for one in buyer.aws.blocks.values()]
    return list(buyer.aws.tags.values())


def test_each_piece_says_how_many_there_are(buyer: Shopping, fresh: Journal) -> None:
    """In two tags; so a journal made anew knows that all are there. Names stay what they were."""
    buyer.buy_all()
    assert [(tags[WHOLE_TAG], tags[PIECES_TAG]) for tags in tags_of(buyer)] == [(KEY.mark, "3")] * 3
    told = restore(fresh, ACCOUNT, seen_in(buyer).found, buyer.clock.now)
    assert {one.fate for one in told} == {Fate.RESTORED}
    whole = whole_in(fresh)
    orders = WholeBook(fresh).orders(whole)
    assert (whole.of, state_of(whole, orders)) == (3, "bought")
    assert not any("made anew" in line for line in whole_lines(whole, orders, buyer.clock.now()))
    assert [one.says for one in counted(fresh.orders(ACCOUNT), ACCOUNT)] == ["order eval: all 3 pieces"]


def test_a_piece_that_is_not_found_is_missed(buyer: Shopping, fresh: Journal) -> None:
    """Two of three: said as such, never as whole; what to do is told."""
    buyer.buy_all()
    found = [one for one in seen_in(buyer).found if not one.mark.endswith(".2")]
    restore(fresh, ACCOUNT, found, buyer.clock.now)
    whole = whole_in(fresh)
    orders = WholeBook(fresh).orders(whole)
    assert state_of(whole, orders) == "2 of 3 pieces known"
    text = " ".join(" ".join(whole_lines(whole, orders, buyer.clock.now())).split())
    assert "of 3 pieces these are known; the others were never bought, are over, or are another" in text
    assert "berth plan the need, then berth buy eval#best" in text
    (one,) = counted(fresh.orders(ACCOUNT), ACCOUNT)
    assert (one.found, one.of) == (2, 3)
    assert one.says.startswith("order eval: 2 of 3 pieces;")


def test_a_piece_that_aws_failed_and_its_successor(buyer: Shopping, fresh: Journal) -> None:
    """Three that stand of four that were tried: whole again, and what failed is not told as missing."""
    buyer.buy_all()
    buyer.clock.advance(minutes=1)
    buyer.aws.fail_plan(buyer.of(2))
    buyer.buy_all()
    restore(fresh, ACCOUNT, seen_in(buyer).found, buyer.clock.now)
    states = {order.key.piece: order.state for order in fresh.orders(ACCOUNT)}
    assert states[4] is OrderState.BOUGHT
    whole = whole_in(fresh)
    assert (whole.of, state_of(whole, WholeBook(fresh).orders(whole))) == (3, "bought")


@pytest.mark.parametrize(
    ("tags", "context"),
    [
        ({}, {}),
        ({"berth:order": KEY.mark, PIECES_TAG: "3", WHOLE_TAG: KEY.mark}, {}),
        ({"berth:order": f"{KEY.mark}.1", PIECES_TAG: "0", WHOLE_TAG: "mine"}, {}),
        ({"berth:order": f"{KEY.mark}.1", PIECES_TAG: "three"}, {}),
        ({"berth:order": f"{KEY.mark}.1", PIECES_TAG: "2"}, {"pieces": 2}),
        ({"team": "a", "aws:x": "y", "berth:fee": "1 USD"}, {"tags": {"team": "a"}}),
    ],
)
def test_tags_tell_what_they_tell(tags: dict[str, str], context: dict[str, Any]) -> None:
    """What is no number and no mark is left out, and so is all of it where the order is of one piece."""
    assert context_of(tags) == context


def test_pieces_of_another_accounts_order_are_said_to_be_that(buyer: Shopping, fresh: Journal) -> None:
    """The whole's mark tells whose it is; nobody is told to buy the rest from here."""
    theirs = OrderKey("999988887777", "eval", 1)
    buyer.buy_all()
    restore(fresh, ACCOUNT, seen_in(buyer).found, buyer.clock.now)
    orders = [
        replace(order, context={**order.context, "whole": theirs.mark, "pieces": 5})
        for order in fresh.orders(ACCOUNT)
    ]
    (one,) = counted(orders, ACCOUNT)
    assert one.says.startswith("order eval of account 999988887777: 3 of 5 pieces;")
    assert one.to_json() == {"order": "eval", "account": "999988887777", "found": 3, "of": 5}
    whole = made_anew(KEY, orders)
    assert whole is not None
    text = "\n".join(whole_lines(whole, WholeBook(fresh).orders(whole), buyer.clock.now()))
    assert "3 of 5 pieces known" in text
    assert "buys what no mark is found of" not in text
