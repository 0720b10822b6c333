"""Reading when a need is: a fixed start, or the bounds between which its window may lie."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from berth.planner.local_dates import day_end, day_start, read_day, read_instant, read_zone
from berth.planner.need import Need
from berth.planner.need_types import At
from berth.terms.durations import spoken

_LAST_YEAR = 2999  # far beyond any offer, and far enough from the end of the calendar to add a duration


def read_time_zone(at: At) -> ZoneInfo | None:
    """The zone in which days and local times are read; None where none is named."""
    name = at("time_zone").text("time_zone", "")
    try:
        return read_zone(name) if name else None
    except ValueError as problem:
        at("time_zone").complain("time_zone", str(problem))
        return None


@dataclass(frozen=True, slots=True)
class Times:
    """Reads instants and days; `zone` is where local ones are read, `now` decides what lies in the past."""

    at: At
    zone: ZoneInfo | None
    now: datetime

    def instant(self, key: str, *, or_day: bool = False) -> datetime | None:
        """The instant at `key`; None where nothing is written. `or_day`: a day would have done too."""
        value = self.at(key).raw(key, None)
        if value is None:
            return None
        try:
            if isinstance(value, date) and not isinstance(value, datetime):
                raise ValueError("must be an instant with a time of day, like 2026-12-02T11:30Z")
            return read_instant(value, self.zone)
        except ValueError as problem:
            days = (
                ", or a day like 5 March, 2027-03-05 or tomorrow" if or_day and _is_no_instant(value) else ""
            )
            self.at(key).complain(key, f"{problem}{days}")
            return None

    def earliest(self) -> datetime | None:
        """The earliest start: an instant, or the first one of a day."""
        zone = self.zone
        day = self._day("earliest_start")
        if day is None or zone is None:
            return self.instant("earliest_start", or_day=True) if day is None else None
        if day_end(day, zone) <= self.now:
            self.at("earliest_start").complain("earliest_start", f"{day} is over in {zone.key}")
        # A day that has begun means from now on: its midnight is in the past for the service.
        return max(day_start(day, zone), self.now)

    def latest(self) -> datetime | None:
        """The latest end: an instant, or the end of a day."""
        zone = self.zone
        day = self._day("latest_end")
        if day is None or zone is None:
            return self.instant("latest_end", or_day=True) if day is None else None
        return day_end(day, zone)

    def _day(self, key: str) -> date | None:
        zone = self.zone
        try:
            day = read_day(self.at(key).raw(key, None), zone, self.now)
            if day is not None and zone is not None:
                day_start(day, zone), day_end(day, zone)  # neither exists at the ends of the calendar
            return day
        except ValueError as problem:
            self.at(key).complain(key, str(problem))
            # What stands in is never used: the complaint ends the reading.
            return self.now.date()

    def check(self, need: Need) -> None:
        """Complain of what lies in the past, or beyond the calendar, or leaves too little room."""
        for key in ("start", "earliest_start", "latest_end"):
            instant = getattr(need, key)
            if instant is not None and instant < self.now:
                self.at(key).complain(key, f"{_minute(instant)} is past; it is {_minute(self.now)}")
            if instant is not None and instant.year > _LAST_YEAR:
                self.at(key).complain(key, f"{_minute(instant)} is after the year {_LAST_YEAR}")
                return
        if need.start and (need.earliest_start or need.latest_end):
            self.at("start").complain("start", "is fixed already: leave out earliest_start and latest_end")
            return
        begin = need.earliest_start or self.now
        if need.latest_end and self.now <= need.latest_end < begin + need.duration:
            self.at("latest_end").complain(
                "latest_end",
                f"leaves {spoken(max(need.latest_end - begin, timedelta(0)))} after the earliest start, "
                f"less than the duration of {spoken(need.duration)}",
            )


def _is_no_instant(value: object) -> bool:
    """Whether it is a text that is not even a local date and time."""
    try:
        return isinstance(value, str) and not datetime.fromisoformat(value.strip())
    except ValueError:
        return True


def _minute(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}Z"
