"""Start-ups of instances that are paid by the hour, as columns and rows of the program.

For n rows of the grid there are n columns of instances that run idle and n of instances that start. What runs
in a row, served or idle, and did not run in the row before has started. The price is the least of an hour, so
that what the program counts is never more than what `reckon` finds; with one meter it is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from berth.planner.best.grid import Floats, Grid, Ints

Entry = tuple[Ints, Ints, Floats]
"""Rows, columns and values of a part of the matrix."""


@dataclass(frozen=True, slots=True)
class Starting:
    """`costs` of the columns, idle ones first; `rows` how many rows tie them, and what stands in those."""

    costs: Floats
    rows: int
    tied: tuple[Entry, ...]

    def entries(self, first: int) -> list[Entry]:
        """What stands in the rows, of which the first is row `first`."""
        return [(row + first, column, value) for row, column, value in self.tied]


def starting_of(grid: Grid, at: int) -> Starting:
    """The columns from `at` on; none where instances do not take time to start."""
    starting, n = grid.starting, len(grid.need)
    if starting is None:
        return Starting(np.zeros(0), 0, ())
    row = np.arange(n)
    metered = np.array([meter.row for meter in grid.meters], dtype=np.int64)
    column = len(grid.offers) + np.arange(len(grid.meters))
    again = metered + 1  # what ran in a row need not start for the next
    follows = np.concatenate([starting.follows, [False]])[again]
    after = row[starting.follows]
    tied = (
        (row, at + n + row, np.ones(n)),
        (row, at + row, -np.ones(n)),
        (after, at + after - 1, np.ones(len(after))),
        (metered, column, -np.ones(len(metered))),
        (again[follows], column[follows], np.ones(int(follows.sum()))),
    )
    idle = starting.hourly * grid.spans / 3_600_000_000 + starting.bridge
    return Starting(np.concatenate([idle, starting.cost]), n, tied)


def metered_costs(grid: Grid) -> list[float]:
    """What the columns of metered hours cost, with what lies in the hole before their row."""
    if grid.starting is None:
        return [meter.cost for meter in grid.meters]
    return [meter.cost + float(grid.starting.bridge[meter.row]) for meter in grid.meters]


def started_values(grid: Grid, metered: Sequence[float]) -> list[float]:
    """What the columns hold beside metered hours where nothing runs idle."""
    starting, n = grid.starting, len(grid.need)
    if starting is None:
        return []
    runs = np.zeros(n)
    for meter, used in zip(grid.meters, metered, strict=True):
        runs[meter.row] += used
    before = np.where(starting.follows, np.concatenate([[0.0], runs[:-1]]), 0.0)
    return [0.0] * n + [float(v) for v in np.clip(runs - before, 0.0, None)]
