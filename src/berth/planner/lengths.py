"""What each duration of a range would cost: one line under the table of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from berth.planner.offers import Offer
from berth.planner.phrases import HANG, amount, length, money_text, wrapped
from berth.planner.plan import Plan
from berth.planner.preference import lasts
from berth.terms.money import Money

_NO_BREAK = "\N{NO-BREAK SPACE}"


def length_lines(plan: Plan, currency: str) -> list[str]:
    """The best choice of each duration with its number; what is over the budget; what nobody sells now.

    Empty where the need names one duration.
    """
    if not plan.need.is_range:
        return []
    best = {lasts(c.offer): c for c in reversed(plan.choices)}
    fits = [
        f"{length(span)} {amount(choice.cost.total, currency)} (#{choice.number})"
        for span, choice in sorted(best.items())
    ]
    over = [f"{length(span)} {money_text(fee)}" for span, fee in _over_budget(plan, set(best))]
    none = [length(span) for span in _not_on_sale(plan, set(best))]
    told = [_together(fits)] if fits else []
    told += [f"over the budget: {_together(over)}"] if over else []
    told += [f"nothing on sale: {_together(none)}"] if none else []
    lines: list[str] = []
    for said in told:
        lines += wrapped(f"{'' if lines else 'LASTS':<{HANG}}{said}", HANG)
    return [line.replace(_NO_BREAK, " ") for line in lines]


def _together(items: list[str]) -> str:
    """The items in a row, such that a line never ends within one."""
    return "; ".join(item.replace(" ", _NO_BREAK) for item in items)


def _over_budget(plan: Plan, fitting: set[timedelta]) -> list[tuple[timedelta, Money]]:
    """The cheapest of each duration against which the budget speaks, and nothing else."""
    found: dict[timedelta, Money] = {}
    for offer in _dear(plan):
        span, fee = lasts(offer), offer.fee
        if fee is None or span in fitting:
            continue
        seen = found.get(span)
        if seen is None or (seen.currency == fee.currency and fee < seen):
            found[span] = fee
    return sorted(found.items())


def _dear(plan: Plan) -> Iterator[Offer]:
    for rejected in plan.rejected:
        if len(rejected.reasons) == 1 and rejected.reasons[0].startswith("costs "):
            yield rejected.offer


def _not_on_sale(plan: Plan, fitting: set[timedelta]) -> list[timedelta]:
    """Durations that every place was asked for and answered in full, without an offer that lasts as long."""
    asked: dict[timedelta, bool] = {}
    for answer in plan.answers:
        if answer.question is not None:
            span = timedelta(hours=answer.question.duration_hours)
            asked[span] = asked.get(span, True) and answer.is_complete
    seen = fitting | {lasts(offer) for answer in plan.answers for offer in answer.offers}
    return sorted(span for span, in_full in asked.items() if in_full and span not in seen)
