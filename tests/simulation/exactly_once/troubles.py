"""What goes wrong, and where: a script maps numbers of effects to troubles, drawn from a seed or pointed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Trouble(StrEnum):
    """One kind of trouble. Those of the wire happen to the call that is under way, or to the next one."""

    KILLED = "killed"  # the process dies at the effect
    YARD_KILLED = "yard-killed"  # the service's process dies and comes back from its store
    ASLEEP = "asleep"  # the laptop sleeps for a day between two effects
    PAUSED = "paused"  # seven minutes pass between two effects
    LOST_BEFORE = "lost-before"  # the line is cut before the service has the request
    LOST_REPLY = "lost-reply"  # done, then the line is cut
    LATE = "late"  # the client gives up, and within a minute of sending the service does it
    TWICE = "twice"  # the request is delivered twice; the second answer comes
    ERROR_AFTER = "error-after-commit"  # done, then 500
    THROTTLE = "throttle"  # refused, nothing done
    GARBLED = "malformed-body"  # done; the answer ends in the middle
    DEARER = "dearer"  # the service's prices rise between two effects


WIRE = frozenset(
    {
        Trouble.LOST_BEFORE, Trouble.LOST_REPLY, Trouble.LATE, Trouble.TWICE, Trouble.ERROR_AFTER,
        Trouble.THROTTLE, Trouble.GARBLED,
    }
)  # fmt: skip
REPLY = frozenset({Trouble.LOST_REPLY, Trouble.GARBLED})
WEIGHTS: Mapping[Trouble, int] = {
    Trouble.KILLED: 30,
    Trouble.YARD_KILLED: 5,
    Trouble.ASLEEP: 2,
    Trouble.PAUSED: 4,
    Trouble.LOST_BEFORE: 6,
    Trouble.LOST_REPLY: 14,
    Trouble.LATE: 12,
    Trouble.TWICE: 6,
    Trouble.ERROR_AFTER: 10,
    Trouble.THROTTLE: 6,
    Trouble.GARBLED: 5,
}
WITH_PRICES: Mapping[Trouble, int] = {**WEIGHTS, Trouble.DEARER: 6}


@dataclass(slots=True)
class Script:
    """The troubles of one run of one process, by the number of the effect at which each begins."""

    at: dict[int, Trouble] = field(default_factory=dict)
    waiting: list[Trouble] = field(default_factory=list)

    @classmethod
    def drawn(cls, chance: random.Random, effects: int, weights: Mapping[Trouble, int] = WEIGHTS) -> Script:
        """None to three troubles within the first `effects` effects."""
        number = chance.choice((0, 1, 1, 1, 2, 3))
        kinds = chance.choices(tuple(weights), tuple(weights.values()), k=number)
        return cls({chance.randint(1, effects): kind for kind in kinds})

    def take_reply(self) -> Trouble | None:
        """The trouble of the answer that is on its way: what can still happen to it, and nothing else."""
        return self.waiting.pop(0) if self.waiting and self.waiting[0] in REPLY else None

    def take_wire(self) -> Trouble | None:
        """The trouble of the call that is about to be sent."""
        return self.waiting.pop(0) if self.waiting else None
