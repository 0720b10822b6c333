"""What became of an order's extensions: settled only by reading AWS's history, never by calling again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from berth.orders.desk import Desk
from berth.orders.extensions.book import AlreadyExtending, ExtensionBook
from berth.orders.extensions.extension import Extension, ExtensionState
from berth.orders.extensions.history import WORDS, History, Past, Payment
from berth.orders.extensions.shops import ExtensionShop
from berth.orders.journal import LostRace
from berth.orders.looks import Look, absent_at, known_absent
from berth.orders.order import Order
from berth.orders.reconcile import ELSEWHERE
from berth.orders.seen import Stage
from berth.orders.sighting import trace_of
from berth.storage.database import Unusable
from berth.terms.instants import iso
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.window import Window

T = TypeVar("T")


def settle_all(desk: Desk, order: Order, history: History, began: datetime) -> tuple[Extension, ...]:
    """The order's extensions after one look at the history, which began at `began`.

    What the history shows is true whether the journal can be written or not: where it cannot, a warning says
    so, and the extensions come back as they are known to be. One that nobody sees stays in doubt until
    complete looks over 6 minutes have not found it.
    """
    return tuple(_settled(desk, order, one, history, began) for one in order.extensions)


def ended_without(desk: Desk, order: Order, one: Extension, end: datetime | None) -> Extension:
    """One in doubt of a reservation that is over: known not to be paid where it ended before what it adds.

    A payment moves the end, and comes before it or never (EC2 User Guide, "Extend Capacity Blocks": 35
    minutes before). `end` is the end that AWS shows, None where it shows none: then nothing is known.
    """
    if not one.in_doubt or is_held(desk, one) or end is None or end > one.window.start:
        return one
    return _not_bought(desk, order, one, "the reservation has ended as it would have without it")


def settled_late(desk: Desk, order: Order, extensions: tuple[Extension, ...]) -> tuple[Extension, ...]:
    """The extensions, after a look at the reservation where the time of one in doubt has begun.

    From then on the history's silence proves nothing; how the reservation ended does.
    """
    if not any(is_past_looks(desk, one) for one in extensions):
        return extensions
    seen = desk.shop.glance(trace_of(order)).reservation
    if seen is None or seen.stage is not Stage.OVER:
        return extensions
    return tuple(ended_without(desk, order, one, seen.end) for one in extensions)


def is_past_looks(desk: Desk, one: Extension) -> bool:
    """Whether no number of looks at the history can show any more that one in doubt was not bought."""
    return one.in_doubt and not is_held(desk, one) and desk.clock.now() >= one.window.start


def adopt_unknown(desk: Desk, order: Order, history: History) -> None:
    """Write extensions into the journal that AWS shows and it does not know: bought by somebody else, or
    before the journal was lost. Those of which AWS shows too little are left out."""
    for past in history.unknown_to(order.extensions):
        if past.offering_id is None or past.fee is None:
            continue
        if past.start is None or past.end is None or past.start >= past.end:
            continue
        try:
            ExtensionBook(desk.journal).adopt(
                order.key, Window(past.start, past.end), past.offering_id, past.fee, payment=past.word,
                now=desk.clock.now(), bought_at=past.bought_at,
            )  # fmt: skip
        except AlreadyExtending:
            continue
        except _UNWRITABLE as problem:
            _cannot_write(desk, problem)
            return


def doubt(desk: Desk, order: Order, one: Extension, shop: ExtensionShop) -> BerthError:
    """What a person must be told about an extension that looking has not settled."""
    spent = one.spending(str(order.key))
    if is_held(desk, one):
        return BerthError(
            ExitCode.OUTCOME_UNKNOWN,
            f"order {order.key} is being extended, since {iso(one.started_at)}, by another process"
            f" ({one.holder})",
            f"berth show {order.key}",
            spent,
        )
    if is_past_looks(desk, one):
        return BerthError(
            ExitCode.OUTCOME_UNKNOWN,
            f"whether order {order.key} was extended to {iso(one.window.end)} is not known: AWS's history"
            f" does not show it. Its time began at {iso(one.window.start)}, so looking for longer tells"
            " nothing; a reservation that AWS shows as ended by then does",
            f"berth show {order.key}, later; to look by hand: {shop.inspect()}",
            spent,
        )
    settles = absent_at(one.looks)
    when = f" from {iso(settles)} on" if settles else ""
    return BerthError(
        ExitCode.OUTCOME_UNKNOWN,
        f"whether order {order.key} was extended to {iso(one.window.end)} is not known: AWS's history does"
        " not show it. AWS may show writes 5 minutes late; complete looks over 6 minutes settle it"
        f"{when}",
        f"berth show {order.key} --wait; to look by hand: {shop.inspect()}",
        spent,
    )


def is_open(one: Extension) -> bool:
    """Whether AWS has something to tell of it still: its outcome, or that of its payment."""
    if one.in_doubt:
        return True
    return one.state is ExtensionState.BOUGHT and WORDS.get(one.payment) is not Payment.DONE


def is_held(desk: Desk, one: Extension) -> bool:
    """Whether another process may be inside the paid call of this extension right now."""
    if one.state is not ExtensionState.BUYING or one.holder == desk.holders.me():
        return False
    lives = desk.holders.lives(one.holder)
    return desk.clock.now() - one.started_at < ELSEWHERE if lives is None else lives


def _settled(desk: Desk, order: Order, one: Extension, history: History, began: datetime) -> Extension:
    past = history.of(one)
    if one.in_doubt:
        return (
            _found(desk, order, one, past) if past is not None else _unseen(desk, order, one, history, began)
        )
    if one.state is not ExtensionState.BOUGHT or past is None or past.word == one.payment:
        return one
    if past.payment is Payment.FAILED:
        return _moved(desk, order, one, ExtensionState.FAILED, past)
    return kept(
        desk,
        lambda: ExtensionBook(desk.journal).note_payment(order.key, one, past.word, desk.clock.now()),
        replace(one, payment=past.word),
    )


def _found(desk: Desk, order: Order, one: Extension, past: Past) -> Extension:
    failed = past.payment is Payment.FAILED
    return _moved(desk, order, one, ExtensionState.FAILED if failed else ExtensionState.BOUGHT, past)


def _moved(desk: Desk, order: Order, one: Extension, to: ExtensionState, past: Past) -> Extension:
    return kept(
        desk,
        lambda: ExtensionBook(desk.journal).settle(
            order.key, one, to, now=desk.clock.now(), detail=f"in AWS's history, {past.word}",
            payment=past.word, fee=past.fee,
        ),
        replace(one, state=to, payment=past.word, fee=past.fee or one.fee),
    )  # fmt: skip


def _unseen(desk: Desk, order: Order, one: Extension, history: History, began: datetime) -> Extension:
    """Not in the history: one more look at it, the last of which may say that nothing was bought."""
    if is_held(desk, one):
        return one
    book, now = ExtensionBook(desk.journal), desk.clock.now()
    if history.displaces(one):
        return _not_bought(desk, order, one, "in AWS's history another extension begins there")
    # AWS may forget the history of what is long over: not seeing it then proves nothing.
    look = Look(began, now, history.complete and now < one.window.start, found=False)

    def write() -> Extension:
        unknown = one
        if one.state is ExtensionState.BUYING:
            unknown = book.settle(
                order.key, one, ExtensionState.UNKNOWN, now=began,
                detail="the process that extended it ended without an answer",
            )  # fmt: skip
        seen = book.look(order.key, unknown, look)
        if known_absent(seen.looks):
            return book.settle(
                order.key, seen, ExtensionState.REFUSED, now=now,
                detail="not in AWS's history in complete looks over 6 minutes",
            )  # fmt: skip
        return seen

    return kept(desk, write, replace(one, state=ExtensionState.UNKNOWN))


def _not_bought(desk: Desk, order: Order, one: Extension, why: str) -> Extension:
    book, now = ExtensionBook(desk.journal), desk.clock.now()
    return kept(
        desk,
        lambda: book.settle(order.key, one, ExtensionState.REFUSED, now=now, detail=why),
        replace(one, state=ExtensionState.REFUSED, detail=why),
    )


_UNWRITABLE = (sqlite3.Error, OSError, Unusable)


def kept(desk: Desk, write: Callable[[], T], otherwise: T) -> T:
    """What `write` leaves in the journal; `otherwise`, and a warning, where the journal takes nothing."""
    try:
        return write()
    except LostRace:  # somebody who looked meanwhile has written it
        return otherwise
    except _UNWRITABLE as problem:
        _cannot_write(desk, problem)
        return otherwise


def _cannot_write(desk: Desk, problem: Exception) -> None:
    desk.warn(
        f"the journal cannot be written ({problem}): what AWS shows is true all the same, and the next run"
        " reads it again"
    )
