"""What SageMaker's on-demand hours cost: the Price List where it knows them, else the shipped tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from berth.facts.list_prices import highest_hourly, sagemaker_hourly
from berth.planner.cost import HourlyRate, floor_from, known_or_none
from berth.sources.list_prices import COMPONENTS, listed
from berth.sources.pricing import SOURCE, Found, Product, one_price, products
from berth.terms.ways import Target, Way


def sagemaker_rates(
    pricing: Any, ml_type: str, target: Target, regions: Sequence[str], today: date
) -> tuple[HourlyRate, ...]:
    """What an hour of `ml_type` costs for `target` in every Region of `regions`. Raises nothing."""
    component = COMPONENTS.get(target)
    if component is None:
        return ()
    found = products(pricing, "AmazonSageMaker", instanceName=ml_type)
    return tuple(_rate(found, ml_type, component, region, today) for region in regions)


def _rate(found: Found, ml_type: str, component: str, region: str, today: date) -> HourlyRate:
    here = [p for p in found.products if p.region == region and _is(p, component)]
    product = one_price(here)
    hourly = known_or_none(product.hourly[0], floor_from(highest_hourly(ml_type))) if product else None
    if product is not None and hourly is not None:
        return HourlyRate(
            Way.SAGEMAKER_ON_DEMAND, region, component, hourly, product.published or today, SOURCE, live=True
        )
    price = sagemaker_hourly(ml_type, region, component)
    return listed(Way.SAGEMAKER_ON_DEMAND, region, component, price, found.why(here))


def _is(product: Product, component: str) -> bool:
    """Whether the row prices that component: AWS writes `Hosting` for our `hosting`, with other dashes."""
    return _bare(product.attributes.get("component", "")) == _bare(component)


def _bare(words: str) -> str:
    return re.sub(r"[^a-z]", "", words.casefold())
