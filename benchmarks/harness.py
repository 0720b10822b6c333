"""What every benchmark shares: the line that names the machine, medians, tables, pass lines.

Benchmarks import it as a neighbour, so they are run as files: `python benchmarks/bench_http.py`.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def machine() -> str:
    """Processor, cores, kernel, Python: without these no figure means anything."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    kernel, python = f"{platform.system()} {platform.release()}", platform.python_version()
    return f"{model}, {cores} cores, {kernel}, Python {python}; load when it began {load:.2f}"


def versions(*packages: str) -> str:
    """`name version` of installed packages."""
    return ", ".join(f"{name} {metadata.version(name)}" for name in packages)


def spread(values: Sequence[float], digits: int = 0) -> str:
    """`median [lowest-highest]`."""
    return f"{statistics.median(values):,.{digits}f} [{min(values):,.{digits}f}-{max(values):,.{digits}f}]"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell: the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]  # noqa: B905
        return "  ".join(cells).rstrip()

    return "\n".join((line(header), line(["-" * width for width in widths]), *map(line, rows)))


class Verdicts:
    """The pass lines of one benchmark. `finish` says whether all held, and ends the program."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._failed = 0

    def check(self, holds: bool, what: str) -> None:
        """One pass line: what was wanted and what was measured."""
        print(f"{'pass' if holds else 'FAIL'}  {what}")
        self._failed += not holds

    def held(self) -> bool:
        """Whether every line held; says so."""
        print(f"{self._name}: {'PASS' if not self._failed else f'{self._failed} line(s) FAILED'}")
        return not self._failed

    def finish(self) -> None:
        """Exit 0 when every line held, else 1."""
        sys.exit(0 if self.held() else 1)
