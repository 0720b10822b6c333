"""Ask every place about a need: what is owned, what is on sale, what else would cost, and make the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from berth.aws.session import Door
from berth.planner.choose import make_plan
from berth.planner.cost import HourlyRate
from berth.planner.hourly_quotas import BY_THE_HOUR, HourlyQuota, quotas_asked
from berth.planner.need import Need
from berth.planner.offers import PlaceAnswer, PlaceOutcome, Query
from berth.planner.owned import OwnedAnswer
from berth.planner.plan import Plan
from berth.planner.queries import block_queries, training_plan_queries
from berth.planner.second_questions import second_questions
from berth.planner.surcharge import OsRate
from berth.planner.verdicts import verdicts
from berth.sources import capacity_blocks, sweep, training_plans
from berth.sources.asking import Lane, ask_all
from berth.sources.keeping import Memory, NoMemory
from berth.sources.list_prices import list_rates
from berth.sources.on_demand import on_demand_rates
from berth.sources.owned import owned_plans, owned_reservations
from berth.sources.pacing import BLOCK_SEARCH, Pacer, ScaledClock
from berth.sources.pricing import HOME
from berth.sources.quiet_hours import quieter
from berth.sources.quotas import hourly_quotas
from berth.sources.sagemaker_prices import sagemaker_rates
from berth.sources.spot import spot_rates
from berth.sources.spot_scores import spot_scores
from berth.sources.zone_types import without_local_zones
from berth.terms.ways import Target, Way

RANK_AT_MOST_EVERY_S = 0.25
"""Ranking costs more, the more was heard: while answers come in it is done now and then."""
_INTERRUPTED = "interrupted before it answered"


@dataclass(frozen=True, slots=True)
class Rates:
    """Prices that one lane found, and what there is to know beside them."""

    hourly: tuple[HourlyRate, ...]
    fees: tuple[OsRate, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quotas:
    """What bounds the ways that are paid by the hour in one Region."""

    found: tuple[HourlyQuota, ...]


Heard = PlaceAnswer | OwnedAnswer | Rates | Quotas
Told = Callable[[PlaceAnswer, Plan | None], None]
"""Hears each place's answer as it comes, and now and then the plan so far (None in between)."""


class Listener:
    """Hears a survey in the caller's own thread. This one says nothing; override what is of use."""

    def begins(self, questions: int, seconds: float) -> None:
        """Before anything is asked: how many questions there are, and the least time they take on AWS."""

    def told(self, answer: PlaceAnswer, so_far: Plan | None) -> None:
        """Each place's answer as it comes, and now and then the plan so far (None in between)."""

    def progress(self, made: sweep.Progress) -> None:
        """How far the sweep is, after each answer."""


class Heeding(Listener):
    """A listener made of one function, for those who want the answers alone."""

    def __init__(self, told: Told) -> None:
        self._told = told

    def told(self, answer: PlaceAnswer, so_far: Plan | None) -> None:
        """Hand it on."""
        self._told(answer, so_far)


def survey(
    door: Door,
    need: Need,
    told: Told | Listener,
    *,
    memory: Memory | None = None,
    local_zones: bool = True,
    paces: Mapping[str, Pacer] | None = None,
) -> Plan:
    """The plan for `need` in the door's Regions. `told` is called in the caller's own thread.

    All Regions are asked at once, each Region one question after another, as AWS's buckets allow. Ctrl-C ends
    the asking and keeps what is there: the places that had not answered are "not asked" in the plan. `memory`
    keeps each answer and knows what was asked lately (None: nothing is kept). `local_zones` False leaves out
    what is on sale in Local Zones. `paces` are the Regions' buckets, for one who surveys again and again
    (None: what `memory` says is left of them). Raises BerthError when the need is pinned to another account.
    """
    door.check_account(need.account)
    listener = told if isinstance(told, Listener) else Heeding(told)
    memory = memory or NoMemory()
    paces = paces if paces is not None else block_paces(door, memory)
    asking = _Survey(door, need, listener, memory, paces, local_zones=local_zones)
    ask_all(asking.lanes(), asking.hear)
    if more := asking.once_more():
        ask_all(more, asking.hear)
    return asking.finished()


def block_paces(door: Door, memory: Memory) -> dict[str, Pacer]:
    """For each Region of the door the bucket of block searches, with what one's own asks left in it."""
    clock, scale = pace_clock(door), door.clock.throttle_scale
    made = {}
    for region in door.regions:
        tokens = BLOCK_SEARCH.level([ago * scale for ago in memory.sent_ago(region)])
        made[region] = Pacer(clock.elapsed, clock.sleep, tokens=tokens)
    return made


def pace_clock(door: Door) -> ScaledClock:
    """The clock that throttles run on: real time, or faster where a rehearsal says that its own do."""
    return ScaledClock(door.clock, door.clock.throttle_scale)


@dataclass(slots=True)
class _Survey:
    """One survey under way."""

    door: Door
    need: Need
    listener: Listener
    memory: Memory
    paces: Mapping[str, Pacer]
    local_zones: bool = True
    asked: Mapping[sweep.Lane, tuple[Query, ...]] = field(default_factory=dict)
    done: Counter[sweep.Lane] = field(default_factory=Counter)
    began: float = 0.0
    held: Mapping[str, float] = field(default_factory=dict)
    answers: list[PlaceAnswer] = field(default_factory=list)
    owned: list[OwnedAnswer] = field(default_factory=list)
    rates: list[HourlyRate] = field(default_factory=list)
    fees: list[OsRate] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    quotas: list[HourlyQuota] = field(default_factory=list)
    ranked_at: float | None = None

    # -- what is asked -----------------------------------------------------------------------------------
    def lanes(self) -> list[Lane[Heard]]:
        """Searches first: they decide how long it takes."""
        now = self.door.clock.now()
        fitting = {v.way for v in verdicts(self.need, now) if v.fits}
        regions = self.door.regions
        self.asked = sweep.lanes_of(self._questions(now))
        self.began = pace_clock(self.door).elapsed()
        self.held = {region: pacer.tokens for region, pacer in self.paces.items()}
        questions = [query for asked in self.asked.values() for query in asked]
        self.listener.begins(len(questions), self._least_s())
        lanes = [self._search_lane(way, region, asked) for (way, region), asked in self.asked.items()]
        lanes += [self._owned_lane(region) for region in regions]
        if Way.SPOT in fitting:
            lanes += [self._spot_lane(region) for region in regions]
            lanes.append(self._score_lane())
        lanes += [
            self._quota_lane(region, asked) for region in regions if (asked := self._bounds(region, now))
        ]
        return [*lanes, self._price_lane(now)]

    def once_more(self) -> list[Lane[Heard]]:
        """What the answers leave open; nothing where the asking was ended by hand."""
        if any(True for _ in self._unheard()):
            return []
        more = sweep.lanes_of(second_questions(self.need, self.answers))
        self.asked = {**self.asked, **{lane: (*self.asked[lane], *asked) for lane, asked in more.items()}}
        return [self._search_lane(way, region, asked) for (way, region), asked in more.items()]

    def _questions(self, now: datetime) -> tuple[Query, ...]:
        """What the parts ask that are held ahead, each as it prefers it; a question of two comes once."""
        found: tuple[Query, ...] = ()
        for need in self._parts():
            fitting = {v.way for v in verdicts(need, now) if v.fits}
            if Way.TRAINING_PLAN in fitting:
                found += training_plan_queries(need, self.door.regions, now)
            if Way.CAPACITY_BLOCK in fitting:
                found += block_queries(need, self.door.regions, now)
        return tuple(dict.fromkeys(found))

    def _parts(self) -> tuple[Need, ...]:
        """The planned part, and each part beside it that is held ahead too, as needs of their own."""
        held = (part for part in self.need.beside if part.reserve)
        return (self.need, *(self.need.alone(part) for part in held))

    def _bounds(self, region: str, now: datetime) -> tuple[HourlyQuota, ...]:
        """The quotas of what may be paid by the hour there, for all parts."""
        needs = (self.need, *(self.need.alone(part) for part in self.need.beside))
        ways = {v.way for need in needs for v in verdicts(need, now) if v.fits}
        return quotas_asked(self.need, ways & BY_THE_HOUR, region)

    def _quota_lane(self, region: str, asked: tuple[HourlyQuota, ...]) -> Lane[Heard]:
        reader = self.door.reader

        def lane(hand_over: Callable[[Heard], None]) -> None:
            hand_over(Quotas(asked))  # so that an interruption leaves them named, though not read
            hand_over(
                Quotas(
                    hourly_quotas(
                        lambda: reader("service-quotas", region), lambda: reader("ec2", region), asked
                    )
                )
            )

        return lane

    def _least_s(self) -> float:
        """The least time that the sweep takes, with what the buckets hold now."""
        return max(
            (
                sweep.lane_seconds(way, len(asked), tokens=self.held[region])
                for (way, region), asked in self.asked.items()
            ),
            default=0.0,
        )

    def _search_lane(self, way: Way, region: str, asked: Sequence[Query]) -> Lane[Heard]:
        door = self.door
        if way is Way.CAPACITY_BLOCK:
            return capacity_blocks.region_lane(
                region, lambda: door.reader("ec2", region), pace_clock(door), asked, self.paces[region]
            )
        return training_plans.region_lane(
            lambda: (door.reader("sagemaker", region), door.reader("ec2", region)), pace_clock(door), asked
        )

    def _owned_lane(self, region: str) -> Lane[Heard]:
        reader = self.door.reader
        on_ec2 = self.need.target is Target.INSTANCES

        def lane(hand_over: Callable[[Heard], None]) -> None:
            ec2 = reader("ec2", region)
            plans = None if on_ec2 else owned_plans(reader("sagemaker", region), region, ec2)
            hand_over(plans or owned_reservations(ec2, region))

        return lane

    def _spot_lane(self, region: str) -> Lane[Heard]:
        need, door = self.need, self.door

        def lane(hand_over: Callable[[Heard], None]) -> None:
            ec2 = door.reader("ec2", region)
            for kind in self._types():
                found = spot_rates(ec2, kind, need.platform, region, door.clock.now())
                hand_over(Rates(self._of(kind, found)))

        return lane

    def _types(self) -> tuple[str, ...]:
        """Every type that would do, the one liked best first."""
        return tuple(kind.instance_type for kind in self.need.types)

    def _priced(self) -> dict[str, Target]:
        """Every type of every part with what runs in it, those of the planned part first."""
        beside = {kind.instance_type: part.target for part in self.need.beside for kind in part.types}
        return dict.fromkeys(self._types(), self.need.target) | {
            kind: target for kind, target in beside.items() if kind not in self._types()
        }

    def _of(self, kind: str, rates: Iterable[HourlyRate]) -> tuple[HourlyRate, ...]:
        """The rates with the name of their type, which the one liked best does without."""
        name = "" if kind == self.need.instance_type else kind
        return tuple(replace(rate, instance_type=name) for rate in rates)

    def _score_lane(self) -> Lane[Heard]:
        need, door = self.need, self.door

        def lane(hand_over: Callable[[Heard], None]) -> None:
            ec2 = door.reader("ec2", door.regions[0])
            at_yard = door.identity.rehearsal is not None
            said = spot_scores(ec2, self._types(), need.count, door.regions, at_yard=at_yard)
            hand_over(Rates((), notes=(said,)))

        return lane

    def _price_lane(self, now: datetime) -> Lane[Heard]:
        need, door = self.need, self.door

        def lane(hand_over: Callable[[Heard], None]) -> None:
            pricing, today = door.reader("pricing", HOME), now.date()
            for kind, target in self._priced().items():
                bare = kind.removeprefix("ml.")
                hourly, fees = on_demand_rates(pricing, bare, need.platform, door.regions, today)
                managed = sagemaker_rates(pricing, kind, target, door.regions, today)
                named = tuple(replace(fee, instance_type=kind) for fee in fees)
                hand_over(Rates(self._of(kind, (*hourly, *managed)), named))

        return lane

    # -- what is heard -----------------------------------------------------------------------------------
    def hear(self, heard: Heard) -> None:
        """Keep an answer, and rank what is there if it is time."""
        if isinstance(heard, Rates):
            self.rates += [self._with_origin(rate) for rate in heard.hourly]
            self.fees += heard.fees
            self.notes += heard.notes
        elif isinstance(heard, Quotas):
            again = {(q.way, q.region, q.instance_type) for q in heard.found}
            kept = [q for q in self.quotas if (q.way, q.region, q.instance_type) not in again]
            self.quotas = [*kept, *heard.found]
        elif isinstance(heard, OwnedAnswer):
            self.owned.append(heard)
        else:
            self._take(heard if self.local_zones else without_local_zones(heard))

    def _take(self, answer: PlaceAnswer) -> None:
        self.answers.append(answer)
        self.memory.keep(answer, self._sent())
        self.done[answer.way, answer.region] += 1
        self.listener.told(answer, self._ranked() if answer.offers else None)
        spent = pace_clock(self.door).elapsed() - self.began
        made = sweep.progress(self.asked, self.done, spent, self.held)
        self.listener.progress(replace(made, left_s=made.left_s / self.door.clock.throttle_scale))

    def _sent(self) -> dict[str, int]:
        """How many searches that a bucket counts each Region was sent in all."""
        return {region: pacer.taken for region, pacer in self.paces.items()}

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
        named = [replace(rate, instance_type=self._name(rate)) for rate in self.rates]
        self.memory.end(self._sent(), named, self.door.clock.now())
        made = self._plan((*self.answers, *self._unheard()), (*self.owned, *self._unread()))
        return replace(made, notes=(*made.notes, *self._about(made)))

    def _about(self, made: Plan) -> Iterator[str]:
        """What is known only once all was heard."""
        if old := sweep.age_note(made.answers, made.made_at):
            yield old
        if made.best is None and (seen := self.memory.by_hour(self.need.instance_type)):
            yield quieter(seen)

    def _name(self, rate: HourlyRate) -> str:
        return rate.instance_type or self.need.instance_type

    def _unheard(self) -> Iterator[PlaceAnswer]:
        heard = {answer.question for answer in self.answers}
        now = self.door.clock.now()
        for query in (query for asked in self.asked.values() for query in asked):
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
        known = {(rate.way, rate.region, self._name(rate)) for rate in self.rates}
        listed = list_rates(self.need, self.door.regions, "the Price List has not answered")
        identity = self.door.identity
        return make_plan(
            self.need,
            answers,
            (*self.rates, *(r for r in listed if (r.way, r.region, self._name(r)) not in known)),
            self.door.clock.now(),
            owned=owned,
            os_rates=self.fees,
            account=identity.account,
            rehearsal=identity.rehearsal.url if identity.rehearsal else None,
            notes=self.notes,
            quotas=self.quotas,
        )
