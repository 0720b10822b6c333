"""B5: 100,000 intents to buy, each in trouble of its own: none bought twice, none lost, books equal ledger.

The simulation of tests/simulation/exactly_once, only oftener: production's orders and a whole yard in one
process, five needs a seed, troubles at effect points as the seed says. One seed of ten extends what it has
bought, and buys several pieces as one order. Two processes share the seeds.
BERTH_INTENTS: another number; BERTH_SECONDS: the most that it may take (it then says how far it came);
BERTH_FIRST_SEED: where to begin; BERTH_PACE: one pace for all seeds, such as wide. A seed that breaks a
promise is printed, at the end with its trace.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import time
from dataclasses import dataclass, field

from harness import ROOT, Verdicts, machine

sys.path.insert(0, str(ROOT / "tests" / "simulation"))

from exactly_once.seeded import MANY, PACES, Tally, pace_of, play  # the path is where the tests keep it

INTENTS = int(os.environ.get("BERTH_INTENTS", "100000"))
LONGEST_S = float(os.environ.get("BERTH_SECONDS", "7200"))
FIRST_SEED = int(os.environ.get("BERTH_FIRST_SEED", "0"))
PACE = os.environ.get("BERTH_PACE")
A_SEED = 5
PROCESSES = 2
TELL_EVERY_S = 60.0
MOST_BREACHES = 10


@dataclass(slots=True)
class Share:
    """What one process has done: its tally, the seeds that it played, its processor time, what broke."""

    tally: Tally = field(default_factory=Tally)
    seeds: int = 0
    cpu_s: float = 0.0
    breaches: list[str] = field(default_factory=list)


def work(number: int) -> Share:
    """Every PROCESSES-th seed, until all are done, time is over, or promises break again and again."""
    share, began, told = Share(), time.monotonic(), time.monotonic()
    last = FIRST_SEED + INTENTS // A_SEED
    for seed in range(FIRST_SEED + number, last, PROCESSES):
        if time.monotonic() - began >= LONGEST_S:
            break
        try:
            share.tally.add(play(seed, A_SEED, PACES[PACE] if PACE else pace_of(seed, MANY))[0])
        except Exception as problem:  # noqa: BLE001 - told with its trace
            share.breaches.append("\n".join([repr(problem), *getattr(problem, "__notes__", [])]))
            print(f"seed {seed}: {problem!r}", flush=True)
            if len(share.breaches) >= MOST_BREACHES:
                break
        share.seeds += 1
        if share.seeds == 20:
            gc.freeze()  # models and modules stay; only a seed's own things are looked through
        if time.monotonic() - told >= TELL_EVERY_S:
            told = time.monotonic()
            print(f"process {number}: {share.tally.intents} intents, {time.process_time():.0f} s", flush=True)
    share.cpu_s = time.process_time()
    return share


def main() -> None:
    """Play, sum up, compare."""
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        os.environ[name] = os.devnull  # nobody's profile
    print(machine())
    began = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        shares = pool.map(work, range(PROCESSES), chunksize=1)
    wall_s = time.monotonic() - began
    total = Tally()
    for share in shares:
        total.add(share.tally)
    report(total, shares, wall_s)
    verdicts = Verdicts("exactly once")
    broken = "\n".join(breach for share in shares for breach in share.breaches)
    verdicts.check(not broken, f"none bought twice, none lost, books equal ledger {broken}".rstrip())
    verdicts.check(total.intents >= INTENTS // A_SEED * A_SEED, f"{total.intents} of {INTENTS} intents done")
    verdicts.finish()


def report(total: Tally, shares: list[Share], wall_s: float) -> None:
    """The figures."""
    cpu_s = sum(share.cpu_s for share in shares)
    print(
        f"{total.intents} intents in {sum(share.seeds for share in shares)} seeds (from {FIRST_SEED}):"
        f" {total.runs} disturbed runs, {total.paid_calls} paid calls served, {total.sold} reservations made,"
        f" {total.bought} orders bought"
    )
    print(
        f"of these {total.wishes} intents to extend, with {total.longer} extensions made, and {total.several}"
        " to buy several pieces as one order"
    )
    each_ms = 1000 * cpu_s / max(1, total.intents)
    print(
        f"{wall_s:.0f} s on the clock, {cpu_s:.0f} s of processor: {total.intents / wall_s:.0f} intents/s,"
        f" {each_ms:.1f} ms of processor each"
    )
    print(f"troubles: {', '.join(f'{name} {count}' for name, count in total.troubles.most_common())}")
    print(f"ends: {', '.join(f'{name} {count}' for name, count in total.ends.most_common())}")
    print(f"{len(total.points)} different pairs of trouble and effect point were met")


if __name__ == "__main__":
    main()
