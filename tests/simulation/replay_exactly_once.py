"""Replay one seed of the simulation and print its trace: `replay_exactly_once.py --seed 17`."""

from __future__ import annotations

import argparse
import sys

from exactly_once.seeded import PACES, play


def main() -> int:
    """Print every effect, trouble and end of the seed; exit 1 when a promise is broken."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, required=True)
    options.add_argument("--intents", type=int, default=3)
    options.add_argument("--pace", choices=PACES, default="thorough")
    given = options.parse_args()
    try:
        tally, trace = play(given.seed, given.intents, PACES[given.pace])
    except AssertionError as breach:
        print("\n".join(getattr(breach, "__notes__", [])))
        print(f"BREACH: {breach}")
        return 1
    print("\n".join(trace))
    print(
        f"seed {given.seed}: {tally.intents} intents, {tally.runs} runs, {tally.sold} sold, all promises kept"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
