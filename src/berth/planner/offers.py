"""Offers: what can be had now, the query that found it, and what each place answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from berth.terms.instants import iso, parse_instant
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

_HOUR = timedelta(hours=1)
# SageMaker takes instances back before each block ends: 60 minutes for HyperPod, 30 for the rest
# (training-plan-utilization pages of the SageMaker guide, read 2026-11).
_RECLAIM_HYPERPOD = timedelta(minutes=60)
_RECLAIM = timedelta(minutes=30)


def reclaim_before_end(target: str) -> timedelta:
    """How long before the end of each segment AWS takes the instances back."""
    return _RECLAIM_HYPERPOD if target == Target.HYPERPOD_CLUSTER else _RECLAIM


def hours_of(span: timedelta) -> Decimal:
    """A span in hours, exact to the microsecond."""
    return Decimal(span // timedelta(microseconds=1)) / Decimal(_HOUR // timedelta(microseconds=1))


@dataclass(frozen=True, slots=True)
class Query:
    """One question to a search API, such that it can be asked again.

    `duration_hours` are whole hours. `start_after` and `end_before` bound the window; None leaves the bound
    out. `target` is None where the way knows no target. `platform` is what a Capacity Block would be bought
    for; a search does not ask it, and '' is for ways that know none.
    """

    way: Way
    region: str
    instance_type: str
    count: int
    duration_hours: int
    target: Target | None
    start_after: datetime | None = None
    end_before: datetime | None = None
    platform: str = ""

    def narrowed_to(self, window: Window) -> Query:
        """The same question, asked only for offers inside `window`.

        One second of room on either side: whether AWS counts the bounds in is not documented.
        """
        room = timedelta(seconds=1)
        return replace(self, start_after=window.start - room, end_before=window.end + room)

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "way": self.way.value,
            "region": self.region,
            "instance_type": self.instance_type,
            "count": self.count,
            "duration_hours": self.duration_hours,
            "target": self.target.value if self.target else None,
            "start_after": _iso(self.start_after),
            "end_before": _iso(self.end_before),
            "platform": self.platform,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Query:
        """The query that `to_json` wrote. Raises KeyError or ValueError for anything else."""
        return cls(
            way=Way(value["way"]),
            region=value["region"],
            instance_type=value["instance_type"],
            count=int(value["count"]),
            duration_hours=int(value["duration_hours"]),
            target=Target(value["target"]) if value["target"] else None,
            start_after=_instant(value["start_after"]),
            end_before=_instant(value["end_before"]),
            platform=value.get("platform", ""),  # absent from documents of the first release
        )


@dataclass(frozen=True, slots=True)
class Segment:
    """One continuous part of an offer. `zone_id` is None where the zone's name could not be translated.

    `zone_type` is EC2's word (`availability-zone`, `local-zone`), None where none was told.
    """

    window: Window
    zone_id: str | None
    zone_name: str | None
    instance_type: str
    count: int
    zone_type: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "start": iso(self.window.start),
            "end": iso(self.window.end),
            "zone_id": self.zone_id,
            "zone_name": self.zone_name,
            "instance_type": self.instance_type,
            "count": self.count,
            "zone_type": self.zone_type,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Segment:
        """The segment that `to_json` wrote."""
        return cls(
            Window(parse_instant(value["start"]), parse_instant(value["end"])),
            value["zone_id"],
            value["zone_name"],
            value["instance_type"],
            int(value["count"]),
            value.get("zone_type"),
        )


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that can be had now.

    `segments` holds one to five parts in order of start; all of them are read (field fault 53). `fee` is
    the price of the whole offer as the service named it, None where it named none or nothing that is a
    number: unknown, never free. `targets` are the service's own words, unknown ones included. `offering_id`
    is None for ways that have no offer to buy. `starts_at_once` says that the start is not one that was
    published ahead, but "as soon as possible", so a later search shows a later start. The query that found it
    holds the platform that a Capacity Block is bought for.
    """

    way: Way
    region: str
    offering_id: str | None
    segments: tuple[Segment, ...]
    count: int
    instance_type: str
    fee: Money | None
    targets: tuple[str, ...]
    seen_at: datetime
    query: Query
    starts_at_once: bool = False

    def __post_init__(self) -> None:
        if not self.segments:
            raise ValueError("an offer has at least one segment")

    @property
    def target(self) -> str:
        """The target that was asked for, if the offer serves it; else the first that it does serve."""
        asked = self.query.target
        if asked is not None and asked.value in self.targets:
            return asked.value
        return self.targets[0] if self.targets else ""

    @property
    def platform(self) -> str:
        """The platform that it would be bought for; '' where the way knows none."""
        return self.query.platform

    @property
    def paid_window(self) -> Window:
        """From the start of the first segment to the end of the last; gaps included."""
        return Window(self.segments[0].window.start, max(s.window.end for s in self.segments))

    @property
    def paid_time(self) -> timedelta:
        """Time paid for: the sum of the segments, gaps left out."""
        return sum((s.window.duration for s in self.segments), timedelta())

    @property
    def paid_hours(self) -> Decimal:
        """`paid_time` in hours."""
        return hours_of(self.paid_time)

    @property
    def usable(self) -> tuple[Window, ...]:
        """What is left of each segment when AWS has taken the instances back before its end."""
        early = reclaim_before_end(self.target)
        left = (s.window.shortened(early) for s in self.segments)
        return tuple(w for w in left if w is not None)

    @property
    def usable_time(self) -> timedelta:
        """The sum of the usable windows."""
        return sum((w.duration for w in self.usable), timedelta())

    @property
    def gaps(self) -> tuple[Window, ...]:
        """The times between segments when nothing is held."""
        pairs = zip(self.segments, self.segments[1:], strict=False)
        return tuple(Window(a.window.end, b.window.start) for a, b in pairs if a.window.end < b.window.start)

    @property
    def zones(self) -> tuple[str, ...]:
        """Zone ids (or names, where no id is known) of the segments, each once, in order."""
        named = (s.zone_id or s.zone_name or "zone unknown" for s in self.segments)
        return tuple(dict.fromkeys(named))

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON; money as text, so that no reader makes a float of it."""
        return {
            "way": self.way.value,
            "region": self.region,
            "offering_id": self.offering_id,
            "segments": [s.to_json() for s in self.segments],
            "count": self.count,
            "instance_type": self.instance_type,
            "fee": money_json(self.fee),
            "targets": list(self.targets),
            "seen_at": iso(self.seen_at),
            "starts_at_once": self.starts_at_once,
            "query": self.query.to_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Offer:
        """The offer that `to_json` wrote. Raises KeyError or ValueError for anything else."""
        return cls(
            way=Way(value["way"]),
            region=value["region"],
            offering_id=value["offering_id"],
            segments=tuple(Segment.from_json(s) for s in value["segments"]),
            count=int(value["count"]),
            instance_type=value["instance_type"],
            fee=money_from_json(value["fee"]),
            targets=tuple(value["targets"]),
            seen_at=parse_instant(value["seen_at"]),
            query=Query.from_json(value["query"]),
            starts_at_once=bool(value["starts_at_once"]),
        )


class PlaceOutcome(StrEnum):
    """What a place answered. Only NONE_ON_SALE means that there is nothing now."""

    OFFERS = "offers"
    NONE_ON_SALE = "none-on-sale"
    NOT_SOLD_HERE = "not-sold-here"
    NOT_ALLOWED = "not-allowed"
    NO_QUOTA = "no-quota"
    THROTTLED = "throttled"
    FAILED = "failed"
    NOT_ASKED = "not-asked"


@dataclass(frozen=True, slots=True)
class PlaceAnswer:
    """One place's answer to one way's question. `detail` is empty or one sentence; `seen_at` when it came.

    `question` is what was asked, None where nothing could be; offers may be there without a complete answer.
    """

    way: Way
    region: str
    outcome: PlaceOutcome
    seen_at: datetime
    detail: str = ""
    offers: tuple[Offer, ...] = ()
    question: Query | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the place said all that it has: a throttled, failed or refused question did not."""
        return self.outcome in {
            PlaceOutcome.OFFERS,
            PlaceOutcome.NONE_ON_SALE,
            PlaceOutcome.NOT_SOLD_HERE,
        }

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "way": self.way.value,
            "region": self.region,
            "outcome": self.outcome.value,
            "seen_at": iso(self.seen_at),
            "detail": self.detail,
            "offers": [o.to_json() for o in self.offers],
            "question": self.question.to_json() if self.question else None,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PlaceAnswer:
        """The answer that `to_json` wrote."""
        return cls(
            Way(value["way"]),
            value["region"],
            PlaceOutcome(value["outcome"]),
            parse_instant(value["seen_at"]),
            value["detail"],
            tuple(Offer.from_json(o) for o in value["offers"]),
            Query.from_json(value["question"]) if value.get("question") else None,
        )


def money_json(money: Money | None) -> dict[str, str] | None:
    """Money as `{"amount": "228.77", "currency": "USD"}`; None stays None (unknown)."""
    return None if money is None else {"amount": f"{money.amount:f}", "currency": money.currency}


def money_from_json(value: Mapping[str, str] | None) -> Money | None:
    """The money that `money_json` wrote."""
    return None if value is None else Money(Decimal(value["amount"]), value["currency"])


def _iso(instant: datetime | None) -> str | None:
    return None if instant is None else iso(instant.astimezone(UTC))


def _instant(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)
