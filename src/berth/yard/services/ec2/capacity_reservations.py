"""Looking at what was bought: DescribeCapacityReservations, DescribeCapacityBlocks,
DescribeCapacityBlockStatus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.services.ec2.block_shapes import block_shapes, reservation_shapes, status_shapes
from berth.yard.services.ec2.blocks import BLOCK, RESERVATION, check_reservation_id
from berth.yard.services.ec2.filters import (
    Facet,
    Filter,
    always,
    check_filters,
    exact_values,
    few_tagged,
    never,
    one,
    passes,
    prefilter,
    refuse_dry_run,
    with_tags,
)
from berth.yard.services.ec2.paging import check_page, page
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.lag import horizon_us
from berth.yard.services.operation import Call, reads
from berth.yard.store.transaction import Reading, Row, Value

Shapes = Callable[[list[Row]], list[Shape]]


@dataclass(frozen=True, slots=True)
class _Listing:
    """One way of listing `capacity_reservations`: by which ids, with which filters, which of them as
    columns."""

    ids: str
    id_column: str
    not_found: str
    facets: Mapping[str, Facet]
    columns: Mapping[str, str]


def _list(call: Call, rows: Reading, listing: _Listing, shapes: Shapes) -> tuple[list[Shape], str | None]:
    """The caller's rows of the Region, in the order of their creation.

    Raises InvalidParameterCombination, InvalidParameterValue, FilterLimitExceeded, InvalidNextToken, and the
    listing's code for an id that is not there.
    """
    filters = call.params.get("Filters", ())
    check_page(call, listing.ids)
    check_filters(filters, listing.facets)
    refuse_dry_run(call)
    any_of = None
    numbers = _numbers(call, rows, listing)
    if numbers is not None:
        where, values = [f"number IN ({', '.join('?' * len(numbers))})"], numbers
    else:
        # While a rehearsal lags the column holds another state than the one that is shown.
        columns = {
            name: column for name, column in listing.columns.items() if column != "status" or not call.lag
        }
        any_of = _leading(filters, columns)
        clauses, bound = prefilter(filters, columns, call=call, tagged_by=listing.id_column)
        where = ["account_id = ?", "region = ?", "created_us <= ?", *clauses]
        values = [call.account.account_id, call.region, horizon_us(call), *bound]

    def kept(some: list[Row]) -> list[Shape | None]:
        return [shape if passes(shape, filters, listing.facets) else None for shape in shapes(some)]

    return page(
        call, rows, table="capacity_reservations", where=where, values=values, shapes=kept, any_of=any_of
    )


def _leading(filters: Sequence[Filter], columns: dict[str, str]) -> tuple[str, list[Value]] | None:
    """The filter by which rows are found, if one has an index; taken out of `columns`, where the others are
    then only compared."""
    for name in ("state", "instance-type"):
        values = exact_values(filters, name) if name in columns else None
        if values is not None:
            column = columns.pop(name)
            columns.update({other: f"+{compared}" for other, compared in columns.items()})
            return column, values
    return None


def _numbers(call: Call, rows: Reading, listing: _Listing) -> list[Value] | None:
    """The numbers of the caller's rows that ids or a rare tag name; None where the call names none.

    Raises the listing's code for an id that is not there.
    """
    ids: list[str] = list(dict.fromkeys(call.params.get(listing.ids, ())))
    named = ids or few_tagged(call.params.get("Filters", ()), call=call, rows=rows)
    if named is None:
        return None
    column, marks = listing.id_column, ", ".join("?" * len(named))
    found = {
        row["id"]: row["number"]
        for row in rows.all(
            f"SELECT {column} AS id, number FROM capacity_reservations WHERE {column} IN ({marks})"  # noqa: S608
            " AND +account_id = ? AND +region = ? AND created_us <= ?",
            *named, call.account.account_id, call.region, horizon_us(call),
        )
    }  # fmt: skip
    for wanted in ids:
        if wanted not in found:
            raise ServiceError(listing.not_found, f"The ID '{wanted[:64]}' does not exist")
    return list(found.values())


def _answer(member: str, found: tuple[list[Shape], str | None]) -> dict[str, Any]:
    shapes, token = found
    return {member: shapes, **({"NextToken": token} if token else {})}


# -- reservations ----------------------------------------------------------------------------------------
_RESERVATION_FACETS: Mapping[str, Facet] = {
    "instance-type": one("InstanceType"),
    "owner-id": one("OwnerId"),
    "instance-platform": one("InstancePlatform"),
    "availability-zone": one("AvailabilityZone"),
    "tenancy": one("Tenancy"),
    "outpost-arn": never,
    "state": one("State"),
    "start-date": one("StartDate"),
    "end-date": one("EndDate"),
    "end-date-type": one("EndDateType"),
    "instance-match-criteria": one("InstanceMatchCriteria"),
    "placement-group-arn": never,
    # Of the user guide; the API's own list lacks them.
    "reservation-type": one("ReservationType"),
    "interruptible": always("false"),
}
_BY_RESERVATION = _Listing(
    ids="CapacityReservationIds",
    id_column="reservation_id",
    not_found=RESERVATION.not_found,
    facets=with_tags(_RESERVATION_FACETS),
    columns={
        "instance-type": "instance_type",
        "instance-platform": "platform",
        "state": "status",
        "reservation-type": "reservation_type",
    },
)
# No document names tag filters for this call: a rehearsal of the worst takes them away.
_WITHOUT_TAGS = _Listing(
    _BY_RESERVATION.ids, _BY_RESERVATION.id_column, _BY_RESERVATION.not_found, _RESERVATION_FACETS,
    _BY_RESERVATION.columns,
)  # fmt: skip


@reads("ec2", "DescribeCapacityReservations")
def describe_capacity_reservations(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """All states. The filter `tag:<key>`, which AWS does not document here, works unless the fault `lag` is
    on."""
    for reservation_id in call.params.get("CapacityReservationIds", ()):
        check_reservation_id(reservation_id)
    listing = _WITHOUT_TAGS if call.lag else _BY_RESERVATION
    found = _list(call, rows, listing, lambda some: reservation_shapes(call, yard, rows, some))
    return _answer("CapacityReservations", found)


# -- blocks ----------------------------------------------------------------------------------------------
def _tags(shape: Shape) -> list[str]:
    """What the filter `tags` may match: AWS names it and does not say how its values are written."""
    found = []
    for tag in shape["Tags"]:
        found += [tag["Key"], tag["Value"], f"{tag['Key']}={tag['Value']}"]
    return found


_BY_BLOCK = _Listing(
    ids="CapacityBlockIds",
    id_column="block_id",
    not_found=BLOCK.not_found,
    facets=with_tags(
        {
            "capacity-block-id": one("CapacityBlockId"),
            "ultraserver-type": always("instances"),
            "availability-zone": one("AvailabilityZone"),
            "start-date": one("StartDate"),
            "end-date": one("EndDate"),
            "create-date": one("CreateDate"),
            "state": one("State"),
            "tags": _tags,
        }
    ),
    columns={"capacity-block-id": "block_id", "state": "status"},
)


@reads("ec2", "DescribeCapacityBlocks")
def describe_capacity_blocks(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """The block objects: one for each reservation that is a block."""
    found = _list(call, rows, _BY_BLOCK, lambda some: block_shapes(call, yard, rows, some))
    return _answer("CapacityBlocks", found)


_STATUS = _Listing(
    ids="CapacityBlockIds",
    id_column="block_id",
    not_found=BLOCK.not_found,
    facets={"interconnect-status": one("InterconnectStatus")},
    columns={},
)


@reads("ec2", "DescribeCapacityBlockStatus")
def describe_capacity_block_status(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """How much of each block can still be launched into."""
    found = _list(call, rows, _STATUS, lambda some: status_shapes(call, rows, some))
    return _answer("CapacityBlockStatuses", found)
