"""True cost as lines of a plan: where the money goes, cost over use, a day more, extending later."""

from __future__ import annotations

from datetime import date

from berth.facts.instance_types import instance_type
from berth.planner.costs.breakdown import Breakdown, Share, breakdown
from berth.planner.costs.curves import Curves, Line, curves, sparkline
from berth.planner.costs.published import gap
from berth.planner.costs.what_if import ExtendLater, Longer, extend_later, longer_ones
from berth.planner.phrases import WIDTH, hours_minutes, hung, length, money_text, rate_text
from berth.planner.plan import Choice, Plan
from berth.terms.durations import clock_hours
from berth.terms.ways import Way

_LABELS = {Way.ON_DEMAND: "on-demand", Way.SAGEMAKER_ON_DEMAND: "on-demand", Way.SPOT: "Spot"}


def cost_lines(plan: Plan, choice: Choice) -> list[str]:
    """What stands under the best choice, beyond its total and break-even; nothing where no price is known."""
    today = plan.made_at.date()
    return [
        *_use_lines(plan, choice),
        *_parts_lines(plan, choice),
        *_more_lines(longer_ones(choice, plan.choices)),
        *_later_lines(extend_later(choice, plan.choices, today)),
        *_list_lines(choice, today),
    ]


def _use_lines(plan: Plan, choice: Choice) -> list[str]:
    """Cost over use as bars, for the first way of the offer's own Region whose price is known."""
    picture = curves(choice, plan.pay_as_you_go)
    if picture is None:
        return []
    region = choice.offer.region
    near = [line for line in picture.others if line.rate is not None and line.rate.region == region]
    return _bars(picture, near[0]) if near else []


def _bars(picture: Curves, line: Line) -> list[str]:
    dearest = line.at(picture.usable_hours)
    said = f"{_LABELS.get(line.way, line.way.value)}: 0 to {money_text(dearest)}"
    bars = sparkline(picture, line, columns=min(24, WIDTH - 7 - len(said) - 20))
    return [f"{'  use':<7}0 h {bars} {clock_hours(picture.usable)}  {said}"]


def _parts_lines(plan: Plan, choice: Choice) -> list[str]:
    kind = instance_type(choice.offer.instance_type)
    parts = breakdown(plan.need, choice.offer, choice.cost, kind.accelerator_count if kind else None)
    if parts is None:
        return []
    told = [f"{money_text(share.money)} {what}" for share, what in _shares(parts)]
    # What AWS takes back stands among the cares already; alone it is no news.
    lines = hung(", ".join(told), "   of") if len(told) > 1 else []
    if parts.per_used_hour is not None:
        lines += hung(
            f"so an hour of use costs {rate_text(parts.per_used_hour)} an instance{_per_chip(parts)}"
        )
    return lines


def _shares(parts: Breakdown) -> list[tuple[Share, str]]:
    """The parts that are worth a word: those that are not nothing."""
    named = [
        (parts.starting, "start-up"),
        (parts.idle, "idle"),
        (parts.overshoot, "longer than wanted"),
        (parts.taken_back, "taken back before the end"),
    ]
    return [
        (share, f"{what} ({hours_minutes(share.time)})")
        for share, what in named
        if share is not None and share.time
    ]


def _per_chip(parts: Breakdown) -> str:
    hourly = parts.per_used_accelerator_hour
    return f", {rate_text(hourly)} an accelerator" if hourly is not None else ""


def _more_lines(longer: tuple[Longer, ...]) -> list[str]:
    """The totals of the other lengths stand below the table; this is what a day makes."""
    return hung(f"a day more costs {money_text(longer[0].a_day)}", "  more") if longer else []


def _later_lines(later: ExtendLater | None) -> list[str]:
    if later is None:
        return []
    less, rest = later.shorter.offer.paid_time, later.longer.offer.paid_time - later.shorter.offer.paid_time
    said = (
        f"{length(less)} now ({money_text(later.now)}) and {length(rest)} as an extension, about"
        f" {money_text(later.later)} at today's rate: promised by nobody, and priced when you buy it"
    )
    review = later.review
    when = (
        f"; the next review of prices is announced for {review.said} ({review.seen})"
        if review
        else ("; when prices are reviewed next is not known")
    )
    return hung(said + when, "  or")


def _list_lines(choice: Choice, today: date) -> list[str]:
    found = gap(choice.offer)
    return hung(found.sentence(today), "  list") if found else []
