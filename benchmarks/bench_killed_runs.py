"""200 seeded kills with -9 of `berth run`, two in each of 100 runs: one sale each, nothing lost or left over.

The same as tests/acceptance/test_killed_runs.py, only oftener, and every command a process of its own.
Training plans and Capacity Blocks in turn; every second purchase is answered late, so that the kill falls in
between. BERTH_KILLED_RUNS: another number of runs; BERTH_KILLED_SECONDS: the most that it may take (it then
says how far it came).
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from harness import ROOT, Verdicts, machine

sys.path.insert(0, str(ROOT / "tests" / "acceptance"))

from killed_runs import KilledRun, end_in_a_process  # the path is where the test keeps it

from berth.yard.testing.process import YardProcess

RUNS = int(os.environ.get("BERTH_KILLED_RUNS", "100"))
LONGEST_S = float(os.environ.get("BERTH_KILLED_SECONDS", "1800"))
PER_YARD = 40  # a yard's stock is bounded, and every run buys


def main() -> None:
    """Kill, end, compare; the first fault ends it with its trace."""
    print(machine())
    verdicts = Verdicts("killed runs")
    began = time.monotonic()
    killed, in_doubt, done = 0, 0, 0
    spent: list[float] = []
    while done < RUNS and time.monotonic() - began < LONGEST_S:
        with tempfile.TemporaryDirectory(prefix="yard-") as data, YardProcess(Path(data)) as yard:
            for seed in range(done, min(done + PER_YARD, RUNS)):
                if time.monotonic() - began >= LONGEST_S:
                    break
                start = time.monotonic()
                with tempfile.TemporaryDirectory(prefix="run-") as folder:
                    outcome = KilledRun(yard, Path(folder), seed, end_in_a_process).play()
                killed, in_doubt, done = killed + outcome.killed, in_doubt + outcome.in_doubt, done + 1
                spent.append(time.monotonic() - start)
    print(
        f"{done} runs, {killed} kills before the end, {in_doubt} times in doubt about money afterwards;"
        f" one run with its kills and its check takes {statistics.median(spent):.1f} s"
    )
    verdicts.check(done == RUNS, f"{RUNS} runs killed twice: one sale each, nothing left over ({done} done)")
    verdicts.finish()


if __name__ == "__main__":
    main()
