"""From a need and what was seen for it to the `Combination` of the plan."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

from berth.facts.instance_types import instance_type
from berth.planner.best.answer import Answer, Outcome, money
from berth.planner.best.changes import Change, changes
from berth.planner.best.changes import Kind as ChangeKind
from berth.planner.best.combination import Combination, Evidence, Mix, NeededChange, OtherMix, Piece
from berth.planner.best.from_need import Case, Seen, cases_of
from berth.planner.best.others import Other, others
from berth.planner.best.reckon import Bought, Metered
from berth.planner.best.solve import Limits, NoOptimiser, best_of
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
    if not cases:
        return None
    try:
        solved = [(case, best_of(case.wish, case.supply, limits)) for case in cases]
    except NoOptimiser as missing:
        return Combination(need.instance_type, None, None, trouble=str(missing))
    case, outcome = min(solved, key=_least)
    return _combination(case, outcome, numbers)


def _least(solved: tuple[Case, Outcome]) -> tuple[bool, str, Fraction]:
    """Types with an answer first; what is in one currency by cost."""
    case, outcome = solved
    answer = outcome.answer or outcome.over_budget
    return (outcome.answer is None, case.wish.currency, answer.cost if answer else Fraction(0))


def _combination(case: Case, outcome: Outcome, numbers: Numbers) -> Combination:
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
    main = case.wish.parts[0].instance_type
    kind = instance_type(main)
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
        paid=(metered.window,),
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
