"""How long until something is there: `berth --help`, a fresh yard, a yard started again.

Each is a process of its own, from its start to its answer: the help's end, the yard's announcement that it
takes requests (by then the models of the served services are read). The fleet is the shipped rehearsal.
Clean-cache figures differ: the first run after a boot also reads the files from disk.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from berth.yard.testing.process import YardProcess
from harness import Verdicts, machine, spread, table, versions

ROUNDS = 7
HELP_LIMIT_S = 0.3
READY_LIMIT_S = 2.0


def timed_help() -> float:
    """Seconds of one `berth --help`."""
    begun = time.perf_counter()
    subprocess.run(
        [str(Path(sys.executable).with_name("berth")), "--help"], check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - begun


def timed_yards(folder: Path) -> tuple[float, float]:
    """Seconds until a yard on a new folder is ready, and until it is ready again after an orderly stop."""
    begun = time.perf_counter()
    with YardProcess(folder) as yard:
        fresh = time.perf_counter() - begun
        yard.stop()
        begun = time.perf_counter()
        yard.start()
        return fresh, time.perf_counter() - begun


def main() -> None:
    """Measure each some times, in turn."""
    print(machine())
    print(versions("boto3", "botocore", "typer", "uvicorn"))
    helps: list[float] = []
    fresh: list[float] = []
    again: list[float] = []
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
        timed_help()  # the first one may have to compile
        for number in range(ROUNDS):
            helps.append(timed_help())
            first, second = timed_yards(Path(folder) / str(number))
            fresh.append(first)
            again.append(second)
    rows = [
        ["berth --help", spread(helps, 2)],
        ["yard ready, new folder", spread(fresh, 2)],
        ["yard ready again", spread(again, 2)],
    ]
    print(table(["what", f"seconds, {ROUNDS} times"], rows))
    verdicts = Verdicts("startup")
    help_s, ready_s = statistics.median(helps), statistics.median(fresh)
    verdicts.check(help_s < HELP_LIMIT_S, f"berth --help in {help_s:.2f} s (aim: under {HELP_LIMIT_S:g} s)")
    verdicts.check(ready_s < READY_LIMIT_S, f"yard ready in {ready_s:.2f} s (aim: under {READY_LIMIT_S:g} s)")
    verdicts.finish()


if __name__ == "__main__":
    main()
