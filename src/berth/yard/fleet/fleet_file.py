"""Reading a fleet file: TOML in, a Fleet out, and every complaint names line and key.

`docs/reference/fleet-file.md` tells every key. This file holds the order of reading; the parts of the file
are read in `inventory_section.py` (places, hardware, pools), `sale_section.py` (prices, quotas, throttles)
and `running_section.py` (engine, S3, demand).
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from importlib.resources import files

from berth.terms.settings import read_settings
from berth.yard.fleet.fleet import Fleet, FleetKind, OfferLifetimes
from berth.yard.fleet.inventory_section import read_hardware, read_pools, read_regions
from berth.yard.fleet.running_section import read_demand, read_engine, read_instances, read_s3
from berth.yard.fleet.sale_section import (
    read_blocks,
    read_price_lists,
    read_quotas,
    read_rates,
    read_throttles,
)

REHEARSAL_FILE = "rehearsal.toml"


def load_fleet(text: str, source: str) -> Fleet:
    """The fleet that `text` describes; `source` is the file's name, for messages.

    Raises SettingsError, with everything found wrong and each complaint's line and key.
    """
    top = read_settings(text, source)
    kind = FleetKind(top.choice("kind", [kind.value for kind in FleetKind]))
    regions = read_regions(top)
    hardware = read_hardware(top)
    places = frozenset(regions)
    known = frozenset(hardware)
    lifetimes = top.table("offers")
    quotas, increases = read_quotas(top, {face for one in hardware.values() for face in one.types})
    fleet = Fleet(
        name=top.text("name", "unnamed"),
        kind=kind,
        regions=regions,
        pools=read_pools(top, regions, hardware),
        price_lists=read_price_lists(top, known, places),
        on_demand_rates=read_rates(top, "on_demand_rates", known, places),
        hosting_rates=read_rates(top, "hosting_rates", known, places),
        quotas=quotas,
        quota_increases=increases,
        payment_delay=top.duration("payment_delay", timedelta(minutes=5)),
        lifetimes=OfferLifetimes()
        if lifetimes is None
        else OfferLifetimes(
            lifetimes.duration("immediate", OfferLifetimes().immediate),
            lifetimes.duration("scheduled", OfferLifetimes().scheduled),
        ),
        blocks=read_blocks(top),
        instances=read_instances(top),
        throttles=read_throttles(top),
        engine=read_engine(top),
        s3=read_s3(top, kind),
        demand=read_demand(top, kind, known, places),
    )
    top.finish()
    return fleet


@cache
def rehearsal_fleet() -> Fleet:
    """The fleet that ships with the yard: public facts of autumn 2026, and host counts that are invented."""
    text = files("berth.yard.fleet").joinpath(REHEARSAL_FILE).read_text(encoding="utf-8")
    return load_fleet(text, REHEARSAL_FILE)
