"""When AWS has said that it will look at reservation prices again.

Source: EC2 Capacity Blocks pricing page, seen 2026-10: prices are reviewed about quarterly, the next update
in January 2027. A block is charged at the price of the day of its purchase, even if it starts after an
update. For training plans nothing is announced.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from berth.terms.ways import Way


@dataclass(frozen=True, slots=True)
class PriceReview:
    """An announced review: when, in the words of the page; over by `over_by`; `seen`: page and month."""

    way: Way
    said: str
    over_by: date
    seen: str


_ANNOUNCED = (
    PriceReview(
        Way.CAPACITY_BLOCK, "January 2027", date(2027, 2, 1), "Capacity Blocks pricing page, 2026-10"
    ),
)


def next_review(way: Way, today: date) -> PriceReview | None:
    """The next announced review of the way's prices; None: none is known, which is not "none will come"."""
    return next((r for r in _ANNOUNCED if r.way is way and today < r.over_by), None)
