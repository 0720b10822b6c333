"""Extending in trouble: a wish for a later end, disturbed runs of it, and what is right after settling."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from berth.orders.extensions.wish import LATEST, Wish, read_wish
from berth.orders.order import Order, OrderState
from berth.terms.instants import from_micros
from berth.terms.outcomes import ExitCode
from berth.terms.ways import Way

from .baton import Baton
from .books import DEAD, Breach, SoldExtension, sold_extensions
from .client_half import Ended, Machine, Verb
from .endings import extension_said
from .settling import ROUNDS, settle
from .troubles import WITH_PRICES, Script
from .verbs import extending, show
from .world import World

EFFECTS = 30
"""Troubles fall among the first so many effects: an undisturbed extension of a plan has three less."""
MOST_AHEAD_DAYS = 11
_SKEW = timedelta(minutes=6)
"""How early a client may think that a look-ahead has begun: clocks are at most five minutes off."""
_OPEN = frozenset({"payment-pending", "Pending"})


@dataclass(frozen=True, slots=True)
class LongerWish:
    """A wish to extend the order `name`, as it is typed, and as the program reads it."""

    name: str
    typed: str
    wish: Wish

    @property
    def verb(self) -> Verb:
        """`berth extend NAME ...`."""
        return extending(self.wish)


def wish_for(chance: random.Random, order: Order) -> LongerWish:
    """By days, by the cheapest of several lengths, to an instant, or again and again ahead of the end."""
    name = str(order.key)
    kind = chance.choice(("by", "by", "until", "rule"))
    if kind == "until":
        until = order.window.end + timedelta(hours=chance.choice((1, 30, 75)))
        return LongerWish(name, f"--until {until:%Y-%m-%dT%H:%MZ}", read_wish(None, until, None, None))
    if kind == "rule":
        rule = f"extend {chance.choice((1, 2))}d, look ahead {chance.choice((2, 9, MOST_AHEAD_DAYS))}d"
        return LongerWish(name, f"--rule '{rule}'", read_wish(None, None, rule, None))
    by = chance.choice(("1d", "2d", "1d..3d"))
    return LongerWish(name, f"--by {by}", read_wish(by, None, None, None))


def orders_to_extend(world: World, need: str) -> list[Order]:
    """What the first machine's journal has bought for the need and AWS would extend."""
    orders = world.journal(world.machines[0]).orders(world.account, need)
    soon = world.time.now + LATEST
    return [one for one in orders if one.state is OrderState.BOUGHT and one.window.end > soon]


def run_in_trouble(
    world: World, wish: LongerWish, chance: random.Random, at_once: float
) -> list[tuple[Ended, Script]]:
    """A run in trouble, or two at once; how they ended, each with its script."""
    if chance.random() < at_once:
        scripts = [Script.drawn(chance, EFFECTS, WITH_PRICES), Script.drawn(chance, EFFECTS, WITH_PRICES)]
        machines = [chance.choice(world.machines), chance.choice(world.machines)]
        other = wish.verb if chance.random() < 0.8 else show
        ended = Baton(world, chance).play(wish.name, [wish.verb, other], machines, scripts)
        return list(zip(ended, scripts, strict=True))
    script = Script.drawn(chance, EFFECTS, WITH_PRICES)
    verb = wish.verb if chance.random() < 0.95 else show
    return [(world.run(verb, wish.name, script, chance.choice(world.machines)), script)]


def settle_longer(world: World, wish: LongerWish) -> None:
    """In peace, on every journal, until the wish is met and paid. Raises Breach.

    Each is judged at once: while another one settles, time passes, and a rule may be due again.
    """
    for machine in world.journals():
        if _held(world, wish.name, machine) is None:
            continue
        _settled_on(world, wish, machine)
        order = _held(world, wish.name, machine)
        if order is not None:
            for breach in _wrong(world, wish, order):
                raise Breach(f"{wish.name} {wish.typed}: {breach}")


def _settled_on(world: World, wish: LongerWish, machine: Machine) -> None:
    """Again until nothing more is bought: a rule may be due several times, one unpaid at a time."""
    ended = Ended(None, "")
    for _ in range(ROUNDS + MOST_AHEAD_DAYS):
        ended = settle(world, wish.name, machine, wish.verb)
        said = extension_said(ended)
        if (said is None or not said["money"]["now"]) and not _unpaid(world):
            break
        world.calm()
    else:
        raise Breach(f"{wish.name} {wish.typed} does not settle: {ended.said}")
    order = _held(world, wish.name, machine)
    if ended.code is not ExitCode.DONE and order is not None and not _too_late(world, order):
        raise Breach(f"{wish.name} {wish.typed} is not met: {ended.code}: {ended.said}")


def _held(world: World, name: str, machine: Machine) -> Order | None:
    """The order as the machine's journal has it, where it is bought."""
    orders = world.journal(machine).orders(world.account, name.partition("/")[0])
    bought = [one for one in orders if str(one.key) == name and one.state is OrderState.BOUGHT]
    return bought[0] if bought else None


def _unpaid(world: World) -> bool:
    return any(one.status in _OPEN for one in sold_extensions(world.yard))


def end_of(world: World, order: Order) -> datetime:
    """When the order's reservation ends, as the service has it."""
    table = "capacity_reservations" if order.offer.way is Way.CAPACITY_BLOCK else "training_plans"
    name = str(order.reservation_arn).rpartition("/")[2]
    rows = world.yard.rows(f"SELECT arn, end_us FROM {table}")
    return from_micros(next(row["end_us"] for row in rows if row["arn"].endswith(f"/{name}")))


def _too_late(world: World, order: Order) -> bool:
    return world.time.now > end_of(world, order) - LATEST


def _wrong(world: World, wish: LongerWish, order: Order) -> Iterator[str]:
    """What is not as wished: extended once too often, or not at all."""
    name = str(order.reservation_arn).rpartition("/")[2]
    sold = [
        one
        for one in sold_extensions(world.yard)
        if one.parent.endswith(f"/{name}") and one.status not in DEAD
    ]
    end, now, asked = end_of(world, order), world.time.now, wish.wish
    late = _too_late(world, order)
    if asked.until is not None:
        if any(from_micros(one.start_us) >= asked.until for one in sold):
            yield "it was extended beyond what it needed"
        if end < asked.until and not late:
            yield f"it ends at {end}"
    elif asked.within is not None:
        if any(_early(one, asked.within) for one in sold):
            yield "it was extended before that was due"
        if end - now < asked.within - _SKEW and not late:
            yield f"it ends at {end}, and it is {now}"
    else:
        if len(sold) > 1:
            yield f"it was extended {len(sold)} times"
        if not sold and not late:
            yield "it was never extended"


def _early(one: SoldExtension, within: timedelta) -> bool:
    return from_micros(one.created_us) < from_micros(one.start_us) - within - _SKEW
