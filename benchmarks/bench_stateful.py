"""B10: nothing is promised twice, over a million random steps.

    python benchmarks/bench_stateful.py            # 1,000,000 steps, minutes
    python benchmarks/bench_stateful.py 100000

Steps are searches, purchases by two accounts through EC2 and SageMaker (of offers fresh, old and other
people's, some of them taken back as on a full disk), payments that fail, restarts, and time. The world is
that of tests/simulation; every tenth step everything is counted again from the rows.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from harness import ROOT, Verdicts, machine, table

sys.path.insert(0, str(ROOT / "tests" / "simulation"))

from calendar_world import HOURS, TYPES, World

from berth.yard.faults import FaultKind

STEPS = 1_000_000
STEPS_A_WORLD = 20_000
COUNTED_EVERY = 10
STEPS_S_MIN = 500  # 1,000,000 steps in about half an hour at most


def step(world: World, draw: random.Random) -> str:
    """One random step; what it was."""
    account = draw.randrange(2)
    lead_hours = draw.choice((0, draw.randrange(1400)))
    query = (draw.choice(TYPES), draw.choice((1, 1, 2, 4)), draw.choice(HOURS), lead_hours)
    newest = int(draw.expovariate(0.15))  # mostly something that was just found
    failing = draw.choice((FaultKind.PAYMENT_FAILURE, FaultKind.GONE))
    choices: dict[str, tuple[float, Callable[[], None]]] = {
        "search blocks": (0.14, lambda: world.search_blocks(*query, account)),
        "search plans": (0.12, lambda: world.search_plans(*query, account)),
        "buy": (0.5, lambda: world.buy(-1 - newest, account, draw.random() < 0.1)),
        "time": (0.2, lambda: world.advance(draw.choice((5, 5, 30, 60, 600, 3000)))),
        "fault": (0.03, lambda: world.spoil_next(failing, "*")),
        "restart": (0.01, world.restart),
    }
    kind = draw.choices(list(choices), [weight for weight, _ in choices.values()])[0]
    choices[kind][1]()
    return kind


def main(steps: int) -> None:
    """Take the steps, world after world; say what happened and whether it always added up."""
    print(machine())
    kinds: Counter[str] = Counter()
    done: Counter[str] = Counter()
    broken = ""
    begun = time.perf_counter()
    for seed in range(-(-steps // STEPS_A_WORLD)):
        draw, world = random.Random(seed), World(seed)
        try:
            for number in range(min(STEPS_A_WORLD, steps - seed * STEPS_A_WORLD)):
                kinds[step(world, draw)] += 1
                if number % COUNTED_EVERY == 0:
                    world.check()
            world.check()
            world.check_ledger()
        except AssertionError as wrong:
            broken = f"seed {seed}, step {number}: {wrong}"
            break
        done += world.done
        world.close()
    took = time.perf_counter() - begun
    print(table(["step", "times"], [[kind, f"{many:,}"] for kind, many in kinds.most_common()]))
    print(table(["what came of it", "times"], [[what, f"{many:,}"] for what, many in done.most_common()]))
    verdicts = Verdicts(Path(__file__).stem)
    total = sum(kinds.values())
    verdicts.check(not broken, f"nothing promised twice in {total:,} steps {broken}".rstrip())
    verdicts.check(total >= steps, f"{steps:,} steps wanted, {total:,} taken")
    rate = total / took
    verdicts.check(rate >= STEPS_S_MIN, f"{rate:,.0f} steps/s, wanted {STEPS_S_MIN:,} (took {took:,.0f} s)")
    verdicts.finish()


if __name__ == "__main__":
    main(int(sys.argv[1].replace(",", "")) if len(sys.argv) > 1 else STEPS)
