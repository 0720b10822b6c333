"""What a day more would cost, and whether to take all now or less now and an extension later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from berth.facts.price_reviews import PriceReview, next_review
from berth.planner.offers import Offer, hours_of
from berth.planner.plan import Choice
from berth.terms.money import Money


@dataclass(frozen=True, slots=True)
class Longer:
    """The same place and start for `more` time: `extra` is the difference of the totals, per day `a_day`."""

    choice: Choice
    more: timedelta
    extra: Money
    a_day: Money


@dataclass(frozen=True, slots=True)
class ExtendLater:
    """Less now and an extension later, against all now.

    `now` is what the shorter choice costs, `later` what the rest would cost at its hourly fee of today: an
    estimate, since an extension is priced when it is bought and promised by nobody.
    `saved_for_now` is what need not be decided yet. `review` is the announced review of prices that may come
    between, None: none is known.
    """

    shorter: Choice
    longer: Choice
    now: Money
    later: Money
    saved_for_now: Money
    review: PriceReview | None


def longer_ones(best: Choice, choices: Iterable[Choice]) -> tuple[Longer, ...]:
    """What the choices of the same place, start, type and count cost beyond `best`, shortest first."""
    found: list[Longer] = []
    for choice in _siblings(best, choices):
        more = choice.offer.paid_time - best.offer.paid_time
        extra = _difference(choice, best)
        if more > timedelta(0) and extra is not None:
            days = hours_of(more) / 24
            found.append(Longer(choice, more, extra, Money(extra.amount / days, extra.currency).rounded()))
    return tuple(sorted(found, key=lambda one: one.more))


def extend_later(choice: Choice, choices: Iterable[Choice], today: date) -> ExtendLater | None:
    """`choice` against the longest shorter one of the same place and start; None where there is none."""
    shorter = [
        c for c in _siblings(choice, choices)
        if c.offer.paid_time < choice.offer.paid_time and _difference(choice, c) is not None
    ]  # fmt: skip
    if not shorter:
        return None
    less = max(shorter, key=lambda c: c.offer.paid_time)
    assert less.cost.total is not None
    assert choice.cost.total is not None
    rest = choice.offer.paid_hours - less.offer.paid_hours
    hourly = less.cost.total.amount / less.offer.paid_hours
    later = Money(hourly * rest, less.cost.total.currency).rounded()
    saved = (choice.cost.total - less.cost.total).rounded()
    return ExtendLater(less, choice, less.cost.total, later, saved, next_review(choice.offer.way, today))


def _siblings(of: Choice, choices: Iterable[Choice]) -> Sequence[Choice]:
    return [choice for choice in choices if choice is not of and _place(choice.offer) == _place(of.offer)]


def _place(offer: Offer) -> tuple[object, ...]:
    return (
        offer.way, offer.region, offer.zones, offer.instance_type, offer.count, offer.platform,
        offer.paid_window.start,
    )  # fmt: skip


def _difference(longer: Choice, shorter: Choice) -> Money | None:
    one, other = longer.cost.total, shorter.cost.total
    return one - other if one is not None and other is not None and one.currency == other.currency else None
