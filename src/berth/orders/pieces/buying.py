"""Buying several pieces as one order: look, search all again, agree, commit the whole, pay one by one.

Each piece goes through `purchase.buy`, so that it is bought exactly once by itself. The whole adds: nothing
is paid before every piece was seen again and the rules let all pass together; when one fails, no other one is
bought, and what is bought is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from berth.orders.desk import Desk
from berth.orders.guard import check_money, check_time
from berth.orders.journal import LostRace
from berth.orders.order import Approval, Order, OrderKey, OrderState
from berth.orders.pieces.book import WholeBook
from berth.orders.pieces.scarcity import Ranked, one_zone, scarcest_first
from berth.orders.pieces.stopped import Stopped, stopped
from berth.orders.pieces.survey import Gone, Seats, Survey, look_again, reason_of, survey
from berth.orders.pieces.tally import Tally
from berth.orders.pieces.whole import (
    Agreement,
    Piece,
    Whole,
    WholeState,
    approval_of,
    is_begun,
    live,
    replanned,
    spending_of,
    total_of,
    what_of,
)
from berth.orders.purchase import How, buy, find_owned
from berth.orders.reconcile import ELSEWHERE, UNSETTLED, doubt, refresh, settle_doubt
from berth.orders.spending_gate import (
    Gate,
    NotApproved,
    Proposal,
    WholeProposal,
    check_whole,
    proposal_of,
)
from berth.terms.instants import iso
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode, Spent

Agree = Callable[[Sequence[Ranked], Survey, Money], None]
"""Shows what is about to be paid and asks; raises BerthError for a no."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for: the whole `key` of `pieces`, within the agreement.

    Of a whole of which anything was bought the pieces are those that the journal has. `accept_other`: where
    a missing piece is not to be had any more, the first of its stand-ins is bought in its place.
    """

    key: OrderKey
    pieces: tuple[Piece, ...]
    agreement: Agreement
    accept_other: bool = False


@dataclass(frozen=True, slots=True)
class Bought:
    """A whole of which every piece is bought; `now` are the numbers of those that this command paid."""

    whole: Whole
    orders: dict[int, Order]
    now: tuple[int, ...] = field(default=())


def buy_whole(book: WholeBook, desk: Desk, seats: Seats, wanted: Wanted, agree: Agree) -> Bought:
    """Buy what of the whole is missing. Whatever dies at whatever moment, no piece is paid twice.

    `desk` is of the account that orders; its journal, clock, holders and words are used. Raises BerthError:
    nothing more was bought, and its text says what is. After the last purchase nothing raises any more.
    """
    return _Buying(book, desk, seats, wanted, agree).run()


def propose(book: WholeBook, desk: Desk, seats: Seats, wanted: Wanted) -> WholeProposal | None:
    """What the rules of spending would be asked about now; None where nothing is missing. Buys nothing.

    Raises BerthError where a piece is in doubt or cannot be had.
    """
    return _Buying(book, desk, seats, wanted, lambda queue, found, total: None).propose()


class _Buying:
    """One run of `buy_whole`."""

    def __init__(self, book: WholeBook, desk: Desk, seats: Seats, wanted: Wanted, agree: Agree) -> None:
        self._book = book
        self._desk = desk
        self._wanted = wanted
        self._agree = agree
        self._tally = Tally(wanted.key, desk.tell_spending)
        self._seats = self._tally.over(seats)
        self._many = len(live(wanted.pieces))

    def run(self) -> Bought:
        known = self._book.whole(self._wanted.key)
        _check_free(self._book, self._desk, known)
        try:
            return self._go_on(known, self._pieces(known))
        except BerthError as problem:
            left = self._book.whole(self._wanted.key)
            if left is not None and left == known and problem.exit_code is not ExitCode.OUTCOME_UNKNOWN:
                # Whoever was buying has died; what is missing counts against caps no longer.
                self._book.move(left, WholeState.HALTED, self._desk.clock.now(), reason_of(problem))
            raise

    def _pieces(self, known: Whole | None) -> tuple[Piece, ...]:
        """Those of the journal once anything of them may be paid; until then those that are wanted now."""
        if known is None:
            return self._wanted.pieces
        if is_begun(self._book.orders(known).values()):
            return known.pieces
        return replanned(known.pieces, self._wanted.pieces)

    def propose(self) -> WholeProposal | None:
        known = self._book.whole(self._wanted.key)
        pieces, orders = self._settled(self._pieces(known), known)
        missing = [piece for piece in live(pieces) if piece.number not in orders]
        if not missing:
            return None
        found = self._all_there(survey(missing, self._seats, one_zone(live(pieces))), orders)
        pieces = _with(pieces, [ranked.piece for ranked in found.there])
        return self.proposal(self._whole(known, pieces), found.there)

    def _whole(self, known: Whole | None, pieces: Sequence[Piece]) -> Whole:
        """What would be agreed to now."""
        now = self._desk.clock.now()
        return Whole(
            self._wanted.key, WholeState.BUYING, tuple(pieces), self._wanted.agreement,
            self._desk.holders.me(), known.created_at if known else now, now,
        )  # fmt: skip

    def _go_on(self, known: Whole | None, pieces: Sequence[Piece]) -> Bought:
        pieces, orders = self._settled(pieces, known)
        missing = [piece for piece in live(pieces) if piece.number not in orders]
        if not missing:
            return self._nothing_missing(known, pieces, orders)
        found = self._all_there(survey(missing, self._seats, one_zone(live(pieces))), orders)
        queue = scarcest_first(found.there)
        pieces = _with(pieces, [ranked.piece for ranked in queue])
        self._check_bounds(pieces, queue)
        now = self._desk.clock.now()  # said before the question; asked again in the write that commits it
        check_whole(self._desk.journal.ledger(), self.proposal(self._whole(known, pieces), queue), now)
        self._agree(queue, found, total_of(live(pieces)))
        whole = self._open(known, pieces, queue)
        return self._pay(whole, queue)

    # -- before paying -------------------------------------------------------------------------------------
    def _settled(
        self, pieces: Sequence[Piece], known: Whole | None
    ) -> tuple[tuple[Piece, ...], dict[int, Order]]:
        """The pieces, with new ones for those that AWS has failed; and the orders of those that are bought.

        Raises BerthError while one is in doubt: its money may be gone, so nothing more is paid.
        """
        made, orders = list(pieces), dict[int, Order]()
        self._many = len(live(pieces))
        for piece in live(pieces):
            order = self._look(piece, known)
            if order is not None and order.state is OrderState.BOUGHT:
                orders[piece.number] = order
            if order is not None and order.state is OrderState.FAILED:
                number = max(one.number for one in made) + 1
                self._desk.warn(f"AWS failed piece {piece.key}; piece {number} is bought in its place")
                made.append(Piece(number, replace(piece.key, piece=number), piece.offer, piece.number))
        # A piece that stands in for another may be bought already.
        fresh = [piece for piece in live(made) if piece not in live(pieces)]
        for piece in fresh:
            order = self._look(piece, known)
            if order is not None and order.state is OrderState.BOUGHT:
                orders[piece.number] = order
        return tuple(made), orders

    def _look(self, piece: Piece, known: Whole | None) -> Order | None:
        """The piece's order as it stands now; None where nothing of it is bought."""
        desk = self._seats(piece).desk
        order = desk.journal.order(piece.key)
        if order is None or order.state is OrderState.REFUSED:
            owned = find_owned(desk, piece.key, self._approval(piece))
            if owned is not None:
                self._tell_other(piece, owned.order)
            return owned.order if owned is not None else None
        order = settle_doubt(desk, order)
        desk.tell_spending(order.spending)
        if order.state in UNSETTLED:
            raise doubt(desk, order)
        if order.state is OrderState.BOUGHT:
            order, _ = refresh(desk, order)
            desk.tell_spending(order.spending)
            if known is None:
                self._tell_other(piece, order)
        return order

    def _tell_other(self, piece: Piece, order: Order) -> None:
        """Warn where another journal bought something else under the piece's mark."""
        held, wanted = order.offer, piece.offer
        if (held.paid_window.end, held.count, held.zones) != (
            wanted.paid_window.end,
            wanted.count,
            wanted.zones,
        ):
            self._desk.warn(
                f"piece {piece.key} is bought already, not from this journal, and not as wanted here:"
                f" {held.count} x {held.instance_type}, {', '.join(held.zones)}, until"
                f" {iso(held.paid_window.end)}"
            )

    def _all_there(self, found: Survey, orders: dict[int, Order]) -> Survey:
        """The survey when every piece is there, or may be replaced; raises BerthError otherwise."""
        if not found.gone:
            return found
        if not self._wanted.accept_other or any(not gone.instead for gone in found.gone):
            raise stopped(Stopped(self._wanted.key, self._standing(orders), found.gone), None)
        replaced = [_instead(gone) for gone in found.gone]
        for gone in found.gone:
            self._desk.warn(f"piece {gone.piece.key}: {gone.why}; another offer takes its place")
        stand = {ranked.piece.number for ranked in replaced}
        kept = tuple(ranked for ranked in found.there if ranked.piece.number not in stand)
        return Survey((*kept, *replaced), (), found.unconfirmed)

    def _check_bounds(self, pieces: Sequence[Piece], queue: Sequence[Ranked]) -> None:
        agreement, now = self._wanted.agreement, self._desk.clock.now()
        try:
            total = total_of(live(pieces))
        except ValueError as problem:
            raise BerthError(ExitCode.DECISION_NEEDED, f"the pieces cannot be weighed: {problem}") from None
        for ranked in queue:
            check_money(ranked.piece.offer.fee, Approval(ranked.piece.offer))
            # Its age plays no part yet: it is searched once more right before it is paid.
            check_time(replace(ranked.piece.offer, seen_at=now), now)
        check_money(total, Approval(queue[0].piece.offer, agreement.cap, agreement.budget))

    def _open(self, known: Whole | None, pieces: Sequence[Piece], queue: Sequence[Ranked]) -> Whole:
        wanted = self._whole(known, pieces)
        try:
            return self._book.open(wanted, known, self.proposal(wanted, queue), self._desk.clock.now())
        except LostRace:
            _check_free(self._book, self._desk, self._book.whole(self._wanted.key))
            raise BerthError(
                ExitCode.DECISION_NEEDED,
                f"order {self._wanted.key} was changed by another process; nothing was bought by this one",
                f"berth show {self._wanted.key}",
            ) from None

    def proposal(self, whole: Whole, queue: Sequence[Ranked]) -> WholeProposal:
        """What the rules of spending are asked about."""
        each: list[tuple[Gate, Proposal]] = []
        for ranked in queue:
            piece = ranked.piece
            each.append((self._seats(piece).desk.gate, proposal_of(piece.key, self._approval(piece))))
        return WholeProposal(
            whole.key,
            each,
            missing=total_of([ranked.piece for ranked in queue]),
            total=total_of(whole.live),
            what=what_of(whole.live, whole.agreement.context),
        )

    # -- paying --------------------------------------------------------------------------------------------
    def _pay(self, whole: Whole, queue: Sequence[Ranked]) -> Bought:
        paid: list[int] = []
        for ranked in queue:
            piece, seat = ranked.piece, self._seats(ranked.piece)
            try:
                purchase = buy(seat.desk, seat.buyer, piece.key, self._approval(piece))
            except BerthError as problem:
                raise self._stop(whole, ranked, problem) from None
            self._tally.paid(purchase.order)
            if purchase.how is How.BOUGHT:
                paid.append(piece.number)
        now = self._desk.clock.now()
        whole = self._book.move(whole, WholeState.BOUGHT, now, "every piece")
        self._tally.tell()
        return Bought(whole, self._orders(whole), tuple(paid))

    def _stop(self, whole: Whole, ranked: Ranked, problem: BerthError) -> BerthError:
        """Nothing else is bought. With a piece in doubt the whole stays: caps count what is missing."""
        orders = self._orders(whole)
        if problem.exit_code is not ExitCode.OUTCOME_UNKNOWN:
            self._book.move(whole, WholeState.HALTED, self._desk.clock.now(), reason_of(problem))
        bought = any(order.state is OrderState.BOUGHT for order in orders.values())
        if isinstance(problem, NotApproved) and not bought:
            return (
                problem  # whoever typed it asks for the approval; once something is paid that is told first
            )
        zones = one_zone(whole.live)
        again = look_again(ranked.piece, self._seats(ranked.piece).desk, zones)
        instead = again.instead
        gone = Gone(ranked.piece, reason_of(problem), problem.exit_code, instead)
        return stopped(Stopped(whole.key, self._standing_of(whole, orders), (gone,)), problem)

    # -- done ----------------------------------------------------------------------------------------------
    def _nothing_missing(
        self, known: Whole | None, pieces: Sequence[Piece], orders: dict[int, Order]
    ) -> Bought:
        try:
            whole = self._concluded(known, pieces)
        except LostRace:  # another process concludes the same from the same orders
            whole = self._book.whole(self._wanted.key) or self._whole(None, pieces)
        self._tally.tell()
        return Bought(whole, {number: orders[number] for number in sorted(orders)})

    def _concluded(self, known: Whole | None, pieces: Sequence[Piece]) -> Whole:
        """The whole, written down as bought. Raises LostRace where another process changed it meanwhile."""
        now = self._desk.clock.now()
        if known is None:  # another journal bought them all
            known = self._book.open(self._whole(None, pieces), None, None, now)
        if known.state is WholeState.BOUGHT:
            return known
        held = replace(known, holder=self._desk.holders.me())
        known = self._book.open(held, known, None, now)
        return self._book.move(known, WholeState.BOUGHT, now, "every piece")

    # -- inside --------------------------------------------------------------------------------------------
    def _approval(self, piece: Piece) -> Approval:
        return approval_of(self._wanted.key, piece, self._wanted.agreement, self._many)

    def _orders(self, whole: Whole) -> dict[int, Order]:
        return {
            piece.number: order
            for piece in whole.live
            if (order := self._desk.journal.order(piece.key)) is not None
        }

    def _standing(self, orders: dict[int, Order]) -> tuple[Order, ...]:
        return tuple(orders[number] for number in sorted(orders))

    def _standing_of(self, whole: Whole, orders: dict[int, Order]) -> tuple[Order, ...]:
        return tuple(order for _, order in sorted(orders.items()) if order.state is not OrderState.REFUSED)


def is_at_work(desk: Desk, whole: Whole) -> bool:
    """Whether another process may be buying pieces of the whole right now."""
    if whole.state is not WholeState.BUYING or whole.holder == desk.holders.me():
        return False
    lives = desk.holders.lives(whole.holder)
    return desk.clock.now() - whole.changed_at < ELSEWHERE if lives is None else lives


def halt_if_left(book: WholeBook, desk: Desk, whole: Whole) -> Whole:
    """Write down how a whole stands that its buyer has left: caps count what is missing no longer."""
    if whole.state is not WholeState.BUYING or is_at_work(desk, whole):
        return whole
    orders = book.orders(whole)
    states = [orders[piece.number].state for piece in whole.live if piece.number in orders]
    if UNSETTLED & set(states):
        return whole
    all_there = len(states) == len(whole.live) and set(states) == {OrderState.BOUGHT}
    to = WholeState.BOUGHT if all_there else WholeState.HALTED
    return book.move(whole, to, desk.clock.now(), "the process that was buying ended")


def _check_free(book: WholeBook, desk: Desk, known: Whole | None) -> None:
    """Raise BerthError while another process may be buying pieces of the whole: what was spent for it by now
    is told, and while a piece is in doubt the outcome is not known."""
    if known is not None and is_at_work(desk, known):
        spent = spending_of(known.key, list(book.orders(known).values()))
        raise BerthError(
            ExitCode.OUTCOME_UNKNOWN if spent.spent is Spent.NOT_KNOWN else ExitCode.DECISION_NEEDED,
            f"order {known.key} is being bought by another process ({known.holder})",
            f"berth show {known.key}",
            spent,
        )


def _with(pieces: Sequence[Piece], fresh: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces, those of the same number as they are found now."""
    found = {piece.number: piece for piece in fresh}
    return tuple(found.get(piece.number, piece) for piece in pieces)


def _instead(gone: Gone) -> Ranked:
    """The first stand-in as the piece itself: nothing of the piece was bought, so its number is free."""
    return Ranked(replace(gone.piece, offer=gone.instead[0]), gone.instead[1:])


__all__ = ["Agree", "Bought", "Wanted", "buy_whole", "spending_of"]
