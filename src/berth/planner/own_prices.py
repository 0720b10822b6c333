"""Hourly rates as somebody really pays them: a Savings Plan, an enterprise discount, and what an ODCR costs.

A rate of one's own stands in the place of the listed one, which is kept beside it. Capacity Blocks and
training plans are prepaid at the price that the search names, and Spot has no list price: no rate of one's
own changes those (EC2 Capacity Blocks pricing page, read 2026-11, names no discount on them).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from berth.planner.cost import HourlyRate
from berth.planner.own_rates import OwnRates
from berth.terms.ways import Way

_LISTED = frozenset({Way.ON_DEMAND, Way.SAGEMAKER_ON_DEMAND, Way.ODCR})
RESERVED = "reserved"
"""The component of a rate of an On-Demand Capacity Reservation: the same hour, used or idle."""


def as_agreed(rate: HourlyRate, own: OwnRates | None) -> HourlyRate:
    """`rate` as the need's own rates make it; as it is where they say nothing about it.

    A Savings Plan's rate is what is paid, whatever the list says, and is known where the list price is not; a
    percentage needs a list price. `rate` names its type.
    """
    if own is None or rate.way not in _LISTED:
        return rate
    saved = own.savings_rate(rate.instance_type)
    if saved is not None:
        return replace(rate, hourly=saved, listed=rate.hourly, agreed="your Savings Plan")
    if own.edp_percent is None or rate.hourly is None:
        return rate
    hourly = rate.hourly * ((100 - own.edp_percent) / 100)
    return replace(rate, hourly=hourly, listed=rate.hourly, agreed=f"your {own.edp_percent:f} % off the list")


def with_reservations(rates: Iterable[HourlyRate]) -> Iterator[HourlyRate]:
    """The rates, and after each on-demand one of EC2 what the same hour of an ODCR costs: as much.

    Source: EC2 user guide, On-Demand Capacity Reservations, pricing and billing, read 2026-11: a reservation
    is charged at the on-demand rate whether instances run in it or not, and Savings Plans apply to it.
    """
    for rate in rates:
        yield rate
        if rate.way is Way.ON_DEMAND:
            yield replace(rate, way=Way.ODCR, component=RESERVED)
