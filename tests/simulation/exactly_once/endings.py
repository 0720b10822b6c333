"""Whether the last line of an ending is true: nothing was spent, it was spent, it is not known."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from berth.orders.journal import Journal
from berth.terms.outcomes import ExitCode, Spent

from .books import DEAD, Breach, Sale, SoldExtension, sales, sold_extensions
from .client_half import Ended, Process
from .wire import PAID

if TYPE_CHECKING:
    from .world import World


@dataclass(frozen=True, slots=True)
class Standing:
    """What the service has sold for a need by now, whether a paid call is under way to it, and whether no
    other process runs."""

    sold: tuple[Sale, ...]
    longer: tuple[SoldExtension, ...]
    late: bool
    alone: bool

    @property
    def living(self) -> Mapping[str, int]:
        """What is paid or being paid, with its fee in micros."""
        reservations = {one.arn: one.fee_micros for one in self.sold if one.status not in DEAD}
        return reservations | {one.arn: one.fee_micros for one in self.longer if one.status not in DEAD}


def standing(world: World, process: Process, need: str) -> Standing:
    """How things stand for a need at the service while `process` runs."""
    mark = f"{world.account}/{need.partition('/')[0]}/"
    sold = tuple(sale for sale in sales(world.yard) if sale.mark.startswith(mark))
    held = {sale.arn for sale in sold}
    longer = tuple(one for one in sold_extensions(world.yard) if one.parent in held)
    others = {name for machine in world.machines for name in machine.alive} - {process.name}
    return Standing(sold, longer, any(one.operation in PAID for one in world.wire.late), not others)


def check_ending(world: World, process: Process, ended: Ended, need: str, before: Standing) -> None:
    """Hold what a process said of money against what was sold while it ran. Raises Breach.

    Only of one that ran alone: of two at once either may have bought what came to be.
    """
    if ended.code is None or before.late or not before.alone:
        return
    after = standing(world, process, need)
    if not after.alone:
        return
    if ended.code is ExitCode.DONE:
        breaches = _done(ended, len(after.longer) - len(before.longer))
    else:
        new = sorted(set(after.living) - set(before.living))
        breaches = _breaches(ended, after, new, world.journal(process.machine), need)
    for breach in breaches:
        raise Breach(f"{process.name} {breach}: {ended.said}")


def _breaches(ended: Ended, after: Standing, new: list[str], journal: Journal, need: str) -> Iterator[str]:
    spent = ended.money.spent
    if spent is Spent.NOTHING and (new or after.late):
        yield f"said that nothing was spent, and {new or 'its paid call is under way'}"
    if spent is Spent.PAID and (ended.money.amount is None or ended.money.amount.micros not in _sums(after)):
        yield f"said that {ended.money.amount} was paid, which nobody was billed"
    if spent is Spent.NOT_KNOWN and not _in_doubt(journal, need):
        yield "said that it is not known what was spent, and the journal knows"


def _done(ended: Ended, made: int) -> Iterator[str]:
    """Of an extension that ended well: whether it was bought by this very run. Its payment may fail later."""
    document = extension_said(ended)
    if document is None:
        return
    now = bool(document["money"]["now"])
    if made != now:
        yield f"said that it {'bought' if now else 'did not buy'} an extension now, and {made} came to be"


def extension_said(ended: Ended) -> dict[str, Any] | None:
    """The document of an extension that ended well; None of other endings."""
    if not ended.said.startswith("{"):
        return None
    document, _ = json.JSONDecoder().raw_decode(ended.said)
    return document if document.get("schema") == "berth.extension/1" else None


def _sums(after: Standing) -> set[int]:
    """Every sum that may be told as paid: of a reservation with and without its extensions, and of all."""
    told = {one.fee_micros for one in after.longer}
    whole = every = 0  # of what is alive; and with what AWS has failed since the journal looked
    for sale in after.sold:
        paid = sale.fee_micros
        told.add(paid)
        for one in after.longer:
            if one.parent == sale.arn and one.status not in DEAD:
                paid += one.fee_micros
                told.add(paid)
        whole += 0 if sale.status in DEAD else paid
        every += paid
        told |= {whole, every}
    return told


def _in_doubt(journal: Journal, need: str) -> bool:
    orders = journal.orders(None, need.partition("/")[0])
    return any(
        order.spending.spent is Spent.NOT_KNOWN or any(one.in_doubt for one in order.extensions)
        for order in orders
    )
