"""The best combination of what a plan has seen, as a member of the plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from berth.facts.instance_types import instance_type
from berth.facts.list_prices import highest_hourly
from berth.planner.best.combination import Combination
from berth.planner.best.combine import combine
from berth.planner.best.from_need import MeterLimits, PricedOffer, Seen
from berth.planner.cost import cost_of, floor_from
from berth.planner.offers import Offer
from berth.planner.plan import Plan

# Rules that one offer breaks and several together may keep.
_ONLY_OF_ONE = {
    "counts-are-powers-of-two",
    "64-instances-a-block",
    "the-ladder-of-durations",
    "182-days-at-most",
}


def with_combination(plan: Plan, limits: MeterLimits | None = None) -> Plan:
    """The plan with its best combination; as it is where no mix is cheaper than its first choice.

    `limits` bound the ways that are paid by the hour (None: no quota is known, so they are not counted on).
    """
    if plan.reuse is not None:
        return plan
    ways = frozenset(
        v.way for v in plan.verdicts if all(r.rule in _ONLY_OF_ONE for r in v.reasons if r.against)
    )
    seen = Seen(
        offers=tuple(_priced(plan)),
        rates=tuple(line.rate for line in plan.pay_as_you_go),
        ways=ways,
        limits=limits or {},
    )
    numbers = {(c.offer.region, c.offer.offering_id): c.number for c in plan.choices}
    found = combine(plan.need, seen, plan.made_at, numbers)
    return plan if found is None or not _adds_anything(plan, found) else replace(plan, combination=found)


def _priced(plan: Plan) -> Iterator[PricedOffer]:
    """Every offer once, with its cost; one that does not fit alone is priced here."""
    for choice in plan.choices:
        yield choice.offer, choice.cost
    for rejected in plan.rejected:
        offer = rejected.offer
        kind = instance_type(offer.instance_type)
        floor = floor_from(highest_hourly(offer.instance_type))
        if _may_serve(plan, offer):
            yield offer, cost_of(offer, kind.accelerator_count if kind else None, None, floor)


def _may_serve(plan: Plan, offer: Offer) -> bool:
    """What is for another target can be no piece either."""
    return plan.need.target.value in offer.targets


def _adds_anything(plan: Plan, found: Combination) -> bool:
    """Whether it says more than the choices do: several pieces that cost less, a change, or why there is
    none.
    """
    if found.best is None:
        return bool(found.trouble) or (bool(found.changes) and not plan.choices)
    if len(found.best.pieces) == 1 and found.best.pieces[0].number is not None:
        return False
    first = plan.choices[0].cost.total if plan.choices else None
    return first is None or first.currency != found.best.total.currency or found.best.total < first
