"""Days and times in a named zone, turned into UTC instants.

A day begins at its first instant in its zone and ends at the first instant of the next: "until 5 March"
holds the whole of 5 March. Tools that send a local midnight as UTC ask for a start in the past, or lose the
last day (field fault 52).
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from berth.terms.instants import in_utc


def read_zone(name: str) -> ZoneInfo:
    """The zone of an IANA name. Raises ValueError that says how such a name looks."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"{name!r} is not a time zone; write an IANA name like Europe/Berlin or UTC"
        ) from None


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
