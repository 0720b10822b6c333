"""Wholes written into the journal, and read from it. Nothing here can pay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from berth.orders.journal import Journal, LostRace
from berth.orders.order import Order, OrderKey
from berth.orders.pieces.rows import insert_whole, move_whole, whole_from, wholes_from
from berth.orders.pieces.whole import Piece, Whole, WholeState, live, total_of
from berth.orders.spending_gate import WholeProposal, check_whole
from berth.terms.outcomes import BerthError, ExitCode


class WholeBook:
    """The wholes of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def whole(self, key: OrderKey) -> Whole | None:
        """The whole of this very key; None when there is none."""
        return whole_from(self._journal._db, self._journal.realm, self._journal._id(key))

    def wholes(self, account: str | None, need: str | None = None) -> tuple[Whole, ...]:
        """The wholes of an account and a need (None: of every one), by need and sequence."""
        return wholes_from(self._journal._db, self._journal.realm, account, need)

    def orders(self, whole: Whole) -> dict[int, Order]:
        """The orders of its pieces by number; pieces that were never intended are absent."""
        found = ((piece.number, self._journal.order(piece.key)) for piece in whole.pieces)
        return {number: order for number, order in found if order is not None}

    def open(
        self, wanted: Whole, known: Whole | None, proposal: WholeProposal | None, now: datetime
    ) -> Whole:
        """Commit what is agreed to, before its first paid call; the whole is BUYING afterwards.

        `wanted` is held by this process; `known` is what was read of it before, with fewer pieces or other
        prices, None for a new one. `proposal` None: nothing is left to pay. Raises BerthError where a rule
        of spending is in the way, the number is taken by an order of one reservation, or a piece by another
        whole; LostRace when another process changed it meanwhile.
        """
        journal, key = self._journal, wanted.key
        made = replace(wanted, state=WholeState.BUYING, changed_at=now)
        with journal._commit("agree") as db:
            if self.whole(key) != known:
                raise LostRace(f"order {key} was changed by another process")
            if known is None and journal.order(key) is not None:
                raise _taken(key)
            self._check_pieces(made)
            if proposal is not None:
                check_whole(journal.ledger(), proposal, now)
            insert_whole(db, journal.realm, made)
            journal._event(key, now, "agreed", _agreed(made.pieces))
        return self._again(key)

    def move(self, whole: Whole, to: WholeState, now: datetime, why: str) -> Whole:
        """Halt a whole, or write down that all of it is bought. What another process holds stays as it is."""
        with self._journal._commit(f"whole-{to}") as db:
            if move_whole(db, self._journal.realm, whole, to, now):
                self._journal._event(whole.key, now, str(to), why)
        return self._again(whole.key)

    def _check_pieces(self, made: Whole) -> None:
        """No piece's order may be that of another whole."""
        realm = self._journal.realm
        for piece in made.pieces:
            rows = self._journal._db.execute(
                "SELECT whole FROM pieces WHERE order_id = ? UNION SELECT whole FROM orders"
                " WHERE order_id = ?",
                (f"{realm} {piece.key.mark}",) * 2,
            ).fetchall()
            if any(row["whole"] not in {None, self._journal._id(made.key)} for row in rows):
                raise _taken(piece.key)

    def _again(self, key: OrderKey) -> Whole:
        whole = self.whole(key)
        if whole is None:
            raise LostRace(f"order {key} is not in the journal any more")
        return whole


def _taken(key: OrderKey) -> BerthError:
    return BerthError(
        ExitCode.DECISION_NEEDED,
        f"order {key} of account {key.account} is another order already; nothing was bought",
        f"berth show {key}",
    )


def _agreed(pieces: Sequence[Piece]) -> str:
    standing = live(pieces)
    noun = "piece" if len(standing) == 1 else "pieces"
    return f"{len(standing)} {noun} for {total_of(standing)}"
