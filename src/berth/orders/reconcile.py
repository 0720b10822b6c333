"""What became of an order: settled only by looking, never by calling again."""

from __future__ import annotations

from datetime import timedelta

from berth.orders.desk import Desk
from berth.orders.journal import LostRace
from berth.orders.order import IN_DOUBT, Look, Order, OrderState, absent_at, known_absent
from berth.orders.seen import SeenPlan
from berth.orders.sighting import Sighting, look_by_name, look_everywhere
from berth.terms.instants import iso
from berth.terms.outcomes import BerthError, ExitCode

ELSEWHERE = timedelta(minutes=10)
"""How long an intent of another machine counts as held: far longer than one call may take."""

UNSETTLED = IN_DOUBT | {OrderState.DISPUTED}


def settle_doubt(desk: Desk, order: Order) -> Order:
    """Look once for the plan of an order that is in doubt; the order as it stands afterwards.

    It stays in doubt while the plan is neither seen nor known to be absent, and while the process that holds
    the intent may still be calling. Orders that are not in doubt come back as they are.
    """
    if order.state not in UNSETTLED:
        return order
    held = is_held(desk, order)
    began = desk.clock.now()
    sighting = look_everywhere(desk.reads, order.key, order.plan_name)
    look = Look(began, desk.clock.now(), sighting.complete, sighting.plan is not None)
    if sighting.trouble:
        desk.warn(f"the look at AWS was not complete: {sighting.trouble}")
    try:
        if sighting.plan is not None:
            return _found(desk, order, sighting, look)
        return order if held else _not_found(desk, order, look)
    except LostRace:
        return desk.journal.order(order.key) or order


def is_held(desk: Desk, order: Order) -> bool:
    """Whether another process may be inside the paid call of this order right now."""
    holder = order.attempt.holder
    if order.state is not OrderState.BUYING or holder == desk.holders.me():
        return False
    lives = desk.holders.lives(holder)
    if lives is None:
        return desk.clock.now() - order.attempt.started_at < ELSEWHERE
    return lives


def refresh(desk: Desk, order: Order) -> tuple[Order, SeenPlan | None]:
    """Read the plan of a bought order once more; the order, and the plan as seen now (None: not seen).

    A plan that AWS has failed makes the order FAILED. Never raises for what AWS answers: what was bought
    stays bought, whatever a description says or leaves out.
    """
    sighting = look_by_name(desk.reads, order.key, order.plan_name)
    if sighting.plan is None:
        if sighting.trouble:
            desk.warn(f"the plan could not be read: {sighting.trouble}")
        return order, None
    order = desk.journal.note_seen(order, sighting.plan.to_json(), desk.clock.now())
    if sighting.plan.state == "Failed" and order.state is OrderState.BOUGHT:
        order = _failed(desk, order, sighting.plan)
    return order, sighting.plan


def doubt(desk: Desk, order: Order) -> BerthError:
    """What a person must be told about an order that looking has not settled."""
    if order.state is OrderState.DISPUTED:
        return BerthError(
            ExitCode.OUTCOME_UNKNOWN,
            f"a training plan named {order.plan_name} exists without the mark of order {order.key}:"
            " a look-alike, which a person has to judge",
            f"aws sagemaker describe-training-plan --training-plan-name {order.plan_name}",
            order.spending,
        )
    if is_held(desk, order):
        return BerthError(
            ExitCode.OUTCOME_UNKNOWN,
            f"order {order.key} is already being bought, since {iso(order.attempt.started_at)}, by another"
            f" process ({order.attempt.holder})",
            f"berth show {order.key}",
            order.spending,
        )
    settles = absent_at(order.looks)
    when = f" from {iso(settles)} on" if settles else ""
    return BerthError(
        ExitCode.OUTCOME_UNKNOWN,
        f"what became of order {order.key} is not known: no plan {order.plan_name} is to be seen yet."
        f" AWS shows writes up to 5 minutes late, so only complete looks over 6 minutes settle it{when}",
        f"berth show {order.key} --wait",
        order.spending,
    )


def _found(desk: Desk, order: Order, sighting: Sighting, look: Look) -> Order:
    plan = sighting.plan
    assert plan is not None
    if sighting.ours:
        order = desk.journal.settle(
            order,
            OrderState.BOUGHT,
            now=look.ended_at,
            detail=f"found {plan.arn} with our mark",
            arn=plan.arn,
        )
        order = desk.journal.note_seen(order, plan.to_json(), look.ended_at)
        return _failed(desk, order, plan) if plan.state == "Failed" else order
    if sighting.ours is False and order.state is not OrderState.DISPUTED:
        return desk.journal.settle(
            order, OrderState.DISPUTED, now=look.ended_at, detail=f"{plan.arn} does not carry our mark"
        )
    return order


def _not_found(desk: Desk, order: Order, look: Look) -> Order:
    if order.state is OrderState.DISPUTED:
        return order
    if order.state is OrderState.BUYING:
        order = desk.journal.settle(
            order, OrderState.UNKNOWN, now=look.began_at, detail="the buying process ended without an answer"
        )
    order = desk.journal.look(order, look)
    if known_absent(order.looks):
        return desk.journal.settle(
            order, OrderState.REFUSED, now=look.ended_at, detail="not seen in complete looks over 6 minutes"
        )
    return order


def _failed(desk: Desk, order: Order, plan: SeenPlan) -> Order:
    try:
        return desk.journal.settle(
            order, OrderState.FAILED, now=desk.clock.now(), detail=plan.message or "AWS gave no reason"
        )
    except LostRace:
        return desk.journal.order(order.key) or order
