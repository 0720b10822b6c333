"""Which piece is bought first, which sums must be confirmed, and what could stand in for a piece. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from berth.orders.pieces.whole import Piece
from berth.planner.framework.limits import BLOCK_COUNT_MAX, PLAN_COUNTS
from berth.planner.offers import Offer, Query
from berth.terms.ways import Way
from berth.terms.window import Window

_DAY = timedelta(days=1)


def one_zone(pieces: Sequence[Piece]) -> tuple[str, ...] | None:
    """The zone that all pieces share: what works together stays together. None where they share none."""
    zones = {piece.offer.zones for piece in pieces}
    return zones.pop() if len(zones) == 1 else None


def stand_ins(
    approved: Offer, seen: Iterable[Offer], zones: tuple[str, ...] | None = None
) -> tuple[Offer, ...]:
    """What could be bought in place of an offer, cheapest first: as much of the same for all of its window.

    In `zones`, where they are given.

    Its own window and place at another price counts, the very offer does not; neither does an unknown price
    or one in another currency.
    """
    found = [
        offer
        for offer in seen
        if _serves(approved, offer)
        and zones in {None, offer.zones}
        and offer.fee is not None
        and approved.fee is not None
        and offer.fee.currency == approved.fee.currency
        and not (_same_place(approved, offer) and offer.fee == approved.fee)
    ]
    return tuple(sorted(found, key=_cheapest))


def _cheapest(offer: Offer) -> tuple[object, ...]:
    fee = offer.fee.amount if offer.fee else 0
    return (fee, offer.paid_window.start, offer.paid_window.end, offer.zones, offer.offering_id or "")


def _serves(approved: Offer, offer: Offer) -> bool:
    window, wanted = offer.paid_window, approved.paid_window
    return (
        offer.offering_id is not None
        and offer.way is approved.way
        and offer.region == approved.region
        and offer.instance_type == approved.instance_type
        and offer.count == approved.count
        and approved.target in offer.targets
        and offer.platform == approved.platform
        and len(offer.segments) == 1
        and window.start <= wanted.start
        and window.end >= wanted.end
    )


def _same_place(one: Offer, other: Offer) -> bool:
    return one.zones == other.zones and one.paid_window == other.paid_window


@dataclass(frozen=True, slots=True)
class Ranked:
    """A piece that is still to be bought, as a search shows it now, and what could stand in for it."""

    piece: Piece
    instead: tuple[Offer, ...] = ()


def scarcest_first(pieces: Iterable[Ranked]) -> tuple[Ranked, ...]:
    """The order of buying: fewest stand-ins first, then most instances, earliest start, lowest number.

    Should a purchase fail, it is the one that is hardest to replace, and as little as may be is paid by then.
    """
    return tuple(sorted(pieces, key=_scarcity))


def _scarcity(one: Ranked) -> tuple[object, ...]:
    offer = one.piece.offer
    return (len(one.instead), -offer.count, offer.paid_window.start, one.piece.number)


@dataclass(frozen=True, slots=True)
class Sum:
    """Pieces that are held at once in one zone, of one type: `count` together, all through `window`.

    `query` asks a search for as many at once, None where no search can be asked that.
    """

    numbers: tuple[int, ...]
    count: int
    zone: str
    window: Window
    query: Query | None


def sums(pieces: Sequence[Piece]) -> tuple[Sum, ...]:
    """The sums that two searches by themselves do not confirm: each may have seen the same instances.

    One for each largest set of pieces that overlap at some instant; the sets' windows are what they share.
    """
    found: dict[tuple[int, ...], Sum] = {}
    for here in _by_place(pieces):
        edges = sorted({window.start for piece in here for window in _held(piece)})
        for at in edges:
            together = [p for p in here if any(w.start <= at < w.end for w in _held(p))]
            if len(together) > 1:
                one = _sum(together, at)
                found.setdefault(one.numbers, one)
    largest = [one for one in found.values() if not any(set(one.numbers) < set(other) for other in found)]
    return tuple(sorted(largest, key=lambda one: one.numbers))


def _by_place(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Pieces by way, Region, type and zone; one of several zones counts for none but its own set."""
    places: dict[tuple[object, ...], list[Piece]] = {}
    for piece in pieces:
        offer = piece.offer
        places.setdefault((offer.way, offer.region, offer.instance_type, offer.zones), []).append(piece)
    return list(places.values())


def _held(piece: Piece) -> tuple[Window, ...]:
    return tuple(segment.window for segment in piece.offer.segments)


def _sum(together: Sequence[Piece], at: object) -> Sum:
    held = [w for p in together for w in _held(p) if w.start <= at < w.end]  # type: ignore[operator]
    window = Window(max(w.start for w in held), min(w.end for w in held))
    count = sum(piece.offer.count for piece in together)
    first = together[0].offer
    return Sum(
        tuple(sorted(piece.number for piece in together)),
        count,
        ", ".join(first.zones),
        window,
        _question(first, count, window),
    )


def _question(offer: Offer, count: int, window: Window) -> Query | None:
    """The search for the sum; None where AWS answers none: too many for one, or no length that is sold."""
    sold = PLAN_COUNTS if offer.way is Way.TRAINING_PLAN else range(1, BLOCK_COUNT_MAX + 1)
    enough = [number for number in sold if number >= count]
    if not enough or window.duration % _DAY or offer.starts_at_once:
        return None
    hours = window.duration // timedelta(hours=1)
    return replace(offer.query, count=enough[0], duration_hours=hours).narrowed_to(window)
