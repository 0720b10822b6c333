"""What must hold: the client's books against the service's ledger. Every breach is a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from berth.orders.extensions.extension import ExtensionState
from berth.orders.journal import Journal
from berth.orders.names import ORDER_TAG
from berth.orders.order import Order, OrderKey, OrderState
from berth.orders.pieces.book import WholeBook
from berth.orders.pieces.whole import Whole, WholeState

from .yard_half import YardHalf


class Breach(AssertionError):
    """A promise is broken; the text says which, and by which order."""


@dataclass(frozen=True, slots=True)
class Sale:
    """A reservation that the service made: ARN, whose mark it carries, its state, and what it was billed."""

    arn: str
    mark: str
    status: str
    fee_micros: int
    billed_micros: int


@dataclass(frozen=True, slots=True)
class SoldExtension:
    """An extension that the service sold: its own name, what it extends, its state, fee and window, and when
    it was bought (microseconds)."""

    arn: str
    parent: str
    status: str
    offering_id: str
    fee_micros: int
    start_us: int
    end_us: int
    created_us: int


_SALES = """
SELECT plans.arn AS arn, value AS mark, status, fee_micros,
       (SELECT coalesce(sum(amount_micros), 0) FROM ledger WHERE subject = plans.arn) AS billed
FROM training_plans AS plans LEFT JOIN tags ON tags.arn = plans.arn AND tags.key = ?1
UNION ALL
SELECT blocks.arn, value, status, fee_micros,
       (SELECT coalesce(sum(amount_micros), 0) FROM ledger WHERE subject = blocks.arn)
FROM capacity_reservations AS blocks LEFT JOIN ec2_tags ON resource_id = reservation_id AND key = ?1
"""
DEAD = frozenset({"Failed", "payment-failed"})


def sales(yard: YardHalf) -> tuple[Sale, ...]:
    """Every reservation ever made, failed ones too."""
    return tuple(
        Sale(row["arn"], row["mark"] or "", row["status"], row["fee_micros"], row["billed"])
        for row in yard.rows(_SALES, ORDER_TAG)
    )


def sold_extensions(yard: YardHalf) -> tuple[SoldExtension, ...]:
    """Every extension ever sold, failed ones too, oldest first."""
    sql = (
        "SELECT arn, parent_arn, status, offering_id, fee_micros, start_us, end_us, created_us"
        " FROM extensions ORDER BY number"
    )
    return tuple(SoldExtension(*row) for row in yard.rows(sql))


def never_known(order: Order, now: datetime) -> bool:
    """Whether the order's window is over, so that not seeing its reservation proves nothing."""
    return order.state is OrderState.UNKNOWN and now >= order.offer.paid_window.end


def check_settled(yard: YardHalf, journals: Sequence[Journal], account: str, now: datetime) -> int:
    """Once everything has settled at `now`: none twice, none lost, books equal ledger. How many were bought.

    Raises Breach. With several journals a block is bought at most once by each, and a plan once by all. Of
    blocks that two journals bought in the same moments each journal may hold the same one: AWS shows both
    with the order's mark, and a look names both. So of these the sums may differ, and nothing else; also
    where the one that both hold is failed later.
    """
    sold = sales(yard)
    books = [journal.orders(account) for journal in journals]
    wholes = [whole for journal in journals for whole in WholeBook(journal).wholes(account)]
    breaches = [
        *_unsettled(books, sold, now),
        *_twice(sold, len(journals)),
        *_lost(sold, books),
        *_sums(sold, books),
        *_extensions(sold_extensions(yard), books),
        *_wholes(wholes, books, now),
    ]
    if breaches:
        raise Breach("; ".join(breaches))
    return sum(order.state is OrderState.BOUGHT for orders in books for order in orders)


def _unsettled(books: Sequence[Sequence[Order]], sold: Sequence[Sale], now: datetime) -> Iterator[str]:
    shown = {sale.mark for sale in sold}
    for orders in books:
        for order in orders:
            if never_known(order, now) and order.key.mark not in shown:
                continue
            if order.state in {OrderState.BUYING, OrderState.UNKNOWN, OrderState.DISPUTED}:
                yield f"order {order.key} has not settled: {order.state}"
            if any(one.in_doubt for one in order.extensions):
                yield f"an extension of order {order.key} has not settled"


def _extensions(sold: Sequence[SoldExtension], books: Sequence[Sequence[Order]]) -> Iterator[str]:
    """Extensions that are in no journal, or that nobody sold, or not at that price."""
    ours = _extensions_of(books)
    theirs = {(_name(one.parent), one.offering_id): one for one in sold if one.status not in DEAD}
    for (name, offering), one in theirs.items():
        if (name, offering) not in ours:
            yield f"extension {one.arn} ({one.status}) is in no journal"
        elif ours[name, offering] != one.fee_micros:
            yield f"extension {one.arn} costs {one.fee_micros}, the journal says {ours[name, offering]}"
    for name, offering in ours.keys() - theirs.keys():
        yield f"a journal says that {name} was extended by {offering}, which nobody was sold"


def _extensions_of(books: Sequence[Sequence[Order]]) -> dict[tuple[str | None, str], int]:
    """What is bought, by reservation and offering, with its fee: two journals may know the same one."""
    return {
        (_name(order.reservation_arn), one.offering_id): one.fee.micros
        for orders in books
        for order in orders
        if order.state is OrderState.BOUGHT
        for one in order.extensions
        if one.state is ExtensionState.BOUGHT
    }


def _wholes(wholes: Sequence[Whole], books: Sequence[Sequence[Order]], now: datetime) -> Iterator[str]:
    """Wholes that somebody seems to be buying still, or that are told to be bought and are not."""
    states: dict[OrderKey, set[OrderState]] = {}
    unknown: set[OrderKey] = set()
    for order in (order for orders in books for order in orders):
        states.setdefault(order.key, set()).add(order.state)
        unknown |= {order.key} if never_known(order, now) else set()
    for whole in wholes:
        if whole.state is WholeState.BUYING and not unknown & {one.key for one in whole.live}:
            yield f"order {whole.key} has not settled: {whole.state}"
        missing = [one.key for one in whole.live if not _HELD & states.get(one.key, set())]
        if whole.state is WholeState.BOUGHT and missing:
            yield f"order {whole.key} is bought, and {missing[0]} is not"


_HELD = frozenset({OrderState.BOUGHT, OrderState.FAILED})
"""What a piece of a whole that was bought may be: AWS may fail one afterwards."""


def _name(arn: str | None) -> str | None:
    """What an ARN names; where AWS showed no ARN the journal has the id alone."""
    return None if arn is None else arn.rpartition("/")[2]


def _bought_twice(sold: Sequence[Sale], journals: int) -> frozenset[str]:
    """Marks that several reservations carry; where one journal bought all of them, several living ones.

    Of two that two journals bought, the one that both hold may be the one whose payment fails.
    """
    marks = [sale.mark for sale in sold if journals > 1 or sale.status not in DEAD]
    return frozenset(mark for mark in marks if marks.count(mark) > 1)


def _twice(sold: Sequence[Sale], journals: int) -> Iterator[str]:
    for mark in sorted({sale.mark for sale in sold}):
        alive = [sale for sale in sold if sale.mark == mark and sale.status not in DEAD]
        most = 1 if any(":training-plan/" in sale.arn for sale in alive) else journals
        if len(alive) > most:
            yield f"{len(alive)} reservations of order {mark or '(no mark)'} are paid"


def _lost(sold: Sequence[Sale], books: Sequence[Sequence[Order]]) -> Iterator[str]:
    twice = _bought_twice(sold, len(books))
    known = {(order.key.mark, _name(order.reservation_arn)): order for orders in books for order in orders}
    for sale in sold:
        order = known.get((sale.mark, _name(sale.arn)))
        if order is None and sale.mark in twice:
            continue
        if order is None:
            yield f"{sale.arn} ({sale.status}) of {sale.mark or '(no mark)'} is in no journal"
        elif order.state is OrderState.BOUGHT and sale.fee_micros != order.attempt.fee.micros:
            yield f"{sale.arn} costs {sale.fee_micros}, the journal says {order.attempt.fee.micros}"
    names = {_name(sale.arn) for sale in sold}
    for mark, name in known:
        if name is not None and name not in names:
            yield f"order {mark} names {name}, which nobody sold"


def _sums(sold: Sequence[Sale], books: Sequence[Sequence[Order]]) -> Iterator[str]:
    twice = _bought_twice(sold, len(books))
    bought = {
        _name(order.reservation_arn): order.attempt.fee.micros
        for orders in books
        for order in orders
        if order.state is OrderState.BOUGHT and order.key.mark not in twice
    }
    longer = sum(fee for (name, _), fee in _extensions_of(books).items() if name in bought)
    ours = sum(bought.values()) + longer
    theirs = sum(sale.billed_micros for sale in sold if sale.mark not in twice)
    if ours != theirs:
        yield f"the journals say {ours} micros were paid, the ledger {theirs}"
