"""Capacity Blocks put into a rehearsal ready made, for tests: any state, any window, past ones too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from berth.terms.instants import to_micros
from berth.terms.money import Money
from berth.terms.window import Window
from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.fleet.fleet import pools_for
from berth.yard.fleet.pools import EC2, Pool
from berth.yard.lifecycle.moves import CAPACITY_BLOCK
from berth.yard.market.block_rules import COUNT_MAX, PLATFORMS
from berth.yard.market.bookings import book
from berth.yard.services.arns import ec2_arn
from berth.yard.services.ec2.block_life import arm_block_window, begin_block, bill_block, forget_later
from berth.yard.services.ec2.block_shapes import aws_tags
from berth.yard.services.ec2.blocks import reclaim_at
from berth.yard.services.ec2.tags import check_tags, put_tags
from berth.yard.store.transaction import Row, Transaction

# In these states hosts are promised; in the others none are.
_LIVE = frozenset({"payment-pending", "scheduled", "active"})
_UNPAID = frozenset({"payment-pending", "payment-failed", "failed"})


@dataclass(frozen=True, slots=True)
class BlockSeed:
    """A block as a test wants it. `state` is one of EC2's; `fee` is billed unless the block was never paid.

    `zone_id` None = the first zone with room. `tags` go on the Capacity Reservation.
    """

    account: str
    region: str
    instance_type: str
    count: int
    platform: str
    window: Window
    fee: Money
    state: str
    zone_id: str | None
    tags: Mapping[str, str]


def seed_block(tx: Transaction, yard: Yard, seed: BlockSeed) -> dict[str, str]:
    """Put the block in; its ids and ARN. Raises ValueError when the fleet has no room or the values make no
    sense."""
    _check(tx, yard, seed)
    pool = _pool(yard, seed)
    ids = {
        "capacity_reservation_id": f"cr-{tx.ids.hex(17)}",
        "capacity_block_id": f"cb-{tx.ids.hex(17)}",
    }
    arn = ec2_arn(seed.region, seed.account, "capacity-reservation", ids["capacity_reservation_id"])
    tx.insert(
        "capacity_reservations",
        reservation_id=ids["capacity_reservation_id"], arn=arn, reservation_type="capacity-block",
        block_id=ids["capacity_block_id"], account_id=seed.account, region=seed.region, status=seed.state,
        instance_type=seed.instance_type, platform=seed.platform, count=seed.count, pool=pool.key,
        zone_id=pool.zone_id, start_us=to_micros(seed.window.start), end_us=to_micros(seed.window.end),
        fee_micros=seed.fee.micros, currency=seed.fee.currency, offering_id="cb-seeded",
        created_us=tx.now_us,
    )  # fmt: skip
    if seed.state in _LIVE:
        book(tx, yard.calendars, pool=pool.key, face=EC2, window=seed.window, count=seed.count, holder=arn)
    tags = [*aws_tags(seed.count), *({"Key": key, "Value": value} for key, value in seed.tags.items())]
    put_tags(
        tx, ids["capacity_reservation_id"], "capacity-reservation", tags,
        account_id=seed.account, region=seed.region,
    )  # fmt: skip
    tx.event(
        arn, CAPACITY_BLOCK.kind, "seeded",
        account_id=seed.account, region=seed.region, to_state=seed.state,
    )  # fmt: skip
    _arm(tx, yard, seed, arn)
    return {**ids, "arn": arn}


def _check(tx: Transaction, yard: Yard, seed: BlockSeed) -> None:
    """A state must go with the window, or the timers would ask for moves that the table lacks."""
    if seed.state not in CAPACITY_BLOCK.moves:
        raise ValueError(f"no state {seed.state!r}; there are {', '.join(CAPACITY_BLOCK.moves)}")
    if not 1 <= seed.count <= COUNT_MAX:
        raise ValueError(f"count must be from 1 to {COUNT_MAX}")
    if seed.platform not in PLATFORMS:
        raise ValueError(f"no platform {seed.platform!r}; there are {', '.join(PLATFORMS)}")
    if seed.fee.amount < 0:
        raise ValueError(f"a fee is not negative: {seed.fee}")
    try:
        check_tags([{"Key": key, "Value": value} for key, value in seed.tags.items()])
    except ServiceError as refused:
        raise ValueError(refused.message) from None
    begun, over = seed.window.start <= tx.now, seed.window.end <= tx.now
    fits = {
        "payment-pending": seed.window.start > tx.now + yard.fleet.payment_delay,
        "scheduled": not begun,
        "active": begun and not over,
        "expired": over,
    }
    if not fits.get(seed.state, True):
        raise ValueError(
            f"a block cannot be {seed.state} with the window {seed.window.start} to {seed.window.end}"
        )


def _pool(yard: Yard, seed: BlockSeed) -> Pool:
    for pool in pools_for(yard.fleet, seed.region, face=EC2, type=seed.instance_type):
        if seed.zone_id not in (None, pool.zone_id):
            continue
        if seed.state not in _LIVE or yard.calendars.fits(pool, EC2, seed.window, seed.count):
            return pool
    where = f"{seed.region}, zone {seed.zone_id}" if seed.zone_id else seed.region
    raise ValueError(f"no room for {seed.count} x {seed.instance_type} in {where} in that window")


def _arm(tx: Transaction, yard: Yard, seed: BlockSeed, arn: str) -> None:
    row: Row | None = tx.one("SELECT * FROM capacity_reservations WHERE arn = ?", arn)
    assert row is not None
    if seed.state == "payment-pending":
        begin_block(tx, yard, arn)
    elif seed.state in _LIVE:
        arm_block_window(tx, yard, row)
        if reclaim_at(yard, row) <= tx.now:
            tx.run("UPDATE capacity_reservations SET reclaimed = 1 WHERE arn = ?", arn)
    elif seed.state != "unavailable":
        forget_later(tx, yard, arn)
    if seed.state not in _UNPAID:
        bill_block(tx, row, f"Capacity Block {row['reservation_id']}: seeded")
