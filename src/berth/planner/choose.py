"""From a need, the places' answers and the rates to a plan. Pure: the same inputs give the same plan."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from berth.facts.instance_types import instance_type
from berth.facts.list_prices import highest_hourly
from berth.facts.regions import region, regions_near
from berth.planner.cares import cares
from berth.planner.cost import (
    HourlyRate,
    OfferCost,
    PayAsYouGo,
    cost_of,
    floor_from,
    known_or_none,
    pay_as_you_go,
)
from berth.planner.currencies import currencies_of
from berth.planner.fit import misfits
from berth.planner.framework.advice import advice
from berth.planner.framework.case import Case
from berth.planner.hourly_quotas import HourlyQuota, with_held
from berth.planner.need import Goal, Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, reclaim_before_end
from berth.planner.own_prices import as_agreed, with_reservations
from berth.planner.owned import OwnedAnswer, blocks_owned, owned_choices
from berth.planner.part import instance_time
from berth.planner.phrases import rate_text
from berth.planner.plan import Choice, Plan, Rejected
from berth.planner.preference import preference
from berth.planner.runner_up import beside_first
from berth.planner.surcharge import OsRate
from berth.planner.verdicts import WayVerdict, verdicts
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
    quotas: Iterable[HourlyQuota] = (),
) -> Plan:
    """The plan for `need` from what was answered and what is listed.

    `rates` holds hourly prices of the ways without reservation, of EC2's bare hardware too: together with the
    list prices that ship with the package, that one says which prices are implausible. `owned` is what the
    account has already, `os_rates` the operating system fees of blocks, `quotas` what bounds the ways without
    reservation. `account` and `rehearsal` say who
    asked, and where (see Plan).
    """
    heard = tuple(sorted(answers, key=_order_of_answers))
    has = tuple(sorted(owned, key=lambda a: (a.way.value, a.region)))
    judged = verdicts(need, now, blocks_owned(has))
    priced = _prices(need, tuple(rates), os_rates)
    may = {v.way for v in judged if v.fits}
    ranked, rejected = _sort_offers(need, heard, priced, now, may)
    choices = tuple(
        Choice(
            number=number,
            offer=offer,
            cost=cost,
            reasons=(
                *((beside_first(ranked[0], ranked[1]),) if number == 2 else ()),
                *_reasons(need, judged, best=number == 1),
            ),
            cares=cares(need, offer, cost),
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
        pay_as_you_go=_pay_lines(need, choices, judged, priced.rates),
        verdicts=judged,
        incomplete=any(not a.is_complete for a in heard)
        or any(a.trouble for a in has)
        or (bool(choices) and choices[0].cost.fee is None),
        owned=owned_choices(has, need, now),
        unread=tuple(f"{a.region} {a.way}: {a.trouble}" for a in has if a.trouble),
        notes=tuple(sorted(notes)),
        steps=advice(Case(need, instance_type(need.instance_type), now, blocks_owned(has)), may),
        quotas=with_held(quotas, [o for answer in has for o in answer.owned]),
        rates=priced.of_others(need),
        blocks_held=blocks_owned(has),
    )


@dataclass(frozen=True, slots=True)
class _Prices:
    """What offers are compared with; rates and fees name their type."""

    rates: tuple[HourlyRate, ...]
    os_rates: Mapping[tuple[str, str, str], OsRate]
    floors: Mapping[str, Money | None]

    def of_others(self, need: Need) -> tuple[HourlyRate, ...]:
        """The rates of types that only the parts beside take."""
        return tuple(rate for rate in self.rates if need.type_count(rate.instance_type) is None)

    def cost(self, need: Need, offer: Offer) -> OfferCost:
        kind = instance_type(offer.instance_type)
        return cost_of(
            offer,
            kind.accelerator_count if kind else None,
            _rate_for(need, offer, self.rates),
            self.floors.get(offer.instance_type),
            self.os_rates.get((offer.region, offer.platform, offer.instance_type)),
        )


def _prices(need: Need, rates: tuple[HourlyRate, ...], os_rates: Iterable[OsRate]) -> _Prices:
    first = need.instance_type
    named = [replace(rate, instance_type=rate.instance_type or first) for rate in rates]
    floors = {kind: _floor(kind, named) for kind in _all_types(need)}
    fees = {(r.region, r.platform, r.instance_type or first): r for r in os_rates}
    known = with_reservations(_plausible(need, named, floors))
    return _Prices(tuple(as_agreed(rate, need.rates) for rate in known), fees, floors)


def _all_types(need: Need) -> tuple[str, ...]:
    """The types of all parts, the planned one's first."""
    return tuple(dict.fromkeys(kind.instance_type for part in need.parts for kind in part.types))


def _order_of_answers(answer: PlaceAnswer) -> tuple[object, ...]:
    asked = answer.question
    return (
        answer.way.value,
        answer.region,
        (asked.duration_hours, asked.instance_type, asked.count) if asked else (),
        # Layers of a profile may be as long and as large as each other, and begin at different times.
        [str(bound) for bound in (asked.start_after, asked.end_before)] if asked else [],
        answer.seen_at,
        answer.outcome.value,
        answer.detail,
    )


def _plausible(
    need: Need, rates: Sequence[HourlyRate], floors: Mapping[str, Money | None]
) -> tuple[HourlyRate, ...]:
    """The rates in a fixed order, zero and implausible ones made unknown (field fault 17)."""
    order = {kind: place for place, kind in enumerate(_all_types(need))}
    ordered = sorted(
        (rate for rate in rates if rate.instance_type in order),
        key=lambda r: (
            list(Way).index(r.way), r.region, r.component, r.zone_id or "", order[r.instance_type],
            not r.live, str(r.as_of), r.source, str(r.hourly),
        ),
    )  # fmt: skip
    spot = _spot_floors(_judged(rate, floors.get(rate.instance_type)) for rate in ordered)
    return tuple(_judged(rate, spot.get(_of_spot(rate), floors.get(rate.instance_type))) for rate in ordered)


def _of_spot(rate: HourlyRate) -> tuple[str, str] | None:
    """By what the floor of a Spot price is found; None for another way's, and for what has no price."""
    if rate.way is not Way.SPOT or rate.hourly is None:
        return None
    return rate.instance_type, rate.hourly.currency


def _judged(rate: HourlyRate, floor: Money | None) -> HourlyRate:
    """The rate, unknown with the reason where it cannot be a price."""
    if rate.hourly is None or known_or_none(rate.hourly, floor) is not None:
        return rate
    return replace(rate, hourly=None, note=f"{rate_text(rate.hourly)}/h is implausibly low")


def _spot_floors(rates: Iterable[HourlyRate]) -> Mapping[tuple[str, str] | None, Money | None]:
    """By type and currency, from the lowest plausible on-demand rate.

    Spot is up to 90 % off what on-demand costs now (EC2 guide, read 2026-11), and on-demand cost twice as
    much some years ago: the highest list price is no measure of it.
    """
    lowest: dict[tuple[str, str], Money] = {}
    for rate in rates:
        if rate.way is Way.ON_DEMAND and rate.hourly is not None:
            key = (rate.instance_type, rate.hourly.currency)
            lowest[key] = min(lowest.get(key, rate.hourly), rate.hourly)
    return {key: floor_from(hourly) for key, hourly in lowest.items()}


def _floor(kind: str, rates: Sequence[HourlyRate]) -> Money | None:
    of_kind = (r for r in rates if r.way is Way.ON_DEMAND and r.instance_type == kind)
    known = [r.hourly for r in of_kind if r.hourly is not None]
    listed = highest_hourly(kind)
    if listed is not None:
        known.append(listed)
    return floor_from(max(known, key=lambda m: (m.amount, m.currency))) if known else None


def _sort_offers(
    need: Need, answers: Sequence[PlaceAnswer], prices: _Prices, now: datetime, may: Set[Way]
) -> tuple[list[tuple[Offer, OfferCost]], tuple[Rejected, ...]]:
    fitting: list[tuple[Offer, OfferCost]] = []
    rejected: list[Rejected] = []
    for offer in _each_once(offer for answer in answers for offer in answer.offers):
        against = _for_others(offer, need) or misfits(offer, need, now)
        if offer.way not in may and need.type_count(offer.instance_type):
            against = (f"{offer.way} does not fit the need", *against)
        if against:
            rejected.append(Rejected(offer, against, prices.cost(need, offer)))
            continue
        fitting.append((offer, prices.cost(need, offer)))
    currencies = currencies_of(cost.total for _, cost in fitting)
    fitting.sort(key=lambda pair: preference(need, pair[0], pair[1], currencies))
    rejected.sort(key=lambda r: (r.offer.paid_window.start, r.offer.region, r.offer.offering_id or ""))
    return fitting, tuple(rejected)


def _for_others(offer: Offer, need: Need) -> tuple[str, ...]:
    """Why an offer is none for the planned part, where it was asked for another; () where it was not."""
    if need.type_count(offer.instance_type):
        return ()
    parts = [p.name for p in need.beside if any(k.instance_type == offer.instance_type for k in p.types)]
    return (f"is for the part {' or '.join(parts)}",) if parts else ()


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


def on_demand_way(need: Need) -> Way:
    """The way without reservation that can hold what the need will run."""
    return Way.ON_DEMAND if need.target is Target.INSTANCES else Way.SAGEMAKER_ON_DEMAND


def _rate_for(need: Need, offer: Offer, rates: Sequence[HourlyRate]) -> HourlyRate | None:
    way, kind = on_demand_way(need), offer.instance_type
    here = (r for r in rates if r.way is way and r.region == offer.region and r.instance_type == kind)
    return next((rate for rate in here if rate.hourly), None)


def _pay_lines(
    need: Need, choices: Sequence[Choice], judged: Sequence[WayVerdict], rates: Sequence[HourlyRate]
) -> tuple[PayAsYouGo, ...]:
    """What the ways without reservation that fit would cost for the best choice's usable time."""
    best = choices[0] if choices else None
    span = best.cost.usable if best else _usable_of_need(need)
    fitting = {v.way for v in judged if v.fits} & _LIST_WAYS
    lines = []
    for rate in rates:
        wanted = need.type_count(rate.instance_type)
        if rate.way not in fitting or wanted is None:
            continue
        count = best.offer.count if best and best.offer.instance_type == rate.instance_type else wanted.count
        kind = instance_type(rate.instance_type)
        running = instance_time(need.profile, span) if need.profile else None
        lines.append(pay_as_you_go(rate, count, span, kind.accelerator_count if kind else None, running))
    order = list(Way)
    return tuple(sorted(lines, key=lambda line: (line.total is None, order.index(line.rate.way))))


def _usable_of_need(need: Need) -> timedelta:
    return max(need.duration - reclaim_before_end(need.target.value), timedelta(0)) or need.duration


def _reasons(need: Need, judged: Sequence[WayVerdict], *, best: bool) -> tuple[str, ...]:
    holds = _HOLDS[need.target]
    ways = [v.way for v in judged if v.fits]
    promise = [w for w in ways if w in {Way.TRAINING_PLAN, Way.CAPACITY_BLOCK}]
    what = "a plan" if Way.TRAINING_PLAN in promise else "a block"
    goal = (f"the {_GOALS[need.goal]}",) if best and need.is_range else ()
    if need.start is not None:
        fixed = f"the start is fixed, and of the ways that can {holds} only {what} promises it"
        return (*goal, f"{fixed} (on-demand may say no on the day)")
    return (*goal, f"of the ways that can {holds} only {what} promises a time")


_GOALS = {
    Goal.SHORTEST: "shortest that meets the need",
    Goal.LONGEST: "longest that the budget pays",
    Goal.CHEAPEST: "cheapest for a usable hour",
}
_HOLDS = {
    Target.ENDPOINT: "host an endpoint",
    Target.TRAINING_JOB: "run a training job",
    Target.HYPERPOD_CLUSTER: "hold a HyperPod cluster",
    Target.STUDIO_APPS: "hold Studio apps",
    Target.INSTANCES: "hold instances",
}


def places_asked(plan: Plan) -> tuple[int, int]:
    """How many places answered in full, and how many there were to ask."""
    return sum(a.is_complete for a in plan.answers), len(plan.answers)


def unanswered(plan: Plan) -> tuple[PlaceAnswer, ...]:
    """The places that did not answer in full."""
    return tuple(a for a in plan.answers if not a.is_complete)


def refusals(plan: Plan) -> tuple[PlaceAnswer, ...]:
    """The places that would say the same again, since a quota or a right is missing there."""
    lasting = {PlaceOutcome.NO_QUOTA, PlaceOutcome.NOT_ALLOWED}
    return tuple(a for a in plan.answers if a.outcome in lasting)


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
