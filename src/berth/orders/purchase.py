"""One purchase: look, search again, commit the intent, call once, write down the answer, read back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from berth.aws.refusals import Kind, Refusal
from berth.orders.desk import Desk
from berth.orders.guard import check_money, check_time
from berth.orders.journal import LostRace, OrderTaken, ReservationTaken
from berth.orders.matching import alternatives, askable, match, narrowed
from berth.orders.order import Approval, Order, OrderKey, OrderState
from berth.orders.paying import pay
from berth.orders.reconcile import UNSETTLED, doubt, refresh, settle_doubt
from berth.orders.seen import SeenReservation, differences, fitted
from berth.orders.shops.shop import NOUNS
from berth.orders.sighting import Sighting, trace_of_key
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome
from berth.terms.outcomes import BerthError, ExitCode, Spent

Buyer = Callable[[], Any]
"""Opens the one door that can pay: a client of the shop's service that sends each call once. It is opened
only when everything else has been checked."""

Confirm = Callable[[Approval], Approval]
"""Shows what is about to be bought, asks, and returns what was agreed to. Raises BerthError: not agreed."""


class How(StrEnum):
    """How an order came to be bought."""

    BOUGHT = "bought"  # by this command
    FOUND = "found"  # by an earlier call whose answer was lost
    ELSEWHERE = "elsewhere"  # from another journal, so by somebody else, or before this one was lost
    ALREADY = "already"  # the journal knew it


@dataclass(frozen=True, slots=True)
class Purchase:
    """A reservation that is ours. `seen` is its description, None when it could not be read (yet)."""

    order: Order
    how: How
    seen: SeenReservation | None


def buy(
    desk: Desk, buyer: Buyer, key: OrderKey, approval: Approval, confirm: Confirm | None = None
) -> Purchase:
    """Buy what was approved as order `key`, or find out that it has been bought.

    Whatever dies at whatever moment, running it again pays for nothing twice. `confirm` is asked where the
    order is not bought yet, None = whoever calls has agreed already. Raises BerthError: nothing was bought
    (refused, gone, dearer), or it is not known (exit 40). After the purchase nothing raises any more.
    """
    owned = _owned(desk, key, approval)
    if owned is not None:
        return owned
    try:
        return _buy_anew(desk, buyer, key, confirm(approval) if confirm else approval)
    except BerthError as ending:
        if ending.spent.spent is not Spent.NOTHING:
            raise
        owned = _owned_after_all(desk, key, approval)
        if owned is None:
            raise
        return owned


def _owned(desk: Desk, key: OrderKey, approval: Approval) -> Purchase | None:
    """The purchase that the journal knows, or that AWS shows; None when buying may go on."""
    order = desk.journal.order(key)
    known = None if order is None else _known(desk, order)
    return known or find_owned(desk, key, approval)


def _owned_after_all(desk: Desk, key: OrderKey, approval: Approval) -> Purchase | None:
    """What somebody else bought as this order while this process ended without it; None = nothing.

    An offer that is gone may be gone to this very order: between the first look and the ending another
    machine or process may have paid it. AWS is looked at before the journal, so that nothing lies between
    the last thing read and what is told. Raises BerthError where another purchase is in doubt.
    """
    try:
        owned = find_owned(desk, key, approval)
    except BerthError as unread:
        desk.warn(f"whether another process has bought order {key} meanwhile is not known: {unread.message}")
        owned = None
    order = desk.journal.order(key)
    return owned or (None if order is None or order.state is OrderState.REFUSED else _known(desk, order))


def _buy_anew(desk: Desk, buyer: Buyer, key: OrderKey, approval: Approval) -> Purchase:
    """Search once more, look once more where only that keeps two journals apart, and pay."""
    offer, answer = fresh_offer(desk, approval.offer)
    check_money(offer.fee, approval)
    check_time(offer, desk.clock.now())
    approval = replace(approval, offer=offer)
    if desk.shop.unseen:  # nothing but this look keeps two journals apart, so it comes right before the call
        owned = find_owned(desk, key, approval)
        if owned is not None:
            return owned
        desk.talk(f"before paying: {desk.shop.unseen}")
    desk.talk(f"paying {offer.fee} for order {key}: no refund, no cancelling, no change")
    return _pay_and_record(desk, buyer, key, approval, answer)


def fresh_offer(desk: Desk, approved: Offer) -> tuple[Offer, PlaceAnswer]:
    """The approved offer as a new search shows it; raises when it is gone, dearer or cannot be searched."""
    now, shortest = desk.clock.now(), desk.shop.shortest_search(approved.query)
    answer = desk.shop.search(narrowed(approved, now, shortest))
    found = match(approved, answer.offers)
    if found.offer is not None:
        return found.offer, answer
    if not answer.is_complete:
        raise _not_searched(answer)
    if found.moved is None:
        wider = desk.shop.search(askable(approved.query, now, shortest))
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


def find_owned(desk: Desk, key: OrderKey, approval: Approval) -> Purchase | None:
    """The reservation that another journal bought for this very order; None when there is none."""
    sighting = desk.shop.glance(trace_of_key(key))
    if sighting.note:
        desk.warn(sighting.note)
    if sighting.reservation is None:
        if not sighting.complete:
            raise BerthError(
                ExitCode.INCOMPLETE,
                f"whether order {key} is bought already could not be read, so nothing is bought:"
                f" {sighting.trouble}",
            )
        return None
    if not sighting.ours:
        why = sighting.trouble or "it does not carry the mark of this order"
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"{desk.shop.noun} {sighting.reservation.name} exists and cannot be taken for ours: {why}",
            desk.shop.inspect(trace_of_key(key)),
        )
    return take_over(desk, key, approval, sighting)


def take_over(desk: Desk, key: OrderKey, approval: Approval, sighting: Sighting) -> Purchase:
    """Make what carries the order's mark an order of this journal, with what AWS shows of it."""
    return _bought(desk, _adopted(desk, key, approval, sighting), How.ELSEWHERE)


def _adopted(desk: Desk, key: OrderKey, approval: Approval, sighting: Sighting) -> Order:
    """The order in this journal, BOUGHT, with what the sighting shows."""
    seen = sighting.reservation
    assert seen is not None
    order, now = desk.journal.order(key), desk.clock.now()
    try:
        if order is None or order.state is OrderState.REFUSED:
            if seen.fee is None:
                desk.warn("AWS does not show what was paid; the order holds the offer's fee of now")
            approval = replace(approval, offer=fitted(approval.offer, seen))
            return desk.journal.adopt(key, approval, seen=seen.to_json(), now=now)
        if order.state not in UNSETTLED:  # another process of this journal has written it down meanwhile
            return order
        return desk.journal.settle(
            order, OrderState.BOUGHT, now=now, detail="found with our mark", arn=seen.arn, fee=seen.fee
        )
    except ReservationTaken as other:
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"{seen.name} is order {other.order.key} already, so it cannot be order {key} too",
            f"berth show {other.order.key}",
            other.order.spending,
        ) from None
    except (OrderTaken, LostRace):
        return _still(desk, key, order)


def _pay_and_record(
    desk: Desk, buyer: Buyer, key: OrderKey, approval: Approval, answer: PlaceAnswer
) -> Purchase:
    client = buyer()  # before the intent: a door that does not open has spent nothing
    try:
        order = desk.journal.intend(
            key, approval,
            intent_id=desk.ids.hex(16), holder=desk.holders.me(), now=desk.clock.now(),
            gate=desk.gate,
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
    end = pay(client, desk.shop.pays, desk.shop.request(order), desk.shop.bought)
    if isinstance(end, str):
        try:
            order = desk.journal.settle(
                order, OrderState.BOUGHT, now=desk.clock.now(), detail=f"answered {end}", arn=end
            )
        except LostRace:  # somebody who looked meanwhile has found it
            order = _still(desk, key, order)
        return _bought(desk, order, How.BOUGHT)
    return _no_answer(desk, order, end, answer)


def _no_answer(desk: Desk, order: Order, refusal: Refusal, answer: PlaceAnswer) -> Purchase:
    certain = not refusal.may_have_happened and refusal.kind is not Kind.UNCLASSIFIED
    try:
        if certain and refusal.code not in desk.shop.taken:
            order = desk.journal.settle(order, OrderState.REFUSED, now=desk.clock.now(), detail=str(refusal))
            desk.tell_spending(order.spending)
            raise _refused(desk, order, refusal, answer)
        order = desk.journal.settle(order, OrderState.UNKNOWN, now=desk.clock.now(), detail=str(refusal))
    except LostRace:
        order = _still(desk, order.key, order)
    desk.warn(f"the paid call ended without a certain answer ({refusal}); looking for the reservation")
    known = _known(desk, order)
    if known is None:
        raise _refused(desk, _still(desk, order.key, order), refusal, answer)
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
    seen = order.seen or {}
    why = seen.get("message") or f"it is {seen.get('state', 'failed')}, and AWS gives no reason"
    return BerthError(
        ExitCode.DECISION_NEEDED,
        f"AWS failed the {NOUNS[order.offer.way]} of order {order.key}: {why}",
        f"berth buy {order.key.need}/{order.key.sequence + 1}#1 buys anew, as the next order",
        order.spending,
    )


def _refused(desk: Desk, order: Order, refusal: Refusal, answer: PlaceAnswer) -> BerthError:
    if refusal.code in desk.shop.gone:
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
