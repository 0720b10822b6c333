"""Every offer that was seen, with its whole id, in as many lines as it takes: `berth plan --offers`."""

from __future__ import annotations

from collections.abc import Iterator

from berth.planner.offers import Offer
from berth.planner.phrases import HANG, hung, label, money_text, window_text
from berth.planner.plan import Plan
from berth.planner.preference import zones_without_subnet
from berth.terms.durations import clock_hours
from berth.terms.text import plain


def offers_text(plan: Plan) -> str:
    """All offers: those that fit by number, then the others with every reason against them."""
    lines: list[str] = []
    for choice in plan.choices:
        lines += _offer(f"#{choice.number}", choice.offer)
        lines += hung("needs a subnet") if zones_without_subnet(plan.need, choice.offer) else []
        lines += hung(choice.reasons[0], "  why") if choice.number <= 2 and choice.reasons else []
    for rejected in plan.rejected:
        lines += _offer("no", rejected.offer)
        lines += [line for reason in rejected.reasons for line in hung(reason, "  not")]
    if not lines:
        return "No offer was seen."
    counted = f"{len(plan.choices)} that fit, {len(plan.rejected)} that do not"
    return "\n".join([*lines, f"Offers: {counted}, seen {plan.made_at:%Y-%m-%d %H:%MZ}."])


def _offer(word: str, offer: Offer) -> Iterator[str]:
    """The id stands alone in its line, so that it can be copied whatever its length."""
    yield f"{word:<{HANG}}{plain(offer.offering_id or 'no id', 200)}"
    what = f"{offer.count} x {offer.instance_type}, {label(offer.way)}, {offer.region}"
    yield from hung(f"{what}, {money_text(offer.fee)}, usable {clock_hours(offer.usable_time)}")
    for segment in offer.segments:
        zone = segment.zone_id or segment.zone_name or "zone unknown"
        yield from hung(f"{plain(zone, 40)}  {window_text(segment.window, fixed=False)}")
