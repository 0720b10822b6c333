"""Which pieces a plan's best combination asks to be bought, and which order of its need they are. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from berth.orders.guard import check_count, check_target
from berth.orders.order import IN_DOUBT, Order, OrderState
from berth.orders.pieces.whole import Whole
from berth.planner.best.combination import Piece as Mixed
from berth.planner.offers import Offer
from berth.planner.plan import Plan
from berth.terms.outcomes import BerthError, ExitCode


@dataclass(frozen=True, slots=True)
class Mix:
    """What to buy, and what is paid by the hour on the day: that is told and never bought."""

    offers: tuple[Offer, ...]
    on_the_day: tuple[Mixed, ...] = ()


def mix_of(plan: Plan) -> Mix:
    """The offers of the plan's best combination. Raises BerthError where it has none that can be bought."""
    best = plan.combination.best if plan.combination is not None else None
    if best is None:
        trouble = f" ({plan.combination.trouble})" if plan.combination and plan.combination.trouble else ""
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"the plan of {plan.need.name} has no combination to buy{trouble}",
            f"berth buy {plan.need.handle(1)} buys one choice",
        )
    offers = tuple(_offer(plan, piece) for piece in best.pieces if piece.promised)
    if not offers:
        raise BerthError(ExitCode.BAD_REQUEST, "all of the combination is paid by the hour: nothing to buy")
    for offer in offers:
        check_target(plan, offer)
        check_count(offer)
    return Mix(offers, tuple(piece for piece in best.pieces if not piece.promised))


def _offer(plan: Plan, piece: Mixed) -> Offer:
    """The offer that a piece of the combination is."""
    seen = [choice.offer for choice in plan.choices] + [one.offer for one in plan.rejected]
    for offer in seen:
        held = tuple(segment.window for segment in offer.segments)
        same = (offer.region, offer.offering_id, held) == (piece.region, piece.offering_id, piece.paid)
        if same and piece.zone_id in {None, *(segment.zone_id for segment in offer.segments)}:
            return _priced(offer, piece)
    raise BerthError(
        ExitCode.BAD_REQUEST,
        f"the plan of {plan.need.name} does not hold the offer {piece.offering_id} of its combination",
        "berth plan the need again",
    )


def _priced(offer: Offer, piece: Mixed) -> Offer:
    if offer.fee is None or offer.count != piece.count:
        raise BerthError(
            ExitCode.BAD_REQUEST, f"the offer {offer.offering_id} cannot be bought as the combination has it"
        )
    return offer


def sequence_of_whole(
    orders: Sequence[Order], wholes: Sequence[Whole], *, again: bool, asked: int | None
) -> int:
    """Which order of a need several pieces are bought as: one to go on with, or the next.

    `orders` and `wholes` are all of the need. A next one exists only when somebody asks, or when the latest
    is of one reservation and bought nothing. As with orders of one, `again` asks for a second one and for
    no more. Raises BerthError otherwise.
    """
    single = {order.key.sequence: order for order in orders if not order.key.piece}
    several = {whole.key.sequence for whole in wholes} | {o.key.sequence for o in orders if o.key.piece}
    latest = max((*single, *several), default=0)
    if asked is not None:
        return _asked(asked, latest, several)
    if not latest:
        return 1
    if latest in several and not (again and latest == 1):
        return latest
    if again or single[latest].state in {OrderState.REFUSED, OrderState.FAILED}:
        return latest + 1
    order = single[latest]
    doubt = "" if order.state not in IN_DOUBT else ", and its outcome is not known"
    raise BerthError(
        ExitCode.DECISION_NEEDED,
        f"order {order.key} is {order.state} already, as one reservation{doubt}; nothing was bought",
        f"berth show {order.key}, or --again to buy the pieces beside it",
        order.spending,
    )


def _asked(asked: int, latest: int, several: set[int]) -> int:
    if asked in several or asked == latest + 1:
        return asked
    raise BerthError(
        ExitCode.BAD_REQUEST,
        f"order {asked} of the need is not one of several pieces that can be bought now",
        "berth show",
    )


def check_single(
    need: str, orders: Sequence[Order], wholes: Sequence[Whole], *, again: bool, asked: int | None
) -> int | None:
    """The number of an order of one reservation after one of several pieces; None: the latest is none such.

    Raises BerthError where pieces of the latest are bought and nobody asked for one more.
    """
    several = [whole.key.sequence for whole in wholes] + [o.key.sequence for o in orders if o.key.piece]
    latest = max(several, default=0)
    if latest <= max((order.key.sequence for order in orders if not order.key.piece), default=0):
        return None
    bought = [o for o in orders if o.key.piece and o.key.sequence == latest and o.state in _PAID]
    if asked == latest + 1 or (asked is None and (again or not bought)):
        return latest + 1
    raise BerthError(
        ExitCode.DECISION_NEEDED,
        f"order {latest} of {need} is one of several pieces; nothing was bought beside it",
        f"berth buy {need}/{latest}#best goes on with it, berth buy {need}/{latest + 1}#1 buys one more",
    )


_PAID = frozenset({OrderState.BOUGHT, OrderState.DISPUTED, *IN_DOUBT})
