"""Looking for an order's reservation in AWS: by name, through every page and state, and by our mark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from berth.aws.refusals import Refusal
from berth.orders.calls import ReservationReads, asked, pages
from berth.orders.names import is_ours
from berth.orders.order import OrderKey
from berth.orders.seen import SeenReservation, seen_reservation

NOT_FOUND = "ResourceNotFound"
MOST_TAGS = 50  # the least that ListTags takes as a page size


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a look saw.

    `reservation` is the one of the order's name, None when none was seen. `ours` says whether it carries our
    mark; None when that could not be read. `complete`: every read answered in full, so that not seeing means
    not there (five minutes after a write); `trouble` says what did not.
    """

    reservation: SeenReservation | None
    ours: bool | None
    complete: bool
    trouble: str = ""


def look_by_name(reads: ReservationReads, key: OrderKey, name: str) -> Sighting:
    """One DescribeTrainingPlan, and the tags of what it finds."""
    answer = asked(lambda: reads.describe_training_plan(TrainingPlanName=name))
    if isinstance(answer, Refusal):
        absent = answer.code == NOT_FOUND
        return Sighting(None, None, absent, "" if absent else f"DescribeTrainingPlan: {answer}")
    reservation = seen_reservation(answer, name)
    if reservation is None:
        return Sighting(None, None, False, "DescribeTrainingPlan answered without an ARN")
    return _with_mark(reads, key, reservation)


def look_everywhere(reads: ReservationReads, key: OrderKey, name: str) -> Sighting:
    """By name, and where that finds nothing, through all pages of ListTrainingPlans, whatever the state."""
    by_name = look_by_name(reads, key, name)
    if by_name.reservation is not None:
        return by_name
    summaries, stopped = pages(reads.list_training_plans, "TrainingPlanSummaries", MaxResults=100)
    for summary in summaries:
        if isinstance(summary, Mapping) and summary.get("TrainingPlanName") == name:
            reservation = seen_reservation(summary, name)
            if reservation is not None:
                return _with_mark(reads, key, reservation)
    troubles = [by_name.trouble, f"ListTrainingPlans: {stopped}" if stopped else ""]
    return Sighting(None, None, by_name.complete and stopped is None, "; ".join(filter(None, troubles)))


def _with_mark(reads: ReservationReads, key: OrderKey, reservation: SeenReservation) -> Sighting:
    found, stopped = pages(reads.list_tags, "Tags", ResourceArn=reservation.arn, MaxResults=MOST_TAGS)
    tags = {str(tag.get("Key")): str(tag.get("Value")) for tag in found if isinstance(tag, Mapping)}
    if is_ours(tags, key):
        return Sighting(reservation, True, True)
    if stopped is not None:
        return Sighting(reservation, None, False, f"ListTags: {stopped}")
    return Sighting(reservation, False, True)
