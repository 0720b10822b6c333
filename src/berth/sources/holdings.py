"""Everything that the account holds in a Region: reservations, training plans, endpoints. Only read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from berth.aws.refusals import CALL_ERRORS, Kind, Refusal, refusal_of
from berth.aws.session import Door
from berth.inventory.holdings import Endpoint, Known
from berth.inventory.join import RegionAnswer
from berth.planner.owned import Owned
from berth.sources.asking import Lane, ask_all
from berth.sources.owned import look_at_plan, look_at_reservation, owned_plans, owned_reservations
from berth.sources.reading import every_page, instant, mappings, text, whole
from berth.terms.text import plain
from berth.terms.ways import Way

INTERRUPTED = "interrupted before it answered"
_PAGE = 100


def enabled_regions(ec2: Any) -> tuple[tuple[str, ...], str]:
    """The Regions that the account has enabled, in order; and why they are not known ('' when they are)."""
    try:
        answer = ec2.describe_regions(AllRegions=False)
    except CALL_ERRORS as problem:
        return (), plain(str(refusal_of(problem)), 200)
    names = (text(row.get("RegionName"), 40) for row in mappings(answer.get("Regions")))
    return tuple(sorted(name for name in names if name)), ""


def look_everywhere(
    door: Door, regions: Sequence[str], known: Sequence[Known], told: Callable[[RegionAnswer], None]
) -> tuple[RegionAnswer, ...]:
    """What every Region shows, all asked at once; `told` hears each as it comes, in the caller's thread.

    Ctrl-C keeps what is there: Regions that had not answered say so.
    """
    answers: dict[str, RegionAnswer] = {}

    def hear(answer: RegionAnswer) -> None:
        answers[answer.region] = answer
        told(answer)

    ask_all([_lane(door, region, [k for k in known if k.region == region]) for region in regions], hear)
    return tuple(answers.get(region, RegionAnswer(region, troubles=(INTERRUPTED,))) for region in regions)


def _lane(door: Door, region: str, known: Sequence[Known]) -> Lane[RegionAnswer]:
    def lane(hand_over: Callable[[RegionAnswer], None]) -> None:
        hand_over(look_in(region, door.reader("ec2", region), door.reader("sagemaker", region), known))

    return lane


def look_in(region: str, ec2: Any, sagemaker: Any, known: Sequence[Known]) -> RegionAnswer:
    """What one Region shows; each of `known` that it does not list is looked for by its own id."""
    reservations = owned_reservations(ec2, region)
    plans = owned_plans(sagemaker, region, ec2)
    endpoints, no_endpoints = _endpoints(sagemaker, region)
    listed = {owned.id for owned in (*reservations.owned, *plans.owned)}
    found, gone, troubles = _missing(region, ec2, sagemaker, [k for k in known if k.id not in listed])
    said = (reservations.trouble, plans.trouble, no_endpoints, *troubles)
    return RegionAnswer(
        region=region,
        owned=(*reservations.owned, *plans.owned, *found),
        endpoints=endpoints,
        gone=gone,
        troubles=tuple(dict.fromkeys(trouble for trouble in said if trouble)),
    )


def _missing(
    region: str, ec2: Any, sagemaker: Any, known: Sequence[Known]
) -> tuple[list[Owned], frozenset[str], list[str]]:
    """What became of what the journal knows and no list shows: a normal "not found", or a trouble."""
    found: list[Owned] = []
    gone: set[str] = set()
    troubles: list[str] = []
    for one in known:
        if one.way is Way.TRAINING_PLAN:
            answer = look_at_plan(sagemaker, region, one.id)
        else:
            answer = look_at_reservation(ec2, region, one.id)
        if isinstance(answer, Owned):
            found.append(answer)
        elif answer.kind is Kind.NOT_FOUND:
            gone.add(one.id)
        else:
            troubles.append(f"{one.id}: {plain(str(answer), 200)}")
    return found, frozenset(gone), troubles


def _endpoints(sagemaker: Any, region: str) -> tuple[tuple[Endpoint, ...], str]:
    rows, stopped = every_page(sagemaker.list_endpoints, "Endpoints", MaxResults=_PAGE)
    found = tuple(read_endpoint(_described(sagemaker, row), region) for row in rows)
    return found, _trouble(stopped)


def _described(sagemaker: Any, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The endpoint in full; what the list says of it where that cannot be had."""
    try:
        full: Mapping[str, Any] = sagemaker.describe_endpoint(EndpointName=row.get("EndpointName"))
    except CALL_ERRORS:
        return row
    return {**row, **full}


def read_endpoint(row: Mapping[str, Any], region: str) -> Endpoint:
    """One endpoint, from DescribeEndpoint or from a summary of ListEndpoints."""
    variants = mappings(row.get("ProductionVariants"))
    counts = [whole(variant.get("CurrentInstanceCount")) for variant in variants]
    arns = [_reservation(variant) for variant in variants]
    reserved = tuple(dict.fromkeys(arn for arn in arns if arn))
    return Endpoint(
        region=region,
        name=text(row.get("EndpointName"), 64) or "unknown",
        state=text(row.get("EndpointStatus"), 64) or "unknown",
        created=instant(row.get("CreationTime")),
        instances=sum(c for c in counts if c is not None) if variants and None not in counts else None,
        reservations=reserved,
        on_demand=None if not variants else None in arns,
    )


def _reservation(variant: Mapping[str, Any]) -> str | None:
    config = variant.get("CapacityReservationConfig")
    return text(config.get("MlReservationArn"), 256) if isinstance(config, Mapping) else None


def _trouble(stopped: Refusal | None) -> str:
    if stopped is None or stopped.kind is Kind.UNKNOWN_OPERATION:
        return ""
    return plain(str(stopped), 200)
