"""List prices of the ways that are paid as one goes, from the shipped dated tables: labelled, never live."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from berth.facts.list_prices import ListPrice, on_demand_hourly, sagemaker_hourly
from berth.planner.cost import HourlyRate
from berth.planner.need import Need
from berth.planner.platforms import LINUX
from berth.terms.ways import Target, Way

# What SageMaker prices for each target. HyperPod's own rows are in no table that we have: unknown.
COMPONENTS = {
    Target.ENDPOINT: "hosting",
    Target.TRAINING_JOB: "training",
    Target.HYPERPOD_CLUSTER: "cluster",
    Target.STUDIO_APPS: "studio-jupyterlab",
}


def list_rates(need: Need, regions: Sequence[str], why: str = "") -> tuple[HourlyRate, ...]:
    """What the tables say of the need's hardware in each Region: SageMaker's price and EC2's bare one.

    `why` says why nothing newer is known, '' for no reason to tell.
    """
    rates: list[HourlyRate] = []
    component = COMPONENTS.get(need.target)
    for kind in (one.instance_type for one in need.types):
        name = "" if kind == need.instance_type else kind
        for region in regions:
            bare = on_demand_hourly(kind, region) if need.platform == LINUX else None
            found = [listed(Way.ON_DEMAND, region, "on-demand", bare, why)]
            if component is not None:
                price = sagemaker_hourly(kind, region, component)
                found.append(listed(Way.SAGEMAKER_ON_DEMAND, region, component, price, why))
            rates += [replace(rate, instance_type=name) for rate in found]
    return tuple(rates)


def listed(way: Way, region: str, component: str, price: ListPrice | None, why: str = "") -> HourlyRate:
    """A price of the tables as a rate, labelled with its age; None: not known. `why`: see `list_rates`."""
    if price is None:
        return HourlyRate(way, region, component, None, note=why)
    return HourlyRate(
        way=way,
        region=region,
        component=component,
        hourly=price.money,
        as_of=price.as_of,
        source=price.source,
        note="; ".join(part for part in (price.note, why) if part),
        region_assumed=price.region_assumed,
    )
