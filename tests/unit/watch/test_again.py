"""Asking again until something fits: what fits, when the next round is due, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.planner.best.combination import Combination, Evidence, Mix, Piece
from berth.planner.choose import make_plan
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.planner.owned import Owned, OwnedAnswer
from berth.planner.plan import Choice, Plan
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window
from berth.watch.again import EVERY, ask_until, fits_under, mix_under, next_round

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
NEED = Need("wait-1", "p5.48xlarge", 1, timedelta(days=1), Target.INSTANCES, ("us-east-1",))
QUERY = Query(Way.CAPACITY_BLOCK, "us-east-1", "p5.48xlarge", 1, 24, Target.INSTANCES)


BLOCK = Way.CAPACITY_BLOCK


def offer(fee: str | None, currency: str = "USD") -> Offer:
    """A block for a day from the third of December."""
    start = datetime(2026, 12, 3, 11, 30, tzinfo=UTC)
    segment = Segment(Window(start, start + timedelta(days=1)), "use1-az1", "us-east-1a", "p5.48xlarge", 1)
    price = Money(Decimal(fee), currency) if fee else None
    return Offer(
        Way.CAPACITY_BLOCK, "us-east-1", f"cb-{fee}-{currency}", (segment,), 1, "p5.48xlarge", price,
        ("instances",), NOW, QUERY,
    )  # fmt: skip


def plan(*fees: str | None, outcome: PlaceOutcome = PlaceOutcome.OFFERS, currency: str = "USD") -> Plan:
    """What a round saw."""
    offers = tuple(offer(fee, currency) for fee in fees)
    if not offers and outcome is PlaceOutcome.OFFERS:
        outcome = PlaceOutcome.NONE_ON_SALE
    answer = PlaceAnswer(Way.CAPACITY_BLOCK, "us-east-1", outcome, NOW, "", offers, QUERY)
    return make_plan(NEED, [answer], [], NOW)


class Clock:
    """A followed clock that sleeping moves; a simulated one is moved by `hear` of the test."""

    def __init__(self, simulated: bool = False) -> None:
        self.is_simulated = simulated
        self.at = NOW
        self.real = 0.0

    def now(self) -> datetime:
        """The present on it."""
        return self.at

    def elapsed(self) -> float:
        """Real seconds."""
        return self.real

    def sleep(self, seconds: float) -> None:
        """Sleep real seconds."""
        self.real += seconds
        if not self.is_simulated:
            self.at += timedelta(seconds=seconds)


@dataclass
class Rounds:
    """Rounds that a test scripts; the last one repeats."""

    script: list[Plan]
    clock: Clock
    least: float = 0.0
    asked_at: list[datetime] = field(default_factory=list)
    heard: int = 0
    stood: int = 0
    on_hear: Callable[[Clock, int], None] = lambda clock, heard: None
    lines: list[tuple[int, bool, datetime | None]] = field(default_factory=list)

    def ask(self) -> Plan:
        """One round."""
        self.asked_at.append(self.clock.now())
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def least_s(self) -> float:
        """By the buckets."""
        return self.least

    def hear_clock(self) -> None:
        """A yard tells its time."""
        self.heard += 1
        self.on_hear(self.clock, self.heard)

    def told(self, number: int, plan: Plan, found: Choice | Mix | None, due: datetime | None) -> None:
        """A round is over."""
        self.lines.append((number, found is not None, due))

    def standing(self) -> None:
        """It stands still."""
        self.stood += 1


def never(plan: Plan) -> bool:
    """There is always hope."""
    return False


@pytest.mark.parametrize(
    ("fees", "most", "fits"),
    [
        (("1200", "1100"), "1150", "1100"), (("1200",), "1150", None), (("1150",), "1150", "1150"),
        ((None, "1300"), None, "1300"), ((None,), None, None), (("0",), "1150", None), ((), "1", None),
    ],
)  # fmt: skip
def test_what_fits_under_a_limit(fees: tuple[str | None, ...], most: str | None, fits: str | None) -> None:
    """The first whose total is known and not over it; unknown and zero prices never fit."""
    found = fits_under(plan(*fees), Money(Decimal(most)) if most else None)
    assert (found.fee.amount if found and found.fee else None) == (Decimal(fits) if fits else None)


def test_another_currency_never_fits() -> None:
    """1,000 EUR are not under 1,150 USD: nobody compares them."""
    assert fits_under(plan("1000", currency="EUR"), Money(Decimal(1150))) is None


def mixed(total: str, *ways: Way) -> Plan:
    """A plan without a choice, and with a combination of pieces of these ways."""
    usd, window = Money(Decimal(total)), Window(NOW, NOW + timedelta(days=1))
    where = ("p5.48xlarge", "us-east-1", "use1-az1")
    pieces = tuple(
        Piece(None, way, *where, "cb-1" if way is BLOCK else None, (window,), (window,), 1, 1, usd)
        for way in ways
    )
    mix = Mix(pieces, usd, (window,), Decimal(24), None, None)
    evidence = Evidence(2, True, usd, Decimal(0), 1, 0, 0, True)
    return replace(plan(), combination=Combination("p5.48xlarge", mix, evidence))


@pytest.mark.parametrize(
    ("made", "most", "fits"),
    [
        (mixed("1100", BLOCK, BLOCK), "1100", True), (mixed("1100", BLOCK, BLOCK), "1099", False),
        (mixed("1100", BLOCK, BLOCK), None, True), (mixed("1100", BLOCK, Way.ON_DEMAND), "1200", False),
        (plan(), None, False),
    ],
)  # fmt: skip
def test_a_mix_fits_where_all_of_it_is_promised(made: Plan, most: str | None, fits: bool) -> None:
    """Under the limit, and without hours that may be refused on the day."""
    assert (mix_under(made, Money(Decimal(most)) if most else None) is not None) is fits


def test_a_mix_ends_the_wait_where_no_offer_does() -> None:
    """The second round has two purchases that together fit."""
    clock = Clock()
    rounds = Rounds([plan(), mixed("1100", BLOCK, BLOCK)], clock)
    waited = ask_until(rounds, Money(Decimal(1150)), NOW + timedelta(days=1), clock, never)
    assert (waited.found, waited.rounds, waited.nothing) == (None, 2, False)
    assert waited.mix is not None
    assert [found for _, found, _ in rounds.lines] == [False, True]


@settings(deadline=None, max_examples=60)
@given(st.floats(0, 5000), st.integers(0, 100_000))
def test_the_next_round_is_inside_the_buckets_and_not_after_the_date(least: float, left: int) -> None:
    """Never sooner than a bucket needs, never later than the date."""
    until = NOW + timedelta(seconds=left)
    due = next_round(NOW, until, least)
    assert due <= until
    assert due == until or due - NOW >= max(EVERY, timedelta(seconds=least))


def test_it_ends_when_something_fits() -> None:
    """Third round, ten minutes later: found, and no round after."""
    rounds = Rounds([plan(), plan("1300"), plan("1100")], Clock())
    ended = ask_until(rounds, Money(Decimal(1150)), NOW + timedelta(days=3), rounds.clock, never)
    assert ended.found is not None
    assert ended.rounds == 3
    assert [found for _, found, _ in rounds.lines] == [False, False, True]
    assert rounds.lines[-1][2] is None
    gaps = [b - a for a, b in zip(rounds.asked_at, rounds.asked_at[1:], strict=False)]
    assert all(EVERY <= gap <= EVERY + timedelta(seconds=11) for gap in gaps)


def test_it_asks_once_more_at_the_date_and_ends() -> None:
    """Seven minutes: at once, after five, at the date; then not found."""
    rounds = Rounds([plan()], Clock())
    until = NOW + timedelta(minutes=7)
    ended = ask_until(rounds, None, until, rounds.clock, never)
    assert (ended.found, ended.rounds) == (None, 3)
    assert rounds.asked_at[-1] >= until


def test_a_date_that_is_over_is_asked_for_once() -> None:
    """One round, so that the same command after the date says how it stands."""
    rounds = Rounds([plan()], Clock())
    assert ask_until(rounds, None, NOW - timedelta(hours=1), rounds.clock, never).rounds == 1


def test_a_yards_clock_is_followed_and_not_outrun() -> None:
    """It stands still until somebody moves it: that is said once, and no round is asked meanwhile."""

    def moved(clock: Clock, heard: int) -> None:
        if heard == 20:
            clock.at = NOW + timedelta(hours=1)

    clock = Clock(simulated=True)
    rounds = Rounds([plan(), plan("1100")], clock, on_hear=moved)
    ended = ask_until(rounds, None, NOW + timedelta(days=1), clock, never)
    assert (ended.rounds, rounds.stood, rounds.heard) == (2, 1, 20)
    assert rounds.asked_at == [NOW, NOW + timedelta(hours=1)]


def test_what_cannot_change_is_not_waited_for() -> None:
    """A caller who may not ask is told after one round."""
    rounds = Rounds([plan(outcome=PlaceOutcome.NOT_ALLOWED)], Clock())
    ended = ask_until(rounds, None, NOW + timedelta(days=1), rounds.clock, lambda plan: True)
    assert (ended.found, ended.rounds) == (None, 1)


def test_ctrl_c_in_a_round_ends_the_wait() -> None:
    """A round that was interrupted is not taken for one that found nothing."""
    rounds = Rounds([plan(outcome=PlaceOutcome.NOT_ASKED)], Clock())
    with pytest.raises(KeyboardInterrupt):
        ask_until(rounds, None, NOW + timedelta(days=1), rounds.clock, never)


def test_what_is_owned_already_counts_as_found() -> None:
    """Nothing has to be bought then, so nobody waits on."""
    block = Owned(
        Way.CAPACITY_BLOCK, "us-east-1", "cr-1", None, "active", "p5.48xlarge", 1, 1, NOW,
        NOW + timedelta(days=3), ("use1-az1",), tags=(),
    )  # fmt: skip
    answer = PlaceAnswer(Way.CAPACITY_BLOCK, "us-east-1", PlaceOutcome.NONE_ON_SALE, NOW, question=QUERY)
    owned = [OwnedAnswer(Way.CAPACITY_BLOCK, "us-east-1", (block,))]
    rounds = Rounds([make_plan(NEED, [answer], [], NOW, owned=owned)], Clock())
    ended = ask_until(rounds, None, NOW + timedelta(days=1), rounds.clock, never)
    assert ended.plan.reuse is not None
    assert (ended.found, ended.rounds) == (None, 1)
