"""A wish and a supply as arrays: time collapsed to the distinct edges, what cannot help left out.

A *row* is one span of one instance type between two neighbouring edges of offers. The same offers serve all
of it, so nothing is lost by looking at rows instead of minutes. Where the need changes inside a row, so
does what is missing: that is in the row's cost of being short.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from berth.planner.best.reckon import Demand, by_price, demands, places, rooms
from berth.planner.best.supply import Candidate, Meter, Supply
from berth.planner.best.wish import Wish
from berth.terms.instants import to_micros

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_HOUR = 3_600_000_000
_MICRO = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class MeterColumn:
    """Up to `most` instances that are missing in a row, for `cost` each in metered hours."""

    row: int
    cost: float
    most: float


@dataclass(frozen=True, slots=True)
class Room:
    """The counts of `members` (indexes of offers) may not sum to more than `most`."""

    members: Ints
    most: int


@dataclass(frozen=True, slots=True)
class Starts:
    """What it costs at least that instances which are paid by the hour start.

    `hourly` is the least price of an hour in a row. `cost[i]` is that of a start for row i of an instance
    that did not run in row i - 1. `bridge[i]`: what one that did costs between the two rows, where a hole is:
    to start again, or to run on, whichever costs less; one that did not costs that much too, and `cost[i]` is
    the rest. `follows[i]`: row i - 1 is of the same type.
    """

    hourly: Floats
    cost: Floats
    bridge: Floats
    follows: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Grid:
    """The problem in numbers. Costs are currency units divided by `unit`, a power of ten.

    Offer j covers the rows `first[j, k]` to before `last[j, k]` for its segments k (0, 0 where it has
    fewer), is taken in steps of `size[j]` instances, `most[j]` steps at most, each for `cost[j]`.
    `shortage[i, n]` is what n instances that no offer covers cost in row i; where they cannot be had at
    all, a penalty.
    """

    offers: tuple[Candidate, ...]
    first: Ints
    last: Ints
    size: Ints
    most: Ints
    cost: Floats
    need: Ints
    starts: Ints
    ends: Ints
    kinds: tuple[str, ...]
    meters: tuple[MeterColumn, ...]
    rooms: tuple[Room, ...]
    shortage: Floats
    unit: float
    penalty: float
    starting: Starts | None = None

    @property
    def spans(self) -> Ints:
        """The length of each row in microseconds."""
        return self.ends - self.starts

    def only(self, keep: NDArray[np.bool_]) -> Grid:
        """The grid with a part of its offers."""
        kept = np.flatnonzero(keep)
        place = np.full(len(self.offers), -1)
        place[kept] = np.arange(len(kept))
        seats = ((place[room.members], room.most) for room in self.rooms)
        return replace(
            self,
            offers=tuple(self.offers[j] for j in kept),
            first=self.first[kept],
            last=self.last[kept],
            size=self.size[kept],
            most=self.most[kept],
            cost=self.cost[kept],
            rooms=tuple(Room(members[members >= 0], most) for members, most in seats if (members >= 0).any()),
        )


def grid_of(wish: Wish, supply: Supply, extra_edges: Iterable[int] = ()) -> Grid:
    """The grid of a wish that is fixed in time, without the offers that cannot help."""
    candidates = _undoubled(supply, sorted(supply.candidates, key=order_of))
    asked, edges = demands(wish), list(extra_edges)
    if wish.startup:  # starts are counted from row to row, so that the need must not change inside of one
        edges += [to_micros(edge) for d in asked for edge in (d.window.start, d.window.end)]
    grid = _built(asked, candidates, supply, tuple(edges))
    if wish.startup and len(grid.need):
        # What an offer saves of starts depends on the others: none can be left out for what it saves alone.
        grid = replace(grid, starting=_starts(grid, supply, wish.startup // _MICRO))
    useful = grid.only(_can_help(grid)) if grid.starting is None else grid
    return replace(useful, rooms=tuple(_rooms(useful.offers, supply)))


def order_of(candidate: Candidate) -> tuple[object, ...]:
    """An order of candidates that does not depend on the order in which they came; the id decides last."""
    return (
        candidate.instance_type,
        candidate.held,
        candidate.region,
        candidate.zone_id or "",
        candidate.way.value,
        candidate.usable,
        candidate.count,
        candidate.fee.amount,
        candidate.divisible,
        candidate.id,
    )


def _unit(supply: Supply) -> float:
    """A power of ten that brings the dearest offer to about ten thousand: doubles are then exact enough."""
    dearest = max((float(c.fee.amount) for c in supply.candidates), default=0.0)
    dearest = max(dearest, max((float(m.hourly.amount) for m in supply.meters), default=0.0))
    return float(10.0 ** (int(np.floor(np.log10(dearest))) - 3)) if dearest > 0 else 1.0


def _undoubled(supply: Supply, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Of offers that differ in fee and id alone, and of which no two can be had at once, the cheapest."""
    most: dict[tuple[str, str | None], int] = defaultdict(int)
    for c in supply.candidates:
        most[(c.instance_type, c.zone_id)] = max(most[(c.instance_type, c.zone_id)], c.count)
    for s in supply.confirmed:
        most[(s.instance_type, s.zone_id)] = max(most[(s.instance_type, s.zone_id)], s.count)
    kept: dict[tuple[object, ...], Candidate] = {}
    for c in sorted(candidates, key=lambda c: (c.fee.amount, c.id)):
        alike: tuple[object, ...] = (
            c.instance_type, c.zone_id, c.region, c.way, c.held, c.usable, c.count, c.divisible,
        )  # fmt: skip
        # Of two that can be divided, both are of use until one alone has all that was confirmed.
        both = c.count + 1 if c.divisible else 2 * c.count
        exclusive = c.zone_id is not None and both > most[(c.instance_type, c.zone_id)]
        kept.setdefault(alike if exclusive else (c.id,), c)
    return sorted(kept.values(), key=order_of)


def _can_help(grid: Grid) -> NDArray[np.bool_]:
    """Whether an offer, alone against all metered hours, would save anything; alone it saves most."""
    rows = np.arange(len(grid.need))
    sizes, which = np.unique(grid.size * grid.most, return_inverse=True)
    left = np.clip(grid.need[None, :] - sizes[:, None], 0, None)
    saved = grid.shortage[rows, grid.need][None, :] - grid.shortage[rows[None, :], left]
    summed = np.concatenate([np.zeros((len(sizes), 1)), np.cumsum(saved, axis=1)], axis=1)
    whole = (summed[which[:, None], grid.last] - summed[which[:, None], grid.first]).sum(axis=1)
    # A divisible offer may help with one instance where all of it is too dear: judged by its first step.
    first_step = np.where(grid.most > 1, _first_step_gain(grid), whole - grid.cost * grid.most)
    useful: NDArray[np.bool_] = first_step > -1e-7
    return useful & (grid.last > grid.first).any(axis=1)


def _first_step_gain(grid: Grid) -> Floats:
    rows = np.arange(len(grid.need))
    saved = grid.shortage[rows, grid.need] - grid.shortage[rows, np.clip(grid.need - 1, 0, None)]
    summed = np.concatenate([[0.0], np.cumsum(saved)])
    gain: Floats = (summed[grid.last] - summed[grid.first]).sum(axis=1) - grid.cost
    return gain


@dataclass(frozen=True, slots=True)
class _Piece:
    """A span of one type in which both the need and what serves it stay the same; in microseconds."""

    start: int
    end: int
    demand: Demand


def _built(
    asked: Sequence[Demand], candidates: Sequence[Candidate], supply: Supply, extra: Sequence[int]
) -> Grid:
    """The grid without rooms, with all offers that serve anything."""
    unit = _unit(supply)
    windows = [[(to_micros(w.start), to_micros(w.end)) for w in c.usable] for c in candidates]
    edges: dict[str, set[int]] = defaultdict(lambda: set(extra))
    for c, pairs in zip(candidates, windows, strict=True):
        edges[c.instance_type].update(e for pair in pairs for e in pair)
    rows = [
        row for kind in sorted({d.instance_type for d in asked}) for row in _rows(kind, asked, edges[kind])
    ]
    spots = _spots(rows, [c.instance_type for c in candidates], windows)
    serving = [j for j, segments in enumerate(spots) if segments]
    offers = tuple(candidates[j] for j in serving)
    first, last = _segment_arrays([spots[j] for j in serving])
    need = np.array([max(piece.demand.least for piece in row) for row in rows], dtype=np.int64)
    shortage, penalty = _shortage(rows, need, supply, unit)
    counts = np.array([c.count for c in offers], dtype=np.int64)
    divisible = np.array([c.divisible for c in offers], dtype=bool)
    most = np.where(divisible, counts, 1)
    return Grid(
        offers=offers,
        first=first,
        last=last,
        size=np.where(divisible, 1, counts),
        most=most,
        cost=np.array([float(c.fee.amount) for c in offers]) / unit / most,
        need=need,
        starts=np.array([row[0].start for row in rows], dtype=np.int64),
        ends=np.array([row[-1].end for row in rows], dtype=np.int64),
        kinds=tuple(row[0].demand.instance_type for row in rows),
        meters=columns_of(shortage, need, penalty),
        rooms=(),
        shortage=shortage,
        unit=unit,
        penalty=penalty,
    )


def _rows(kind: str, asked: Sequence[Demand], edges: set[int]) -> list[list[_Piece]]:
    """The pieces of a type between neighbouring edges of offers, in order of time."""
    cuts = sorted(edges)
    rows: dict[int, list[_Piece]] = defaultdict(list)
    for demand in asked:
        if demand.instance_type != kind or not demand.least:
            continue
        start, end = to_micros(demand.window.start), to_micros(demand.window.end)
        inner = cuts[bisect_right(cuts, start) : bisect_left(cuts, end)]
        for a, b in pairwise([start, *inner, end]):
            rows[bisect_right(cuts, a)].append(_Piece(a, b, demand))
    return [rows[key] for key in sorted(rows)]


def _spots(
    rows: Sequence[Sequence[_Piece]], kinds: Sequence[str], windows: Sequence[Sequence[tuple[int, int]]]
) -> list[list[tuple[int, int]]]:
    """For each offer the ranges of rows that lie within its windows."""
    at: dict[str, int] = {}
    starts: dict[str, list[int]] = defaultdict(list)
    ends: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        kind = row[0].demand.instance_type
        at.setdefault(kind, i)
        starts[kind].append(row[0].start)
        ends[kind].append(row[-1].end)
    found: list[list[tuple[int, int]]] = []
    for kind, pairs in zip(kinds, windows, strict=True):
        ranges = ((bisect_left(starts[kind], a), bisect_right(ends[kind], b)) for a, b in pairs)
        base = at.get(kind, 0)
        found.append([(base + low, base + high) for low, high in ranges if high > low])
    return found


def _segment_arrays(spots: Sequence[Sequence[tuple[int, int]]]) -> tuple[Ints, Ints]:
    width = max((len(s) for s in spots), default=1)
    first, last = np.zeros((len(spots), width), dtype=np.int64), np.zeros((len(spots), width), dtype=np.int64)
    for j, segments in enumerate(spots):
        for k, (low, high) in enumerate(segments):
            first[j, k], last[j, k] = low, high
    return first, last


def _shortage(
    rows: Sequence[Sequence[_Piece]], need: Ints, supply: Supply, unit: float
) -> tuple[Floats, float]:
    """What n instances fewer than the row's peak cost in metered hours, and the penalty for what cannot be
    had.

    In a row the need may change though the offers do not. Pieces with a lower need miss fewer: the cost of
    a row is the sum over its pieces, convex in n.
    """
    deepest = int(need.max(initial=0))
    length = sum((piece.end - piece.start) / _HOUR for row in rows for piece in row)
    fees = sum(float(c.fee.amount) for c in supply.candidates) / unit
    hourly = max((float(m.hourly.amount) for m in supply.meters), default=0.0) / unit
    penalty = 10.0 * (fees + hourly * length * max(deepest, 1) + 1.0)
    kinds = {row[0].demand.instance_type for row in rows}
    ladders = {kind: by_price(supply.meters, kind) for kind in kinds}
    pieces = [piece for row in rows for piece in row]
    marginal = np.full((len(pieces), deepest), penalty)
    for i, piece in enumerate(pieces):
        done = 0
        for hourly_cost, room in _ladder(ladders[piece.demand.instance_type], piece.demand):
            marginal[i, done : done + room] = hourly_cost * ((piece.end - piece.start) / _HOUR / unit)
            done += room
    table = np.zeros((len(pieces), deepest + 1))
    np.cumsum(marginal, axis=1, out=table[:, 1:])
    row_of = np.array([i for i, row in enumerate(rows) for _ in row], dtype=np.int64)
    least = np.array([piece.demand.least for piece in pieces], dtype=np.int64)
    missing = np.clip(
        least[:, None] - need[row_of][:, None] + np.arange(deepest + 1)[None, :], 0, least[:, None]
    )
    summed = np.zeros((len(rows), deepest + 1))
    np.add.at(summed, row_of, np.take_along_axis(table, missing, axis=1))
    return summed, penalty


def _ladder(meters: Iterable[Meter], demand: Demand) -> Iterator[tuple[float, int]]:
    """Price and number of instances of each meter, cheapest first, as far as they are needed."""
    return ((float(meter.hourly.amount), room) for meter, room in rooms(meters, demand, demand.least) if room)


def _starts(grid: Grid, supply: Supply, startup: int) -> Starts:
    """What starts cost at least in each row; `startup` in microseconds."""
    least: dict[str, float] = {}
    for meter in supply.meters:
        if meter.counted_on:
            known = least.get(meter.instance_type, np.inf)
            least[meter.instance_type] = min(known, float(meter.hourly.amount) / grid.unit)
    hourly = np.array([least.get(kind, 0.0) for kind in grid.kinds])
    kinds = np.array(grid.kinds)
    follows = np.concatenate([[False], kinds[1:] == kinds[:-1]])
    hole = np.where(follows, grid.starts - np.concatenate([[0], grid.ends[:-1]]), 0)
    bridge = np.minimum(hole, startup)
    return Starts(hourly, hourly * (startup - bridge) / _HOUR, hourly * bridge / _HOUR, follows)


def columns_of(shortage: Floats, need: Ints, penalty: float) -> tuple[MeterColumn, ...]:
    """The metered hours of all rows as columns of one price each, row by row, cheapest first."""
    return tuple(column for i, n in enumerate(need) for column in _columns(i, shortage[i, : n + 1], penalty))


def _columns(row: int, costs: Floats, penalty: float) -> Iterator[MeterColumn]:
    """The costs of a row's shortage as columns of one price each, cheapest first; none for what cannot be
    had.
    """
    step, number = 0.0, 0
    for more in np.diff(costs):
        if more >= penalty:
            break
        if number and abs(more - step) <= 1e-12 * max(step, 1.0):
            number += 1
            continue
        if number:
            yield MeterColumn(row, step, float(number))
        step, number = float(more), 1
    if number:
        yield MeterColumn(row, step, float(number))


# -- confirmed sums ----------------------------------------------------------------------------------------
def _rooms(offers: Sequence[Candidate], supply: Supply) -> list[Room]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for j, c in enumerate(offers):
        for place in places(c, supply.candidates):
            groups[(c.instance_type, place)].append(j)
    said: dict[tuple[str, str], list[tuple[int, int, int]]] = defaultdict(list)
    rivals: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for s in supply.confirmed:
        span = (to_micros(s.window.start), to_micros(s.window.end), s.count)
        said[(s.instance_type, s.zone_id)].append(span)
    for c in supply.candidates:
        for place in places(c, supply.candidates):
            rivals[(c.instance_type, place)].append(c)
    made: list[Room] = []
    for key in sorted(groups):
        if len(groups[key]) > 1:
            made += _rooms_of_group(offers, groups[key], rivals[key], said[key])
    for way, most in supply.most_by_way:
        members = np.array([j for j, c in enumerate(offers) if c.way is way], dtype=np.int64)
        if sum(offers[j].count for j in members) > most:
            made.append(Room(members, most))
    return made


def _rooms_of_group(
    offers: Sequence[Candidate],
    group: Sequence[int],
    rivals: Sequence[Candidate],
    said: Sequence[tuple[int, int, int]],
) -> list[Room]:
    """One room for each span in which more could be bought than one search confirmed; neighbours merged."""
    held = [(to_micros(w.start), to_micros(w.end), c.count, c.id) for c in rivals for w in c.held]
    spans = [(a, b, n) for a, b, n, _ in held] + list(said)
    at = np.array(sorted({e for a, b, _ in spans for e in (a, b)})[:-1], dtype=np.int64)
    table = np.array(spans, dtype=np.int64)
    active = (table[:, 0][None, :] <= at[:, None]) & (table[:, 1][None, :] > at[:, None])
    limits = np.where(active, table[:, 2][None, :], 0).max(axis=1)
    index = {offers[j].id: position for position, j in enumerate(group)}
    taking = np.zeros((len(at), len(group)), dtype=bool)
    for column, (_, _, _, name) in enumerate(held):
        if name in index:
            taking[:, index[name]] |= active[:, column]
    counts = np.array([offers[j].count for j in group], dtype=np.int64)
    tight = (taking @ counts > limits) & (taking.sum(axis=1) > 1)
    kept = _maximal([(taking[i], int(limits[i])) for i in np.flatnonzero(tight)])
    members = np.array(group, dtype=np.int64)
    return [Room(members[chosen], most) for chosen, most in kept]


def _maximal(rows: Sequence[tuple[NDArray[np.bool_], int]]) -> list[tuple[NDArray[np.bool_], int]]:
    """Without rows that a neighbour implies: more members and no more room."""
    kept: list[tuple[NDArray[np.bool_], int]] = []
    for chosen, most in rows:
        while kept and kept[-1][1] >= most and not (kept[-1][0] & ~chosen).any():
            kept.pop()
        if kept and kept[-1][1] <= most and not (chosen & ~kept[-1][0]).any():
            continue
        kept.append((chosen, most))
    return kept
