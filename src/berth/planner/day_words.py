"""Days in words: `Monday`, `next friday 09:00`, `mon 7 dec`, `tomorrow`, `5 March 2027`. What they mean is
told back with its date, since such words move with the day on which they are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from berth.planner.local_dates import read_instant

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEK = timedelta(days=7)

_TIME = re.compile(r"(.*?)(?:\s*,)?\s+(?:at\s+)?(\d{1,2}):(\d{2})")
_LEAD = re.compile(r"(?:from|until|on)\s+(.*)")
_NEAR = re.compile(r"(today|tomorrow)")
_WEEKDAY = re.compile(r"(?:(this|next)\s+)?([a-z]{3,9})")
_DATED = re.compile(r"(?:([a-z]{3,9})(?:,\s*|\s+))?(.+)")
_DAY_MONTH = re.compile(r"(\d{1,2})\.?\s+([a-z]{3,9})(?:\s+(\d{4}))?")
_MONTH_DAY = re.compile(r"([a-z]{3,9})\s+(\d{1,2})(?:(?:,\s*|\s+)(\d{4}))?")
_ISO_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})")


@dataclass(frozen=True, slots=True)
class Meant:
    """The day that words mean, and the time of day (None: the whole day).

    `other` is the day that somebody else might mean by the same words; None where nobody would.
    """

    day: date
    at: time | None = None
    other: date | None = None


@dataclass(frozen=True, slots=True)
class DayWords:
    """A day as it is said, before it is known which one it is.

    `ahead` counts days from today on (`today`, `tomorrow`); else `month` and `number` are its date, of the
    next such year where `year` is None; else it is a `weekday` (0 is Monday), the first that comes, and not
    today where `next_one`. Where a date stands beside the weekday, they must agree. `at` is the time of day,
    None for the whole day.
    """

    weekday: int | None = None
    next_one: bool = False
    ahead: int | None = None
    month: int | None = None
    number: int = 0
    year: int | None = None
    at: time | None = None

    @property
    def moves(self) -> bool:
        """Whether the day depends on when it is read."""
        return self.year is None

    def meant(self, zone: ZoneInfo, now: datetime, not_before: datetime | None = None) -> Meant:
        """The day in `zone`, read at `now`; a weekday or a date without a year is the first that is not
        before `not_before` (None: now), today counted in.

        Raises ValueError for a date that does not exist or is another weekday.
        """
        today = now.astimezone(zone).date()
        if self.ahead is not None:
            return Meant(today + timedelta(days=self.ahead), self.at)
        begin = max(now, not_before) if not_before else now
        first = begin.astimezone(zone).date()
        if self.month is not None:
            return Meant(self._dated(self.month, first), self.at)
        return self._of_weekday(zone, begin, first)

    def _dated(self, month: int, first: date) -> date:
        found = _date(self.year, month, self.number) if self.year else _next_date(first, month, self.number)
        if self.weekday is not None and found.weekday() != self.weekday:
            is_one, said = WEEKDAYS[found.weekday()].title(), WEEKDAYS[self.weekday].title()
            raise ValueError(f"{found.day} {found:%B %Y} is a {is_one}, not a {said}: write one of them")
        return found

    def _of_weekday(self, zone: ZoneInfo, begin: datetime, first: date) -> Meant:
        assert self.weekday is not None
        found = first + timedelta(days=(self.weekday - first.weekday()) % 7)
        if found == first:
            is_over = self.at is not None and read_instant(datetime.combine(found, self.at), zone) < begin
            if self.next_one or is_over:
                return Meant(found + _WEEK, self.at)
            return Meant(found, self.at, found + _WEEK)  # that very day, or the same one of the next week
        # Said on a Tuesday, "next friday" is for some the Friday of this week, for some that of the next.
        doubtful = self.next_one and _in_one_week(first, found)
        return Meant(found, self.at, found + _WEEK if doubtful else None)


def _in_one_week(one: date, other: date) -> bool:
    """Whether two days lie in one week, be it that weeks begin on Mondays or on Sundays."""
    return any((one.toordinal() - at) // 7 == (other.toordinal() - at) // 7 for at in (0, 1))


def day_words(value: object) -> DayWords | None:
    """The day that `value` says: a date, or a text; None where it says none (an instant, or nothing known).

    Raises ValueError for a day that no year has, and for a time of day that there is not.
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        return DayWords(month=value.month, number=value.day, year=value.year)
    if not isinstance(value, str):
        return None
    text = " ".join(value.lower().split())
    text = led[1] if (led := _LEAD.fullmatch(text)) else text
    timed = _TIME.fullmatch(text)
    if timed is None:
        return _day(text, None)
    if _ISO_DAY.fullmatch(timed[1]):
        return None  # `2026-12-02 11:30` is an instant
    return _day(timed[1], (int(timed[2]), int(timed[3])))


def _day(text: str, at: tuple[int, int] | None) -> DayWords | None:
    found = _near(text) or _weekday(text) or _dated(text)
    if found is None or at is None:
        return found
    if at[0] > 23 or at[1] > 59:
        raise ValueError(f"{at[0]}:{at[1]:02d} is no time of day; there are 0:00 to 23:59")
    return replace(found, at=time(*at))


def _near(text: str) -> DayWords | None:
    return DayWords(ahead=int(text == "tomorrow")) if _NEAR.fullmatch(text) else None


def _weekday(text: str) -> DayWords | None:
    said = _WEEKDAY.fullmatch(text)
    number = _named(said[2], WEEKDAYS) if said else None
    return None if said is None or number is None else DayWords(number, next_one=said[1] == "next")


def _dated(text: str) -> DayWords | None:
    found = _date_of(text)
    if found is not None:
        return found
    said = _DATED.fullmatch(text)
    weekday = _named(said[1], WEEKDAYS) if said and said[1] else None
    beside = _date_of(said[2]) if said and weekday is not None else None
    return beside and DayWords(weekday, month=beside.month, number=beside.number, year=beside.year)


def _date_of(text: str) -> DayWords | None:
    if iso := _ISO_DAY.fullmatch(text):
        year, month, number = map(int, iso.groups())
        _date(year, month, number)
        return DayWords(month=month, number=number, year=year)
    if said := _DAY_MONTH.fullmatch(text):
        digits, word, written = said.groups()
    elif said := _MONTH_DAY.fullmatch(text):
        word, digits, written = said.groups()
    else:
        return None
    named = _named(word, MONTHS)
    if named is None:
        raise ValueError(f"{word!r} is not the name of a month")
    # A leap year stands in where none is named: 29 February may be some years away.
    _date(int(written) if written else 2000, named + 1, int(digits))
    return DayWords(month=named + 1, number=int(digits), year=int(written) if written else None)


def _named(word: str, names: tuple[str, ...]) -> int | None:
    found = [number for number, name in enumerate(names) if name.startswith(word)]
    return found[0] if len(found) == 1 else None


def _date(year: int, month: int, number: int) -> date:
    try:
        return date(year, month, number)
    except ValueError:
        named = MONTHS[month - 1].title() if 1 <= month <= 12 else f"month {month}"
        raise ValueError(f"there is no {number} {named} in {year}") from None


def _next_date(first: date, month: int, number: int) -> date:
    """The first such date that is not before `first`."""
    for ahead in range(9):
        try:
            found = date(first.year + ahead, month, number)
        except ValueError:
            continue
        if found >= first:
            return found
    raise ValueError(f"there is no {number} {MONTHS[month - 1].title()} in any year")
