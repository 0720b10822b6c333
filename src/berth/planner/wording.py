"""A plan as text of 80 columns: what fits, why, what it costs, what to mind, what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from berth.planner.best.wording import combination_lines
from berth.planner.buy_text import buy_lines
from berth.planner.choose import doubtful_regions, places_asked, refusals, unanswered
from berth.planner.cost import BreakEven, PayAsYouGo
from berth.planner.costs.wording import cost_lines
from berth.planner.currencies import currency_lines
from berth.planner.framework.limits import SEVERAL_BLOCKS
from berth.planner.framework.wording import try_lines
from berth.planner.lengths import length_lines
from berth.planner.need import Need
from berth.planner.need_words import beside_text, need_text, readings_told, when
from berth.planner.offers import PlaceAnswer, PlaceOutcome, hours_of
from berth.planner.owned import OwnedChoice
from berth.planner.phrases import (
    HANG,
    WIDTH,
    hours_minutes,
    hung,
    label,
    length,
    money_text,
    window_text,
    wrapped,
)
from berth.planner.plan import Choice, Plan, Rejected
from berth.planner.preference import lasts
from berth.planner.table import currency_of, note_of, notes, pay_lines, table
from berth.planner.verdicts import WayVerdict
from berth.terms.durations import spoken
from berth.terms.money import Money
from berth.terms.text import plain
from berth.terms.ways import Target, Way

_OUTCOMES = {
    PlaceOutcome.NONE_ON_SALE: "none on sale",
    PlaceOutcome.NOT_SOLD_HERE: "not sold here",
    PlaceOutcome.NOT_ALLOWED: "not allowed",
    PlaceOutcome.NO_QUOTA: "no quota",
    PlaceOutcome.THROTTLED: "throttled",
    PlaceOutcome.FAILED: "failed",
    PlaceOutcome.NOT_ASKED: "not asked",
}


def plan_text(plan: Plan, header: str, profile: str | None = None) -> str:
    """The whole answer of `berth plan`. `header` is the line that says who and where, `profile` the profile
    that was named to ask with (None: none was): who buys what is told here needs it again."""
    lines = [*header.splitlines(), *_need_lines(plan), *_owned_lines(plan), ""]
    best = plan.best
    if plan.reuse is not None:
        lines += _reuse_lines(plan.reuse)
    found = plan.combination
    combined = combination_lines(found, plan.need, leads=plan.mix_leads) if found else []
    lines += combined if plan.mix_leads else []
    lines += [*_best_lines(plan, best), *cost_lines(plan, best)] if best else _nothing_lines(plan)
    lines += currency_lines(plan.currencies) if plan.need.budget is None else []
    lines += table(plan)
    lines += length_lines(plan, currency_of(plan))
    lines += _several_lines(plan.verdicts)
    lines += _beside_lines(plan)
    lines += combined if not plan.mix_leads else []
    lines += _no_lines(plan.verdicts)
    lines += try_lines(plan.steps, best.offer.way if best else None)
    if best is not None or plan.mix:
        lines += _terms_lines(plan.verdicts)
    if best is not None:
        lines += _spot_lines(plan, best)
    # What is owned comes first; the handle of what could be bought beside it stands in its line.
    lines += [] if plan.reuse else buy_lines(plan, best, profile)
    lines += notes(plan)
    lines += [line for note in plan.notes for line in hung(note, "NOTE")]
    return "\n".join(line.rstrip() for line in lines)


# -- the need, and who was asked ---------------------------------------------------------------------------
def _need_lines(plan: Plan) -> list[str]:
    need = plan.need
    lines = hung(f"{need.name}: {need_text(need)},", "Need") + hung(when(need))
    lines += [line for told in readings_told(need, plan.made_at) for line in hung(told)]
    asked, places = places_asked(plan)
    if unanswered(plan):
        searched = f"INCOMPLETE, {asked} of {places} {_regions(plan)} searched"
        todo = "; `berth doctor` says what to do" if refusals(plan) else ""
        lines += hung(f"{searched}: {_outcomes(plan)}{todo}", "Asked")
        return lines + [line for said in doubtful_regions(plan) for line in hung(said)]
    told = f"{asked} of {places} {'place' if places == 1 else 'places'} asked" if places else "nobody asked"
    if len(lines[-1]) + 2 + len(told) <= WIDTH:
        lines[-1] = f"{lines[-1]:<{WIDTH - len(told)}}{told}"
        return lines
    return [*lines, f"{'Asked':<{HANG}}{told.removesuffix(' asked')}"]


def _regions(plan: Plan) -> str:
    """`regions`, or `places` where a Region was asked more than one question; of one, the singular."""
    noun = "region" if len({a.region for a in plan.answers}) == len(plan.answers) else "place"
    return noun if len(plan.answers) == 1 else f"{noun}s"


def _beside_lines(plan: Plan) -> list[str]:
    """The parts that are not planned here, and what is done about each (field fault 42)."""
    zones = plan.best.offer.zones if plan.best else ()
    if plan.mix is not None and plan.mix_leads:
        held = (piece.zone_id for piece in plan.mix.pieces if piece.promised and piece.zone_id)
        zones = tuple(dict.fromkeys(held))
    left_out = plan.combination.left_out if plan.combination else ()
    lines: list[str] = []
    for part in plan.need.beside:
        mixed = plan.mix is not None and part.name not in left_out
        told = beside_text(part, zones, plan.need.name, mixed=mixed)
        lines += hung(told, "" if lines else "BESIDE")
    return lines


def _several_lines(verdicts: Sequence[WayVerdict]) -> list[str]:
    """Where one block cannot hold as many: which blocks together do."""
    may = [v for v in verdicts if v.fits]
    said = [r.sentence for v in may for r in v.reasons if r.rule == SEVERAL_BLOCKS and not r.against]
    return hung(said[0], "SPLIT") if said else []


def _outcomes(plan: Plan) -> str:
    """What each place said, one word a Region: those that did not answer in full first."""
    places: dict[tuple[Way, str], list[PlaceAnswer]] = {}
    for answer in sorted(plan.answers, key=lambda a: a.is_complete):
        places.setdefault((answer.way, answer.region), []).append(answer)
    return ", ".join(_outcome(answers) for answers in places.values())


def _outcome(answers: Sequence[PlaceAnswer]) -> str:
    """`us-east-2 5 of 5, 12 offers`: where one question was asked, its outcome alone."""
    worst = answers[0]
    offers = sum(len(answer.offers) for answer in answers)
    asked = f" {sum(a.is_complete for a in answers)} of {len(answers)}," if len(answers) > 1 else ""
    if worst.is_complete:
        word = _OUTCOMES.get(worst.outcome, _offers(0)) if not offers else _offers(offers)
        return f"{worst.region}{asked} {word}"
    detail = f" ({plain(worst.detail, 160)})" if worst.detail else ""
    seen = f", {_offers(offers)} before" if offers else ""
    return f"{worst.region}{asked} {_OUTCOMES.get(worst.outcome, worst.outcome.value)}{detail}{seen}"


def _offers(number: int) -> str:
    return f"{number} {'offer' if number == 1 else 'offers'}"


# -- what is owned -----------------------------------------------------------------------------------------
MOST_OWNED = 5


def _owned_lines(plan: Plan) -> list[str]:
    """What the account has and the need cannot simply use, with the reason; and what could not be read."""
    rest = [choice for choice in plan.owned if choice is not plan.reuse]
    lines: list[str] = []
    for choice in rest[:MOST_OWNED]:
        why = "; ".join(filter(None, (choice.others and f"{choice.others}, not counted", *choice.against)))
        lines += hung(f"{_owned(choice)}: {why or 'covers the need too'}", "OWN")
    if len(rest) > MOST_OWNED:
        lines.append(f"{'':<{HANG}}and {len(rest) - MOST_OWNED} more, in --json")
    if plan.unread:
        lines += hung(f"not known: {'; '.join(plan.unread)}. There may be more: look before you buy", "OWN")
    return lines


def _owned(choice: OwnedChoice) -> str:
    owned = choice.owned
    count = "?" if owned.count is None else str(owned.count)
    window = window_text(owned.window, fixed=False) if owned.window else "no known end"
    where = ", ".join(owned.zones) or owned.region
    what = f"{owned.id}, {owned.way}, {owned.state}, {count} x {owned.instance_type}"
    return plain(f"{what}, {where}, {window}", 300)


def _reuse_lines(reuse: OwnedChoice) -> list[str]:
    owned = reuse.owned
    way = owned.way.value.replace("-", " ")
    lines = [f"USE    {owned.id}  {way} that you own already  $0.00 more"]
    return lines + hung(f"{_owned(reuse)}: covers the need", "  why")


# -- the best choice ---------------------------------------------------------------------------------------
def _best_lines(plan: Plan, best: Choice) -> list[str]:
    handle = plan.need.handle(best.number)
    way = best.offer.way.value.replace("-", " ") + _which(plan.need, best)
    fee, total = best.cost.fee, best.cost.total
    price = f"{money_text(fee)} {_when_paid(best)}, no refund, no cancel"
    word = "ELSE" if plan.reuse else "ALONE" if plan.mix_leads else "BEST"
    head = f"{word:<{HANG}}{handle}  {way}"
    fits = len(head) + 2 + len(price) <= WIDTH
    lines = [f"{head}  {price}"] if fits else [*wrapped(head, HANG), *hung(price)]
    if best.offer.way is Way.CAPACITY_BLOCK and best.offer.offering_id:
        lines.append(f"{'  id':<{HANG}}{plain(best.offer.offering_id, 60)}")
    for number, reason in enumerate(best.reasons):
        lines += hung(reason, "" if number else "  why")
    lines += _cost_lines(plan, best)
    if total is not None:
        lines += _pays_lines(plan, best, total)
        lines += _profile_lines(plan, best, total)
    for number, care in enumerate(best.cares):
        lines += hung(care, "" if number else "  care")
    return lines


def _which(need: Need, best: Choice) -> str:
    """What tells the choice from the others, where more than one duration, type or count would do."""
    named = [f", {length(lasts(best.offer))}"] if need.is_range else []
    if len(need.types) > 1 or need.count_wanted:
        named.append(f", {best.offer.count} x {best.offer.instance_type}")
    return "".join(named)


def _when_paid(best: Choice) -> str:
    return "up front" if best.offer.way is Way.CAPACITY_BLOCK else "now"


def _cost_lines(plan: Plan, best: Choice) -> list[str]:
    """The fee and the operating system's fee as two lines, where there is a second one (field fault 17)."""
    cost = best.cost
    if cost.surcharge is None or cost.fee is None:
        return []
    lines = hung(f"{money_text(cost.fee)} fee", "  cost")
    if cost.surcharge.total is None or cost.surcharge.hourly is None:
        return lines + hung(f"operating system fee of {cost.surcharge.platform}: not known", "     +")
    said = f"{money_text(cost.surcharge.total.rounded())} operating system ({cost.surcharge.platform}, "
    said += f"{_rate(cost.surcharge.hourly)}/h while instances run, {length(cost.paid)})"
    return lines + hung(f"{said} = {money_text(cost.total)}", "     +")


def _pays_lines(plan: Plan, best: Choice, total: Money) -> list[str]:
    even = best.cost.break_even
    if even is None:
        return hung(f"is not known: no on-demand price of {best.offer.region} to compare with", "  pays")
    if even.ever_pays:
        return hung(_pays(best, even), "  pays")
    paid = Money(total.amount / (hours_of(best.cost.paid) * best.offer.count), total.currency)
    more = Money(total.amount - even.at_full_use.amount, total.currency)
    note = note_of(plan, even.rate.way, even.rate.region)
    return hung(
        f"IT SAVES NOTHING: {_rate(paid)}/h against {_rate(even.rate.hourly)}/h on demand{note}. Used to the "
        f"last usable minute it costs {money_text(more)} MORE than on-demand. You buy the date.",
        "  cost",
    )


def _profile_lines(plan: Plan, best: Choice, total: Money) -> list[str]:
    """Where the count changes over time: that hours on demand of what runs come to less; else nothing."""
    even = best.cost.break_even
    if not plan.need.profile or even is None or not even.ever_pays:
        return []  # what saves nothing even at full use has said so
    hours = next((p for p in plan.pay_as_you_go if p.rate == even.rate), None)
    if hours is None or hours.total is None or hours.total.currency != total.currency or hours.total >= total:
        return []
    return hung(
        f"IT SAVES NOTHING for a count that changes: hours on demand, of what runs, come to "
        f"{money_text(hours.total)}{note_of(plan, even.rate.way, even.rate.region)}, "
        f"{money_text(total - hours.total)} less. You buy the date.",
        "  cost",
    )


def _pays(best: Choice, even: BreakEven) -> str:
    usable, count = best.cost.usable, best.offer.count
    what = "serving" if best.offer.target == Target.ENDPOINT else "use"
    what = what if count == 1 else f"{what} on all {count}"
    if best.offer.way is Way.CAPACITY_BLOCK and even.share_of_paid is not None:
        shares = f"{even.share_of_paid * 100:.1f} % of the {length(best.cost.paid)} paid, "
        shares += f"{even.share * 100:.1f} %"
    else:
        shares = f"{even.share * 100:.0f} %"
    return f"from {hours_minutes(even.after)} of {what}: {shares} of the {hours_minutes(usable)} you can use"


def _rate(hourly: Money | None) -> str:
    """`63.158`, `55.04`: to a thousandth, at least two digits."""
    if hourly is None:
        return "unknown"
    text = f"{hourly.amount:,.3f}"
    return text.removesuffix("0")


# -- nothing fits ------------------------------------------------------------------------------------------
def _nothing_lines(plan: Plan) -> list[str]:
    seen = len(plan.rejected)
    if plan.choices:
        fits = f"{_offers(len(plan.choices))} {'fits' if len(plan.choices) == 1 else 'fit'}"
        doubt = plan.choices[0].cost.doubt
        lines = hung(f"{fits}, and no price is known ({doubt}): unknown is never bought", "NONE")
    elif seen:
        alone = "ALONE" if plan.mix else "NONE"
        lines = hung(f"{_offers(seen)} seen, none fits{' by itself' if plan.mix else ''}", alone)
    elif plan.answers and all(a.outcome is PlaceOutcome.NOT_ASKED for a in plan.answers):
        lines = hung("no place was asked: what is on sale is not known", "NONE")
    elif unanswered(plan):
        lines = hung("no offer was seen, but not every place answered: ask again", "NONE")
    elif plan.answers:
        lines = hung("none on sale: nothing to choose from", "NONE")
    else:
        lines = hung("no way that is bought ahead fits this need, so nobody was asked", "NONE")
    return lines + _rejected_lines(plan)


MOST_REJECTED = 5


def _rejected_lines(plan: Plan) -> list[str]:
    """The first offer of each place and reason; the others of the same kind are counted."""
    groups: dict[tuple[object, ...], list[Rejected]] = {}
    for rejected in plan.rejected:
        groups.setdefault((rejected.offer.region, _kinds(rejected)), []).append(rejected)
    lines: list[str] = []
    for same in list(groups.values())[:MOST_REJECTED]:
        offer = same[0].offer
        what = f"{offer.region} {window_text(offer.paid_window, fixed=False)}: {'; '.join(same[0].reasons)}"
        more = f" (and {len(same) - 1} more of the kind)" if len(same) > 1 else ""
        lines += hung(what + more, "  not")
    left = sum(len(same) for same in list(groups.values())[MOST_REJECTED:])
    return [*lines, f"       and {left} more, in --json"] if left else lines


def _kinds(rejected: Rejected) -> tuple[str, ...]:
    """The reasons without their figures: `costs`, `lasts`; what holds another count is of another kind."""
    return tuple(r if r.startswith("holds ") else r.partition(" ")[0] for r in rejected.reasons)


# -- the ways that do not fit, and the terms of those that do ----------------------------------------------
def _no_lines(verdicts: Sequence[WayVerdict]) -> list[str]:
    grouped: dict[str, list[str]] = {}
    for verdict in verdicts:
        if not verdict.fits:
            grouped.setdefault(verdict.why_not, []).append(label(verdict.way))
    lines: list[str] = []
    for sentence, ways in sorted(grouped.items(), key=lambda group: -len(group[0])):
        lines += wrapped(f"NO {', '.join(ways)}   {sentence}", hang=3)
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
    rows = [(label(v.way), *_SHORT_TERMS[v.way]) for v in verdicts if v.fits]
    return [shape.format(*row) for row in (("", "LAUNCHES", "BUYS", "PAID", "CANCEL", "ENDS"), *rows)]


# -- what to do next ---------------------------------------------------------------------------------------
def _spot_lines(plan: Plan, best: Choice) -> list[str]:
    """What Spot would save, for whom it is: shown only where its price is live and lower."""
    spot = [line for line in pay_lines(plan) if line.rate.way is Way.SPOT and line.rate.live]
    total = best.cost.total
    if not spot or spot[0].total is None or total is None or spot[0].total.currency != total.currency:
        return []
    share = (total.amount - spot[0].total.amount) / total.amount * 100
    if share < 1:
        return []
    less = f"Spot, {share:.0f} % less, with #{best.number} as fall-back"
    if not plan.need.interruptible:
        return hung(f"it survives two minutes' notice: {less}", "IF")
    return hung(f"it may be interrupted: {less}{_lost_each_time(plan.need, spot[0])}", "SPOT")


def _lost_each_time(need: Need, line: PayAsYouGo) -> str:
    """What an interruption costs: the work since the last checkpoint, and the start of new machines."""
    again = (need.checkpoint_every or timedelta(0)) + (need.startup or timedelta(0))
    if line.rate.hourly is None or need.checkpoint_every is None:
        return "; how much an interruption loses is not known (checkpoint_every)"
    lost = (line.rate.hourly * (hours_of(again) * line.count)).rounded()
    what = f"{spoken(need.checkpoint_every)} of work"
    what += f" and {spoken(need.startup)} of start-up" if need.startup else ""
    return f". An interruption loses {what} at most: {money_text(lost)}"
