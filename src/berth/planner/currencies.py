"""Offers in several currencies: none is compared with another, so one currency must lead, and it is said.

A budget's currency leads, for nothing else fits it. Without a budget the one in which most offers are leads,
and of equals the first by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from berth.planner.phrases import hung
from berth.terms.money import Money


@dataclass(frozen=True, slots=True)
class Currencies:
    """The currencies of what was seen with the number of offers in each, the one that leads first."""

    offers: tuple[tuple[str, int], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The currencies alone, in that order."""
        return tuple(name for name, _ in self.offers)

    @property
    def leads(self) -> str | None:
        """The currency that leads; None where no price is known."""
        return self.names[0] if self.offers else None

    @property
    def is_tied(self) -> bool:
        """Whether another currency has as many offers."""
        return len(self.offers) > 1 and self.offers[0][1] == self.offers[1][1]

    def rank(self, money: Money | None) -> int:
        """Where a price stands in that order; behind all of them where it is unknown."""
        return self.names.index(money.currency) if money and money.currency in self.names else len(self.names)


def currencies_of(prices: Iterable[Money | None]) -> Currencies:
    """The currencies of `prices`, most of them first, of equals the first by name."""
    found = Counter(price.currency for price in prices if price is not None)
    return Currencies(tuple(sorted(found.items(), key=lambda item: (-item[1], item[0]))))


def currency_lines(currencies: Currencies) -> list[str]:
    """That prices in several currencies are not compared, which one leads and why; () where there is one."""
    if len(currencies.offers) < 2:
        return []
    (lead, number), *others = currencies.offers
    why = "first by name, as no currency has more" if currencies.is_tied else "as most are in it"
    rest = _together([f"{count} in {name}" for name, count in others])
    instead = " or ".join(f'"... {name}"' for name, _ in others)
    told = f"currencies are not compared: the {_offers(number)} in {lead} come first, {why}; then {rest}. "
    return hung(f"{told}A budget of {instead} chooses among those instead", "MONEY")


def _offers(number: int) -> str:
    return f"{number} {'offer' if number == 1 else 'offers'}"


def _together(parts: Sequence[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
