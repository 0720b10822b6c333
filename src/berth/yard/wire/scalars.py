"""Single values and their texts: numbers, instants, blobs, and text that may travel."""

from __future__ import annotations

import base64
import binascii
import math
import re
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INT_RANGES = {"integer": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]{1,64}(?:\.[0-9]{0,64})?|\.[0-9]{1,64})(?:[eE][+-]?[0-9]{1,4})?", re.ASCII
)
# ISO 8601 with a zone. A date or time without zone could be anybody's, so it is refused.
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})",
    re.ASCII,
)
# What XML 1.0 (section 2.2) cannot carry in any spelling.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def integer_of(text: str, kind: str) -> int:
    """Read a whole number of AWS's kind `integer` (32 bit) or `long` (64 bit). Raises ValueError."""
    if not _INTEGER.fullmatch(text):
        raise ValueError("not a whole number")
    return ranged(int(text), kind)


def ranged(number: int, kind: str) -> int:
    """The number, if it fits AWS's `integer` or `long`. Raises ValueError."""
    least, most = INT_RANGES[kind]
    if not least <= number <= most:
        raise ValueError(f"not within {least} to {most}")
    return number


def float_of(text: str) -> float:
    """Read a finite decimal number. Raises ValueError."""
    if not _NUMBER.fullmatch(text):
        raise ValueError("not a number")
    return finite(float(text))


def finite(number: float) -> float:
    """The number, unless it is infinite or not a number. Raises ValueError."""
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return number


def boolean_of(text: str) -> bool:
    """Read `true` or `false`, in any case. Raises ValueError."""
    value = {"true": True, "false": False}.get(text.lower())
    if value is None:
        raise ValueError("neither true nor false")
    return value


def instant_of(text: str) -> datetime:
    """Read an ISO 8601 instant that names its zone; the answer is in UTC. Raises ValueError."""
    if not _INSTANT.fullmatch(text):
        raise ValueError("not an ISO 8601 date and time with a zone, such as 2026-12-01T11:30:00Z")
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError:
        raise ValueError("a date outside the calendar") from None


def instant_of_epoch(seconds: float) -> datetime:
    """The instant so many seconds after 1970, to the microsecond. Raises ValueError."""
    try:
        return EPOCH + timedelta(seconds=finite(seconds))
    except OverflowError:
        raise ValueError("a date outside the calendar") from None


def iso_millis(instant: datetime) -> str:
    """`2026-12-01T11:30:00.000Z`, EC2's way. Raises ValueError without a zone."""
    return _utc(instant).isoformat(timespec="milliseconds")[:-6] + "Z"


def iso_seconds(instant: datetime) -> str:
    """`2026-12-01T11:30:00Z`, STS's way: the fraction is dropped. Raises ValueError without a zone."""
    return _utc(instant).isoformat(timespec="seconds")[:-6] + "Z"


def epoch_seconds(instant: datetime) -> int | float:
    """Seconds after 1970 to the millisecond, whole where whole, as SageMaker's JSON has them."""
    since = _utc(instant) - EPOCH
    seconds = since.days * 86_400 + since.seconds
    return seconds if since.microseconds == 0 else (seconds * 1_000 + since.microseconds // 1_000) / 1_000


def _utc(instant: datetime) -> datetime:
    if instant.tzinfo is UTC:
        return instant
    if instant.tzinfo is None:
        raise ValueError("an instant without a zone")
    return instant.astimezone(UTC)


def bytes_of(text: str) -> bytes:
    """Decode base64. Raises ValueError."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not base64") from None


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def is_text(value: str) -> bool:
    """Whether the string can be encoded at all: half of a surrogate pair cannot."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
