"""Ask every place about a need, look up what the other ways list for, and make the plan."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from berth.aws.session import Door
from berth.planner.choose import make_plan
from berth.planner.need import Need
from berth.planner.offers import PlaceAnswer, PlaceOutcome
from berth.planner.plan import Plan
from berth.planner.queries import training_plan_queries
from berth.planner.verdicts import verdicts
from berth.sources.list_prices import list_rates
from berth.sources.training_plans import search
from berth.terms.ways import Way


def survey(door: Door, need: Need, told: Callable[[PlaceAnswer], None]) -> Plan:
    """The plan for `need` in the door's Regions; `told` hears each place's answer as it comes, in threads.

    Raises BerthError when the need is pinned to another account.
    """
    door.check_account(need.account)
    now = door.clock.now()
    fitting = {v.way for v in verdicts(need, now) if v.fits}
    answers: tuple[PlaceAnswer, ...] = ()
    if Way.TRAINING_PLAN in fitting:
        answers += search(door, training_plan_queries(need, door.regions, now), told)
    if Way.CAPACITY_BLOCK in fitting:
        answers += _not_asked(door.regions, now)
    identity = door.identity
    return make_plan(
        need,
        answers,
        list_rates(need, door.regions),
        door.clock.now(),
        account=identity.account,
        rehearsal=identity.rehearsal.url if identity.rehearsal else None,
    )


def _not_asked(regions: tuple[str, ...], now: datetime) -> tuple[PlaceAnswer, ...]:
    why = "Capacity Blocks are judged and not searched by this version"
    return tuple(
        PlaceAnswer(Way.CAPACITY_BLOCK, region, PlaceOutcome.NOT_ASKED, now, why) for region in regions
    )
