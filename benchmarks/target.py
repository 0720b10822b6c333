"""One server that is asked one kind of thing, round after round, and how it compares with another."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness import spread
from load import Outcome, send
from servers import Server

BUSY = 16
"""Connections of a busy round."""
NOISE = 0.2
"""Two servers on two shared cores differ by so much when they do the same thing."""


@dataclass(slots=True)
class Target:
    """A server, ready-made requests to it, and the outcomes of its rounds.

    `alone` asks for a round on a single connection after each busy one, a third as long.
    """

    name: str
    server: Server
    requests: Sequence[bytes]
    alone: bool = False
    busy: list[Outcome] = field(default_factory=list)
    single: list[Outcome] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)

    def round(self, seconds: float) -> None:
        """One round. Raises RuntimeError for an answer that is not 200."""
        before = self.server.cpu_s()
        outcome = send(self.server.port, self.requests, BUSY, seconds)
        self.cpu_us.append((self.server.cpu_s() - before) * 1e6 / outcome.answers)
        self.busy.append(outcome)
        if self.alone:
            self.single.append(send(self.server.port, self.requests, 1, seconds / 3))
        for one in (outcome, *self.single[-1:]):
            if one.refused:
                raise RuntimeError(f"{self.name}: {one.refused} answers were not 200: {one.sample[:300]}")

    @property
    def cost(self) -> float:
        """Median processor microseconds of the server for one answer."""
        return statistics.median(self.cpu_us)

    def rates(self) -> str:
        """Answers a second of the busy rounds: median [lowest-highest]."""
        return spread([one.rate for one in self.busy])

    @staticmethod
    def latencies(outcomes: Sequence[Outcome], digits: int) -> list[str]:
        """Medians of the 50th and the 99th percentile, in milliseconds."""
        return [
            f"{statistics.median(one.p50_us for one in outcomes) / 1e3:.{digits}f}",
            f"{statistics.median(one.p99_us for one in outcomes) / 1e3:.{digits}f}",
        ]


def times(one: Target, other: Target) -> tuple[float, float]:
    """How many answers `one` gives while `other` gives one: by the rates, pair by pair of neighbouring
    rounds, and by the processor time that an answer takes, which other work on the machine does not touch."""
    pairs = zip(one.busy, other.busy, strict=True)
    return statistics.median(a.rate / b.rate for a, b in pairs), other.cost / one.cost
