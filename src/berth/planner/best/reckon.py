"""What a choice of offers costs, exactly, and whether it holds. It knows nothing of the solver.

Every answer goes through here: counts are whole, sums are fractions of whole millionths, and coverage,
limits and confirmed sums are looked at again instant by instant. What a solver with floating numbers says
is only a proposal.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import accumulate, pairwise

from berth.planner.best.supply import Candidate, Meter, Supply
from berth.planner.best.wish import Wish
from berth.terms.instants import from_micros, to_micros
from berth.terms.ways import Way
from berth.terms.window import Window

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Bought:
    """`count` instances of a candidate."""

    candidate: Candidate
    count: int

    @property
    def cost(self) -> Fraction:
        """Its share of the fee, in currency units, not rounded."""
        return Fraction(self.candidate.fee.amount) * self.count / self.candidate.count


@dataclass(frozen=True, slots=True)
class Metered:
    """`count` instances paid by the hour all through `window`, and for `lead` before it: they start."""

    meter: Meter
    window: Window
    count: int
    lead: timedelta = timedelta(0)

    @property
    def paid(self) -> Window:
        """What is paid: the start-up too."""
        return Window(self.window.start - self.lead, self.window.end)

    @property
    def cost(self) -> Fraction:
        """In currency units, not rounded."""
        return Fraction(self.meter.hourly.amount) * self.count * hours(self.paid.duration)


_MICRO = timedelta(microseconds=1)
_HOUR_MICROS = _HOUR // _MICRO


@dataclass(frozen=True, slots=True)
class Demand:
    """What one instance type must do over one span: counts of all its parts together.

    `interruptible` is how many of `least` may be served by Spot.
    """

    instance_type: str
    window: Window
    least: int
    wanted: int
    interruptible: int


@dataclass(frozen=True, slots=True)
class Reckoning:
    """What a choice comes to. `cost` in currency units, not rounded; hours are instance-hours.

    `least_hours` is what had to be covered, `wanted_hours` how much of the wanted counts is.
    """

    cost: Fraction
    metered: tuple[Metered, ...]
    least_hours: Fraction
    wanted_hours: Fraction


def hours(span: timedelta) -> Fraction:
    """A span in hours, exact."""
    return Fraction(span // _MICRO, _HOUR_MICROS)


def demands(wish: Wish) -> tuple[Demand, ...]:
    """The counts of all parts by type and span, types in order of name; spans without demand are left out."""
    made: list[Demand] = []
    for kind in sorted({part.instance_type for part in wish.parts}):
        parts = [part for part in wish.parts if part.instance_type == kind]
        starts = [[s.window.start for s in part.steps] for part in parts]
        edges = sorted({e for p in parts for s in p.steps for e in (s.window.start, s.window.end)})
        for span in spans(edges):
            found = (
                (p, bisect_right(begins, span.start) - 1) for p, begins in zip(parts, starts, strict=True)
            )
            steps = [(p.steps[i], p) for p, i in found if i >= 0 and p.steps[i].window.end >= span.end]
            wanted = sum(s.wanted for s, _ in steps)
            if wanted:
                least = sum(s.least for s, _ in steps)
                loose = sum(s.least for s, p in steps if p.interruptible)
                made.append(Demand(kind, span, least, wanted, loose))
    return tuple(made)


def spans(edges: Sequence[datetime]) -> Iterator[Window]:
    """The windows between neighbouring edges, which are in order."""
    return (Window(a, b) for a, b in pairwise(edges))


def reckon(wish: Wish, supply: Supply, bought: Sequence[Bought]) -> Reckoning | None:
    """What the choice costs with the cheapest metered hours beside it; None when it does not hold.

    `wish` is fixed in time and does not pause (`reckon_paused` is for one that does).
    """
    covered = _covered(wish, supply, bought)
    if covered is None:
        return None
    metered, least, wanted = covered
    fees = sum((b.cost for b in bought), Fraction(0))
    together = started(metered, wish.startup)
    return Reckoning(sum((m.cost for m in together), fees), together, least, wanted)


def _covered(
    wish: Wish, supply: Supply, bought: Sequence[Bought]
) -> tuple[list[Metered], Fraction, Fraction] | None:
    """The hours beside the choice, span by span, and the least and wanted instance-hours that are covered."""
    if not allowed(supply, bought):
        return None
    asked = demands(wish)
    serving = {kind: _Serving(kind, bought) for kind in {d.instance_type for d in asked}}
    metered: list[Metered] = []
    least = wanted = 0
    for demand in asked:
        ladder = by_price(supply.meters, demand.instance_type)
        for start, end, held in serving[demand.instance_type].within(demand.window):
            least += demand.least * (end - start)
            wanted += min(demand.wanted, max(held, demand.least)) * (end - start)
            if held < demand.least:
                filled = fill(
                    ladder, demand, Window(from_micros(start), from_micros(end)), demand.least - held
                )
                if filled is None:
                    return None
                metered += filled
    return metered, Fraction(least, _HOUR_MICROS), Fraction(wanted, _HOUR_MICROS)


class _Serving:
    """How many instances of a type serve at each instant: a staircase in time."""

    def __init__(self, instance_type: str, bought: Sequence[Bought]) -> None:
        changes: dict[int, int] = defaultdict(int)
        for b in bought:
            if b.candidate.instance_type == instance_type:
                for window in b.candidate.usable:
                    changes[to_micros(window.start)] += b.count
                    changes[to_micros(window.end)] -= b.count
        self._edges = sorted(changes)
        self._held = list(accumulate((changes[e] for e in self._edges), initial=0))

    def within(self, window: Window) -> Iterator[tuple[int, int, int]]:
        """Start, end and number of each stair within the window, in microseconds."""
        start, end = to_micros(window.start), to_micros(window.end)
        low, high = bisect_right(self._edges, start), bisect_left(self._edges, end)
        edges = [start, *self._edges[low:high], end]
        return zip(edges, edges[1:], self._held[low : high + 1], strict=False)


def reckon_paused(
    wish: Wish, supply: Supply, bought: Sequence[Bought], running: Sequence[Window]
) -> Reckoning | None:
    """The same for work that may pause, and runs in `running`; None when it pauses too long or runs too
    little.
    """
    if not running or sum((w.duration for w in running), timedelta()) < wish.runs_at_least:
        return None
    if not wish.slack and (running[0].start, running[-1].end) != (wish.start, wish.end):
        return None
    pauses = (b.start - a.end for a, b in pairwise(running))
    if any(pause < timedelta(0) or pause > wish.most_gap for pause in pauses):
        return None
    if running[0].start < wish.start or running[-1].end > (wish.latest_end or wish.end):
        return None
    found = [_covered(paused_at(wish, window), supply, bought) for window in running]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None
    fees = sum((b.cost for b in bought), Fraction(0))
    together = started([m for metered, _, _ in parts for m in metered], wish.startup)
    return Reckoning(
        sum((m.cost for m in together), fees),
        together,
        sum((least for _, least, _ in parts), Fraction(0)),
        sum((wanted for _, _, wanted in parts), Fraction(0)),
    )


def paused_at(wish: Wish, window: Window) -> Wish:
    """The wish, running all through `window` and at no other time."""
    return wish.moved(window.start - wish.start).lasting(window.duration)


def fill(ladder: Iterable[Meter], demand: Demand, span: Window, short: int) -> list[Metered] | None:
    """`short` instances by the meters, which are in order of price; None when they do not suffice."""
    filled = [Metered(meter, span, room) for meter, room in rooms(ladder, demand, short) if room]
    return filled if sum(m.count for m in filled) >= short else None


def rooms(ladder: Iterable[Meter], demand: Demand, short: int) -> Iterator[tuple[Meter, int]]:
    """How many of `short` instances each meter serves, cheapest first.

    A limit is a quota of the Region's: meters of several zones share it. Spot serves what may be interrupted.
    """
    loose = demand.interruptible
    taken: dict[tuple[Way, str], int] = defaultdict(int)
    for meter in ladder:
        quota = (meter.way, meter.region)
        room = short if meter.unlimited else min(short, max((meter.limit or 0) - taken[quota], 0))
        if meter.way is Way.SPOT:
            room = min(room, loose)
            loose -= room
        taken[quota] += room
        short -= room
        yield meter, room


def by_price(meters: Iterable[Meter], instance_type: str) -> list[Meter]:
    """The meters of a type that can be counted on, cheapest first, then by id."""
    of_type = (m for m in meters if m.instance_type == instance_type and m.counted_on)
    return sorted(of_type, key=lambda m: (m.hourly.amount, m.id))


def joined(metered: Iterable[Metered]) -> tuple[Metered, ...]:
    """Spans of one meter and one count that follow each other as one, in order of time."""
    made: list[Metered] = []
    last: dict[tuple[str, int], int] = {}
    for use in sorted(metered, key=lambda m: (m.window.start, m.meter.id, m.count)):
        at = last.get((use.meter.id, use.count))
        if at is not None and made[at].window.end == use.window.start:
            made[at] = Metered(use.meter, Window(made[at].window.start, use.window.end), use.count)
            continue
        last[(use.meter.id, use.count)] = len(made)
        made.append(use)
    return tuple(made)


def started(metered: Iterable[Metered], startup: timedelta) -> tuple[Metered, ...]:
    """The spans as they are paid: joined, and with a start-up where instances have one.

    Then each stretch is one start of its instances, and what would stop for no longer than a start lasts goes
    on running: that costs less.
    """
    if not startup:
        return joined(metered)
    of_meter: dict[str, list[Metered]] = defaultdict(list)
    for use in metered:
        of_meter[use.meter.id].append(use)
    made = [m for uses in of_meter.values() for m in _stretches(uses, startup)]
    return tuple(sorted(made, key=lambda m: (m.window.start, m.meter.id, m.count, m.window.end)))


def _stretches(uses: Sequence[Metered], startup: timedelta) -> Iterator[Metered]:
    """Level by level from the bottom; stretches of one time are one."""
    counts: dict[Window, int] = defaultdict(int)
    floor = 0
    for height in sorted({use.count for use in uses}):
        run: Window | None = None
        for window in sorted((u.window for u in uses if u.count >= height), key=lambda w: w.start):
            if run is not None and window.start - run.end > startup:
                counts[run] += height - floor
                run = None
            run = window if run is None else Window(run.start, window.end)
        if run is not None:
            counts[run] += height - floor
        floor = height
    meter = uses[0].meter
    return (Metered(meter, window, count, startup) for window, count in counts.items())


def allowed(supply: Supply, bought: Sequence[Bought]) -> bool:
    """Whether counts can be had, no confirmed sum is exceeded, and no way's bound is."""
    for b in bought:
        whole = b.count == b.candidate.count
        if not (whole or (b.candidate.divisible and 0 < b.count < b.candidate.count)):
            return False
    for way, most in supply.most_by_way:
        if sum(b.count for b in bought if b.candidate.way is way) > most:
            return False
    return not _exceeds_confirmed(supply, bought)


def _exceeds_confirmed(supply: Supply, bought: Sequence[Bought]) -> bool:
    together: dict[tuple[str, str], list[Bought]] = defaultdict(list)
    for b in bought:
        for place in places(b.candidate, supply.candidates):
            together[(b.candidate.instance_type, place)].append(b)
    return any(_exceeds(members, *key, supply) for key, members in together.items() if len(members) > 1)


def _exceeds(members: Sequence[Bought], instance_type: str, place: str, supply: Supply) -> bool:
    """Whether `members`, which may all be in one place, take more at some instant than a search confirmed."""
    edges = sorted({e for b in members for w in b.candidate.held for e in (w.start, w.end)})
    for span in spans(edges):
        holding = [b for b in members if _within(b.candidate.held, span)]
        held = sum(b.count for b in holding)
        # What one of them was found with is confirmed; only beyond that the other searches are looked at.
        if len(holding) > 1 and held > max(b.candidate.count for b in holding):
            said = list(_confirmations(supply, instance_type, place, span))
            inner = {e for w, _ in said for e in (w.start, w.end) if span.contains(e)}
            for part in spans(sorted(inner | {span.start, span.end})):
                if held > max((count for w, count in said if w.covers(part)), default=0):
                    return True
    return False


def _confirmations(
    supply: Supply, instance_type: str, place: str, span: Window
) -> Iterator[tuple[Window, int]]:
    for c in supply.candidates:
        if c.instance_type == instance_type and place in places(c, supply.candidates):
            yield from ((w, c.count) for w in c.held if w.overlaps(span))
    for s in supply.confirmed:
        if (s.instance_type, s.zone_id) == (instance_type, place) and s.window.overlaps(span):
            yield s.window, s.count


def places(candidate: Candidate, all_of_them: Iterable[Candidate]) -> tuple[str, ...]:
    """The zones in which a candidate may take capacity: its own, or any of its Region where that is not
    known.
    """
    if candidate.zone_id is not None:
        return (candidate.zone_id,)
    known = {c.zone_id for c in all_of_them if c.region == candidate.region and c.zone_id is not None}
    return (*sorted(known), f"{candidate.region}?")


def _within(windows: Sequence[Window], span: Window) -> bool:
    return any(window.covers(span) for window in windows)
