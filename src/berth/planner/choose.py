"""From a need, the places' answers and the rates to a plan. Pure: the same inputs give the same plan."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from berth.facts.instance_types import instance_type
from berth.facts.list_prices import highest_hourly
from berth.facts.regions import region, regions_near
from berth.planner.cost import (
    HourlyRate,
    OfferCost,
    PayAsYouGo,
    cost_of,
    floor_from,
    known_or_none,
    pay_as_you_go,
)
from berth.planner.fit import misfits
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, hours_of, reclaim_before_end
from berth.planner.owned import OwnedAnswer, blocks_owned, owned_choices
from berth.planner.plan import Choice, Plan, Rejected
from berth.planner.surcharge import OsRate
from berth.planner.verdicts import WayVerdict, verdicts
from berth.terms.durations import spoken
from berth.terms.money import Money
from berth.terms.ways import Target, Way

_LIST_WAYS = {Way.ON_DEMAND, Way.SAGEMAKER_ON_DEMAND, Way.ODCR, Way.SPOT}


def make_plan(
    need: Need,
    answers: Iterable[PlaceAnswer],
    rates: Iterable[HourlyRate],
    now: datetime,
    *,
    owned: Iterable[OwnedAnswer] = (),
    os_rates: Iterable[OsRate] = (),
    account: str | None = None,
    rehearsal: str | None = None,
    notes: Iterable[str] = (),
) -> Plan:
    """The plan for `need` from what was answered and what is listed.

    `rates` holds hourly prices of the ways without reservation, of EC2's bare hardware too: together with the
    list prices that ship with the package, that one says which prices are implausible. `owned` is what the
    account has already, `os_rates` the operating system fees of blocks. `account` and `rehearsal` say who
    asked, and where (see Plan).
    """
    heard = tuple(sorted(answers, key=_order_of_answers))
    has = tuple(sorted(owned, key=lambda a: (a.way.value, a.region)))
    judged = verdicts(need, now, blocks_owned(has))
    floor = _floor(need, rates := tuple(rates))
    usable_rates = _plausible(rates, floor)
    priced = _Prices(usable_rates, {(r.region, r.platform): r for r in os_rates}, floor)
    may = {v.way for v in judged if v.fits}
    ranked, rejected = _sort_offers(need, heard, priced, now, may)
    choices = tuple(
        Choice(
            number=number,
            offer=offer,
            cost=cost,
            reasons=_reasons(need, judged),
            cares=_cares(need, offer, cost),
        )
        for number, (offer, cost) in enumerate(ranked, start=1)
    )
    return Plan(
        need=need,
        made_at=now,
        account=account,
        rehearsal=rehearsal,
        answers=heard,
        choices=choices,
        rejected=rejected,
        pay_as_you_go=_pay_lines(need, choices, judged, usable_rates),
        verdicts=judged,
        incomplete=any(not a.is_complete for a in heard)
        or any(a.trouble for a in has)
        or (bool(choices) and choices[0].cost.fee is None),
        owned=owned_choices(has, need, now),
        unread=tuple(f"{a.region} {a.way}: {a.trouble}" for a in has if a.trouble),
        notes=tuple(sorted(notes)),
    )


@dataclass(frozen=True, slots=True)
class _Prices:
    """What offers are compared with."""

    rates: tuple[HourlyRate, ...]
    os_rates: Mapping[tuple[str, str], OsRate]
    floor: Money | None


def _order_of_answers(answer: PlaceAnswer) -> tuple[object, ...]:
    asked = answer.question
    return (
        answer.way.value,
        answer.region,
        (asked.duration_hours, asked.instance_type, asked.count) if asked else (),
        answer.seen_at,
    )


def _plausible(rates: Sequence[HourlyRate], floor: Money | None) -> tuple[HourlyRate, ...]:
    """The rates in a fixed order, zero and implausible ones made unknown (field fault 17)."""
    ordered = sorted(rates, key=lambda r: (list(Way).index(r.way), r.region, r.component, r.zone_id or ""))
    return tuple(replace(rate, hourly=known_or_none(rate.hourly, floor)) for rate in ordered)


def _floor(need: Need, rates: Sequence[HourlyRate]) -> Money | None:
    known = [r.hourly for r in rates if r.way is Way.ON_DEMAND and r.hourly is not None]
    listed = highest_hourly(need.instance_type)
    if listed is not None:
        known.append(listed)
    return floor_from(max(known, key=lambda m: m.amount)) if known else None


def _sort_offers(
    need: Need, answers: Sequence[PlaceAnswer], prices: _Prices, now: datetime, may: Set[Way]
) -> tuple[list[tuple[Offer, OfferCost]], tuple[Rejected, ...]]:
    kind = instance_type(need.instance_type)
    accelerators = kind.accelerator_count if kind else None
    fitting: list[tuple[Offer, OfferCost]] = []
    rejected: list[Rejected] = []
    for offer in _each_once(offer for answer in answers for offer in answer.offers):
        against = misfits(offer, need, now)
        if offer.way not in may:
            against = (f"{offer.way} does not fit the need", *against)
        if against:
            rejected.append(Rejected(offer, against))
            continue
        rate = _rate_for(need, offer.region, prices.rates)
        os_rate = prices.os_rates.get((offer.region, offer.platform))
        fitting.append((offer, cost_of(offer, accelerators, rate, prices.floor, os_rate)))
    fitting.sort(key=lambda pair: _preference(need, *pair))
    rejected.sort(key=lambda r: (r.offer.paid_window.start, r.offer.region, r.offer.offering_id or ""))
    return fitting, tuple(rejected)


def _each_once(offers: Iterable[Offer]) -> Iterator[Offer]:
    """Every offer once: questions for several durations find the same one again (field fault 46)."""
    asked_first: dict[Hashable, Query] = {}
    for offer in offers:
        place = (offer.way, offer.region, offer.segments, offer.count, offer.fee, offer.targets)
        name = (offer.region, offer.offering_id) if offer.offering_id else place
        twice = (place, name)  # in one answer, as where a page comes again
        if twice in asked_first:
            continue
        if any(asked_first.get(key, offer.query) != offer.query for key in (place, name)):
            continue
        for key in (place, name, twice):
            asked_first.setdefault(key, offer.query)
        yield offer


def _preference(need: Need, offer: Offer, cost: OfferCost) -> tuple[object, ...]:
    """Known totals first, then known fees, then cheap, then what needs no opt-in, early, long, then the
    Regions as the need names them. The rest of the key makes the order total.
    """
    return (
        cost.total is None,
        cost.fee is None,
        cost.total.currency if cost.total else "",
        cost.total.amount if cost.total else Decimal(0),
        any(s.zone_type == "local-zone" for s in offer.segments),
        offer.paid_window.start,
        -cost.usable,
        need.regions.index(offer.region) if offer.region in need.regions else len(need.regions),
        offer.region,
        offer.zones,
        offer.offering_id or "",
    )


def on_demand_way(need: Need) -> Way:
    """The way without reservation that can hold what the need will run."""
    return Way.ON_DEMAND if need.target is Target.INSTANCES else Way.SAGEMAKER_ON_DEMAND


def _rate_for(need: Need, region: str, rates: Sequence[HourlyRate]) -> HourlyRate | None:
    way = on_demand_way(need)
    return next((r for r in rates if r.way is way and r.region == region and r.hourly), None)


def _pay_lines(
    need: Need, choices: Sequence[Choice], judged: Sequence[WayVerdict], rates: Sequence[HourlyRate]
) -> tuple[PayAsYouGo, ...]:
    """What the ways without reservation that fit would cost for the best choice's usable time."""
    kind = instance_type(need.instance_type)
    accelerators = kind.accelerator_count if kind else None
    span = choices[0].cost.usable if choices else _usable_of_need(need)
    fitting = {v.way for v in judged if v.fits} & _LIST_WAYS
    lines = [pay_as_you_go(r, need.count, span, accelerators) for r in rates if r.way in fitting]
    return tuple(sorted(lines, key=lambda line: line.total is None))


def _usable_of_need(need: Need) -> timedelta:
    return max(need.duration - reclaim_before_end(need.target.value), timedelta(0)) or need.duration


def _reasons(need: Need, judged: Sequence[WayVerdict]) -> tuple[str, ...]:
    holds = _HOLDS[need.target]
    ways = [v.way for v in judged if v.fits]
    promise = [w for w in ways if w in {Way.TRAINING_PLAN, Way.CAPACITY_BLOCK}]
    what = "a plan" if Way.TRAINING_PLAN in promise else "a block"
    if need.start is not None:
        fixed = f"the start is fixed, and of the ways that can {holds} only {what} promises it"
        return (f"{fixed} (on-demand may say no on the day)",)
    moves = "the start may move, so on-demand can be tried first and costs nothing while it says no"
    return (f"of the ways that can {holds} only {what} promises a time; {moves}",)


_HOLDS = {
    Target.ENDPOINT: "host an endpoint",
    Target.TRAINING_JOB: "run a training job",
    Target.HYPERPOD_CLUSTER: "hold a HyperPod cluster",
    Target.STUDIO_APPS: "hold Studio apps",
    Target.INSTANCES: "hold instances",
}


def _cares(need: Need, offer: Offer, cost: OfferCost) -> tuple[str, ...]:
    found = [
        _active_first(need),
        _reclaim(offer),
        _parts(offer),
        "It starts at once: each later minute moves the start and the fee." if offer.starts_at_once else "",
        "Its zone id is not known." if any(s.zone_id is None for s in offer.segments) else "",
        f"Its price is unknown: {cost.doubt}." if cost.doubt else "",
        _local_zone(offer),
        _image(need),
        _utilisation(need, offer, cost),
    ]
    return tuple(sentence for sentence in found if sentence)


def _active_first(need: Need) -> str:
    what = {Target.ENDPOINT: "endpoint", Target.STUDIO_APPS: "Studio app"}.get(need.target)
    return f"{what} can be created only once Active: start-up eats paid time." if what else ""


def _reclaim(offer: Offer) -> str:
    early = reclaim_before_end(offer.target)
    last = offer.segments[-1].window.end - early
    noun = "instance" if offer.count == 1 else "instances"
    minutes = early // timedelta(minutes=1)
    return f"AWS takes the {noun} from {last:%H:%M}Z, {minutes} min before the paid end."


def _local_zone(offer: Offer) -> str:
    names = [s.zone_name or "" for s in offer.segments if s.zone_type == "local-zone"]
    return f"It is in Local Zone {names[0]}: opt in to it and have a subnet there first." if names else ""


def _image(need: Need) -> str:
    """A block is paid and idle while somebody looks for an image: it is better known before."""
    launch = need.launch
    if need.target is not Target.INSTANCES or (launch and (launch.image or launch.template)):
        return ""
    return "No image is named yet: have one for `berth launch --image`, or [launch] in the need."


def _parts(offer: Offer) -> str:
    if len(offer.segments) == 1:
        return ""
    off = spoken(sum((gap.duration for gap in offer.gaps), timedelta()))
    return f"It comes in {len(offer.segments)} parts, {off} off between them: checkpoint."


def _utilisation(need: Need, offer: Offer, cost: OfferCost) -> str:
    even = cost.break_even
    if need.utilisation is None or even is None or even.rate.hourly is None or cost.total is None:
        return ""
    hours = hours_of(cost.usable) * need.utilisation
    other = (even.rate.hourly * (hours * offer.count)).rounded()
    share = f"{need.utilisation * 100:.0f} %"
    if other > cost.total:
        return f"Used {share} of the time it saves {(other - cost.total).rounded()} against on-demand."
    return f"Used {share} of the time it costs {(cost.total - other).rounded()} more than on-demand."


def places_asked(plan: Plan) -> tuple[int, int]:
    """How many places answered in full, and how many there were to ask."""
    return sum(a.is_complete for a in plan.answers), len(plan.answers)


def unanswered(plan: Plan) -> tuple[PlaceAnswer, ...]:
    """The places that did not answer in full."""
    return tuple(a for a in plan.answers if not a.is_complete)


def doubtful_regions(plan: Plan) -> tuple[str, ...]:
    """A sentence for each Region that did not answer and the table of Regions lacks: mistyped, or new."""
    codes = dict.fromkeys(a.region for a in unanswered(plan) if region(a.region) is None)
    near = {code: ", ".join(regions_near(code)) for code in codes}
    return tuple(
        f"{code} is no known Region" + (f"; near: {near[code]}" if near[code] else "") for code in codes
    )


def only_outcome(plan: Plan) -> PlaceOutcome | None:
    """The outcome that every place shares, None when they differ or none was asked."""
    outcomes = {a.outcome for a in plan.answers}
    return outcomes.pop() if len(outcomes) == 1 else None
