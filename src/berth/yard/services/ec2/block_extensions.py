"""Extensions of Capacity Blocks: search, buy, history, and what happens to one by itself.

payment-pending --payment--> payment-succeeded   the block's end moves
        `------not paid----> payment-failed      the block ends when it would have
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from berth.terms.instants import from_micros
from berth.terms.money import Money
from berth.terms.window import Window
from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.faults import FaultKind
from berth.yard.fleet.pools import EC2
from berth.yard.lifecycle.moves import BLOCK_EXTENSION
from berth.yard.market.block_admission import MALFORMED, NOT_FOUND, HeldBlock, check_family_quota, gone
from berth.yard.market.block_ids import MalformedOffering
from berth.yard.market.extension_ids import (
    BlockSaid,
    block_issue_minute,
    block_terms,
    decode_block_extension,
    encode_block_extension,
)
from berth.yard.market.extension_rules import (
    EXTENSION_HOURS,
    HOURS_MAX,
    Extended,
    ExtensionTerms,
    bad_duration,
    on_sale,
    too_old,
    why_not_now,
)
from berth.yard.market.offering_ids import UnknownOffering
from berth.yard.market.price_lists import rate_at
from berth.yard.market.window_rules import issue_minute
from berth.yard.services.ec2.block_life import arm_block_end
from berth.yard.services.ec2.blocks import block_state, check_reservation_id, find_block
from berth.yard.services.ec2.capacity_blocks import held_blocks
from berth.yard.services.ec2.filters import Facet, check_filters, one, passes, refuse_dry_run
from berth.yard.services.ec2.paging import check_page, page, page_of
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.effective_quotas import effective_quotas
from berth.yard.services.extensions import (
    Kind,
    extension_of,
    fail_extension,
    pay_extension,
    take_extension,
    unpaid_extension,
)
from berth.yard.services.lag import horizon_us, status_seen
from berth.yard.services.operation import Call, reads, writes
from berth.yard.store.transaction import Reading, Row, Transaction, Value

SEARCH = "DescribeCapacityBlockExtensionOfferings"
BUY = "PurchaseCapacityBlockExtension"
KIND = Kind(BLOCK_EXTENSION, "payment-pending", BUY, "block-extension-payment")
EXTENDABLE = ("scheduled", "active")


# -- search ----------------------------------------------------------------------------------------------
@reads("ec2", SEARCH)
def describe_extension_offerings(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """The one extension of that length, if hosts are free. Writes nothing: the id carries the offer."""
    row = _extendable(call, rows)
    hours = call.params["CapacityBlockExtensionDurationHours"]
    if hours not in EXTENSION_HOURS:
        raise bad_duration(hours, "InvalidParameterValue")
    _check_total(row, hours)
    refuse_dry_run(call)
    offered = _offered(call, yard, row, hours // 24)
    found = [] if offered is None else [_offering_shape(call, yard, row, *offered)]
    shown, token = page_of(call, found, lambda shape: (shape["CapacityBlockExtensionOfferingId"],), 1)
    return {"CapacityBlockExtensionOfferings": list(shown)} | ({"NextToken": token} if token else {})


def _extendable(call: Call, rows: Reading) -> Row:
    """The named block, if AWS would extend it now.

    Raises InvalidCapacityReservationId.* and InvalidCapacityReservationState; AWS's code for the latter is
    not known (docs/reference/unconfirmed.md).
    """
    row = find_block(call, rows, call.params["CapacityReservationId"])
    state = block_state(call, rows, row)
    why = None if state in EXTENDABLE else f"it is {state}"
    why = why or why_not_now(
        from_micros(row["end_us"]), call.now, unpaid_extension(rows, row["arn"]) is not None
    )
    if why is not None:
        raise ServiceError(
            "InvalidCapacityReservationState",
            f"The Capacity Block '{row['reservation_id']}' cannot be extended: {why}.",
        )
    return row


def _check_total(row: Row, hours: int) -> None:
    """AWS: up to 182 days "total". Taken as block and extensions together, the stricter reading."""
    whole = from_micros(row["end_us"]) + timedelta(hours=hours) - from_micros(row["start_us"])
    if whole > timedelta(hours=HOURS_MAX):
        raise ServiceError(
            "InvalidParameterValue",
            "The extension duration is not valid: with extensions a Capacity Block lasts at most 182 days.",
        )


def _extended(yard: Yard, row: Row) -> Extended | None:
    """The block as the market sees it; None where the fleet file no longer sells from its pool."""
    pool = yard.fleet.pools.get(row["pool"])
    if pool is None or EC2 not in pool.faces:
        return None
    return Extended(pool, EC2, row["count"], Window(from_micros(row["start_us"]), from_micros(row["end_us"])))


def _said(call: Call, row: Row) -> BlockSaid:
    return BlockSaid(
        call.account.account_id, call.region, row["reservation_id"], row["count"], from_micros(row["end_us"])
    )


def _rates(call: Call, yard: Yard, row: Row, issued_at: datetime) -> Iterator[Decimal]:
    """What an instance hour costs in an extension issued then: as things are now, and without the rehearsed
    price change."""
    extended = _extended(yard, row)
    if extended is None:
        return
    rate = rate_at(yard.fleet.price_lists, issued_at, extended.pool.hardware, extended.pool.region)
    if rate is None:
        return
    fault = yard.faults.standing(FaultKind.PRICE_CHANGE, SEARCH, call.account.account_id)
    yield rate.usd_per_hour * (Decimal(fault.amount or "1.15") if fault is not None else Decimal(1))
    yield rate.usd_per_hour


def _offered(call: Call, yard: Yard, row: Row, days: int) -> tuple[ExtensionTerms, Decimal] | None:
    issued_at = issue_minute(call.now)
    rate = next(_rates(call, yard, row, issued_at), None)
    extended = _extended(yard, row)
    if rate is None or extended is None:
        return None
    terms = block_terms(_said(call, row), issued_at, days, rate)
    return (terms, rate) if on_sale(extended, terms.window, call.now, yard.fleet, yard.calendars) else None


def _offering_shape(call: Call, yard: Yard, row: Row, terms: ExtensionTerms, rate: Decimal) -> Shape:
    return {
        "CapacityBlockExtensionOfferingId": encode_block_extension(
            _said(call, row), terms, rate, key=yard.offering_key
        ),
        "InstanceType": row["instance_type"],
        "InstanceCount": row["count"],
        **_where(call, yard, row),
        "StartDate": from_micros(row["start_us"]),
        "CapacityBlockExtensionStartDate": terms.window.start,
        "CapacityBlockExtensionEndDate": terms.window.end,
        "CapacityBlockExtensionDurationHours": terms.days * 24,
        "UpfrontFee": f"{terms.fee.amount:.2f}",
        "CurrencyCode": terms.fee.currency,
        "Tenancy": "default",
    }


def _where(call: Call, yard: Yard, row: Row) -> Shape:
    zone = yard.fleet.zones.get(row["zone_id"])
    return {
        "AvailabilityZone": yard.zone_names(call.account.account_id, call.region).name(row["zone_id"]),
        "AvailabilityZoneId": row["zone_id"],
        **({"ZoneType": zone.kind.value} if zone is not None else {}),
    }


# -- buy -------------------------------------------------------------------------------------------------
@writes("ec2", BUY)
def purchase_capacity_block_extension(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Takes the hosts now; the fee is paid, and billed, some minutes later, and the end moves then.

    There is no idempotency token and no tag, on AWS or here. A second call is refused while the first is
    being paid, and afterwards the offering is not found, since the end has moved.
    """
    row = _extendable(call, tx)
    terms = _admit(call, yard, tx, row)
    refuse_dry_run(call)
    extended = _extended(yard, row)
    assert extended is not None
    made = take_extension(
        tx, yard, KIND, row, name=row["reservation_id"], extended=extended, terms=terms,
        offering_id=call.params["CapacityBlockExtensionOfferingId"],
    )  # fmt: skip
    return {"CapacityBlockExtensions": [_extension_shape(call, yard, tx, made)]}


def _admit(call: Call, yard: Yard, tx: Transaction, row: Row) -> ExtensionTerms:
    """What the id offers, if it may be sold: form, age, price, length, quota, capacity, in this order."""
    offering_id = call.params["CapacityBlockExtensionOfferingId"]
    issued_at = block_issue_minute(offering_id, tx.now, key=yard.offering_key)
    rates = list(_rates(call, yard, row, issued_at)) if issued_at is not None else []
    terms = decode_block_extension(
        offering_id, _said(call, row), key=yard.offering_key, now=tx.now, rates=rates
    )
    if isinstance(terms, MalformedOffering):
        raise ServiceError(
            MALFORMED, "The Capacity Block extension offering ID is not valid: its form is wrong."
        )
    if isinstance(terms, UnknownOffering):
        raise ServiceError(
            NOT_FOUND,
            f"The Capacity Block extension offering '{offering_id}' does not exist for"
            f" '{row['reservation_id']}' as it is now.",
        )
    if yard.faults.take(FaultKind.GONE, call.operation, call.account.account_id):
        raise gone()
    if too_old(terms, tx.now, yard.fleet) or terms != block_terms(
        _said(call, row), terms.issued_at, terms.days, rates[0]
    ):
        raise gone()
    _check_total(row, terms.days * 24)
    account_id = call.account.account_id
    check_family_quota(
        HeldBlock(terms.window, row["instance_type"], row["count"], call.region),
        effective_quotas(yard.fleet, tx, account_id, call.region), held_blocks(tx, account_id),
    )  # fmt: skip
    extended = _extended(yard, row)
    if extended is None or not on_sale(extended, terms.window, tx.now, yard.fleet, yard.calendars):
        raise gone()
    return terms


# -- history ---------------------------------------------------------------------------------------------
_FACETS: Mapping[str, Facet] = {
    "availability-zone": one("AvailabilityZone"),
    "availability-zone-id": one("AvailabilityZoneId"),
    "capacity-block-extension-offering-id": one("CapacityBlockExtensionOfferingId"),
    "capacity-block-extension-status": one("CapacityBlockExtensionStatus"),
    "capacity-reservation-id": one("CapacityReservationId"),
    "instance-type": one("InstanceType"),
}


@reads("ec2", "DescribeCapacityBlockExtensionHistory")
def describe_extension_history(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Every extension that the account bought in the Region, the oldest first, whatever became of it."""
    filters = call.params.get("Filters", ())
    ids = list(dict.fromkeys(call.params.get("CapacityReservationIds", ())))
    check_page(call, "CapacityReservationIds")
    for reservation_id in ids:
        check_reservation_id(reservation_id)
    check_filters(filters, _FACETS)
    refuse_dry_run(call)
    for reservation_id in ids:
        _check_known(call, rows, reservation_id)

    def shapes(some: list[Row]) -> list[Shape | None]:
        shown = [_extension_shape(call, yard, rows, row) for row in some]
        return [shape if passes(shape, filters, _FACETS) else None for shape in shown]

    where = ["account_id = ?", "region = ?", "kind = ?", "created_us <= ?"]
    values: list[Value] = [call.account.account_id, call.region, BLOCK_EXTENSION.kind, horizon_us(call)]
    found, token = page(
        call, rows, table="extensions", where=where, values=values, shapes=shapes,
        any_of=("name", ids) if ids else None,
    )  # fmt: skip
    return {"CapacityBlockExtensions": found} | ({"NextToken": token} if token else {})


def _check_known(call: Call, rows: Reading, reservation_id: str) -> None:
    """Raises InvalidCapacityReservationId.NotFound for a block that never was: of one that is forgotten the
    history stays."""
    known = rows.one(
        "SELECT 1 FROM extensions WHERE name = ? AND account_id = ? AND region = ? AND created_us <= ?",
        reservation_id, call.account.account_id, call.region, horizon_us(call),
    )  # fmt: skip
    if known is None:
        find_block(call, rows, reservation_id)


def _extension_shape(call: Call, yard: Yard, rows: Reading, row: Row) -> Shape:
    hours = (row["end_us"] - row["start_us"]) // 3_600_000_000
    return {
        "CapacityReservationId": row["name"],
        "InstanceType": row["instance_type"],
        "InstanceCount": row["count"],
        **_where(call, yard, row),
        "CapacityBlockExtensionOfferingId": row["offering_id"],
        "CapacityBlockExtensionDurationHours": hours,
        "CapacityBlockExtensionStatus": status_seen(call, rows, row),
        "CapacityBlockExtensionPurchaseDate": from_micros(row["created_us"]),
        "CapacityBlockExtensionStartDate": from_micros(row["start_us"]),
        "CapacityBlockExtensionEndDate": from_micros(row["end_us"]),
        "UpfrontFee": f"{Money.from_micros(row['fee_micros'], row['currency']).amount:.2f}",
        "CurrencyCode": row["currency"],
    }


# -- by itself -------------------------------------------------------------------------------------------
def _pay(tx: Transaction, yard: Yard, arn: str) -> None:
    block = pay_extension(tx, KIND, extension_of(tx, arn), "payment-succeeded")
    arm_block_end(tx, yard, block)


def _fail(tx: Transaction, yard: Yard, arn: str) -> None:
    fail_extension(tx, yard, KIND, extension_of(tx, arn), "payment-failed")


Play = Callable[[Transaction, Yard, str], None]
BLOCK_EXTENSION_TIMERS: Mapping[str, Play] = {
    "block-extension-payment": _pay,
    "block-extension-payment-failure": _fail,
}
