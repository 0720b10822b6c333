"""The next best answers that differ, and what each trades for what.

Each is the best under one more condition: without a way, in other zones, as one piece, all promised,
earlier, in one zone, with the wanted counts. So each is as good as an answer of its kind can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from fractions import Fraction

from berth.planner.best.answer import Answer, money
from berth.planner.best.reckon import demands, hours
from berth.planner.best.solve import Limits, best_of, without
from berth.planner.best.supply import Candidate, Supply
from berth.planner.best.wish import Wish
from berth.terms.money import Money
from berth.terms.ways import Way

MOST = 5
_SINGLES = 12
SOONER = timedelta(hours=1)
"""An earlier end is worth a word from here on. Ours; nobody says from when on it is."""
LIGHT = Limits(nodes=60, rounds=15, scenes=60)


class Kind(StrEnum):
    """By what an answer differs."""

    PROMISED = "promised"
    ONE_PIECE = "one-piece"
    SAME_ZONE = "same-zone"
    EARLIER = "earlier"
    WANTED = "wanted"
    OTHER_PLACE = "other-place"
    WITHOUT_WAY = "without-way"


@dataclass(frozen=True, slots=True)
class Trade:
    """What an answer trades against the best: positive is more, later, dearer.

    `dearer` in money; `later` of the end of the work; `places` and `pieces` in number; `unpromised` in
    instance-hours that may be refused on the day; `wanted` in instance-hours of the wanted counts.
    """

    dearer: Money
    later: timedelta
    places: int
    pieces: int
    unpromised: Fraction
    wanted: Fraction


@dataclass(frozen=True, slots=True)
class Other:
    """Another answer, how it differs (`way` only for WITHOUT_WAY), and what it trades."""

    kind: Kind
    way: Way | None
    answer: Answer
    trade: Trade


def others(wish: Wish, supply: Supply, best: Answer, limits: Limits = LIGHT) -> tuple[Other, ...]:
    """The next best different answers, cheapest first, MOST at most; none is the best again or twice."""
    found: list[Other] = []
    known = {_body(best)}
    for kind, way, asked, has in _conditions(wish, supply, best):
        answer = best_of(asked, has, limits).answer
        if answer is None or _body(answer) in known or (kind is Kind.OTHER_PLACE and not answer.bought):
            continue
        known.add(_body(answer))
        found.append(Other(kind, way, answer, trade(best, answer)))
    found.sort(key=lambda other: (other.answer.cost, list(Kind).index(other.kind), other.way or ""))
    return tuple(found[:MOST])


def trade(best: Answer, other: Answer) -> Trade:
    """What `other` trades against `best`."""
    return Trade(
        dearer=money(other.cost - best.cost, best.currency),
        later=other.end - best.end,
        places=len(other.places) - len(best.places),
        pieces=other.pieces - best.pieces,
        unpromised=unpromised(other) - unpromised(best),
        wanted=other.wanted_hours - best.wanted_hours,
    )


def unpromised(answer: Answer) -> Fraction:
    """The instance-hours that may be refused on the day."""
    return sum((m.count * hours(m.window.duration) for m in answer.metered), Fraction(0))


def _body(answer: Answer) -> object:
    """What is bought and metered, and when: two answers of one body are one."""
    return (tuple((b.candidate.id, b.count) for b in answer.bought), answer.metered, answer.running)


def _conditions(wish: Wish, supply: Supply, best: Answer) -> Iterator[tuple[Kind, Way | None, Wish, Supply]]:
    if best.metered:
        yield Kind.PROMISED, None, wish, replace(supply, meters=())
    if best.pieces > 1:
        for single in _singles(wish, supply):
            yield Kind.ONE_PIECE, None, wish, single
    if len(best.places) > 1 and not wish.same_zone:
        yield Kind.SAME_ZONE, None, replace(wish, same_zone=True), supply
    if best.start > wish.start:
        sooner = best.end - SOONER
        if sooner > wish.start:
            yield Kind.EARLIER, None, replace(wish, latest_end=sooner), supply
    if any(s.wanted > s.least for p in wish.parts for s in p.steps):
        yield Kind.WANTED, None, wish.at_wanted(), supply
    zones = {b.candidate.zone_id or b.candidate.region for b in best.bought}
    here = frozenset(c.id for c in supply.candidates if (c.zone_id or c.region) in zones)
    yield Kind.OTHER_PLACE, None, wish, without(supply, candidates=here)
    for way in sorted({b.candidate.way for b in best.bought} | {m.meter.way for m in best.metered}):
        gone = frozenset(c.id for c in supply.candidates if c.way is way)
        unmetered = frozenset(m.id for m in supply.meters if m.way is way)
        yield Kind.WITHOUT_WAY, way, wish, without(supply, candidates=gone, meters=unmetered)


def _singles(wish: Wish, supply: Supply) -> Iterator[Supply]:
    """The cheapest offer that can do all of it alone, if there is one."""
    asked = demands(wish)
    if len({d.instance_type for d in asked}) != 1:
        return
    peak = max(d.least for d in asked)
    length = min(wish.spans, default=wish.runs_at_least if wish.most_gap else wish.end - wish.start)

    def alone(candidate: Candidate) -> bool:
        usable = sum((w.duration for w in candidate.usable), timedelta())
        return candidate.count >= peak and usable >= length and candidate.fee.currency == wish.currency

    able = sorted((c for c in supply.candidates if alone(c)), key=lambda c: (c.fee.amount, c.id))
    for candidate in able[:_SINGLES]:
        one = replace(supply, candidates=(candidate,), meters=())
        if best_of(wish, one, LIGHT).answer is not None:
            yield one
            return
