"""What can be said of a need when nobody can be asked: verdicts by rule, list prices with their age."""

from __future__ import annotations

from datetime import datetime

from berth.planner.choose import make_plan
from berth.planner.need import Need
from berth.planner.offers import PlaceAnswer, PlaceOutcome
from berth.planner.plan import Plan
from berth.planner.verdicts import verdicts
from berth.sources.list_prices import list_rates
from berth.sources.published import block_list_notes
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
    return make_plan(need, answers, list_rates(need, need.regions, NO_LOGIN), now, notes=notes)
