"""The durations in which Capacity Blocks are sold: 1 to 14 days by the day, then whole weeks up to 26.

Source: EC2 guide, Capacity Blocks, read 2026-11. 14 days is the last daily step and a multiple of a week.
"""

from __future__ import annotations

from datetime import timedelta

LADDER = tuple(timedelta(days=days) for days in (*range(1, 15), *range(21, 183, 7)))
_HOUR = timedelta(hours=1)


def on_ladder(span: timedelta) -> bool:
    """Whether a block can be asked for exactly that long."""
    return span in LADDER


def step_at_least(span: timedelta) -> timedelta | None:
    """The shortest step that lasts `span` or longer; None when no block lasts as long."""
    return next((step for step in LADDER if step >= span), None)


def steps_around(span: timedelta) -> tuple[timedelta, ...]:
    """The nearest steps below and above `span`, one or two of them; `span` itself when it is a step."""
    if on_ladder(span):
        return (span,)
    return tuple([s for s in LADDER if s < span][-1:] + [s for s in LADDER if s > span][:1])


def steps_between(shortest: timedelta, longest: timedelta) -> tuple[timedelta, ...]:
    """Every step from `shortest` to `longest`, both counted in."""
    return tuple(step for step in LADDER if shortest <= step <= longest)


def hours(step: timedelta) -> int:
    """A step as `CapacityDurationHours` takes it."""
    return step // _HOUR
