"""What to ask the search APIs for a need. Pure: which questions, not how they are sent.

One call asks for one duration, one type and one count (field fault 46). So a need that would take several
becomes one question for each that is sold, each once, the best first: durations as the goal
ranks them, then types and Regions as the need names them, and the count that is wanted before the least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from berth.facts.instance_types import instance_type
from berth.planner import ladder
from berth.planner.framework.limits import LONGEST, PLAN_COUNTS, block_sizes, plan_counts_between
from berth.planner.need import Goal, Need
from berth.planner.offers import Query
from berth.planner.part import TypeCount, layers
from berth.terms.ways import Target, Way
from berth.terms.window import Window

# Plans end at 11:30 UTC, and start then unless they start at once (SageMaker guide, read 2026-11).
BOUNDARY = time(11, 30)
_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
# Whether AWS counts the bounds of a search in is not documented; a second of room makes it not matter.
ROOM = timedelta(seconds=1)
# Up to so many counts are asked one by one; of more, the powers of two and both ends.
_FEW_COUNTS = 4


@dataclass(frozen=True, slots=True)
class _Ask:
    """One thing to ask for: so many for so long, from `offset` after the start of what is wanted."""

    instance_type: str
    count: int
    span: timedelta
    offset: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """How a question is put: whole hours, and the bounds of the window that is searched."""

    start_after: datetime | None
    end_before: datetime | None
    hours: int


def boundary_before(instant: datetime) -> datetime:
    """The last 11:30 UTC at or before `instant`."""
    same_day = datetime.combine(instant.astimezone(UTC).date(), BOUNDARY, tzinfo=UTC)
    return same_day if same_day <= instant else same_day - _DAY


def boundary_after(instant: datetime) -> datetime:
    """The first 11:30 UTC at or after `instant`."""
    before = boundary_before(instant)
    return before if before == instant else before + _DAY


def training_plan_queries(need: Need, regions: tuple[str, ...], now: datetime) -> tuple[Query, ...]:
    """The questions for plans. With a fixed start each asks for the shortest plan that covers its span."""
    spans = [span for span in _plan_spans(need) if span <= LONGEST]
    types = [wanted for wanted in need.types if _in_plans(wanted.instance_type)]
    return _queries(Way.TRAINING_PLAN, need, regions, now, _asks(need, spans, types, _PLANS))


def block_queries(need: Need, regions: tuple[str, ...], now: datetime) -> tuple[Query, ...]:
    """The questions for blocks, by steps of the ladder; none where no step covers what is wanted.

    AWS answers with windows around the asked length that end at 11:30 UTC, one shorter and one longer where
    the start is off that grid. So a start before the next boundary asks for the need's own length: the longer
    answer covers it.
    """
    spans = _block_spans(need)
    types = [wanted for wanted in need.types if _in_blocks(wanted.instance_type)]
    return _queries(Way.CAPACITY_BLOCK, need, regions, now, _asks(need, spans, types, _BLOCKS))


# -- how long ------------------------------------------------------------------------------------------------
def _plan_spans(need: Need) -> tuple[timedelta, ...]:
    """Plans take any length; a range is asked at both ends and at the ladder's steps between."""
    steps = ladder.steps_between(need.duration, need.duration_at_most)
    return _liked({need.duration, *steps, need.duration_at_most}, need, need.duration)


def _block_spans(need: Need) -> tuple[timedelta, ...]:
    if not need.is_range:
        return (need.duration,)
    steps = ladder.steps_between(need.duration, need.duration_at_most)
    return _liked(steps, need, steps[0] if steps else need.duration)


def _liked(spans: Iterable[timedelta], need: Need, shortest: timedelta) -> tuple[timedelta, ...]:
    """In the order of the goal, without those that do not lie within the bounds; the shortest is kept."""
    room = None
    if need.latest_end is not None and need.earliest_start is not None:
        room = need.latest_end - need.earliest_start
    kept = [span for span in spans if room is None or span <= room or span == shortest]
    return tuple(sorted(kept, reverse=need.goal is Goal.LONGEST))


# -- what and how many ---------------------------------------------------------------------------------------
def _in_plans(name: str) -> bool:
    kind = instance_type(name)
    return kind is None or (kind.training_plan is not False and not kind.is_ultraserver)


def _in_blocks(name: str) -> bool:
    kind = instance_type(name)
    return kind is None or kind.capacity_block


def _plan_counts(wanted: TypeCount) -> tuple[int, ...]:
    return plan_counts_between(wanted.count, wanted.wanted)


def _block_counts(wanted: TypeCount) -> tuple[int, ...]:
    """What one block each is asked for; more than a block holds is asked as the sizes of several."""
    between = range(wanted.count, wanted.wanted + 1)
    if len(between) > _FEW_COUNTS:
        ends = {wanted.count, wanted.wanted}
        between_ends = {2**n for n in range(11) if wanted.count < 2**n < wanted.wanted}
        counts = sorted(ends | between_ends, reverse=True)
    else:
        counts = sorted(between, reverse=True)
    return tuple(dict.fromkeys(size for count in counts for size in block_sizes(count)))


def _plan_layer(count: int) -> tuple[int, ...]:
    """The smallest plan that holds so many; none where no plan does."""
    return plan_counts_between(count, max(PLAN_COUNTS))[-1:]


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Which counts a way is asked for: for the whole of what is wanted, and for one layer of a profile."""

    whole: Callable[[TypeCount], tuple[int, ...]]
    layer: Callable[[int], tuple[int, ...]]


_PLANS = _Sizes(_plan_counts, _plan_layer)
_BLOCKS = _Sizes(_block_counts, block_sizes)


def _asks(
    need: Need, spans: Sequence[timedelta], types: Sequence[TypeCount], sizes: _Sizes
) -> Iterator[_Ask]:
    """All to ask for, best first: the whole, and where the count changes, each layer of the profile."""
    for span in spans:
        for wanted in types:
            for count in sizes.whole(wanted):
                yield _Ask(wanted.instance_type, count, span)
            for layer in layers(need.profile, span):
                for count in sizes.layer(layer.count):
                    yield _Ask(wanted.instance_type, count, layer.end - layer.begin, layer.begin)


# -- the questions -------------------------------------------------------------------------------------------
def _queries(
    way: Way, need: Need, regions: Sequence[str], now: datetime, asks: Iterable[_Ask]
) -> tuple[Query, ...]:
    on_blocks = way is Way.CAPACITY_BLOCK
    found: list[Query] = []
    for ask in asks:
        bounds = _block_bounds(need, ask, now) if on_blocks else _plan_bounds(need, ask, now)
        if bounds is not None:
            found += [_query(way, need, ask, bounds, region) for region in regions]
    return tuple(dict.fromkeys(found))


def _query(way: Way, need: Need, ask: _Ask, bounds: _Bounds, region: str) -> Query:
    on_blocks = way is Way.CAPACITY_BLOCK
    return Query(
        way=way,
        region=region,
        instance_type=ask.instance_type,
        count=ask.count,
        duration_hours=bounds.hours,
        target=Target.INSTANCES if on_blocks else need.target,
        start_after=bounds.start_after,
        end_before=bounds.end_before,
        platform=need.platform if on_blocks else "",
    )


def _plan_bounds(need: Need, ask: _Ask, now: datetime) -> _Bounds:
    window = _fixed_window(need, ask)
    if window is None:
        return _Bounds(_later(need, ask, now), need.latest_end, _whole_hours(ask.span))
    begin, end = boundary_before(window.start), boundary_after(window.end)
    if begin - ROOM > now:
        return _Bounds(begin - ROOM, end + ROOM, _whole_hours(end - begin))
    # No boundary is left before the start, so only a plan that starts at once can be there in time.
    return _Bounds(None, end + ROOM, _whole_hours(end - now))


def _block_bounds(need: Need, ask: _Ask, now: datetime) -> _Bounds | None:
    window = _fixed_window(need, ask)
    if window is None:
        step = ladder.step_at_least(ask.span)
        return None if step is None else _Bounds(_later(need, ask, now), need.latest_end, ladder.hours(step))
    begin, end = boundary_before(window.start), boundary_after(window.end)
    ahead = begin - ROOM > now
    step = ladder.step_at_least(end - begin if ahead else ask.span)
    if step is None:
        return None
    if ahead:
        return _Bounds(begin - ROOM, max(end, begin + step) + ROOM, ladder.hours(step))
    return _Bounds(None, max(end, boundary_after(now + step) + _DAY) + ROOM, ladder.hours(step))


def _fixed_window(need: Need, ask: _Ask) -> Window | None:
    """The span that a fixed start asks for; None when the start may move."""
    if need.start is None:
        return None
    begin = need.start + ask.offset
    return Window(begin, begin + ask.span)


def _later(need: Need, ask: _Ask, now: datetime) -> datetime | None:
    """The earliest start, where it is not now."""
    earliest = (need.earliest_start or now) + ask.offset
    return earliest if earliest > now else None


def _whole_hours(span: timedelta) -> int:
    return max(1, -(-span // _HOUR))
