"""What must hold: the client's books against the service's ledger. Every breach is a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from berth.orders.extensions.extension import ExtensionState
from berth.orders.journal import Journal
from berth.orders.names import ORDER_TAG
from berth.orders.order import Order, OrderState

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


def never_known(order: Order, now: datetime) -> bool:
    """Whether the order's window is over, so that not seeing its reservation proves nothing."""
    return order.state is OrderState.UNKNOWN and now >= order.offer.paid_window.end


def check_settled(yard: YardHalf, journals: Sequence[Journal], account: str, now: datetime) -> int:
    """Once everything has settled at `now`: none twice, none lost, books equal ledger. How many were bought.

    Raises Breach. With several journals a block is bought at most once by each, and a plan once by all. Of
    blocks that two journals bought in the same moments each journal may hold the same one: AWS shows both
    with the order's mark, and a look names both. So of these the sums may differ, and nothing else.
    """
    sold = sales(yard)
    books = [journal.orders(account) for journal in journals]
    breaches = [
        *_unsettled(books, sold, now),
        *_twice(sold, len(journals)),
        *_lost(sold, books),
        *_sums(sold, books),
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


def _extensions_micros(order: Order) -> int:
    """What the order's extensions cost; AWS bills them to what they extend."""
    return sum(one.fee.micros for one in order.extensions if one.state is ExtensionState.BOUGHT)


def _name(arn: str | None) -> str | None:
    """What an ARN names; where AWS showed no ARN the journal has the id alone."""
    return None if arn is None else arn.rpartition("/")[2]


def _bought_twice(sold: Sequence[Sale]) -> frozenset[str]:
    """Marks that several living reservations carry."""
    marks = [sale.mark for sale in sold if sale.status not in DEAD]
    return frozenset(mark for mark in marks if marks.count(mark) > 1)


def _twice(sold: Sequence[Sale], journals: int) -> Iterator[str]:
    for mark in sorted({sale.mark for sale in sold}):
        alive = [sale for sale in sold if sale.mark == mark and sale.status not in DEAD]
        most = 1 if any(":training-plan/" in sale.arn for sale in alive) else journals
        if len(alive) > most:
            yield f"{len(alive)} reservations of order {mark or '(no mark)'} are paid"


def _lost(sold: Sequence[Sale], books: Sequence[Sequence[Order]]) -> Iterator[str]:
    twice = _bought_twice(sold)
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
    twice = _bought_twice(sold)
    bought = {
        _name(order.reservation_arn): order.attempt.fee.micros + _extensions_micros(order)
        for orders in books
        for order in orders
        if order.state is OrderState.BOUGHT and order.key.mark not in twice
    }
    ours, theirs = sum(bought.values()), sum(sale.billed_micros for sale in sold if sale.mark not in twice)
    if ours != theirs:
        yield f"the journals say {ours} micros were paid, the ledger {theirs}"
