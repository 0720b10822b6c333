"""One seed: needs that are planned, bought, put to work and cleared, each run with troubles of its own."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

from berth.orders.order import OrderState
from berth.terms.instants import parse_instant
from berth.terms.ways import Way
from berth.yard.faults import FaultKind

from .baton import Baton
from .books import sales
from .client_half import Ended
from .settling import bought, settle
from .troubles import Script
from .verbs import WORK, Wish, buy, clean, plan_for, show
from .world import Weather, World, world

WAYS = (Way.TRAINING_PLAN, Way.CAPACITY_BLOCK)
EFFECTS = 26
"""Troubles fall among the first so many effects of a run: an undisturbed purchase has two less."""
WORK_SHARE = 0.15
AT_ONCE_SHARE = 0.12
OFF_S = (0, 0, 1, -7, 120, -120, 290, -290)
"""How wrong clocks are, in seconds: SageMaker refuses signatures from five minutes on."""
PAID = ("CreateTrainingPlan", "PurchaseCapacityBlock")


@dataclass(slots=True)
class Tally:
    """What became of seeds: intents, runs, purchases, how runs ended, troubles, and where they came."""

    intents: int = 0
    runs: int = 0
    bought: int = 0
    sold: int = 0
    paid_calls: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Sum up."""
        for name in ("intents", "runs", "bought", "sold", "paid_calls"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("ends", "troubles", "points"):
            getattr(self, name).update(getattr(other, name))


def weather(chance: random.Random) -> Weather:
    """What holds for a whole seed."""
    machines = chance.choice((1, 1, 1, 2, 2))
    return Weather(
        off=tuple(timedelta(seconds=chance.choice(OFF_S)) for _ in range(machines)),
        shared=chance.random() < 0.5,
        tells_time=machines == 1 and chance.random() < 0.2,
    )


def play(seed: int, intents: int = 3) -> tuple[Tally, list[str]]:
    """Play one seed to its end; what became of it, and its trace. Raises Breach, with the world's trace."""
    chance = random.Random(f"script {seed}")
    with world(seed, weather(chance)) as made:
        try:
            return _played(made, chance, intents), made.trace
        except BaseException as problem:
            problem.add_note("\n".join([f"seed {seed}, {intents} intents", *made.trace[-400:]]))
            raise


def _played(made: World, chance: random.Random, intents: int) -> Tally:
    tally = Tally(intents=intents)
    for number in range(intents):
        _intent(made, chance, Wish(f"n{number}", chance.choice(WAYS), number=chance.randrange(30)), tally)
    made.calm()
    tally.bought = made.check()
    tally.sold = len(sales(made.yard))
    tally.paid_calls = sum(
        made.wire.calls.get(one, 0) for one in ("CreateTrainingPlan", "PurchaseCapacityBlock")
    )
    return tally  # fmt: skip


def _intent(made: World, chance: random.Random, wish: Wish, tally: Tally) -> None:
    """One need: planned in peace by every journal, bought in trouble, settled, sometimes put to work."""
    for machine in made.journals():
        made.run(plan_for(wish), wish.name, machine=machine)
    _spoil(made, chance)
    for _ in range(chance.choice((1, 1, 2, 3))):
        if chance.random() < AT_ONCE_SHARE:
            _two_at_once(made, chance, wish.name, tally)
        else:
            script = Script.drawn(chance, EFFECTS)
            verb = buy if chance.random() < 0.9 else show
            _count(tally, made.run(verb, wish.name, script, chance.choice(made.machines)), script)
        made.advance(seconds=chance.choice((0, 0, 1, 40, 200, 299, 361)))
    made.calm()
    for machine in made.journals():
        settle(made, wish.name, machine)
    if len(made.journals()) > 1:  # what the other journal bought meanwhile is told and taken over
        made.calm()
        for machine in made.journals():
            settle(made, wish.name, machine)
    if chance.random() < WORK_SHARE and bought(made, wish.name):
        _work(made, chance, wish, tally)


def _two_at_once(made: World, chance: random.Random, need: str, tally: Tally) -> None:
    """Two processes, on one machine or two, to and fro at effect points."""
    scripts = [Script.drawn(chance, EFFECTS), Script.drawn(chance, EFFECTS)]
    machines = [chance.choice(made.machines), chance.choice(made.machines)]
    ended = Baton(made, chance).play(need, [buy, buy], machines, scripts)
    for one, script in zip(ended, scripts, strict=True):
        _count(tally, one, script)


def _spoil(made: World, chance: random.Random) -> None:
    """What goes wrong at the service, for this purchase."""
    if chance.random() < 0.35:
        made.yard.arm(FaultKind.LAG, chance.choice(("Describe*", "List*", "*")), None, _lag(chance))
    if chance.random() < 0.07:
        made.yard.arm(FaultKind.GONE)
    if chance.random() < 0.07:
        made.yard.arm(FaultKind.PRICE_CHANGE, "*", None, chance.choice(("1.15", "0.9")))
    if chance.random() < 0.07:
        made.yard.arm(FaultKind.PAYMENT_FAILURE)


def _lag(chance: random.Random) -> str:
    return chance.choice(("0.5", "2", "4.9", "5"))


def _work(made: World, chance: random.Random, wish: Wish, tally: Tally) -> None:
    """Into the window, put to work, cleared up: with troubles, then in peace."""
    machine = made.machines[0]
    with made.journal(machine) as journal:
        order = journal.orders(made.account, wish.name)[-1]
    if order.state is not OrderState.BOUGHT or order.seen is None:
        return
    to = parse_instant(str(order.seen["start"])) + timedelta(minutes=7)
    made.time.advance(max(timedelta(0), to - made.time.now))
    for verb in (WORK[wish.way], clean):
        script = Script.drawn(chance, EFFECTS)
        _count(tally, made.run(verb, wish.name, script, machine), script)
        made.calm()
        if (
            made.time.now < order.offer.paid_window.end
        ):  # a laptop that slept through the window comes too late
            settle(made, wish.name, machine, verb)


def _count(tally: Tally, ended: Ended, script: Script) -> None:
    tally.runs += 1
    tally.ends["killed" if ended.code is None else ended.code.name] += 1
    tally.troubles.update(script.at.values())
