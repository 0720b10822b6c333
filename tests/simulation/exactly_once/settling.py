"""Coming back after trouble as a person would: run the same verb again until it says how things stand.

One question stays open for good: an order whose call may have been sent, and whose window was over before
anybody could look. How long AWS shows ended reservations is documented nowhere, so not seeing one proves
nothing, and "not known" is the right end for as long as nobody can see it. What AWS does show must be found.
"""

from __future__ import annotations

from berth.orders.order import IN_DOUBT, OrderState
from berth.orders.pieces.book import WholeBook
from berth.orders.pieces.whole import WholeState
from berth.terms.outcomes import ExitCode

from .books import Breach, never_known
from .client_half import Ended, Machine, Verb
from .verbs import buy
from .world import World

ROUNDS = 12
_ENDS = frozenset(
    {
        ExitCode.DONE, ExitCode.NO_CAPACITY, ExitCode.QUOTA, ExitCode.DECISION_NEEDED, ExitCode.BAD_REQUEST,
        ExitCode.CLEANED_STILL_PAID,
    }
)  # fmt: skip


def settle(world: World, need: str, machine: Machine | None = None, verb: Verb = buy) -> Ended:
    """Run `verb` again, three minutes apart, without further trouble, until it ends for good."""
    ended = Ended(None, "")
    for _ in range(ROUNDS):
        ended = world.run(verb, need, machine=machine)
        ends = ended.code in _ENDS and not _is_being_bought(world, need, machine)
        if ends or stays_unknown(world, need, machine):
            return ended
        world.advance(minutes=3)
    raise Breach(f"{need} does not settle: {ended.code}: {ended.said}")


def _is_being_bought(world: World, need: str, machine: Machine | None) -> bool:
    """Whether a process of another machine counts as buying several pieces still: for ten minutes."""
    wholes = WholeBook(world.journal(machine or world.machines[0])).wholes(world.account, need)
    return any(whole.state is WholeState.BUYING for whole in wholes)


def bought(world: World, need: str, machine: Machine | None = None) -> bool:
    """Whether the machine's journal has a reservation for the need that is bought."""
    orders = world.journal(machine or world.machines[0]).orders(world.account, need)
    if any(order.state in IN_DOUBT and not never_known(order, world.time.now) for order in orders):
        raise Breach(f"{need} is in doubt though it settled")
    return any(order.state is OrderState.BOUGHT for order in orders)


def stays_unknown(world: World, need: str, machine: Machine | None = None) -> bool:
    """Whether what is in doubt of the need can never be settled by looking."""
    orders = world.journal(machine or world.machines[0]).orders(world.account, need)
    open_ones = [order for order in orders if order.state in IN_DOUBT]
    return bool(open_ones) and all(never_known(order, world.time.now) for order in open_ones)
