"""Searching: which Capacity Blocks can be had now. It writes nothing and promises nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from berth.terms.money import Money
from berth.terms.window import Window
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet, Quotas, pools_for
from berth.yard.fleet.pools import EC2, Pool
from berth.yard.fleet.zones import ZoneKind
from berth.yard.market.block_query import BlockQuery, CheckedQuery, check_block_query
from berth.yard.market.block_rules import BlockTerms, family_of
from berth.yard.market.price_lists import rate_at
from berth.yard.market.vacancies import Numbers, candidates_for, free_windows
from berth.yard.market.window_rules import issue_minute


@dataclass(frozen=True, slots=True)
class BlockOffering:
    """One block that could be bought: terms, and what else the answer shows.

    `window` is the paid window and `fee` the whole upfront fee: what the terms say, reckoned once.
    """

    terms: BlockTerms
    instance_type: str
    zone_id: str
    zone_kind: ZoneKind
    window: Window = field(init=False, compare=False)
    fee: Money = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Reckon what the answer shows more than once."""
        object.__setattr__(self, "window", self.terms.window)
        object.__setattr__(self, "fee", self.terms.fee)

    @property
    def hours_and_minutes(self) -> tuple[int, int]:
        """`CapacityBlockDurationHours` and `CapacityBlockDurationMinutes`: the two add up."""
        return divmod(self.window.duration // timedelta(minutes=1), 60)


@dataclass(frozen=True, slots=True)
class _Vacancy:
    """A window in which a pool has hosts free, and how many."""

    numbers: Numbers
    pool: Pool
    instance_type: str
    kind: ZoneKind
    free: int


def search_block_offerings(
    query: BlockQuery,
    *,
    region: str,
    now: datetime,
    fleet: Fleet,
    calendars: FleetCalendars,
    opted_in: Set[str] = frozenset(),
    rate_factor: Decimal = Decimal(1),
    quotas: Quotas | None = None,
) -> tuple[BlockOffering, ...]:
    """At most `fleet.blocks.offerings_max` offerings, earliest start first; empty when nothing is free.

    A window is offered in the zone with the most hosts free throughout, and apart from that in the best of
    the Local Zones; the other zones come up where windows leave room (inferred: AWS does not say how it
    picks). So a search narrowed to one window shows every zone that has it. `opted_in` are the ids of the
    Local Zones that count; `rate_factor` rehearses a price change, `quotas` None = the fleet's. An
    offering that could not be paid 5 minutes before its start is not shown.

    Raises ServiceError for a query that AWS would refuse (see check_block_query).
    """
    quotas = fleet.quotas if quotas is None else quotas
    pools = {
        type_: tuple(pool for pool in pools_for(fleet, region, face=EC2, type=type_) if pool.self_service)
        for type_ in query.types
    }
    checked = check_block_query(query, now, region, pools, quotas)
    candidates = candidates_for(
        checked.days, start_after=checked.start_after, end_before=checked.end_before,
        issued_at=issue_minute(now), payment_delay=fleet.payment_delay,
    )  # fmt: skip
    most = fleet.blocks.offerings_max
    found = [
        _Vacancy(numbers, pool, type_, kind, free)
        for type_, pool, kind in _places(pools, checked, fleet, opted_in, quotas)
        for numbers, free in free_windows(pool, EC2, checked.count, candidates, calendars, most=most)
    ]
    offered = []
    for one in _chosen(found, most):
        rate = rate_at(fleet.price_lists, candidates.issued_at, one.pool.hardware, region)
        if rate is not None:
            terms = BlockTerms(
                one.pool.key,
                checked.count,
                candidates.issued_at,
                *one.numbers,
                rate.usd_per_hour * rate_factor,
            )
            offered.append(BlockOffering(terms, one.instance_type, one.pool.zone_id, one.kind))
    return tuple(offered)


def _places(
    pools: Mapping[str, tuple[Pool, ...]],
    query: CheckedQuery,
    fleet: Fleet,
    opted_in: Set[str],
    quotas: Quotas,
) -> Iterator[tuple[str, Pool, ZoneKind]]:
    """The pools that the account may look into, each with its type and the kind of its zone."""
    for type_, of_type in pools.items():
        if quotas.block_vcpus_of(family_of(type_)) == 0:
            continue
        for pool in of_type:
            kind = fleet.zones[pool.zone_id].kind
            if kind is not ZoneKind.LOCAL_ZONE or query.every_zone or pool.zone_id in opted_in:
                yield type_, pool, kind


def _chosen(found: list[_Vacancy], most: int) -> list[_Vacancy]:
    """The `most` to show: first one of each window, kind of zone and type, then second zones, and so on.

    Numbers sort as their windows do: an immediate start (0) comes before every scheduled one.
    """
    ranks: dict[tuple[Numbers, ZoneKind, str], int] = {}
    ranked = []
    for one in sorted(found, key=lambda one: (-one.free, one.pool.zone_id)):
        group = (one.numbers, one.kind, one.instance_type)
        ranks[group] = rank = ranks.get(group, -1) + 1
        ranked.append((rank, one.numbers, one.kind.value, one))
    ranked.sort(key=lambda entry: entry[:3])
    return [entry[3] for entry in sorted(ranked[:most], key=lambda entry: (entry[1], entry[2], entry[0]))]
