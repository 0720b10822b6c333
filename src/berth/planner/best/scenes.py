"""Scenes: the wish at one start, for one duration, in one place. Each is a covering problem of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from berth.planner.best.answer import Refused
from berth.planner.best.supply import Candidate, Meter, Supply
from berth.planner.best.wish import Wish
from berth.terms.ways import Way


@dataclass(frozen=True, slots=True)
class Place:
    """Where everything that must be together is: a Region, and a zone of it if zones must not differ.

    `only` names the one candidate of a place whose zone is not known: nothing can be said to be beside it.
    """

    region: str
    zone_id: str | None = None
    only: str | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """A fixed wish and what can be had for it. `place` is None where anything goes."""

    wish: Wish
    supply: Supply
    place: Place | None


def _why_not(wish: Wish, thing: Candidate | Meter, currency: str) -> str:
    """Why a candidate or a meter is not compared; '' when it is."""
    if currency != wish.currency:
        return f"is priced in {currency}, compared is {wish.currency}"
    if all(part.instance_type != thing.instance_type for part in wish.parts):
        return f"is {thing.instance_type}, which no part asks for"
    if wish.regions is not None and thing.region not in wish.regions:
        return f"is in {thing.region}, which is not allowed"
    if wish.zones is None or thing.zone_id in wish.zones:
        return ""
    return (
        f"is in {thing.zone_id}, which is not allowed" if thing.zone_id else "is in a zone that is not known"
    )


def _why_not_metered(wish: Wish, meter: Meter) -> str:
    if meter.zone_id is None:  # it can be had in each zone of its Region
        wish = replace(wish, zones=None)
    if reason := _why_not(wish, meter, meter.hourly.currency):
        return reason
    if not meter.counted_on:
        return (
            "has a quota that is not known, so it is not counted on"
            if meter.limit is None
            else "has a quota of which nothing is left"
        )
    survives = any(p.interruptible for p in wish.parts if p.instance_type == meter.instance_type)
    if meter.way is Way.SPOT and not survives:
        return "may be taken back, and no part survives that"
    return ""


def comparable(wish: Wish, supply: Supply) -> tuple[Supply, tuple[Refused, ...]]:
    """What can be compared and is allowed, and what is refused with the reason."""
    sold = {c.id: _why_not(wish, c, c.fee.currency) for c in supply.candidates}
    metered = {m.id: _why_not_metered(wish, m) for m in supply.meters}
    kept = replace(
        supply,
        candidates=tuple(c for c in supply.candidates if not sold[c.id]),
        meters=tuple(m for m in supply.meters if not metered[m.id]),
    )
    refused = [Refused(name, why) for said in (sold, metered) for name, why in said.items() if why]
    return kept, tuple(sorted(refused, key=lambda r: (r.id, r.reason)))


def places_of(wish: Wish, supply: Supply) -> Sequence[Place | None]:
    """The places that must be looked at one by one; only None where nothing must be together."""
    together = wish.same_zone or any(part.beside for part in wish.parts)
    if not together and not wish.same_region:
        return (None,)
    things: list[Candidate | Meter] = [*supply.candidates, *supply.meters]
    regions = sorted({thing.region for thing in things})
    if not together:
        return [Place(region) for region in regions]
    zones = {(t.region, t.zone_id or "") for t in things if t.zone_id is not None}
    alone = [Place(c.region, None, c.id) for c in supply.candidates if c.zone_id is None]
    bare = [Place(m.region, None, "") for m in supply.meters if m.zone_id is None]
    known = [Place(region, zone) for region, zone in sorted(zones)]
    return [*known, *sorted(alone, key=lambda p: p.only or ""), *sorted(set(bare), key=lambda p: p.region)]


def at_place(wish: Wish, supply: Supply, place: Place | None) -> Supply:
    """What can be had where everything that must be together is in `place`."""
    if place is None:
        return supply
    bound = {p.instance_type for p in wish.parts}
    if not wish.same_zone and not wish.same_region:
        beside = {p.beside for p in wish.parts if p.beside} | {p.name for p in wish.parts if p.beside}
        bound = {p.instance_type for p in wish.parts if p.name in beside}
    candidates = tuple(
        c for c in supply.candidates if c.instance_type not in bound or _candidate_in(c, place, wish)
    )
    meters = tuple(m for m in supply.meters if m.instance_type not in bound or _meter_in(m, place, wish))
    return replace(supply, candidates=candidates, meters=meters)


def _candidate_in(candidate: Candidate, place: Place, wish: Wish) -> bool:
    if candidate.region != place.region:
        return False
    if place.only is not None:
        return candidate.id == place.only
    return place.zone_id is None or candidate.zone_id == place.zone_id


def _meter_in(meter: Meter, place: Place, wish: Wish) -> bool:
    """A way that is priced for a Region can be had in each of its zones, as far as it can be had."""
    if meter.region != place.region:
        return False
    if place.zone_id is None and place.only is None:
        return True
    return meter.zone_id is None or meter.zone_id == place.zone_id


def shifts(wish: Wish, supply: Supply) -> list[timedelta]:
    """By how much the start may be moved for the cost to be least, earliest first.

    With the same offers, cost changes evenly with the start between two points at which an edge of the
    profile meets an edge of an offer, so that the least is at one of those, or at the earliest or the
    latest start.
    """
    slack = wish.slack
    if not slack:
        return [timedelta(0)]
    mine = {e for p in wish.parts for s in p.steps for e in (s.window.start, s.window.end)}
    theirs = {e for c in supply.candidates for w in c.usable for e in (w.start, w.end)}
    met = {their - my for my in mine for their in theirs}
    return sorted({d for d in met if timedelta(0) <= d <= slack} | {timedelta(0), slack})


def spread(found: Sequence[Scene], most: int) -> list[Scene]:
    """At most `most` scenes, evenly chosen, the first and the last with them."""
    if len(found) <= most:
        return list(found)
    return [found[i * (len(found) - 1) // (most - 1)] for i in range(most)] if most > 1 else [found[0]]


def scenes_of(wish: Wish, supply: Supply, span: timedelta) -> Iterator[Scene]:
    """The scenes of one duration, in order of place and start."""
    lasting = wish.lasting(span) if span != wish.end - wish.start else replace(wish, spans=())
    if wish.latest_end is not None and lasting.end > wish.latest_end:
        return
    for place in places_of(lasting, supply):
        here = at_place(lasting, supply, place)
        if lasting.most_gap:
            yield Scene(lasting, here, place)
            continue
        for shift in shifts(lasting, here):
            yield Scene(lasting.moved(shift), here, place)


def latest_of(wish: Wish) -> datetime:
    """The last instant at which the work may run."""
    return wish.latest_end or wish.end
