"""One purchase: look, search again, commit the intent, call once, write down the answer, read back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from berth.aws.refusals import Kind, Refusal
from berth.orders.calls import ReservationBuyer, asked
from berth.orders.desk import Desk
from berth.orders.guard import check_money, check_time
from berth.orders.journal import LostRace, OrderTaken
from berth.orders.matching import alternatives, match, narrowed
from berth.orders.names import INTENT_TAG, ORDER_TAG, reservation_name
from berth.orders.order import Approval, Order, OrderKey, OrderState
from berth.orders.reconcile import UNSETTLED, doubt, refresh, settle_doubt
from berth.orders.seen import SeenReservation, differences
from berth.orders.sighting import NOT_FOUND, look_by_name
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome
from berth.terms.outcomes import BerthError, ExitCode

NAME_TAKEN = "ResourceInUse"

Buyer = Callable[[], ReservationBuyer]
"""Opens the one door that can pay; opened only when everything else has been checked."""


class How(StrEnum):
    """How an order came to be bought."""

    BOUGHT = "bought"  # by this command
    FOUND = "found"  # by an earlier call whose answer was lost, or from another journal
    ALREADY = "already"  # the journal knew it


@dataclass(frozen=True, slots=True)
class Purchase:
    """A reservation that is ours. `seen` is its description, None when it could not be read (yet)."""

    order: Order
    how: How
    seen: SeenReservation | None


def buy(desk: Desk, buyer: Buyer, key: OrderKey, approval: Approval) -> Purchase:
    """Buy what was approved as order `key`, or find out that it has been bought.

    Whatever dies at whatever moment, running it again pays for nothing twice. Raises BerthError: nothing was
    bought (refused, gone, dearer), or it is not known (exit 40). After the purchase nothing raises any more.
    """
    order = desk.journal.order(key)
    if order is not None:
        known = _known(desk, order)
        if known is not None:
            return known
    owned = _owned(desk, key, approval)
    if owned is not None:
        return owned
    offer, answer = fresh_offer(desk, approval.offer)
    check_money(offer.fee, approval)
    check_time(offer, desk.clock.now())
    return _pay_and_record(desk, buyer, key, replace(approval, offer=offer), answer)


def fresh_offer(desk: Desk, approved: Offer) -> tuple[Offer, PlaceAnswer]:
    """The approved offer as a new search shows it; raises when it is gone, dearer or cannot be searched."""
    answer = desk.search(narrowed(approved, desk.clock.now()))
    found = match(approved, answer.offers)
    if found.offer is not None:
        return found.offer, answer
    if not answer.is_complete:
        raise _not_searched(answer)
    if found.moved is None:
        wider = desk.search(approved.query)
        found = match(approved, wider.offers)
        if found.offer is not None:
            return found.offer, wider
        answer = wider if wider.is_complete else answer
    raise _changed(approved, found.reason, answer)


def _known(desk: Desk, order: Order) -> Purchase | None:
    """The purchase that the journal or a look at AWS already knows of; None when buying may go on."""
    was_in_doubt = order.state in UNSETTLED
    order = settle_doubt(desk, order)
    desk.tell_spending(order.spending)
    if order.state in UNSETTLED:
        raise doubt(desk, order)
    if order.state is OrderState.BOUGHT:
        order, seen = refresh(desk, order)
        desk.tell_spending(order.spending)
    if order.state is OrderState.BOUGHT:
        return Purchase(order, How.FOUND if was_in_doubt else How.ALREADY, seen)
    if order.state is OrderState.FAILED:
        raise failed(order)
    return None


def _owned(desk: Desk, key: OrderKey, approval: Approval) -> Purchase | None:
    """The reservation that another journal bought for this very order; None when the name is free."""
    sighting = look_by_name(desk.reads, key, reservation_name(key))
    if sighting.reservation is None:
        if not sighting.complete:
            raise BerthError(
                ExitCode.INCOMPLETE,
                f"whether {reservation_name(key)} exists already could not be read, so nothing is bought:"
                f" {sighting.trouble}",
            )
        return None
    if not sighting.ours:
        why = sighting.trouble or "it does not carry the mark of this order"
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"a training plan named {reservation_name(key)} exists and cannot be taken for ours: {why}",
            f"aws sagemaker describe-training-plan --training-plan-name {reservation_name(key)}",
        )
    order = desk.journal.order(key)
    now = desk.clock.now()
    try:
        if order is None:
            document = sighting.reservation.to_json()
            order = desk.journal.adopt(key, approval, seen=document, now=now)
        else:
            order = desk.journal.settle(
                order, OrderState.BOUGHT, now=now, detail="found with our mark", arn=sighting.reservation.arn
            )
    except (OrderTaken, LostRace):
        order = desk.journal.order(key) or order
    return _bought(desk, _still(desk, key, order), How.FOUND)


def _pay_and_record(
    desk: Desk, buyer: Buyer, key: OrderKey, approval: Approval, answer: PlaceAnswer
) -> Purchase:
    client = buyer()  # before the intent: a door that does not open has spent nothing
    try:
        order = desk.journal.intend(
            key, approval,
            intent_id=desk.ids.hex(16), holder=desk.holders.me(), now=desk.clock.now(),
        )  # fmt: skip
    except (OrderTaken, LostRace):
        other = _still(desk, key, None)
        known = _known(desk, other)
        if known is None:
            raise BerthError(
                ExitCode.DECISION_NEEDED, f"another process tried order {key} meanwhile and bought nothing"
            ) from None
        return known
    desk.tell_spending(order.spending)
    end = _pay(client, order)
    if isinstance(end, str):
        try:
            order = desk.journal.settle(
                order, OrderState.BOUGHT, now=desk.clock.now(), detail=f"answered {end}", arn=end
            )
        except LostRace:  # somebody who looked meanwhile has found it
            order = _still(desk, key, order)
        return _bought(desk, order, How.BOUGHT)
    return _no_answer(desk, order, end, answer)


def _pay(client: ReservationBuyer, order: Order) -> str | Refusal:
    """The only place of the program that pays: one call, never repeated. The ARN, or why not."""
    tags = {ORDER_TAG: order.key.mark, INTENT_TAG: order.attempt.intent_id}
    answer = asked(
        lambda: client.create_training_plan(
            TrainingPlanName=order.reservation_name,
            TrainingPlanOfferingId=order.attempt.offering_id,
            Tags=[{"Key": name, "Value": value} for name, value in tags.items()],
        )
    )
    if isinstance(answer, Refusal):
        return answer
    arn = answer.get("TrainingPlanArn")
    if isinstance(arn, str) and arn:
        return arn
    return Refusal(Kind.UNCLASSIFIED, "no ARN", "the answer names no reservation", may_have_happened=True)


def _no_answer(desk: Desk, order: Order, refusal: Refusal, answer: PlaceAnswer) -> Purchase:
    certain = not refusal.may_have_happened and refusal.kind is not Kind.UNCLASSIFIED
    try:
        if certain and refusal.code != NAME_TAKEN:
            order = desk.journal.settle(order, OrderState.REFUSED, now=desk.clock.now(), detail=str(refusal))
            desk.tell_spending(order.spending)
            raise _refused(order, refusal, answer)
        order = desk.journal.settle(order, OrderState.UNKNOWN, now=desk.clock.now(), detail=str(refusal))
    except LostRace:
        order = _still(desk, order.key, order)
    desk.warn(f"the paid call ended without a certain answer ({refusal}); looking for the reservation")
    known = _known(desk, order)
    if known is None:
        raise _refused(_still(desk, order.key, order), refusal, answer)
    return known


def _bought(desk: Desk, order: Order, how: How) -> Purchase:
    desk.tell_spending(order.spending)
    order, seen = refresh(desk, order)
    desk.tell_spending(order.spending)
    if order.state is OrderState.FAILED:
        raise failed(order)
    if seen is None:
        desk.warn(
            "the reservation is bought; AWS does not show it yet (writes may show up to 5 minutes late)"
        )
    else:
        for sentence in differences(seen, order.offer):
            desk.warn(f"the reservation is bought; {sentence}")
    return Purchase(order, how, seen)


def _still(desk: Desk, key: OrderKey, order: Order | None) -> Order:
    found = desk.journal.order(key) or order
    if found is None:
        raise BerthError(ExitCode.INTERNAL_ERROR, f"order {key} has left the journal")
    return found


def failed(order: Order) -> BerthError:
    """What to tell about an order whose reservation AWS has failed."""
    why = (order.seen or {}).get("message") or "it gave no reason"
    return BerthError(
        ExitCode.DECISION_NEEDED,
        f"AWS failed the training plan {order.reservation_name} of order {order.key}: {why}",
        f"berth buy {order.key.need}#1 buys under a new name",
        order.spending,
    )


def _refused(order: Order, refusal: Refusal, answer: PlaceAnswer) -> BerthError:
    if refusal.code == NOT_FOUND:
        return _changed(order.offer, "the offer is gone", answer)
    return BerthError(refusal.exit_code, f"AWS refused the purchase: {refusal}", None, order.spending)


def _changed(approved: Offer, reason: str, answer: PlaceAnswer) -> BerthError:
    others = alternatives(approved, answer.offers)
    lines = [f"{reason}; nothing else is bought in its place", *(f"  instead: {line}" for line in others)]
    if not others:
        lines.append("  nothing else is on sale for this need there now")
    return BerthError(ExitCode.DECISION_NEEDED, "\n".join(lines), "berth plan the need again, then decide")


_SEARCH_EXITS = {
    PlaceOutcome.THROTTLED: ExitCode.THROTTLED,
    PlaceOutcome.NO_QUOTA: ExitCode.QUOTA,
    PlaceOutcome.NOT_ALLOWED: ExitCode.CREDENTIALS,
}


def _not_searched(answer: PlaceAnswer) -> BerthError:
    code = _SEARCH_EXITS.get(answer.outcome, ExitCode.INCOMPLETE)
    return BerthError(
        code, f"the offer could not be searched again in {answer.region}: {answer.detail or answer.outcome}"
    )
