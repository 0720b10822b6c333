"""A plan as text of 80 columns: what fits, why, what it costs, what to mind, what to do next."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from berth.facts.instance_types import instance_type
from berth.planner.choose import places_asked, unanswered
from berth.planner.cost import PayAsYouGo
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome
from berth.planner.plan import Choice, Plan
from berth.planner.verdicts import WayVerdict
from berth.terms.durations import clock_hours, spoken
from berth.terms.money import Money
from berth.terms.text import plain
from berth.terms.ways import Target, Way
from berth.terms.window import Window

WIDTH = 80
_HANG = 7
# Right edges of the table's numeric columns.
_USABLE, _TOTAL, _HOURLY = 58, 72, 80
_WAY_LABELS = {Way.SAGEMAKER_ON_DEMAND: "sagemaker-od"}
_OUTCOMES = {
    PlaceOutcome.NONE_ON_SALE: "none on sale",
    PlaceOutcome.NOT_SOLD_HERE: "not sold here",
    PlaceOutcome.NOT_ALLOWED: "not allowed",
    PlaceOutcome.NO_QUOTA: "no quota",
    PlaceOutcome.THROTTLED: "throttled",
    PlaceOutcome.FAILED: "failed",
    PlaceOutcome.NOT_ASKED: "not asked",
}


def plan_text(plan: Plan, header: str) -> str:
    """The whole answer of `berth plan`. `header` is the line that says who and where."""
    lines = [*header.splitlines(), *_need_lines(plan), ""]
    best = plan.best
    lines += _best_lines(plan, best) if best else _nothing_lines(plan)
    lines += _table(plan)
    lines += _no_lines(plan.verdicts)
    if best is not None:
        lines += _terms_lines(plan.verdicts)
        lines += _buy_lines(plan, best)
    lines += _notes(plan)
    return "\n".join(line.rstrip() for line in lines)


# -- the need, and who was asked ---------------------------------------------------------------------------
def _need_lines(plan: Plan) -> list[str]:
    need = plan.need
    parts = [
        f"{need.name}: {need.count} x {need.instance_type}{_accelerators(need)}",
        need.target.value if need.target is not Target.INSTANCES else "EC2 instances",
        _length(need.duration),
        *need.regions,
        *([f"zone {' or '.join(need.zone_ids)}"] if need.zone_ids else []),
        *([f"at most {_money(need.budget)}"] if need.budget else []),
    ]
    lines = _wrapped("Need", ", ".join(parts) + ",") + _hung(_when(need))
    asked, places = places_asked(plan)
    if plan.incomplete:
        return lines + _wrapped("Asked", f"INCOMPLETE, {asked} of {places}: {_outcomes(unanswered(plan))}")
    told = f"{asked} of {places} {'place' if places == 1 else 'places'} asked" if places else "nobody asked"
    if len(lines[-1]) + 2 + len(told) <= WIDTH:
        lines[-1] = f"{lines[-1]:<{WIDTH - len(told)}}{told}"
        return lines
    return [*lines, f"{'Asked':<{_HANG}}{told}"]


def _accelerators(need: Need) -> str:
    kind = instance_type(need.instance_type)
    return f" ({kind.accelerator_count * need.count} {kind.accelerator})" if kind else ""


def _length(span: timedelta) -> str:
    """`24 h`, `5 days`: whole days from two days on."""
    if span >= timedelta(days=2) and span % timedelta(days=1) == timedelta(0):
        return f"{span // timedelta(days=1)} days"
    return spoken(span)


def _when(need: Need) -> str:
    if need.start:
        return f"start fixed {_instant(need.start, need)}"
    begin = f"from {_instant(need.earliest_start, need)}" if need.earliest_start else "from now"
    return f"{begin} to {_instant(need.latest_end, need)}" if need.latest_end else f"{begin}, start may move"


def _instant(instant: datetime, need: Need) -> str:
    """`Wed 2026-12-02 11:30Z (12:30 Berlin)`; the local weekday too where it is another day there."""
    utc = instant.astimezone(UTC)
    text = f"{utc:%a %Y-%m-%d %H:%M}Z"
    if need.zone is None or need.time_zone is None:
        return text
    local = instant.astimezone(need.zone)
    day = "" if local.date() == utc.date() else f"{local:%a} "
    city = need.time_zone.rpartition("/")[2].replace("_", " ")
    return f"{text} ({day}{local:%H:%M} {city})"


def _outcomes(answers: Sequence[PlaceAnswer]) -> str:
    said = []
    for answer in answers:
        detail = f" ({plain(answer.detail, 160)})" if answer.detail else ""
        said.append(f"{answer.region} {_OUTCOMES.get(answer.outcome, answer.outcome.value)}{detail}")
    return ", ".join(said)


# -- the best choice ---------------------------------------------------------------------------------------
def _best_lines(plan: Plan, best: Choice) -> list[str]:
    handle = plan.need.handle(best.number)
    way = best.offer.way.value.replace("-", " ")
    total = best.cost.total
    price = f"{_money(total)} now, no refund, no cancel" if total else "price unknown: cannot be bought"
    lines = [f"BEST   {handle}  {way}  {price}"]
    lines += [line for reason in best.reasons for line in _hung(reason, "  why")]
    if total is not None:
        lines += _hung(_pays(best, total), "  pays")
    for number, care in enumerate(best.cares):
        lines += _hung(care, "" if number else "  care")
    return lines


def _pays(best: Choice, total: Money) -> str:
    even, usable, count = best.cost.break_even, best.cost.usable, best.offer.count
    if even is None:
        return f"is not known: no on-demand price of {best.offer.region} to compare with"
    if not even.ever_pays:
        more = Money(total.amount - even.at_full_use.amount, total.currency)
        return (
            f"NEVER: used to the last usable minute it costs {_money(more)} more than on-demand. "
            "You buy the date."
        )
    what = "serving" if count == 1 else f"serving on all {count}"
    share = f"{even.share * 100:.0f} %"
    return f"from {hours_minutes(even.after)} of {what}: {share} of the {hours_minutes(usable)} you can use"


def exact_amount(money: Money) -> str:
    """The amount as `--max` takes it: `228.77`, `500.00`; finer than a cent only where the fee is."""
    cents = money.amount.quantize(Decimal("0.01"))
    return f"{cents:f}" if cents == money.amount else f"{money.amount:f}"


def hours_minutes(span: timedelta) -> str:
    """`8 h 02 min`, hours may exceed 24; for lengths that are compared with each other."""
    hours, minutes = divmod(span // timedelta(minutes=1), 60)
    return f"{hours} h {minutes:02d} min"


# -- nothing fits ------------------------------------------------------------------------------------------
def _nothing_lines(plan: Plan) -> list[str]:
    seen = len(plan.rejected)
    if not seen:
        quiet = "no offer was seen, and not every place answered" if plan.incomplete else "none on sale"
        lines = _hung(f"{quiet}: nothing to choose from", "NONE")
    else:
        lines = _hung(f"{seen} {'offer' if seen == 1 else 'offers'} seen, none fits", "NONE")
    for rejected in plan.rejected[:5]:
        offer = rejected.offer
        what = f"{offer.region} {_window(offer.paid_window, fixed=False)}: {'; '.join(rejected.reasons)}"
        lines += _hung(what, "  not")
    if seen > 5:
        lines.append(f"       and {seen - 5} more, in --json")
    return lines


# -- the table ---------------------------------------------------------------------------------------------
def _table(plan: Plan) -> list[str]:
    priced = plan.pay_as_you_go
    if not plan.choices and not priced:
        return []
    currency = _currency(plan)
    kind = instance_type(plan.need.instance_type)
    per = "/GPU-H" if kind and kind.vendor == "NVIDIA" else "/ACC-H"
    head = f"{'#':<3}{'WAY':<15}{'PLACE':<10}WINDOW UTC"
    lines = [_columns(head, "USABLE", f"TOTAL {currency}", per)]
    for choice in plan.choices:
        lines += _choice_rows(choice, plan.need, currency)
    for number, line in enumerate(priced, start=1):
        lines.append(_pay_row(line, number, currency))
    return lines


def _choice_rows(choice: Choice, need: Need, currency: str) -> list[str]:
    offer, cost = choice.offer, choice.cost
    window = _window(offer.paid_window, fixed=need.start is not None)
    left = f"{choice.number:<3}{_label(offer.way):<15}{_place(offer):<10}{window}"
    total = _amount(cost.total, currency)
    rows = [_columns(left, clock_hours(cost.usable), total, _amount(cost.per_accelerator_hour, currency, 3))]
    for segment in offer.segments if len(offer.segments) > 1 else ():
        where = segment.zone_id or segment.zone_name or "zone unknown"
        rows.append(f"{'':<18}{where:<10}{_window(segment.window, fixed=False)}")
    return rows


def _pay_row(line: PayAsYouGo, number: int, currency: str) -> str:
    left = f"{'-':<3}{_label(line.rate.way):<15}{line.rate.region + ' ':<10}"
    total = f"{_amount(line.total, currency)} [{number}]"
    cells = (clock_hours(line.span), total, _amount(line.per_accelerator_hour, currency, 3))
    row = _columns(f"{left}on the day, no promise", *cells)
    return row if len(row) <= WIDTH else _columns(f"{left}no promise", *cells)


def _columns(left: str, usable: str, total: str, hourly: str) -> str:
    """The cells right-aligned at their edges; a wide cell moves its neighbours as far as it must."""
    total_edge = min(_TOTAL, _HOURLY - len(hourly) - 1)
    usable_edge = min(_USABLE, total_edge - len(total) - 1)
    line = left
    for cell, edge in ((usable, usable_edge), (total, total_edge), (hourly, _HOURLY)):
        line = line.ljust(max(len(line) + 1, edge - len(cell))) + cell
    return line


def _place(offer: Offer) -> str:
    first, *more = offer.zones
    return plain(first, 16) + (f"+{len(more)}" if more else "")


def _window(window: Window, *, fixed: bool) -> str:
    """`Wed 2 11:30-Thu 3 11:30`, or with the month where the start is not fixed."""
    return f"{_stamp(window.start, fixed)}-{_stamp(window.end, fixed)}"


def _stamp(instant: datetime, fixed: bool) -> str:
    utc = instant.astimezone(UTC)
    return f"{utc:%a} {utc.day} {utc:%H:%M}" if fixed else f"{utc.day} {utc:%b} {utc:%H:%M}"


def _currency(plan: Plan) -> str:
    known = [c.cost.total for c in plan.choices] + [p.total for p in plan.pay_as_you_go]
    return next((m.currency for m in known if m is not None), "USD")


# -- the ways that do not fit, and the terms of those that do ----------------------------------------------
def _no_lines(verdicts: Sequence[WayVerdict]) -> list[str]:
    grouped: dict[str, list[str]] = {}
    for verdict in verdicts:
        if not verdict.fits:
            grouped.setdefault(verdict.why_not, []).append(_label(verdict.way))
    lines: list[str] = []
    for sentence, ways in sorted(grouped.items(), key=lambda group: -len(group[0])):
        lines += _wrap(f"NO {', '.join(ways)}   {sentence}", hang=3)
    return lines


_SHORT_TERMS = {
    Way.TRAINING_PLAN: ("you", "you, once", "all at purchase", "no", "taken early"),
    Way.SAGEMAKER_ON_DEMAND: ("SageMaker", "nobody", "by the second", "any time", "on delete"),
    Way.CAPACITY_BLOCK: ("you", "you, once", "all at purchase", "no", "taken early"),
    Way.ON_DEMAND: ("you", "nobody", "by the second", "any time", "may be lost"),
    Way.SPOT: ("you", "nobody", "by the second", "any time", "2 min notice"),
    Way.ODCR: ("you", "you", "idle too", "any time", "its end date"),
}


def _terms_lines(verdicts: Sequence[WayVerdict]) -> list[str]:
    """Who launches, who buys, when one pays, whether it can be cancelled, how it ends (field fault 70)."""
    shape = "   {:<15}{:<11}{:<11}{:<17}{:<9}{}"
    rows = [(_label(v.way), *_SHORT_TERMS[v.way]) for v in verdicts if v.fits]
    return [shape.format(*row) for row in (("", "LAUNCHES", "BUYS", "PAID", "CANCEL", "ENDS"), *rows)]


def terms_text(verdicts: Sequence[WayVerdict]) -> str:
    """Every way in full: verdict, rules with their sources, and its terms. For `berth plan --ways`."""
    lines: list[str] = []
    for verdict in verdicts:
        lines.append(f"{'FITS' if verdict.fits else 'NO':<7}{verdict.way.value}")
        for reason in verdict.reasons:
            word = "  but" if reason.against else "  and"
            lines += _hung(f"{reason.sentence} ({reason.rule}; {reason.source})", word)
        terms = verdict.terms
        told = (
            ("launch", terms.who_launches), ("buys", terms.who_buys), ("paid", terms.when_paid),
            ("cancel", terms.can_cancel), ("end", terms.at_the_end),
        )  # fmt: skip
        for word, sentence in told:
            lines += _wrap(f"  {word:<8}{sentence}", hang=10)
    return "\n".join(lines)


# -- what to do next, and where the list prices come from --------------------------------------------------
def _buy_lines(plan: Plan, best: Choice) -> list[str]:
    if best.cost.total is None:
        return []
    command = f"berth buy {plan.need.handle(best.number)} --max {exact_amount(best.cost.total)}"
    told = "asks, re-reads the fee, buys once"
    line = f"{'BUY':<{_HANG}}{command}"
    if len(line) + 2 + len(told) <= WIDTH:
        return [line + "       "[: max(2, WIDTH - len(line) - len(told))] + told]
    return [line, " " * _HANG + told]


def _notes(plan: Plan) -> list[str]:
    notes = []
    for number, line in enumerate(plan.pay_as_you_go, start=1):
        notes += _wrap(f"[{number}] {_rate_note(line, plan.made_at.date())}", hang=4)
    return notes


def _rate_note(line: PayAsYouGo, today: date) -> str:
    rate = line.rate
    if rate.hourly is None:
        return f"no {rate.component} price of {plain(line.rate.region)} is known: not cheap, unknown"
    told = [f"{rate.hourly.amount:,f}/h {rate.component}"]
    if rate.as_of is not None:
        told.append(f"seen {rate.as_of.isoformat()} ({_age(rate.as_of, today)} old)")
    if rate.region_assumed:
        told.append("Region assumed")
    if rate.live:
        told.append("live")
    return ", ".join(told)


def _age(seen: date, today: date) -> str:
    months = (today.year - seen.year) * 12 + today.month - seen.month - (today.day < seen.day)
    if months >= 2:
        return f"{months} months"
    days = max(0, (today - seen).days)
    return f"{days} {'day' if days == 1 else 'days'}"


# -- small things ------------------------------------------------------------------------------------------
def _wrap(text: str, hang: int) -> list[str]:
    """`text` in lines of WIDTH, all but the first hanging by `hang`; words are never broken."""
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=" " * hang, break_on_hyphens=False, break_long_words=False
    )


def _wrapped(word: str, text: str) -> list[str]:
    return _hung(text, word)


def _hung(text: str, word: str = "") -> list[str]:
    """`text` wrapped behind a margin that holds `word` in its first line."""
    return _wrap(f"{word:<{_HANG}}{plain(text, 2000)}", _HANG)


def _label(way: Way) -> str:
    return _WAY_LABELS.get(way, way.value)


def _money(money: Money | None) -> str:
    """`$1,234.56`, or `1,234.56 EUR`; `unknown` for None."""
    if money is None:
        return "unknown"
    return f"${money.amount:,.2f}" if money.currency == "USD" else f"{money.amount:,.2f} {money.currency}"


def _amount(money: Money | None, currency: str, digits: int = 2) -> str:
    """The bare number of a column whose head names `currency`; another currency is written out."""
    if money is None:
        return "unknown"
    text = f"{money.amount.quantize(Decimal(1).scaleb(-digits)):,f}"
    return text if money.currency == currency else f"{text} {money.currency}"
