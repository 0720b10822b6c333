"""What to try when nothing is on sale: shorter or fewer, of sizes that are sold, in the chosen Regions alone.

Halving 35 days gives 17, which nobody sells (field fault 47). None of these was asked; each change is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from berth.planner.framework.limits import PLAN_COUNTS
from berth.planner.ladder import LADDER
from berth.planner.need import Need
from berth.planner.phrases import length
from berth.terms.ways import Target

MOST = 3


@dataclass(frozen=True, slots=True)
class Smaller:
    """A need with one thing changed: `duration` or `count` (the other is the need's own)."""

    duration: timedelta
    count: int
    change: str


def smaller(need: Need) -> tuple[Smaller, ...]:
    """Up to three shorter and three fewer, the nearest first. Regions, type and target stay as they are."""
    shorter = [step for step in reversed(LADDER) if step < need.duration][:MOST]
    fewer = [count for count in _counts(need) if count < need.count][:MOST]
    return (
        *(Smaller(s, need.count, f"{length(s)} instead of {length(need.duration)}") for s in shorter),
        *(Smaller(need.duration, c, f"{c} instead of {need.count}") for c in fewer),
    )


def _counts(need: Need) -> list[int]:
    """Counts that are sold, the largest first."""
    if need.target is Target.INSTANCES:
        return list(range(need.count - 1, 0, -1))
    return list(reversed(PLAN_COUNTS))


def smaller_text(need: Need) -> str:
    """The proposals in a clause, '' where there is nothing smaller."""
    found = smaller(need)
    shorter = [length(one.duration) for one in found if one.count == need.count]
    fewer = [str(one.count) for one in found if one.count != need.count]
    said = []
    if shorter:
        said.append(f"{_either(shorter)} instead of {length(need.duration)}")
    if fewer:
        said.append(f"{_either(fewer)} instead of {need.count}")
    return f"ask in the same Regions for {'; or for '.join(said)} (not asked yet)" if said else ""


def _either(choices: list[str]) -> str:
    """`28 days, 21 days or 14 days`."""
    *first, last = choices
    return f"{', '.join(first)} or {last}" if first else last
