"""What AWS's history of extensions tells of a reservation whose order is made anew."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from berth.orders.elsewhere import Held
from berth.orders.extensions.book import AlreadyExtending, ExtensionBook
from berth.orders.extensions.history import History, Past
from berth.orders.journal import Journal
from berth.orders.order import Order
from berth.planner.offers import Segment
from berth.terms.instants import iso
from berth.terms.money import Money
from berth.terms.window import Window


def as_first_bought(held: Held, history: History | None) -> Held:
    """The reservation with the end that it had before it was first extended. Pure.

    So that the order holds what its purchase bought, and each extension adds its own time and fee. Where the
    history does not tell when the first one began, it stays as AWS shows it now.
    """
    starts = [one.start for one in (history.live if history else ())]
    if not starts or None in starts:
        return held
    first = min(start for start in starts if start is not None)
    seen = held.seen
    if seen.end is None or first >= seen.end or (seen.start is not None and first <= seen.start):
        return held
    parts = tuple(_cut(part, first) for part in held.segments if part.window.start < first)
    return replace(held, seen=replace(seen, end=first), segments=parts)


def _cut(part: Segment, end: datetime) -> Segment:
    return replace(part, window=Window(part.window.start, min(part.window.end, end)))


def restore_extensions(
    journal: Journal, order: Order, history: History | None, now: datetime
) -> tuple[str, ...]:
    """Write into the journal what the history shows and the order lacks; each in a sentence, also what AWS
    shows too little of. One that is in doubt here is left to `berth show`."""
    said = []
    for past in history.unknown_to(order.extensions) if history else ():
        told = _whole(past)
        if told is None:
            said.append(
                f"extended until {_end(past)}, for a fee that AWS does not show: caps do not count it"
            )
            continue
        window, offering_id, fee = told
        try:
            ExtensionBook(journal).adopt(
                order.key, window, offering_id, fee, payment=past.word, now=now, bought_at=past.bought_at
            )
        except AlreadyExtending:
            said.append(f"extended until {_end(past)}: berth show {order.key} settles it")
            continue
        said.append(f"extended until {_end(past)} for {fee}, {past.word}")
    return tuple(said)


def _whole(past: Past) -> tuple[Window, str, Money] | None:
    """What an extension of the journal needs; None where AWS leaves out any of it."""
    if past.offering_id is None or past.fee is None or past.start is None or past.end is None:
        return None
    return (Window(past.start, past.end), past.offering_id, past.fee) if past.start < past.end else None


def _end(past: Past) -> str:
    return "an end that AWS does not show" if past.end is None else iso(past.end)
