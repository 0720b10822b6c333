"""SageMaker training plans: the plan's name derives from the order and AWS keeps it unique."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from berth.aws.refusals import Refusal
from berth.orders.calls import asked, pages
from berth.orders.names import is_ours
from berth.orders.order import Order, OrderKey
from berth.orders.seen import SeenReservation, instant, listed, money, read_tags, text, whole
from berth.orders.shops.shop import NOUNS, tags_of
from berth.orders.sighting import Sighting, Trace
from berth.planner.offers import PlaceAnswer, Query
from berth.terms.ways import Way

NOT_FOUND = "ResourceNotFound"
NAME_TAKEN = "ResourceInUse"
MOST_TAGS = 50  # the least that ListTags takes as a page size
SHORTEST_SEARCH = timedelta(hours=24)
"""`EndTimeBefore` lies at least 24 h after the start (guide, "search training plan offerings", 2026)."""


class PlanReads(Protocol):
    """What is read about training plans: three operations of a SageMaker client that cannot pay."""

    def describe_training_plan(self, *, TrainingPlanName: str) -> Mapping[str, Any]:  # noqa: N803 - AWS's word
        """DescribeTrainingPlan."""
        ...

    def list_training_plans(self, **request: Any) -> Mapping[str, Any]:
        """ListTrainingPlans, one page."""
        ...

    def list_tags(self, **request: Any) -> Mapping[str, Any]:
        """ListTags, one page."""
        ...


@dataclass(frozen=True, slots=True)
class PlanShop:
    """Training plans of one Region. `ask` asks the search API."""

    reads: PlanReads
    ask: Callable[[Query], PlaceAnswer]
    service: str = "sagemaker"
    pays: str = "create_training_plan"
    noun: str = NOUNS[Way.TRAINING_PLAN]
    gone: frozenset[str] = frozenset({NOT_FOUND})
    taken: frozenset[str] = frozenset({NAME_TAKEN})
    unseen: str = ""  # the name is the lock, for every journal

    def search(self, query: Query) -> PlaceAnswer:
        """SearchTrainingPlanOfferings."""
        return self.ask(query)

    def shortest_search(self, query: Query) -> timedelta:
        """A day."""
        return SHORTEST_SEARCH

    def request(self, order: Order) -> dict[str, Any]:
        """CreateTrainingPlan."""
        return {
            "TrainingPlanName": order.reservation_name,
            "TrainingPlanOfferingId": order.attempt.offering_id,
            "Tags": tags_of(order),
        }

    def bought(self, answer: Mapping[str, Any]) -> str | None:
        """The plan's ARN."""
        return text(answer.get("TrainingPlanArn"))

    def glance(self, trace: Trace) -> Sighting:
        """One DescribeTrainingPlan, and the tags of what it finds."""
        answer = asked(lambda: self.reads.describe_training_plan(TrainingPlanName=trace.name))
        if isinstance(answer, Refusal):
            absent = answer.code == NOT_FOUND
            return Sighting(None, None, absent, "" if absent else f"DescribeTrainingPlan: {answer}")
        reservation = seen_plan(answer, trace.name)
        if reservation is None:
            return Sighting(None, None, False, "DescribeTrainingPlan answered without an ARN")
        return self._with_mark(trace.key, reservation)

    def look(self, trace: Trace) -> Sighting:
        """By name, and where that finds nothing, through all pages and states of ListTrainingPlans."""
        by_name = self.glance(trace)
        if by_name.reservation is not None:
            return by_name
        summaries, stopped = pages(self.reads.list_training_plans, "TrainingPlanSummaries", MaxResults=100)
        for summary in summaries:
            if isinstance(summary, Mapping) and summary.get("TrainingPlanName") == trace.name:
                reservation = seen_plan(summary, trace.name)
                if reservation is not None:
                    return self._with_mark(trace.key, reservation)
        troubles = [by_name.trouble, f"ListTrainingPlans: {stopped}" if stopped else ""]
        whole_look = by_name.complete and stopped is None
        return Sighting(None, None, whole_look, "; ".join(filter(None, troubles)))

    def inspect(self, trace: Trace) -> str:
        """DescribeTrainingPlan."""
        return f"aws sagemaker describe-training-plan --training-plan-name {trace.name}"

    def _with_mark(self, key: OrderKey, reservation: SeenReservation) -> Sighting:
        found, stopped = pages(
            self.reads.list_tags, "Tags", ResourceArn=reservation.arn, MaxResults=MOST_TAGS
        )
        tags, readable = read_tags(found)
        if is_ours(tags, key):
            return Sighting(reservation, True, True)
        if stopped is not None:
            return Sighting(reservation, None, False, f"ListTags: {stopped}")
        if not readable:
            return Sighting(reservation, None, False, "ListTags: a tag without key or value")
        return Sighting(reservation, False, True)


def seen_plan(answer: Mapping[str, Any], name: str) -> SeenReservation | None:
    """Read an answer of DescribeTrainingPlan, or one summary of ListTrainingPlans; None without an ARN.

    `name` is used where the answer names none. Nothing else that is missing, of a wrong type or of an
    unknown value stops the reading.
    """
    arn = text(answer.get("TrainingPlanArn"))
    if arn is None:
        return None
    parts = [part for part in listed(answer.get("ReservedCapacitySummaries")) if isinstance(part, Mapping)]
    start, end = _span(answer, parts)
    return SeenReservation(
        name=text(answer.get("TrainingPlanName")) or name,
        arn=arn,
        state=text(answer.get("Status")) or "unknown",
        message=text(answer.get("StatusMessage")),
        fee=money(answer.get("UpfrontFee"), answer.get("CurrencyCode")),
        start=start,
        end=end,
        targets=tuple(str(target) for target in listed(answer.get("TargetResources"))),
        instance_type=next(filter(None, (text(part.get("InstanceType")) for part in parts)), None),
        zones=tuple(filter(None, (text(part.get("AvailabilityZone")) for part in parts))),
        instances=whole(answer.get("TotalInstanceCount")),
        instances_free=whole(answer.get("AvailableInstanceCount")),
    )


def _span(
    answer: Mapping[str, Any], parts: list[Mapping[str, Any]]
) -> tuple[datetime | None, datetime | None]:
    starts = [at for at in (instant(part.get("StartTime")) for part in parts) if at]
    ends = [at for at in (instant(part.get("EndTime")) for part in parts) if at]
    start = instant(answer.get("StartTime")) or min(starts, default=None)
    end = instant(answer.get("EndTime")) or max(ends, default=None)
    return start, end
