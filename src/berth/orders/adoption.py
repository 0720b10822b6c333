"""Taking over a block that carries the order's mark and that this journal does not know.

Another journal bought it (a colleague's, or this one before it was lost), or a person marked it by hand so
that a need runs in what is owned already.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from berth.orders.desk import Desk
from berth.orders.order import Approval, OrderKey
from berth.orders.purchase import Purchase, take_over
from berth.orders.seen import SeenReservation
from berth.orders.sighting import trace_of_key
from berth.planner.offers import Offer, Query, Segment
from berth.terms.ways import Target, Way
from berth.terms.window import Window


def find_marked_block(desk: Desk, key: OrderKey, region: str, context: Mapping[str, Any]) -> Purchase | None:
    """The block with the order's mark, now an order of this journal too; None when none is to be seen.

    None too where AWS shows too little of it to make an order: then buying finds it all the same. `context`
    is kept with the order. Raises what `take_over` raises.
    """
    sighting = desk.shop.look(trace_of_key(key))
    if sighting.reservation is None or not sighting.ours:
        return None
    offer = offer_of(sighting.reservation, region, desk.clock.now())
    return None if offer is None else take_over(desk, key, Approval(offer, context=context), sighting)


def offer_of(seen: SeenReservation, region: str, now: datetime) -> Offer | None:
    """What an offer for the block would have been; None unless type, count, window and fee are known."""
    if seen.instance_type is None or seen.instances is None or seen.fee is None:
        return None
    if seen.start is None or seen.end is None or seen.start >= seen.end:
        return None
    window = Window(seen.start, seen.end)
    hours = -(-int(window.duration.total_seconds()) // 3600)
    query = Query(
        way=Way.CAPACITY_BLOCK, region=region, instance_type=seen.instance_type, count=seen.instances,
        duration_hours=hours, target=Target.INSTANCES, platform=seen.platform or "",
    )  # fmt: skip
    segment = Segment(
        window=window,
        zone_id=seen.zone_ids[0] if seen.zone_ids else None,
        zone_name=seen.zones[0] if seen.zones else None,
        instance_type=seen.instance_type,
        count=seen.instances,
    )
    return Offer(
        way=Way.CAPACITY_BLOCK, region=region, offering_id=None, segments=(segment,), count=seen.instances,
        instance_type=seen.instance_type, fee=seen.fee, targets=(Target.INSTANCES.value,), seen_at=now,
        query=query,
    )  # fmt: skip
