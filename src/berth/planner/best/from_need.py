"""From a need, priced offers and rates to a wish and a supply, one pair for each type that would do.

A need counts paid time, and what can be used of it is shorter: work cannot run while a machine starts, nor
after AWS begins to take it back. At the two ends of the need that is forgiven, as it is for a single offer;
between two pieces it is a hole, which something else must cover or a gap must be allowed for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from berth.planner import ladder
from berth.planner.best.supply import Candidate, Confirmed, Meter, Supply
from berth.planner.best.wish import Goal, Part, Step, Wish
from berth.planner.cost import HourlyRate, OfferCost
from berth.planner.fit import PAYMENT_LEAD
from berth.planner.framework.limits import BLOCK_COUNT_MAX, BLOCK_INSTANCES_MAX, BOOKABLE_AHEAD
from berth.planner.need import Goal as NeedGoal
from berth.planner.need import Need
from berth.planner.offers import Offer, reclaim_before_end
from berth.planner.part import Part as NeedPart
from berth.planner.part import TypeCount
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

_GOALS = {
    NeedGoal.SHORTEST: Goal.SHORTEST,
    NeedGoal.LONGEST: Goal.LONGEST,
    NeedGoal.CHEAPEST: Goal.CHEAPEST_PER_HOUR,
}
# What runs over several instances at once wants them in one zone: its traffic stays there.
_IN_ONE_ZONE = {Target.INSTANCES, Target.TRAINING_JOB, Target.HYPERPOD_CLUSTER}

PricedOffer = tuple[Offer, OfferCost]
MeterLimits = Mapping[tuple[Way, str, str], int]
"""By way, Region and type: how many instances may run at once (a quota). What is not in it is not known."""


@dataclass(frozen=True, slots=True)
class Case:
    """What the program is asked for one type, and how its answer leads back to offers.

    `left_out` names the parts of the need for which nothing was seen.
    """

    wish: Wish
    supply: Supply
    offers: Mapping[str, Offer]
    rates: Mapping[str, HourlyRate]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen for a need: offers with their costs, each once, and hourly rates that name their type.

    `ways` may be combined; `limits` bound the ways that are paid by the hour; `blocks_owned` counts the
    instances of blocks that the account owns. `same_zone` None: as the target wants it.
    """

    offers: Sequence[PricedOffer]
    rates: Sequence[HourlyRate]
    ways: frozenset[Way]
    limits: MeterLimits
    blocks_owned: int = 0
    same_zone: bool | None = None


def cases_of(need: Need, seen: Seen, now: datetime) -> tuple[Case, ...]:
    """One case for each type that would do and of which anything was seen, the type liked best first."""
    made = (_case(_Asked(need, wanted, now), seen) for wanted in need.types)
    return tuple(case for case in made if case.supply.candidates)


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


def _case(asked: _Asked, seen: Seen) -> Case:
    kind = asked.wanted.instance_type
    offered = [o for o in seen.offers if o[0].instance_type == kind and o[0].way in seen.ways]
    offers = _named(again for one in offered for again in _repeated(one, asked.wanted))
    made = (_candidate(asked, name, *priced) for name, priced in offers.items())
    candidates = tuple(candidate for candidate in made if candidate is not None)
    beside, left_out = _beside(asked.need, seen)
    meters = _meters(asked.need, seen, {kind, *(p.types[0].instance_type for p in beside)})
    supply = Supply(
        candidates,
        tuple(meter for meter, _ in meters.values()),
        confirmed=_beyond_a_block(candidates, asked.wanted),
        most_by_way=((Way.CAPACITY_BLOCK, max(_blocks_most(asked.need) - seen.blocks_owned, 0)),),
    )
    return Case(
        _wish(asked, beside, supply, same_zone=seen.same_zone),
        supply,
        {candidate.id: offers[candidate.id][0] for candidate in candidates},
        {name: rate for name, (_, rate) in meters.items()},
        left_out,
    )


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


def _meters(need: Need, seen: Seen, kinds: set[str]) -> dict[str, tuple[Meter, HourlyRate]]:
    """One meter for each way, place and type that has a price; of several components the need's own."""
    allowed = {Way.SPOT} if need.interruptible else set()
    allowed.add(Way.ON_DEMAND if need.target is Target.INSTANCES else Way.SAGEMAKER_ON_DEMAND)
    made: dict[str, tuple[Meter, HourlyRate]] = {}
    for rate in seen.rates:
        if rate.hourly is None or rate.way not in allowed or rate.instance_type not in kinds:
            continue
        if rate.region not in need.regions:
            continue
        name = f"{rate.way.value}/{rate.zone_id or rate.region}/{rate.instance_type}"
        limit = seen.limits.get((rate.way, rate.region, rate.instance_type))
        made.setdefault(
            name,
            (
                Meter(name, rate.way, rate.instance_type, rate.region, rate.zone_id, rate.hourly, limit),
                rate,
            ),
        )
    return made


def _currency(need: Need, fees: Sequence[Money]) -> str:
    """The budget's; without one the currency of most offers, of equals the first by name."""
    if need.budget is not None:
        return need.budget.currency
    known = [fee.currency for fee in fees]
    return min(known, key=lambda code: (-known.count(code), code)) if known else "USD"


# -- the wish ----------------------------------------------------------------------------------------------
def _beside(need: Need, seen: Seen) -> tuple[list[NeedPart], tuple[str, ...]]:
    """The further parts that can be paid by the hour, and the names of those that cannot."""
    limits = {kind for (_, _, kind), limit in seen.limits.items() if limit}
    can = [p for p in need.beside if not p.reserve and p.types[0].instance_type in limits]
    return can, tuple(p.name for p in need.beside if p not in can)


def _wish(asked: _Asked, beside: Sequence[NeedPart], supply: Supply, *, same_zone: bool | None) -> Wish:
    """In one Region always; in one zone where several instances work together, or as is said."""
    need, wanted, window, lost = asked.need, asked.wanted, asked.window, asked.lost
    most_gap = _most_gap(need, supply)
    survives = bool(need.interruptible)
    main = Part(need.part_name, wanted.instance_type, _steps(need, wanted, window), interruptible=survives)
    return Wish(
        (main, *(_head(part, main, window) for part in beside)),
        currency=_currency(need, [c.fee for c in supply.candidates]),
        budget=need.budget,
        same_zone=need.target in _IN_ONE_ZONE and wanted.count > 1 if same_zone is None else same_zone,
        same_region=True,
        zones=frozenset(need.zone_ids or need.subnet_zones) or None,
        regions=frozenset(need.regions) or None,
        latest_end=_latest_end(asked, supply),
        spans=() if most_gap else tuple(sorted(span - lost for span in _spans(need) if span > lost)),
        goal=_GOALS[need.goal],
        most_gap=most_gap,
        runs=max(need.duration - lost * _stretches(need, supply), timedelta(hours=1)) if most_gap else None,
    )


def _steps(need: Need, wanted: TypeCount, window: Window) -> tuple[Step, ...]:
    if not need.profile:
        return (Step(window, wanted.count, wanted.wanted),)
    begins = [window.start + level.offset for level in need.profile]
    edges = [begin for begin in begins if begin < window.end] + [window.end]
    levels = zip(pairwise(edges), need.profile, strict=False)
    return tuple(Step(Window(a, b), level.count, level.count) for (a, b), level in levels)


def _head(part: NeedPart, main: Part, window: Window) -> Part:
    kind = part.types[0]
    return Part(part.name, kind.instance_type, (Step(window, kind.count, kind.wanted),), beside=main.name)


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
