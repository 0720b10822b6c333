"""What can be said of a need when nobody can be asked: verdicts by rule, list prices with their age."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from berth.planner.choose import make_plan
from berth.planner.cost import HourlyRate
from berth.planner.need import Need
from berth.planner.offers import PlaceAnswer, PlaceOutcome
from berth.planner.plan import Plan
from berth.planner.verdicts import verdicts
from berth.sources.list_prices import list_rates
from berth.sources.published import block_list_notes
from berth.sources.spot import listed_spot
from berth.terms.ways import Way

NO_LOGIN = "no login"
_BOUGHT_AHEAD = (Way.TRAINING_PLAN, Way.CAPACITY_BLOCK)


def plan_offline(need: Need, now: datetime) -> Plan:
    """The plan in which every place was not asked. Reads the shipped tables alone."""
    fitting = [v.way for v in verdicts(need, now) if v.fits and v.way in _BOUGHT_AHEAD]
    answers = [
        PlaceAnswer(way, region, PlaceOutcome.NOT_ASKED, now, NO_LOGIN)
        for way in fitting
        for region in need.regions
    ]
    notes = block_list_notes(need, now.date()) if Way.CAPACITY_BLOCK in fitting else ()
    rates = (*list_rates(need, need.regions, NO_LOGIN), *_spot(need))
    return make_plan(need, answers, rates, now, notes=notes)


def _spot(need: Need) -> Iterator[HourlyRate]:
    """What Spot was seen at, for each of the need's types."""
    for kind in (one.instance_type for one in need.types):
        name = "" if kind == need.instance_type else kind
        for region in need.regions:
            for rate in listed_spot(kind, need.platform, region, NO_LOGIN):
                yield replace(rate, instance_type=name)
