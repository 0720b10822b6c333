"""List prices seen in public: EC2 on-demand, SageMaker, Capacity Blocks. Never a quote.

A look-up that finds nothing answers None, which means "not known": it is never zero and never cheap.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache

from berth.facts.tables import Provenance, provenance, rows
from berth.terms.money import Money

COMPONENTS = ("hosting", "training", "batch-transform", "studio-jupyterlab", "notebook", "unspecified")


@dataclass(frozen=True, slots=True)
class ListPrice:
    """`value` in `currency` per instance hour, Linux, without tax, as seen at `provenance.as_of`.

    `place` is a Region, or a zone code where the source prices a zone. `component` is what SageMaker prices
    (one of COMPONENTS), or `on-demand`, or `capacity-block`. `region_assumed` is True where the source names
    no Region and one was inferred; `note` holds the source's other caveats, empty when there are none.
    """

    item: str
    place: str
    component: str
    value: Decimal
    provenance: Provenance
    note: str = ""
    region_assumed: bool = False
    currency: str = "USD"

    @property
    def as_of(self) -> date:
        """The day the price was seen (`as_of_quality` says how well that day is known)."""
        return self.provenance.as_of

    @property
    def as_of_quality(self) -> str:
        """`exact`, `month`, `quarter`, `year` or `bracket`."""
        return self.provenance.as_of_quality

    @property
    def source(self) -> str:
        """Short name of the source, explained in data/README.md."""
        return self.provenance.source

    @property
    def money(self) -> Money:
        """The hourly price as money."""
        return Money(self.value, self.currency)


def on_demand_hourly(instance_type: str, region: str) -> ListPrice | None:
    """EC2 on-demand, shared tenancy, newest known row of the type in the Region; None = not known."""
    return _on_demand().get((instance_type.removeprefix("ml."), region))


def capacity_block_hourly(instance_type: str, place: str) -> ListPrice | None:
    """EC2 Capacity Block fee, newest known row; `place` = Region or Local Zone name; None = not known."""
    return _capacity_block().get((instance_type.removeprefix("ml."), place))


def highest_hourly(instance_type: str) -> Money | None:
    """The highest list price of the bare hardware in any Region, on demand or as a block; None = not known.

    It says what cannot be a price of that hardware, not what it costs.
    """
    name = instance_type.removeprefix("ml.")
    tables = (_on_demand(), _capacity_block())
    known = [price.money for table in tables for (item, _), price in table.items() if item == name]
    return max(known, key=lambda money: money.amount, default=None)


def sagemaker_hourly(ml_type: str, region: str, component: str) -> ListPrice | None:
    """SageMaker on-demand of `ml_type`, one component, one Region, newest known row; None = not known."""
    found = [p for p in sagemaker_known(ml_type) if p.place == region and p.component == component]
    return max(found, key=lambda p: p.as_of, default=None)


def sagemaker_known(ml_type: str) -> tuple[ListPrice, ...]:
    """Every SageMaker price known for `ml_type`, wherever it is: what to show beside an unknown."""
    return _sagemaker().get(ml_type, ())


@cache
def _on_demand() -> dict[tuple[str, str], ListPrice]:
    return {
        (row["instance_type"], row["region"]): ListPrice(
            item=row["instance_type"],
            place=row["region"],
            component="on-demand",
            value=Decimal(row["usd_per_hour"]),
            provenance=provenance(row),
        )
        for row in rows("on_demand_prices.csv")
    }


@cache
def _capacity_block() -> dict[tuple[str, str], ListPrice]:
    return {
        (row["instance_type"], row["region_or_zone"]): ListPrice(
            item=row["instance_type"],
            place=row["region_or_zone"],
            component="capacity-block",
            value=Decimal(row["usd_per_instance_hour"]),
            provenance=provenance(row),
            note=row["note"],
        )
        for row in rows("capacity_block_prices.csv")
    }


@cache
def _sagemaker() -> dict[str, tuple[ListPrice, ...]]:
    found: dict[str, list[ListPrice]] = defaultdict(list)
    for row in rows("sagemaker_prices.csv"):
        price = ListPrice(
            item=row["ml_type"],
            place=row["region"],
            component=row["component"],
            value=Decimal(row["usd_per_hour"]),
            provenance=provenance(row),
            note=row["note"],
            region_assumed=row["note"].startswith("region assumed"),
        )
        found[price.item].append(price)
    return {name: tuple(prices) for name, prices in found.items()}
