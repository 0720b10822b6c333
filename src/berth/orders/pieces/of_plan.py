"""Which pieces a plan's best combination asks to be bought, and which order of its need they are. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from berth.orders.guard import check_count, check_target
from berth.orders.order import IN_DOUBT, Order, OrderState
from berth.orders.pieces.whole import Whole
from berth.planner.best.combination import Piece as Mixed
from berth.planner.need_words import beside_text
from berth.planner.offers import Offer
from berth.planner.part import Part
from berth.planner.plan import Plan
from berth.terms.outcomes import BerthError, ExitCode


@dataclass(frozen=True, slots=True)
class Mix:
    """What to buy, and what is paid by the hour on the day: that is told and never bought.

    `beside` are the parts that are not held ahead, each in a sentence; `cares` what to mind.
    """

    offers: tuple[Offer, ...]
    on_the_day: tuple[Mixed, ...] = ()
    beside: tuple[str, ...] = ()
    cares: tuple[str, ...] = ()


def parts_to_add(plan: Plan) -> tuple[Part, ...]:
    """The further parts that are held ahead and that the plan's combination does not hold already."""
    mix = plan.combination
    beside = (part for part in plan.need.beside if part.reserve)
    return tuple(p for p in beside if mix is None or mix.best is None or p.name in mix.left_out)


def mix_of(plan: Plan, parts: Sequence[Plan] = ()) -> Mix:
    """What a need's best combination asks to be bought, with all further parts that are held ahead.

    `parts` are the plans of `parts_to_add`. Of a plan without a combination its first choice is a piece; of a
    part's choices the first that is where the planned part is, else the first. Raises BerthError where that
    is not several pieces.
    """
    offers, day = _pieces_of(plan, ())
    zones = offers[0].zones if offers else ()
    cares = []
    for part in parts:
        found, more = _pieces_of(part, zones)
        if not found:
            raise _nothing(part)
        strange = sorted({zone for offer in found for zone in offer.zones} - set(zones))
        if strange and zones:
            cares.append(f"{part.need.part_name} is in {', '.join(strange)}, not in {', '.join(zones)}")
        offers, day = (*offers, *found), (*day, *more)
    mixed = plan.combination is not None and plan.combination.best is not None
    if len(offers) < 2 and not (offers and mixed):  # beside hours on the day, one purchase is a piece too
        raise _nothing(plan) if not offers else _single(plan)
    beside = tuple(beside_text(part, zones, plan.need.name) for part in plan.need.beside if not part.reserve)
    return Mix(offers, day, beside, tuple(cares))


def _pieces_of(plan: Plan, zones: Sequence[str]) -> tuple[tuple[Offer, ...], tuple[Mixed, ...]]:
    """The offers of the best combination, or the first choice, in `zones` where there is one there."""
    best = plan.combination.best if plan.combination is not None else None
    if best is not None:
        offers = tuple(_offer(plan, piece) for piece in best.pieces if piece.promised)
        day = tuple(piece for piece in best.pieces if not piece.promised)
    else:
        priced = [choice.offer for choice in plan.choices if choice.cost.fee is not None]
        near = [offer for offer in priced if zones and set(offer.zones) <= set(zones)]
        offers, day = tuple((near or priced)[:1]), ()
    for offer in offers:
        _check_targets(plan, offer)
        check_count(offer)
    return offers, day


def _check_targets(plan: Plan, offer: Offer) -> None:
    """Whether the offer serves one of the parts: a combination holds those beside the planned one too."""
    if not {part.target.value for part in plan.need.beside if part.reserve} & set(offer.targets):
        check_target(plan, offer)


def _nothing(plan: Plan) -> BerthError:
    trouble = plan.combination.trouble if plan.combination is not None else ""
    return BerthError(
        ExitCode.BAD_REQUEST,
        f"the plan of {plan.need.name} has nothing that can be bought ahead"
        f"{f' ({trouble})' if trouble else ''}",
        "berth plan the need again",
    )


def _single(plan: Plan) -> BerthError:
    return BerthError(
        ExitCode.BAD_REQUEST,
        f"the plan of {plan.need.name} has no combination: one purchase covers what is bought ahead",
        f"berth buy {plan.need.handle(1)}",
    )


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
