"""Several pieces that another journal has bought, found by two processes at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from berth.orders.journal import open_journal
from berth.terms.outcomes import BerthError

from .fake_shelf import Shopping
from .test_several_pieces import TWO

Place = Callable[[], Path | str]


def test_two_processes_at_once_conclude_what_another_journal_bought(new_place: Place) -> None:
    """The second comes in right before the first writes the whole down, and between its writes: it finds all
    pieces or leaves them to the first, which finds them."""
    whole = concluded_by_two(new_place, 0)
    first = whole.index("agree:before")
    for at in (first, *(number for number, effect in enumerate(whole, start=1) if effect == "agree:after")):
        concluded_by_two(new_place, at)


def concluded_by_two(new_place: Place, at: int) -> list[str]:
    """The effects of a process that finds all pieces bought while another one does so, after effect `at`."""
    owner, buyer, other = (Shopping(new_place(), "blocks", *TWO) for _ in range(3))
    owner.buy_all()
    for one, name in ((buyer, "p8"), (other, "p9")):
        one.journal.close()
        one.aws, one.clock, one.holders.name = owner.aws, owner.clock, name
        one.holders.alive = {"p8", "p9"}
    log: list[str] = []

    def meet(effect: str) -> None:
        log.append(effect)
        if len(log) == at:
            try:
                other.buy_all()
            except BerthError as problem:
                assert "being bought by another process" in problem.message  # noqa: PT017

    buyer.aws.effects = meet
    buyer.journal = open_journal(buyer.place, "aws", meet)
    other.journal = open_journal(buyer.place, "aws")
    found = buyer.buy_all()
    assert (found.now, len(found.orders), len(owner.sold)) == ((), 2, 2)
    for one in (owner, buyer, other):
        one.journal.close()
    return log
