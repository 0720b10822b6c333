"""The part of a fleet file that says on what terms hosts are sold: price lists, rates, quotas, throttles."""

from __future__ import annotations

from collections.abc import Set
from datetime import date
from decimal import Decimal

from berth.terms.settings import Section
from berth.yard.fleet.fleet import (
    ANY,
    BlockSettings,
    QuotaIncreases,
    QuotaKind,
    Quotas,
    Throttle,
    quota_class,
)
from berth.yard.market.price_lists import PriceList, Rate

QUOTA_MAX = 1_000_000
OFFERINGS_MAX = 1000
THROTTLED = ("ec2", "pricing", "sagemaker", "sagemaker-runtime", "service-quotas", "sts")


# -- prices ----------------------------------------------------------------------------------------------


def read_price_lists(top: Section, hardware: Set[str], regions: Set[str]) -> tuple[PriceList, ...]:
    """`[[price_lists]]` in order of their dates."""
    found: list[PriceList] = []
    for section in top.tables("price_lists"):
        name = section.text("name")
        starts = section.instant("from")
        if any(other.name == name for other in found):
            section.complain("name", f"{name!r} is there twice")
        if found and starts <= found[-1].effective_from:
            section.complain("from", "must be later than that of the list before it")
        found.append(PriceList(name, starts, read_rates(section, "rates", hardware, regions)))
    if not found:
        top.complain("price_lists", "a fleet needs at least one [[price_lists]], else nothing has a price")
    return tuple(found)


def read_rates(section: Section, key: str, hardware: Set[str], regions: Set[str]) -> tuple[Rate, ...]:
    """An array of rates: what an instance hour of one hardware type costs, where, and who says so."""
    found: list[Rate] = []
    seen: set[tuple[str, str]] = set()
    for table in section.tables(key):
        rate = _read_rate(table, hardware, regions)
        for region in rate.regions or {ANY}:
            if (rate.hardware, region) in seen:
                where = "everywhere" if region == ANY else f"in {region}"
                table.complain("hardware", f"{rate.hardware} has a rate {where} already")
            seen.add((rate.hardware, region))
        found.append(rate)
    return tuple(found)


def _read_rate(table: Section, hardware: Set[str], regions: Set[str]) -> Rate:
    name = table.text("hardware")
    if name not in hardware:
        table.complain("hardware", f"{name!r} is not among the [[hardware]] types")
    places = frozenset(table.texts("regions", ()))
    for place in sorted(places - regions):
        table.complain("regions", f"{place!r} is not among the [[regions]]")
    usd_per_hour = table.decimal("usd_per_hour")
    if table.raw("usd_per_hour", None) == 0:
        table.complain("usd_per_hour", "must be more than 0; leave the rate out where the price is not known")
    source = table.text("source", "") or None
    as_of = _read_day(table, "as_of")
    assumed = table.flag("assumed", False)
    if not assumed and (source is None or as_of is None):
        table.complain(None, "a price needs source and as_of, or assumed = true")
    return Rate(
        hardware=name,
        usd_per_hour=usd_per_hour,
        regions=places or None,
        source=source,
        as_of=as_of,
        assumed=assumed,
        note=table.text("note", ""),
    )


def _read_day(table: Section, key: str) -> date | None:
    """A TOML date, or the same as text; None when the key is not there."""
    value = table.raw(key, None)
    if value is None or type(value) is date:
        return value if isinstance(value, date) else None
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        table.complain(key, f"must be a date like 2026-10-07, not {value}")
        return None


# -- limits ----------------------------------------------------------------------------------------------


def read_quotas(top: Section, types: Set[str]) -> tuple[Quotas, QuotaIncreases]:
    """`[quotas]`: limits of each account in each Region, and how they are raised."""
    table = top.table("quotas")
    if table is None:
        return Quotas(), QuotaIncreases()
    return _read_limits(table, types), _read_increases(table)


def _read_limits(table: Section, types: Set[str]) -> Quotas:
    default = Quotas()
    classes = set(map(quota_class, types))
    return Quotas(
        training_plans=table.integer("training_plans", default.training_plans, low=0, high=QUOTA_MAX),
        reserved_capacity=_read_quota(table, "reserved_capacity", default.reserved_capacity[ANY], types),
        endpoint_usage=_read_quota(table, "endpoint_usage", default.endpoint_usage[ANY], types),
        training_usage=_read_quota(table, "training_usage", default.training_usage[ANY], types),
        cluster_usage=_read_quota(table, "cluster_usage", default.cluster_usage[ANY], types),
        block_vcpus=_read_quota(
            table, "block_vcpus", default.block_vcpus[ANY], {name.split(".")[0] for name in types}, "family"
        ),
        on_demand_vcpus=_read_quota(table, "on_demand_vcpus", default.on_demand_vcpus[ANY], classes, "class"),
        spot_vcpus=_read_quota(table, "spot_vcpus", default.spot_vcpus[ANY], classes, "class"),
    )


def _read_increases(quotas: Section) -> QuotaIncreases:
    table = quotas.table("increases")
    default = QuotaIncreases()
    if table is None:
        return default
    kinds = {kind.value for kind in QuotaKind}
    return QuotaIncreases(
        table.duration("delay", default.delay), _read_quota(table, "most", QUOTA_MAX, kinds, "kind of quota")
    )


def _read_quota(
    quotas: Section, key: str, default: int, names: Set[str], what: str = "type"
) -> dict[str, int]:
    """A table of limits by type or family, `"*"` for all that it does not name."""
    table = quotas.table(key)
    if table is None:
        return {ANY: default}
    found = {ANY: table.integer(ANY, default, low=0, high=QUOTA_MAX)}
    for name in (key for key in table.keys() if key != ANY):  # noqa: SIM118 - a Section is no mapping
        found[name] = table.integer(name, low=0, high=QUOTA_MAX)
        if name not in names:
            table.complain(name, f"is not a {what} of this fleet")
    return found


def read_blocks(top: Section) -> BlockSettings:
    """`[blocks]`: how Capacity Blocks are sold."""
    table = top.table("blocks")
    default = BlockSettings()
    if table is None:
        return default
    return BlockSettings(
        offerings_max=table.integer("offerings_max", default.offerings_max, low=1, high=OFFERINGS_MAX),
        payment_delay_max=table.duration("payment_delay_max") if table.has("payment_delay_max") else None,
        shown_after_end=table.duration("shown_after_end", default.shown_after_end),
    )


def read_throttles(top: Section) -> tuple[Throttle, ...]:
    """`[[throttles]]`: token buckets, the first that covers an operation holds."""
    found: list[Throttle] = []
    for table in top.tables("throttles"):
        name = table.text("name")
        if any(other.name == name for other in found):
            table.complain("name", f"{name!r} is there twice; a name means one bucket")
        source = table.text("source", "") or None
        assumed = table.flag("assumed", False)
        if not assumed and source is None:
            table.complain(None, "a throttle needs a source, or assumed = true")
        operations = table.texts("operations", pattern=r"[A-Za-z*]+")
        found.append(
            Throttle(
                name=name,
                service=table.choice("service", THROTTLED),
                operations=operations,
                size=table.integer("size", low=1, high=1_000_000),
                refill_per_s=table.decimal("refill_per_s", low=Decimal("0.001")),
                source=source,
                assumed=assumed,
            )
        )
    return tuple(found)
