"""How words for a day were read, to be told with the date: `"from Monday" = Mon 7 Dec 00:00 New York`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from berth.terms.instants import iso, parse_instant

_LEADS = {"earliest_start": "from", "latest_end": "until"}


@dataclass(frozen=True, slots=True)
class Reading:
    """What was made of the words at `key` of a need.

    `instant` is what they were read as; `whole_day` says that they named a day, whose first instant it is or,
    for a latest end, the first one after it. `from_now`: the day had begun, so it is the present. `other` is
    the day that somebody else might mean by the words; None where nobody would.
    """

    key: str
    words: str
    instant: datetime
    whole_day: bool = False
    from_now: bool = False
    other: date | None = None

    def text(self, zone: ZoneInfo, year: int) -> str:
        """The reading in a sentence without its full stop; `year` is the one that goes without saying."""
        lead = _LEADS.get(self.key, "")
        words = self.words if self.words.lower().startswith(f"{lead} ") else f"{lead} {self.words}".strip()
        return f'"{words}" = {self._when(zone, year)} {_city(zone)}{self._doubt(zone, year)}'

    def _doubt(self, zone: ZoneInfo, year: int) -> str:
        if self.other is None:
            return ""
        at = "" if self.whole_day else f" {self.instant.astimezone(zone):%H:%M}"
        return f"; if {_day(self.other, year)} is meant, write {self.other}{at}"

    def _when(self, zone: ZoneInfo, year: int) -> str:
        local = self.instant.astimezone(zone)
        if self.whole_day and self.key == "latest_end":
            last = (self.instant - timedelta(seconds=1)).astimezone(zone)
            return f"to the end of {_day(last.date(), year)},"
        if self.from_now:
            return f"from now on, {_day(local.date(), year)},"
        return f"{_day(local.date(), year)} {local:%H:%M}"

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "key": self.key,
            "words": self.words,
            "instant": iso(self.instant),
            "whole_day": self.whole_day,
            "from_now": self.from_now,
            "other": self.other.isoformat() if self.other else None,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Reading:
        """The reading that `to_json` wrote."""
        other = date.fromisoformat(value["other"]) if value["other"] else None
        return cls(
            value["key"],
            value["words"],
            parse_instant(value["instant"]),
            bool(value["whole_day"]),
            bool(value["from_now"]),
            other,
        )


def _day(day: date, year: int) -> str:
    return f"{day:%a} {day.day} {day:%b}" + (f" {day.year}" if day.year != year else "")


def _city(zone: ZoneInfo) -> str:
    return zone.key.rpartition("/")[2].replace("_", " ")
