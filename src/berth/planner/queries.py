"""What to ask the search APIs for a need. Pure: which questions, not how they are sent."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

from berth.planner import ladder
from berth.planner.need import Need
from berth.planner.offers import Query
from berth.terms.ways import Target, Way

# Plans end at 11:30 UTC, and start then unless they start at once (SageMaker guide, read 2026-11).
BOUNDARY = time(11, 30)
_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
# Whether AWS counts the bounds of a search in is not documented; a second of room makes it not matter.
_ROOM = timedelta(seconds=1)


def boundary_before(instant: datetime) -> datetime:
    """The last 11:30 UTC at or before `instant`."""
    same_day = datetime.combine(instant.astimezone(UTC).date(), BOUNDARY, tzinfo=UTC)
    return same_day if same_day <= instant else same_day - _DAY


def boundary_after(instant: datetime) -> datetime:
    """The first 11:30 UTC at or after `instant`."""
    before = boundary_before(instant)
    return before if before == instant else before + _DAY


def training_plan_queries(need: Need, regions: tuple[str, ...], now: datetime) -> tuple[Query, ...]:
    """One question a Region. With a fixed start it asks for the shortest plan that covers the wanted span."""
    start_after, end_before, hours = _fixed(need, now) if need.start else _flexible(need, now)
    return tuple(
        Query(
            way=Way.TRAINING_PLAN,
            region=region,
            instance_type=need.instance_type,
            count=need.count,
            duration_hours=hours,
            target=need.target,
            start_after=start_after,
            end_before=end_before,
        )
        for region in regions
    )


def block_queries(need: Need, regions: tuple[str, ...], now: datetime) -> tuple[Query, ...]:
    """One question a Region, for the step of the ladder that covers the need; none where no step does.

    AWS answers with windows around the asked length that end at 11:30 UTC, one shorter and one longer where
    the start is off that grid. So a start before the next boundary asks for the need's own length: the longer
    answer covers it.
    """
    asked = _fixed_block(need, now) if need.start else _flexible_block(need, now)
    if asked is None:
        return ()
    start_after, end_before, hours = asked
    return tuple(
        Query(
            way=Way.CAPACITY_BLOCK,
            region=region,
            instance_type=need.instance_type,
            count=need.count,
            duration_hours=hours,
            target=Target.INSTANCES,
            start_after=start_after,
            end_before=end_before,
            platform=need.platform,
        )
        for region in regions
    )


_Asked = tuple[datetime | None, datetime | None, int]


def _flexible_block(need: Need, now: datetime) -> _Asked | None:
    step = ladder.step_at_least(need.duration)
    if step is None:
        return None
    start_after, end_before, _ = _flexible(need, now)
    return start_after, end_before, ladder.hours(step)


def _fixed_block(need: Need, now: datetime) -> _Asked | None:
    window = need.fixed_window
    assert window is not None
    begin, end = boundary_before(window.start), boundary_after(window.end)
    ahead = begin - _ROOM > now
    step = ladder.step_at_least(end - begin if ahead else need.duration)
    if step is None:
        return None
    if ahead:
        return begin - _ROOM, max(end, begin + step) + _ROOM, ladder.hours(step)
    return None, max(end, boundary_after(now + step) + _DAY) + _ROOM, ladder.hours(step)


def _flexible(need: Need, now: datetime) -> tuple[datetime | None, datetime | None, int]:
    later = need.earliest_start if need.earliest_start and need.earliest_start > now else None
    return later, need.latest_end, _whole_hours(need.duration)


def _fixed(need: Need, now: datetime) -> tuple[datetime | None, datetime | None, int]:
    window = need.fixed_window
    assert window is not None
    begin, end = boundary_before(window.start), boundary_after(window.end)
    if begin - _ROOM > now:
        return begin - _ROOM, end + _ROOM, _whole_hours(end - begin)
    # No boundary is left before the start, so only a plan that starts at once can be there in time.
    return None, end + _ROOM, _whole_hours(end - now)


def _whole_hours(span: timedelta) -> int:
    return max(1, -(-span // _HOUR))
