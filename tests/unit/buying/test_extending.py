"""Extending, stopped at every effect and run again: nothing is paid twice, nothing is lost."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from berth.orders.extensions.book import ExtensionBook
from berth.orders.extensions.extending import Extended, How, Till, extend, propose
from berth.orders.extensions.extension import ExtensionState
from berth.orders.extensions.offers import ExtensionOffer
from berth.orders.extensions.wish import Standing, Wish, read_wish, why_not
from berth.orders.order import Approval, Order, OrderState
from berth.orders.seen import SeenReservation
from berth.orders.spending import Cap, Per, Rules
from berth.orders.spending_gate import OPEN, Gate
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.window import Window

from .conftest import SELLERS, World
from .fake_aws import KEY, WINDOW, SimulatedCrash, client_error
from .fake_extensions import FakeBlockExtensions, FakeExtensions, FakePlanExtensions

FAKES: dict[str, type[FakeExtensions]] = {"blocks": FakeBlockExtensions, "plans": FakePlanExtensions}
FAULTS = [None, "lost reply", "500 after", "500 before", "malformed", "no ARN"]
WEEK = timedelta(days=7)
BY_A_WEEK = read_wish("7d", None, None, None)


class Longer:
    """An order that is bought, and the extensions of its reservation."""

    def __init__(self, world: World, sells: str) -> None:
        self.world = world
        world.buy()
        self.aws: Any = FAKES[sells](world.clock, world.effects)
        self.agreed: list[ExtensionOffer] = []
        self.aws.of(self.order.reservation_arn)
        world.aws.change_answer = self._later

    def _later(self, answer: dict[str, Any]) -> dict[str, Any]:
        name = "EndDate" if "EndDate" in answer else "EndTime"
        return {**answer, name: self.aws.end}

    @property
    def order(self) -> Order:
        """The order as the journal holds it."""
        return self.world.order()

    def till(self) -> Till:
        """What extending leans on."""
        return Till(self.aws.shop, lambda: self.aws, self.agreed.append)

    def extend(self, wish: Wish = BY_A_WEEK, cap: str | None = "8000") -> Extended:
        """Run it."""
        most = None if cap is None else Money.parse(cap)
        return extend(self.world.desk(), self.till(), self.order, wish, most)

    def until_known(self, wish: Wish = BY_A_WEEK, most: int = 12) -> Extended:
        """Run it again and again, three minutes apart, until it ends well."""
        for _ in range(most):
            try:
                return self.extend(wish)
            except BerthError as error:
                assert error.exit_code is ExitCode.OUTCOME_UNKNOWN, error.message  # noqa: PT017
                self.world.clock.advance(minutes=3)
        raise AssertionError("never settled")

    def books_equal_ledger(self) -> None:
        """One sale, one extension that is bought, of the same fee."""
        bought = [one for one in self.order.extensions if one.state is ExtensionState.BOUGHT]
        assert [one.fee.amount for one in bought] == self.aws.ledger
        assert len(bought) == 1


@pytest.fixture
def make_longer(make_world: Callable[..., World]) -> Callable[..., Longer]:
    """Makes them: `make_longer("blocks")`."""
    return lambda sells="blocks": Longer(make_world(sells), sells)


@pytest.fixture(params=sorted(FAKES))
def longer(request: pytest.FixtureRequest, make_longer: Callable[..., Longer]) -> Longer:
    """One for each way."""
    return make_longer(request.param)


def refusal(run: Callable[[], object]) -> BerthError:
    """How it ends when it does not end well."""
    with pytest.raises(BerthError) as ended:
        run()
    return ended.value


# -- once ------------------------------------------------------------------------------------------------
def test_it_is_bought_once_and_known_afterwards(longer: Longer) -> None:
    """Bought, then already had; the journal holds it, the order's window follows AWS."""
    done = longer.extend()
    assert (done.how, done.says) == (How.BOUGHT, "extended until 2027-03-10T11:30Z")
    assert longer.agreed[0].fee == Money.parse("7000.00")
    again = longer.extend()
    assert (again.how, again.says) == (How.ALREADY, "already extended until 2027-03-10T11:30Z")
    longer.books_equal_ledger()
    assert longer.order.window.end == WINDOW.end
    longer.world.clock.advance(minutes=6)
    longer.extend()
    assert longer.order.window.end == WINDOW.end + WEEK
    (paid,) = longer.order.extended
    assert paid.payment in {"payment-succeeded", "Completed"}


@pytest.mark.parametrize(
    ("sells", "fault", "lag_s"),
    [
        ("blocks", None, 0), *(("blocks", fault, 300) for fault in FAULTS), ("plans", None, 0),
        ("plans", "lost reply", 300), ("plans", "500 before", 300),
    ],
)  # fmt: skip
def test_a_crash_at_every_effect(tmp_path: Path, sells: str, fault: str | None, lag_s: int) -> None:
    """Every effect of extending, before and after, under every fault of the paid call."""
    stop, crashed = 0, True
    while crashed:
        stop += 1
        longer = Longer(World(tmp_path / f"{stop}.sqlite", SELLERS[sells]), sells)
        longer.aws.fault, longer.aws.lag = fault, timedelta(seconds=lag_s)
        longer.world.stop_after(stop)
        crashed = False
        try:
            longer.extend()
        except SimulatedCrash:
            crashed = True
            longer.world.crash()
        except BerthError as error:
            assert error.exit_code is ExitCode.OUTCOME_UNKNOWN  # noqa: PT017 - any other end is a fault
        longer.world.effects.stop_at = None
        longer.until_known()
        longer.books_equal_ledger()
        longer.world.journal.close()
    assert stop > 10


def test_a_call_that_did_nothing_is_known_after_six_minutes_and_may_be_made_again(longer: Longer) -> None:
    """Unknown is a state of its own; complete looks over six minutes end it, and not before."""
    longer.aws.fault = "500 before"
    first = refusal(longer.extend)
    assert first.exit_code is ExitCode.OUTCOME_UNKNOWN
    assert first.spent.line().startswith("not known whether 7,000.00 USD was paid")
    (one,) = longer.order.extensions
    assert one.state is ExtensionState.UNKNOWN
    longer.world.clock.advance(minutes=5, seconds=59)
    assert refusal(longer.extend).exit_code is ExitCode.OUTCOME_UNKNOWN
    assert longer.aws.ledger == []
    longer.world.clock.advance(seconds=2)
    assert longer.extend().how is How.BOUGHT
    assert [one.state.value for one in longer.order.extensions] == ["refused", "bought"]
    longer.books_equal_ledger()


def test_what_shows_later_than_six_minutes_is_taken_over(longer: Longer) -> None:
    """AWS breaks its own bound: counted as refused, shown after all; nothing is bought beside it."""
    longer.aws.fault, longer.aws.lag = "lost reply", timedelta(minutes=20)
    refusal(longer.extend)
    longer.world.clock.advance(minutes=7)
    assert longer.extend().how is How.ALREADY  # the end has moved, the history does not tell why
    assert longer.order.extensions[0].state is ExtensionState.REFUSED
    longer.world.clock.advance(minutes=14)
    assert longer.extend().how is How.ALREADY
    assert [str(fee) for fee in longer.aws.ledger] == ["7000.00"]
    (bought,) = [one for one in longer.order.extensions if one.state is ExtensionState.BOUGHT]
    assert bought.holder == "adopted"


def test_a_lost_answer_is_found_in_the_history(longer: Longer) -> None:
    """In the same run where AWS shows it at once; by the next where it shows it late."""
    longer.aws.fault = "lost reply"
    assert longer.extend().how is How.BOUGHT
    longer.books_equal_ledger()
    longer.aws.lag = timedelta(minutes=3)
    longer.aws.fault = "lost reply"
    longer.aws.fees[24] = ["1000.00"]
    longer.world.clock.advance(minutes=6)
    further = Wish(until=WINDOW.end + WEEK + timedelta(days=1))
    assert refusal(lambda: longer.extend(further)).exit_code is ExitCode.OUTCOME_UNKNOWN
    longer.world.clock.advance(minutes=3)
    assert longer.extend(further).how is How.FOUND


def test_what_another_process_may_still_be_paying_is_left_to_it(longer: Longer) -> None:
    """A live holder: nothing is looked up as absent, nothing is bought beside it."""
    longer.aws.fault = "500 before"
    refusal(longer.extend)
    world = longer.world
    with world.journal._commit("test") as db:
        db.execute("UPDATE extensions SET state = 'buying', holder = 'other'")
        db.execute("DELETE FROM extension_looks")
    world.holders.alive.add("other")
    world.clock.advance(minutes=30)
    ended = refusal(longer.extend)
    assert ended.exit_code is ExitCode.OUTCOME_UNKNOWN
    assert "another process" in ended.message
    assert longer.order.extensions[0].state is ExtensionState.BUYING
    world.holders.alive.discard("other")
    refusal(longer.extend)
    world.clock.advance(minutes=7)
    assert longer.extend().how is How.BOUGHT


def test_two_journals_make_one_extension(longer: Longer, tmp_path: Path) -> None:
    """A second machine with a journal of its own sees the first one's in AWS's history, and takes it over."""
    longer.extend()
    other = World(tmp_path / "other.sqlite")
    order = longer.order
    approval = Approval(order.offer)
    seen = SeenReservation.from_json(order.seen or {}).to_json()
    other.journal.adopt(KEY, approval, seen=seen, now=other.clock.now())
    other.aws = longer.world.aws
    done = extend(other.desk(), longer.till(), other.order(), BY_A_WEEK, None)
    assert done.how is How.ALREADY
    assert [one.state for one in other.order().extensions] == [ExtensionState.BOUGHT]
    assert len(longer.aws.ledger) == 1
    other.journal.close()


def test_what_the_journal_knows_counts_while_the_history_lags(longer: Longer) -> None:
    """Bought and not shown yet: a wish for that end is met, one for a later end waits for the payment."""
    longer.aws.lag = timedelta(minutes=5)
    longer.extend()
    assert longer.aws.seen() == []
    assert longer.extend(Wish(until=WINDOW.end + WEEK)).how is How.ALREADY
    assert "is being paid" in refusal(lambda: longer.extend(Wish(until=WINDOW.end + 2 * WEEK))).message


@pytest.mark.parametrize("without_end", [False, True])
def test_beside_a_payment_of_an_unknown_word_nothing_is_bought(longer: Longer, without_end: bool) -> None:
    """It may be paid: `never-heard-of`, with and without the end that it leads to."""
    longer.extend()
    words = {"CapacityBlockExtensionStatus", "Status", "PaymentStatus"}
    ends = {"CapacityBlockExtensionEndDate", "EndDate"} if without_end else set()
    longer.aws.change_entry = lambda entry: {
        key: "never-heard-of" if key in words else value for key, value in entry.items() if key not in ends
    }
    assert "is being paid" in refusal(lambda: longer.extend(Wish(until=WINDOW.end + 2 * WEEK))).message
    assert longer.aws.calls == 1
    # The same for whoever has no journal that knows of it.
    assert longer.aws.shop.history().unpaid(WINDOW.end)
    assert without_end or not longer.aws.shop.history().unpaid(WINDOW.end + WEEK)


# -- field faults ----------------------------------------------------------------------------------------
def test_a_store_that_takes_nothing_after_the_call_buys_one(longer: Longer, monkeypatch: Any) -> None:
    """Field fault 5: rule "extend 7 d, look ahead 2 d", 10 runs a minute apart, the store read-only right
    after the call: 1 purchase, then 9 times "already extended until"."""
    rule = read_wish(None, None, "extend 7d, look ahead 2d", None)
    world = longer.world
    world.clock.at = WINDOW.end - timedelta(days=1)
    said = [longer.extend(rule, cap=None).says]
    assert len(longer.aws.ledger) == 1

    # The store again as it was before the call was answered: the intent, and nothing can be written any more.
    with world.journal._commit("test") as db:
        db.execute("UPDATE extensions SET state = 'buying', payment = '', detail = ''")
    read_only(world, monkeypatch)
    world.holders.restart()
    for _ in range(9):
        world.clock.advance(minutes=1)
        said.append(longer.extend(rule, cap=None).says)
    assert said[0] == "extended until 2027-03-10T11:30Z"
    assert all(text.startswith("already extended until 2027-03-10T11:30Z") for text in said[1:])
    assert longer.aws.calls == 1
    assert any("cannot be written" in text for text in world.warnings)


def test_a_store_that_turns_read_only_while_the_call_is_under_way(longer: Longer, monkeypatch: Any) -> None:
    """The same, with the store failing inside of the very run that pays: it says what it bought."""
    world, wired = longer.world, longer.world.effects

    def effects(effect: str) -> None:
        wired(effect)
        if effect == f"{longer.aws.paid}:after":
            read_only(world, monkeypatch)

    longer.aws.effects = effects
    done = longer.extend()
    assert done.how is How.BOUGHT
    assert world.spending[-1].line().startswith("paid 7,000.00 USD")
    for _ in range(9):
        world.clock.advance(minutes=1)
        assert longer.extend().says == "already extended until 2027-03-10T11:30Z"
    assert longer.aws.calls == 1


def test_the_cheapest_is_taken_and_a_moved_price_ends_it(longer: Longer) -> None:
    """Field fault 7: [9100.00, 7000.00] in that order, cap 8000; then 7000.01 between search and purchase."""
    longer.aws.fees = {168: ["9100.00", "7000.00"]}
    searched = longer.aws.searches

    def dearer(offer: ExtensionOffer) -> None:
        assert offer.fee == Money.parse("7000.00")
        longer.aws.fees = {168: ["9100.00", "7000.01"]}

    till = replace(longer.till(), agree=dearer)
    ended = refusal(lambda: extend(longer.world.desk(), till, longer.order, BY_A_WEEK, Money.parse("8000")))
    assert "price moved 7000.00 → 7000.01" in ended.message
    assert ended.exit_code is ExitCode.DECISION_NEEDED
    assert (longer.aws.calls, longer.order.extensions) == (0, ())
    assert longer.aws.searches == searched + 2
    longer.aws.fees = {168: ["9100.00", "7000.00"]}
    assert longer.extend(cap="8000").extension is not None
    assert [str(fee) for fee in longer.aws.ledger] == ["7000.00"]


# -- what stands in the way ------------------------------------------------------------------------------
def test_nothing_is_bought_when_something_is_in_the_way(longer: Longer) -> None:
    """Over the cap, another currency, no fee, none on sale, gone, refused: nothing was spent."""
    ways: list[tuple[Callable[[], object], ExitCode, str]] = [
        (lambda: longer.extend(cap="6999.99"), ExitCode.DECISION_NEEDED, "--max allows 6,999.99"),
        (lambda: longer.extend(cap="9000 EUR"), ExitCode.DECISION_NEEDED, "cannot be compared"),
        (lambda: longer.extend(read_wish("14d", None, None, None)), ExitCode.NO_CAPACITY, "on sale"),
        (lambda: longer.extend(read_wish("15d", None, None, None)), ExitCode.BAD_REQUEST, "not by 15 d"),
    ]
    for run, code, words in ways:
        ended = refusal(run)
        assert (ended.exit_code, ended.spent.line()) == (code, "nothing was spent")
        assert words in ended.message
    for fault, code in (("gone", ExitCode.DECISION_NEEDED), ("no quota", ExitCode.QUOTA)):
        longer.aws.fault = fault
        assert refusal(longer.extend).exit_code is code
    for fee in ("0.00", "not a number"):
        longer.aws.fees = {168: [fee]}
        assert "unknown" in (said := refusal(longer.extend).message) or "no fee" in said
    assert longer.aws.ledger == []
    assert {one.state for one in longer.order.extensions} == {ExtensionState.REFUSED}


def test_what_cannot_be_read_in_full_buys_nothing(longer: Longer) -> None:
    """A history that fails, on its second page too; an order without a reservation."""

    def fails(operation: str) -> None:
        raise client_error("ThrottlingException")

    longer.aws.read_fault = fails
    ended = refusal(longer.extend)
    assert (ended.exit_code, longer.aws.calls) == (ExitCode.INCOMPLETE, 0)
    order = replace(longer.order, state=OrderState.FAILED)
    till, desk = longer.till(), longer.world.desk()
    assert refusal(lambda: extend(desk, till, order, BY_A_WEEK, None)).exit_code is ExitCode.BAD_REQUEST


def test_a_history_that_changes_while_the_question_stands_open_ends_it(longer: Longer) -> None:
    """Somebody else extends meanwhile: nothing is bought by this command."""

    def meanwhile(offer: ExtensionOffer) -> None:
        row = longer.aws._buy(offer.offering_id)
        row["at"] -= timedelta(minutes=1)

    till = replace(longer.till(), agree=meanwhile)
    ended = refusal(lambda: extend(longer.world.desk(), till, longer.order, BY_A_WEEK, None))
    assert "changed meanwhile" in ended.message
    assert longer.aws.calls == 1


def test_one_unpaid_at_a_time_and_only_from_56_days_to_an_hour_before_the_end(longer: Longer) -> None:
    """What AWS would refuse is said before anything is asked of it."""
    longer.extend()
    further = Wish(until=WINDOW.end + 3 * WEEK)
    assert "is being paid" in refusal(lambda: longer.extend(further)).message
    longer.world.clock.advance(minutes=6)
    longer.aws.fees[336] = ["14000.00"]
    assert longer.extend(further, cap=None).until == WINDOW.end + 3 * WEEK
    assert [str(fee) for fee in longer.aws.ledger] == ["7000.00", "14000.00"]
    longer.world.clock.at = WINDOW.end + 3 * WEEK - timedelta(minutes=59)
    late = Wish(until=WINDOW.end + 4 * WEEK)
    assert "1 hour before" in refusal(lambda: longer.extend(late)).message
    at = Standing(WINDOW.end, WINDOW.end, extended=False, unpaid=False)
    for now, may in ((WINDOW.end - timedelta(days=56), True), (WINDOW.end - timedelta(days=57), False)):
        assert (why_not(now, at) is None) is may


def test_a_payment_that_fails_is_not_paid_and_may_be_bought_anew(longer: Longer) -> None:
    """The extension is failed, the end the old one, and the next run buys again."""
    longer.aws.fail_payment = True
    longer.extend()
    longer.world.clock.advance(minutes=6)
    longer.aws.fail_payment = False
    assert longer.extend().how is How.BOUGHT
    assert [one.state.value for one in longer.order.extensions] == ["failed", "bought"]
    longer.books_equal_ledger()


@pytest.mark.parametrize("lost", ["lost reply", None])
def test_whatever_the_history_leaves_out_or_adds_nothing_is_bought_again(
    longer: Longer, lost: str | None
) -> None:
    """Every member absent, or of a value that nobody knows: nothing crashes, nothing is bought again."""
    longer.aws.fault = lost
    row = {"offering": "", "start": 0, "end": 0, "fee": "", "fails": False, "at": longer.world.clock.now()}
    names = [name for name in longer.aws._entry(row) if name != "CapacityReservationId"]
    for name in names:
        for change in (None, "a word of tomorrow", 17):
            longer.aws.change_entry = lambda entry, name=name, change=change: {  # type: ignore[misc]
                **{key: value for key, value in entry.items() if key != name},
                **({} if change is None else {name: change}),
            }
            with suppress(BerthError):
                longer.extend()
            assert longer.aws.calls == 1, (name, change)
    longer.aws.change_entry = lambda entry: entry
    assert longer.until_known().until == WINDOW.end + WEEK


# -- rules of spending -----------------------------------------------------------------------------------
def test_the_rules_of_spending_are_asked_in_the_write_of_the_intent(longer: Longer) -> None:
    """A cap of the order counts purchase and extensions together."""
    rules = Rules("rules.toml", caps=(Cap(Per.ORDER, Money.parse("7100.00")),))
    gate = Gate(rules, "arn:aws:iam::111122223333:user/a", "arn:aws:iam::111122223333:user/a")
    desk = replace(longer.world.desk(), gate=gate)
    ended = refusal(lambda: extend(desk, longer.till(), longer.order, BY_A_WEEK, None))
    assert ended.exit_code is ExitCode.DECISION_NEEDED
    assert (longer.aws.calls, longer.order.extensions) == (0, ())
    offer = ExtensionOffer("x", Window(WINDOW.end, WINDOW.end + WEEK), Money.parse("7000.00"), WINDOW.start)
    proposal, book = propose(longer.order, offer), ExtensionBook(longer.world.journal)
    now = longer.world.clock.now()
    refusal(lambda: book.intend(proposal, offer, gate, intent_id="i", holder="p1", now=now))
    assert longer.order.extensions == ()
    wide = replace(gate, rules=replace(rules, caps=(Cap(Per.ORDER, Money.parse("7300.00")),)))
    desk = replace(desk, gate=wide)
    assert extend(desk, longer.till(), longer.order, BY_A_WEEK, None).how is How.BOUGHT
    booked = longer.world.journal.ledger().booked(None, KEY.mark)
    assert sorted(str(one.amount) for one in booked) == ["228.77 USD", "7,000.00 USD"]


def test_of_two_processes_one_intends(longer: Longer) -> None:
    """Both past the question, one past the write of the intent; the other buys nothing."""
    other = World(longer.world.place)
    order, window = longer.order, Window(WINDOW.end, WINDOW.end + WEEK)
    offer = ExtensionOffer("x", window, Money.parse("7000.00"), WINDOW.start)

    def meanwhile(_: ExtensionOffer) -> None:
        ExtensionBook(other.journal).intend(
            propose(order, offer), offer, OPEN, intent_id="i", holder="p9", now=other.clock.now()
        )

    till = replace(longer.till(), agree=meanwhile)
    ended = refusal(lambda: extend(longer.world.desk(), till, order, BY_A_WEEK, None))
    assert "being extended already" in ended.message
    assert longer.aws.calls == 0
    other.journal.close()


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("sells", sorted(FAKES))
def test_crashes_in_seeded_order(tmp_path: Path, sells: str, seed: int) -> None:
    """Several crashes, faults, lags and clock moves in an order that the seed replays: paid once."""
    chance = random.Random(seed)
    longer = Longer(World(tmp_path / "journal.sqlite", SELLERS[sells]), sells)
    world = longer.world
    longer.aws.lag = timedelta(seconds=chance.randrange(0, 301))
    for _ in range(chance.randrange(1, 7)):
        longer.aws.fault = chance.choice(FAULTS)
        world.stop_after(chance.randrange(1, 40))
        try:
            longer.extend()
        except SimulatedCrash:
            world.crash()
        except BerthError:
            pass
        world.effects.stop_at = None
        world.clock.advance(seconds=chance.choice([0, 5, 60, 299, 361, 600]))
    longer.aws.fault = None
    longer.until_known()
    longer.books_equal_ledger()
    world.journal.close()


def read_only(world: World, monkeypatch: Any) -> None:
    """From now on the journal's store takes nothing."""

    @contextmanager
    def writing() -> Iterator[None]:
        raise sqlite3.OperationalError("attempt to write a readonly database")
        yield

    monkeypatch.setattr(world.journal._db, "writing", writing)
