"""Whether a Capacity Block offering can be sold now. Pure: the caller commits, in the same transaction."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from berth.terms.window import Window
from berth.yard.errors import ServiceError
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet, Quotas
from berth.yard.fleet.pools import EC2, Pool
from berth.yard.fleet.zones import ZoneKind
from berth.yard.market.block_ids import MalformedOffering
from berth.yard.market.block_rules import INSTANCES_MAX, BlockTerms, family_of, vcpus_of
from berth.yard.market.offering_ids import UnknownOffering
from berth.yard.market.window_rules import payable

NOT_FOUND = "InvalidCapacityBlockOfferingIdNotFound"
EXPIRED = "InvalidCapacityBlockOfferingIdExpired"
MALFORMED = "InvalidCapacityBlockOfferingIdMalformed"
# An issue minute is the search's instant rounded up, so it may lie up to a minute ahead of it.
_AHEAD = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class HeldBlock:
    """A block that an account holds: payment pending, scheduled or active."""

    window: Window
    instance_type: str
    count: int
    region: str


@dataclass(frozen=True, slots=True)
class GrantedBlock:
    """The offering can be sold: its hosts are free in its window and the fee is the shown one.

    Commit it with `calendars.commit(pool.key, EC2, window, count)`.
    """

    terms: BlockTerms
    pool: Pool
    instance_type: str


def admit_block(
    offering: BlockTerms | UnknownOffering | MalformedOffering,
    *,
    region: str,
    now: datetime,
    fleet: Fleet,
    calendars: FleetCalendars,
    held: Iterable[HeldBlock],
    opted_in: Set[str] = frozenset(),
    usd_per_hour: Decimal | None = None,
    quotas: Quotas | None = None,
) -> GrantedBlock:
    """Sell a decoded offering at `now`: form, rules, age, price, zone, limits, capacity, in this order.

    `held` are the account's blocks of all Regions, `opted_in` the ids of its Local Zones, `usd_per_hour` what
    the offer costs if searched for at its issue minute as things are now (None = no price any more), `quotas`
    the limits of the account in the Region (None = the fleet's). Everything is looked at anew, whatever the
    search found. Raises ServiceError with AWS's code; where AWS's code is not known
    docs/reference/unconfirmed.md says so.
    """
    if isinstance(offering, MalformedOffering):
        raise ServiceError(MALFORMED, "The Capacity Block offering ID is not valid: its form is wrong.")
    if isinstance(offering, UnknownOffering):
        raise ServiceError(NOT_FOUND, f"The Capacity Block offering '{offering.offering_id}' does not exist.")
    pool = fleet.pools.get(offering.pool_key)
    if pool is None or not _sold(offering, pool, region) or offering.usd_per_hour != usd_per_hour:
        raise gone()
    _check_age(offering, now, fleet)
    if fleet.zones[pool.zone_id].kind is ZoneKind.LOCAL_ZONE and pool.zone_id not in opted_in:
        raise ServiceError("OptInRequired", "You must opt in to the Local Zone before you reserve in it.")
    instance_type = pool.faces[EC2].instance_type
    _check_limits(offering, instance_type, region, quotas or fleet.quotas, list(held))
    if not calendars.fits(pool, EC2, offering.window, offering.count):
        raise gone()
    return GrantedBlock(offering, pool, instance_type)


def gone() -> ServiceError:
    """The offering is not on sale any more: too old, sold to somebody else, or dearer now."""
    return ServiceError(
        EXPIRED, "The Capacity Block offering has expired or is no longer available. Search again."
    )


def _sold(terms: BlockTerms, pool: Pool, region: str) -> bool:
    return pool.region == region and pool.self_service and EC2 in pool.faces and terms.count % pool.unit == 0


def _check_age(terms: BlockTerms, now: datetime, fleet: Fleet) -> None:
    lifetime = fleet.lifetimes.immediate if terms.immediate else fleet.lifetimes.scheduled
    if terms.issued_at > now + _AHEAD or now >= terms.issued_at + lifetime:
        raise gone()
    if not payable(now, terms.window.start, fleet.payment_delay):
        raise gone()


def _check_limits(
    terms: BlockTerms, instance_type: str, region: str, quotas: Quotas, held: list[HeldBlock]
) -> None:
    instances = sum(block.count for block in held)
    if instances + terms.count > INSTANCES_MAX:
        raise ServiceError(
            "InstanceLimitExceeded",
            f"You may reserve at most {INSTANCES_MAX} instances across Capacity Blocks; you hold {instances}"
            f" and asked for {terms.count} more.",
        )
    check_family_quota(HeldBlock(terms.window, instance_type, terms.count, region), quotas, held)


def check_family_quota(asked: HeldBlock, quotas: Quotas, held: Iterable[HeldBlock]) -> None:
    """Raises VcpuLimitExceeded when `asked` beside what is `held` passes the quota of concurrently active
    vCPUs of its family in its Region."""
    family = family_of(asked.instance_type)
    quota, each = quotas.block_vcpus_of(family), vcpus_of(asked.instance_type) or 0
    of_family = [one for one in held if one.region == asked.region and family_of(one.instance_type) == family]
    if quota == 0 or asked.count * each + peak_vcpus(of_family, asked.window) > quota:
        raise ServiceError(
            "VcpuLimitExceeded",
            f"You have requested more vCPU capacity than your current limit of {quota} vCPUs of concurrently"
            f" active Capacity Blocks of {family} instances allows.",
        )


def peak_vcpus(blocks: Iterable[HeldBlock], window: Window) -> int:
    """The most vCPUs of `blocks` that are reserved at one instant of `window`; types whose vCPUs nobody
    published count nothing."""
    changes: list[tuple[datetime, int]] = []
    for block in blocks:
        if block.window.overlaps(window):
            vcpus = block.count * (vcpus_of(block.instance_type) or 0)
            changes += [(block.window.start, vcpus), (block.window.end, -vcpus)]
    level = peak = 0
    for _, change in sorted(changes):
        level += change
        peak = max(peak, level)
    return peak
