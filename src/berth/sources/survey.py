"""Ask every place about a need: what is owned, what is on sale, what else would cost, and make the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from berth.aws.session import Door
from berth.planner.choose import make_plan
from berth.planner.cost import HourlyRate
from berth.planner.need import Need
from berth.planner.offers import PlaceAnswer, PlaceOutcome, Query
from berth.planner.owned import OwnedAnswer
from berth.planner.plan import Plan
from berth.planner.queries import block_queries, training_plan_queries
from berth.planner.surcharge import OsRate
from berth.planner.verdicts import verdicts
from berth.sources import capacity_blocks, training_plans
from berth.sources.asking import Lane, ask_all
from berth.sources.list_prices import list_rates
from berth.sources.on_demand import on_demand_rates
from berth.sources.owned import owned_blocks, owned_plans
from berth.sources.pricing import HOME
from berth.sources.sagemaker_prices import sagemaker_rates
from berth.sources.spot import spot_rates
from berth.terms.ways import Target, Way

RANK_AT_MOST_EVERY_S = 0.25
"""Ranking costs more, the more was heard: while answers come in it is done now and then."""
_INTERRUPTED = "interrupted before it answered"


@dataclass(frozen=True, slots=True)
class Rates:
    """Prices that one lane found."""

    hourly: tuple[HourlyRate, ...]
    fees: tuple[OsRate, ...] = ()


Heard = PlaceAnswer | OwnedAnswer | Rates
Told = Callable[[PlaceAnswer, Plan | None], None]
"""Hears each place's answer as it comes, and now and then the plan so far (None in between)."""


def survey(door: Door, need: Need, told: Told) -> Plan:
    """The plan for `need` in the door's Regions. `told` is called in the caller's own thread.

    Everything is asked at once. Ctrl-C ends the asking and keeps what is there: the places that had not
    answered are "not asked" in the plan. Raises BerthError when the need is pinned to another account.
    """
    door.check_account(need.account)
    asking = _Survey(door, need, told)
    ask_all(asking.lanes(), asking.hear)
    return asking.finished()


@dataclass(slots=True)
class _Survey:
    """One survey under way."""

    door: Door
    need: Need
    told: Told
    queries: tuple[Query, ...] = ()
    answers: list[PlaceAnswer] = field(default_factory=list)
    owned: list[OwnedAnswer] = field(default_factory=list)
    rates: list[HourlyRate] = field(default_factory=list)
    fees: list[OsRate] = field(default_factory=list)
    ranked_at: float | None = None

    # -- what is asked -----------------------------------------------------------------------------------
    def lanes(self) -> list[Lane[Heard]]:
        """Searches first: they decide how long it takes."""
        now = self.door.clock.now()
        fitting = {v.way for v in verdicts(self.need, now) if v.fits}
        regions = self.door.regions
        lanes: list[Lane[Heard]] = []
        if Way.TRAINING_PLAN in fitting:
            plans = training_plan_queries(self.need, regions, now)
            self.queries += plans
            lanes += [self._plan_lane(query) for query in plans]
        if Way.CAPACITY_BLOCK in fitting:
            blocks = block_queries(self.need, regions, now)
            self.queries += blocks
            lanes += [self._block_lane(query) for query in blocks]
        lanes += [self._owned_lane(region) for region in regions]
        if Way.SPOT in fitting:
            lanes += [self._spot_lane(region) for region in regions]
        return [*lanes, self._price_lane(now)]

    def _plan_lane(self, query: Query) -> Lane[Heard]:
        reader, now = self.door.reader, self.door.clock.now

        def lane(hand_over: Callable[[Heard], None]) -> None:
            sagemaker, ec2 = reader("sagemaker", query.region), reader("ec2", query.region)
            hand_over(training_plans.search_place(query, sagemaker, ec2, now=now))

        return lane

    def _block_lane(self, query: Query) -> Lane[Heard]:
        door = self.door

        def lane(hand_over: Callable[[Heard], None]) -> None:
            hand_over(capacity_blocks.search_place(query, door.reader("ec2", query.region), door.clock))

        return lane

    def _owned_lane(self, region: str) -> Lane[Heard]:
        reader = self.door.reader
        on_ec2 = self.need.target is Target.INSTANCES

        def lane(hand_over: Callable[[Heard], None]) -> None:
            ec2 = reader("ec2", region)
            plans = None if on_ec2 else owned_plans(reader("sagemaker", region), region, ec2)
            hand_over(plans or owned_blocks(ec2, region))

        return lane

    def _spot_lane(self, region: str) -> Lane[Heard]:
        need, door = self.need, self.door

        def lane(hand_over: Callable[[Heard], None]) -> None:
            ec2 = door.reader("ec2", region)
            hand_over(Rates(spot_rates(ec2, need.instance_type, need.platform, region, door.clock.now())))

        return lane

    def _price_lane(self, now: datetime) -> Lane[Heard]:
        need, door = self.need, self.door
        bare = need.instance_type.removeprefix("ml.")

        def lane(hand_over: Callable[[Heard], None]) -> None:
            pricing = door.reader("pricing", HOME)
            hourly, fees = on_demand_rates(pricing, bare, need.platform, door.regions, now.date())
            managed = sagemaker_rates(pricing, need.instance_type, need.target, door.regions, now.date())
            hand_over(Rates((*hourly, *managed), fees))

        return lane

    # -- what is heard -----------------------------------------------------------------------------------
    def hear(self, heard: Heard) -> None:
        """Keep an answer, and rank what is there if it is time."""
        if isinstance(heard, Rates):
            self.rates += [self._with_origin(rate) for rate in heard.hourly]
            self.fees += heard.fees
        elif isinstance(heard, OwnedAnswer):
            self.owned.append(heard)
        else:
            self.answers.append(heard)
            self.told(heard, self._ranked() if heard.offers else None)

    def _with_origin(self, rate: HourlyRate) -> HourlyRate:
        """What a rehearsal tells is no price of AWS's, and its source must not read as if it were."""
        if not rate.live or self.door.identity.rehearsal is None:
            return rate
        return replace(rate, source=f"the rehearsal's {rate.source.removeprefix('AWS ')}")

    def _ranked(self) -> Plan | None:
        at = self.door.clock.elapsed()
        if self.ranked_at is not None and at - self.ranked_at < RANK_AT_MOST_EVERY_S:
            return None
        plan = self._plan(self.answers, self.owned)
        self.ranked_at = self.door.clock.elapsed()
        return plan

    def finished(self) -> Plan:
        """The plan from all that was heard; what was not is said."""
        return self._plan((*self.answers, *self._unheard()), (*self.owned, *self._unread()))

    def _unheard(self) -> Iterator[PlaceAnswer]:
        heard = {answer.question for answer in self.answers}
        now = self.door.clock.now()
        for query in self.queries:
            if query not in heard:
                yield PlaceAnswer(
                    query.way, query.region, PlaceOutcome.NOT_ASKED, now, _INTERRUPTED, question=query
                )

    def _unread(self) -> Iterator[OwnedAnswer]:
        heard = {answer.region for answer in self.owned}
        way = Way.CAPACITY_BLOCK if self.need.target is Target.INSTANCES else Way.TRAINING_PLAN
        for region in self.door.regions:
            if region not in heard:
                yield OwnedAnswer(way, region, (), _INTERRUPTED)

    def _plan(self, answers: Iterable[PlaceAnswer], owned: Iterable[OwnedAnswer]) -> Plan:
        known = {(rate.way, rate.region) for rate in self.rates}
        listed = list_rates(self.need, self.door.regions, "the Price List has not answered")
        identity = self.door.identity
        return make_plan(
            self.need,
            answers,
            (*self.rates, *(rate for rate in listed if (rate.way, rate.region) not in known)),
            self.door.clock.now(),
            owned=owned,
            os_rates=self.fees,
            account=identity.account,
            rehearsal=identity.rehearsal.url if identity.rehearsal else None,
        )
