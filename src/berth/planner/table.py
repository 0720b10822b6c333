"""The table of a plan: what can be bought, what is paid as one goes, and where the prices come from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from berth.facts.instance_types import instance_type
from berth.planner.cost import PayAsYouGo
from berth.planner.need import Need
from berth.planner.phrases import WIDTH, age, amount, label, place, rate_text, window_text, wrapped
from berth.planner.plan import Choice, Plan
from berth.planner.preference import needs_opt_in, zones_without_subnet
from berth.terms.durations import clock_hours
from berth.terms.text import plain
from berth.terms.ways import Target, Way

MOST_ROWS = 10
# Right edges of the numeric columns.
_USABLE, _TOTAL, _HOURLY = 58, 72, WIDTH
_WEEK = timedelta(days=7)  # a weekday says which day it is, within one
_PROMISES = {
    Way.SPOT: ("may end on 2 min notice", "2 min notice"),
    Way.ODCR: ("if granted, idle paid", "idle paid"),
}
_NO_PROMISE = ("on the day, no promise", "no promise")


def table(plan: Plan) -> list[str]:
    """The rows, best first; more than ten choices are counted and left to --json."""
    lines = pay_lines(plan)
    if not plan.choices and not lines:
        return []
    currency = currency_of(plan)
    kind = instance_type(plan.need.instance_type)
    per = "/GPU-H" if kind and kind.vendor == "NVIDIA" else "/ACC-H"
    where = "ZONE ID" if plan.need.target is Target.INSTANCES else "PLACE"
    rows = [_columns(f"{'#':<3}{'WAY':<15}{where:<10}WINDOW UTC", "USABLE", f"TOTAL {currency}", per)]
    shown = plan.choices[:MOST_ROWS]
    apart = [choice for choice in shown if needs_opt_in(choice.offer)]
    rows += _group([choice for choice in shown if choice not in apart], plan.need, currency)
    if apart:
        rows.append("   in Local Zones, which need an opt-in and local subnets (--zones regional):")
    rows += _group(apart, plan.need, currency)
    if len(plan.choices) > MOST_ROWS:
        rows.append(f"   and {len(plan.choices) - MOST_ROWS} more that fit, in --json")
    if lines and not plan.choices and len(plan.need.types) > 1:
        rows.append(f"   {lines[0].count} x {plan.need.instance_type}:")
    return rows + [
        row for number, line in enumerate(lines, start=1) for row in _pay_rows(line, number, currency)
    ]


def pay_lines(plan: Plan) -> tuple[PayAsYouGo, ...]:
    """The lines without reservation that are shown: for each way that of the best choice's Region and the
    cheapest, which may be the same."""
    home = plan.best.offer.region if plan.best else plan.need.regions[0] if plan.need.regions else ""
    shown: list[PayAsYouGo] = []
    kind = plan.best.offer.instance_type if plan.best else plan.need.instance_type
    of_kind = [line for line in plan.pay_as_you_go if (line.rate.instance_type or kind) == kind]
    lead = currency_of(plan)
    for way in dict.fromkeys(line.rate.way for line in of_kind):
        # Known totals come first, and the cheapest of the Region or of all is what is compared.
        lines = sorted((p for p in of_kind if p.rate.way is way), key=lambda p: _cheapest(p, lead))
        here = [line for line in lines if line.rate.region == home]
        shown += here[:1] or lines[:1]
        if here and lines[0].total is not None and lines[0] != here[0] and _cheaper(lines[0], here[0]):
            shown.append(lines[0])
    return tuple(shown)


def notes(plan: Plan) -> list[str]:
    """The footnotes of the table: each price with its age."""
    said: list[str] = []
    for number, line in enumerate(pay_lines(plan), start=1):
        said += wrapped(f"[{number}] {_rate_note(line, plan.made_at.date())}", hang=4)
    return said


def note_of(plan: Plan, way: Way, region: str) -> str:
    """` [2]` where the table's second line prices that way in that Region, '' where none does."""
    for number, line in enumerate(pay_lines(plan), start=1):
        if line.rate.way is way and line.rate.region == region:
            return f" [{number}]"
    return ""


def _cheapest(line: PayAsYouGo, lead: str) -> tuple[object, ...]:
    """Those in the currency that leads come first: amounts in two are not compared."""
    total = line.total
    if total is None:
        return (True, True, "", 0, line.rate.region)
    return (False, total.currency != lead, total.currency, total.amount, line.rate.region)


def _cheaper(one: PayAsYouGo, other: PayAsYouGo) -> bool:
    if one.total is None or other.total is None:
        return one.total is not None
    return one.total.currency == other.total.currency and one.total < other.total


def _group(choices: Sequence[Choice], need: Need, currency: str) -> list[str]:
    """Rows, under a line that names type and count where several would do and it changes."""
    several = len(need.types) > 1 or need.count_wanted
    rows: list[str] = []
    named = ""
    for choice in choices:
        name = f"   {choice.offer.count} x {choice.offer.instance_type}:"
        if several and name != named:
            rows.append(name)
            named = name
        rows += _choice_rows(choice, need, currency)
    return rows


def _choice_rows(choice: Choice, need: Need, currency: str) -> list[str]:
    offer, cost = choice.offer, choice.cost
    window = window_text(offer.paid_window, fixed=need.start is not None and offer.paid_time <= _WEEK)
    left = f"{choice.number:<3}{label(offer.way):<15}{place(offer) + ' ':<10}{window}"
    total = amount(cost.total, currency)
    cells = (clock_hours(cost.usable), total, amount(cost.per_accelerator_hour, currency, 3))
    rows = [_columns(left, *cells)]
    if len(rows[0]) > WIDTH:  # a long zone id stands in a line of its own
        rows = [left.removesuffix(window).rstrip(), _columns(f"{'':<28}{window}", *cells)]
    if len(rows[-1]) > WIDTH:  # and so do large sums in a currency that is not the head's
        rows = [left, _columns("", *cells)]
    if zones_without_subnet(need, offer):
        rows.append(f"{'':<3}needs a subnet")
    for segment in offer.segments if len(offer.segments) > 1 else ():
        where = segment.zone_id or segment.zone_name or "zone unknown"
        rows.append(f"{'':<18}{where + ' ':<10}{window_text(segment.window, fixed=False)}")
    return rows


def _pay_rows(line: PayAsYouGo, number: int, currency: str) -> list[str]:
    where = plain(line.rate.zone_id or line.rate.region, 16)
    left = f"{'-':<3}{label(line.rate.way):<15}{where + ' ':<10}"
    total = f"{amount(line.total, currency)} [{number}]"
    cells = (clock_hours(line.span), total, amount(line.per_accelerator_hour, currency, 3))
    whole, short = _PROMISES.get(line.rate.way, _NO_PROMISE)
    row = _columns(left + whole, *cells)
    row = row if len(row) <= WIDTH else _columns(left + short, *cells)
    return [row] if len(row) <= WIDTH else [left + whole, _columns("", *cells)]


def _columns(left: str, usable: str, total: str, hourly: str) -> str:
    """The cells right-aligned at their edges; a wide cell moves its neighbours as far as it must."""
    total_edge = min(_TOTAL, _HOURLY - len(hourly) - 1)
    usable_edge = min(_USABLE, total_edge - len(total) - 1)
    line = left
    for cell, edge in ((usable, usable_edge), (total, total_edge), (hourly, _HOURLY)):
        line = line.ljust(max(len(line) + 1, edge - len(cell))) + cell
    return line


def currency_of(plan: Plan) -> str:
    """The currency that the table's head names: that of the first known total."""
    known = [c.cost.total for c in plan.choices] + [p.total for p in plan.pay_as_you_go]
    return next((m.currency for m in known if m is not None), "USD")


_USED_OR_IDLE = {Way.ODCR: ", used or idle"}


def _rate_note(line: PayAsYouGo, today: date) -> str:
    rate = line.rate
    if rate.hourly is None:
        why = f" ({plain(rate.note, 120)})" if rate.note else ""
        return f"no {rate.component} price of {plain(rate.region)} is known: not cheap, unknown{why}"
    told = [f"{rate_text(rate.hourly)}/h {rate.component}{_USED_OR_IDLE.get(rate.way, '')}"]
    if rate.agreed:
        told.append(rate.agreed)
        told.append(f"{rate_text(rate.listed)}/h by the list" if rate.listed else "no list price known")
    if rate.live:
        told.append(f"live, {plain(rate.source, 40)}")
    elif rate.as_of is not None:
        told.append(f"seen {rate.as_of.isoformat()} ({age(rate.as_of, today)} old)")
    if rate.region_assumed:
        told.append("Region assumed")
    return ", ".join(told)
