"""The calendar of a pool, against a recount of everything that was committed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.terms.instants import to_micros
from berth.terms.window import Window
from berth.yard.fleet.calendar import (
    HORIZON_DAYS,
    SLOT,
    SLOTS_PER_DAY,
    STARTS,
    PoolCalendar,
    day_at,
    day_start,
    slot_at,
    slots_at,
    slots_of,
)

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
BASE = datetime(2026, 11, 30, 11, 30, tzinfo=UTC)


def at(days: float, minutes: int = 0) -> datetime:
    """An instant counted from the base of a calendar made at NOW."""
    return BASE + timedelta(days=days, minutes=minutes)


def test_a_day_runs_from_half_past_eleven_utc() -> None:
    """The base is the 11:30 UTC before now, and the horizon lies 11,424 half hours after it."""
    calendar = PoolCalendar(NOW)
    assert calendar.base == BASE
    assert calendar.horizon - calendar.base == 11_424 * SLOT
    assert day_start(day_at(BASE)) == BASE
    assert day_at(BASE - timedelta(seconds=1)) == day_at(BASE) - 1


def test_windows_are_rounded_outwards_to_slots() -> None:
    """A window that touches a slot takes it whole, so two that share a half hour count together."""
    assert slots_of(Window(at(0, 5), at(0, 25))) == (slot_at(at(0)), slot_at(at(0)) + 1)
    assert slots_of(Window(at(0, 30), at(0, 60))) == (slot_at(at(0)) + 1, slot_at(at(0)) + 2)
    calendar = PoolCalendar(NOW)
    calendar.commit(Window(at(1), at(1, 10)), 3)
    assert calendar.committed_max(Window(at(1, 20), at(1, 30))) == 3
    assert calendar.committed_max(Window(at(1, 30), at(1, 60))) == 0


def test_back_to_back_windows_do_not_add_up() -> None:
    """Windows are half-open: one may start where another ends."""
    calendar = PoolCalendar(NOW)
    calendar.commit(Window(at(1), at(2)), 5)
    calendar.commit(Window(at(2), at(3)), 4)
    assert calendar.committed_max(Window(at(0), at(5))) == 5
    assert calendar.fits(Window(at(2), at(3)), 1, limit=5)
    assert not calendar.fits(Window(at(1, -30), at(2)), 1, limit=5)


def test_the_past_is_cut_off_and_a_wholly_past_window_is_no_question() -> None:
    """What lies before the base is not kept; to ask about nothing else is an error, not a zero."""
    calendar = PoolCalendar(NOW)
    calendar.commit(Window(at(-3), at(1)), 2)
    calendar.commit(Window(at(-3), at(-2)), 7)
    assert calendar.committed_max(Window(at(-5), at(0, 30))) == 2
    with pytest.raises(ValueError, match="keeps nothing before"):
        calendar.committed_max(Window(at(-3), at(-2)))
    calendar.release(Window(at(-3), at(-2)), 7)
    calendar.release(Window(at(-3), at(1)), 2)
    assert calendar.committed_max(Window(at(0), at(5))) == 0


def test_what_lies_past_the_horizon_counts_and_comes_in_with_time() -> None:
    """A window of years is kept whole: the horizon limits the dense part, not the promises."""
    calendar = PoolCalendar(NOW)
    far = Window(at(HORIZON_DAYS + 10), at(HORIZON_DAYS + 20))
    across = Window(at(HORIZON_DAYS - 1), at(HORIZON_DAYS + 15))
    calendar.commit(far, 3)
    calendar.commit(across, 4)
    assert calendar.committed_max(far) == 7
    assert calendar.committed_max(Window(at(HORIZON_DAYS + 15), at(HORIZON_DAYS + 16))) == 3
    assert calendar.committed_max(Window(at(HORIZON_DAYS + 20), at(HORIZON_DAYS + 21))) == 0
    calendar.roll_to(at(12))
    assert calendar.committed_max(Window(at(HORIZON_DAYS), at(HORIZON_DAYS + 2))) == 4
    assert calendar.committed_max(far) == 7
    calendar.roll_to(at(HORIZON_DAYS * 2))
    assert calendar.committed_max(Window(at(HORIZON_DAYS * 2), at(HORIZON_DAYS * 3))) == 0


def test_an_open_end_holds_for_ever_until_it_is_ended() -> None:
    """A start without an end counts at every later instant, over any roll."""
    calendar = PoolCalendar(NOW)
    calendar.commit_open(at(3), 2)
    assert calendar.committed_max(Window(at(0), at(3))) == 0
    assert calendar.committed_max(Window(at(2), at(4))) == 2
    assert calendar.committed_max(Window(at(5000), at(5001))) == 2
    calendar.roll_to(at(600))
    assert calendar.committed_max(Window(at(600), at(601))) == 2
    calendar.release_open(at(610, 5), 2)
    assert calendar.committed_max(Window(at(610), at(610, 30))) == 2
    assert calendar.committed_max(Window(at(610, 30), at(5000))) == 0


def test_a_release_of_what_is_not_there_changes_nothing() -> None:
    """Giving back more than was taken is a fault of the caller and is refused whole."""
    calendar = PoolCalendar(NOW)
    calendar.commit(Window(at(1), at(3)), 2)
    with pytest.raises(ValueError, match="only 0 hosts"):
        calendar.release(Window(at(1), at(4)), 1)
    with pytest.raises(ValueError, match="only 2 hosts"):
        calendar.release(Window(at(1), at(3)), 3)
    assert calendar.committed_max(Window(at(1), at(3))) == 2


def test_time_never_goes_back() -> None:
    """Rolling to an earlier instant changes nothing."""
    calendar = PoolCalendar(NOW)
    calendar.commit(Window(at(1), at(3)), 2)
    calendar.roll_to(at(-50))
    assert calendar.base == BASE
    assert calendar.committed_max(Window(at(1), at(3))) == 2


def test_days_past_the_horizon_are_refused_by_the_day_search() -> None:
    """The day search answers for the 57 starts of the longest length and no further."""
    calendar = PoolCalendar(NOW)
    base = day_at(BASE)
    assert calendar.committed_max_for_days(base, 182).shape == (STARTS,)
    assert calendar.starts_known(base + 1, 182) == STARTS - 1
    with pytest.raises(ValueError, match="not all on the calendar"):
        calendar.committed_max_for_days(base + 1, 182)
    with pytest.raises(ValueError, match="not all on the calendar"):
        calendar.committed_max_for_days(base - 1, 1)


@dataclass
class Recount:
    """Commits kept as a list; every answer is counted from it, slot by slot."""

    commits: list[tuple[int, int | None, int]] = field(default_factory=list)

    def level(self, slot: int) -> int:
        """Committed hosts in one slot."""
        return sum(n for first, last, n in self.commits if first <= slot and (last is None or slot < last))

    def max(self, first: int, last: int) -> int:
        """The highest level in [first, last): levels change only where a commit starts or ends."""
        edges = {first} | {
            e for commit in self.commits for e in commit[:2] if e is not None and first <= e < last
        }
        return max(self.level(edge) for edge in edges)


half_hours = st.one_of(
    st.integers(-2 * SLOTS_PER_DAY, 5 * SLOTS_PER_DAY),  # close together, so that ragged edges matter
    st.integers(-2 * SLOTS_PER_DAY, (HORIZON_DAYS + 40) * SLOTS_PER_DAY),
)
lengths = st.one_of(st.integers(1, 3 * SLOTS_PER_DAY), st.integers(1, 40 * SLOTS_PER_DAY))
steps = st.one_of(
    st.tuples(st.just("commit"), half_hours, lengths, st.integers(1, 9)),
    st.tuples(st.just("days"), st.integers(0, 250), st.integers(1, 182), st.integers(1, 9)),
    st.tuples(st.just("open"), half_hours, st.just(0), st.integers(1, 3)),
    st.tuples(st.just("release"), st.integers(0, 99), st.just(0), st.just(0)),
    st.tuples(st.just("roll"), st.integers(0, 30), st.integers(0, 47), st.just(0)),
    st.tuples(st.just("ask"), half_hours, lengths, st.just(0)),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(steps, min_size=1, max_size=25))
def test_every_answer_equals_a_recount(script: list[tuple[str, int, int, int]]) -> None:
    """After any commits, releases and rolls, ranges and day searches answer as a naive count does."""
    calendar, recount, windows = PoolCalendar(NOW), Recount(), []
    for verb, a, b, count in script:
        if verb in ("commit", "days"):
            start = at(0) + a * SLOT if verb == "commit" else at(a)
            end = start + b * SLOT if verb == "commit" else start + timedelta(days=b)
            calendar.commit(Window(start, end), count)
            recount.commits.append((*slots_of(Window(start, end)), count))
            windows.append((Window(start, end), count))
        elif verb == "open":
            calendar.commit_open(at(0) + a * SLOT, count)
            recount.commits.append((slot_at(at(0) + a * SLOT), None, count))
        elif verb == "release" and windows:
            window, held = windows.pop(a % len(windows))
            calendar.release(window, held)
            recount.commits.remove((*slots_of(window), held))
        elif verb == "roll":
            calendar.roll_to(calendar.base + timedelta(days=a) + b * SLOT)
        elif verb == "ask":
            start = calendar.base + a * SLOT
            if start + b * SLOT > calendar.base:
                seen = max(start, calendar.base)
                asked = calendar.committed_max(Window(start, start + b * SLOT))
                assert asked == recount.max(slot_at(seen), slot_at(start) + b)
    _check_days(calendar, recount)


def _check_days(calendar: PoolCalendar, recount: Recount) -> None:
    base = day_at(calendar.base)
    for length in (1, 7, 182):
        found = calendar.committed_max_for_days(base, length).tolist()
        for start in (0, 1, 29, STARTS - 1):
            first = slot_at(day_start(base + start))
            assert found[start] == recount.max(first, first + length * SLOTS_PER_DAY)
    assert calendar.free_min_for_days(base, 3, 10, 5).tolist() == [
        10 - m for m in calendar.committed_max_for_days(base, 3, 5).tolist()
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(0, 60 * 48), st.integers(1, 30 * 48), st.integers(1, 6)), max_size=40),
)
def test_what_fits_never_oversells(limit: int, asks: list[tuple[int, int, int]]) -> None:
    """Whatever is asked in whatever order: committing only what fits keeps every slot within the limit."""
    calendar, recount = PoolCalendar(NOW), Recount()
    for start, length, count in asks:
        window = Window(at(0) + start * SLOT, at(0) + (start + length) * SLOT)
        if calendar.fits(window, count, limit):
            calendar.commit(window, count)
            recount.commits.append((*slots_of(window), count))
        else:
            assert recount.max(*slots_of(window)) + count > limit
    assert recount.max(slot_at(at(0)), slot_at(at(120))) <= limit


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(-200, 360_000), st.integers(1, 30_000), st.integers(1, 9)),
        min_size=1, max_size=12,
    ),
    st.integers(0, 300),
)  # fmt: skip
def test_many_windows_at_once_are_the_same_as_one_by_one(
    asks: list[tuple[int, int, int]], days_later: int
) -> None:
    """Windows before the base, past the horizon and across either end included, now and after days have
    passed."""
    single, whole = PoolCalendar(NOW), PoolCalendar(NOW)
    windows = [(Window(at(0, start), at(0, start + length)), count) for start, length, count in asks]
    for window, count in windows:
        single.commit(window, count)
    starts, ends = (
        np.array([to_micros(edge(window)) for window, _ in windows])
        for edge in (lambda window: window.start, lambda window: window.end)
    )
    whole.commit_all(*slots_at(starts, ends), np.array([count for _, count in windows]))
    for now in (NOW, NOW + timedelta(days=days_later)):
        single.roll_to(now)
        whole.roll_to(now)
        assert whole.committed_max_from(now) == single.committed_max_from(now)
        base = day_at(now)
        assert (whole.committed_max_for_days(base, 1, HORIZON_DAYS)
                == single.committed_max_for_days(base, 1, HORIZON_DAYS)).all()  # fmt: skip
        for window, _ in windows:
            if window.end > single.base:
                assert whole.committed_max(window) == single.committed_max(window)
