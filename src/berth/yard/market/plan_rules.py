"""AWS's rules for training plans that blocks do not share: counts, lengths, and what an offering says.

Source of each number: SageMaker Developer Guide, "Reserve capacity with training plans" and "Search for
training plan offerings" (copies of 2026). The rules of time are in `window_rules`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from berth.terms.money import Money
from berth.terms.ways import Target
from berth.terms.window import Window
from berth.yard.market.window_rules import DAYS_MAX, window_of

COUNTS = (1, 2, 4, 8, 16, 32, 64)
HOURS_MAX = DAYS_MAX * 24
OFFERINGS_MAX = 3


@dataclass(frozen=True, slots=True)
class PlanTerms:
    """What a plan offering offers, as its id carries it.

    `issued_at` is a whole minute. `start` counts: 0 is the immediate start 30 minutes after it, n the n-th
    11:30 UTC after it. `end` counts 11:30s after the start. `fee` is what the offering showed.
    """

    pool_key: str
    count: int
    targets: tuple[Target, ...]
    issued_at: datetime
    start: int
    end: int
    fee: Money

    @property
    def immediate(self) -> bool:
        """Whether it starts as soon as it can instead of at an 11:30 UTC."""
        return self.start == 0

    @property
    def window(self) -> Window:
        """The paid window."""
        return window_of(self.issued_at, self.start, self.end)


def whole_days(duration_hours: int) -> int:
    """`DurationHours` in days: AWS rounds up to a multiple of 24 hours."""
    return -(-duration_hours // 24)
