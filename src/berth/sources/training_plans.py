"""Offers of SageMaker training plans: every Region at once, every segment read, one outcome a place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from berth.aws.refusals import CALL_ERRORS, Kind, Refusal, refusal_of
from berth.aws.zones import zone_ids
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.planner.queries import BOUNDARY
from berth.sources.listings import is_ultraserver
from berth.sources.reading import each_offer, money
from berth.terms.clock import Clock
from berth.terms.money import Money
from berth.terms.text import plain
from berth.terms.ways import Way
from berth.terms.window import Window

THROTTLE_WAIT_S = 10.0
WAITS_A_QUESTION = 3
WAITS_A_REGION = 9
_OUTCOMES = {
    Kind.QUOTA: PlaceOutcome.NO_QUOTA,
    Kind.THROTTLED: PlaceOutcome.THROTTLED,
    Kind.NOT_ALLOWED: PlaceOutcome.NOT_ALLOWED,
    Kind.CREDENTIALS: PlaceOutcome.NOT_ALLOWED,
    Kind.UNKNOWN_OPERATION: PlaceOutcome.NOT_SOLD_HERE,
}
# How the service says that a type is not sold here for that target (seen in public; SageMaker dossier 2.10).
_NOT_SOLD = ("invalid instance type", "'instancetype' failed to satisfy constraint")


def search_place(query: Query, sagemaker: Any, ec2: Any, *, now: Callable[[], datetime]) -> PlaceAnswer:
    """Ask one Region. `now` is asked after the answer came: it is the offers' age."""
    try:
        found = search_offers(query, sagemaker)
    except CALL_ERRORS as problem:
        return _refused(query, refusal_of(problem), now())
    names, unnamed = _zones(ec2) if found else ({}, "")
    seen_at = now()
    if found is None:
        why = "the answer holds no list of offerings, which is not the same as an empty one"
        return PlaceAnswer(query.way, query.region, PlaceOutcome.FAILED, seen_at, why, question=query)
    offers, unread = read_offers(found, query, names, seen_at)
    detail = "; ".join(part for part in (unread, unnamed) if part)
    if offers:
        return PlaceAnswer(query.way, query.region, PlaceOutcome.OFFERS, seen_at, detail, offers, query)
    outcome = PlaceOutcome.FAILED if unread else PlaceOutcome.NONE_ON_SALE
    return PlaceAnswer(query.way, query.region, outcome, seen_at, detail, question=query)


def region_lane(
    clients: Callable[[], tuple[Any, Any]], clock: Clock, queries: Sequence[Query]
) -> Callable[[Callable[[PlaceAnswer], None]], None]:
    """A lane that asks one Region all its questions, in the order of `queries`.

    `clients` gives SageMaker's and EC2's. SageMaker publishes no bucket: where it says that several questions
    come too fast, they come slower. A single question is told at once as it is.
    """

    def lane(hand_over: Callable[[PlaceAnswer], None]) -> None:
        sagemaker, ec2 = clients()
        waits = 0
        for query in queries:
            answer = search_place(query, sagemaker, ec2, now=clock.now)
            tries = 0
            while (
                answer.outcome is PlaceOutcome.THROTTLED
                and len(queries) > 1
                and tries < WAITS_A_QUESTION
                and waits < WAITS_A_REGION
            ):
                tries, waits = tries + 1, waits + 1
                clock.sleep(THROTTLE_WAIT_S)
                answer = search_place(query, sagemaker, ec2, now=clock.now)
            hand_over(answer)

    return lane


def search_offers(query: Query, sagemaker: Any) -> Sequence[Mapping[str, Any]] | None:
    """The service's own offerings for `query`; None where the answer lacks the list (a malformed body does).

    Raises what botocore raises (CALL_ERRORS). Searching is free and unpaged.
    """
    # An UltraServer is asked for whole; its instances are not sold alone.
    word = "UltraServer" if is_ultraserver(query.instance_type) else "Instance"
    asked: dict[str, Any] = {
        f"{word}Type": query.instance_type,
        f"{word}Count": query.count,
        "DurationHours": query.duration_hours,
        "TargetResources": [query.target.value] if query.target else [],
    }
    if query.start_after is not None:
        asked["StartTimeAfter"] = query.start_after
    if query.end_before is not None:
        asked["EndTimeBefore"] = query.end_before
    found = sagemaker.search_training_plan_offerings(**asked).get("TrainingPlanOfferings")
    return found if isinstance(found, list) else None


def read_offers(
    found: Sequence[Mapping[str, Any]], query: Query, names: Mapping[str, str], seen_at: datetime
) -> tuple[tuple[Offer, ...], str]:
    """The offerings as offers, and a sentence about those that could not be read ('' when all could)."""
    return each_offer(found, lambda raw: read_offer(raw, query, names, seen_at))


def read_offer(raw: Mapping[str, Any], query: Query, names: Mapping[str, str], seen_at: datetime) -> Offer:
    """One TrainingPlanOffering. Raises KeyError or ValueError where a member that matters is missing."""
    segments = tuple(
        sorted(
            (_segment(part, names) for part in raw.get("ReservedCapacityOfferings") or ()),
            key=lambda s: s.window,
        )
    )
    if not segments:
        raise ValueError("an offer without reserved capacity")
    begins = segments[0].window.start
    return Offer(
        way=Way.TRAINING_PLAN,
        region=query.region,
        offering_id=str(raw["TrainingPlanOfferingId"]),
        segments=segments,
        count=segments[0].count,
        instance_type=segments[0].instance_type,
        fee=_fee(raw),
        targets=tuple(plain(t, 64) for t in raw.get("TargetResources") or ()),
        seen_at=seen_at,
        query=query,
        starts_at_once=begins.time() != BOUNDARY,
    )


def _segment(part: Mapping[str, Any], names: Mapping[str, str]) -> Segment:
    name = plain(part.get("AvailabilityZone") or "", 64) or None
    whole = part.get("ReservedCapacityType") == "UltraServer" and part.get("UltraServerType")
    word = "UltraServer" if whole else "Instance"
    if not part.get("StartTime") or not part.get("EndTime"):
        raise ValueError("an offer without start or end")
    return Segment(
        window=Window(part["StartTime"].astimezone(UTC), part["EndTime"].astimezone(UTC)),
        zone_id=names.get(name) if name else None,
        zone_name=name,
        instance_type=plain(part[f"{word}Type"], 64),
        count=int(part[f"{word}Count"]),
    )


def _fee(raw: Mapping[str, Any]) -> Money | None:
    """The fee, None where there is none, it is no number or no currency is named: unknown, never zero."""
    return money(raw.get("UpfrontFee"), raw.get("CurrencyCode"))


def _zones(ec2: Any) -> tuple[Mapping[str, str], str]:
    try:
        return zone_ids(ec2), ""
    except CALL_ERRORS as problem:
        return {}, f"zone ids not known ({refusal_of(problem).code})"


def _refused(query: Query, refusal: Refusal, seen_at: datetime) -> PlaceAnswer:
    outcome = _OUTCOMES.get(refusal.kind, PlaceOutcome.FAILED)
    if refusal.kind is Kind.BAD_REQUEST and any(words in refusal.message.lower() for words in _NOT_SOLD):
        outcome = PlaceOutcome.NOT_SOLD_HERE
    said = plain(str(refusal), 300)
    return PlaceAnswer(query.way, query.region, outcome, seen_at, said, question=query)
