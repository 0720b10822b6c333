"""Small cases of the best combination, and an answer to them by trying everything."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from berth.planner.best.supply import Candidate, Confirmed, Meter, Supply
from berth.planner.best.wish import Part, Step, Wish
from berth.terms.money import Money
from berth.terms.ways import Way
from berth.terms.window import Window

T0 = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
SLOT = timedelta(minutes=30)
DAYS = 4
SLOTS = DAYS * 48
TYPE = "p5.48xlarge"


def day(n: float) -> datetime:
    """The instant `n` days after the first 11:30."""
    return T0 + timedelta(days=n)


def window(start: float, days: float) -> Window:
    """`days` days from day `start` on."""
    return Window(day(start), day(start + days))


def candidate(name: str, start: float, days: float, count: int, fee: str, **other: Any) -> Candidate:
    """A block of one piece, of which the last half hour cannot be used."""
    held = window(start, days)
    usable = held.shortened(SLOT)
    assert usable is not None
    values: dict[str, Any] = {
        "way": Way.CAPACITY_BLOCK, "instance_type": TYPE, "region": "us-east-1", "zone_id": "use1-az1",
        "held": (held,), "usable": (usable,),
    }  # fmt: skip
    return Candidate(name, count=count, fee=Money(Decimal(fee)), **(values | other))


def meter(hourly: str, limit: int | None = None, **other: Any) -> Meter:
    """On-demand in one Region; without a limit there is none."""
    values: dict[str, Any] = {
        "way": Way.ON_DEMAND, "instance_type": TYPE, "region": "us-east-1", "zone_id": None,
        "id": "on-demand", "unlimited": limit is None,
    }  # fmt: skip
    return Meter(hourly=Money(Decimal(hourly)), limit=limit, **(values | other))


def wish(*steps: tuple[float, float, int], **other: Any) -> Wish:
    """One part with steps of (start, days, least)."""
    made = tuple(Step(window(start, days), least, least) for start, days, least in steps)
    return Wish((Part("all", TYPE, made),), **other)


# -- drawn cases -------------------------------------------------------------------------------------------
ZONES = ("use1-az1", "use1-az2", None)
HALF_DAYS = st.integers(0, 2 * DAYS - 1).map(lambda n: n / 2)


@st.composite
def candidates(draw: st.DrawFn, most: int = 5) -> tuple[Candidate, ...]:
    """Up to `most` offers of half a day to the whole time, some divisible, some in two pieces."""
    made = []
    for n in range(draw(st.integers(0, most))):
        start = draw(HALF_DAYS)
        days = draw(st.integers(1, 2 * DAYS - int(2 * start))) / 2
        count = draw(st.sampled_from((1, 2, 4)))
        fee = draw(st.integers(1, 40)) * count * days * 10
        other: dict[str, Any] = {"zone_id": draw(st.sampled_from(ZONES)), "divisible": draw(st.booleans())}
        if days >= 1.5 and draw(st.booleans()):
            held = (window(start, 0.5), window(start + 1, days - 1))
            other |= {"held": held, "usable": tuple(Window(w.start, w.end - SLOT) for w in held)}
        made.append(candidate(f"offer-{n}", start, days, count, f"{fee:.2f}", **other))
    return tuple(made)


@st.composite
def supplies(draw: st.DrawFn, most: int = 5, *, unlimited: bool = False) -> Supply:
    """Offers, on-demand without a limit, with one or not at all, and now and then a confirmed sum."""
    meters: tuple[Meter, ...] = ()
    limit = None if unlimited else draw(st.sampled_from((None, 0, 1, 3)))
    if limit != 0:
        meters = (meter(str(draw(st.integers(1, 30))), limit),)
    confirmed: tuple[Confirmed, ...] = ()
    if draw(st.booleans()):
        start = draw(HALF_DAYS)
        confirmed = (Confirmed(TYPE, "use1-az1", window(start, DAYS - start), draw(st.sampled_from((3, 6)))),)
    return Supply(draw(candidates(most)), meters, confirmed)


@st.composite
def wishes(draw: st.DrawFn, **other: Any) -> Wish:
    """One to three steps one after the other, with holes between them or without."""
    edges = sorted(draw(st.sets(st.integers(0, 2 * DAYS), min_size=2, max_size=4)))
    steps = [(a / 2, (b - a) / 2, draw(st.integers(0, 4))) for a, b in itertools.pairwise(edges)]
    return wish(*steps, **other)


# -- all mixes, half hour by half hour; knows nothing of the planner's rules -------------------------------
def slots(windows: tuple[Window, ...]) -> Any:
    """1 in each half hour that lies within one of the windows."""
    held = np.zeros(SLOTS, dtype=int)
    for w in windows:
        held[(w.start - T0) // SLOT : (w.end - T0) // SLOT] = 1
    return held


def mixes(supply: Supply) -> Iterator[tuple[int, ...]]:
    """Every count of every offer."""
    return itertools.product(
        *(range(c.count + 1) if c.divisible else (0, c.count) for c in supply.candidates)
    )


def needed(asked: Wish, shift: int = 0) -> Any:
    """The least count of each half hour, `shift` half hours later."""
    counts = np.zeros(SLOTS, dtype=int)
    for part in asked.parts:
        for step in part.steps:
            counts += slots((step.window,)) * step.least
    return np.roll(counts, shift)


def exceeds(supply: Supply, mix: tuple[int, ...]) -> bool:
    """Whether in some zone at some time more is held than one search found."""
    for zone in ("use1-az1", "use1-az2", "somewhere"):
        inside = [
            (c, n)
            for c, n in zip(supply.candidates, mix, strict=True)
            if c.zone_id is None or c.zone_id == zone
        ]
        held = sum((slots(c.held) * n for c, n in inside), np.zeros(SLOTS, dtype=int))
        found = np.zeros(SLOTS, dtype=int)
        for c, _ in inside:
            found = np.maximum(found, slots(c.held) * c.count)
        for said in supply.confirmed:
            if said.zone_id == zone:
                found = np.maximum(found, slots((said.window,)) * said.count)
        if (held > found).any():
            return True
    return False


def paid_slots(short: Any, lead: int) -> int:
    """The half hours that are paid of what is missing: each stretch of each instance with its start-up of
    `lead` half hours, unless going on running costs no more.
    """
    paid = int(short.sum())
    for height in range(1, int(short.max(initial=0)) + 1):
        on = np.flatnonzero(short >= height)
        gaps = np.diff(on) - 1
        paid += lead + int(np.minimum(gaps, lead).sum())
    return paid


def price(supply: Supply, mix: tuple[int, ...], counts: Any, lead: int = 0) -> Fraction | None:
    """What a mix costs with on-demand for the rest; None when that does not suffice."""
    bought = zip(supply.candidates, mix, strict=True)
    held = sum((slots(c.usable) * n for c, n in bought), np.zeros(SLOTS, dtype=int))
    short = np.clip(counts - held, 0, None)
    most = max((99 if m.unlimited else m.limit or 0 for m in supply.meters), default=0)
    if short.max(initial=0) > most:
        return None
    fees = sum(
        (Fraction(c.fee.amount) * n / c.count for c, n in zip(supply.candidates, mix, strict=True)),
        Fraction(0),
    )
    hourly = Fraction(supply.meters[0].hourly.amount) if supply.meters else Fraction(0)
    return fees + hourly * paid_slots(short, lead) / 2


def cheapest(asked: Wish, supply: Supply, shifts: range = range(1)) -> Fraction | None:
    """The least price of all mixes at all starts; None when none holds."""
    allowed = [mix for mix in mixes(supply) if not exceeds(supply, mix)]
    lead = asked.startup // SLOT
    prices = [price(supply, mix, needed(asked, shift), lead) for shift in shifts for mix in allowed]
    return min((p for p in prices if p is not None), default=None)
