"""What became of an order: settled only by looking, never by calling again."""

from __future__ import annotations

from datetime import datetime, timedelta

from berth.orders.desk import Desk
from berth.orders.journal import LostRace
from berth.orders.looks import Began, Look, absent_at, known_absent
from berth.orders.order import IN_DOUBT, Order, OrderState
from berth.orders.seen import SeenReservation, Stage
from berth.orders.sighting import Sighting, trace_of
from berth.terms.instants import iso
from berth.terms.outcomes import BerthError, ExitCode

ELSEWHERE = timedelta(minutes=10)
"""How long an intent of another machine counts as held: far longer than one call may take."""

UNSETTLED = IN_DOUBT | {OrderState.DISPUTED}


def settle_doubt(desk: Desk, order: Order) -> Order:
    """Look once for the reservation of an order that is in doubt; the order as it stands afterwards.

    It stays in doubt while the reservation is neither seen nor known to be absent, and while the process that
    holds the intent may still be calling. Orders that are not in doubt come back as they are.
    """
    if order.state not in UNSETTLED:
        return order
    held = is_held(desk, order)
    began = Began.by(desk.clock)
    sighting = desk.shop.look(trace_of(order))
    # AWS forgets reservations some time after their end: not seeing one then proves nothing.
    ended = desk.clock.now()
    complete = sighting.complete and not _forgotten(order, ended)
    look = Look(began.at(desk.clock), ended, complete, sighting.reservation is not None)
    if sighting.trouble:
        desk.warn(f"the look at AWS was not complete: {sighting.trouble}")
    if sighting.note:
        desk.warn(sighting.note)
    try:
        if sighting.reservation is None:
            return order if held else _not_found(desk, order, look)
        # What is being bought shows its tags a moment after itself: no dispute while the buyer still calls.
        return order if held and not sighting.ours else _found(desk, order, sighting, look)
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


def refresh(desk: Desk, order: Order) -> tuple[Order, SeenReservation | None]:
    """Read the reservation of a bought order once more; the order, and what was seen now (None: nothing).

    A reservation that AWS has failed makes the order FAILED. Never raises for what AWS answers: what was
    bought stays bought, whatever a description says or leaves out.
    """
    sighting = desk.shop.glance(trace_of(order))
    if sighting.reservation is None:
        if sighting.trouble:
            desk.warn(f"the reservation could not be read: {sighting.trouble}")
        return order, None
    order = desk.journal.note_seen(order, sighting.reservation.to_json(), desk.clock.now())
    if sighting.reservation.stage is Stage.FAILED and order.state is OrderState.BOUGHT:
        order = _failed(desk, order, sighting.reservation)
    return order, sighting.reservation


def doubt(desk: Desk, order: Order) -> BerthError:
    """What a person must be told about an order that looking has not settled."""
    if order.state is OrderState.DISPUTED:
        return BerthError(
            ExitCode.OUTCOME_UNKNOWN,
            f"a {desk.shop.noun} that looks like that of order {order.key} exists without its mark: a"
            " look-alike, which a person has to judge (docs/concepts-exactly-once.md)",
            desk.shop.inspect(trace_of(order)),
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
    if _forgotten(order, desk.clock.now()):
        return BerthError(
            ExitCode.OUTCOME_UNKNOWN,
            f"the outcome of order {order.key} is not known, and its window is over: AWS does not show ended"
            " reservations for ever, so only the account's bill tells whether it was paid",
            "the bill; for further purchases give the need another name",
            order.spending,
        )
    settles = absent_at(order.looks)
    when = f" from {iso(settles)} on" if settles else ""
    return BerthError(
        ExitCode.OUTCOME_UNKNOWN,
        f"the outcome of order {order.key} is not known: no {desk.shop.noun} of it is to be seen."
        f" AWS may show writes 5 minutes late; complete looks over 6 minutes settle it{when}",
        f"berth show {order.key} --wait",
        order.spending,
    )


def _forgotten(order: Order, now: datetime) -> bool:
    return now >= order.offer.paid_window.end


def _found(desk: Desk, order: Order, sighting: Sighting, look: Look) -> Order:
    reservation = sighting.reservation
    assert reservation is not None
    if sighting.ours:
        order = desk.journal.settle(
            order,
            OrderState.BOUGHT,
            now=look.ended_at,
            detail=f"found {reservation.arn} with our mark",
            arn=reservation.arn,
            fee=reservation.fee,
        )
        order = desk.journal.note_seen(order, reservation.to_json(), look.ended_at)
        return _failed(desk, order, reservation) if reservation.stage is Stage.FAILED else order
    if sighting.ours is False and order.state is not OrderState.DISPUTED:
        return desk.journal.settle(
            order, OrderState.DISPUTED, now=look.ended_at, detail=f"{reservation.arn} does not carry our mark"
        )
    return order


def _not_found(desk: Desk, order: Order, look: Look) -> Order:
    if order.state is OrderState.DISPUTED and not look.complete:
        return order
    if order.state is not OrderState.UNKNOWN:
        why = {
            OrderState.BUYING: "the buying process ended without an answer",
            OrderState.DISPUTED: "no look-alike is to be seen any more",
        }[order.state]
        order = desk.journal.settle(order, OrderState.UNKNOWN, now=look.began_at, detail=why)
    order = desk.journal.look(order, look)
    if order.state is OrderState.UNKNOWN and known_absent(order.looks):
        return desk.journal.settle(
            order, OrderState.REFUSED, now=look.ended_at, detail="not seen in complete looks over 6 minutes"
        )
    return order


def _failed(desk: Desk, order: Order, reservation: SeenReservation) -> Order:
    try:
        return desk.journal.settle(
            order, OrderState.FAILED, now=desk.clock.now(),
            detail=reservation.message or f"AWS says {reservation.state}",
        )  # fmt: skip
    except LostRace:
        return desk.journal.order(order.key) or order
