"""The linear and the mixed-integer program, solved by HiGHS: one thread, fixed seed, bounded nodes.

Minimise the fees of what is taken plus the metered hours, such that each row has its least count and no
room holds more than was confirmed. Where every offer is divisible the matrix of rows is one of intervals,
and the linear program has a whole answer by itself; that is looked at, not assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import highspy
import numpy as np
from highspy._core import (
    _Highs,
)  # `highspy.Highs` prints a line to stdout when it is made; this one is silent

from berth.planner.best.grid import Floats, Grid, Ints
from berth.planner.best.pausing import Pausing, rows_of
from berth.planner.best.search import SEED
from berth.planner.best.starting import metered_costs, started_values, starting_of

_WHOLE = 1e-6
# Costs are not negative and columns are bounded, so nothing is unbounded here.
_NEVER = (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible)
_ITERATIONS = 200_000


class Status(StrEnum):
    """What the solver can vouch for."""

    OPTIMAL = "optimal"
    BOUNDED = "bounded"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, slots=True)
class Solved:
    """An answer of the solver. `bound` is proven: nothing costs less (in the grid's unit).

    `steps` holds the steps of each offer, with fractions where the linear program has them; None when there
    is no answer. `reduced` are reduced costs: taking a step of an offer makes it dearer than `bound` by
    that much at least. `running` holds the rows in which work that may pause runs; None for work that may
    not.
    """

    status: Status
    bound: float
    steps: Floats | None = None
    reduced: Floats | None = None
    running: Ints | None = None
    nodes: int = 0


def solve_linear(grid: Grid, pausing: Pausing | None = None) -> Solved:
    """The linear relaxation: a bound on every choice, and the optimum itself where its answer is whole."""
    if not len(grid.need):
        return Solved(Status.OPTIMAL, 0.0, np.zeros(len(grid.offers)))
    if not grid.offers and not grid.meters:
        return Solved(Status.IMPOSSIBLE, float("inf"))
    solver = _solver(grid, pausing, whole=False)
    solver.run()
    status = solver.getModelStatus()
    if status in _NEVER:
        return Solved(Status.IMPOSSIBLE, float("inf"))
    if status != highspy.HighsModelStatus.kOptimal:
        return Solved(Status.BOUNDED, 0.0)  # no fee is negative, so zero is a bound
    steps = np.array(solver.getSolution().col_value)[: len(grid.offers)]
    whole = pausing is None and bool(np.abs(steps - np.round(steps)).max(initial=0.0) < _WHOLE)
    value = float(solver.getInfo().objective_function_value)
    reduced = np.array(solver.getSolution().col_dual)[: len(grid.offers)]
    return Solved(Status.OPTIMAL if whole else Status.BOUNDED, value, steps, reduced)


def solve_whole(grid: Grid, start: Ints | None, nodes: int, pausing: Pausing | None = None) -> Solved:
    """The mixed-integer program from `start` (None: from nothing), at most `nodes` nodes."""
    solver = _solver(grid, pausing, whole=True)
    solver.setOptionValue("mip_max_nodes", nodes)
    if start is not None:
        _hand_over(solver, grid, start)
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kSolveError or not _is_what_it_costs(solver):
        # HiGHS 1.16.0 sometimes presolves a small program to nothing and then cannot undo it, or hands back
        # the choice that it began from as if that had the cost of the optimum.
        solver.clearSolver()
        solver.setOptionValue("presolve", "off")
        solver.run()
    status, info = solver.getModelStatus(), solver.getInfo()
    if status in _NEVER:
        return Solved(Status.IMPOSSIBLE, float("inf"))
    proven = status == highspy.HighsModelStatus.kOptimal
    found = info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible)
    values = np.array(solver.getSolution().col_value) if found else None
    return Solved(
        Status.OPTIMAL if proven and found else Status.BOUNDED,
        max(float(info.mip_dual_bound), 0.0),
        None if values is None else np.round(values[: len(grid.offers)]),
        None,
        None if values is None or pausing is None else _running(grid, values),
        int(info.mip_node_count),
    )


def _is_what_it_costs(solver: _Highs) -> bool:
    """Whether the values that the solver hands back have the cost that it says; true where it has none."""
    info = solver.getInfo()
    if info.primal_solution_status != int(highspy.SolutionStatus.kSolutionStatusFeasible):
        return True
    costs, values = solver.getLp().col_cost_, solver.getSolution().col_value
    said = float(info.objective_function_value)
    return abs(float(np.dot(costs, values)) - said) <= 1e-6 * max(1.0, abs(said))


def _running(grid: Grid, values: Floats) -> Ints:
    at = len(grid.offers) + len(grid.meters)
    return np.flatnonzero(values[at : at + len(grid.need)] > 0.5)


def _hand_over(solver: _Highs, grid: Grid, start: Ints) -> None:
    """Begin from a choice; the metered hours beside it follow from it, cheapest first."""
    net = grid.need.copy()
    for j in np.flatnonzero(start):
        for low, high in zip(grid.first[j], grid.last[j], strict=True):
            net[low:high] -= int(start[j] * grid.size[j])
    values = [float(s) for s in start]
    short = np.clip(net, 0, None).astype(float)
    for meter in grid.meters:  # in each row cheapest first
        used = min(meter.most, short[meter.row])
        short[meter.row] -= used
        values.append(float(used))
    values += started_values(grid, values[len(start) :])
    solution = highspy.HighsSolution()
    solution.col_value = values
    solver.setSolution(solution)


def _solver(grid: Grid, pausing: Pausing | None, *, whole: bool) -> _Highs:
    solver = _Highs()
    options: dict[str, bool | float | str] = {
        "output_flag": False,
        "threads": 1,
        "parallel": "off",
        "random_seed": SEED,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 1e-6,
        "mip_feasibility_tolerance": 1e-7,
        "primal_feasibility_tolerance": 1e-8,
        "dual_feasibility_tolerance": 1e-8,
        "simplex_iteration_limit": _ITERATIONS,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(_model(grid, pausing, whole=whole))
    return solver


def _model(grid: Grid, pausing: Pausing | None, *, whole: bool) -> highspy.HighsLp:
    offers, meters, rows = len(grid.offers), len(grid.meters), len(grid.need)
    extra = 3 * rows if pausing else 0
    at = offers + meters
    begun = starting_of(grid, at + extra)
    width = at + extra + len(begun.costs)
    entries = _cover(grid) + [
        _entry(grid.rooms[r].members, rows + r, grid.size) for r in range(len(grid.rooms))
    ]
    lower = [np.zeros(rows) if pausing else grid.need.astype(float), np.full(len(grid.rooms), -np.inf)]
    upper = [np.full(rows, np.inf), np.array([float(r.most) for r in grid.rooms])]
    if pausing:
        entries.append((np.arange(rows), at + np.arange(rows), -grid.need.astype(float)))
        tied = rows_of(grid, pausing, at)
        for k, (columns, factors, _) in enumerate(tied):
            where = np.full(len(columns), rows + len(grid.rooms) + k)
            entries.append((where, np.array(columns), np.array(factors)))
        lower.append(np.array([least for _, _, least in tied]))
        upper.append(np.full(len(tied), np.inf))
    entries += begun.entries(sum(len(part) for part in lower))
    lower.append(np.zeros(begun.rows))
    upper.append(np.full(begun.rows, np.inf))
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = width, sum(len(part) for part in lower)
    model.col_cost_ = np.concatenate([grid.cost, metered_costs(grid), np.zeros(extra), begun.costs])
    model.col_lower_ = np.zeros(width)
    most = [m.most for m in grid.meters]
    model.col_upper_ = np.concatenate([grid.most, most, np.ones(extra), np.full(len(begun.costs), np.inf)])
    model.row_lower_, model.row_upper_ = np.concatenate(lower), np.concatenate(upper)
    _fill_matrix(model, entries, model.num_row_)
    if whole:
        integer, free = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        model.integrality_ = (
            [integer] * offers
            + [free] * meters
            + [integer] * (extra // 3)
            + [free] * (2 * extra // 3 + len(begun.costs))
        )
    return model


Entry = tuple[Ints, Ints, Floats]
"""Rows, columns and values of a part of the matrix."""


def _cover(grid: Grid) -> list[Entry]:
    """Which rows each offer covers, and each column of metered hours."""
    low, high = grid.first.ravel(), grid.last.ravel()
    lengths = high - low
    offer = np.repeat(np.repeat(np.arange(len(grid.offers)), grid.first.shape[1]), lengths)
    begins = np.cumsum(lengths) - lengths
    row = np.arange(int(lengths.sum())) - np.repeat(begins - low, lengths)
    at = len(grid.offers) + np.arange(len(grid.meters))
    metered = np.array([m.row for m in grid.meters], dtype=np.int64)
    return [(row, offer, grid.size[offer].astype(float)), (metered, at, np.ones(len(grid.meters)))]


def _entry(members: Ints, row: int, size: Ints) -> Entry:
    return np.full(len(members), row), members, size[members].astype(float)


def _fill_matrix(model: highspy.HighsLp, entries: list[Entry], rows: int) -> None:
    """The matrix, row by row."""
    row = np.concatenate([e[0] for e in entries])
    column = np.concatenate([e[1] for e in entries])
    value = np.concatenate([e[2] for e in entries])
    order = np.lexsort((column, row))
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))])
    model.a_matrix_.index_ = column[order]
    model.a_matrix_.value_ = value[order]
