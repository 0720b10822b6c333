"""Money: a decimal amount in one currency."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

MICROS = 1_000_000
LARGEST = Decimal(10) ** 12
"""Amounts stay below this: a store keeps millionths in 64 bits, which end at 9.2 * 10**12."""
_CENT = Decimal("0.01")
_SMALLEST_EXPONENT = -100
# Commas part thousands and nothing else: were they passed over, `228,77` would allow a hundred times as much.
_AMOUNT = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d{1,13})(\.\d{1,6})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Money:
    """`amount` of `currency` (ISO 4217, such as USD), below `LARGEST`. Never a float, never mixed."""

    amount: Decimal
    currency: str = "USD"

    def __post_init__(self) -> None:
        if not isinstance(self.amount, Decimal) or not self.amount.is_finite():
            raise ValueError(f"money needs a finite Decimal, not {self.amount!r}")
        if not self.amount:
            return  # nothing is nothing, whatever exponent a division left on it (0 / 21.3 is 0E+26)
        if self.amount.adjusted() >= LARGEST.adjusted():
            raise ValueError(f"an amount of money must be below {LARGEST:,f}")
        if int(self.amount.as_tuple().exponent) < _SMALLEST_EXPONENT:
            raise ValueError("an amount of money has too many decimals")

    @classmethod
    def parse(cls, text: str, currency: str = "USD") -> Money:
        """Read `1,146.17`, `1146.17`, `$1146.17`, `1146.17 USD`, to a millionth at most.

        Raises ValueError for anything else, such as a comma before the decimals.
        """
        bare = text.strip()
        if bare.startswith("$"):
            bare, currency = bare[1:], "USD"
        head, _, tail = bare.partition(" ")
        if tail.strip():
            currency = tail.strip().upper()
        if not _AMOUNT.fullmatch(head):
            raise ValueError(f"not an amount of money: {text[:40]!r}; write it like 228.77 or 1,146.17")
        return cls(Decimal(head.replace(",", "")), currency)

    @classmethod
    def from_micros(cls, micros: int, currency: str = "USD") -> Money:
        """From millionths of the currency unit, the form the stores keep."""
        return cls(Decimal(micros) / MICROS, currency)

    @property
    def micros(self) -> int:
        """Millionths of the currency unit. Raises ValueError when the amount is finer than that."""
        scaled = self.amount * MICROS
        if scaled != scaled.to_integral_value():
            raise ValueError(f"finer than a millionth: {self.amount}")
        return int(scaled)

    def rounded(self) -> Money:
        """To the cent, half up: one rounding, of a total, never of its parts."""
        return Money(self.amount.quantize(_CENT, rounding=ROUND_HALF_UP), self.currency)

    def _same(self, other: Money) -> Decimal:
        if other.currency != self.currency:
            raise ValueError(f"{self.currency} and {other.currency} cannot be compared or added")
        return other.amount

    def __add__(self, other: Money) -> Money:
        return Money(self.amount + self._same(other), self.currency)

    def __sub__(self, other: Money) -> Money:
        return Money(self.amount - self._same(other), self.currency)

    def __mul__(self, factor: Decimal | int) -> Money:
        return Money(self.amount * factor, self.currency)

    def __lt__(self, other: Money) -> bool:
        return self.amount < self._same(other)

    def __le__(self, other: Money) -> bool:
        return self.amount <= self._same(other)

    def __gt__(self, other: Money) -> bool:
        return self.amount > self._same(other)

    def __ge__(self, other: Money) -> bool:
        return self.amount >= self._same(other)

    def __str__(self) -> str:
        """`1,146.17 USD`, always at least two decimals."""
        digits = max(2, -int(self.amount.normalize().as_tuple().exponent))
        return f"{self.amount:,.{digits}f} {self.currency}"
