"""The pure rules of several pieces: what is bought first, which sums are asked, where, as which order."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.orders.approval_book import ask, take
from berth.orders.approvals import request_from
from berth.orders.order import OrderKey
from berth.orders.pieces.of_plan import check_single, sequence_of_whole
from berth.orders.pieces.rooms import Room, assigned
from berth.orders.pieces.scarcity import Ranked, scarcest_first, stand_ins, sums
from berth.orders.pieces.whole import Piece, numbered, total_of, what_of
from berth.orders.spending import ApprovalRule, Rules
from berth.orders.spending_gate import Gate, NotApproved
from berth.planner.offers import Offer, Query, Segment
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Target, Way
from berth.terms.window import Window

from .fake_aws import ACCOUNT, KEY, START, WINDOW
from .fake_shelf import Shopping

DAY = timedelta(days=1)


def block(
    after: int = 0, days: int = 1, count: int = 1, fee: str = "100.00", zone: str = "use1-az4"
) -> Offer:
    """A block that begins so many days after WINDOW."""
    window = Window(WINDOW.start + after * DAY, WINDOW.start + (after + days) * DAY)
    query = Query(Way.CAPACITY_BLOCK, "us-east-1", "p5.48xlarge", count, days * 24, Target.INSTANCES)
    return Offer(
        Way.CAPACITY_BLOCK, "us-east-1", f"cb-{after}-{days}-{count}-{zone}-{fee}",
        (Segment(window, zone, None, "p5.48xlarge", count),), count, "p5.48xlarge", Money(Decimal(fee)),
        ("instances",), START, query,
    )  # fmt: skip


def pieces(*offers: Offer) -> tuple[Piece, ...]:
    """As the pieces of one whole."""
    return numbered(KEY, [(ACCOUNT, offer) for offer in offers])


blocks = st.builds(
    block, st.integers(0, 4), st.integers(1, 3), st.integers(1, 70), st.just("100.00"),
    st.sampled_from(["use1-az4", "use1-az6"]),
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(st.lists(blocks, min_size=1, max_size=6), st.randoms())
def test_numbers_do_not_depend_on_how_offers_came(offers: list[Offer], chance: Any) -> None:
    """The same offers in any order: the same numbers for the same things, the same order of buying."""
    shuffled = list(offers)
    chance.shuffle(shuffled)
    assert pieces(*offers) == pieces(*shuffled)
    ranked = [Ranked(piece) for piece in pieces(*offers)]
    chance.shuffle(ranked)
    queue = scarcest_first(ranked)
    assert queue == scarcest_first([Ranked(piece) for piece in pieces(*offers)])
    assert [one.piece.offer.count for one in queue] == sorted((o.count for o in offers), reverse=True)


@settings(deadline=None, max_examples=60)
@given(st.lists(blocks, min_size=1, max_size=6))
def test_every_instant_at_which_pieces_overlap_is_within_a_sum(offers: list[Offer]) -> None:
    """At no instant is more held in a zone than a sum says, and each sum is what its pieces hold."""
    made = pieces(*offers)
    found = sums(made)
    by_number = {piece.number: piece for piece in made}
    for one in found:
        assert one.count == sum(by_number[number].offer.count for number in one.numbers)
        assert one.query is None or one.query.count == one.count <= 64
    for zone, day in itertools.product(("use1-az4", "use1-az6"), range(8)):
        at = WINDOW.start + day * DAY
        here = {p.number for p in made if p.offer.zones == (zone,) and p.offer.paid_window.contains(at)}
        assert len(here) < 2 or any(here <= set(one.numbers) for one in found)


def test_what_stands_in_for_a_piece() -> None:
    """As much of the same for all of its window, cheapest first; never itself, nor at an unknown price."""
    wanted = block(1, 1, 2)
    dearer, longer = block(1, 1, 2, "120.00"), block(0, 3, 2, "110.00", "use1-az6")
    seen = [dearer, longer, wanted, block(1, 1, 4), block(2, 1, 2), replace(dearer, fee=None)]
    assert stand_ins(wanted, seen) == (longer, dearer)
    assert stand_ins(wanted, seen, ("use1-az4",)) == (dearer,)


def test_currencies_are_never_added() -> None:
    """Pieces in two currencies have no sum."""
    mixed = pieces(block(), replace(block(1), fee=Money(Decimal("5"), "CNY")))
    with pytest.raises(ValueError, match="cannot be added"):
        total_of(mixed)
    with pytest.raises(ValueError, match="no piece"):
        total_of(())


def test_accounts_are_filled_in_their_order() -> None:
    """The largest first, each into the first account with room; what one refuses the next may take."""
    offers = [block(count=64), block(count=36), block(count=64)]
    rooms = [Room("1" * 12, 192), Room("2" * 12, 0)]
    made = assigned(offers, rooms, lambda account, offer: "")
    assert [(account[0], offer.count) for account, offer in made] == [("1", 64), ("2", 64), ("2", 36)]
    made = assigned(offers, rooms, lambda account, offer: "no quota" if account[0] == "1" else "")
    assert {account[0] for account, _ in made} == {"2"}


def test_where_no_account_has_room_each_says_why() -> None:
    """An account whose blocks are not known holds nothing; exit 11 with every reason."""
    with pytest.raises(BerthError) as caught:
        assigned([block(count=64)], [Room("1" * 12, 200), Room("2" * 12, None)], lambda account, offer: "")
    assert caught.value.exit_code is ExitCode.QUOTA
    assert "account 111111111111: its blocks may hold 56 more instances (256 in all)" in caught.value.message
    assert (
        "account 222222222222: how many instances its blocks hold could not be read" in caught.value.message
    )


# -- which order -------------------------------------------------------------------------------------------
@pytest.fixture
def buyer(new_place: Any) -> Any:
    """A buyer of two blocks."""
    made = Shopping(new_place(), "blocks", *(_stock()))
    yield made
    made.journal.close()


def _stock() -> Any:
    from .fake_shelf import Stock

    return Stock("100.00"), Stock("200.00", after=1)


def test_which_order_the_pieces_are(buyer: Shopping) -> None:
    """The one to go on with; a second one when somebody asks, and no third; never beside one reservation."""
    assert sequence_of_whole((), (), again=False, asked=None) == 1
    buyer.buy_all()
    orders, wholes = buyer.journal.orders(ACCOUNT), buyer.book.wholes(ACCOUNT)
    assert sequence_of_whole(orders, wholes, again=False, asked=None) == 1
    assert sequence_of_whole(orders, wholes, again=True, asked=None) == 2
    assert sequence_of_whole(orders, wholes, again=False, asked=2) == 2
    with pytest.raises(BerthError, match="order 4 of the need"):
        sequence_of_whole(orders, wholes, again=False, asked=4)
    with pytest.raises(BerthError, match="one of several pieces"):
        check_single("eval", orders, wholes, again=False, asked=None)
    assert check_single("eval", orders, wholes, again=True, asked=None) == 2
    assert check_single("eval", orders, (), again=True, asked=None) == 2  # a journal made anew
    buyer.approved = buyer.wanted[0]
    buyer.buy(OrderKey(ACCOUNT, "eval", 2))
    orders = buyer.journal.orders(ACCOUNT)
    assert check_single("eval", orders, wholes, again=False, asked=None) is None
    with pytest.raises(BerthError, match="bought already, as one reservation"):
        sequence_of_whole(orders, wholes, again=False, asked=None)
    assert sequence_of_whole(orders, wholes, again=True, asked=None) == 3
    buyer.buy_all(key=OrderKey(ACCOUNT, "eval", 3))
    wholes = buyer.book.wholes(ACCOUNT)
    assert sequence_of_whole(buyer.journal.orders(ACCOUNT), wholes, again=True, asked=None) == 3


# -- approval ----------------------------------------------------------------------------------------------
LEAD, ASKS = "arn:aws:iam::222233334444:user/lead", f"arn:aws:iam::{ACCOUNT}:user/dev"


@pytest.mark.parametrize("above", [(Money.parse("250.00"),), ()])
def test_one_approval_is_of_the_whole(buyer: Shopping, above: tuple[Money, ...]) -> None:
    """Asked for all pieces at once, though each alone is below the threshold; then each is bought."""
    rules = Rules("rules.toml", approval=ApprovalRule(above, (LEAD,)))
    buyer.gate = Gate(rules, ASKS, ASKS)
    with pytest.raises(NotApproved) as missing:
        buyer.buy_all()
    proposal = missing.value.proposal
    assert (proposal.key, proposal.spend.amount) == (KEY, Money.parse("300.00"))
    assert proposal.what == what_of(buyer.pieces(), {})
    asked = ask(buyer.journal, buyer.gate, proposal, buyer.clock.now())
    document = json.loads(json.dumps(asked.request.document()))
    assert request_from(document, asked.request.asked_at).hash == asked.request.hash
    take(buyer.journal, rules, asked.request, LEAD, buyer.clock.now())
    buyer.buy_all()
    assert buyer.sold == [Decimal("100.00"), Decimal("200.00")]


def test_an_approval_that_ends_between_two_payments_is_told_with_what_is_paid(buyer: Shopping) -> None:
    """The first piece is bought, the second's approval is over: exit 15, and not "nothing is bought"."""
    rules = Rules("rules.toml", approval=ApprovalRule((), (LEAD,), timedelta(hours=2)))
    buyer.gate = Gate(rules, ASKS, ASKS)
    with pytest.raises(NotApproved) as missing:
        buyer.buy_all()
    asked = ask(buyer.journal, buyer.gate, missing.value.proposal, buyer.clock.now())
    take(buyer.journal, rules, asked.request, LEAD, buyer.clock.now())
    sell = buyer.aws.sell

    def slow(*said: Any) -> Any:
        buyer.clock.at = asked.request.expires_at
        return sell(*said)

    buyer.clock.at = asked.request.expires_at - timedelta(minutes=1)
    buyer.aws.sell = slow
    with pytest.raises(BerthError) as caught:
        buyer.buy_all()
    assert not isinstance(caught.value, NotApproved)
    assert "the approval of 300.00 USD does not hold, since it ended at" in caught.value.message
    assert "nothing is bought" not in caught.value.message
    assert caught.value.spent.line() == "paid 100.00 USD, order eval"


def test_an_approval_of_other_pieces_is_none(buyer: Shopping) -> None:
    """One piece less, more or elsewhere is another whole."""
    rules = Rules("rules.toml", approval=ApprovalRule((), (LEAD,)))
    buyer.gate = Gate(rules, ASKS, ASKS)
    with pytest.raises(NotApproved) as missing:
        buyer.buy_all()
    asked = ask(buyer.journal, buyer.gate, missing.value.proposal, buyer.clock.now())
    take(buyer.journal, rules, asked.request, LEAD, buyer.clock.now())
    buyer.aws.stock.append(replace(buyer.aws.stock[0], zone="use1-az6"))
    buyer.wanted[0] = buyer.aws.offer_of(buyer.aws.stock[-1])
    with pytest.raises(NotApproved, match="it is for another offer"):
        buyer.buy_all()
    assert buyer.aws.ledger == []


def test_a_request_of_a_piece_reads_back() -> None:
    """What is asked about one piece, such as its extension, keeps its number; older documents have none."""
    from berth.orders.approvals import ApprovalRequest

    made = ApprovalRequest("aws", replace(KEY, piece=2), {"kind": "extension"}, Money.parse("5.00"), ASKS,
                           START, START)  # fmt: skip
    assert request_from(made.document(), START) == made
    assert "piece" not in replace(made, key=KEY).document()
