"""May these instances be launched into this block now? Pure; asked before anything is called (fault 32).

Every finding is one sentence, and all of them are told at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from berth.orders.order import Order
from berth.orders.seen import SeenReservation, Stage
from berth.orders.wording import reservation_window
from berth.planner.offers import reclaim_before_end
from berth.terms.durations import spoken
from berth.terms.instants import iso
from berth.terms.ways import Target
from berth.workloads.launch_shape import Recipe, Subnet

RECLAIM = reclaim_before_end(Target.INSTANCES)


def closed(block: SeenReservation, now: datetime) -> str:
    """Why the block takes no instances at `now`; '' when it may.

    Its own start decides, and not what its state says: `scheduled` and `pending` may be shown for minutes
    while launches already work (EC2 guide, "view Capacity Blocks", 2026). A state that nobody knows is tried.
    """
    if block.stage in {Stage.OVER, Stage.FAILED, Stage.LOST}:
        return f"{block.name} is {block.state}"
    if block.start is not None and now < block.start:
        return f"{block.name} starts in {spoken(block.start - now)}, at {iso(block.start)}"
    if block.end is None:
        return f"{block.name}: its end is not shown, so whether AWS is about to take it back is not known"
    last = block.end - RECLAIM
    if now >= block.end:
        return f"{block.name} is over since {iso(block.end)}"
    if now >= last:
        return f"too late in this block: AWS takes the instances of {block.name} back from {iso(last)} on"
    return ""


def reclaimed_from(order: Order) -> datetime:
    """From when AWS takes back what was bought, by the window that the journal knows."""
    return reservation_window(order, None)[1] - RECLAIM


def not_shown(order: Order, now: datetime) -> str:
    """The same for the order's own block where AWS does not show it: from the journal (fault 39)."""
    start, end = reservation_window(order, None)
    if now < start:
        return f"the Capacity Block of order {order.key} starts in {spoken(start - now)}, at {iso(start)}"
    if now >= end - RECLAIM:
        return f"the Capacity Block of order {order.key} is over, or AWS is taking it back (end {iso(end)})"
    return f"AWS does not show the Capacity Block of order {order.key}, so nothing is launched into it"


_NO_IMAGE = (
    "no image is named, and no launch template that has one: --image, --template, or the need's [launch]"
)


def misfits(
    block: SeenReservation,
    recipe: Recipe,
    subnet: Subnet | None,
    *,
    instance_type: str,
    account: str,
) -> list[str]:
    """Every reason why the recipe cannot run in the block: account, type, platform, zone, tenancy.

    What AWS does not show rules nothing out: EC2 itself refuses what does not fit.
    """
    found = [
        _account(block, account),
        _type(block, instance_type),
        _platform(block, recipe),
        _zone(block, subnet),
        _tenancy(block, recipe),
        "" if recipe.image or recipe.template else _NO_IMAGE,
    ]
    return [sentence for sentence in found if sentence]


def too_many(wanted: int, blocks: Sequence[SeenReservation]) -> str:
    """Why so many cannot fit at all, however free the blocks are; '' when they may."""
    sizes = [block.instances for block in blocks]
    if any(size is None for size in sizes):
        return ""
    total = sum(size or 0 for size in sizes)
    return f"{wanted} wanted, {total} reserved" if wanted > total else ""


def _account(block: SeenReservation, account: str) -> str:
    if block.owner in (None, account):
        return ""
    return f"{block.name} belongs to account {block.owner}, these credentials are of {account}"


def _type(block: SeenReservation, instance_type: str) -> str:
    if block.instance_type in (None, instance_type):
        return ""
    return f"{block.name} holds {block.instance_type}, wanted is {instance_type}"


def _platform(block: SeenReservation, recipe: Recipe) -> str:
    if block.platform is None or recipe.image_platform in (None, block.platform):
        return ""
    return (
        f"the image {recipe.image} is for {recipe.image_platform}, {block.name} was bought for"
        f" {block.platform}"
    )


def _zone(block: SeenReservation, subnet: Subnet | None) -> str:
    if subnet is None or subnet.zone_id is None or not block.zone_ids:
        return ""
    if subnet.zone_id == block.zone_ids[0]:
        return ""
    return f"subnet {subnet.id} is in {subnet.zone_id}, {block.name} in {block.zone_ids[0]}"


def _tenancy(block: SeenReservation, recipe: Recipe) -> str:
    asked = recipe.template.tenancy if recipe.template else None
    if asked is None or block.tenancy in (None, asked):
        return ""
    return f"the launch template asks for tenancy {asked}, {block.name} has {block.tenancy}"
