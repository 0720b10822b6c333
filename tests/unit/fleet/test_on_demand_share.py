"""Open-ended runs on a pool's on-demand share, and what a fleet file says about instances."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.terms.settings import SettingsError
from berth.terms.window import Window
from berth.yard.fleet.calendar import HORIZON_DAYS, PoolCalendar, slot_start
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import quota_class
from berth.yard.fleet.fleet_file import load_fleet

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
EC2 = (Path(__file__).parents[1] / "yard" / "ec2.toml").read_text("utf-8")
KEY = "use1-az1/p5.48xlarge"
HOURS = st.integers(-30, HORIZON_DAYS * 24 + 400)


@settings(deadline=None, max_examples=80)
@given(
    st.lists(st.tuples(HOURS, st.integers(1, 900), st.integers(1, 9)), max_size=8),
    st.lists(st.tuples(HOURS, st.integers(1, 9)), max_size=5),
    st.integers(0, HORIZON_DAYS * 24 + 300),
)
def test_the_highest_count_from_an_instant_on(
    windows: list[tuple[int, int, int]], opens: list[tuple[int, int]], ask: int
) -> None:
    """As a recount at every change from then on says, near, beyond the horizon and for ever."""
    calendar = PoolCalendar(NOW)
    for start, length, count in windows:
        begins = NOW + timedelta(hours=start)
        calendar.commit(Window(begins, begins + timedelta(hours=length)), count)
    for start, count in opens:
        calendar.commit_open(NOW + timedelta(hours=start), count)
    asked = NOW + timedelta(hours=ask)

    def level(at: datetime) -> int:
        held = sum(
            n
            for start, length, n in windows
            if NOW + timedelta(hours=start) <= at < NOW + timedelta(hours=start + length)
        )
        return held + sum(n for start, n in opens if NOW + timedelta(hours=start) <= at)

    starts = [NOW + timedelta(hours=start) for start, *_ in [*windows, *opens]]
    expected = max(level(at) for at in [asked, *[start for start in starts if start > asked]])
    assert calendar.committed_max_from(asked) == expected


def test_open_runs_and_windows_do_not_meet() -> None:
    """Each share has its own calendar; ending a run frees the slot that it ends in."""
    fleet = load_fleet(EC2, "ec2.toml")
    pool = fleet.pools[KEY]
    calendars = FleetCalendars(fleet, NOW)
    calendars.commit(KEY, "ec2", Window(NOW, NOW + timedelta(days=3)), 2)
    assert calendars.free_on_demand(pool, NOW) == 2
    calendars.commit_open(KEY, NOW, 2)
    assert calendars.free_on_demand(pool, NOW) == 0
    later = NOW + timedelta(minutes=17)
    calendars.release_open(KEY, later, 1)
    assert calendars.free_on_demand(pool, later) == 1
    calendars.roll_to(NOW + timedelta(days=300))
    assert calendars.free_on_demand(pool, NOW + timedelta(days=300)) == 1
    with pytest.raises(KeyError):
        calendars.on_demand("nowhere/p5.48xlarge")


def test_a_slot_begins_at_its_half_hour() -> None:
    """Down to the half hour, and a half hour is its own."""
    assert slot_start(NOW + timedelta(minutes=47, seconds=3)) == NOW + timedelta(minutes=30)
    assert slot_start(NOW) == NOW


@pytest.mark.parametrize(
    ("name", "group"),
    [("p5.48xlarge", "p"), ("p6-b200.48xlarge", "p"), ("trn1.32xlarge", "trn"), ("inf2.48xlarge", "inf")],
)
def test_classes_of_the_vcpu_quota(name: str, group: str) -> None:
    """The letters that a type begins with."""
    assert quota_class(name) == group


def test_what_a_fleet_file_says_of_instances() -> None:
    """Defaults, own values, and the bound on cleaning with the line that breaks it."""
    assert load_fleet(EC2, "ec2.toml").instances.cleaning == timedelta(minutes=10)
    own = load_fleet(EC2 + '\n[instances]\ncleaning = "5m"\nstarting = "2m"\n', "ec2.toml").instances
    assert (own.starting, own.cleaning) == (timedelta(minutes=2), timedelta(minutes=5))
    with pytest.raises(SettingsError, match=r"cleaning.*at most 30m"):
        load_fleet(EC2 + '\n[instances]\ncleaning = "31m"\n', "ec2.toml")
    with pytest.raises(SettingsError, match="is not a class of this fleet"):
        load_fleet(EC2.replace("trn = 256", "g = 256"), "ec2.toml")
