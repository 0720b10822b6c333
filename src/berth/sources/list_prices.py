"""List prices of the ways that are paid as one goes, from the shipped dated tables: labelled, never live."""

from __future__ import annotations

from collections.abc import Iterable

from berth.facts.list_prices import ListPrice, on_demand_hourly, sagemaker_hourly
from berth.planner.cost import HourlyRate
from berth.planner.need import Need
from berth.terms.ways import Target, Way

# What SageMaker prices for each target. HyperPod's own rows are in no table that we have: unknown.
_COMPONENTS = {
    Target.ENDPOINT: "hosting",
    Target.TRAINING_JOB: "training",
    Target.HYPERPOD_CLUSTER: "cluster",
    Target.STUDIO_APPS: "studio-jupyterlab",
}


def list_rates(need: Need, regions: Iterable[str]) -> tuple[HourlyRate, ...]:
    """What the tables say of the need's hardware in each Region: SageMaker's price and EC2's bare one."""
    rates: list[HourlyRate] = []
    for region in regions:
        rates.append(_rate(Way.ON_DEMAND, region, "on-demand", on_demand_hourly(need.instance_type, region)))
        component = _COMPONENTS.get(need.target)
        if component is None:
            continue
        price = sagemaker_hourly(need.instance_type, region, component)
        rates.append(_rate(Way.SAGEMAKER_ON_DEMAND, region, component, price))
    return tuple(rates)


def _rate(way: Way, region: str, component: str, price: ListPrice | None) -> HourlyRate:
    if price is None:
        return HourlyRate(way, region, component, None)
    return HourlyRate(
        way=way,
        region=region,
        component=component,
        hourly=price.money,
        as_of=price.as_of,
        source=price.source,
        note=price.note,
        region_assumed=price.region_assumed,
    )
