"""The history of a reservation's extensions as AWS tells it: where an extension shows for certain.

An extension has no tag and no token. What ties one to our intent is the id of the offering that was bought,
and that it begins where the reservation ended: two extensions cannot both do that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from berth.orders.extensions.extension import Extension, ExtensionState
from berth.terms.money import Money

_NOTHING = frozenset({ExtensionState.REFUSED, ExtensionState.FAILED})
CLOCKS_DIFFER = timedelta(minutes=1)
"""How much later than AWS's clock ours may be."""


class Payment(StrEnum):
    """How far the payment of an extension is."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"  # a word that this program does not know, or none: it may be paid


WORDS: Mapping[str, Payment] = {
    # `CapacityBlockExtensionStatus` of the model of 2016-11-15
    "payment-pending": Payment.PENDING,
    "payment-succeeded": Payment.DONE,
    "payment-failed": Payment.FAILED,
    # `Status` and `PaymentStatus` of a plan's extension: free text, these words are the guide's
    "Pending": Payment.PENDING,
    "Completed": Payment.DONE,
    "Scheduled": Payment.DONE,
    "Active": Payment.DONE,
    "Expired": Payment.DONE,
    "Failed": Payment.FAILED,
}


@dataclass(frozen=True, slots=True)
class Past:
    """One extension of the history. What AWS left out is None; `word` is AWS's word on the payment."""

    offering_id: str | None
    start: datetime | None
    end: datetime | None
    bought_at: datetime | None
    payment: Payment
    word: str
    fee: Money | None


@dataclass(frozen=True, slots=True)
class History:
    """What a look at the history saw. `complete`: every page was read, so what is not there was not bought
    (five minutes after a write); `trouble` says what stopped the reading."""

    entries: tuple[Past, ...]
    complete: bool
    trouble: str = ""

    @property
    def live(self) -> tuple[Past, ...]:
        """Those whose payment has not failed: bought, as far as anybody knows."""
        return tuple(one for one in self.entries if one.payment is not Payment.FAILED)

    def until(self, end: datetime) -> datetime:
        """The end with everything that was bought; `end` is what the reservation itself shows."""
        return max([end, *(one.end for one in self.live if one.end is not None)])

    def unpaid(self, end: datetime) -> bool:
        """Whether one is being paid, or may be, while the reservation ends at `end`."""
        return any(
            one.payment is Payment.PENDING
            or (one.payment is Payment.UNKNOWN and (one.end is None or one.end > end))
            for one in self.live
        )

    def unknown_to(self, extensions: Iterable[Extension]) -> tuple[Past, ...]:
        """Those that are bought, as far as anybody knows, and that are none of `extensions`.

        One of these that is thought to have come to nothing, and is shown all the same, was bought.
        """
        known = {one.offering_id for one in extensions if one.state not in _NOTHING}
        return tuple(past for past in self.live if past.offering_id is None or past.offering_id not in known)

    def of(self, extension: Extension) -> Past | None:
        """What the intent bought: the same offering id, or the same window where AWS shows no id.

        One that failed comes last, and not when it is older than the intent: the same offering may have been
        bought anew.
        """
        ours = [one for one in self.live if _is_of(one, extension)]
        failed = [
            one
            for one in self.entries
            if one.payment is Payment.FAILED and _is_of(one, extension) and not _older(one, extension)
        ]
        return next(iter([*ours, *failed]), None)

    def displaces(self, extension: Extension) -> bool:
        """Whether another one that was bought begins where the intent's would: then the intent's was not."""
        return any(
            one.offering_id not in {None, extension.offering_id} and one.start == extension.window.start
            for one in self.live
        )


def _older(one: Past, extension: Extension) -> bool:
    return one.bought_at is not None and one.bought_at < extension.started_at - CLOCKS_DIFFER


def _is_of(one: Past, extension: Extension) -> bool:
    if one.offering_id is not None:
        return one.offering_id == extension.offering_id
    return one.start in (None, extension.window.start) and one.end in (None, extension.window.end)
