"""What the verbs of buying and deploying share: opening the journal, the desk and the site behind a door."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

from berth.cli.output import Output, spending_so_far
from berth.cli.who import enter
from berth.terms.outcomes import NOTHING_SPENT, BerthError, ExitCode, Spending, Spent
from berth.terms.text import plain
from berth.terms.ways import Way

if TYPE_CHECKING:
    from berth.aws.session import Door
    from berth.orders.desk import Desk
    from berth.orders.journal import Journal
    from berth.orders.journal_file import Place
    from berth.orders.order import Order
    from berth.orders.shops.shop import Shop
    from berth.orders.spending_gate import Gate
    from berth.planner.offers import Offer, PlaceAnswer, Query
    from berth.storage.database import Database
    from berth.workloads.sites import Site


class Counter:
    """An open door and journal, and what is built on them for one verb."""

    def __init__(self, output: Output, door: Door, journal: Journal, *, shared: bool = False) -> None:
        """`shared`: the journal is one that every machine of a team writes into."""
        self.output = output
        self.door = door
        self.journal = journal
        self.shared = shared
        self._gate: Gate | None = None
        self.others: dict[str, Counter] = {}
        """The counters of other accounts, by account (`cli.accounts`)."""

    @property
    def gate(self) -> Gate:
        """The rules of spending that hold here, who asks, who pays. Raises BerthError or SettingsError."""
        from berth.orders.spending_file import load_rules
        from berth.orders.spending_gate import Gate

        if self._gate is None:
            self._gate = Gate(load_rules(os.environ), self.door.identity.arn, self.door.payer.arn)
        return self._gate

    def pay_with(self, profile: str | None) -> None:
        """Let the paid call use another profile of the account (None: the caller's). Raises BerthError."""
        if profile is not None:
            self.door.pay_with(profile)
            self.output.talk(f"paid calls: {self.door.payer.role}, profile {plain(profile, 100)}")
        self._gate = None

    @property
    def account(self) -> str:
        """The caller's account."""
        return self.door.identity.account

    def desk(self, offer: Offer) -> Desk:
        """What buying leans on, for the offer's way and Region."""
        return self.desk_of(offer.way, offer.region)

    def desk_of(self, way: Way, region: str) -> Desk:
        """The same for a way and a Region."""
        from berth.orders.desk import Desk
        from berth.orders.holder import Processes
        from berth.orders.spending_gate import OPEN
        from berth.terms.ids import SystemIds

        return Desk(
            journal=self.journal,
            clock=self.door.clock,
            ids=SystemIds(),
            holders=Processes(),
            shop=self._shop(way, region),
            tell_spending=tell_spending,
            talk=lambda text: self.output.talk(plain(text, 1000)),
            warn=self.warn,
            gate=self._gate or OPEN,
        )

    def _shop(self, way: Way, region: str) -> Shop:
        """The shop of a way."""
        from berth.orders.shops.capacity_blocks import UNSEEN, UNSEEN_BY_A_TEAM, BlockShop
        from berth.orders.shops.training_plans import PlanShop
        from berth.sources import capacity_blocks, training_plans

        reader, clock = self.door.reader, self.door.clock

        def ask_blocks(query: Query) -> PlaceAnswer:
            return capacity_blocks.search_place(query, reader("ec2", query.region), clock)

        def ask_plans(query: Query) -> PlaceAnswer:
            clients = reader("sagemaker", query.region), reader("ec2", query.region)
            return training_plans.search_place(query, *clients, now=clock.now)

        if way is Way.CAPACITY_BLOCK:
            unseen = UNSEEN_BY_A_TEAM if self.shared else UNSEEN
            return BlockShop(reader("ec2", region), ask_blocks, unseen=unseen)
        return PlanShop(reader("sagemaker", region), ask_plans)

    def buyer(self, desk: Desk, offer: Offer) -> Any:
        """The client that can pay for the offer. For `berth.orders` alone, and only past the rules."""
        if desk.gate != self.gate:
            raise BerthError(
                ExitCode.INTERNAL_ERROR, "a paid call was about to pass by the rules of spending"
            )
        return self.door.buyer(offer.region, service=desk.shop.service)

    def site(self, region: str) -> Site:
        """What launching leans on, for a Region."""
        from berth.workloads.sites import Site

        return Site(
            journal=self.journal,
            clock=self.door.clock,
            client=lambda service: self.door.launcher(region, service=service),
            account=self.account,
            talk=lambda text: self.output.talk(plain(text, 1000)),
            warn=self.warn,
        )

    def warn(self, text: str) -> None:
        """Say what a person should read."""
        self.output.talk(f"warning: {plain(text, 1000)}")

    def standing_clock(self, advance: str) -> str:
        """How to move a yard's clock that stands still."""
        from berth.terms.instants import iso

        return (
            f"the yard's clock stands still at {iso(self.door.clock.now())}; move it:"
            f" berth yard clock advance {advance}"
        )


def tell_spending(spending: Spending) -> None:
    """Keep what is known about money, so that even Ctrl-C ends with the right line."""
    spending_so_far.now = spending


@contextmanager
def counter(
    output: Output,
    *,
    profile: str | None,
    need: str | None = None,
    regions: Sequence[str] = (),
    about: str | None = None,
) -> Iterator[Counter]:
    """Open door and journal; the journal is closed afterwards.

    The Regions opened are `regions`, else those that the journal knows of `need`, else the session's own.
    `about` is the need whose money a failure tells of (None: `need`), also where the door does not open.
    """
    from berth.orders.holder import this_process
    from berth.orders.journal import Journal, Who, journal_place, regions_of

    with journal_trouble():
        place = journal_place(os.environ)
    about = about or need
    with ExitStack() as opened:
        db: Database | None = None
        known: tuple[str, ...] = ()
        with _unread(about, place), journal_trouble(place):
            if about and place.exists():  # one connection for all of the verb
                db = opened.enter_context(closing(place.to_write()))
                _tell_remembered(db, about)
                known = regions_of(db, need) if need and not regions else ()
        door = enter(output, profile=profile, regions=regions or known)
        with journal_trouble(place):
            db = db or opened.enter_context(closing(place.to_write()))
            journal = Journal(db, door.identity.realm, who=Who(door.identity.arn, this_process()))
            ours = _own(journal.orders(None, about), door.identity.account) if about else ()
            tell_spending(_in_doubt(ours))
        with lost_server(place):
            yield Counter(output, door, journal, shared=place.shared)


@contextmanager
def journal_trouble(place: Place | None = None) -> Iterator[None]:
    """Turn what may go wrong with the journal into a BerthError that names it. None: it is not named yet."""
    import sqlite3

    from berth.storage.migrations import NewerSchema

    try:
        with lost_server(place):
            yield
    except NewerSchema as problem:
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"the journal {place}: {problem}",
            "pip install --upgrade gpu-berth, and run it again",
        ) from None
    except (OSError, sqlite3.Error) as problem:
        raise _full_or_in_the_way(place, problem) from None


ANEW = "keep a copy of it, move it away, and berth rebuild makes its orders anew from AWS"
"""What to do about a journal that is damaged."""


def _full_or_in_the_way(place: Place | None, problem: Exception) -> BerthError:
    from berth.orders.journal_file import is_damage

    step = "free what is full or in the way, or name another folder in BERTH_HOME"
    if is_damage(problem):
        step = ANEW
    return BerthError(ExitCode.INTERNAL_ERROR, f"the journal {place} cannot be used: {problem}", step)


@contextmanager
def _unread(about: str | None, place: Place) -> Iterator[None]:
    """A journal that cannot be opened does not say what was paid before; silence would read as nothing."""
    try:
        yield
    except BerthError as error:
        if about is not None and _may_hold(place):
            error.message += f"\nwhat was paid for {about} before is in it, and not known: do not buy by hand"
        raise


def _may_hold(place: Place) -> bool:
    try:
        return place.exists()
    except OSError:  # a folder that may not be looked into may hold one
        return True


@contextmanager
def lost_server(place: Place | None) -> Iterator[None]:
    """Turn the loss of a journal, at whatever moment of a verb, into a BerthError.

    What is known about money is what was told last (`tell_spending`).
    """
    import sqlite3

    from berth.storage.database import Unusable

    try:
        yield
    except sqlite3.Error as problem:
        raise _full_or_in_the_way(place, problem) from None
    except Unusable as problem:
        where = (
            "the journal's setting cannot be used" if place is None else f"the journal {place} cannot be used"
        )
        code = ExitCode.BAD_REQUEST if place is None else ExitCode.INTERNAL_ERROR
        raise BerthError(code, f"{where}: {problem}", problem.hint or None) from None


def _tell_remembered(db: Database, need: str) -> None:
    """Tell what the journal knows of the need's money before it is known who asks.

    A login that has expired must not end with "nothing was spent" while the order may have been paid.
    """
    from berth.aws.worlds import declared_yard
    from berth.orders.journal import Journal

    yard = declared_yard(os.environ)
    orders = Journal(db, yard.address if yard else "aws").orders(None, need)
    doubt = _in_doubt(orders)
    if doubt is not NOTHING_SPENT:
        tell_spending(doubt)
    elif orders:
        tell_spending(max(orders, key=lambda order: order.changed_at).spending)


def _own(orders: Sequence[Order], account: str) -> tuple[Order, ...]:
    """The account's orders, and pieces that orders of several pieces have in other accounts."""
    return tuple(order for order in orders if order.key.account == account or order.key.piece)


def _in_doubt(orders: Sequence[Order]) -> Spending:
    """The money of an order, or of its extension, whose outcome is not known; nothing spent without one."""
    told = (
        spending
        for order in orders
        for spending in (order.spending, *(one.spending(str(order.key)) for one in order.extensions))
    )
    return next((spending for spending in told if spending.spent is Spent.NOT_KNOWN), NOTHING_SPENT)
