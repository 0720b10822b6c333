"""When nothing fits: the smallest change of each kind that would, in order of pain.

Each constraint is loosened by itself and the wish solved again, until the smallest value is found with
which something fits. What is told is that value, so it can be written into the need as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from berth.planner import ladder
from berth.planner.best.answer import Answer, Outcome
from berth.planner.best.others import LIGHT
from berth.planner.best.solve import Limits, best_of
from berth.planner.best.supply import Supply
from berth.planner.best.wish import Wish
from berth.terms.money import Money

_MOST_VALUES = 64
_PAUSES = 4


class Kind(StrEnum):
    """What is changed; the least painful first."""

    BUDGET = "budget"
    END = "end"
    START = "start"
    ZONES = "zones"
    COUNT = "count"
    GAP = "gap"
    DURATION = "duration"


@dataclass(frozen=True, slots=True)
class Change:
    """With `value` instead of what the wish says, `answer` fits.

    `value` is the budget (Money), the latest end or the start (datetime), the words of the constraint that
    goes (str), by how many counts are lower (int), the longest gap or the duration (timedelta).
    """

    kind: Kind
    value: Money | datetime | str | int | timedelta
    answer: Answer


def changes(wish: Wish, supply: Supply, nothing: Outcome, limits: Limits = LIGHT) -> tuple[Change, ...]:
    """Each kind of change that would help, in order of pain; `nothing` is the outcome without one."""
    found: list[Change] = []
    if nothing.over_budget is not None:
        found.append(Change(Kind.BUDGET, nothing.over_budget.total, nothing.over_budget))

    def fits(changed: Wish) -> Answer | None:
        return best_of(changed, supply, limits).answer

    for look in (_later, _sooner, _elsewhere, _fewer, _with_gap, _shorter):
        found += look(wish, supply, fits)
    return tuple(sorted(found, key=lambda c: list(Kind).index(c.kind)))


Fits = Callable[[Wish], Answer | None]


def _first(wishes: Sequence[Wish], fits: Fits) -> tuple[int, Answer] | None:
    """The first of the wishes that fits, where each allows all that the one before allows."""
    if not wishes or (found := fits(wishes[-1])) is None:
        return None
    low, high = 0, len(wishes) - 1
    while low < high:
        middle = (low + high) // 2
        answer = fits(wishes[middle])
        if answer is None:
            low = middle + 1
        else:
            high, found = middle, answer
    return high, found


def _few(values: Iterable[timedelta]) -> list[timedelta]:
    """The smallest values, so many that looking through them stays cheap."""
    return sorted({v for v in values if v > timedelta(0)})[:_MOST_VALUES]


def _edges(supply: Supply) -> set[datetime]:
    return {e for c in supply.candidates for w in c.usable for e in (w.start, w.end)}


def _later(wish: Wish, supply: Supply, fits: Fits) -> Iterator[Change]:
    """A later end; with a fixed start a later start."""
    edges = _edges(supply)
    latest = wish.latest_end or wish.end
    length = wish.end - wish.start
    shifts = _few([e - latest for e in edges] + [e + length - latest for e in edges])
    wishes = [replace(wish, latest_end=latest + shift) for shift in shifts]
    if found := _first(wishes, fits):
        answer = found[1]
        if wish.latest_end is None:
            yield Change(Kind.START, answer.start, answer)
        else:
            yield Change(Kind.END, latest + shifts[found[0]], answer)


def _sooner(wish: Wish, supply: Supply, fits: Fits) -> Iterator[Change]:
    """An earlier start, no later end."""
    length = wish.end - wish.start
    edges = _edges(supply)
    backs = _few([wish.start - e for e in edges] + [wish.start - (e - length) for e in edges])
    wishes = [replace(wish.moved(-back), latest_end=wish.latest_end or wish.end) for back in backs]
    if found := _first(wishes, fits):
        yield Change(Kind.START, found[1].start, found[1])


def _elsewhere(wish: Wish, supply: Supply, fits: Fits) -> Iterator[Change]:
    """Fewer bounds on where: the least of them that helps."""
    together = wish.same_zone or any(part.beside for part in wish.parts)
    apart = replace(wish, same_zone=False, parts=tuple(replace(p, beside=None) for p in wish.parts))
    if together and (answer := fits(replace(apart, same_region=True))):
        yield Change(Kind.ZONES, "several zones of one Region", answer)
    elif (together or wish.same_region) and (answer := fits(replace(apart, same_region=False))):
        yield Change(Kind.ZONES, "several Regions", answer)
    elif wish.zones is not None and (answer := fits(replace(wish, zones=None))):
        yield Change(Kind.ZONES, f"zone {', '.join(answer.places)}", answer)
    elif wish.regions is not None and (answer := fits(replace(wish, zones=None, regions=None))):
        yield Change(Kind.ZONES, f"Region of {', '.join(answer.places)}", answer)


def _fewer(wish: Wish, supply: Supply, fits: Fits) -> Iterator[Change]:
    most = max(s.least for p in wish.parts for s in p.steps)
    if found := _first([wish.with_counts(k) for k in range(1, most)], fits):
        yield Change(Kind.COUNT, found[0] + 1, found[1])


def _with_gap(wish: Wish, supply: Supply, fits: Fits) -> Iterator[Change]:
    """A gap, or a longer one. With a fixed start what pauses is lost, in at most four pauses."""
    if any(len(p.steps) > 1 for p in wish.parts) or len({p.instance_type for p in wish.parts}) > 1:
        return
    ends = {w.end for c in supply.candidates for w in c.usable}
    starts = {w.start for c in supply.candidates for w in c.usable}
    gaps = [g for g in _few(s - e for s in starts for e in ends) if g > wish.most_gap]
    length = wish.end - wish.start

    def paused(gap: timedelta) -> Wish:
        runs = wish.runs if wish.slack else max(length - _PAUSES * gap, timedelta(hours=1))
        return replace(wish, most_gap=gap, runs=runs, spans=())

    wishes = [paused(gap) for gap in gaps if gap < length]
    if found := _first(wishes, fits):
        yield Change(Kind.GAP, gaps[found[0]], found[1])


def _shorter(wish: Wish, supply: Supply, fits: Fits) -> Iterator[Change]:
    """The longest step of the ladder below the duration that fits, as long as the need itself holds it."""
    length = min(wish.spans, default=wish.end - wish.start)
    steps = [step for step in reversed(ladder.LADDER) if step < length][:_MOST_VALUES]
    wishes = [replace(wish.lasting(step), most_gap=timedelta(0), runs=None) for step in steps]
    if found := _first(wishes, fits):
        yield Change(Kind.DURATION, steps[found[0]], found[1])
