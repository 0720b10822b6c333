"""The six ways side by side, on the three axes and in money: `berth plan --compare`."""

from __future__ import annotations

from collections.abc import Iterator

from berth.planner.framework.ways import AXES
from berth.planner.phrases import hung, label, money_text, wrapped
from berth.planner.plan import Choice, Plan
from berth.planner.table import pay_lines
from berth.planner.verdicts import WayVerdict
from berth.terms.durations import clock_hours
from berth.terms.ways import Way

_WIDE = 10


def compare_text(plan: Plan) -> str:
    """Each way as a paragraph: whether it fits, what it promises, how it is paid, where it runs, its cost."""
    return "\n".join(line for verdict in plan.verdicts for line in (*_way(plan, verdict), "")).rstrip()


def _way(plan: Plan, verdict: WayVerdict) -> Iterator[str]:
    axes, terms = AXES[verdict.way], verdict.terms
    word = "FITS" if verdict.fits else "NO"
    yield from hung(f"{label(verdict.way)}{'' if verdict.fits else f': {verdict.why_not}'}", word)
    told = (
        ("promise", axes.availability), ("paid", axes.cost_model), ("where", axes.environment),
        ("cancel", terms.can_cancel), ("end", terms.at_the_end),
    )  # fmt: skip
    for name, sentence in told:
        yield from wrapped(f"  {name:<8}{sentence}", _WIDE)
    if verdict.fits:
        yield from wrapped(f"  {'costs':<8}{_costs(plan, verdict.way)}", _WIDE)


def _costs(plan: Plan, way: Way) -> str:
    best = next((choice for choice in plan.choices if choice.offer.way is way), None)
    if best is not None:
        return _of_choice(plan, best)
    line = next((line for line in pay_lines(plan) if line.rate.way is way), None)
    if line is None:
        return "not known: nothing was seen"
    if line.total is None:
        return f"not known: no price of {line.rate.region}"
    seen = "live" if line.rate.live else f"list price of {line.rate.as_of}" if line.rate.as_of else "undated"
    span = clock_hours(line.span)
    use = f"{span}, used or idle" if way is Way.ODCR else f"{span} of use"
    agreed = f", {line.rate.agreed}" if line.rate.agreed else ""
    return f"{money_text(line.total)} for {use}, {line.rate.region} ({seen}{agreed})"


def _of_choice(plan: Plan, best: Choice) -> str:
    handle = plan.need.handle(best.number)
    if best.cost.total is None:
        return f"not known: {best.cost.doubt} ({handle})"
    usable = clock_hours(best.cost.usable)
    return f"{money_text(best.cost.total)}, used or not, for {usable} usable ({handle})"
