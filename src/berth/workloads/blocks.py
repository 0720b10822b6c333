"""Capacity Blocks of the account, by id, for launching."""

from __future__ import annotations

import re
from collections.abc import Mapping

from berth.aws.refusals import Kind, Refusal
from berth.orders.block_descriptions import described_block
from berth.orders.calls import asked
from berth.orders.order import Order
from berth.orders.seen import SeenReservation, listed
from berth.terms.outcomes import BerthError, ExitCode
from berth.workloads.sites import Site

_ID = re.compile(r"cr-[0-9a-z]+")


def block_by_id(site: Site, order: Order, block_id: str) -> SeenReservation:
    """The block of that id. Raises BerthError (bad request) when there is none, or it is no block."""
    if not _ID.fullmatch(block_id):
        hint = (
            ": that is an offer's id, and a block bought has one like cr-0123" if block_id[:2] == "cb" else ""
        )
        raise _none(order, f"{block_id} is not the id of a Capacity Reservation{hint}")
    answer = asked(lambda: site.ec2.describe_capacity_reservations(CapacityReservationIds=[block_id]))
    if isinstance(answer, Refusal):
        if answer.kind is Kind.NOT_FOUND:
            raise _none(order, f"there is no {block_id} in this account and Region (any more)")
        raise BerthError(answer.exit_code, f"{block_id} could not be read: {answer}", None, order.spending)
    for one in listed(answer.get("CapacityReservations")):
        found = described_block(one) if isinstance(one, Mapping) else None
        if found is not None and found.seen.name == block_id:
            return found.seen
    raise _none(order, f"{block_id} is no Capacity Block")


def _none(order: Order, why: str) -> BerthError:
    return BerthError(ExitCode.BAD_REQUEST, why, "berth ls shows what the account has", order.spending)
