"""Kill -9 of a yard at 200 random moments under work, looked over each time (BERTH_KILLS: another number).

The same as tests/simulation/test_kill_yard.py, only oftener: three clients buy, deploy, delete and move the
clock; after each kill everything acknowledged must be there, nothing twice, nobody left.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from harness import ROOT, machine

sys.path.insert(0, str(ROOT / "tests" / "simulation"))

from yard_kills import KilledYard  # the path is where the test keeps it

KILLS = int(os.environ.get("BERTH_KILLS", "200"))
FLEET = ROOT / "tests" / "unit" / "yard" / "small.toml"
PER_FOLDER = 25


def main() -> None:
    """Kill, start, look over; the first fault ends it with its trace and leaves the folder as it is."""
    print(machine())
    done, plans, endpoints = 0, 0, 0
    spent: list[float] = []
    while done < KILLS:
        folder = Path(tempfile.mkdtemp(prefix="yard-"))
        yard = KilledYard(folder, FLEET, seed=1000 + done)
        try:
            for number in range(min(PER_FOLDER, KILLS - done)):
                begun = time.monotonic()
                yard.kill_once(number)
                spent.append(time.monotonic() - begun)
                done += 1
        finally:
            print(f"{done} kills, seed {yard.seed}, data in {folder}")
            yard.close()
        plans += len(yard.seen.plans)
        endpoints += len(yard.seen.endpoints)
        shutil.rmtree(folder)
    print(
        f"{done} kills: {plans} plans and {endpoints} endpoints acknowledged, none lost, none twice;"
        f" one kill with its start and its check takes {statistics.median(spent):.2f} s"
    )


if __name__ == "__main__":
    main()
