"""EC2 Capacity Blocks: a block has no name, so its mark is a tag, and finding it means reading them all.

PurchaseCapacityBlock takes no client token and no name. What carries the tag `berth:order` of the order is
the order's. A block of the same kind, place and window that was made after our call and carries no order's
mark may be ours with its tags not shown: a look-alike, which a person judges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from berth.aws.refusals import Kind, Refusal
from berth.orders.block_descriptions import BlockDescription, described_block
from berth.orders.calls import asked, pages
from berth.orders.names import INTENT_TAG, ORDER_TAG, is_ours
from berth.orders.order import Order
from berth.orders.seen import text
from berth.orders.shops.shop import NOUNS, tags_of
from berth.orders.sighting import Sighting, Trace
from berth.planner.offers import Offer, PlaceAnswer, Query
from berth.planner.platforms import LINUX
from berth.terms.instants import iso
from berth.terms.ways import Way

LIST = "DescribeCapacityReservations"
PAGE = 1000  # the most that the model of 2016-11-15 takes
CLOCKS_DIFFER = timedelta(minutes=1)
"""How much later than AWS's clock ours may be: a block that was made so much before our call may be ours."""


UNSEEN = (
    "AWS keeps no block unique: what another machine with a journal of its own intends to buy for the"
    " same need, or bought in the last 5 minutes, cannot be seen from here"
)
UNSEEN_BY_A_TEAM = (
    "AWS keeps no block unique: every machine that uses this journal is kept from buying it again; what one"
    " with another journal intends, or bought in the last 5 minutes, cannot be seen from here"
)


class BlockReads(Protocol):
    """What is read about blocks: one operation of an EC2 client that cannot pay."""

    def describe_capacity_reservations(self, **request: Any) -> Mapping[str, Any]:
        """DescribeCapacityReservations, one page."""
        ...


@dataclass(frozen=True, slots=True)
class BlockShop:
    """Capacity Blocks of one Region. `ask` asks the search API."""

    reads: BlockReads
    ask: Callable[[Query], PlaceAnswer]
    service: str = "ec2"
    pays: str = "purchase_capacity_block"
    noun: str = NOUNS[Way.CAPACITY_BLOCK]
    gone: frozenset[str] = frozenset(
        {"InvalidCapacityBlockOfferingIdExpired", "InvalidCapacityBlockOfferingIdNotFound"}
    )
    taken: frozenset[str] = frozenset()
    unseen: str = UNSEEN

    def search(self, query: Query) -> PlaceAnswer:
        """DescribeCapacityBlockOfferings."""
        return self.ask(query)

    def shortest_search(self, query: Query) -> timedelta:
        """The asked duration: `EndDateRange` bounds the block's end (API reference, read 2026-11)."""
        return timedelta(hours=query.duration_hours)

    def request(self, order: Order) -> dict[str, Any]:
        """PurchaseCapacityBlock, with the mark, the intent, the fee and the need's own tags."""
        return {
            "CapacityBlockOfferingId": order.attempt.offering_id,
            "InstancePlatform": order.offer.platform or LINUX,
            "TagSpecifications": [{"ResourceType": "capacity-reservation", "Tags": tags_of(order)}],
        }

    def bought(self, answer: Mapping[str, Any]) -> str | None:
        """The reservation's ARN, or its id where there is no ARN."""
        made = answer.get("CapacityReservation")
        if not isinstance(made, Mapping):
            return None
        return text(made.get("CapacityReservationArn")) or text(made.get("CapacityReservationId"))

    def glance(self, trace: Trace) -> Sighting:
        """By its id where that is known; else the whole look, since a block has no name."""
        if trace.arn is None:
            return self.look(trace)
        block_id = id_of(trace.arn)
        found = asked(lambda: self.reads.describe_capacity_reservations(CapacityReservationIds=[block_id]))
        if isinstance(found, Refusal):
            absent = found.kind is Kind.NOT_FOUND
            return Sighting(None, None, absent, "" if absent else f"{LIST}: {found}")
        blocks = [one for one in _described(found.get("CapacityReservations")) if one.seen.name == block_id]
        if not blocks:
            return Sighting(None, None, True)
        return Sighting(blocks[0].seen, is_ours(blocks[0].tags, trace.key), True)

    def look(self, trace: Trace) -> Sighting:
        """Every page, every state, no filter: `tag:` is not documented for this call, so we compare."""
        found, stopped = pages(
            self.reads.describe_capacity_reservations, "CapacityReservations", MaxResults=PAGE
        )
        blocks = _described(found)
        ours = [one for one in blocks if is_ours(one.tags, trace.key)]
        if ours:
            return Sighting(_ours_first(ours, trace).seen, True, True, note=_note(ours, trace))
        alike = [one for one in blocks if looks_alike(one, trace)]
        if alike:
            return Sighting(alike[0].seen, False, stopped is None)
        return Sighting(None, None, stopped is None, f"{LIST}: {stopped}" if stopped else "")

    def inspect(self, trace: Trace) -> str:
        """DescribeCapacityReservations, unfiltered: its user guide's filter may not be the service's."""
        region = f" --region {trace.offer.region}" if trace.offer else ""
        return f"aws ec2 describe-capacity-reservations{region}"


def id_of(arn: str) -> str:
    """`cr-...` of a reservation's ARN; an id stays as it is."""
    return arn.rpartition("/")[2]


def looks_alike(block: BlockDescription, trace: Trace) -> bool:
    """Whether the block may be what our latest call bought, though it carries no order's mark. Pure.

    What AWS does not show rules nothing out; what it shows must be what was asked for.
    """
    if trace.offer is None or trace.sent_at is None or ORDER_TAG in block.tags:
        return False
    if block.created_at is not None and block.created_at < trace.sent_at - CLOCKS_DIFFER:
        return False
    return all(_agrees(seen, asked) for seen, asked in _pairs(block, trace.offer))


def _pairs(block: BlockDescription, offer: Offer) -> Sequence[tuple[object, object]]:
    seen, part = block.seen, offer.segments[0]
    window = offer.paid_window
    zones: tuple[tuple[object, object], ...] = ((seen.zone_ids[:1], (part.zone_id,)),)
    if part.zone_id is None or not seen.zone_ids:
        zones = ((seen.zones[:1], (part.zone_name,)),)
    # A block that starts at once gets its start from AWS at the purchase.
    starts = () if offer.starts_at_once else ((seen.start, window.start),)
    return (
        (seen.instance_type, offer.instance_type),
        (seen.instances, offer.count),
        (seen.end, window.end),
        *zones,
        *starts,
    )


def _agrees(seen: object, asked_for: object) -> bool:
    return seen in (None, (), asked_for)


def _ours_first(ours: Sequence[BlockDescription], trace: Trace) -> BlockDescription:
    """Of several that carry the order's mark: known id, then an intent of this journal, then the oldest."""
    known = id_of(trace.arn) if trace.arn else None

    def rank(one: BlockDescription) -> tuple[bool, bool, float, str]:
        made = one.created_at.timestamp() if one.created_at else float("inf")
        return (one.seen.name != known, one.tags.get(INTENT_TAG) not in trace.intents, made, one.seen.name)

    return min(ours, key=rank)


def _note(ours: Sequence[BlockDescription], trace: Trace) -> str:
    if len(ours) == 1:
        return ""
    listed = ", ".join(f"{one.seen.name} ({one.seen.state}, made {_at(one.created_at)})" for one in ours)
    return f"{len(ours)} blocks carry the mark of order {trace.key}, each of them paid for: {listed}"


def _at(made: datetime | None) -> str:
    return iso(made) if made else "at a time not shown"


def _described(found: object) -> list[BlockDescription]:
    entries = found if isinstance(found, list) else []
    blocks = (described_block(entry) for entry in entries if isinstance(entry, Mapping))
    return [block for block in blocks if block is not None]
