"""Before the first payment: every piece that is missing is searched again, and so are the sums of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from berth.orders.desk import Desk
from berth.orders.matching import askable, in_time
from berth.orders.pieces.scarcity import Ranked, Sum, stand_ins, sums
from berth.orders.pieces.whole import Piece
from berth.orders.purchase import Buyer, fresh_offer
from berth.planner.offers import Offer, Query
from berth.terms.outcomes import BerthError, ExitCode


@dataclass(frozen=True, slots=True)
class Seat:
    """What pieces of one account, way and Region are bought with: a desk, and the one door that pays."""

    desk: Desk
    buyer: Buyer


Seats = Callable[[Piece], Seat]
"""The seat of a piece. Raises BerthError where its account's door does not open."""


@dataclass(frozen=True, slots=True)
class Gone:
    """A piece that cannot be had as agreed: why, the exit code of that, and what could stand in for it."""

    piece: Piece
    why: str
    exit_code: ExitCode
    instead: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """What searches show now: pieces that are there, as they are there, and pieces that are not.

    `unconfirmed` says of each sum that no search could be asked for why.
    """

    there: tuple[Ranked, ...]
    gone: tuple[Gone, ...]
    unconfirmed: tuple[str, ...] = ()


def survey(pieces: Sequence[Piece], seats: Seats, zones: tuple[str, ...] | None = None) -> Survey:
    """Search for each of the pieces again, and for the sums of those that overlap. Pays nothing.

    `zones`: where what stands in for a piece has to be (`scarcity.one_zone`); None: anywhere in its Region.
    """
    there: list[Ranked] = []
    gone: list[Gone] = []
    for piece in pieces:
        found = look_again(piece, seats(piece).desk, zones)
        if isinstance(found, Gone):
            gone.append(found)
        else:
            there.append(found)
    if gone:
        return Survey(tuple(there), tuple(gone))
    by_number = {ranked.piece.number: ranked for ranked in there}
    unconfirmed: list[str] = []
    for one in sums([ranked.piece for ranked in there]):
        said = _confirmed(one, by_number, seats)
        if isinstance(said, Gone):
            gone.append(said)
        elif said:
            unconfirmed.append(said)
    return Survey(tuple(there), tuple(gone), tuple(unconfirmed))


def look_again(piece: Piece, desk: Desk, zones: tuple[str, ...] | None) -> Ranked | Gone:
    """The piece as a new search shows it, with what could stand in for it."""
    wide = desk.shop.search(_asked_now(desk, piece.offer.query))
    in_bounds = [offer for offer in wide.offers if in_time(piece.offer.query, offer)]
    instead = stand_ins(piece.offer, in_bounds, zones)
    try:
        offer, _ = fresh_offer(desk, piece.offer)
    except BerthError as problem:
        return Gone(piece, reason_of(problem), problem.exit_code, instead)
    others = tuple(one for one in instead if one.offering_id != offer.offering_id)
    return Ranked(replace(piece, offer=offer), others)


def _asked_now(desk: Desk, query: Query) -> Query:
    return askable(query, desk.clock.now(), desk.shop.shortest_search(query))


def reason_of(problem: BerthError) -> str:
    """The first clause of what a purchase of one says: the rest is told for the whole."""
    first = problem.message.splitlines()[0].partition("; nothing else")[0]
    return first.removesuffix(": nothing is bought")


def _confirmed(one: Sum, pieces: Mapping[int, Ranked], seats: Seats) -> Gone | str:
    """'' when a search for the sum found it; why it is not known; or that it is not there."""
    named = " and ".join(str(number) for number in one.numbers)
    if one.query is None:
        return (
            f"pieces {named} are {one.count} at once in {one.zone}, and no search can be asked for as many:"
            " each is searched again right before it is paid"
        )
    first = pieces[one.numbers[0]]
    desk = seats(first.piece).desk
    answer = desk.shop.search(_asked_now(desk, one.query))
    wanted = first.piece.offer
    enough = any(
        offer.zones == wanted.zones
        and offer.count >= one.count
        and offer.instance_type == wanted.instance_type
        and offer.paid_window.start <= one.window.start
        and offer.paid_window.end >= one.window.end
        for offer in answer.offers
    )
    if enough:
        return ""
    if not answer.is_complete or one.query.count != one.count:
        why = answer.detail or f"a search for {one.query.count} finds none"
        return f"whether pieces {named}, {one.count} at once in {one.zone}, can be had together: {why}"
    last = max((pieces[number] for number in one.numbers), key=lambda ranked: ranked.piece.number)
    return Gone(
        last.piece,
        f"pieces {named} are {one.count} at once in {one.zone}, and a search for {one.count} finds none",
        ExitCode.DECISION_NEEDED,
        last.instead,
    )
