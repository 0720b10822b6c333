"""The best combination of what a plan has seen, as a member of the plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from berth.planner.best.combination import Combination, Mix
from berth.planner.best.combine import combine
from berth.planner.best.from_need import MeterLimits, PricedOffer, Seen
from berth.planner.need import Need
from berth.planner.plan import Plan
from berth.planner.verdicts import verdicts
from berth.terms.money import Money
from berth.terms.ways import Way

# Rules that one offer breaks and several together may keep.
_ONLY_OF_ONE = {
    "counts-are-powers-of-two",
    "64-instances-a-block",
    "the-ladder-of-durations",
    "182-days-at-most",
}


def with_combination(
    plan: Plan, limits: MeterLimits | None = None, *, most: Money | None = None, promised: bool = False
) -> Plan:
    """The plan with its best combination; as it is where no mix is cheaper than its first choice.

    `limits` bound the ways that are paid by the hour where the plan names no quota of theirs (None: not
    known, so they are not counted on). `most` bounds the total as a budget does (None: the need's alone).
    `promised`: nothing that must be held is left to the day.
    """
    if plan.reuse is not None:
        return plan
    rates = (*(line.rate for line in plan.pay_as_you_go), *plan.rates)
    seen = Seen(
        offers=tuple(_priced(plan)),
        rates=tuple(dict.fromkeys(rates)),
        ways=_ways(plan),
        limits=limits or {},
        blocks_owned=plan.blocks_held,
        quotas=plan.quotas,
        promised=promised,
        currency=plan.currencies.leads,
    )
    numbers = {(c.offer.region, c.offer.offering_id): c.number for c in plan.choices}
    found = combine(_bounded(plan.need, most), seen, plan.made_at, numbers)
    told = None if found is None else _what_adds(plan, found)
    return plan if told is None else replace(plan, combination=told)


def _bounded(need: Need, most: Money | None) -> Need:
    """The need with the lower of its budget and `most`; in two currencies its own budget counts."""
    if most is None or (need.budget and (need.budget.currency != most.currency or need.budget <= most)):
        return need
    return replace(need, budget=most)


def _ways(plan: Plan) -> frozenset[Way]:
    """The ways that may serve the planned part, and those of the parts that are held beside it."""
    judged = [plan.verdicts]
    judged += [
        verdicts(plan.need.alone(part), plan.made_at, plan.blocks_held)
        for part in plan.need.beside
        if part.reserve
    ]
    return frozenset(
        v.way
        for found in judged
        for v in found
        if all(r.rule in _ONLY_OF_ONE for r in v.reasons if r.against)
    )


def _priced(plan: Plan) -> Iterator[PricedOffer]:
    """Every offer once, with its cost; what does not fit alone too, where a part may run in it."""
    for choice in plan.choices:
        yield choice.offer, choice.cost
    targets = {part.target.value for part in plan.need.parts}
    for rejected in plan.rejected:
        if rejected.cost is not None and not targets.isdisjoint(rejected.offer.targets):
            yield rejected.offer, rejected.cost


def _what_adds(plan: Plan, found: Combination) -> Combination | None:
    """What of it says more than the choices do: pieces that cost less or hold further parts, what a quota
    would allow, a change, or why there is none. None: nothing does.
    """
    cheaper = found.if_quota if found.if_quota and _adds(plan, found, found.if_quota.mix) else None
    if found.best is None:
        alone = bool(plan.choices) and not _held_beside(plan, found)
        if found.trouble or cheaper or (found.changes and not alone):
            return replace(found, if_quota=cheaper, changes=() if alone else found.changes)
        return None
    single = len(found.best.pieces) == 1 and found.best.pieces[0].number is not None
    if not single and _adds(plan, found, found.best):
        return replace(found, if_quota=cheaper)
    return None if cheaper is None else Combination(found.instance_type, None, None, if_quota=cheaper)


def _adds(plan: Plan, found: Combination, mix: Mix) -> bool:
    """Whether it holds a further part that must be held, costs less than the first choice, or stands alone.

    A choice holds the planned part alone, so it is compared with what the mix pays for that part's types.
    """
    if _held_beside(plan, found):
        return True
    first = plan.choices[0].cost.total if plan.choices else None
    if first is None or first.currency != mix.total.currency:
        return True
    others = sum(p.cost.amount for p in mix.pieces if plan.need.type_count(p.instance_type) is None)
    return mix.total.amount - others < first.amount


def _held_beside(plan: Plan, found: Combination) -> bool:
    """Whether a part beside that must be held is in the combination."""
    return any(part.reserve and part.name not in found.left_out for part in plan.need.beside)
