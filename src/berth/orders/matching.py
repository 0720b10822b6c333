"""Is a fresh offer the one that was approved? Pure: design of buying, step 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from berth.planner.offers import Offer, Query, Segment
from berth.terms.instants import iso
from berth.terms.money import Money

LATER_START = timedelta(minutes=30)
"""How much later than approved an immediate offer may start: as long as AWS itself takes to begin one."""
_CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Match:
    """`offer` may be bought in place of the approved one; when it is None, `reason` says why nothing may.

    `moved` is the offer of the same place and time whose price differs, None when the offer is gone.
    """

    offer: Offer | None
    reason: str = ""
    moved: Offer | None = None


def narrowed(approved: Offer, now: datetime, shortest: timedelta) -> Query:
    """The approved offer's own query, narrowed to its window as far as AWS's bounds allow at `now`.

    `shortest` is the least span from start to end that the search takes.
    """
    query = approved.query.narrowed_to(approved.paid_window)
    if approved.starts_at_once:
        query = replace(query, start_after=None)
    asked = askable(query, now, shortest)
    if asked.end_before is None:
        asked = askable(replace(query, end_before=approved.query.end_before), now, shortest)
    return asked


def askable(query: Query, now: datetime, shortest: timedelta) -> Query:
    """The query with those of its bounds that AWS takes at `now`.

    A start in the past is refused, and so is an end nearer than `shortest` to the start, or to `now`. Without
    a bound AWS searches from now, or without end: then it shows more than was asked, and never less.
    """
    start, end = query.start_after, query.end_before
    if start is not None and start <= now:
        start = None
    if end is not None and end < (start or now) + shortest:
        end = None
    return replace(query, start_after=start, end_before=end)


def in_time(query: Query, offer: Offer) -> bool:
    """Whether the offer ends as early as the query wants; a search without that bound shows later ones."""
    return query.end_before is None or offer.paid_window.end <= query.end_before


def match(approved: Offer, fresh: Sequence[Offer]) -> Match:
    """Find among `fresh` the offer that is the approved one."""
    same = [offer for offer in fresh if offer.offering_id and _same_capacity(approved, offer)]
    if not same:
        return Match(None, "the offer is gone")
    fitting = [offer for offer in same if not _price_moved(approved, offer)]
    if fitting:
        return Match(fitting[0])
    return Match(None, _price_moved(approved, same[0]), same[0])


def alternatives(approved: Offer, fresh: Sequence[Offer], most: int = 3) -> list[str]:
    """What could be had instead, cheapest first, one line each with the difference in price.

    Only what ends as early as the approved offer's own question wanted it to.
    """
    others = [
        offer
        for offer in fresh
        if offer.fee is not None and approved.target in offer.targets and in_time(approved.query, offer)
    ]
    others.sort(key=lambda offer: (offer.fee.amount if offer.fee else 0, offer.paid_window.start))
    return [_line(approved.fee, offer) for offer in others[:most]]


def _line(approved: Money | None, offer: Offer) -> str:
    window = offer.paid_window
    text = f"{iso(window.start)} to {iso(window.end)}, {', '.join(offer.zones)}: {offer.fee}"
    if approved is None or offer.fee is None or approved.currency != offer.fee.currency:
        return text
    difference = offer.fee - approved
    sign = "+" if difference.amount >= 0 else ""
    return f"{text} ({sign}{difference})"


def _same_capacity(approved: Offer, fresh: Offer) -> bool:
    alike = (
        fresh.way is approved.way
        and fresh.region == approved.region
        and fresh.instance_type == approved.instance_type
        and fresh.count == approved.count
        and approved.target in fresh.targets
        and fresh.platform == approved.platform
        and len(fresh.segments) == len(approved.segments)
    )
    if not alike:
        return False
    pairs = zip(approved.segments, fresh.segments, strict=True)
    return all(_same_segment(approved, number, old, new) for number, (old, new) in enumerate(pairs))


def _same_segment(approved: Offer, number: int, old: Segment, new: Segment) -> bool:
    if old.zone_id is None or new.zone_id is None:
        same_zone = old.zone_id == new.zone_id and old.zone_name == new.zone_name
    else:
        same_zone = old.zone_id == new.zone_id
    if approved.starts_at_once and number == 0:
        same_start = new.window.start <= old.window.start + LATER_START
    else:
        same_start = new.window.start == old.window.start
    return (
        same_zone
        and same_start
        and new.window.end == old.window.end
        and new.count == old.count
        and new.instance_type == old.instance_type
    )


def _price_moved(approved: Offer, fresh: Offer) -> str:
    """Why the fresh price is not the approved one; empty when it is."""
    if fresh.fee is None or approved.fee is None:
        return f"the price is not known: approved {approved.fee or 'unknown'}, now {fresh.fee or 'unknown'}"
    said = f"the price moved: {approved.fee} to {fresh.fee}"
    if fresh.fee.currency != approved.fee.currency:
        return said
    if not approved.starts_at_once:
        return "" if fresh.fee == approved.fee else said
    if fresh.fee > approved.fee:
        return said
    # A fee is rounded to the cent, so an equal hourly rate gives the fee of other hours to within one cent.
    expected = approved.fee.amount * fresh.paid_hours / approved.paid_hours
    if abs(fresh.fee.amount - expected) > _CENT:
        then = f"{approved.fee} for {approved.paid_hours:.2f} h"
        return f"the hourly rate moved: {then} to {fresh.fee} for {fresh.paid_hours:.2f} h"
    return ""
