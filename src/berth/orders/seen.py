"""A training plan as AWS describes it, read so that nothing missing and nothing unknown can break it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from berth.planner.offers import Offer, money_from_json, money_json
from berth.terms.instants import iso, parse_instant
from berth.terms.money import Money

KNOWN_STATES = frozenset({"Pending", "Active", "Scheduled", "Expired", "Failed"})
"""`TrainingPlanStatus` of the model of 2017-07-24 (botocore 1.43); later ones are kept as they come."""


@dataclass(frozen=True, slots=True)
class SeenReservation:
    """One description of a reservation. Members but name and ARN may be None: AWS left them out, so unknown.

    `state` is AWS's word, known or not; "unknown" when the answer has none. `zones` are zone names.
    `instances_free` counts instances that nothing uses.
    """

    name: str
    arn: str
    state: str
    message: str | None
    fee: Money | None
    start: datetime | None
    end: datetime | None
    targets: tuple[str, ...]
    instance_type: str | None
    zones: tuple[str, ...]
    instances: int | None
    instances_free: int | None

    @property
    def is_known_state(self) -> bool:
        """Whether `state` is one that this program knows."""
        return self.state in KNOWN_STATES

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "name": self.name,
            "arn": self.arn,
            "state": self.state,
            "message": self.message,
            "fee": money_json(self.fee),
            "start": None if self.start is None else iso(self.start),
            "end": None if self.end is None else iso(self.end),
            "targets": list(self.targets),
            "instance_type": self.instance_type,
            "zones": list(self.zones),
            "instances": self.instances,
            "instances_free": self.instances_free,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SeenReservation:
        """The reservation that `to_json` wrote."""
        return cls(
            name=value["name"],
            arn=value["arn"],
            state=value["state"],
            message=value["message"],
            fee=money_from_json(value["fee"]),
            start=None if value["start"] is None else parse_instant(value["start"]),
            end=None if value["end"] is None else parse_instant(value["end"]),
            targets=tuple(value["targets"]),
            instance_type=value["instance_type"],
            zones=tuple(value["zones"]),
            instances=value["instances"],
            instances_free=value["instances_free"],
        )


def seen_reservation(answer: Mapping[str, Any], name: str) -> SeenReservation | None:
    """Read an answer of DescribeTrainingPlan, or one summary of ListTrainingPlans; None without an ARN.

    `name` is used where the answer names none. Nothing else that is missing, of a wrong type or of an
    unknown value stops the reading.
    """
    arn = answer.get("TrainingPlanArn")
    if not isinstance(arn, str) or not arn:
        return None
    parts = [part for part in _list(answer.get("ReservedCapacitySummaries")) if isinstance(part, Mapping)]
    start, end = _span(answer, parts)
    return SeenReservation(
        name=_text(answer.get("TrainingPlanName")) or name,
        arn=arn,
        state=_text(answer.get("Status")) or "unknown",
        message=_text(answer.get("StatusMessage")),
        fee=_fee(answer.get("UpfrontFee"), answer.get("CurrencyCode")),
        start=start,
        end=end,
        targets=tuple(str(target) for target in _list(answer.get("TargetResources"))),
        instance_type=next(filter(None, (_text(part.get("InstanceType")) for part in parts)), None),
        zones=tuple(filter(None, (_text(part.get("AvailabilityZone")) for part in parts))),
        instances=_count(answer.get("TotalInstanceCount")),
        instances_free=_count(answer.get("AvailableInstanceCount")),
    )


def differences(seen: SeenReservation, offer: Offer) -> list[str]:
    """Sentences about what AWS shows otherwise than approved; what it does not show is said too.

    A reservation that differs is bought all the same: these are warnings, never a reason to buy again.
    """
    said = [_differs("fee", seen.fee, offer.fee)]
    said.append(_differs("instance type", seen.instance_type, offer.instance_type))
    said.append(_differs("instance count", seen.instances, offer.count))
    said.append(_differs("end", seen.end, offer.paid_window.end))
    if not offer.starts_at_once:
        said.append(_differs("start", seen.start, offer.paid_window.start))
    if not seen.targets:
        said.append("AWS does not show the reservation's target")
    elif offer.target not in seen.targets:
        said.append(f"AWS shows the target {', '.join(seen.targets)}, approved was {offer.target}")
    if not seen.is_known_state:
        said.append(f"the reservation's state is {seen.state!r}, which this program does not know")
    return [sentence for sentence in said if sentence]


def _differs(what: str, seen: object, approved: object) -> str:
    if seen is None:
        return f"AWS does not show the reservation's {what}"
    if seen != approved:
        return f"AWS shows the {what} {_shown(seen)}, approved was {_shown(approved)}"
    return ""


def _shown(value: object) -> str:
    return iso(value) if isinstance(value, datetime) else str(value)


def _span(
    answer: Mapping[str, Any], parts: list[Mapping[str, Any]]
) -> tuple[datetime | None, datetime | None]:
    starts = [at for at in (_instant(part.get("StartTime")) for part in parts) if at]
    ends = [at for at in (_instant(part.get("EndTime")) for part in parts) if at]
    start = _instant(answer.get("StartTime")) or min(starts, default=None)
    end = _instant(answer.get("EndTime")) or max(ends, default=None)
    return start, end


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _instant(value: object) -> datetime | None:
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _fee(amount: object, currency: object) -> Money | None:
    if not isinstance(amount, str) or not isinstance(currency, str) or not currency:
        return None
    try:
        return Money(Decimal(amount), currency)
    except (InvalidOperation, ValueError):
        return None
