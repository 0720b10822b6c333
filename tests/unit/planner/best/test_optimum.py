"""The best combination against trying everything, and what must hold of any optimum."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from berth.planner.best.answer import Answer
from berth.planner.best.reckon import Bought, reckon
from berth.planner.best.solve import best_of
from berth.planner.best.supply import Supply
from berth.planner.best.wish import Wish
from berth.terms.money import Money

from .small_cases import SLOT, candidates, cheapest, day, exceeds, supplies, wish, wishes

FEW = settings(deadline=None, max_examples=40)
MANY = settings(deadline=None, max_examples=100)


def proven(asked: Wish, supply: Supply) -> Answer | None:
    """The answer; a small case is always solved to proof."""
    outcome = best_of(asked, supply)
    assert outcome.settled
    assert outcome.answer is None or outcome.answer.proof.optimal
    return outcome.answer


def cost(asked: Wish, supply: Supply) -> Fraction | None:
    """What the answer costs; None when nothing fits."""
    answer = proven(asked, supply)
    return None if answer is None else answer.cost


@MANY
@given(asked=wishes(), supply=supplies())
def test_nobody_finds_a_cheaper_one_by_trying_everything(asked: Wish, supply: Supply) -> None:
    """All counts of all offers are tried half hour by half hour: the same least price, or none here and
    there.
    """
    assert cost(asked, supply) == cheapest(asked, supply)


@MANY
@given(asked=wishes(), supply=supplies(), lead=st.integers(1, 30))
def test_start_up_of_metered_hours_is_paid_and_nobody_finds_a_cheaper_one(
    asked: Wish, supply: Supply, lead: int
) -> None:
    """Every stretch of every instance starts once, or goes on running where that costs less."""
    asked = replace(asked, startup=lead * SLOT)
    outcome = best_of(asked, supply)
    least = cheapest(asked, supply)
    if outcome.answer is None:
        assert least is None
        return
    assert least is not None
    assert outcome.answer.cost == least


@FEW
@given(supply=supplies(3), length=st.integers(1, 4), least=st.integers(1, 4), slack=st.integers(0, 4))
def test_a_start_that_may_move_is_moved_to_where_it_is_cheapest(
    supply: Supply, length: int, least: int, slack: int
) -> None:
    """No start on a half hour gives a lower price."""
    asked = wish((0, length / 2, least), latest_end=day((length + slack) / 2))
    starts = range(slack * 24 + 1)
    assert cost(asked, supply) == cheapest(asked, supply, starts)


@FEW
@given(asked=wishes(), supply=supplies())
def test_it_is_never_dearer_than_one_offer_all_metered_or_greedy(asked: Wish, supply: Supply) -> None:
    """Each offer alone with the rest by the hour, nothing but hours, and the offer that saves most again
    and again.
    """
    best = cost(asked, supply)
    choices: list[tuple[Bought, ...]] = [(), *((Bought(c, c.count),) for c in supply.candidates)]
    greedy: tuple[Bought, ...] = ()
    for _ in supply.candidates:
        held = {b.candidate.id for b in greedy}
        more = [(*greedy, Bought(c, c.count)) for c in supply.candidates if c.id not in held]
        priced = [(made.cost, more_of) for more_of in more if (made := reckon(asked, supply, more_of))]
        if priced:
            greedy = min(priced, key=lambda pair: pair[0])[1]
            choices.append(greedy)
    for choice in choices:
        made = reckon(asked, supply, choice)
        if made is not None:
            assert best is not None
            assert best <= made.cost


@FEW
@given(asked=wishes(), supply=supplies())
def test_one_more_offer_never_makes_it_worse(asked: Wish, supply: Supply) -> None:
    """Without its last offer, and with the rest's confirmed counts, the price is at least as high."""
    assume(supply.candidates)
    fewer = cost(asked, replace(supply, candidates=supply.candidates[:-1]))
    best = cost(asked, supply)
    if fewer is not None:
        assert best is not None
        assert best <= fewer


@FEW
@given(asked=wishes(), supply=supplies(), factor=st.sampled_from(("0.01", "0.37", "3", "1000")))
def test_prices_scaled_scale_the_price(asked: Wish, supply: Supply, factor: str) -> None:
    """All prices times a factor: the least price times that factor, exactly."""
    times = Decimal(factor)

    def scaled(money: Money) -> Money:
        return money * times

    dearer = replace(
        supply,
        candidates=tuple(replace(c, fee=scaled(c.fee)) for c in supply.candidates),
        meters=tuple(replace(m, hourly=scaled(m.hourly)) for m in supply.meters),
    )
    plain = cost(asked, supply)
    assert cost(asked, dearer) == (None if plain is None else plain * Fraction(times))


@FEW
@given(asked=wishes(), supply=supplies(), order=st.randoms(use_true_random=False))
def test_the_order_in_which_offers_come_changes_nothing(asked: Wish, supply: Supply, order: object) -> None:
    """Shuffled offers, meters and confirmed sums: the same answer in every member."""
    mixed = list(supply.candidates)
    order.shuffle(mixed)  # type: ignore[attr-defined]
    assert best_of(asked, replace(supply, candidates=tuple(mixed))) == best_of(asked, supply)


@FEW
@given(asked=wishes(), found=candidates(3), order=st.permutations(range(3)))
def test_offers_that_are_alike_may_change_places(
    asked: Wish, found: tuple[object, ...], order: list[int]
) -> None:
    """Three of each offer, alike but for the id; the ids change places, the answer stays."""

    def tripled(ids: list[int]) -> Supply:
        made = [replace(c, id=f"{c.id}/{n}", zone_id="use1-az1") for c in found for n in ids]  # type: ignore[type-var]
        return Supply(tuple(made))

    assert best_of(asked, tripled([0, 1, 2])) == best_of(asked, tripled(list(order)))


@MANY
@given(asked=wishes(), supply=supplies())
def test_no_confirmed_sum_is_ever_exceeded(asked: Wish, supply: Supply) -> None:
    """In no zone and at no time is more bought than one search found there."""
    answer = proven(asked, supply)
    if answer is not None:
        counts = {b.candidate.id: b.count for b in answer.bought}
        assert not exceeds(supply, tuple(counts.get(c.id, 0) for c in supply.candidates))


@FEW
@given(supply=supplies(4), runs=st.integers(1, 4), least=st.integers(1, 3), gap=st.integers(1, 3))
def test_work_that_pauses_runs_long_enough_and_pauses_shortly(
    supply: Supply, runs: int, least: int, gap: int
) -> None:
    """The sum of what runs is reached, no pause is too long, and it costs no more than without pauses."""
    asked = wish((0, runs / 2, least), latest_end=day(4), most_gap=gap * timedelta(hours=12))
    answer = proven(asked, supply)
    without = proven(replace(asked, most_gap=timedelta(0)), supply)
    if without is not None:
        assert answer is not None
        assert answer.cost <= without.cost
    if answer is not None:
        assert sum((w.duration for w in answer.running), timedelta()) >= runs * 24 * SLOT
        pauses = [b.start - a.end for a, b in zip(answer.running, answer.running[1:], strict=False)]
        assert all(timedelta(0) < pause <= asked.most_gap for pause in pauses)
