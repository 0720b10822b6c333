"""AWS in memory with a shelf of several offers: what a whole of several pieces is bought from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from berth.orders.order import Order, OrderKey
from berth.orders.pieces.book import WholeBook
from berth.orders.pieces.buying import Bought, Wanted, buy_whole
from berth.orders.pieces.scarcity import Ranked
from berth.orders.pieces.survey import Seat
from berth.orders.pieces.whole import Agreement, Piece, numbered
from berth.orders.spending_gate import OPEN, Gate
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.terms.money import Money
from berth.terms.window import Window

from .conftest import World
from .fake_aws import ACCOUNT, KEY, WINDOW, FakeAws, FakeBlocks, FakePlans

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Stock:
    """What is on sale: a window, how many at once, and for what."""

    fee: str
    after: int = 0  # days after WINDOW
    days: int = 1
    count: int = 1
    zone: str = "use1-az4"

    @property
    def window(self) -> Window:
        """When."""
        start = WINDOW.start + self.after * DAY
        return Window(start, start + self.days * DAY)


@dataclass
class Shelf:
    """Mixed into a fake: searches show what is in stock; each search gives new ids."""

    stock: list[Stock] = field(default_factory=list)

    def search(self: Any, query: Query) -> PlaceAnswer:
        """The search as a source reads it."""
        self.effects("search:before")
        self.searches.append(query)
        shown = tuple(self.offer_of(one, query) for one in self.stock if _answers(one, query))
        outcome = PlaceOutcome.OFFERS if shown else PlaceOutcome.NONE_ON_SALE
        answer = PlaceAnswer(self.way, "us-east-1", self.outcome or outcome, self.clock.now(), "", shown)
        self.effects("search:after")
        return answer

    def offer_of(self: Any, one: Stock, query: Query | None = None) -> Offer:
        """One of the stock as an offer."""
        wide = replace(self.query, count=one.count, duration_hours=24 * one.days, end_before=None)
        zone = Segment(one.window, one.zone, f"zone of {one.zone}", self.instance_type, one.count)
        offer = Offer(
            way=self.way, region="us-east-1", offering_id=f"offer-{self._ids.hex(16)}", segments=(zone,),
            count=one.count, instance_type=self.instance_type, fee=Money(Decimal(one.fee)),
            targets=self.targets, seen_at=self.clock.now(), query=query or wide,
        )  # fmt: skip
        self.offers[offer.offering_id] = offer
        return offer


def _answers(one: Stock, query: Query) -> bool:
    window, start, end = one.window, query.start_after, query.end_before
    return (
        one.count == query.count
        and one.days * 24 == query.duration_hours
        and (start is None or window.start >= start)
        and (end is None or window.end <= end)
    )


class ShelfOfPlans(Shelf, FakePlans):
    """Training plans."""

    def __init__(self, *said: Any) -> None:
        FakePlans.__init__(self, *said)
        self.stock = []


class ShelfOfBlocks(Shelf, FakeBlocks):
    """Capacity Blocks."""

    def __init__(self, *said: Any) -> None:
        FakeBlocks.__init__(self, *said)
        self.stock = []


SHELVES: dict[str, type[FakeAws]] = {"plans": ShelfOfPlans, "blocks": ShelfOfBlocks}


class Shopping(World):
    """A buyer of several pieces."""

    def __init__(self, place: Path | str, sells: str, *stock: Stock) -> None:
        super().__init__(place, SHELVES[sells])
        self.aws.stock = list(stock)
        self.wanted = [self.aws.offer_of(one) for one in stock]
        self.asked: list[tuple[int, ...]] = []
        self.gate: Gate = OPEN
        self.meanwhile: Callable[[], object] = lambda: None

    @property
    def book(self) -> WholeBook:
        """Its wholes."""
        return WholeBook(self.journal)

    def pieces(self, key: OrderKey = KEY) -> tuple[Piece, ...]:
        """What the plan's combination asks for."""
        return numbered(key, [(ACCOUNT, offer) for offer in self.wanted])

    def buy_all(
        self, cap: str | None = "9000", budget: str | None = None, *, key: OrderKey = KEY,
        accept_other: bool = False, **context: Any,
    ) -> Bought:  # fmt: skip
        """`berth buy NAME#best`."""
        desk = replace(self.desk(), gate=self.gate)
        amount = None if cap is None else Money(Decimal(cap))
        bound = None if budget is None else Money(Decimal(budget))
        wanted = Wanted(key, self.pieces(key), Agreement(amount, bound, context), accept_other)

        def agree(queue: Sequence[Ranked], *said: object) -> None:
            self.asked.append(tuple(one.piece.number for one in queue))
            self.meanwhile()

        return buy_whole(self.book, desk, lambda piece: Seat(desk, lambda: self.aws), wanted, agree)

    def of(self, number: int, key: OrderKey = KEY) -> Order:
        """The order of a piece."""
        return self.order(replace(key, piece=number))

    def standing(self, key: OrderKey = KEY) -> dict[int, str]:
        """State of each piece that was ever intended."""
        whole = self.book.whole(key)
        assert whole is not None
        return {number: order.state.value for number, order in self.book.orders(whole).items()}

    @property
    def sold(self) -> list[Decimal]:
        """What AWS was paid, sorted."""
        return sorted(fee for _, fee in self.aws.ledger)


def later(at: datetime, **span: float) -> datetime:
    """An instant after another."""
    return at + timedelta(**span)
