"""Offers of EC2 Capacity Blocks: one Region's questions in turn, paced, every page read, one outcome each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ParamValidationError

from berth.aws.refusals import CALL_ERRORS, Kind, Refusal, refusal_of
from berth.aws.zones import zone_ids
from berth.facts.block_quotas import block_quota
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.planner.queries import BOUNDARY
from berth.sources.listings import Listing, is_ultraserver, listing
from berth.sources.pacing import Pacer
from berth.sources.reading import each_offer, every_page, instant, joined, money, text, whole
from berth.terms.clock import Clock
from berth.terms.text import plain
from berth.terms.ways import Target, Way
from berth.terms.window import Window

TOO_FAST_OR_NO_QUOTA = "CapacityBlockDescribeLimitExceeded"
"""AWS says this for a quota of 0 and for questions that come too fast, in the same words (field fault 49)."""
LIMIT_WAIT_S = 20.0
THROTTLE_WAIT_S = 10.0
WAITS_A_QUESTION = 3
WAITS_A_REGION = 9
_PAGE = 100
_ALL_ZONES = "AllAvailabilityZones"
_OUTCOMES = {
    Kind.QUOTA: PlaceOutcome.NO_QUOTA,
    Kind.THROTTLED: PlaceOutcome.THROTTLED,
    Kind.NOT_ALLOWED: PlaceOutcome.NOT_ALLOWED,
    Kind.CREDENTIALS: PlaceOutcome.NOT_ALLOWED,
    Kind.UNKNOWN_OPERATION: PlaceOutcome.NOT_SOLD_HERE,
}
# How the service says that a type is not sold here (seen in public; EC2 dossier 2.9).
_NOT_SOLD = "not supported for capacity blocks"


@dataclass(slots=True)
class RegionSearch:
    """Asks one Region, one question after another. For one thread.

    `answered` holds the quotas for whose types the Region ever answered a question of this run: then a
    refusal for limits means "too fast", and not "no quota". Quotas are told apart by family, since an account
    may have one for P5 and none for Trn1.
    """

    region: str
    ec2: Any
    clock: Clock
    pacer: Pacer
    answered: set[str] = field(default_factory=set)
    no_quota: dict[str, Refusal] = field(default_factory=dict)
    waits: int = 0
    names: Mapping[str, str] | None = None
    names_trouble: str = ""
    every_zone: bool = True
    notes: list[str] = field(default_factory=list)
    listed: dict[str, Listing] = field(default_factory=dict)

    @classmethod
    def at(cls, region: str, ec2: Any, clock: Clock, pacer: Pacer | None = None) -> RegionSearch:
        """A search that begins with a full bucket, or with what `pacer` says is left in it."""
        return cls(region, ec2, clock, pacer or Pacer(clock.elapsed, clock.sleep))

    def ask(self, query: Query) -> PlaceAnswer:
        """The Region's answer; nothing is raised for a Region that refuses or cannot be reached."""
        refused_before = self.no_quota.get(_quota_of(query))
        if refused_before is not None:
            return self._answer(query, (), self._refused(query, refused_before))
        found, refusal = self._found(query)
        if found and self.names is None:
            self._read_names()
        offers, unread = read_offers(found, query, self.names or {}, self.clock.now())
        if refusal is not None:
            return self._answer(query, offers, self._refused(query, refusal))
        said = joined([unread, self.names_trouble if offers else "", *self.notes])
        if offers:
            return self._answer(query, offers, (PlaceOutcome.OFFERS, said))
        return self._answer(query, (), (PlaceOutcome.FAILED, said) if unread else self._none(query, said))

    def _none(self, query: Query, said: str) -> tuple[PlaceOutcome, str]:
        """Nothing was found: none on sale now, or a type that the Region does not have at all.

        Asked only then, and once a type: the listing is no part of a search that finds something.
        """
        kind = query.instance_type
        if kind not in self.listed:
            self.listed[kind] = listing(self.ec2, self.region, kind)
        found = self.listed[kind]
        if found.absent:
            return PlaceOutcome.NOT_SOLD_HERE, joined([f"no zone here lists {kind}", said])
        return PlaceOutcome.NONE_ON_SALE, joined([said, found.trouble])

    def _found(self, query: Query) -> tuple[list[Mapping[str, Any]], Refusal | None]:
        """What the service found, waiting where it says that it is asked too fast."""
        waits = 0
        while True:
            found, refusal = self._pages(query)
            if refusal is None:
                self.answered.add(_quota_of(query))
                return found, None
            pause = _pause(refusal)
            if pause is None or not self._may_wait(query, refusal, waits):
                break
            waits += 1
            self.waits += 1
            self.pacer.drain()
            self.clock.sleep(pause)
        if refusal.code == TOO_FAST_OR_NO_QUOTA and _quota_of(query) not in self.answered:
            self.no_quota[_quota_of(query)] = refusal
        return found, refusal

    def _may_wait(self, query: Query, refusal: Refusal, waits: int) -> bool:
        """Whether to ask once more: a Region that may have no quota at all is waited for once."""
        in_doubt = refusal.code == TOO_FAST_OR_NO_QUOTA and _quota_of(query) not in self.answered
        return self.waits < WAITS_A_REGION and waits < (1 if in_doubt else WAITS_A_QUESTION)

    def _pages(self, query: Query) -> tuple[list[Mapping[str, Any]], Refusal | None]:
        found, refusal = self._read(query)
        if refusal is not None and refusal.code == "UnknownParameter" and _ALL_ZONES in refusal.message:
            self._without_every_zone()
            found, refusal = self._read(query)
        return found, refusal

    def _read(self, query: Query) -> tuple[list[Mapping[str, Any]], Refusal | None]:
        return every_page(self._call, "CapacityBlockOfferings", absent_is_empty=True, **_request(query))

    def _call(self, **request: Any) -> Mapping[str, Any]:
        self.pacer.take()
        if self.every_zone:
            try:
                return self._search(**request, **{_ALL_ZONES: True})
            except ParamValidationError as problem:
                if _ALL_ZONES not in str(problem):
                    raise
                self._without_every_zone()
        return self._search(**request)

    def _search(self, **request: Any) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self.ec2.describe_capacity_block_offerings(**request)
        return answer  # typed here once: the client is made at run time

    def _without_every_zone(self) -> None:
        """An SDK or service older than the parameter: ask without it and say so (field fault 56)."""
        if self.every_zone:
            self.every_zone = False
            self.notes.append(f"{_ALL_ZONES} is not known here: Local Zones not opted in are left out")

    def _read_names(self) -> None:
        try:
            self.names = zone_ids(self.ec2)
        except CALL_ERRORS as problem:
            self.names, self.names_trouble = {}, f"zone ids not known ({refusal_of(problem).code})"

    def _refused(self, query: Query, refusal: Refusal) -> tuple[PlaceOutcome, str]:
        if refusal.code == TOO_FAST_OR_NO_QUOTA and _quota_of(query) in self.answered:
            return PlaceOutcome.THROTTLED, plain(str(refusal), 300)
        if refusal.kind is Kind.BAD_REQUEST and _NOT_SOLD in refusal.message.lower():
            return PlaceOutcome.NOT_SOLD_HERE, plain(str(refusal), 300)
        outcome = _OUTCOMES.get(refusal.kind, PlaceOutcome.FAILED)
        if outcome is PlaceOutcome.NO_QUOTA:
            return outcome, f"{_wanted(query)}; {plain(str(refusal), 200)}"
        return outcome, plain(str(refusal), 300)

    def _answer(self, query: Query, offers: tuple[Offer, ...], said: tuple[PlaceOutcome, str]) -> PlaceAnswer:
        outcome, detail = said
        return PlaceAnswer(query.way, query.region, outcome, self.clock.now(), detail, offers, query)


def search_place(query: Query, ec2: Any, clock: Clock) -> PlaceAnswer:
    """Ask one question of one Region: for buying, which asks again before it pays."""
    return RegionSearch.at(query.region, ec2, clock).ask(query)


def _pause(refusal: Refusal) -> float | None:
    """How long to wait before the same question; None where waiting does not help."""
    if refusal.code == TOO_FAST_OR_NO_QUOTA:
        return LIMIT_WAIT_S
    return THROTTLE_WAIT_S if refusal.kind is Kind.THROTTLED else None


def _quota_of(query: Query) -> str:
    """What the account's quota for the type is known by: its code, or the type where none was published."""
    quota = block_quota(query.instance_type)
    return quota.code if quota else query.instance_type


def _wanted(query: Query) -> str:
    quota = block_quota(query.instance_type)
    if quota is None:
        return f"no quota of {query.instance_type} is known by name"
    need = "" if quota.vcpus is None else f", needs {quota.vcpus * query.count} vCPU"
    return f"quota {quota.code} ({quota.family} Capacity Blocks){need}"


def _request(query: Query) -> dict[str, Any]:
    # An UltraServer is asked for whole; its instances are not sold alone.
    word = "Ultraserver" if is_ultraserver(query.instance_type) else "Instance"
    asked: dict[str, Any] = {
        f"{word}Type": query.instance_type,
        f"{word}Count": query.count,
        "CapacityDurationHours": query.duration_hours,
        "MaxResults": _PAGE,
    }
    if query.start_after is not None:
        asked["StartDateRange"] = query.start_after
    if query.end_before is not None:
        asked["EndDateRange"] = query.end_before
    return asked


def read_offers(
    found: Sequence[Mapping[str, Any]], query: Query, names: Mapping[str, str], seen_at: datetime
) -> tuple[tuple[Offer, ...], str]:
    """The offerings as offers, and a sentence about those that could not be read ('' when all could)."""
    return each_offer(found, lambda raw: read_offer(raw, query, names, seen_at))


def read_offer(raw: Mapping[str, Any], query: Query, names: Mapping[str, str], seen_at: datetime) -> Offer:
    """One CapacityBlockOffering. Raises ValueError where a member that matters is missing or wrong."""
    offering_id = text(raw.get("CapacityBlockOfferingId"))
    asked_whole = is_ultraserver(query.instance_type)
    kind = text(raw.get("UltraserverType" if asked_whole else "InstanceType"), 64)
    count = whole(raw.get("UltraserverCount" if asked_whole else "InstanceCount"))
    if offering_id is None or kind is None or count is None or count < 1:
        raise ValueError("an offer without id, type or count")
    window = _window(raw)
    zone = text(raw.get("AvailabilityZone"), 64)
    segment = Segment(
        window=window,
        zone_id=names.get(zone) if zone else None,
        zone_name=zone,
        instance_type=kind,
        count=count,
        zone_type=text(raw.get("ZoneType"), 32),
    )
    return Offer(
        way=Way.CAPACITY_BLOCK,
        region=query.region,
        offering_id=offering_id,
        segments=(segment,),
        count=count,
        instance_type=kind,
        fee=money(raw.get("UpfrontFee"), raw.get("CurrencyCode")),
        targets=(Target.INSTANCES.value,),
        seen_at=seen_at,
        query=query,
        starts_at_once=window.start.time() != BOUNDARY,
    )


def _window(raw: Mapping[str, Any]) -> Window:
    """Start and end. Where the end is missing it follows from the start, and hours and minutes add up."""
    start, end = instant(raw.get("StartDate")), instant(raw.get("EndDate"))
    if start is None:
        raise ValueError("an offer without a start")
    if end is None:
        hours = whole(raw.get("CapacityBlockDurationHours"))
        minutes = whole(raw.get("CapacityBlockDurationMinutes"))
        if hours is None:
            raise ValueError("an offer without an end")
        end = start + timedelta(hours=hours, minutes=minutes or 0)
    return Window(start, end)


def region_lane(
    region: str,
    ec2: Callable[[], Any],
    clock: Clock,
    queries: Sequence[Query],
    pacer: Pacer | None = None,
) -> Callable[[Callable[[PlaceAnswer], None]], None]:
    """A lane that asks one Region all its questions, in the order of `queries`.

    `pacer` is what is left of the Region's bucket; None: it is full.
    """

    def lane(hand_over: Callable[[PlaceAnswer], None]) -> None:
        search = RegionSearch.at(region, ec2(), clock, pacer)
        for query in queries:
            hand_over(search.ask(query))

    return lane
