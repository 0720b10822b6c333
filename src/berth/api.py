"""Berth as a library: the same plans and the same purchases as values with types. Nothing is printed.

    import berth.api

    with berth.api.connect(profile="ml", regions=["us-east-1", "us-east-2"]) as world:
        need = world.read_need("need.toml")
        plan = world.plan(need)
        if plan.best is not None:
            purchase = world.buy(plan, plan.best.number, most=berth.api.Money.parse("228.77"))
        whole = world.buy_best(plan, most=berth.api.Money.parse("27508.04"))
        longer = world.extend("eval", by="7d", most=berth.api.Money.parse("9000"))

What is in `__all__` is kept: members are added, not taken away or changed in meaning, within a major version.
A yard is reached as by the command line: `BERTH_YARD` in the environment. Every failure is a `BerthError`
with `exit_code`, `message`, `next_step` and `spent`, which says whether money has left.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from berth.orders.extensions.extending import Extended
from berth.orders.extensions.extending import How as HowExtended
from berth.orders.extensions.extension import Extension, ExtensionState
from berth.orders.order import Order, OrderKey, OrderState
from berth.orders.pieces.buying import Bought
from berth.orders.pieces.whole import Piece, Whole, WholeState
from berth.orders.purchase import How, Purchase
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome
from berth.planner.plan import Choice, Plan
from berth.sources.survey import Listener
from berth.terms.money import Money
from berth.terms.outcomes import NOTHING_SPENT, BerthError, ExitCode, Spending
from berth.terms.settings import SettingsError
from berth.terms.ways import Target, Way
from berth.terms.window import Window

if TYPE_CHECKING:
    from datetime import datetime

    from berth.aws.identity import Identity
    from berth.cli.desks import Counter

__all__ = [
    "BerthError", "Bought", "Choice", "ExitCode", "Extended", "Extension", "ExtensionState", "How",
    "HowExtended", "Listener", "Money", "Need", "Offer", "Order", "OrderKey", "OrderState", "Piece",
    "PlaceAnswer", "PlaceOutcome", "Plan", "Purchase", "SettingsError", "Spending", "Target", "Way", "Whole",
    "WholeState", "Window", "World", "connect",
]  # fmt: skip

Talk = Callable[[str], None]


class World:
    """AWS, or a yard, behind one login, with the journal of this machine or team. Made by `connect`.

    Single-threaded, as orders are: for two threads, connect twice; one journal keeps them apart.
    """

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    @property
    def identity(self) -> Identity:
        """Who asks: account, ARN, Regions; `rehearsal` is None for AWS itself."""
        return self._counter.door.identity

    def now(self) -> datetime:
        """The clock that everything here follows: AWS's own, or the yard's, which may be moved."""
        return self._counter.door.clock.now()

    def read_need(self, file: str | Path) -> Need:
        """The need in a need file, checked against this world's clock.

        Raises SettingsError with every complaint at once, BerthError where the file cannot be read.
        """
        from berth.cli.needs import typed_need

        return typed_need(Path(file), {}).read(self.now())

    def plan(self, need: Need, listener: Listener | None = None) -> Plan:
        """Ask every place of this world about `need`, and remember the plan for buying and the command line.

        `choices` are single offers, `combination` (None: none is better) is what `buy_best` buys.

        `listener` hears each place's answer as it comes; it is called in this thread. Spends nothing. Places
        that do not answer do not raise: they stand in the plan, and it is `incomplete`.
        """
        from dataclasses import replace

        from berth.cli.asking import planned

        asked = replace(need, regions=self.identity.regions)
        made = planned(self._counter.output, self._counter.door, asked, listener=listener or Listener())
        journal, account = self._counter.journal, self.identity.account
        journal.remember_plan(account, asked.name, made.to_json(), made.made_at)
        return made

    def recall(self, need: str) -> Plan:
        """The plan that was made last for the need of that name. Raises BerthError when none was."""
        from berth.cli.buy import recalled

        return recalled(self._counter, need)

    def buy(
        self, plan: Plan, number: int, *, most: Money, again: bool = False, proof: str | Path | None = None
    ) -> Purchase:
        """Buy choice `number` of `plan`, exactly once, for `most` at the most.

        Called again after whatever happened, it finds what was bought and pays nothing. `again` asks for one
        more beside the first. `proof` is a file with the proof of somebody who has approved it, where the
        rules of spending ask for that (None: none, or taken before). Raises BerthError, whose `spent` tells
        of this order's money; see `berth.orders.purchase.buy`.
        """
        from berth.cli.buy import buy_choice

        with self._money(proof):
            return buy_choice(self._counter, plan, number, cap=most, yes=True, again=again)

    def buy_best(
        self,
        plan: Plan,
        *,
        most: Money,
        again: bool = False,
        accept_other: bool = False,
        unconfirmed: bool = False,
        proof: str | Path | None = None,
    ) -> Bought:
        """Buy the best combination of `plan` as one order of several pieces, for `most` in all.

        Each piece is bought exactly once, the scarcest first; called again it buys what is missing.
        `accept_other`: a piece that is gone may be the next best that fits. `unconfirmed`: also where no
        search confirms that the pieces can be had together. `again` and `proof` as for `buy`. Raises
        BerthError: nothing more was bought, and its message says what is.
        """
        from berth.cli.buy_pieces import Asked, buy_pieces

        asked = Asked(most, yes=True, again=again, accept_other=accept_other, unconfirmed=unconfirmed)
        with self._money(proof):
            return buy_pieces(self._counter, plan, asked)

    def extend(
        self,
        order: str,
        *,
        most: Money,
        by: str | None = None,
        until: datetime | None = None,
        within: str | None = None,
        proof: str | Path | None = None,
    ) -> Extended:
        """Give what the order bought a later end, paid once however often it is called, for at most `most`.

        `order` is a name: `eval`, `eval/2`, or `eval/1.2` for a piece. Exactly one of `by` (`7d`, or
        `7d..14d`, the cheapest of these) and `until` (an aware instant, or later) says how far; with `within`
        (`2d`) only when the end is so near, and then each time. `proof` as for `buy`. Raises BerthError;
        ValueError for a wish that cannot be read.
        """
        from berth.cli.extend import extended
        from berth.orders.extensions.wish import read_wish

        if (by is None) == (until is None):
            raise ValueError("say how far with exactly one of by and until")
        wish = read_wish(by, until, None, within)
        with self._money(proof):
            return extended(self._counter, order, wish, cap=most, yes=True)

    def wholes(self, need: str | None = None) -> tuple[Whole, ...]:
        """The account's orders of several pieces (of one need, or of all); each piece is in `orders` too."""
        from berth.orders.pieces.book import WholeBook

        return WholeBook(self._counter.journal).wholes(self.identity.account, need)

    @contextmanager
    def _money(self, proof: str | Path | None) -> Iterator[None]:
        """One call that may spend: the proof is taken first; a failure tells what is known of the money."""
        from berth.cli.output import spending_so_far
        from berth.cli.spending import read_proofs, take_proofs

        spending_so_far.now = NOTHING_SPENT
        try:
            file = None if proof is None else str(Path(proof).absolute())  # "-" is a file here, and no stdin
            take_proofs(self._counter, read_proofs(file))
            yield
        except BerthError as error:
            if error.spent is NOTHING_SPENT:
                error.spent = spending_so_far.now
            raise

    def orders(self, need: str | None = None) -> tuple[Order, ...]:
        """The account's orders in the journal (of one need, or of all), by need and sequence."""
        return self._counter.journal.orders(self.identity.account, need)


@contextmanager
def connect(
    profile: str | None = None, regions: Sequence[str] = (), *, talk: Talk | None = None
) -> Iterator[World]:
    """Open the way to AWS, or to the yard that BERTH_YARD declares, and the journal; closed at the end.

    `profile` None: botocore's default. `regions` empty: the login's own Region. `talk` hears, line by line,
    what the command line tells on stderr (None: nobody). Raises BerthError.
    """
    from berth.cli.desks import counter
    from berth.cli.output import Output

    output = Output(stdout=io.StringIO(), stderr=_Told(talk), stdin=io.StringIO())
    with counter(output, profile=profile, regions=regions) as opened:
        yield World(opened)


class _Told(io.StringIO):
    """A stderr that hands each whole line to a listener and keeps nothing."""

    def __init__(self, talk: Talk | None) -> None:
        super().__init__()
        self._talk = talk
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            if self._talk is not None:
                self._talk(line)
        return len(text)
