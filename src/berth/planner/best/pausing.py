"""Work that may pause: which rows it runs in becomes part of the program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from berth.planner.best.grid import Grid

Row = tuple[list[int], list[float], float]
"""Columns, their factors, and what the sum must reach at least."""


@dataclass(frozen=True, slots=True)
class Pausing:
    """How long the work runs in all, and the longest pause; both in microseconds.

    `fixed`: it begins with the first row and ends with the last.
    """

    runs: int
    most_gap: int
    fixed: bool = False


def rows_of(grid: Grid, pausing: Pausing, at: int) -> list[Row]:
    """The rows that tie the columns from `at` on: for n rows of the grid n of `runs`, n of `begun`, n of
    `left`.

    `runs` is 1 where the work runs, `begun` 1 from the first row on in which it does, `left` 1 up to the
    last. Of any rows in between that together last longer than the longest pause, it runs in one.
    """
    n = len(grid.need)
    runs, begun, left = at, at + n, at + 2 * n
    hours = grid.spans / 3_600_000_000
    rows: list[Row] = [
        ([runs + i for i in range(n)], [float(h) for h in hours], pausing.runs / 3_600_000_000)
    ]
    if pausing.fixed:
        rows += [([runs], [1.0], 1.0), ([runs + n - 1], [1.0], 1.0)]
    for i in range(n):
        rows.append(([begun + i, runs + i], [1.0, -1.0], 0.0))
        rows.append(([left + i, runs + i], [1.0, -1.0], 0.0))
        if i:
            rows.append(([begun + i, begun + i - 1], [1.0, -1.0], 0.0))
            rows.append(([left + i - 1, left + i], [1.0, -1.0], 0.0))
    for i in range(1, n - 1):
        lasts = np.cumsum(grid.spans[i : n - 1])
        j = i + int(np.searchsorted(lasts, pausing.most_gap, side="right"))
        if j < n - 1:
            between = list(range(i, j + 1))
            columns = [runs + k for k in between] + [begun + i - 1, left + j + 1]
            rows.append((columns, [1.0] * len(between) + [-1.0, -1.0], -1.0))
    return rows
