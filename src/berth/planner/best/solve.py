"""`best_of`: the best combination of what was seen, with what is proven about it.

Each scene has a linear bound. Scenes are solved in the order of their bounds, until no bound is below what
was found: first rounding and local search, then the solver from there. What the solver proposes counts only
as far as `reckon`, which knows nothing of it, finds that it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

from berth.facts.regions import in_local_zone
from berth.planner.best.answer import Answer, Outcome, Proof, floor_money, gap_of, money
from berth.planner.best.reckon import Bought, Reckoning, demands, hours, reckon, reckon_paused
from berth.planner.best.scenes import Scene, comparable, latest_of, scenes_of, spread
from berth.planner.best.supply import Candidate, Supply
from berth.planner.best.wish import Goal, Wish
from berth.terms.instants import from_micros, to_micros
from berth.terms.window import Window

if TYPE_CHECKING:
    from berth.planner.best.grid import Floats, Grid, Ints
    from berth.planner.best.pausing import Pausing
    from berth.planner.best.program import Solved

_HAIR = 1e-9
# So many offers are too many to begin with: the solver first looks at a core of them.
_LARGE = 250


class NoOptimiser(Exception):
    """HiGHS is not installed. It comes with the extra `optimiser` (`pip install 'gpu-berth[optimiser]'`)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far to look, in work and never in seconds, so that a slow machine gives the same answer.

    `nodes` of the solver's search a scene (0: rounding and local search only), `rounds` of local search a
    scene, `scenes` in all.
    """

    nodes: int = 400
    rounds: int = 60
    scenes: int = 400


def best_of(wish: Wish, supply: Supply, limits: Limits | None = None) -> Outcome:
    """The combination that covers the least counts at the least total cost.

    Ties go to the earlier start and to fewer pieces. Among `wish.spans`, SHORTEST takes the first that fits
    the budget, LONGEST the last, CHEAPEST_PER_HOUR the one with the least cost per instance-hour that had
    to be covered. Raises NoOptimiser without HiGHS.
    """
    _need_the_optimiser()
    limits = limits or Limits()
    usable, refused = comparable(wish, supply)
    spans = sorted(set(wish.spans)) or [wish.end - wish.start]
    if wish.goal is Goal.LONGEST:
        spans.reverse()
    groups = [[span] for span in spans] if wish.goal is not Goal.CHEAPEST_PER_HOUR else [spans]
    run = _Run(wish, limits, per_hour=wish.goal is Goal.CHEAPEST_PER_HOUR)
    over: Answer | None = None
    for group in groups:
        found = run.solve([s for span in group for s in scenes_of(wish, usable, span)])
        fits = found is not None and not _over(found, wish)
        if fits:
            return Outcome(found, None, len(supply.candidates), refused, settled=True)
        if found is not None and (over is None or found.cost < over.cost):
            over = found
    return Outcome(None, over, len(supply.candidates), refused, settled=run.settled)


def _over(answer: Answer, wish: Wish) -> bool:
    return wish.budget is not None and answer.total > wish.budget


def _need_the_optimiser() -> None:
    try:
        import highspy  # noqa: F401
        import numpy  # noqa: F401
    except ImportError as missing:
        raise NoOptimiser("the best combination needs HiGHS: pip install 'gpu-berth[optimiser]'") from missing


@dataclass(frozen=True, slots=True)
class _Part:
    """Which share of the room between bound and choice an offer may use up by itself, and how many nodes."""

    share: float
    nodes: int


_CORE = _Part(0.1, 300)


@dataclass(slots=True)
class _Board:
    """A scene with its grid and the bound of its linear program, per `weight`."""

    scene: Scene
    grid: Grid
    linear: Solved
    pausing: Pausing | None
    weight: float
    bound: float

    @property
    def value(self) -> float:
        """The bound in currency units, for the order of scenes."""
        return self.bound * self.grid.unit / self.weight


@dataclass(slots=True)
class _Found:
    """A choice that holds."""

    board: _Board
    bought: tuple[Bought, ...]
    running: tuple[Window, ...]
    reckoning: Reckoning

    def rank(self, per_hour: bool) -> tuple[object, ...]:
        """Least cost, then early, few pieces, none in a Local Zone (it needs an opt-in), then by ids."""
        cost = self.reckoning.cost
        over = self.reckoning.least_hours if per_hour else Fraction(1)
        names = tuple(b.candidate.id for b in self.bought)
        pieces = len(self.bought) + len({m.meter.id for m in self.reckoning.metered})
        local = sum(in_local_zone(b.candidate.region, b.candidate.zone_id) for b in self.bought)
        return (cost / over, -self.reckoning.wanted_hours, self.running[0].start, pieces, local, names)


@dataclass(slots=True)
class _Run:
    wish: Wish
    limits: Limits
    per_hour: bool
    settled: bool = True
    nodes: int = field(default=0)

    def solve(self, scenes: Sequence[Scene]) -> Answer | None:
        """The best of the scenes, None when none holds."""
        looked_at = spread(scenes, self.limits.scenes)
        left_out = len(scenes) - len(looked_at)
        boards = sorted((b for s in looked_at if (b := self._board(s)) is not None), key=lambda b: b.value)
        best: _Found | None = None
        open_bounds: list[float] = []
        self.nodes = 0
        for board in boards:
            if best is not None and board.value > self._value(best) * (1 + _HAIR):
                break
            found, bound = self._settle(board)
            open_bounds.append(bound * board.grid.unit / board.weight)
            if found is not None and (best is None or found.rank(self.per_hour) < best.rank(self.per_hour)):
                best = found
        if best is None:
            self.settled &= not left_out and all(b == float("inf") for b in open_bounds)
            return None
        beyond = boards[len(open_bounds) :]
        bound = min([*open_bounds, *(b.value for b in beyond)])
        return self._answer(best, bound, len(looked_at), left_out)

    def _value(self, found: _Found) -> float:
        return float(found.reckoning.cost) / found.board.weight

    def _board(self, scene: Scene) -> _Board | None:
        from berth.planner.best.grid import grid_of
        from berth.planner.best.pausing import Pausing
        from berth.planner.best.program import Status, solve_linear

        wish, pausing = scene.wish, None
        edges: list[int] = []
        if wish.most_gap:
            whole = wish.runs_at_least
            pausing = Pausing(whole // _MICRO, wish.most_gap // _MICRO, fixed=not wish.slack)
            wish = wish.lasting(latest_of(wish) - wish.start)
            edges = _pause_edges(scene, whole)
        grid = grid_of(wish, scene.supply, edges)
        pausing = pausing if len(grid.need) else None
        linear = solve_linear(grid, pausing)
        if linear.status is Status.IMPOSSIBLE:
            return None
        weight = 1.0
        if self.per_hour:
            weight = float(sum(d.least * hours(d.window.duration) for d in demands(scene.wish))) or 1.0
        return _Board(scene, grid, linear, pausing, weight, linear.bound)

    def _settle(self, board: _Board) -> tuple[_Found | None, float]:
        """The best choice of a scene and a bound on all of them, in the grid's unit."""
        from berth.planner.best.program import Status
        from berth.planner.best.search import improved

        linear, start = board.linear, None
        if linear.status is Status.OPTIMAL and linear.steps is not None:
            found = self._found(board, linear.steps, None)
            if found is not None:
                return found, linear.bound
        if board.pausing is None:
            start = improved(board.grid, linear.steps, self.limits.rounds)
        rounded = self._found(board, start, None) if start is not None else None
        if self.limits.nodes == 0 or (rounded is not None and _met(rounded, board)):
            return rounded, linear.bound
        best, start = rounded, start if rounded is not None else None
        if start is not None and len(board.grid.offers) >= _LARGE:
            best, start, _ = self._go_on(board, best, start, _CORE)
        best, _, solved = self._go_on(board, best, start, _Part(1.0, self.limits.nodes))
        if solved.status is Status.IMPOSSIBLE:
            return None, float("inf")
        return best, max(solved.bound, linear.bound)

    def _go_on(
        self, board: _Board, known: _Found | None, start: Ints | None, part: _Part
    ) -> tuple[_Found | None, Ints | None, Solved]:
        """The program from a known choice, without the offers that reduced costs leave little hope for."""
        from berth.planner.best.program import solve_whole

        grid = _worth_a_look(board, known, start, part.share)
        kept = None if start is None else start[_kept(board.grid, grid)]
        solved = solve_whole(grid, kept, part.nodes, board.pausing)
        self.nodes += solved.nodes
        steps = None if solved.steps is None else _all_steps(board.grid, grid, solved.steps)
        better = self._found(board, steps, solved.running) if steps is not None else None
        if steps is None or better is None or (known and known.reckoning.cost <= better.reckoning.cost):
            return known, start, solved
        return better, steps.astype(int), solved

    def _found(self, board: _Board, steps: Ints | Floats, running: Ints | None) -> _Found | None:
        bought = chosen(board.grid, steps)
        scene = board.scene
        if board.pausing is None:
            window = Window(scene.wish.start, scene.wish.end)
            made = reckon(scene.wish, scene.supply, bought)
            return None if made is None else _Found(board, bought, (window,), made)
        if running is None:
            return None
        windows = _windows(board.grid, running)
        made = reckon_paused(scene.wish, scene.supply, bought, windows)
        return None if made is None else _Found(board, bought, windows, made)

    def _answer(self, best: _Found, bound: float, scenes: int, left_out: int) -> Answer:
        scale = best.board.weight
        cost = best.reckoning.cost
        proven = bound * scale
        optimal = not left_out and float(cost) <= proven * (1 + 1e-6) + 1e-6 * best.board.grid.unit
        proven = float(cost) if optimal else min(proven, float(cost)) * (1 - _HAIR)
        self.settled &= optimal
        wanted = sum(
            (d.wanted * hours(d.window.duration) for d in demands(best.board.scene.wish)), Fraction(0)
        )
        return Answer(
            bought=best.bought,
            metered=best.reckoning.metered,
            running=best.running,
            cost=cost,
            currency=self.wish.currency,
            least_hours=best.reckoning.least_hours,
            wanted_hours=best.reckoning.wanted_hours,
            wanted_in_all=wanted,
            proof=Proof(
                optimal=optimal,
                bound=money(cost, self.wish.currency) if optimal else floor_money(proven, self.wish.currency),
                gap=gap_of(cost, proven),
                scenes=scenes,
                left_out=left_out,
                nodes=self.nodes,
                whole=best.board.linear.status == "optimal",
            ),
        )


_MICRO = timedelta(microseconds=1)


def _worth_a_look(board: _Board, rounded: _Found | None, start: Ints | None, share: float) -> Grid:
    """The grid without the offers that no choice as cheap as the rounded one can hold, by reduced costs.

    With a `share` under 1 more is left out: what would use up that share of the room by itself.
    """
    reduced = board.linear.reduced
    if rounded is None or start is None or reduced is None:
        return board.grid
    room = share * (float(rounded.reckoning.cost) / board.grid.unit - board.linear.bound)
    return board.grid.only((reduced <= room * (1 + 1e-6) + 1e-6) | (start > 0))


def _kept(whole: Grid, part: Grid) -> Ints:
    """Where the offers of a part of a grid stand in the whole."""
    import numpy as np

    names = {offer.id for offer in part.offers}
    return np.array([j for j, offer in enumerate(whole.offers) if offer.id in names], dtype=np.int64)


def _all_steps(whole: Grid, part: Grid, steps: Floats) -> Floats:
    import numpy as np

    made = np.zeros(len(whole.offers))
    made[_kept(whole, part)] = steps
    return made


def _met(found: _Found, board: _Board) -> bool:
    """Whether a choice costs what the linear program says that all cost at least."""
    return float(found.reckoning.cost) <= board.linear.bound * board.grid.unit * (1 + 1e-9)


def chosen(grid: Grid, steps: Ints | Floats) -> tuple[Bought, ...]:
    """Steps of offers as counts; of offers that are the same but for the id, the first are taken."""
    from berth.planner.best.grid import order_of

    counts: dict[tuple[object, ...], list[tuple[Candidate, int]]] = {}
    for candidate, step, size in zip(grid.offers, steps, grid.size, strict=True):
        alike = order_of(candidate)[:-1]
        counts.setdefault(alike, []).append((candidate, round(float(step)) * int(size)))
    bought: list[Bought] = []
    for same in counts.values():
        taken = sorted((n for _, n in same), reverse=True)
        bought += [Bought(c, n) for (c, _), n in zip(same, taken, strict=True) if n]
    return tuple(sorted(bought, key=lambda b: (b.candidate.held[0].start, b.candidate.id)))


def _pause_edges(scene: Scene, whole: timedelta) -> list[int]:
    """Further edges, so that the work can begin or end exactly when an offer does."""
    start, end = scene.wish.start, latest_of(scene.wish)
    theirs = {e for c in scene.supply.candidates for w in c.usable for e in (w.start, w.end)} | {start, end}
    shifted = {e + whole for e in theirs} | {e - whole for e in theirs}
    return sorted(to_micros(e) for e in shifted if start < e < end)


def _windows(grid: Grid, running: Ints) -> tuple[Window, ...]:
    """The rows in which the work runs, neighbours joined."""
    made: list[Window] = []
    for i in sorted(int(i) for i in running):
        window = Window(from_micros(int(grid.starts[i])), from_micros(int(grid.ends[i])))
        if made and made[-1].end == window.start:
            made[-1] = Window(made[-1].start, window.end)
        else:
            made.append(window)
    return tuple(made)


def without(
    supply: Supply, *, candidates: frozenset[str] = frozenset(), meters: frozenset[str] = frozenset()
) -> Supply:
    """The supply without what is named. The counts that its searches confirmed stay confirmed."""
    return replace(
        supply,
        candidates=tuple(c for c in supply.candidates if c.id not in candidates),
        meters=tuple(m for m in supply.meters if m.id not in meters),
    )
