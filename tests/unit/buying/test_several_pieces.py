"""Several pieces as one order: all seen before the first is paid, each bought once, what stops is told."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from berth.orders.journal import LostRace, open_journal
from berth.orders.names import reservation_name
from berth.orders.order import OrderKey, OrderState, key_of_mark
from berth.orders.pieces.book import WholeBook
from berth.orders.pieces.whole import WholeState
from berth.orders.spending import Cap, Per, Rules
from berth.orders.spending_gate import Gate, Proposal, check_spending, spend_of
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode, Spent

from .fake_aws import ACCOUNT, KEY
from .fake_shelf import Shopping, Stock

TWO = (Stock("100.00"), Stock("228.77", after=1, count=2, zone="use1-az2"))
WAYS = ["plans", "blocks"]


@pytest.fixture
def shopping(new_place: Callable[[], Path | str]) -> Iterator[Callable[..., Shopping]]:
    """Makes buyers of several pieces: `shopping("blocks", *stock)`."""
    made: list[Shopping] = []

    def make(sells: str = "blocks", *stock: Stock) -> Shopping:
        made.append(Shopping(new_place(), sells, *(stock or TWO)))
        return made[-1]

    yield make
    for one in made:
        one.journal.close()


def stops(buyer: Shopping, code: ExitCode = ExitCode.DECISION_NEEDED, **said: Any) -> BerthError:
    """Buying ends with that exit code; the error."""
    with pytest.raises(BerthError) as caught:
        buyer.buy_all(**said)
    assert caught.value.exit_code is code, caught.value.message
    return caught.value


@pytest.mark.parametrize("sells", WAYS)
def test_two_pieces_are_one_order(shopping: Callable[..., Shopping], sells: str) -> None:
    """Both bought, each an order of its own with its own mark; bought again nothing is spent."""
    buyer = shopping(sells)
    bought = buyer.buy_all()
    assert bought.whole.state is WholeState.BOUGHT
    assert [str(order.key) for order in bought.orders.values()] == ["eval/1.1", "eval/1.2"]
    assert [order.key.mark for order in bought.orders.values()] == [f"{KEY.mark}.1", f"{KEY.mark}.2"]
    assert buyer.sold == [Decimal("100.00"), Decimal("228.77")]
    assert buyer.spending[-1].line() == "paid 328.77 USD, order eval"
    again = buyer.buy_all()
    assert (again.now, again.whole.state) == ((), WholeState.BOUGHT)
    assert len(buyer.aws.ledger) == 2
    assert buyer.spending[-1].line() == "paid 328.77 USD, order eval"


def test_nothing_is_paid_unless_every_piece_is_there(shopping: Callable[..., Shopping]) -> None:
    """The second is sold out or dearer before the first is paid: nothing is bought, and both are told."""
    buyer = shopping("blocks")
    buyer.aws.stock[1] = replace(TWO[1], fee="230.00")
    problem = stops(buyer)
    assert "the price moved: 228.77 USD to 230.00 USD" in problem.message
    assert "230.00 USD (+1.23 USD)" in problem.message
    assert problem.spent.spent is Spent.NOTHING
    del buyer.aws.stock[1]
    assert "the offer is gone" in stops(buyer).message
    assert buyer.aws.ledger == []
    assert buyer.book.whole(KEY) is None


def test_the_scarcest_is_bought_first(shopping: Callable[..., Shopping]) -> None:
    """Fewest offers that would do instead, then the largest, then the earliest."""
    buyer = shopping(
        "blocks", Stock("100.00", zone="use1-az1"), Stock("90.00", after=3), Stock("70.00", after=1, count=2)
    )
    buyer.aws.stock.append(Stock("75.00", after=1, count=2, zone="use1-az6"))
    buyer.buy_all()
    assert buyer.asked == [(1, 3, 2)]


def test_what_stands_in_for_a_piece_of_one_zone_is_in_that_zone(shopping: Callable[..., Shopping]) -> None:
    """Pieces that all are in one zone work together: an offer in another zone does not do."""
    buyer = shopping("blocks", Stock("100.00"), Stock("70.00", after=1, count=2))
    buyer.aws.stock = [TWO[1], Stock("90.00", zone="use1-az6"), Stock("95.00", after=-1, days=1)]
    problem = stops(buyer)
    assert "nothing else that would do is on sale there now" in problem.message


def _drained(buyer: Shopping, number: int, then: Stock | None) -> None:
    """After the first sale, what is left of the stock at `number` is `then` (None: sold out)."""
    sell, kept = buyer.aws.sell, list(buyer.aws.stock)

    def selling(*said: Any) -> Any:
        left = [one for at, one in enumerate(kept) if at != number]
        buyer.aws.stock = left if then is None else [*left, then]
        return sell(*said)

    buyer.aws.sell = selling


@pytest.mark.parametrize("sells", WAYS)
def test_a_second_piece_that_is_gone_leaves_the_first_and_says_so(
    shopping: Callable[..., Shopping], sells: str
) -> None:
    """Nothing else is bought; exit 15; what is bought, missing, what else would do; again buys only that."""
    buyer = shopping(sells)
    buyer.aws.stock.append(Stock("150.00", zone="use1-az6"))
    _drained(buyer, 0, None)
    problem = stops(buyer)
    lines = problem.message.splitlines()
    assert lines[0] == ("order eval is not whole: eval/1.1 could not be bought, and nothing else was bought")
    when = "2027-03-02T11:30:00Z to 2027-03-03T11:30:00Z"
    missing = f"  missing  eval/1.1: 1 x {buyer.aws.instance_type}, use1-az4, {when}, 100.00 USD"
    assert lines[1:3] == [missing, "           the offer is gone"]
    assert buyer.sold == [Decimal("228.77")]
    assert problem.spent.line() == "paid 228.77 USD, order eval"
    assert "--accept-other" in (problem.next_step or "")
    whole = buyer.book.whole(KEY)
    assert whole is not None
    assert whole.state is WholeState.HALTED
    # It is there again: what is missing is bought, and nothing else.
    buyer.aws.stock = list(TWO)
    bought = buyer.buy_all()
    assert bought.now == (1,)
    assert buyer.sold == [Decimal("100.00"), Decimal("228.77")]


def test_another_offer_takes_a_missing_piece_when_that_is_accepted(shopping: Callable[..., Shopping]) -> None:
    """The first of those told; within the cap over the whole, or not at all."""
    buyer = shopping("blocks")
    _drained(buyer, 0, Stock("150.00", zone="use1-az6"))
    assert "150.00 USD (+50.00 USD)" in stops(buyer).message
    assert "378.77 USD, --max allows 378.00" in stops(buyer, cap="378", accept_other=True).message
    assert buyer.buy_all(accept_other=True).now == (1,)
    assert buyer.sold == [Decimal("150.00"), Decimal("228.77")]
    assert buyer.of(1).offer.zones == ("use1-az6",)


def test_a_payment_that_failed_is_bought_anew_as_another_piece(shopping: Callable[..., Shopping]) -> None:
    """AWS failed piece 2: a later command says so, buys piece 3 in its place, and counts it once."""
    buyer = shopping("blocks")
    buyer.buy_all()
    buyer.aws.fail_plan(buyer.of(2))
    bought = buyer.buy_all()
    assert bought.now == (3,)
    assert buyer.standing() == {1: "bought", 2: "failed", 3: "bought"}
    assert [piece.number for piece in bought.whole.live] == [1, 3]
    assert buyer.buy_all().now == ()
    assert buyer.spending[-1].line() == "paid 328.77 USD, order eval"


def test_cap_and_budget_bound_the_whole(shopping: Callable[..., Shopping]) -> None:
    """Each piece alone would pass; together they do not, so nothing is bought."""
    buyer = shopping("blocks")
    assert "328.77 USD, --max allows 328.76 USD" in stops(buyer, cap="328.76").message
    assert "the need's budget allows 300.00" in stops(buyer, budget="300").message
    assert buyer.aws.ledger == []
    buyer.buy_all(cap="328.77", budget="328.77")


@pytest.mark.parametrize("per", [Per.ORDER, Per.HOUR, Per.MONTH, Per.TOTAL])
def test_the_rules_judge_the_whole(shopping: Callable[..., Shopping], per: Per) -> None:
    """A cap that holds each piece and not their sum: nothing is bought; one that holds the sum: all."""
    buyer = shopping("blocks")
    buyer.gate = Gate(Rules("rules.toml", caps=(Cap(per, Money.parse("328.76")),)))
    assert "328.77 USD would go over" in stops(buyer).message
    assert buyer.aws.ledger == []
    buyer.gate = Gate(Rules("rules.toml", caps=(Cap(per, Money.parse("328.77")),)))
    buyer.buy_all()
    assert len(buyer.aws.ledger) == 2


def test_what_is_agreed_counts_against_caps_of_others(
    shopping: Callable[..., Shopping], crash: type[BaseException]
) -> None:
    """Killed between two payments: what is missing stays reserved until somebody goes on or halts."""
    buyer = shopping("blocks")
    effects = _effects_of(shopping, "blocks", TWO)
    first_paid = effects.index("PurchaseCapacityBlock:after")
    buyer.effects.stop_at = first_paid + 2
    with pytest.raises(crash):
        buyer.buy_all()
    buyer.crash()
    booked = buyer.journal.ledger().booked(None, "none")
    assert sum(one.amount.amount for one in booked) == Decimal("328.77")
    assert {one.order for one in booked} == {KEY.mark}


def test_one_number_is_one_order(shopping: Callable[..., Shopping]) -> None:
    """A number that several pieces have cannot be bought as one reservation, nor the other way round."""
    buyer = shopping("blocks")
    buyer.approved = buyer.wanted[0]
    buyer.buy_all()
    with pytest.raises(BerthError, match="one of several pieces"):
        buyer.buy()
    other = OrderKey(ACCOUNT, "eval", 2)
    buyer.buy(other)
    problem = stops(buyer, key=other)
    assert "another order already" in problem.message
    assert len(buyer.aws.ledger) == 3


def test_a_piece_is_bought_only_under_its_whole(shopping: Callable[..., Shopping]) -> None:
    """Nobody can buy a piece by itself, past what was agreed."""
    buyer = shopping("blocks")
    buyer.approved = buyer.wanted[0]
    with pytest.raises(BerthError, match="nobody is buying now"):
        buyer.buy(replace(KEY, piece=1))
    assert buyer.aws.ledger == []


def test_a_sum_that_a_search_does_not_find_is_not_bought(shopping: Callable[..., Shopping]) -> None:
    """Two offers of 2 in one zone at once may be the same 2: a search for 4 says; then each is bought."""
    twice = (Stock("100.00", count=2), Stock("100.00", count=2))
    buyer = shopping("blocks", *twice)
    assert "a search for 4 finds none" in stops(buyer).message
    assert buyer.aws.ledger == []
    buyer.aws.stock.append(Stock("190.00", count=4))
    buyer.buy_all()
    assert buyer.sold == [Decimal("100.00")] * 2


def test_more_than_one_search_can_ask_for_is_told(shopping: Callable[..., Shopping]) -> None:
    """64 and 36: no search answers for 100, which is said; each is searched again before it is paid."""
    buyer = shopping("blocks", Stock("6400.00", count=64), Stock("2000.00", count=36))
    buyer.buy_all()
    assert buyer.sold == [Decimal("2000.00"), Decimal("6400.00")]


def test_a_process_at_work_is_let_alone(
    shopping: Callable[..., Shopping], crash: type[BaseException]
) -> None:
    """While another process that lives buys the pieces nobody else does; once it is dead they go on."""
    buyer = shopping("blocks")
    buyer.effects.stop_at = _effects_of(shopping, "blocks", TWO).index("PurchaseCapacityBlock:after") + 2
    with pytest.raises(crash):
        buyer.buy_all()
    buyer.effects.stop_at = None
    buyer.holders.name = "p2"
    buyer.holders.alive.add("p2")
    ended = stops(buyer, ExitCode.OUTCOME_UNKNOWN)  # the piece that is being paid may be bought by now
    assert "being bought by another process (p1)" in ended.message
    assert ended.spent.spent is Spent.NOT_KNOWN
    buyer.holders.alive.discard("p1")
    buyer.clock.advance(minutes=7)
    run_until_bought(buyer)
    assert buyer.sold == [Decimal("100.00"), Decimal("228.77")]


def test_two_processes_at_once_buy_each_piece_once(shopping: Callable[..., Shopping]) -> None:
    """The second begins at each effect of the first: one whole, two sales."""
    number = len(_effects_of(shopping, "blocks", TWO))
    for at in range(1, number, 2):
        buyer = shopping("blocks")
        other = shopping("blocks")
        other.journal.close()
        other.journal = open_journal(buyer.place, "aws")
        other.aws, other.clock, other.holders.name = buyer.aws, buyer.clock, "p9"
        buyer.holders.alive.add("p9")
        other.holders.alive = buyer.holders.alive
        log: list[str] = []

        def meet(effect: str, at: int = at, log: list[str] = log, other: Shopping = other) -> None:
            log.append(effect)
            if len(log) == at and not effect.endswith(":before"):
                try:
                    other.buy_all()
                except BerthError as problem:
                    assert problem.exit_code in {15, 40}  # noqa: PT017 - any other end is a fault

        buyer.journal.close()
        buyer.journal = open_journal(buyer.place, "aws", meet)
        buyer.aws.effects = meet
        try:
            buyer.buy_all()
        except BerthError as problem:
            assert problem.exit_code in {15, 40}  # noqa: PT017 - any other end is a fault
        buyer.aws.effects = other.aws.effects = lambda effect: None
        run_until_bought(buyer)
        assert buyer.sold == [Decimal("100.00"), Decimal("228.77")]
        other.journal.close()


def test_another_journal_s_purchase_is_found_by_its_marks(shopping: Callable[..., Shopping]) -> None:
    """Two machines, two journals, one plan: pieces have the same marks, so the second finds both bought."""
    one, other = shopping("blocks"), shopping("blocks")
    one.buy_all()
    other.aws, other.clock = one.aws, one.clock
    bought = other.buy_all()
    assert bought.now == ()
    assert bought.whole.state is WholeState.BOUGHT
    assert len(one.aws.ledger) == 2


def test_marks_and_names_of_pieces() -> None:
    """A piece's mark reads back; its name is its own; orders of one keep theirs."""
    piece = replace(KEY, sequence=3, piece=12)
    assert str(piece) == "eval/3.12"
    assert key_of_mark(piece.mark) == piece
    assert reservation_name(piece).startswith("eval-3-12-")
    words = {reservation_name(replace(piece, piece=number)).rpartition("-")[2] for number in range(1, 9)}
    assert len(words) == 8
    assert reservation_name(KEY) == "eval-1-menp"


def test_a_second_piece_in_doubt_is_told_as_that(shopping: Callable[..., Shopping]) -> None:
    """The first is paid, the second's answer is lost and shown late: exit 40, and the doubt is named."""
    buyer = shopping("blocks")
    buyer.aws.lag = timedelta(minutes=5)
    sell = buyer.aws.sell

    def losing(*said: Any) -> Any:
        buyer.aws.sell = sell
        buyer.effects.log.append("sold")
        sold = sell(*said)
        buyer.aws.fault = "lost reply"
        return sold

    buyer.aws.sell = losing
    problem = stops(buyer, ExitCode.OUTCOME_UNKNOWN)
    assert problem.spent.spent is Spent.NOT_KNOWN
    assert problem.spent.order in {"eval/1.1", "eval/1.2"}
    assert buyer.spending[-1].spent is Spent.NOT_KNOWN
    whole = buyer.book.whole(KEY)
    assert whole is not None
    assert whole.state is WholeState.BUYING
    run_until_bought(buyer)
    books_equal_ledger(buyer)


def test_a_later_plan_takes_the_place_of_one_of_which_nothing_was_bought(
    shopping: Callable[..., Shopping],
) -> None:
    """The first piece was refused, so nothing is paid: planned anew the order has the new pieces alone."""
    buyer = shopping("blocks", *TWO, Stock("50.00", after=3))
    buyer.aws.fault = "gone"
    assert stops(buyer).spent.spent is Spent.NOTHING
    assert buyer.book.whole(KEY) is not None
    other = (Stock("70.00", after=5), Stock("80.00", after=6))
    buyer.aws.stock = list(other)
    buyer.wanted = [buyer.aws.offer_of(one) for one in other]
    bought = buyer.buy_all()
    assert buyer.sold == [Decimal("70.00"), Decimal("80.00")]
    assert [piece.number for piece in bought.whole.live] == [1, 2]
    assert buyer.buy_all().now == ()
    # Once anything is paid, a later plan changes nothing.
    buyer.wanted = [buyer.aws.offer_of(one) for one in TWO]
    assert buyer.buy_all().now == ()
    assert buyer.sold == [Decimal("70.00"), Decimal("80.00")]


def test_a_whole_that_another_process_changed_is_not_written_over(shopping: Callable[..., Shopping]) -> None:
    """What was read before must still stand when the whole is agreed to."""
    buyer = shopping("blocks")
    made = buyer.buy_all().whole
    with pytest.raises(LostRace):
        buyer.book.open(replace(made, state=WholeState.BUYING), None, None, buyer.clock.now())
    stale = replace(made, holder="p0")
    with pytest.raises(LostRace):
        buyer.book.open(made, stale, None, buyer.clock.now())
    assert buyer.book.whole(KEY) == made


def test_rules_are_asked_again_with_what_is_agreed(shopping: Callable[..., Shopping]) -> None:
    """While a person is asked, another order takes the cap's room: nothing of the pieces is bought."""
    buyer = shopping("blocks")
    buyer.gate = Gate(Rules("rules.toml", caps=(Cap(Per.TOTAL, Money.parse("400.00")),)))
    buyer.approved = buyer.wanted[0]
    buyer.meanwhile = lambda: buyer.buy(OrderKey(ACCOUNT, "other"))
    assert "328.77 USD would go over" in stops(buyer).message
    assert buyer.sold == [Decimal("100.00")]
    assert buyer.asked


def test_a_cap_per_order_counts_all_pieces(shopping: Callable[..., Shopping]) -> None:
    """What one piece costs later (its extension) is its whole order's money."""
    buyer = shopping("blocks")
    buyer.buy_all()
    order = buyer.of(1)
    gate = Gate(Rules("rules.toml", caps=(Cap(Per.ORDER, Money.parse("350")),)))
    spend = spend_of(order.key, order.offer, Money.parse("25.00"), {})
    longer = Proposal(order.key, spend, {"kind": "extension"})
    with pytest.raises(BerthError, match=r"25\.00 USD would go over the cap per order"):
        check_spending(gate, buyer.journal.ledger(), longer, buyer.clock.now())
    less = replace(longer, spend=replace(spend, amount=Money.parse("21.00")))
    check_spending(gate, buyer.journal.ledger(), less, buyer.clock.now())


# -- killed everywhere -------------------------------------------------------------------------------------
def _effects_of(shopping: Callable[..., Shopping], sells: str, stock: tuple[Stock, ...]) -> list[str]:
    """The effects of an undisturbed purchase."""
    buyer = shopping(sells, *stock)
    buyer.effects.log.clear()
    buyer.buy_all()
    return list(buyer.effects.log)


def run_until_bought(buyer: Shopping, most: int = 12) -> None:
    """Run it again and again, three minutes apart, until every piece is bought."""
    for _ in range(most):
        try:
            buyer.buy_all()
        except BerthError as error:
            assert error.exit_code is ExitCode.OUTCOME_UNKNOWN, error.message  # noqa: PT017
            buyer.clock.advance(minutes=3)
        else:
            return
    raise AssertionError("never settled")


def books_equal_ledger(buyer: Shopping) -> None:
    """Each piece once, of the fee that AWS took; the whole is bought."""
    whole = buyer.book.whole(KEY)
    assert whole is not None
    assert whole.state is WholeState.BOUGHT
    orders = buyer.book.orders(whole)
    assert {order.state for order in orders.values()} == {OrderState.BOUGHT}
    assert sorted(order.attempt.fee.amount for order in orders.values()) == buyer.sold
    assert len(buyer.aws.ledger) == len(whole.live)
    assert len(buyer.journal.orders(ACCOUNT)) == len(whole.live)


@pytest.mark.parametrize("new_place", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("sells", "fault"), [("plans", None), ("blocks", None), ("blocks", "lost reply")])
def test_killed_at_every_effect(
    shopping: Callable[..., Shopping], crash: type[BaseException], sells: str, fault: str | None
) -> None:
    """Every commit and every call of buying two pieces, before and after; then again until it is whole."""
    for stop in range(1, len(_effects_of(shopping, sells, TWO)) + 1):
        buyer = shopping(sells)
        buyer.aws.fault = fault
        buyer.stop_after(stop)
        try:
            buyer.buy_all()
        except crash:
            buyer.crash()
        except BerthError as error:
            assert error.exit_code is ExitCode.OUTCOME_UNKNOWN  # noqa: PT017 - any other end is a fault
        buyer.effects.stop_at = None
        run_until_bought(buyer)
        books_equal_ledger(buyer)
        buyer.journal.close()


@pytest.mark.parametrize(
    ("new_place", "seed"),
    [("sqlite", seed) for seed in range(25)] + [("postgresql", 99)],
    indirect=["new_place"],
)
def test_crashes_and_faults_in_seeded_order(
    shopping: Callable[..., Shopping], crash: type[BaseException], seed: int
) -> None:
    """Small combinations of up to four pieces; kills, lost answers, late writes, moves of the clock."""
    chance = random.Random(seed)
    stock = tuple(
        Stock(f"{chance.randrange(50, 400)}.00", after=after, count=chance.choice([1, 2, 4]))
        for after in range(chance.randrange(2, 5))
    )
    buyer = shopping(chance.choice(WAYS), *stock)
    buyer.aws.lag = timedelta(seconds=chance.randrange(0, 301))
    for _ in range(chance.randrange(1, 6)):
        buyer.aws.fault = chance.choice([None, "lost reply", "500 after", "500 before", "malformed"])
        buyer.stop_after(chance.randrange(1, 60))
        try:
            buyer.buy_all()
        except crash:
            buyer.crash()
        except BerthError as error:
            paid = [order.spending.spent for order in buyer.journal.orders(ACCOUNT)]
            assert (error.spent.spent is Spent.NOTHING) == all(one is Spent.NOTHING for one in paid)  # noqa: PT017
        buyer.effects.stop_at = None
        buyer.clock.advance(seconds=chance.choice([0, 5, 60, 299, 361, 600]))
    buyer.aws.fault = None
    run_until_bought(buyer)
    books_equal_ledger(buyer)


def test_a_whole_is_read_back_as_it_was(shopping: Callable[..., Shopping]) -> None:
    """The journal gives what was agreed, pieces in order, on both databases."""
    buyer = shopping("blocks")
    made = buyer.buy_all(cost={"team": "red"}).whole
    assert WholeBook(buyer.journal).wholes(ACCOUNT, "eval") == (made,)
    assert WholeBook(buyer.journal).wholes(ACCOUNT, "other") == ()
    assert [piece.offer.count for piece in made.pieces] == [1, 2]
    assert [e.kind for e in buyer.journal.events(KEY)] == ["agreed", "bought"]
