"""The verbs, each with what comes before it and what is right after it: for stopping it everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from types import MappingProxyType

from berth.orders.order import OrderState
from berth.orders.pieces.book import WholeBook
from berth.orders.pieces.whole import WholeState
from berth.terms.instants import parse_instant
from berth.terms.ways import Way

from .client_half import Verb
from .settling import bought, settle
from .verbs import Wish, buy, buy_all, clean, deploy, extend, launch, plan_for
from .world import Prepared, World, world

NEED = "eval"
PLAN, BLOCK = Wish(NEED, Way.TRAINING_PLAN), Wish(NEED, Way.CAPACITY_BLOCK)
TWO = replace(BLOCK, pieces=2)


@dataclass(frozen=True, slots=True)
class Case:
    """One verb on one way. `before` brings the world there; `right` says what must be true afterwards."""

    wish: Wish
    verb: Verb
    before: Callable[[World, Wish], None]
    right: Callable[[World], bool]


def _nothing(made: World, wish: Wish) -> None:
    del made, wish


def _planned(made: World, wish: Wish) -> None:
    settle(made, wish.name, verb=plan_for(wish))


def _open(made: World, wish: Wish) -> None:
    """Bought, paid, and seven minutes into its window."""
    _planned(made, wish)
    settle(made, wish.name)
    made.calm()
    settle(made, wish.name)
    (order,) = made.journal(made.machines[0]).orders(made.account, wish.name)
    assert order.seen is not None
    start = parse_instant(str(order.seen["start"])) + timedelta(minutes=7)
    made.time.advance(max(timedelta(0), start - made.time.now))


def _at_work(made: World, wish: Wish) -> None:
    _open(made, wish)
    settle(made, wish.name, verb=launch if wish.way is Way.CAPACITY_BLOCK else deploy)
    made.advance(minutes=3)


def _is_bought(made: World) -> bool:
    return bought(made, NEED)


def _both_are_bought(made: World) -> bool:
    """Two pieces of one whole, and the whole knows it."""
    journal = made.journal(made.machines[0])
    (whole,) = WholeBook(journal).wholes(made.account, NEED)
    states = [order.state for order in journal.orders(made.account, NEED)]
    return whole.state is WholeState.BOUGHT and states == [OrderState.BOUGHT] * 2


def endpoints(made: World) -> int:
    """How many endpoints are in service."""
    return int(made.yard.rows("SELECT count(*) AS n FROM endpoints WHERE status = 'InService'")[0]["n"])


def instances(made: World) -> int:
    """How many instances start or run."""
    sql = "SELECT count(*) AS n FROM instances WHERE status IN ('pending', 'running')"
    return int(made.yard.rows(sql)[0]["n"])


def extensions(made: World) -> int:
    """How many extensions were bought and not failed."""
    sql = "SELECT count(*) AS n FROM extensions WHERE status NOT IN ('payment-failed', 'Failed')"
    return int(made.yard.rows(sql)[0]["n"])


def _plan_is_kept(made: World) -> bool:
    return made.journal(made.machines[0]).recall_plan(made.account, NEED) is not None


CASES: Mapping[str, Case] = MappingProxyType(
    {
        "plan a training plan": Case(PLAN, plan_for(PLAN), _nothing, _plan_is_kept),
        "plan a block": Case(BLOCK, plan_for(BLOCK), _nothing, _plan_is_kept),
        "buy a training plan": Case(PLAN, buy, _planned, _is_bought),
        "buy a block": Case(BLOCK, buy, _planned, _is_bought),
        "buy two blocks": Case(TWO, buy_all, _planned, _both_are_bought),
        "deploy": Case(PLAN, deploy, _open, lambda made: endpoints(made) == 1),
        "launch": Case(BLOCK, launch, _open, lambda made: instances(made) == 1),
        "extend a training plan": Case(PLAN, extend, _open, lambda made: extensions(made) == 1),
        "extend a block": Case(BLOCK, extend, _open, lambda made: extensions(made) == 1),
        "clean an endpoint": Case(PLAN, clean, _at_work, lambda made: endpoints(made) == 0),
        "clean instances": Case(BLOCK, clean, _at_work, lambda made: instances(made) == 0),
    }
)


@cache
def prepared(name: str) -> Prepared:
    """The world right before the case's verb; made once."""
    case = CASES[name]
    with world(1) as made:
        case.before(made, case.wish)
        return made.kept()
