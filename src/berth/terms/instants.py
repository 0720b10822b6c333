"""Instants: aware UTC datetimes, and their two other forms (integer microseconds, ISO text)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(instant: datetime) -> int:
    """Microseconds since 1970-01-01T00:00Z, exact (no float on the way).

    Raises ValueError for a naive datetime: an instant without a zone is a guess.
    """
    if instant.tzinfo is None:
        raise ValueError(f"instant without a time zone: {instant.isoformat()}")
    return (instant - EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The aware UTC datetime of `micros` microseconds since 1970-01-01T00:00Z."""
    return EPOCH + timedelta(microseconds=micros)


def parse_instant(text: str, zone: tzinfo | None = None) -> datetime:
    """Read ISO 8601 (`2026-12-02T11:30Z`, `2026-12-02 11:30+01:00`) as aware UTC.

    A text without a zone is read in `zone`; with `zone` None it is refused (ValueError), since a
    naive time is the commonest way to ask for a start in the past (field fault 52). ValueError too for what
    cannot be read, and for an instant that in UTC lies outside the years 1 to 9999.
    """
    try:
        parsed = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text[:60]!r} is no instant; write it like 2026-12-02T11:30Z") from None
    if parsed.tzinfo is None:
        if zone is None:
            raise ValueError(f"{text!r} names no time zone; write it in UTC, like 2026-12-02T11:30Z")
        parsed = parsed.replace(tzinfo=zone)
    return in_utc(parsed)


def in_utc(aware: datetime) -> datetime:
    """An aware datetime in UTC. Raises ValueError where that lies outside the years 1 to 9999."""
    try:
        return aware.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{aware.isoformat()} lies outside the years 1 to 9999 in UTC") from None


def iso(instant: datetime) -> str:
    """ISO 8601 in UTC with `Z`, seconds shown, fractions only where there are some."""
    utc = instant if instant.tzinfo is UTC else instant.astimezone(UTC)
    return utc.isoformat().removesuffix("+00:00") + "Z"
