"""What is wanted, as a profile over time with constraints. `from_need` makes one of a need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from berth.terms.money import Money
from berth.terms.window import Window


class Goal(StrEnum):
    """Which duration is preferred where several will do."""

    SHORTEST = "shortest"
    LONGEST = "longest"
    CHEAPEST_PER_HOUR = "cheapest-per-hour"


@dataclass(frozen=True, slots=True)
class Step:
    """`least` instances must run all through `window`, `wanted` (at least as many) would be better."""

    window: Window
    least: int
    wanted: int

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.wanted:
            raise ValueError(f"counts must be 0 <= least <= wanted, not {self.least} and {self.wanted}")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a wish: instances of one type. `steps` follow each other in time and do not overlap.

    `interruptible`: it survives two minutes' notice, so that Spot may serve it. `beside` names another part
    in whose zone this one must be (a head beside its nodes); both are then in one zone as a whole.
    """

    name: str
    instance_type: str
    steps: tuple[Step, ...]
    interruptible: bool = False
    beside: str | None = None

    def __post_init__(self) -> None:
        if not self.steps:
            raise ValueError(f"part {self.name!r} has no step")
        pairs = pairwise(self.steps)
        if any(a.window.end > b.window.start for a, b in pairs):
            raise ValueError(f"the steps of part {self.name!r} overlap or are out of order")


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted. The steps stand where they are earliest; with `latest_end` all may move later together.

    `currency` is the only one that is compared; offers in another are refused. `budget` bounds the total
    (None: none). `zones` and `regions` are the only ones allowed (None: any). `latest_end` None: the start
    is fixed. `spans` are the durations that will do, shortest first (empty: that of the steps); the last
    step ends where the duration does, and `goal` says which is preferred. `most_gap`, if over
    zero, lets the work pause, never longer than that: it then runs for `runs` in all (None: as long as its
    steps are) until `latest_end`; with a fixed start from the first to the last instant of its steps, but for
    the pauses. `startup` is how long an instance that is paid by the hour is paid before it works.
    """

    parts: tuple[Part, ...]
    currency: str = "USD"
    budget: Money | None = None
    same_zone: bool = False
    same_region: bool = False
    zones: frozenset[str] | None = None
    regions: frozenset[str] | None = None
    latest_end: datetime | None = None
    spans: tuple[timedelta, ...] = ()
    goal: Goal = Goal.SHORTEST
    most_gap: timedelta = timedelta(0)
    runs: timedelta | None = None
    startup: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError("a wish has at least one part")
        if self.budget is not None and self.budget.currency != self.currency:
            raise ValueError(
                f"the budget is in {self.budget.currency}, prices are compared in {self.currency}"
            )
        if self.most_gap and len({(part.instance_type, len(part.steps)) for part in self.parts}) > 1:
            raise ValueError("only parts of one instance type can pause")
        if self.most_gap and any(len(part.steps) > 1 for part in self.parts):
            raise ValueError("a profile of several steps cannot pause")
        names = {part.name for part in self.parts}
        if len(names) != len(self.parts) or any(p.beside not in {None, *names} for p in self.parts):
            raise ValueError("parts need names of their own, and `beside` must be one of them")

    @property
    def start(self) -> datetime:
        """The earliest instant of all steps."""
        return min(part.steps[0].window.start for part in self.parts)

    @property
    def end(self) -> datetime:
        """The last instant of all steps, before they are moved."""
        return max(part.steps[-1].window.end for part in self.parts)

    @property
    def slack(self) -> timedelta:
        """By how much the steps may move later; zero when the start is fixed."""
        return max((self.latest_end or self.end) - self.end, timedelta(0))

    @property
    def runs_at_least(self) -> timedelta:
        """How long work that may pause runs in all."""
        return self.end - self.start if self.runs is None else self.runs

    def moved(self, shift: timedelta) -> Wish:
        """The same wish, fixed `shift` later."""
        parts = tuple(_moved(part, shift) for part in self.parts)
        return replace(self, parts=parts, latest_end=None, spans=())

    def lasting(self, span: timedelta) -> Wish:
        """The same wish with its last steps ending `span` after the start; steps beyond that are left out."""
        parts = tuple(_lasting(part, self.start + span, self.end) for part in self.parts)
        return replace(self, parts=parts, spans=())

    def with_counts(self, fewer: int) -> Wish:
        """The same wish with up to `fewer` instances less in each step, down to one."""
        parts = tuple(replace(p, steps=tuple(_fewer(step, fewer) for step in p.steps)) for p in self.parts)
        return replace(self, parts=parts)

    def at_wanted(self) -> Wish:
        """The same wish with the wanted counts as the least ones."""
        parts = tuple(
            replace(p, steps=tuple(replace(s, least=s.wanted) for s in p.steps)) for p in self.parts
        )
        return replace(self, parts=parts)


def _moved(part: Part, shift: timedelta) -> Part:
    steps = (replace(s, window=Window(s.window.start + shift, s.window.end + shift)) for s in part.steps)
    return replace(part, steps=tuple(steps))


def _lasting(part: Part, end: datetime, before: datetime) -> Part:
    """A part ends with the wish if it did so before; one that ended earlier keeps its end."""
    kept = [step for step in part.steps if step.window.start < end]
    if not kept:
        return replace(part, steps=part.steps[:1])
    last = kept[-1].window
    reaches = part.steps[-1].window.end == before and len(kept) == len(part.steps)
    stop = end if reaches else min(last.end, end)
    kept[-1] = replace(kept[-1], window=Window(last.start, stop))
    return replace(part, steps=tuple(kept))


def _fewer(step: Step, fewer: int) -> Step:
    least = max(min(step.least, 1), step.least - fewer)
    return Step(step.window, least, max(step.wanted, least))
