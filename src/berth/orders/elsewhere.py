"""What was bought elsewhere (in a console, by Terraform) and is to become an order of this journal.

Reading it, judging whether it may be taken, marking it, and the offer that it would have been. Nothing here
pays; a mark is a tag.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from berth.aws.refusals import Kind, Refusal
from berth.orders.adoption import offer_of
from berth.orders.block_descriptions import described_block
from berth.orders.calls import asked, pages
from berth.orders.names import FEE_TAG, ORDER_TAG
from berth.orders.order import Order, OrderKey, OrderState
from berth.orders.seen import SeenReservation, Stage, instant, listed, text, whole
from berth.orders.shops.shop import NOUNS
from berth.orders.shops.training_plans import MOST_TAGS, NOT_FOUND, seen_plan
from berth.planner.offers import Offer, Query, Segment
from berth.planner.owned import OWNERS
from berth.terms.instants import iso
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Target, Way
from berth.terms.window import Window

_ARN = re.compile(
    r"arn:aws[a-z-]*:(?P<service>ec2|sagemaker):(?P<region>[a-z0-9-]+):(?P<account>\d{12}):"
    r"(?P<kind>capacity-reservation|training-plan)/(?P<name>[A-Za-z0-9-]+)"
)
_PLAN_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,63}")
_BLOCK = re.compile(r"cr-[0-9a-f]{8,17}")
_NOT_TO_HAVE = frozenset({Stage.OVER, Stage.FAILED, Stage.LOST})
_ENDED = frozenset({"cancelled", "unsupported", "unavailable"})


@dataclass(frozen=True, slots=True)
class Reference:
    """What a person named: a block's `cr-...` or a training plan's name. `region` and `account` are None
    where the text does not say them."""

    way: Way
    id: str
    region: str | None = None
    account: str | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """What AWS shows of it. `tags` is None where they could not be read, and `trouble` says why. `segments`
    is empty where AWS shows too little to tell them."""

    way: Way
    region: str
    seen: SeenReservation
    tags: Mapping[str, str] | None
    segments: tuple[Segment, ...] = ()
    trouble: str = ""


# -- what was named --------------------------------------------------------------------------------------
def check_block_id(named: str) -> None:
    """Raise BerthError for a Capacity Block's own id where its reservation's belongs (field fault 70)."""
    if re.fullmatch(r"cb-[0-9a-f]+", named):
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"{named} is the Capacity Block; wanted is its reservation, whose id begins with cr-",
            f"aws ec2 describe-capacity-blocks --capacity-block-ids {named}",
        )


def reference(named: str) -> Reference:
    """`cr-...`, an ARN of a block or training plan, or a training plan's name. Raises BerthError."""
    check_block_id(named)
    found = _ARN.fullmatch(named)
    if found is not None:
        way = Way.CAPACITY_BLOCK if found["service"] == "ec2" else Way.TRAINING_PLAN
        return Reference(way, found["name"], found["region"], found["account"])
    if _BLOCK.fullmatch(named):
        return Reference(Way.CAPACITY_BLOCK, named)
    if _PLAN_NAME.fullmatch(named) and not named.startswith("cr-"):
        return Reference(Way.TRAINING_PLAN, named)
    raise BerthError(
        ExitCode.BAD_REQUEST,
        f"{named!r} names no reservation: write cr-..., a training plan's name, or an ARN of either",
        "berth ls",
    )


# -- looking at it ---------------------------------------------------------------------------------------
def look(named: Reference, region: str, client: Any) -> Held:
    """What AWS shows of it in `region`. `client` reads EC2 or SageMaker there. Raises BerthError."""
    return _plan(named, region, client) if named.way is Way.TRAINING_PLAN else _block(named, region, client)


def _block(named: Reference, region: str, ec2: Any) -> Held:
    answer = asked(lambda: ec2.describe_capacity_reservations(CapacityReservationIds=[named.id]))
    if isinstance(answer, Refusal):
        raise _not_read(named, region, answer, answer.kind is Kind.NOT_FOUND)
    rows = [one for one in listed(answer.get("CapacityReservations")) if isinstance(one, Mapping)]
    if not rows:
        raise _not_there(named, region)
    found = described_block(rows[0])
    if found is None:
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"{named.id} is an On-Demand Capacity Reservation, billed by the hour until cancelled: there is"
            " no fee and no window to adopt",
            f"berth ls --region {region}",
        )
    return Held(Way.CAPACITY_BLOCK, region, found.seen, found.tags)


def _plan(named: Reference, region: str, sagemaker: Any) -> Held:
    answer = asked(lambda: sagemaker.describe_training_plan(TrainingPlanName=named.id))
    if isinstance(answer, Refusal):
        raise _not_read(named, region, answer, answer.code == NOT_FOUND)
    seen = seen_plan(answer, named.id)
    if seen is None:
        raise BerthError(ExitCode.INCOMPLETE, f"AWS shows no ARN of the training plan {named.id}")
    rows, stopped = pages(sagemaker.list_tags, "Tags", ResourceArn=seen.arn, MaxResults=MOST_TAGS)
    tags = {str(one.get("Key")): str(one.get("Value")) for one in rows if isinstance(one, Mapping)}
    parts = tuple(_segments(answer, seen))
    if stopped is not None:
        return Held(Way.TRAINING_PLAN, region, seen, None, parts, f"its tags could not be read: {stopped}")
    return Held(Way.TRAINING_PLAN, region, seen, tags, parts)


def _segments(answer: Mapping[str, Any], seen: SeenReservation) -> list[Segment]:
    """Its reserved capacities; the whole span as one where AWS does not show them all in full."""
    found: list[Segment] = []
    for part in listed(answer.get("ReservedCapacitySummaries")):
        one = _segment(part, seen) if isinstance(part, Mapping) else None
        if one is None:
            found.clear()
            break
        found.append(one)
    if found:
        return sorted(found, key=lambda one: one.window.start)
    if seen.start is None or seen.end is None or seen.start >= seen.end or not seen.instance_type:
        return []
    zone = seen.zones[0] if seen.zones else None
    return [Segment(Window(seen.start, seen.end), None, zone, seen.instance_type, seen.instances or 0)]


def _segment(part: Mapping[str, Any], seen: SeenReservation) -> Segment | None:
    start, end = instant(part.get("StartTime")), instant(part.get("EndTime"))
    kind = text(part.get("InstanceType")) or seen.instance_type
    count = whole(part.get("TotalInstanceCount")) or seen.instances
    if start is None or end is None or start >= end or kind is None or not count:
        return None
    return Segment(Window(start, end), None, text(part.get("AvailabilityZone")), kind, count)


def _not_read(named: Reference, region: str, refusal: Refusal, absent: bool) -> BerthError:
    if absent:
        return _not_there(named, region)
    return BerthError(
        refusal.exit_code, f"{NOUNS[named.way]} {named.id} could not be read in {region}: {refusal}"
    )


def _not_there(named: Reference, region: str) -> BerthError:
    return BerthError(
        ExitCode.BAD_REQUEST,
        f"{region} shows no {NOUNS[named.way]} {named.id} of this account",
        "name its Region with --region; berth ls looks in all of them",
    )


# -- may it be taken -------------------------------------------------------------------------------------
def check(held: Held, key: OrderKey, now: datetime, own_tags: Mapping[str, str], *, whoever: bool) -> None:
    """Raise BerthError unless it is the account's, still to be had, and nobody else's.

    `own_tags` are those of the need. `whoever`: somebody said that it may be taken though another's mark is
    on it, or though its tags could not be read.
    """
    seen, noun = held.seen, NOUNS[held.way]
    owner = seen.owner or _account_of(seen.arn)
    if owner is not None and owner != key.account:
        raise BerthError(
            ExitCode.CREDENTIALS,
            f"{noun} {seen.name} belongs to account {owner}, and these keys are of {key.account}",
            "choose the right keys with --profile",
        )
    if (
        seen.stage in _NOT_TO_HAVE
        or seen.state.lower() in _ENDED
        or (seen.end is not None and now >= seen.end)
    ):
        when = f", its window ended at {iso(seen.end)}" if seen.end is not None and now >= seen.end else ""
        raise BerthError(ExitCode.BAD_REQUEST, f"{noun} {seen.name} is {seen.state}{when}: nothing to adopt")
    if not whoever:
        _check_marks(held, key, own_tags)


def _check_marks(held: Held, key: OrderKey, own_tags: Mapping[str, str]) -> None:
    take = "if it is yours to take: --take-over"
    if held.tags is None:
        raise BerthError(
            ExitCode.INCOMPLETE, f"whose {held.seen.name} is, is not known: {held.trouble}", take
        )
    mark = held.tags.get(ORDER_TAG)
    if mark not in (None, key.mark):
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"{held.seen.name} carries the mark of another order: {ORDER_TAG}={mark}",
            take,
        )
    for tag in OWNERS:
        if tag in held.tags and held.tags[tag] != own_tags.get(tag) and mark is None:
            raise BerthError(
                ExitCode.DECISION_NEEDED,
                f"{held.seen.name} is somebody's by its tag: {tag}={held.tags[tag]}",
                take,
            )


def holder_of(held: Held, orders: Sequence[Order]) -> Order | None:
    """The order of this journal that has it already; None when none has."""
    name = held.seen.arn.rpartition("/")[2]
    for order in orders:
        known = (order.reservation_arn or "").rpartition("/")[2]
        if order.state is OrderState.BOUGHT and known in {name, held.seen.name}:
            return order
    return None


def _account_of(arn: str) -> str | None:
    parts = arn.split(":")
    return parts[4] if len(parts) > 5 and parts[4].isdigit() else None


# -- making it ours --------------------------------------------------------------------------------------
def with_fee(held: Held, paid: Money | None) -> Held:
    """The same with what was paid: what AWS shows, else what the person says.

    Raises BerthError: neither is known (unknown is no zero), or the two differ.
    """
    shown = held.seen.fee
    if shown is None and paid is None:
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"AWS does not show what was paid for {held.seen.name}, and unknown is not nothing",
            "say it: --paid AMOUNT (its invoice or CloudTrail's PurchaseCapacityBlock has it)",
        )
    if shown is not None and paid is not None and shown != paid:
        raise BerthError(ExitCode.BAD_REQUEST, f"AWS shows {shown} paid for {held.seen.name}, and not {paid}")
    return replace(held, seen=replace(held.seen, fee=shown or paid))


def offer_for(held: Held, now: datetime) -> Offer:
    """The offer that it would have been. Raises BerthError (incomplete) where AWS shows too little."""
    made = offer_of(held.seen, held.region, now) if held.way is Way.CAPACITY_BLOCK else _plan_offer(held, now)
    if made is None:
        raise BerthError(
            ExitCode.INCOMPLETE,
            f"AWS does not show enough of {held.seen.name} to make an order: type, count, window or target",
            "ask again in some minutes: AWS shows writes up to 5 minutes late",
        )
    return made


def _plan_offer(held: Held, now: datetime) -> Offer | None:
    seen, parts = held.seen, held.segments
    known = [one for one in seen.targets if one in {target.value for target in Target}]
    if not parts or not known or not seen.instances or not seen.instance_type:
        return None
    hours = -(-int(sum(part.window.duration.total_seconds() for part in parts)) // 3600)
    query = Query(
        way=Way.TRAINING_PLAN, region=held.region, instance_type=seen.instance_type, count=seen.instances,
        duration_hours=hours, target=Target(known[0]),
    )  # fmt: skip
    return Offer(
        way=Way.TRAINING_PLAN, region=held.region, offering_id=None, segments=parts, count=seen.instances,
        instance_type=seen.instance_type, fee=seen.fee, targets=seen.targets, seen_at=now, query=query,
    )  # fmt: skip


def put_mark(held: Held, key: OrderKey, client: Any) -> None:
    """Tag it with the order's mark and its fee, so that every other journal sees whose it is.

    `client` may create what carries no fee. Raises BerthError; then other
    journals do not see it, and the same command again puts it.
    """
    tags = [{"Key": ORDER_TAG, "Value": key.mark}]
    if held.seen.fee is not None:
        tags.append({"Key": FEE_TAG, "Value": f"{held.seen.fee.amount:f} {held.seen.fee.currency}"})
    if held.way is Way.CAPACITY_BLOCK:
        answer = asked(lambda: client.create_tags(Resources=[held.seen.name], Tags=tags) or {})
    else:
        answer = asked(lambda: client.add_tags(ResourceArn=held.seen.arn, Tags=tags))
    if isinstance(answer, Refusal):
        raise BerthError(
            answer.exit_code,
            f"{held.seen.name} is order {key} in this journal, and could not be tagged: {answer}",
            "berth policy buy has the right; then the same command again, or --no-tag for this journal alone",
        )
