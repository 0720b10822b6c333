"""How long until something is there: `berth --help`, a fresh yard, a yard started again.

Each is a process of its own, from its start to its answer: the help's end, the yard's announcement that it
takes requests (by then the models of the served services are read). The fleet is the shipped rehearsal.
Clean-cache figures differ: the first run after a boot also reads the files from disk.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from berth.yard.testing.process import YardProcess
from harness import Verdicts, machine, spread, table, versions
from servers import Server

ROUNDS = 7
HELP_LIMIT_S = 0.3
READY_LIMIT_S = 2.0


@dataclass(slots=True)
class Took:
    """Seconds of each time: on the clock, and of the processor."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def note(self, begun: float, cpu: float) -> None:
        """It began at `begun` (time.perf_counter) and is there now."""
        self.wall.append(time.perf_counter() - begun)
        self.cpu.append(cpu)

    @property
    def median(self) -> float:
        """Of the clock."""
        return statistics.median(self.wall)


def help_once(took: Took) -> None:
    """One `berth --help`."""
    before, begun = os.times(), time.perf_counter()
    berth = str(Path(sys.executable).with_name("berth"))
    subprocess.run([berth, "--help"], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    took.note(begun, cpu)


def yard_twice(folder: Path, fresh: Took, again: Took) -> None:
    """A yard on a new folder, an orderly stop, the yard once more."""
    begun = time.perf_counter()
    with YardProcess(folder) as yard:
        fresh.note(begun, cpu_of(yard))
        yard.stop()
        begun = time.perf_counter()
        yard.start()
        again.note(begun, cpu_of(yard))


def cpu_of(yard: YardProcess) -> float:
    """Processor seconds of a yard so far, without its companions."""
    assert yard.process is not None
    return Server(0, yard.process.pid).cpu_s()


def main() -> None:
    """Measure each some times, in turn."""
    print(machine())
    print(versions("boto3", "botocore", "typer", "uvicorn"))
    helps, fresh, again = Took(), Took(), Took()
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as folder:
        help_once(Took())  # the first one may have to compile
        for number in range(ROUNDS):
            help_once(helps)
            yard_twice(Path(folder) / str(number), fresh, again)
    named = {"berth --help": helps, "yard ready, new folder": fresh, "yard ready again": again}
    rows = [[name, spread(took.wall, 2), spread(took.cpu, 2)] for name, took in named.items()]
    print(table(["what", f"seconds, {ROUNDS} times", "of the processor"], rows))
    verdicts = Verdicts("startup")
    for what, took, limit_s in (("berth --help", helps, HELP_LIMIT_S), ("yard ready", fresh, READY_LIMIT_S)):
        verdicts.check(took.median < limit_s, f"{what} in {took.median:.2f} s (aim: under {limit_s:g} s)")
    verdicts.finish()


if __name__ == "__main__":
    main()
