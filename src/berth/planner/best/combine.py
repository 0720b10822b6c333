"""From a need and what was seen for it to the `Combination` of the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

from berth.facts.instance_types import instance_type
from berth.planner.best.answer import Answer, Outcome, money
from berth.planner.best.changes import Change, changes
from berth.planner.best.changes import Kind as ChangeKind
from berth.planner.best.combination import Combination, Evidence, IfQuota, Mix, NeededChange, OtherMix, Piece
from berth.planner.best.from_need import Case, Seen, cases_of
from berth.planner.best.others import LIGHT, Other, others
from berth.planner.best.quota_needs import quota_needs
from berth.planner.best.reckon import Bought, Metered
from berth.planner.best.solve import Limits, NoOptimiser, best_of
from berth.planner.best.supply import Supply
from berth.planner.need import Need
from berth.planner.offers import Offer
from berth.terms.durations import spoken
from berth.terms.instants import iso
from berth.terms.money import Money

_HUNDREDTH = Decimal("0.01")
_THOUSANDTH = Decimal("0.001")
PLAN_LIMITS = Limits(nodes=60, rounds=40, scenes=400)

Numbers = Mapping[tuple[str, str | None], int]
"""The plan's choice of an offer, by Region and offering id."""


def combine(
    need: Need, seen: Seen, now: datetime, numbers: Numbers, limits: Limits = PLAN_LIMITS
) -> Combination | None:
    """The best combination of what was seen; None when nothing was seen that could be combined.

    Of several types that would do, the one with the least total. Without the optimiser a combination that
    holds only the reason: the caller ranks single offers and says so.
    """
    cases = cases_of(need, seen, now)
    supposed = () if seen.promised else cases_of(need, replace(seen, suppose=True), now)
    if seen.promised:
        cases = tuple(replace(case, supply=_reserved(case)) for case in cases)
    if not cases and not supposed:
        return None
    try:
        found = _found(cases, seen, numbers, limits)
        return _with_quotas(found, supposed, seen, numbers)
    except NoOptimiser as missing:
        return Combination(need.instance_type, None, None, trouble=str(missing))


def _found(cases: Sequence[Case], seen: Seen, numbers: Numbers, limits: Limits) -> Combination | None:
    """The combination of the type with the least total; None where there is no case."""
    solved = [(case, best_of(case.wish, case.supply, limits)) for case in cases]
    if not solved:
        return None
    case, outcome = min(solved, key=_least)
    hours = outcome.answer
    if hours is None or hours.bought:
        return _combination(case, outcome, seen, numbers)
    # Hours alone are told among the ways; a combination says what can be had with a promise.
    promised = replace(case, supply=_reserved(case))
    told = _combination(promised, best_of(promised.wish, promised.supply, limits), seen, numbers)
    return replace(told, by_the_hour=hours.total)


def _reserved(case: Case) -> Supply:
    """The supply without hours of what must be held ahead; a head that need not be keeps its own."""
    return replace(
        case.supply, meters=tuple(m for m in case.supply.meters if m.instance_type not in case.held)
    )


def _with_quotas(
    found: Combination | None, supposed: Sequence[Case], seen: Seen, numbers: Numbers
) -> Combination | None:
    """With the mix that would cost less if no quota stood in its way, where there is one with a purchase."""
    solved = [(case, best_of(case.wish, case.supply, LIGHT)) for case in supposed if _unsure(case)]
    fitting = [(case, outcome) for case, outcome in solved if outcome.answer and outcome.answer.bought]
    if not fitting:
        return found
    case, outcome = min(fitting, key=_least)
    answer = outcome.answer
    assert answer is not None
    needs = tuple(n for n in quota_needs(answer.metered, seen.quotas) if not n.allowed)
    mix = _mix(answer, case, numbers)
    if not needs or (found is not None and found.best is not None and not _is_less(mix, found.best)):
        return found
    base = found or Combination(case.wish.parts[0].instance_type, None, None)
    return replace(base, if_quota=IfQuota(mix, needs))


def _unsure(case: Case) -> bool:
    """Whether some quota could stand in the way."""
    most = sum(max(step.least for step in part.steps) for part in case.wish.parts)
    return any(meter.limit is None or meter.limit < most for meter in case.supply.meters)


def _is_less(one: Mix, other: Mix) -> bool:
    return one.total.currency == other.total.currency and one.total < other.total


def _least(solved: tuple[Case, Outcome]) -> tuple[int, bool, str, Fraction]:
    """Most parts first, then types with an answer; what is in one currency by cost."""
    case, outcome = solved
    answer = outcome.answer or outcome.over_budget
    cost = answer.cost if answer else Fraction(0)
    return (len(case.left_out), outcome.answer is None, case.wish.currency, cost)


def _combination(case: Case, outcome: Outcome, seen: Seen, numbers: Numbers) -> Combination:
    best = outcome.answer
    refused = tuple((r.id, r.reason) for r in outcome.refused)
    kind = case.wish.parts[0].instance_type
    if best is None:
        needed = changes(case.wish, case.supply, outcome)
        return Combination(
            kind,
            None,
            None,
            changes=tuple(_change(change, case, numbers) for change in needed),
            settled=outcome.settled,
            refused=refused,
            left_out=case.left_out,
        )
    found = others(case.wish, case.supply, best)
    return Combination(
        kind,
        _mix(best, case, numbers),
        _evidence(best, outcome.seen),
        others=tuple(_other(other, case, numbers) for other in found),
        refused=refused,
        left_out=case.left_out,
        quotas=quota_needs(best.metered, seen.quotas),
    )


def _evidence(answer: Answer, seen: int) -> Evidence:
    proof = answer.proof
    return Evidence(
        seen, proof.optimal, proof.bound, proof.gap, proof.scenes, proof.left_out, proof.nodes, proof.whole
    )


def _mix(answer: Answer, case: Case, numbers: Numbers) -> Mix:
    pieces = [_bought(b, case.offers, numbers, answer.currency) for b in answer.bought]
    pieces += [_metered(m, answer.currency) for m in answer.metered]
    pieces.sort(key=lambda p: (p.paid[0].start, not p.promised, p.region, p.offering_id or "", -p.count))
    kinds = {part.instance_type for part in case.wish.parts}
    kind = instance_type(kinds.pop()) if len(kinds) == 1 else None  # hours of two types do not add up
    in_accelerators = answer.least_hours * kind.accelerator_count if kind and kind.accelerator_count else None
    per_hour = None
    if in_accelerators:
        rate = Decimal(answer.cost.numerator) / Decimal(answer.cost.denominator) / _decimal(in_accelerators)
        per_hour = Money(rate.quantize(_THOUSANDTH, rounding=ROUND_HALF_UP), answer.currency)
    return Mix(
        tuple(pieces),
        answer.total,
        answer.running,
        _decimal(answer.least_hours).quantize(_HUNDREDTH),
        None if in_accelerators is None else _decimal(in_accelerators).quantize(_HUNDREDTH),
        per_hour,
    )


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _bought(bought: Bought, offers: Mapping[str, Offer], numbers: Numbers, currency: str) -> Piece:
    candidate, offer = bought.candidate, offers[bought.candidate.id]
    return Piece(
        number=numbers.get((offer.region, offer.offering_id)),
        way=candidate.way,
        instance_type=candidate.instance_type,
        region=candidate.region,
        zone_id=candidate.zone_id,
        offering_id=offer.offering_id or candidate.id,
        paid=candidate.held,
        usable=candidate.usable,
        count=bought.count,
        of=candidate.count,
        cost=money(bought.cost, currency),
    )


def _metered(metered: Metered, currency: str) -> Piece:
    meter = metered.meter
    return Piece(
        number=None,
        way=meter.way,
        instance_type=meter.instance_type,
        region=meter.region,
        zone_id=meter.zone_id,
        offering_id=None,
        paid=(metered.paid,),
        usable=(metered.window,),
        count=metered.count,
        of=metered.count,
        cost=money(metered.cost, currency),
    )


def _other(other: Other, case: Case, numbers: Numbers) -> OtherMix:
    trade = other.trade
    return OtherMix(
        other.kind.value,
        other.way,
        _mix(other.answer, case, numbers),
        trade.dearer,
        trade.later,
        trade.places,
        trade.pieces,
        _decimal(trade.unpromised).quantize(_HUNDREDTH),
        _decimal(trade.wanted).quantize(_HUNDREDTH),
    )


def _change(change: Change, case: Case, numbers: Numbers) -> NeededChange:
    return NeededChange(change.kind.value, _value(change, case), _mix(change.answer, case, numbers))


def _value(change: Change, case: Case) -> str:
    """The value as the need would say it: paid times again, not usable ones."""
    value = change.value
    if isinstance(value, Money):
        return str(value)
    if isinstance(value, datetime):
        bought = change.answer.bought
        if change.kind is ChangeKind.START:
            return iso(min((b.candidate.held[0].start for b in bought), default=value))
        return iso(max((b.candidate.held[-1].end for b in bought), default=value))
    if isinstance(value, timedelta):
        return spoken(value)
    if isinstance(value, int):
        least = max(step.least for step in case.wish.parts[0].steps)
        return str(max(least - value, 1))
    return value
