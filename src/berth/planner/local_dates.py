"""Days and times as people write them, in a named zone, turned into UTC instants.

A day begins at its first instant in its zone and ends at the first instant of the next: "until 5 March"
holds the whole of 5 March. Tools that send a local midnight as UTC ask for a start in the past, or lose the
last day (field fault 52).
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from berth.terms.instants import in_utc

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAY_MONTH = re.compile(r"(\d{1,2})\.?\s+([A-Za-z]{3,9})(?:\s+(\d{4}))?")
_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def read_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name. Raises ValueError that says how such a name looks."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"{name!r} is not a time zone; write an IANA name like Europe/Berlin or UTC"
        ) from None


def read_day(value: object, zone: ZoneInfo | None, now: datetime) -> date | None:
    """The day that `value` names: a date, `2027-03-05`, `today`, `tomorrow`, `5 March`, `5 March 2027`.

    None where it names no day (an instant, or nothing known). A day without a year is the next one, today
    included. Raises ValueError for a day that does not exist, or where `zone` is None: a day needs a zone.
    """
    if isinstance(value, datetime) or not isinstance(value, date | str):
        return None
    if isinstance(value, str) and not _looks_like_day(value):
        return None
    if zone is None:
        raise ValueError('a day needs a zone: add time_zone = "Europe/Berlin", or write an instant in UTC')
    if isinstance(value, date):
        return value
    return _day(value.strip().lower(), now.astimezone(zone).date())


def _looks_like_day(text: str) -> bool:
    bare = text.strip()
    return (
        bare.lower() in {"today", "tomorrow"}
        or _ISO_DAY.fullmatch(bare) is not None
        or _DAY_MONTH.fullmatch(bare) is not None
    )


def _day(text: str, today: date) -> date:
    if text in {"today", "tomorrow"}:
        return today if text == "today" else today + timedelta(days=1)
    spoken = _DAY_MONTH.fullmatch(text)
    if spoken is None:
        return date.fromisoformat(text)
    number, word, year = spoken.groups()
    months = [n for n, name in enumerate(_MONTHS, 1) if name.startswith(word)]
    if len(months) != 1:
        raise ValueError(f"{word!r} is not the name of a month")
    if year:
        return date(int(year), months[0], int(number))
    # 29 February may be some years away.
    for ahead in range(9):
        try:
            found = date(today.year + ahead, months[0], int(number))
        except ValueError:
            continue
        if found >= today:
            return found
    raise ValueError(f"{text!r} is not a day of any year")


def day_start(day: date, zone: ZoneInfo) -> datetime:
    """The first instant of `day` in `zone`, in UTC; right also where the clocks change at midnight.

    Raises ValueError at the ends of the calendar, outside the years 1 to 9999.
    """
    return in_utc(datetime.combine(day, time(), tzinfo=zone))


def day_end(day: date, zone: ZoneInfo) -> datetime:
    """The first instant after `day` in `zone`, in UTC. Raises ValueError as `day_start` does."""
    if day == date.max:
        raise ValueError(f"{day} is the last day that there is")
    return day_start(day + timedelta(days=1), zone)


def read_instant(value: object, zone: ZoneInfo | None) -> datetime:
    """An instant from a TOML date-time or a text; one without an offset is read in `zone`.

    Raises ValueError for no instant, for one without a zone where `zone` is None, and for a local time that
    the clock change of `zone` skips or repeats.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            value = None
    if not isinstance(value, datetime):
        raise ValueError("must be an instant like 2026-12-02T11:30Z")
    if value.tzinfo is not None:
        return in_utc(value)
    if zone is None:
        raise ValueError(
            f"{value.isoformat(sep=' ', timespec='minutes')} names no time zone; write it in UTC, like "
            f"{value.isoformat(timespec='minutes')}Z, or add time_zone"
        )
    return _local(value, zone)


def _local(naive: datetime, zone: ZoneInfo) -> datetime:
    first, second = naive.replace(tzinfo=zone, fold=0), naive.replace(tzinfo=zone, fold=1)
    if first.utcoffset() == second.utcoffset():
        return in_utc(first)
    skipped = first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != naive
    what = "does not exist" if skipped else "happens twice"
    raise ValueError(f"{naive.isoformat(sep=' ')} {what} in {zone.key} (the clocks change); write it in UTC")
