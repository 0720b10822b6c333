"""A sweep: many questions to many Regions. In which order, how long at least, how far it is. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from berth.planner.offers import PlaceAnswer, PlaceOutcome, Query
from berth.sources.pacing import BLOCK_SEARCH
from berth.terms.ways import Way

CALL_S = 0.15
"""What one call takes until it is measured: a round trip to a Region on another continent."""
WORTH_SAYING_S = 5.0
"""A sweep that takes longer is announced before it starts, and tells how far it is."""

OLD = timedelta(minutes=5)
"""An answer that is older than this is told with its age."""

Lane = tuple[Way, str]
"""One way in one Region: its questions are asked one after another."""


def lanes_of(queries: Iterable[Query]) -> Mapping[Lane, tuple[Query, ...]]:
    """The questions of each way and Region, the most promising first; each question once."""
    found: dict[Lane, list[Query]] = defaultdict(list)
    for query in dict.fromkeys(queries):
        found[query.way, query.region].append(query)
    return {lane: most_promising_first(asked) for lane, asked in found.items()}


def most_promising_first(queries: Sequence[Query]) -> tuple[Query, ...]:
    """The order in which one Region is asked.

    `queries` come as the need prefers them. First the first choice of every type and count, in that order;
    then the second of each, and so on: breadth before depth, so that a bucket that runs dry has seen
    something of every kind.
    """
    depth: Counter[tuple[str, int]] = Counter()
    ranked: list[tuple[int, int, Query]] = []
    for place, query in enumerate(queries):
        kind = query.instance_type, query.count
        ranked.append((depth[kind], place, query))
        depth[kind] += 1
    return tuple(query for _, _, query in sorted(ranked, key=lambda one: one[:2]))


def lane_seconds(way: Way, questions: int, *, tokens: float | None = None, call_s: float = CALL_S) -> float:
    """The least time for one Region's questions: what its bucket lets through, or one call after another.

    `tokens` is what the bucket holds at the start (None: it is full), `call_s` the seconds of one call.
    SageMaker publishes no bucket for its search, so there only the calls count.
    """
    in_turn = questions * call_s
    if way is not Way.CAPACITY_BLOCK:
        return in_turn
    return max(in_turn, BLOCK_SEARCH.seconds(questions, tokens) + call_s)


def sweep_seconds(queries: Iterable[Query], *, call_s: float = CALL_S) -> float:
    """The least time for the whole sweep on AWS: all Regions at once, so the slowest decides. 0 for none.

    More pages than one a question, and whoever else asks with the same account, make it longer.
    """
    lanes = lanes_of(queries)
    return max(
        (lane_seconds(way, len(asked), call_s=call_s) for (way, _), asked in lanes.items()), default=0.0
    )


def age_note(answers: Iterable[PlaceAnswer], now: datetime) -> str:
    """How old the oldest answer is, where that is worth a sentence: a sweep may take a quarter of an hour."""
    heard = [answer for answer in answers if answer.outcome is not PlaceOutcome.NOT_ASKED]
    oldest = min(heard, key=lambda answer: (answer.seen_at, answer.region), default=None)
    if oldest is None or now - oldest.seen_at < OLD:
        return ""
    age = spoken_s((now - oldest.seen_at).total_seconds())
    return f"the oldest answer ({oldest.region}) is {age} old; berth buy asks again before it pays"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep is: questions answered of all, and the seconds that are left at least."""

    done: int
    total: int
    left_s: float

    @property
    def line(self) -> str:
        """`asked 37 of 154, about 13 min left`."""
        left = f", about {spoken_s(self.left_s)} left" if self.done < self.total else ""
        return f"asked {self.done} of {self.total}{left}"


def progress(
    lanes: Mapping[Lane, Sequence[Query]],
    done: Mapping[Lane, int],
    spent_s: float,
    tokens: Mapping[str, float] | None = None,
) -> Progress:
    """How far the sweep is after `spent_s` seconds, when `done` questions of each lane were answered.

    `tokens` is what each Region's bucket held when it began (None: they were full).
    What is left is the slowest lane's: by the bucket where it is the limit, else by the pace so far.
    """
    left = 0.0
    for lane, asked in lanes.items():
        way, rest = lane[0], len(asked) - done.get(lane, 0)
        if rest <= 0:
            continue
        call_s = spent_s / done[lane] if done.get(lane) else CALL_S
        held = (tokens or {}).get(lane[1])
        whole = lane_seconds(way, len(asked), tokens=held, call_s=min(call_s, 60.0))
        left = max(left, whole - spent_s, rest * CALL_S)
    total = sum(len(asked) for asked in lanes.values())
    return Progress(sum(done.values()), total, left)


def spoken_s(seconds: float) -> str:
    """`8 s`, `16 min`, `1 h 05 min`: rounded up, since it is the least."""
    whole = max(1, -int(-seconds // 1))
    if whole < 100:
        return f"{whole} s"
    minutes = -(-whole // 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"
