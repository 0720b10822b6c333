"""One seed: needs that are planned, bought, extended, put to work and cleared, each run in trouble."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import MappingProxyType

from berth.orders.order import OrderState
from berth.planner.offers import PlaceAnswer
from berth.terms.instants import parse_instant
from berth.terms.ways import Way
from berth.yard.faults import FaultKind

from .baton import Baton
from .books import DEAD, sales, sold_extensions
from .client_half import Ended, Verb
from .longer import orders_to_extend, run_in_trouble, settle_longer, wish_for
from .settling import bought, settle
from .troubles import Script
from .verbs import WORK, Wish, buy, buying_all, clean, plan_for, show
from .world import Weather, World, world

WAYS = (Way.TRAINING_PLAN, Way.CAPACITY_BLOCK)
EFFECTS = 26
"""Troubles fall among the first so many effects of a run: an undisturbed purchase has two less."""
EFFECTS_OF_SEVERAL = 84
"""The same for two pieces as one order."""
OFF_S = (0, 0, 1, -7, 120, -120, 290, -290)
"""How wrong clocks are, in seconds: SageMaker refuses signatures from five minutes on."""
PAID = ("CreateTrainingPlan", "PurchaseCapacityBlock")


@dataclass(frozen=True, slots=True)
class Pace:
    """How a seed spends its time.

    `runs`: how many disturbed runs an intent has, drawn from these; `at_once`: the share of them that are two
    processes at once; `work`: the share of purchases that are put to work and cleared. `hasty`: needs after
    the first choose from the offers that it saw, and processes hand on the journal's connection.
    `several`: the share of needs that are several pieces as one order; `longer`: the share of purchases that
    are extended afterwards. What these two draw comes from a chance of their own.
    """

    runs: tuple[int, ...] = (1, 1, 2, 3)
    at_once: float = 0.12
    work: float = 0.15
    hasty: bool = False
    several: float = 0.0
    longer: float = 0.0


THOROUGH = Pace()
BRISK = Pace(runs=(1, 1, 1, 2), work=0.06, hasty=True)
MANY = Pace(runs=(1, 1, 1, 1, 2), at_once=0.05, work=0.01, hasty=True)
WIDE = Pace(runs=(1, 1, 1, 2), at_once=0.08, work=0.02, hasty=True, several=0.25, longer=0.6)


PACES: Mapping[str, Pace] = MappingProxyType(
    {"thorough": THOROUGH, "brisk": BRISK, "many": MANY, "wide": WIDE}
)


def pace_of(seed: int, usual: Pace) -> Pace:
    """One seed of ten extends, and buys several pieces: where many seeds are played, those that end in 7."""
    return WIDE if seed % 10 == 7 else usual


def name_of(pace: Pace) -> str:
    """The pace as a replay takes it."""
    return next(name for name, one in PACES.items() if one == pace)


@dataclass(slots=True)
class Tally:
    """What became of seeds: intents, runs, purchases, how runs ended, troubles, and where they came.

    `intents` are needs and wishes to extend, `wishes` the latter, `several` the needs of several pieces;
    `longer` counts the extensions that were made and did not fail.
    """

    intents: int = 0
    wishes: int = 0
    several: int = 0
    longer: int = 0
    runs: int = 0
    bought: int = 0
    sold: int = 0
    paid_calls: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Sum up."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("ends", "troubles", "points"):
            getattr(self, name).update(getattr(other, name))


_COUNTS = ("intents", "wishes", "several", "longer", "runs", "bought", "sold", "paid_calls")


def weather(chance: random.Random, pace: Pace) -> Weather:
    """What holds for a whole seed."""
    machines = chance.choice((1, 1, 1, 2, 2))
    return Weather(
        off=tuple(timedelta(seconds=chance.choice(OFF_S)) for _ in range(machines)),
        shared=chance.random() < 0.5,
        tells_time=machines == 1 and chance.random() < 0.2,
        opens=not pace.hasty,
    )


def play(seed: int, intents: int = 3, pace: Pace = THOROUGH) -> tuple[Tally, list[str]]:
    """Play one seed to its end; what became of it, and its trace. Raises Breach, with the world's trace."""
    chance = random.Random(f"script {seed}")
    with world(seed, weather(chance, pace)) as made:
        try:
            return _Seed(made, chance, pace).play(intents), made.trace
        except BaseException as problem:
            head = f"--seed {seed} --intents {intents} --pace {name_of(pace)}"
            problem.add_note("\n".join([head, *made.trace[-400:]]))
            raise


class _Seed:
    """A seed at work: its world, its chance, and what has become of it so far."""

    def __init__(self, made: World, chance: random.Random, pace: Pace) -> None:
        self.world, self.chance, self.pace = made, chance, pace
        self.further = random.Random(f"further {made.seed}")
        self.tally = Tally()
        self._seen: dict[Way, PlaceAnswer] = {}

    def play(self, intents: int) -> Tally:
        """All needs one after the other, then the books."""
        for number in range(intents):
            self._intent(self._wish(number))
        self.world.calm()
        tally = self.tally
        tally.intents = intents + tally.wishes
        tally.longer = sum(one.status not in DEAD for one in sold_extensions(self.world.yard))
        tally.bought = self.world.check()
        tally.sold = len(sales(self.world.yard))
        tally.paid_calls = sum(self.world.wire.calls.get(one, 0) for one in PAID)
        tally.points = self.world.points
        return tally

    def _wish(self, number: int) -> Wish:
        """Plans and blocks that start at once (these move with the clock), or in some days."""
        chance = self.chance
        lead = chance.choice((None, 1, 2, 3, 5, 8))
        wish = Wish(
            f"n{number}", chance.choice(WAYS), chance.choice((24, 24, 48)), chance.randrange(30),
            None if lead is None else self.world.time.now + timedelta(days=lead),
        )  # fmt: skip
        if self.further.random() >= self.pace.several:
            return wish
        self.tally.several += 1
        return replace(wish, pieces=self.further.choice((2, 2, 3)))

    def _intent(self, wish: Wish) -> None:
        """One need: planned in peace by every journal, bought in trouble, settled, sometimes extended and
        put to work."""
        world, chance, need = self.world, self.chance, wish.name
        verb, effects = buy, EFFECTS
        if wish.pieces > 1:
            verb, effects = buying_all(self.further.random() < 0.3), EFFECTS_OF_SEVERAL
        journals = world.journals()
        for machine in journals:
            world.run(plan_for(wish, self._seen if self.pace.hasty else {}), need, machine=machine)
        self._spoil(chance)
        for _ in range(chance.choice(self.pace.runs)):
            self._disturbed(need, verb, effects)
            world.advance(seconds=chance.choice((0, 0, 1, 40, 200, 299, 361)))
        world.calm()
        self._settle(need, verb)
        if self.further.random() < self.pace.longer:
            self._longer(need)
        if chance.random() < self.pace.work and bought(world, need):
            self._work(wish)

    def _longer(self, need: str) -> None:
        """One wish to extend something that the need has bought: in trouble, then in peace."""
        world, chance = self.world, self.further
        orders = orders_to_extend(world, need)
        if not orders:
            return
        self.tally.wishes += 1
        wish = wish_for(chance, chance.choice(orders))
        self._spoil(chance)
        for _ in range(chance.choice(self.pace.runs)):
            for ended, script in run_in_trouble(world, wish, chance, self.pace.at_once):
                self._count(ended, script)
            world.advance(seconds=chance.choice((0, 0, 1, 40, 200, 299, 361)))
        world.calm()
        settle_longer(world, wish)

    def _disturbed(self, need: str, buys: Verb, effects: int) -> None:
        """A run in trouble, or two at once."""
        if self.chance.random() < self.pace.at_once:
            self._two_at_once(need, buys, effects)
            return
        script = Script.drawn(self.chance, effects)
        verb = buys if self.chance.random() < 0.95 else show
        self._count(self.world.run(verb, need, script, self.chance.choice(self.world.machines)), script)

    def _settle(self, need: str, verb: Verb) -> None:
        """In peace, on every journal; and again, so that each hears what the other has bought."""
        journals = self.world.journals()
        for turn in range(min(2, len(journals))):
            if turn:
                self.world.calm()
            for machine in journals:
                settle(self.world, need, machine, verb)

    def _two_at_once(self, need: str, buys: Verb, effects: int) -> None:
        """Two processes, on one machine or two, to and fro at effect points."""
        chance = self.chance
        scripts = [Script.drawn(chance, effects), Script.drawn(chance, effects)]
        machines = [chance.choice(self.world.machines), chance.choice(self.world.machines)]
        ended = Baton(self.world, chance).play(need, [buys, buys], machines, scripts)
        for one, script in zip(ended, scripts, strict=True):
            self._count(one, script)

    def _spoil(self, chance: random.Random) -> None:
        """What goes wrong at the service, for this purchase or extension."""
        yard = self.world.yard
        if chance.random() < 0.35:
            lag = chance.choice(("0.5", "2", "4.9", "5"))
            yard.arm(FaultKind.LAG, chance.choice(("Describe*", "List*", "*")), None, lag)
        if chance.random() < 0.07:
            yard.arm(FaultKind.GONE)
        if chance.random() < 0.07:
            yard.arm(FaultKind.PRICE_CHANGE, "*", None, chance.choice(("1.15", "0.9")))
        if chance.random() < 0.07:
            yard.arm(FaultKind.PAYMENT_FAILURE)

    def _work(self, wish: Wish) -> None:
        """Into the window, put to work, cleared up: with troubles, then in peace."""
        world, machine = self.world, self.world.machines[0]
        order = world.journal(machine).orders(world.account, wish.name)[-1]
        if wish.pieces > 1:
            return  # its pieces are worked in one by one, as any order
        if order.state is not OrderState.BOUGHT or order.seen is None:
            return
        to = parse_instant(str(order.seen["start"])) + timedelta(minutes=7)
        world.time.advance(max(timedelta(0), to - world.time.now))
        for verb in (WORK[wish.way], clean):
            script = Script.drawn(self.chance, EFFECTS)
            self._count(world.run(verb, wish.name, script, machine), script)
            world.calm()
            if world.time.now < order.offer.paid_window.end:  # who slept through the window comes too late
                settle(world, wish.name, machine, verb)

    def _count(self, ended: Ended, script: Script) -> None:
        self.tally.runs += 1
        self.tally.ends["killed" if ended.code is None else ended.code.name] += 1
        self.tally.troubles.update(script.at.values())
