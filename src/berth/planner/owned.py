"""What the account owns already: blocks, training plans and on-demand reservations, and whether one covers a
need. What is owned costs nothing more, so it is looked at before anything is bought (field fault 10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from berth.planner.need import Need
from berth.planner.offers import money_from_json, money_json, reclaim_before_end
from berth.planner.platforms import LINUX
from berth.terms.durations import spoken
from berth.terms.instants import iso, parse_instant
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

ORDER_TAG = "berth:order"
"""The tag that Berth puts on what it buys: account/need/sequence."""
OWNERS = ("team", "owner")
"""Tags by which people usually say whose a reservation is."""
HELD = frozenset({"payment-pending", "scheduled", "pending", "active"})
"""States (folded to lower case) in which a reservation is there to be used, now or later."""


@dataclass(frozen=True, slots=True)
class Owned:
    """One reservation of the account, whoever bought it. None: the service did not say.

    `way` is capacity-block, training-plan or odcr. `id` is `cr-...`, or a training plan's name. `state` is
    AWS's word, unknown ones included, 'unknown' where there is none. `count` is what was bought; `free` what
    nothing uses now (AWS shows 0 before the start). `zones` are zone ids, or names where no id is known.
    `fee` is told for training plans alone. `tags` is None where they were not read.
    """

    way: Way
    region: str
    id: str
    arn: str | None
    state: str
    instance_type: str | None
    count: int | None
    free: int | None
    start: datetime | None
    end: datetime | None
    zones: tuple[str, ...]
    platform: str | None = None
    tenancy: str | None = None
    targets: tuple[str, ...] = ()
    fee: Money | None = None
    owner: str | None = None
    tags: tuple[tuple[str, str], ...] | None = None

    @property
    def window(self) -> Window | None:
        """From start to end; None where either is not known, or there is no end."""
        if self.start is None or self.end is None or self.end <= self.start:
            return None
        return Window(self.start, self.end)

    @property
    def is_held(self) -> bool:
        """Whether its state says that it is there, now or later. An unknown state does not."""
        return self.state.lower() in HELD

    def tag(self, key: str) -> str | None:
        """The value of a tag; None when it has none, or tags were not read."""
        return dict(self.tags or ()).get(key)

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "way": self.way.value,
            "region": self.region,
            "id": self.id,
            "arn": self.arn,
            "state": self.state,
            "instance_type": self.instance_type,
            "count": self.count,
            "free": self.free,
            "start": iso(self.start) if self.start else None,
            "end": iso(self.end) if self.end else None,
            "zones": list(self.zones),
            "platform": self.platform,
            "tenancy": self.tenancy,
            "targets": list(self.targets),
            "fee": money_json(self.fee),
            "owner": self.owner,
            "tags": None if self.tags is None else dict(self.tags),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Owned:
        """What `to_json` wrote."""
        return cls(
            way=Way(value["way"]),
            region=value["region"],
            id=value["id"],
            arn=value["arn"],
            state=value["state"],
            instance_type=value["instance_type"],
            count=value["count"],
            free=value["free"],
            start=parse_instant(value["start"]) if value["start"] else None,
            end=parse_instant(value["end"]) if value["end"] else None,
            zones=tuple(value["zones"]),
            platform=value["platform"],
            tenancy=value["tenancy"],
            targets=tuple(value["targets"]),
            fee=money_from_json(value["fee"]),
            owner=value["owner"],
            tags=None if value["tags"] is None else tuple(sorted(value["tags"].items())),
        )


@dataclass(frozen=True, slots=True)
class OwnedAnswer:
    """What one Region says that the account owns of one way. `trouble` is '' when it answered in full."""

    way: Way
    region: str
    owned: tuple[Owned, ...]
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class OwnedChoice:
    """An owned reservation beside a need.

    `against` holds each reason why it does not cover the need; empty: it does, at no new cost. `others` says
    by which tag it belongs to somebody else, '' when it does not: then it is shown and not counted.
    """

    owned: Owned
    against: tuple[str, ...]
    others: str = ""

    @property
    def covers(self) -> bool:
        """Whether the need can be run in it as it is."""
        return not self.against and not self.others

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"owned": self.owned.to_json(), "against": list(self.against), "others": self.others}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> OwnedChoice:
        """What `to_json` wrote."""
        return cls(Owned.from_json(value["owned"]), tuple(value["against"]), value["others"])


def owned_choices(answers: Sequence[OwnedAnswer], need: Need, now: datetime) -> tuple[OwnedChoice, ...]:
    """Every reservation of the need's type that is held: what covers the need first, then by start."""
    seen = {
        (o.region, o.id): o
        for answer in answers
        for o in answer.owned
        if o.is_held and o.instance_type and need.type_count(o.instance_type)
    }
    choices = [OwnedChoice(o, shortfalls(o, need, now), whose(o, need)) for o in seen.values()]
    choices.sort(
        key=lambda c: (not c.covers, bool(c.others), c.owned.start or now, c.owned.region, c.owned.id)
    )
    return tuple(choices)


def blocks_owned(answers: Sequence[OwnedAnswer]) -> int:
    """Instances of all blocks that are held in the Regions that answered; an unknown count is not guessed."""
    blocks = {
        (o.region, o.id): o.count or 0
        for answer in answers
        for o in answer.owned
        if o.way is Way.CAPACITY_BLOCK and o.is_held
    }
    return sum(blocks.values())


def whose(owned: Owned, need: Need) -> str:
    """By which tag the reservation is somebody else's; '' when no tag says so."""
    if owned.tags is None:
        return ""
    ours = dict(need.tags)
    tags = dict(owned.tags)
    order = tags.get(ORDER_TAG, "").split("/")
    if len(order) == 3 and order[1] != need.name:
        return f"bought for order {order[1]}" + ("" if order[2] == "1" else f"/{order[2]}")
    for key in (*ours, *(k for k in OWNERS if k not in ours)):
        if key in tags and tags[key] != ours.get(key):
            return f"tagged {key}={tags[key]}"
    return ""


def shortfalls(owned: Owned, need: Need, now: datetime) -> tuple[str, ...]:
    """Each reason why what is owned does not cover the need, in a sentence; empty when it does."""
    found = (
        _type(owned, need),
        _target(owned, need),
        _platform(owned, need),
        _zone(owned, need),
        _count(owned, need, now),
        _time(owned, need, now),
    )
    return tuple(sentence for sentence in found if sentence)


def places_free(owned: Owned, now: datetime) -> int | None:
    """Instances that may still be launched: all that was bought before the start, what AWS counts as free
    afterwards, and none once AWS takes them back (field fault 21). None: not known."""
    if owned.end is not None and owned.way is not Way.ODCR:
        target = owned.targets[0] if owned.targets else Target.INSTANCES.value
        if now >= owned.end - reclaim_before_end(target):
            return 0
    if owned.start is not None and now < owned.start:
        return owned.count
    return owned.free


def _type(owned: Owned, need: Need) -> str:
    if owned.instance_type and need.type_count(owned.instance_type):
        return ""
    wanted = " or ".join(t.instance_type for t in need.types)
    return f"holds {owned.instance_type or 'an unknown type'}, wanted is {wanted}"


def _target(owned: Owned, need: Need) -> str:
    if owned.way is not Way.TRAINING_PLAN or need.target.value in owned.targets:
        return ""
    return f"is for {', '.join(owned.targets) or 'no known target'}, not for {need.target.value}"


def _platform(owned: Owned, need: Need) -> str:
    if owned.way is Way.TRAINING_PLAN or (owned.platform or LINUX) == need.platform:
        return ""
    return f"is for platform {owned.platform}, wanted is {need.platform}"


def _zone(owned: Owned, need: Need) -> str:
    if need.same_zone and len(owned.zones) > 1:
        return f"lies in {' and '.join(owned.zones)}: all of it must be in one zone"
    if not need.zone_ids or any(zone in need.zone_ids for zone in owned.zones):
        return ""
    return f"is in {', '.join(owned.zones) or 'an unknown zone'}, wanted is {' or '.join(need.zone_ids)}"


def _count(owned: Owned, need: Need, now: datetime) -> str:
    free = places_free(owned, now)
    if free is None:
        return "how many of its instances are free is not known"
    of_type = need.type_count(owned.instance_type or "")
    least = of_type.count if of_type else need.count
    if free >= least:
        return ""
    word = "free" if free != owned.count else "reserved"
    return f"{least} wanted, {free} {word}"


def _time(owned: Owned, need: Need, now: datetime) -> str:
    if owned.end is None:
        return "" if owned.way is Way.ODCR else "its end is not known"
    begin = max(filter(None, (owned.start, need.start or need.earliest_start, now)))
    if need.start is not None and begin > max(need.start, now):
        return f"starts {spoken(begin - need.start)} after the fixed start"
    end = min(owned.end, need.latest_end) if need.latest_end else owned.end
    wanted = need.duration
    left = end - begin
    if left <= timedelta(0):
        return "ends before the need begins"
    return "" if left >= wanted else f"leaves {spoken(left)} of the {spoken(wanted)} wanted"
