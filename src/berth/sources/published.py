"""Published prices of Capacity Blocks, with their age, for when nobody can be asked. Pure.

A table is a fall-back and never truth (field fault 55). How far it is off a live fee is told by
`planner/costs/published.py`.
"""

from __future__ import annotations

from datetime import date

from berth.facts.list_prices import ListPrice, capacity_block_hourly
from berth.planner.need import Need
from berth.planner.phrases import age, rate_text


def block_list_notes(need: Need, today: date) -> tuple[str, ...]:
    """A sentence for each of the need's Regions and types whose list price of a block is known."""
    return tuple(
        f"capacity-block list price, {kind.instance_type} in {region}: {_told(price, today)}; not an offer"
        for kind in need.types
        for region in need.regions
        if (price := capacity_block_hourly(kind.instance_type, region)) is not None
    )


def _told(price: ListPrice, today: date) -> str:
    return f"{rate_text(price.money)}/h, {age(price.as_of, today)} old"
