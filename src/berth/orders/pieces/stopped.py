"""A purchase of several pieces that stopped: what is bought, what is missing, what could stand in. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from berth.orders.order import Order, OrderKey, OrderState
from berth.orders.pieces.survey import Gone
from berth.orders.pieces.whole import Piece, spending_of
from berth.orders.wording import called
from berth.planner.offers import Offer
from berth.terms.instants import iso
from berth.terms.outcomes import BerthError, ExitCode, Spending, Spent

MOST = 3
"""How many stand-ins are told for a piece."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why buying a whole stopped. `orders` are those of its pieces that were bought, or are in doubt."""

    whole: OrderKey
    orders: Sequence[Order]
    gone: Sequence[Gone]


def stopped(at: Stopped, cause: BerthError | None) -> BerthError:
    """What a person must be told: exit 15 once anything is bought, else the code of what failed.

    While a piece is in doubt the code and the next step stay those of the doubt.
    """
    bought = [order for order in at.orders if order.state is OrderState.BOUGHT]
    lines = [_head(at, bought)]
    lines += [line for gone in at.gone for line in _gone_lines(gone)]
    lines += [f"  bought   {order.key}: {called(order)}, {order.attempt.fee}" for order in bought]
    if bought:
        lines.append("  what is bought stays bought and paid: it cannot be given back")
    spending = spending_of(at.whole, at.orders)
    if cause is not None and cause.exit_code is ExitCode.OUTCOME_UNKNOWN:
        return BerthError(cause.exit_code, "\n".join(lines), cause.next_step, _doubt(cause, spending))
    code = ExitCode.DECISION_NEEDED if bought else at.gone[0].exit_code
    return BerthError(code, "\n".join(lines), _next(at, bool(bought)), spending)


def _doubt(cause: BerthError, spending: Spending) -> Spending:
    return cause.spent if cause.spent.spent is Spent.NOT_KNOWN else spending


def _head(at: Stopped, bought: Sequence[Order]) -> str:
    missing = ", ".join(str(gone.piece.key) for gone in at.gone)
    if bought:
        return f"order {at.whole} is not whole: {missing} could not be bought, and nothing else was bought"
    return f"order {at.whole} cannot be bought whole, so nothing of it is bought: {missing}"


def _gone_lines(gone: Gone) -> list[str]:
    lines = [f"  missing  {piece_text(gone.piece)}", f"           {gone.why}"]
    lines += [
        f"  instead  {_offer_text(offer)}: {_price(gone.piece, offer)}" for offer in gone.instead[:MOST]
    ]
    if not gone.instead:
        lines.append("  instead  nothing else that would do is on sale there now")
    return lines


def piece_text(piece: Piece) -> str:
    """A piece in one line: its order, what, where, when, and what was agreed for it."""
    return f"{piece.key}: {_offer_text(piece.offer)}, {piece.offer.fee}"


def _offer_text(offer: Offer) -> str:
    window = offer.paid_window
    place = ", ".join(offer.zones)
    return f"{offer.count} x {offer.instance_type}, {place}, {iso(window.start)} to {iso(window.end)}"


def _price(piece: Piece, offer: Offer) -> str:
    fee = piece.offer.fee
    if fee is None or offer.fee is None or fee.currency != offer.fee.currency:
        return str(offer.fee or "price unknown")
    more = offer.fee - fee
    return f"{offer.fee} ({'+' if more.amount >= 0 else ''}{more})"


def _next(at: Stopped, bought: bool) -> str:
    handle = f"{at.whole}#best"
    if any(gone.instead for gone in at.gone):
        other = f"berth buy {handle} --accept-other buys what stands first under `instead`"
        return f"berth buy {handle} tries the missing piece again; {other}"
    if bought:
        return f"berth buy {handle} tries the missing piece again, and buys nothing twice"
    return "berth plan the need again, then decide"
