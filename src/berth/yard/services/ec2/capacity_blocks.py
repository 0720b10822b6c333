"""Capacity Blocks: search and buy. What happens to one by itself is in `block_life`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from berth.terms.instants import from_micros, to_micros
from berth.terms.window import Window
from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.faults import FaultKind
from berth.yard.fleet.pools import EC2
from berth.yard.market.block_admission import GrantedBlock, HeldBlock, admit_block, gone
from berth.yard.market.block_ids import decode_block_offering, encode_block_offering
from berth.yard.market.block_offerings import BlockOffering, search_block_offerings
from berth.yard.market.block_query import BlockQuery
from berth.yard.market.block_rules import PLATFORMS, BlockTerms
from berth.yard.market.bookings import book
from berth.yard.market.price_lists import rate_at
from berth.yard.services.arns import ec2_arn
from berth.yard.services.ec2.block_life import begin_block
from berth.yard.services.ec2.block_shapes import CAPACITY_BLOCK, aws_tags, block_shapes, reservation_shapes
from berth.yard.services.ec2.filters import refuse_dry_run
from berth.yard.services.ec2.paging import page_of
from berth.yard.services.ec2.tags import put_tags, tags_at_creation
from berth.yard.services.ec2.zone_opt_ins import opted_in
from berth.yard.services.effective_quotas import effective_quotas
from berth.yard.services.operation import Call, reads, writes
from berth.yard.store.transaction import Reading, Transaction, Value

SEARCH = "DescribeCapacityBlockOfferings"
PAGE_DEFAULT = 100


# -- search ----------------------------------------------------------------------------------------------
@reads("ec2", SEARCH)
def describe_capacity_block_offerings(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """The offerings, earliest start first. Writes nothing: the id carries the offer."""
    params = call.params
    if params.get("UltraserverType") or params.get("UltraserverCount"):
        # The text is known, the code is not.
        raise ServiceError(
            "UnauthorizedOperation",
            "This AWS Account is not authorized to call DescribeCapacityBlockOfferings API when requesting an"
            " EC2 UltraServer",
            status=403,
        )
    query = BlockQuery(
        types=_types(call),
        count=params.get("InstanceCount"),
        duration_hours=params["CapacityDurationHours"],
        start_after=params.get("StartDateRange"),
        end_before=params.get("EndDateRange"),
        every_zone=bool(params.get("AllAvailabilityZones")),
    )
    found = search_block_offerings(
        query, region=call.region, now=call.now, fleet=yard.fleet, calendars=yard.calendars,
        opted_in=opted_in(rows, call.account.account_id, yard.fleet.regions[call.region]),
        rate_factor=_rate_factor(call, yard),
        quotas=effective_quotas(yard.fleet, rows, call.account.account_id, call.region),
    )  # fmt: skip
    refuse_dry_run(call)
    shown, token = page_of(call, sorted(found, key=_page_key), _page_key, 4, PAGE_DEFAULT)
    answer: dict[str, Any] = {
        "CapacityBlockOfferings": [_offering_shape(call, yard, offering) for offering in shown]
    }
    return answer | ({"NextToken": token} if token else {})


def _types(call: Call) -> tuple[str, ...]:
    """InstanceType or InstanceTypePreferences, which are alternatives."""
    preferred = tuple(
        one["InstanceType"] for one in call.params.get("InstanceTypePreferences", ()) if "InstanceType" in one
    )
    single = call.params.get("InstanceType")
    if single and preferred:
        raise ServiceError(
            "InvalidParameterCombination",
            "The parameter InstanceType cannot be used with the parameter InstanceTypePreferences.",
        )
    return (single,) if single else tuple(dict.fromkeys(preferred))


def _page_key(offering: BlockOffering) -> tuple[Value, ...]:
    window = offering.window
    return to_micros(window.start), to_micros(window.end), offering.zone_id, offering.instance_type


def _rate_factor(call: Call, yard: Yard) -> Decimal:
    fault = yard.faults.standing(FaultKind.PRICE_CHANGE, SEARCH, call.account.account_id)
    return Decimal(fault.amount or "1.15") if fault is not None else Decimal(1)


def _offering_shape(call: Call, yard: Yard, offering: BlockOffering) -> dict[str, Any]:
    hours, minutes = offering.hours_and_minutes
    account_id = call.account.account_id
    return {
        "CapacityBlockOfferingId": encode_block_offering(
            offering.terms, numbers=yard.pool_numbers, key=yard.offering_key, account_id=account_id,
            region=call.region,
        ),
        "InstanceType": offering.instance_type,
        "AvailabilityZone": yard.zone_names(account_id, call.region).name(offering.zone_id),
        "InstanceCount": offering.terms.count,
        "StartDate": offering.window.start,
        "EndDate": offering.window.end,
        "CapacityBlockDurationHours": hours,
        "CapacityBlockDurationMinutes": minutes,
        "UpfrontFee": f"{offering.fee.amount:.2f}",
        "CurrencyCode": offering.fee.currency,
        "Tenancy": "default",
        "ZoneType": offering.zone_kind.value,
    }  # fmt: skip


# -- buy -------------------------------------------------------------------------------------------------
@writes("ec2", "PurchaseCapacityBlock")
def purchase_capacity_block(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Takes the hosts now; the fee is paid, and billed, some minutes later.

    There is no idempotency token, on AWS or here. Whether AWS sells twice on one offering id is not known; a
    rehearsal does while hosts last, which is the worst case for a client that sends again. Machines that
    exist are sold once an id.
    """
    platform = call.params["InstancePlatform"]
    if platform not in PLATFORMS:
        raise ServiceError(
            "InvalidParameterValue",
            f"The instance platform '{platform[:64]}' is not supported for Capacity Blocks. Specify one of"
            f" {', '.join(PLATFORMS)}.",
        )
    tags = tags_at_creation(call, "capacity-reservation", "capacity-block")
    granted = _admit(call, yard, tx)
    refuse_dry_run(call)
    reservation_id, block_id = f"cr-{tx.ids.hex(17)}", f"cb-{tx.ids.hex(17)}"
    arn = ec2_arn(call.region, call.account.account_id, "capacity-reservation", reservation_id)
    window, fee = granted.terms.window, granted.terms.fee
    tx.insert(
        "capacity_reservations",
        reservation_id=reservation_id, arn=arn, reservation_type=CAPACITY_BLOCK, block_id=block_id,
        account_id=call.account.account_id, region=call.region, status="payment-pending",
        instance_type=granted.instance_type, platform=platform, count=granted.terms.count,
        pool=granted.pool.key, zone_id=granted.pool.zone_id, start_us=to_micros(window.start),
        end_us=to_micros(window.end), fee_micros=fee.micros, currency=fee.currency,
        offering_id=call.params["CapacityBlockOfferingId"], created_us=tx.now_us,
    )  # fmt: skip
    book(
        tx, yard.calendars, pool=granted.pool.key, face=EC2, window=window, count=granted.terms.count,
        holder=arn,
    )  # fmt: skip
    where = {"account_id": call.account.account_id, "region": call.region}
    reserved = [*aws_tags(granted.terms.count), *tags["capacity-reservation"]]
    put_tags(tx, reservation_id, "capacity-reservation", reserved, **where)
    put_tags(tx, block_id, "capacity-block", tags["capacity-block"], **where)
    tx.event(arn, CAPACITY_BLOCK, f"bought for {fee}", to_state="payment-pending", **where)
    begin_block(tx, yard, arn)
    made = tx.all("SELECT * FROM capacity_reservations WHERE arn = ?", arn)
    return {
        "CapacityReservation": reservation_shapes(call, yard, tx, made)[0],
        "CapacityBlocks": block_shapes(call, yard, tx, made),
    }


def _admit(call: Call, yard: Yard, tx: Transaction) -> GrantedBlock:
    factor = _rate_factor(call, yard)

    def rates(pool_key: str, issued_at: datetime) -> Iterator[Decimal]:
        """What the offer costs now, and without the rehearsed price change."""
        pool = yard.fleet.pools.get(pool_key)
        if pool is None:
            return
        rate = rate_at(yard.fleet.price_lists, issued_at, pool.hardware, pool.region)
        if rate is not None:
            yield rate.usd_per_hour * factor
            yield rate.usd_per_hour

    terms = decode_block_offering(
        call.params["CapacityBlockOfferingId"], numbers=yard.pool_numbers, key=yard.offering_key,
        account_id=call.account.account_id, region=call.region, now=tx.now, rates=rates,
    )  # fmt: skip
    present: Decimal | None = None
    if isinstance(terms, BlockTerms):
        present = next(rates(terms.pool_key, terms.issued_at), None)
        if yard.faults.take(FaultKind.GONE, call.operation, call.account.account_id):
            raise gone()
        if not yard.fleet.is_rehearsal and _sold_already(call, tx):
            raise gone()
    return admit_block(
        terms, region=call.region, now=tx.now, fleet=yard.fleet, calendars=yard.calendars,
        held=held_blocks(tx, call.account.account_id), usd_per_hour=present,
        opted_in=opted_in(tx, call.account.account_id, yard.fleet.regions[call.region]),
        quotas=effective_quotas(yard.fleet, tx, call.account.account_id, call.region),
    )  # fmt: skip


def _sold_already(call: Call, tx: Transaction) -> bool:
    return (
        tx.one(
            "SELECT 1 FROM capacity_reservations WHERE offering_id = ? AND account_id = ?",
            call.params["CapacityBlockOfferingId"], call.account.account_id,
        )
        is not None
    )  # fmt: skip


def held_blocks(rows: Reading, account_id: str) -> list[HeldBlock]:
    """The account's blocks of all Regions that are being paid, scheduled or active; each with the extension
    that is being paid."""
    return [
        HeldBlock(
            Window(from_micros(row["start_us"]), from_micros(row["end_us"])),
            row["instance_type"], row["count"], row["region"],
        )
        for row in rows.all(
            "SELECT block.region, block.start_us, block.instance_type, block.count,"
            " coalesce(extension.end_us, block.end_us) AS end_us"
            " FROM capacity_reservations AS block LEFT JOIN extensions AS extension"
            " ON extension.parent_arn = block.arn AND extension.status IN ('payment-pending', 'Pending')"
            " WHERE block.account_id = ? AND block.status IN ('payment-pending', 'scheduled', 'active')",
            account_id,
        )
    ]  # fmt: skip
