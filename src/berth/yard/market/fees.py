"""The upfront fee of a reservation."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from berth.terms.money import Money
from berth.terms.window import Window

_HOUR_SECONDS = 3600


def fee(usd_per_hour: Decimal, count: int, window: Window, currency: str = "USD") -> Money:
    """Rate x instances x hours, minutes counted; the total is rounded once, half up, to the cent.

    Every fee seen in public fits this: 11.80 x 26 h 27 min = 312.11, 35.7608 x 8 h 37 min = 308.14.
    """
    seconds = window.duration // timedelta(seconds=1)
    return Money(usd_per_hour * count * seconds / _HOUR_SECONDS, currency).rounded()
