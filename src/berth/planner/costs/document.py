"""True cost of a plan's best choice as plain values, for `--json`."""

from __future__ import annotations

from typing import Any

from berth.facts.instance_types import instance_type
from berth.planner.costs.breakdown import Breakdown, Share, breakdown
from berth.planner.costs.curves import curves
from berth.planner.costs.published import gap
from berth.planner.costs.what_if import extend_later, longer_ones
from berth.planner.offers import money_json
from berth.planner.plan import Plan


def true_cost_json(plan: Plan) -> dict[str, Any] | None:
    """Parts, meetings with other ways, longer ones, published price; None without a best choice."""
    best = plan.best
    if best is None:
        return None
    kind = instance_type(best.offer.instance_type)
    parts = breakdown(plan.need, best.offer, best.cost, kind.accelerator_count if kind else None)
    later = extend_later(best, plan.choices, plan.made_at.date())
    found = gap(best.offer)
    return {
        "choice": best.number,
        "parts": None if parts is None else _parts(parts),
        "meets": _meetings(plan),
        "longer": [
            {"choice": one.choice.number, "more_s": int(one.more.total_seconds()),
             "extra": money_json(one.extra), "a_day": money_json(one.a_day)}
            for one in longer_ones(best, plan.choices)
        ],
        "extend_later": None if later is None else {
            "shorter": later.shorter.number, "now": money_json(later.now), "later": money_json(later.later),
            "next_price_review": later.review.said if later.review else None,
        },
        "published": None if found is None else {
            "hourly": money_json(found.published.money), "as_of": found.published.as_of.isoformat(),
            "source": found.published.source, "live_hourly": money_json(found.live),
            "percent_below_live": f"{found.percent}",
        },
    }  # fmt: skip


def _parts(parts: Breakdown) -> dict[str, Any]:
    return {
        "taken_back": _share(parts.taken_back),
        "overshoot": _share(parts.overshoot),
        "start_up": _share(parts.starting),
        "idle": _share(parts.idle),
        "per_used_instance_hour": money_json(parts.per_used_hour),
        "per_used_accelerator_hour": money_json(parts.per_used_accelerator_hour),
    }


def _share(share: Share | None) -> dict[str, Any] | None:
    """None: not known, since the need does not say."""
    if share is None:
        return None
    return {"time_s": int(share.time.total_seconds()), "money": money_json(share.money)}


def _meetings(plan: Plan) -> list[dict[str, Any]]:
    picture = curves(plan.best, plan.pay_as_you_go) if plan.best else None
    if picture is None:
        return []
    return [
        {"way": one.way.value, "region": one.region,
         "after_s": None if one.after is None else int(one.after.total_seconds())}
        for one in picture.meetings
    ]  # fmt: skip
