"""Clearing up: endpoint, then configuration, then a model only if Berth made it. What is not ours stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from berth.orders.names import workload_name
from berth.orders.order import Order, OrderState
from berth.orders.seen import SeenReservation, Stage
from berth.orders.steps import NOTHING_LEFT, Step, StepKind, StepState
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode
from berth.watch.waiting import wait_for
from berth.workloads.resources import OPERATIONS, Found, delete, find, is_absent, is_busy
from berth.workloads.sites import Site

LONGEST_S = 1800.0
"""Real seconds that a deletion may take: SageMaker's own waiter allows 60 looks, 30 s apart."""

GONE = Found(None, None)
UNDOING = (StepKind.ENDPOINT, StepKind.CONFIGURATION, StepKind.MODEL)


@dataclass(frozen=True, slots=True)
class StillPaid:
    """What goes on being paid for after clearing up: until when, and what that time cost."""

    until: datetime
    unused: Money


def clean(site: Site, order: Order) -> tuple[str, ...]:
    """Remove what was made for the order and wait until it is gone; what was removed, in words.

    Running it again does no harm. Raises BerthError (exit 30) when something could not be removed.
    """
    removed = []
    for kind in UNDOING:
        step = _what_to_remove(site, order, kind)
        if step is None:
            continue
        if not step.ours:
            site.talk(f"{OPERATIONS[kind].word} {step.name} was not made by Berth: left alone")
            site.put(order, step, StepState.REFUSED)
            continue
        if _remove(site, order, step):
            removed.append(f"{OPERATIONS[kind].word} {step.name}")
    return tuple(removed)


def still_paid(order: Order, seen: SeenReservation | None, now: datetime) -> StillPaid | None:
    """What is still paid for at `now`; None when the reservation is over or there is none. Pure."""
    if order.state is not OrderState.BOUGHT:
        return None
    end = (seen.end if seen else None) or order.window.end
    if (seen is not None and seen.stage in {Stage.OVER, Stage.FAILED}) or now >= end:
        return None
    held = order.held
    fee = (seen.fee if seen and not order.extended else None) or held.fee or order.attempt.fee
    whole = sum((part.window.duration.total_seconds() for part in held.segments), 0.0)
    left = sum(
        ((part.window.end - max(now, part.window.start)).total_seconds() for part in held.segments
         if part.window.end > now),
        0.0,
    )  # fmt: skip
    share = Money(fee.amount * int(left) / int(whole), fee.currency).rounded()
    return StillPaid(end, min(share, fee, key=lambda money: money.amount))


def _what_to_remove(site: Site, order: Order, kind: StepKind) -> Step | None:
    """The step of the journal; where it has none (a lost journal), what carries the order's name and mark."""
    step = site.journal.steps(order.key).get(kind)
    if step is not None:
        return None if step.state in NOTHING_LEFT else step
    name = workload_name(order.key)
    found = find(site, order, kind, name)
    if found.answer is None or not found.ours:
        return None
    return site.begin(order, kind, name, ours=True, detail="found with the order's mark")


def _remove(site: Site, order: Order, step: Step) -> bool:
    found = find(site, order, step.kind, step.name)
    word = OPERATIONS[step.kind].word
    if found.answer is not None and found.ours is False:
        site.warn(f"{word} {step.name} does not carry the mark of order {order.key}: left alone")
        site.put(order, step, StepState.REFUSED)
        return False
    step = site.put(order, step, StepState.REMOVING)
    site.talk(f"deleting the {word} {step.name}")

    def look() -> Found:
        refusal = None if _deleting(found_last[0]) else delete(site, step.kind, step.name)
        if refusal is not None and is_absent(refusal):
            return GONE  # the write side knows first; a description may lag by minutes
        if refusal is not None and not is_busy(refusal) and not refusal.may_have_happened:
            raise BerthError(
                ExitCode.BOUGHT_NOT_LAUNCHED,
                f"the {word} {step.name} could not be deleted: {refusal}",
                f"berth clean {order.key}",
                order.spending,
            )
        found_last[0] = find(site, order, step.kind, step.name)
        return found_last[0]

    found_last = [found]
    last = wait_for(look, _is_gone, site.clock, known=lambda seen: (site.clock.now(),), limit_s=LONGEST_S)
    if not _is_gone(last):
        raise BerthError(
            ExitCode.BOUGHT_NOT_LAUNCHED,
            f"the {word} {step.name} is still there after {LONGEST_S / 60:.0f} minutes of deleting",
            f"berth clean {order.key}",
            order.spending,
        )
    site.put(order, step, StepState.REMOVED)
    return True


def _is_gone(found: Found) -> bool:
    return found.answer is None and found.trouble is None


def _deleting(found: Found) -> bool:
    answer: Mapping[str, object] = found.answer or {}
    return answer.get("EndpointStatus") == "Deleting"
