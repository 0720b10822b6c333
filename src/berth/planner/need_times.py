"""Reading when a need is: a fixed start, or the bounds between which its window may lie."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from berth.planner.day_words import DayWords, Meant, day_words
from berth.planner.local_dates import day_end, day_start, read_instant, read_zone
from berth.planner.need import Need
from berth.planner.need_types import At
from berth.planner.readings import Reading
from berth.terms.durations import spoken
from berth.terms.instants import EPOCH

_LAST_YEAR = 2999  # far beyond any offer, and far enough from the end of the calendar to add a duration
_NO_ZONE = 'a day needs a zone: add time_zone = "Europe/Berlin", or write an instant in UTC'
_DAYS = ", or a day like Monday, next friday 09:00, 5 March, 2027-03-05 or tomorrow"


def read_time_zone(at: At) -> ZoneInfo | None:
    """The zone in which days and local times are read; None where none is named."""
    name = at("time_zone").text("time_zone", "")
    try:
        return read_zone(name) if name else None
    except ValueError as problem:
        at("time_zone").complain("time_zone", str(problem))
        return None


@dataclass(slots=True)
class Times:
    """Reads instants and days; `zone` is where local ones are read, `now` decides what words like `Monday`
    mean and what lies in the past.

    `now` None: the clock to ask is not known yet. Then everything is checked that needs none, and what moves
    with the clock is None. `readings` are those of words so far.
    """

    at: At
    zone: ZoneInfo | None
    now: datetime | None
    readings: list[Reading] = field(default_factory=list)

    def start(self) -> datetime | None:
        """The fixed start, with its time of day; None where none is written."""
        return self._read("start", None)

    def earliest(self) -> datetime | None:
        """The earliest start: an instant, or the first one of a day."""
        return self._read("earliest_start", None)

    def latest(self, earliest: datetime | None) -> datetime | None:
        """The latest end: an instant, or the end of a day; a weekday is the first after `earliest`."""
        return self._read("latest_end", earliest)

    def _read(self, key: str, not_before: datetime | None) -> datetime | None:
        value = self.at(key).raw(key, None)
        if value is None:
            return None
        try:
            said = day_words(value)
            if said is None:
                return self._instant(key, value)
            return self._of_day(key, value, said, not_before)
        except ValueError as problem:
            self.at(key).complain(key, str(problem))
            return None

    def _instant(self, key: str, value: object) -> datetime:
        try:
            return read_instant(value, self.zone)
        except ValueError as problem:
            days = _DAYS if key != "start" and _is_no_instant(value) else ""
            raise ValueError(f"{problem}{days}") from None

    def _of_day(
        self, key: str, value: object, said: DayWords, not_before: datetime | None
    ) -> datetime | None:
        if key == "start" and said.at is None:
            raise ValueError("must be an instant with a time of day, like 2026-12-02T11:30Z or friday 09:00")
        if self.zone is None:
            raise ValueError(_NO_ZONE)
        if self.now is None and said.moves:
            return None
        now = self.now or EPOCH  # a date with its year does not ask what day it is
        meant = said.meant(self.zone, now, not_before)
        instant = _instant_of(key, meant, self.zone, now)
        if said.moves:
            self.readings.append(_reading(key, str(value), meant, instant, now))
        return instant

    def check(self, need: Need) -> None:
        """Complain of what lies in the past, or beyond the calendar, or leaves too little room."""
        for key in ("start", "earliest_start", "latest_end"):
            instant = getattr(need, key)
            if instant is not None and self.now is not None and instant < self.now:
                self.at(key).complain(key, f"{_minute(instant)} is past; it is {_minute(self.now)}")
            if instant is not None and instant.year > _LAST_YEAR:
                self.at(key).complain(key, f"{_minute(instant)} is after the year {_LAST_YEAR}")
                return
        if self.at("start").has("start") and any(
            self.at(key).has(key) for key in ("earliest_start", "latest_end")
        ):
            self.at("start").complain("start", "is fixed already: leave out earliest_start and latest_end")
            return
        self._check_room(need)

    def _check_room(self, need: Need) -> None:
        begin = need.earliest_start or self.now
        if begin is None or need.latest_end is None or (self.now is not None and need.latest_end < self.now):
            return
        if need.latest_end < begin + need.duration:
            self.at("latest_end").complain(
                "latest_end",
                f"leaves {spoken(max(need.latest_end - begin, timedelta(0)))} after the earliest start, "
                f"less than the duration of {spoken(need.duration)}",
            )


def read_end(text: str, zone: ZoneInfo | None, now: datetime) -> tuple[datetime, Reading | None]:
    """The end that `text` says, read as a need's latest end, and how words that move were read (None: none).

    Raises ValueError; a day needs a zone.
    """
    said = day_words(text)
    if said is None:
        return read_instant(text, zone), None
    if zone is None:
        raise ValueError(_NO_ZONE)
    meant = said.meant(zone, now)
    end = _instant_of("latest_end", meant, zone, now)
    return end, _reading("latest_end", text, meant, end, now) if said.moves else None


def _reading(key: str, words: str, meant: Meant, instant: datetime, now: datetime) -> Reading:
    whole = meant.at is None
    from_now = whole and instant == now
    return Reading(key, " ".join(words.split()), instant, whole, from_now, meant.other)


def _instant_of(key: str, meant: Meant, zone: ZoneInfo, now: datetime) -> datetime:
    if meant.at is not None:
        return read_instant(datetime.combine(meant.day, meant.at), zone)
    begin, end = day_start(meant.day, zone), day_end(meant.day, zone)
    if key == "latest_end":
        return end
    if end <= now:
        raise ValueError(f"{meant.day} is over in {zone.key}")
    # A day that has begun means from now on: its midnight is in the past for the service.
    return max(begin, now)


def _is_no_instant(value: object) -> bool:
    """Whether it is a text that is not even a local date and time."""
    try:
        return isinstance(value, str) and not datetime.fromisoformat(value.strip())
    except ValueError:
        return True


def _minute(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}Z"
