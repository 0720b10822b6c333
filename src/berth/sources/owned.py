"""What the account owns in one Region, whoever bought it: EC2's reservations, SageMaker's training plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from berth.aws.refusals import CALL_ERRORS, Kind, Refusal, refusal_of
from berth.aws.zones import zone_ids
from berth.planner.owned import Owned, OwnedAnswer
from berth.sources.reading import every_page, instant, joined, mappings, money, tags, text, whole
from berth.terms.text import plain
from berth.terms.ways import Way

BLOCK = "capacity-block"
SIZE_TAG = "aws:ec2capacityreservation:incrementalRequestedQuantity"
"""Tag in which AWS keeps what was bought: before a block starts its counts read 0."""
TYPE_TAG = "aws:ec2capacityreservation:capacityReservationType"
_PAGE = 100


def owned_reservations(ec2: Any, region: str) -> OwnedAnswer:
    """Blocks and on-demand reservations together, of every state. Raises nothing."""
    found, stopped = _reservations(ec2, region)
    return OwnedAnswer(Way.CAPACITY_BLOCK, region, tuple(found), _trouble(stopped))


def owned_plans(sagemaker: Any, region: str, ec2: Any = None) -> OwnedAnswer:
    """The training plans, of every status, with their tags. `ec2` turns zone names into ids (None: not).

    Raises nothing.
    """
    rows, stopped = every_page(sagemaker.list_training_plans, "TrainingPlanSummaries", MaxResults=_PAGE)
    names = _zone_names(ec2) if rows and ec2 is not None else {}
    found, troubles = [], [_trouble(stopped)]
    for row in rows:
        plan = read_plan(row, region, names)
        if plan is None:
            troubles.append("a training plan without a name")
            continue
        marked, trouble = _tags(sagemaker, plan.arn)
        found.append(_with_tags(plan, marked))
        troubles.append(trouble)
    return OwnedAnswer(Way.TRAINING_PLAN, region, tuple(found), joined(dict.fromkeys(troubles)))


def look_at_reservation(ec2: Any, region: str, reservation_id: str) -> Owned | Refusal:
    """One reservation by its id, or why it was not shown: NotFound is what becomes of every old one."""
    try:
        answer = ec2.describe_capacity_reservations(CapacityReservationIds=[reservation_id])
    except CALL_ERRORS as problem:
        return refusal_of(problem)
    rows = mappings(answer.get("CapacityReservations"))
    if not rows:
        # An empty list is no refusal, but it shows as little as one (field fault 39).
        return Refusal(Kind.NOT_FOUND, "empty list", "the reservation is not in the answer", False)
    return read_reservation(rows[0], region)


def look_at_plan(sagemaker: Any, region: str, name: str) -> Owned | Refusal:
    """One training plan by its name, or why it was not shown."""
    try:
        answer = sagemaker.describe_training_plan(TrainingPlanName=name)
    except CALL_ERRORS as problem:
        return refusal_of(problem)
    plan = read_plan(answer, region, {})
    if plan is None:
        return Refusal(Kind.UNCLASSIFIED, "no name", "a training plan without a name", False)
    return plan


def read_reservation(row: Mapping[str, Any], region: str) -> Owned:
    """One CapacityReservation; whatever is missing is unknown, unknown words stay as they are."""
    marks = tags(row.get("Tags"))
    told = dict(marks)
    kind = text(row.get("ReservationType")) or told.get(TYPE_TAG)
    size = told.get(SIZE_TAG, "")
    bought = int(size) if size.isascii() and size.isdigit() else None
    total = whole(row.get("TotalInstanceCount"))
    zone = text(row.get("AvailabilityZoneId"), 64) or text(row.get("AvailabilityZone"), 64)
    state = text(row.get("State")) or "unknown"
    return Owned(
        way=Way.CAPACITY_BLOCK if kind == BLOCK else Way.ODCR,
        region=region,
        id=text(row.get("CapacityReservationId")) or "unknown",
        arn=text(row.get("CapacityReservationArn"), 256),
        state=state,
        instance_type=text(row.get("InstanceType"), 64),
        # 0 is what stands there before the start: the tag knows better, and without it nothing is known.
        count=total or bought or (total if state == "active" else None),
        free=whole(row.get("AvailableInstanceCount")),
        start=instant(row.get("StartDate")),
        end=instant(row.get("EndDate")),
        zones=(zone,) if zone else (),
        platform=text(row.get("InstancePlatform")),
        tenancy=text(row.get("Tenancy"), 32),
        owner=text(row.get("OwnerId"), 32),
        tags=marks,
    )


def read_plan(row: Mapping[str, Any], region: str, names: Mapping[str, str]) -> Owned | None:
    """One training plan, from ListTrainingPlans or DescribeTrainingPlan; None without a name."""
    name = text(row.get("TrainingPlanName"), 64)
    if name is None:
        return None
    parts = mappings(row.get("ReservedCapacitySummaries"))
    starts = [at for at in (instant(part.get("StartTime")) for part in parts) if at]
    ends = [at for at in (instant(part.get("EndTime")) for part in parts) if at]
    zones = dict.fromkeys(zone for zone in (text(part.get("AvailabilityZone"), 64) for part in parts) if zone)
    fee = money(row["UpfrontFee"], row.get("CurrencyCode")) if row.get("UpfrontFee") else None
    return Owned(
        way=Way.TRAINING_PLAN,
        region=region,
        id=name,
        arn=text(row.get("TrainingPlanArn"), 256),
        state=text(row.get("Status")) or "unknown",
        instance_type=next((k for k in (text(part.get("InstanceType"), 64) for part in parts) if k), None),
        count=whole(row.get("TotalInstanceCount")),
        free=whole(row.get("AvailableInstanceCount")),
        start=instant(row.get("StartTime")) or min(starts, default=None),
        end=instant(row.get("EndTime")) or max(ends, default=None),
        zones=tuple(names.get(zone, zone) for zone in zones),
        targets=tuple(plain(t, 64) for t in row.get("TargetResources") or ()),
        fee=fee,
    )


def _reservations(ec2: Any, region: str, **request: Any) -> tuple[list[Owned], Refusal | None]:
    rows, stopped = every_page(
        ec2.describe_capacity_reservations,
        "CapacityReservations",
        absent_is_empty=True,
        MaxResults=_PAGE,
        **request,
    )
    return [read_reservation(row, region) for row in rows], stopped


def _with_tags(plan: Owned, marked: Sequence[tuple[str, str]] | None) -> Owned:
    return replace(plan, tags=None if marked is None else tuple(marked))


def _tags(sagemaker: Any, arn: str | None) -> tuple[tuple[tuple[str, str], ...] | None, str]:
    if arn is None:
        return None, "a training plan without an ARN: its tags are not known"
    rows, stopped = every_page(sagemaker.list_tags, "Tags", ResourceArn=arn, MaxResults=_PAGE)
    return (None, f"tags not read ({stopped.code})") if stopped else (tags(rows), "")


def _zone_names(ec2: Any) -> Mapping[str, str]:
    try:
        return zone_ids(ec2)
    except CALL_ERRORS:
        return {}  # names stand in for ids, and say for themselves that they are none


def _trouble(stopped: Refusal | None) -> str:
    """What was not read; an operation that the Region does not have hides nothing."""
    if stopped is None or stopped.kind is Kind.UNKNOWN_OPERATION:
        return ""
    return plain(str(stopped), 200)
