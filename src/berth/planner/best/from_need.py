"""From a need, priced offers and rates to a wish and a supply, one pair for each type that would do.

A need counts paid time, and what can be used of it is shorter: work cannot run while a machine starts, nor
after AWS begins to take it back. At the two ends of the need that is forgiven, as it is for a single offer;
between two pieces it is a hole, which something else must cover or a gap must be allowed for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, pairwise, product

from berth.planner import ladder
from berth.planner.best.supply import Candidate, Confirmed, Meter, Supply
from berth.planner.best.wish import Goal, Part, Step, Wish
from berth.planner.cost import HourlyRate, OfferCost
from berth.planner.currencies import currencies_of
from berth.planner.fit import PAYMENT_LEAD
from berth.planner.framework.limits import BLOCK_COUNT_MAX, BLOCK_INSTANCES_MAX, BOOKABLE_AHEAD
from berth.planner.hourly_quotas import HourlyQuota
from berth.planner.need import Goal as NeedGoal
from berth.planner.need import Need
from berth.planner.offers import Offer, reclaim_before_end
from berth.planner.part import Level, TypeCount
from berth.planner.part import Part as NeedPart
from berth.terms.ways import Target, Way
from berth.terms.window import Window

_GOALS = {
    NeedGoal.SHORTEST: Goal.SHORTEST,
    NeedGoal.LONGEST: Goal.LONGEST,
    NeedGoal.CHEAPEST: Goal.CHEAPEST_PER_HOUR,
}
# What runs over several instances at once wants them in one zone: its traffic stays there.
_IN_ONE_ZONE = {Target.INSTANCES, Target.TRAINING_JOB, Target.HYPERPOD_CLUSTER}

MOST_CHOICES = 8
"""So many choices of types of the parts beside are compared for each type of the planned part."""
PricedOffer = tuple[Offer, OfferCost]
MeterLimits = Mapping[tuple[Way, str, str], int]
"""By way, Region and type: how many instances may run at once (a quota). What is not in it is not known."""


@dataclass(frozen=True, slots=True)
class Case:
    """What the program is asked for one type, and how its answer leads back to offers.

    `left_out` names the parts of the need for which nothing was seen, `held` the types that must be held.
    """

    wish: Wish
    supply: Supply
    offers: Mapping[str, Offer]
    rates: Mapping[str, HourlyRate]
    left_out: tuple[str, ...]
    held: frozenset[str]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen for a need: offers with their costs, each once, and hourly rates that name their type.

    `ways` may be combined; `limits` bound the ways that are paid by the hour where `quotas` do not;
    `blocks_owned` counts the instances of blocks that the account owns. `suppose`: what would be if no quota
    stood in the way of what is paid by the hour. `currency` is the one that is compared (None: the one in
    which most of a type's offers are); a budget's stands over it.
    `promised`: only what is promised counts for parts that must be held.
    """

    offers: Sequence[PricedOffer]
    rates: Sequence[HourlyRate]
    ways: frozenset[Way]
    limits: MeterLimits
    blocks_owned: int = 0
    quotas: tuple[HourlyQuota, ...] = ()
    suppose: bool = False
    promised: bool = False
    currency: str | None = None


def cases_of(need: Need, seen: Seen, now: datetime) -> tuple[Case, ...]:
    """One case for each type that would do and of which anything was seen, the type liked best first; for
    each of those one for every choice of types of the parts beside, MOST_CHOICES at most."""
    made = (
        _case(_Asked(need, wanted, now), beside, seen)
        for wanted in need.types
        for beside in islice(_choices(need, wanted, seen), MOST_CHOICES)
    )
    return tuple(case for case in made if case.supply.candidates)


def _choices(need: Need, wanted: TypeCount, seen: Seen) -> Iterator[tuple[_Beside, ...]]:
    """Every choice of one type for each part beside of which anything can be had, types liked best first."""
    options = (_options(need, part, wanted, seen) for part in need.beside)
    return product(*(found for found in options if found))


def _options(need: Need, part: NeedPart, wanted: TypeCount, seen: Seen) -> list[_Beside]:
    """The types of a part of which offers were seen, or enough can be had by the hour. One type that runs two
    kinds of target is no option: what is bought for one does not serve the other."""
    return [
        _Beside(part, kind)
        for kind in part.types
        if (kind.instance_type != wanted.instance_type or part.target is need.target)
        and (_offered(part, kind, seen) or _by_the_hour(need, part, kind, seen))
    ]


def _offered(part: NeedPart, kind: TypeCount, seen: Seen) -> bool:
    offers = (offer for offer, _ in seen.offers if offer.instance_type == kind.instance_type)
    return part.reserve and any(part.target.value in o.targets and o.way in seen.ways for o in offers)


def _by_the_hour(need: Need, part: NeedPart, kind: TypeCount, seen: Seen) -> bool:
    rates = (r for r in seen.rates if r.instance_type == kind.instance_type and r.hourly is not None)
    way = on_demand_of(part.target)
    here = {r.region for r in rates if r.way is way and r.region in need.regions}
    peaks = {kind.instance_type: kind.count}
    limits = [_limit(seen, (way, region, kind.instance_type), peaks) for region in here]
    if part.reserve and not _allows(need, way):
        return False
    return bool(here) and (seen.suppose or any(most is not None and most >= kind.count for most in limits))


@dataclass(frozen=True, slots=True)
class _Beside:
    """A part beside the planned one, as one of its types."""

    part: NeedPart
    kind: TypeCount


@dataclass(frozen=True, slots=True)
class _Asked:
    """A need for one of its types, now."""

    need: Need
    wanted: TypeCount
    now: datetime

    @property
    def lead(self) -> timedelta:
        """The time from a machine's start until it works."""
        return self.need.startup or timedelta(0)

    @property
    def lost(self) -> timedelta:
        """What of a paid window cannot be used; nothing of a need that is not longer than that."""
        lost = self.lead + reclaim_before_end(self.need.target.value)
        return lost if lost < self.need.duration else timedelta(0)

    @property
    def begin(self) -> datetime:
        """The earliest instant at which work can run."""
        need = self.need
        start = need.start or max(need.earliest_start or self.now, self.now + PAYMENT_LEAD)
        return start + self.lead if self.lost else start

    @property
    def window(self) -> Window:
        """The time to be covered, at its earliest."""
        return Window(self.begin, self.begin + self.need.duration - self.lost)


def _case(asked: _Asked, beside: Sequence[_Beside], seen: Seen) -> Case:
    targets = {asked.wanted.instance_type: asked.need.target}
    targets |= {one.kind.instance_type: one.part.target for one in beside}
    offered = [o for o in seen.offers if o[0].way in seen.ways and _serves(o[0], targets)]
    offers = _named(again for one in offered for again in _repeated(one, asked.wanted))
    made = (_candidate(asked, name, *priced) for name, priced in offers.items())
    candidates = tuple(candidate for candidate in made if candidate is not None)
    meters = _meters(asked, seen, beside, targets)
    mine = tuple(c for c in candidates if c.instance_type == asked.wanted.instance_type)
    supply = Supply(
        candidates,
        tuple(meter for meter, _ in meters.values()),
        confirmed=_beyond_a_block(mine, asked.wanted),
        most_by_way=((Way.CAPACITY_BLOCK, max(_blocks_most(asked.need) - seen.blocks_owned, 0)),),
    )
    known = {one.part.name for one in beside}
    return Case(
        _wish(asked, beside, supply, seen.currency),
        supply,
        {candidate.id: offers[candidate.id][0] for candidate in candidates},
        {name: rate for name, (_, rate) in meters.items()},
        tuple(part.name for part in asked.need.beside if part.name not in known),
        frozenset({asked.wanted.instance_type, *(o.kind.instance_type for o in beside if o.part.reserve)}),
    )


def _serves(offer: Offer, targets: Mapping[str, Target]) -> bool:
    """Whether some part may run in it: its type, for its target."""
    target = targets.get(offer.instance_type)
    return target is not None and target.value in offer.targets


def _repeated(offered: PricedOffer, wanted: TypeCount) -> tuple[PricedOffer, ...]:
    """The offer as often as it may be bought: a block of the largest size holds a part of what is wanted."""
    offer = offered[0]
    largest = offer.way is Way.CAPACITY_BLOCK and offer.count == BLOCK_COUNT_MAX
    return (offered,) * max(wanted.wanted // BLOCK_COUNT_MAX if largest else 1, 1)


def _beyond_a_block(candidates: Sequence[Candidate], wanted: TypeCount) -> tuple[Confirmed, ...]:
    """No search can be asked for more than a block holds: where one for as many found some, more is taken to
    be there. Buying searches again before each payment, and says that no sum was confirmed."""
    if wanted.count <= BLOCK_COUNT_MAX:
        return ()
    full = (one for one in candidates if one.count == BLOCK_COUNT_MAX and one.zone_id is not None)
    return tuple(
        dict.fromkeys(
            Confirmed(one.instance_type, str(one.zone_id), window, wanted.wanted)
            for one in full
            for window in one.held
        )
    )


def _blocks_most(need: Need) -> int:
    """Instances over all blocks: so many for each account over which the need may be spread."""
    return BLOCK_INSTANCES_MAX * max(len(need.accounts), 1)


# -- the supply --------------------------------------------------------------------------------------------
def _named(offers: Iterable[PricedOffer]) -> dict[str, PricedOffer]:
    """Offers by a name of their own: Region and offering id, and which of them where an id comes again."""
    named: dict[str, PricedOffer] = {}
    for offer, cost in sorted(offers, key=_order):
        name = f"{offer.region}/{offer.offering_id or offer.way.value}"
        again = sum(known == name or known.startswith(f"{name}~") for known in named)
        named[f"{name}~{again}" if again else name] = (offer, cost)
    return named


def _order(priced: PricedOffer) -> tuple[object, ...]:
    offer = priced[0]
    fee = offer.fee.amount if offer.fee else 0
    return (offer.region, offer.offering_id or "", offer.segments[0].window, offer.zones, offer.count, fee)


def _candidate(asked: _Asked, name: str, offer: Offer, cost: OfferCost) -> Candidate | None:
    """The offer as a candidate; None where it cannot be one: unknown price, too soon, mixed segments."""
    alike = {(s.instance_type, s.count) for s in offer.segments} == {(offer.instance_type, offer.count)}
    too_soon = offer.paid_window.start - asked.now < PAYMENT_LEAD
    held = tuple(s.window for s in offer.segments)
    if cost.total is None or not alike or too_soon or any(a.end > b.start for a, b in pairwise(held)):
        return None
    early = reclaim_before_end(offer.target)
    usable = (
        Window(w.start + asked.lead, w.end - early) for w in held if w.start + asked.lead < w.end - early
    )
    zones = {s.zone_id for s in offer.segments}
    return Candidate(
        id=name,
        way=offer.way,
        instance_type=offer.instance_type,
        region=offer.region,
        zone_id=zones.pop() if len(zones) == 1 else None,
        held=held,
        usable=tuple(usable),
        count=offer.count,
        fee=cost.total,
    )


def on_demand_of(target: Target) -> Way:
    """The way without reservation that can hold what runs."""
    return Way.ON_DEMAND if target is Target.INSTANCES else Way.SAGEMAKER_ON_DEMAND


def _meters(
    asked: _Asked, seen: Seen, beside: Sequence[_Beside], targets: Mapping[str, Target]
) -> dict[str, tuple[Meter, HourlyRate]]:
    """One meter for each way, place and type that has a price; of several components the part's own."""
    need = asked.need
    held = {asked.wanted.instance_type, *(one.kind.instance_type for one in beside if one.part.reserve)}
    peaks: dict[str, int] = {asked.wanted.instance_type: asked.wanted.count}
    for one in beside:
        peaks[one.kind.instance_type] = peaks.get(one.kind.instance_type, 0) + one.kind.count
    made: dict[str, tuple[Meter, HourlyRate]] = {}
    for rate in seen.rates:
        kind = rate.instance_type
        if rate.hourly is None or kind not in targets or rate.region not in need.regions:
            continue
        if rate.way is not on_demand_of(targets[kind]) and not (rate.way is Way.SPOT and need.interruptible):
            continue
        if kind in held and not _allows(need, rate.way):
            continue
        name = f"{rate.way.value}/{rate.zone_id or rate.region}/{kind}"
        limit = _limit(seen, (rate.way, rate.region, kind), peaks)
        meter = Meter(
            name, rate.way, kind, rate.region, rate.zone_id, rate.hourly, limit, unlimited=seen.suppose
        )
        made.setdefault(name, (meter, rate))
    return made


def _allows(need: Need, way: Way) -> bool:
    """Whether what is held ahead may be had by that way."""
    return not need.ways or way in need.ways


def _limit(seen: Seen, key: tuple[Way, str, str], peaks: Mapping[str, int]) -> int | None:
    """How many instances of a type may run at once; None: not known.

    Of a quota that other types of the need count against too, their peaks are kept free: that is never too
    much, though it may be too little.
    """
    quotas = {(q.way, q.region, q.instance_type): q for q in seen.quotas}
    quota = quotas.get(key)
    if quota is None:
        return seen.limits.get(key)
    kept = 0
    for other in seen.quotas:
        alike = (other.way, other.region, other.code) == (quota.way, quota.region, quota.code)
        if alike and other.code and other.instance_type != quota.instance_type:
            kept += peaks.get(other.instance_type, 0) * (other.each or 0)
    return replace(quota, used=(quota.used or 0) + kept).instances


def _currency(need: Need, lead: str | None) -> str:
    """The budget's; without one that which leads."""
    return need.budget.currency if need.budget is not None else lead or "USD"


# -- the wish ----------------------------------------------------------------------------------------------
def _wish(asked: _Asked, beside: Sequence[_Beside], supply: Supply, currency: str | None) -> Wish:
    """In one Region always; in one zone where several instances work together, or as is said."""
    need, wanted, window, lost = asked.need, asked.wanted, asked.window, asked.lost
    most_gap = _most_gap(need, supply)
    survives = bool(need.interruptible)
    main = Part(
        need.part_name, wanted.instance_type, _steps(need.profile, wanted, window), interruptible=survives
    )
    return Wish(
        (main, *(_head(asked, one, main) for one in beside)),
        currency=_currency(need, currency or currencies_of(c.fee for c in supply.candidates).leads),
        budget=need.budget,
        same_zone=_in_one_zone(need, wanted),
        same_region=True,
        zones=frozenset(need.zone_ids or need.subnet_zones) or None,
        regions=frozenset(need.regions) or None,
        latest_end=_latest_end(asked, supply),
        spans=() if most_gap else tuple(sorted(span - lost for span in _spans(need) if span > lost)),
        goal=_GOALS[need.goal],
        most_gap=most_gap,
        runs=max(need.duration - lost * _stretches(need, supply), timedelta(hours=1)) if most_gap else None,
        startup=asked.lead if lost else timedelta(0),
    )


def _in_one_zone(need: Need, wanted: TypeCount) -> bool:
    """As the need says; else where several instances work together."""
    if need.same_zone is not None:
        return need.same_zone
    return need.target in _IN_ONE_ZONE and wanted.count > 1


def _steps(profile: Sequence[Level], wanted: TypeCount, window: Window) -> tuple[Step, ...]:
    if not profile:
        return (Step(window, wanted.count, wanted.wanted),)
    begins = [window.start + level.offset for level in profile]
    edges = [begin for begin in begins if begin < window.end] + [window.end]
    levels = zip(pairwise(edges), profile, strict=False)
    return tuple(Step(Window(a, b), level.count, level.count) for (a, b), level in levels)


def _head(asked: _Asked, one: _Beside, main: Part) -> Part:
    """A part beside the planned one, all through the same time; in its zone where both work together."""
    together = {asked.need.target, one.part.target} <= _IN_ONE_ZONE and asked.need.same_zone is not False
    steps = _steps(one.part.profile, one.kind, asked.window)
    return Part(one.part.name, one.kind.instance_type, steps, beside=main.name if together else None)


def _spans(need: Need) -> set[timedelta]:
    """The durations of a range at which offers end: the ladder's steps, and both ends."""
    if not need.is_range:
        return {need.duration}
    return {need.duration, *ladder.steps_between(need.duration, need.duration_at_most), need.duration_at_most}


def _most_gap(need: Need, supply: Supply) -> timedelta:
    """The longest gap that is allowed: as said; else a training job takes those that an offer itself has."""
    if need.profile or need.is_range or need.beside:
        return timedelta(0)
    if need.gap_at_most is not None:
        return need.gap_at_most
    if need.target is not Target.TRAINING_JOB:
        return timedelta(0)
    gaps = [b.start - a.end for c in supply.candidates for a, b in pairwise(c.usable)]
    return max(gaps, default=timedelta(0))


def _stretches(need: Need, supply: Supply) -> int:
    """In how many stretches work that may pause is run at most: each loses its start-up and its end.

    A plan has five segments at most (SageMaker guide, read 2026-11), and nothing is sold for less than a day.
    """
    segments = max((len(c.held) for c in supply.candidates), default=1)
    return max(segments, min(5, 1 + need.duration // timedelta(days=1)))


def _latest_end(asked: _Asked, supply: Supply) -> datetime | None:
    """Until when work may run; None with a fixed start. Without a latest end: as far ahead as is sold."""
    need, end = asked.need, asked.window.end
    if need.start is not None:
        return None
    if need.latest_end is not None:
        return max(need.latest_end - reclaim_before_end(need.target.value), end)
    last = max((w.end for c in supply.candidates for w in c.usable), default=end)
    return max(end, min(last, asked.now + BOOKABLE_AHEAD + need.duration_at_most))
