"""A reservation as AWS describes it, read so that nothing missing and nothing unknown can break it.

What the two ways call the same thing differently (`Active`, `active`) is one `Stage` here; the word itself is
kept. How an answer of either service is read is in `orders.shops`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

from berth.planner.offers import Offer, money_from_json, money_json
from berth.terms.instants import iso, parse_instant
from berth.terms.money import Money
from berth.terms.ways import Way
from berth.terms.window import Window


class Stage(StrEnum):
    """How far a reservation is, whichever way it was bought."""

    PAYING = "paying"  # bought, the payment is not through
    AHEAD = "ahead"  # paid, its window is to come
    OPEN = "open"  # what runs in it may be launched
    OVER = "over"  # its window is over
    FAILED = "failed"  # the payment did not come through, or AWS failed the plan: of no use, not paid
    LOST = "lost"  # AWS failed a block; what became of its fee is not documented
    UNKNOWN = "unknown"  # a word that this program does not know, or none


STAGES: Mapping[str, Stage] = {
    # `TrainingPlanStatus` of the model of 2017-07-24 (botocore 1.43)
    "Pending": Stage.PAYING,
    "Scheduled": Stage.AHEAD,
    "Active": Stage.OPEN,
    "Expired": Stage.OVER,
    "Failed": Stage.FAILED,
    # `CapacityReservationState` of the model of 2016-11-15, as far as blocks are seen in it; `cancelled` and
    # `unavailable` have no published meaning for a block, so they stay unknown.
    "payment-pending": Stage.PAYING,
    "scheduled": Stage.AHEAD,
    "pending": Stage.AHEAD,
    "active": Stage.OPEN,
    "expired": Stage.OVER,
    "payment-failed": Stage.FAILED,
    "failed": Stage.LOST,
    "ended (no longer reported)": Stage.OVER,
}
GONE = "ended (no longer reported)"
"""Our own word for a reservation whose window is over and that AWS has stopped showing (field fault 24)."""


@dataclass(frozen=True, slots=True)
class SeenReservation:
    """One description of a reservation. Members but name and ARN may be None: AWS left them out, so unknown.

    `name` is a training plan's name, or a block's id (`cr-...`); `arn` its ARN, or its id where AWS shows no
    ARN. `state` is AWS's word, known or not; "unknown" when the answer has none. `zones` are zone names,
    `zone_ids` zone ids; `instances_free` counts instances that nothing uses (None for a block that is not
    open: AWS shows 0 then). `fee` of a block is what its buyer wrote on it. `owner` is the account that
    bought it. Members from `platform` on are told for blocks alone.
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
    zone_ids: tuple[str, ...] = ()
    platform: str | None = None
    tenancy: str | None = None
    owner: str | None = None

    @property
    def stage(self) -> Stage:
        """How far it is."""
        return STAGES.get(self.state, Stage.UNKNOWN)

    @property
    def is_known_state(self) -> bool:
        """Whether `state` is one that this program knows."""
        return self.stage is not Stage.UNKNOWN

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
            "zone_ids": list(self.zone_ids),
            "platform": self.platform,
            "tenancy": self.tenancy,
            "owner": self.owner,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SeenReservation:
        """The reservation that `to_json` wrote, by this release or by the first."""
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
            zone_ids=tuple(value.get("zone_ids", ())),
            platform=value.get("platform"),
            tenancy=value.get("tenancy"),
            owner=value.get("owner"),
        )


def differences(seen: SeenReservation, offer: Offer) -> list[str]:
    """Sentences about what AWS shows otherwise than approved; what it does not show is said too.

    A reservation that differs is bought all the same: these are warnings, never a reason to buy again. AWS
    never shows a block's fee, nor what it is for.
    """
    said = [_differs("fee", seen.fee, offer.fee)] if offer.way is Way.TRAINING_PLAN else []
    said.append(_differs("instance type", seen.instance_type, offer.instance_type))
    said.append(_differs("instance count", seen.instances, offer.count))
    said.append(_differs("end", seen.end, offer.paid_window.end))
    if not offer.starts_at_once:
        said.append(_differs("start", seen.start, offer.paid_window.start))
    if offer.way is Way.TRAINING_PLAN:
        said.append(_target_differs(seen, offer))
    if offer.platform:
        said.append(_differs("platform", seen.platform, offer.platform))
    if not seen.is_known_state:
        said.append(f"the reservation's state is {seen.state!r}, which this program does not know")
    if seen.stage is Stage.LOST:
        said.append("AWS has failed it; whether its fee stays taken is not documented, so ask AWS")
    return [sentence for sentence in said if sentence]


def fitted(offer: Offer, seen: SeenReservation) -> Offer:
    """The offer with the window, count and zone of the reservation that another buyer bought for its order.

    Only an offer of one part can be fitted; what AWS does not show stays as the offer has it.
    """
    if len(offer.segments) != 1:
        return offer
    part = offer.segments[0]
    start, end = seen.start or part.window.start, seen.end or part.window.end
    if start >= end:
        return offer
    count = seen.instances or part.count
    part = replace(
        part,
        window=Window(start, end),
        zone_name=seen.zones[0] if seen.zones else part.zone_name,
        zone_id=seen.zone_ids[0] if seen.zone_ids else part.zone_id,
        count=count,
    )
    return replace(offer, segments=(part,), count=count)


def _target_differs(seen: SeenReservation, offer: Offer) -> str:
    if not seen.targets:
        return "AWS does not show the reservation's target"
    if offer.target not in seen.targets:
        return f"AWS shows the target {', '.join(seen.targets)}, approved was {offer.target}"
    return ""


def _differs(what: str, seen: object, approved: object) -> str:
    if seen is None:
        return f"AWS does not show the reservation's {what}"
    if seen != approved:
        return f"AWS shows the {what} {_shown(seen)}, approved was {_shown(approved)}"
    return ""


def _shown(value: object) -> str:
    return iso(value) if isinstance(value, datetime) else str(value)


# -- reading members of answers: whatever has another type than it should counts as not shown -------------
def listed(value: object) -> list[Any]:
    """A list, or nothing."""
    return list(value) if isinstance(value, list | tuple) else []


def read_tags(found: object) -> tuple[dict[str, str], bool]:
    """The tags of a list, and whether each could be read: one without key or value may be any tag."""
    entries = [tag for tag in listed(found) if isinstance(tag, Mapping)]
    whole_ones = [
        tag for tag in entries if isinstance(tag.get("Key"), str) and isinstance(tag.get("Value"), str)
    ]
    return {tag["Key"]: tag["Value"] for tag in whole_ones}, len(whole_ones) == len(listed(found))


def text(value: object) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else None


def whole(value: object) -> int | None:
    """A whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def instant(value: object) -> datetime | None:
    """An instant; botocore's are aware, a naive one is UTC."""
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def money(amount: object, currency: object) -> Money | None:
    """An amount and its currency, both texts."""
    if not isinstance(amount, str) or not isinstance(currency, str) or not currency:
        return None
    try:
        return Money(Decimal(amount), currency)
    except (InvalidOperation, ValueError):
        return None
