"""Whether one offer fits a need: named rules, each a sentence against it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from berth.planner.framework.limits import BLOCK_COUNT_MAX
from berth.planner.need import Need
from berth.planner.offers import Offer
from berth.terms.durations import spoken
from berth.terms.ways import Target

# Payment must be through 5 minutes before the start (SageMaker guide, training plans, read 2026-11).
PAYMENT_LEAD = timedelta(minutes=5)

Rule = Callable[[Offer, Need, datetime], str]


def misfits(offer: Offer, need: Need, now: datetime) -> tuple[str, ...]:
    """Every reason why `offer` does not fit; empty when it does."""
    return tuple(sentence for rule in RULES if (sentence := rule(offer, need, now)))


def is_piece(offer: Offer, need: Need) -> bool:
    """Whether an offer holds a part of what no single offer can: one of several blocks, or a layer."""
    wanted = need.type_count(offer.instance_type)
    if wanted is None or offer.count >= wanted.count:
        return False
    return bool(need.profile) or wanted.count > BLOCK_COUNT_MAX


def _target(offer: Offer, need: Need, now: datetime) -> str:
    if need.target.value in offer.targets:
        return ""
    return f"is for {', '.join(offer.targets) or 'no known target'}, not for {need.target.value}"


def _type_and_count(offer: Offer, need: Need, now: datetime) -> str:
    for segment in offer.segments:
        wanted = need.type_count(segment.instance_type)
        if wanted is not None and wanted.count <= segment.count <= wanted.wanted:
            continue
        holds = f"holds {segment.count} x {segment.instance_type}"
        if wanted is None or segment.count > wanted.wanted:
            return holds
        if need.profile:
            return f"{holds}, less than the peak of {wanted.count}: one layer of the profile"
        several = ": one of several" if wanted.count > BLOCK_COUNT_MAX else ""
        return f"{holds} of the {wanted.count} wanted{several}"
    return ""


def _zones(offer: Offer, need: Need, now: datetime) -> str:
    if not need.zone_ids:
        return ""
    strange = [z for z in offer.zones if z not in need.zone_ids]
    return f"is in {', '.join(strange)}, not in {' or '.join(need.zone_ids)}" if strange else ""


def _one_zone(offer: Offer, need: Need, now: datetime) -> str:
    if not need.same_zone or len(offer.zones) < 2:
        return ""
    return f"lies in {' and '.join(offer.zones)}: all of it must be in one zone"


def _start(offer: Offer, need: Need, now: datetime) -> str:
    begin = offer.paid_window.start
    if begin - now < PAYMENT_LEAD:
        return "starts too soon for its payment, which must be through 5 minutes before"
    if need.start and begin > need.start:
        return f"starts {spoken(begin - need.start)} after the fixed start"
    if need.earliest_start and begin < need.earliest_start:
        return f"starts {spoken(need.earliest_start - begin)} before the earliest start"
    return ""


def _end(offer: Offer, need: Need, now: datetime) -> str:
    end = offer.paid_window.end
    wanted = need.fixed_window
    if wanted and end < wanted.end:
        return f"ends {spoken(wanted.end - end)} before the wanted end"
    if need.latest_end and end > need.latest_end:
        return f"ends {spoken(end - need.latest_end)} after the latest end"
    return ""


def _length(offer: Offer, need: Need, now: datetime) -> str:
    if offer.paid_time >= need.duration:
        return ""
    return f"lasts {spoken(offer.paid_time)}, less than {spoken(need.duration)}"


def _gaps(offer: Offer, need: Need, now: datetime) -> str:
    if not offer.gaps:
        return ""
    longest = max(gap.duration for gap in offer.gaps)
    said = f"comes in {len(offer.segments)} parts with a gap of {spoken(longest)}"
    if need.gap_at_most is not None:
        return f"{said}, over the {spoken(need.gap_at_most)} allowed" if longest > need.gap_at_most else ""
    # SageMaker moves a training job from one part to the next; nothing else survives a gap.
    return "" if need.target is Target.TRAINING_JOB else said


def _budget(offer: Offer, need: Need, now: datetime) -> str:
    if need.budget is None or offer.fee is None:
        return ""
    if offer.fee.currency != need.budget.currency:
        return f"is priced in {offer.fee.currency}, the budget in {need.budget.currency}"
    return f"costs {offer.fee}, over the budget of {need.budget}" if offer.fee > need.budget else ""


RULES: tuple[Rule, ...] = (_target, _type_and_count, _zones, _one_zone, _start, _end, _length, _gaps, _budget)
