"""Offers to extend: the choice among them, and whether a fresh one is the chosen one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from berth.planner.cost import known_or_none
from berth.planner.offers import hours_of
from berth.terms.instants import iso
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.window import Window

GONE = "the offer to extend is gone"


@dataclass(frozen=True, slots=True)
class ExtensionOffer:
    """An extension that can be had now. `fee` None: AWS showed none that can be read, so unknown."""

    offering_id: str
    window: Window
    fee: Money | None
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a fee is held against: `cap` (None: not bounded), and the least plausible price of an hour of all
    `count` instances' worth each, `floor` (None: not known, so only zero is implausible)."""

    cap: Money | None = None
    floor: Money | None = None
    count: int = 1


def cheapest(offers: Sequence[ExtensionOffer], end: datetime, bounds: Bounds) -> ExtensionOffer:
    """The cheapest of the offers that begin at `end`, the present end; the longer of two that cost the same.

    Only a fee that is known, plausible and within the cap counts, and currencies are never compared. Raises
    BerthError: no capacity when there is no offer, decision needed when none of them may be taken.
    """
    fitting = [offer for offer in offers if offer.window.start == end]
    if not fitting:
        raise BerthError(
            ExitCode.NO_CAPACITY,
            "no extension of that length is on sale now",
            "try another length with --by, or again later: one can be bought until 1 hour before the end",
        )
    priced = [(offer.fee, offer) for offer in fitting if offer.fee is not None and _plausible(offer, bounds)]
    if not priced:
        shown = ", ".join(str(offer.fee) for offer in fitting if offer.fee is not None)
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"{shown} is no price for the extension; it counts as unknown" if shown
            else "AWS shows no fee for the extension, so it cannot be weighed",
        )  # fmt: skip
    currencies = sorted({fee.currency for fee, _ in priced})
    if len(currencies) > 1:
        raise BerthError(
            ExitCode.DECISION_NEEDED,
            f"the offers are in {' and '.join(currencies)}: these cannot be compared",
        )
    fee, offer = min(priced, key=lambda pair: (pair[0].amount, -pair[1].window.end.timestamp()))
    check_cap(fee, bounds.cap)
    return offer


def _plausible(offer: ExtensionOffer, bounds: Bounds) -> bool:
    """Whether the fee can be a price: not zero, and over a tenth of what the hardware lists for."""
    fee = offer.fee
    if fee is None or fee.amount <= 0:
        return False
    hours = hours_of(offer.window.duration) * bounds.count
    return known_or_none(Money(fee.amount / hours, fee.currency), bounds.floor) is not None


def check_cap(fee: Money, cap: Money | None) -> None:
    """Raise BerthError (decision needed) unless the fee is within the cap."""
    if cap is None:
        return
    if cap.currency != fee.currency:
        raise BerthError(
            ExitCode.DECISION_NEEDED, f"the fee is {fee} and --max is {cap}: these cannot be compared"
        )
    if fee > cap:
        raise BerthError(ExitCode.DECISION_NEEDED, f"the fee is {fee}, --max allows {cap}; nothing is bought")


def same_again(chosen: ExtensionOffer, fresh: Sequence[ExtensionOffer]) -> ExtensionOffer:
    """The chosen offer as a new search shows it: the same window at the same fee to the cent.

    Raises BerthError (decision needed) when it is gone or its price has moved.
    """
    same = [offer for offer in fresh if offer.window == chosen.window]
    if not same:
        raise BerthError(
            ExitCode.DECISION_NEEDED, f"{GONE}; nothing is bought in its place", "run the same command again"
        )
    for offer in same:
        if offer.fee == chosen.fee:
            return offer
    assert chosen.fee is not None
    now = _nearest(chosen.fee, [offer.fee for offer in same if offer.fee is not None])
    moved = "unknown" if now is None else f"{now.amount:.2f}"
    currency = "" if now is None or now.currency == chosen.fee.currency else f" {now.currency}"
    raise BerthError(
        ExitCode.DECISION_NEEDED,
        f"price moved {chosen.fee.amount:.2f} → {moved}{currency or f' {chosen.fee.currency}'}"
        f" for the extension to {iso(chosen.window.end)}; nothing is bought",
        "run the same command again to decide on the price of now",
    )


def _nearest(chosen: Money, fees: Sequence[Money]) -> Money | None:
    """Of several fees the one that the chosen price has most likely become; None when none is known."""
    return min(
        fees, key=lambda fee: (fee.currency != chosen.currency, abs(fee.amount - chosen.amount)), default=None
    )
