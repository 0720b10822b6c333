"""The answer: what to buy, what to pay by the hour beside it, and what is proven about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from berth.planner.best.reckon import Bought, Metered
from berth.terms.money import Money
from berth.terms.window import Window

_GAP_STEP = Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class Proof:
    """What is proven. `optimal`: no combination of what was seen costs less, to a millionth of the sum.

    `bound` is what every combination costs at least, rounded down to the cent; `gap` the share by which the
    answer is over it (0 when optimal). `scenes` counts the starts, durations and places that were looked
    at, `left_out` those that were not (then nothing is optimal); `nodes` the nodes of the solver's search;
    `whole` says that the linear program gave whole numbers by itself.
    """

    optimal: bool
    bound: Money
    gap: Decimal
    scenes: int
    left_out: int
    nodes: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """One combination. `cost` in `currency`, exact; `total` is it rounded once, to the cent.

    `running` are the windows in which the work runs (one, unless it pauses). `least_hours` are the
    instance-hours that had to be covered, `wanted_hours` how many of the wanted ones are, `wanted_in_all`
    of how many.
    """

    bought: tuple[Bought, ...]
    metered: tuple[Metered, ...]
    running: tuple[Window, ...]
    cost: Fraction
    currency: str
    least_hours: Fraction
    wanted_hours: Fraction
    wanted_in_all: Fraction
    proof: Proof

    @property
    def total(self) -> Money:
        """What all of it costs, rounded once."""
        return money(self.cost, self.currency)

    @property
    def start(self) -> datetime:
        """When the work begins."""
        return self.running[0].start

    @property
    def end(self) -> datetime:
        """When the work ends."""
        return self.running[-1].end

    @property
    def pieces(self) -> int:
        """How many offers are bought and how many ways are paid by the hour beside them."""
        return len(self.bought) + len({m.meter.id for m in self.metered})

    @property
    def places(self) -> tuple[str, ...]:
        """The zones (Regions where nothing has a zone) of what is bought and metered, each once, in order of
        name.
        """
        things = [b.candidate for b in self.bought] + [m.meter for m in self.metered]
        zoned = {t.region for t in things if t.zone_id is not None}
        named = {t.zone_id or t.region for t in things if t.zone_id is not None or t.region not in zoned}
        return tuple(sorted(named))

    @property
    def promised(self) -> bool:
        """Whether all of it is promised; what is paid by the hour may be refused on the day."""
        return not self.metered


@dataclass(frozen=True, slots=True)
class Refused:
    """An offer or meter that was not compared, with the reason."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The best of what was seen. `answer` None: nothing fits; `over_budget` is then the cheapest that fits
    but for the budget, None when the least count cannot be covered at all. `seen` counts the offers that
    were looked at. `settled` says whether that nothing fits is proven.
    """

    answer: Answer | None
    over_budget: Answer | None
    seen: int
    refused: tuple[Refused, ...]
    settled: bool


def money(cost: Fraction, currency: str) -> Money:
    """To the cent, half up."""
    cents = (cost * 200 + 1) // 2
    return Money(Decimal(cents) / 100, currency)


def floor_money(bound: float, currency: str) -> Money:
    """To the cent, rounded down: a bound must not claim more than is proven."""
    return Money(Decimal(Fraction(max(bound, 0.0)) * 100 // 1) / 100, currency)


def gap_of(cost: Fraction, bound: float) -> Decimal:
    """By which share of itself a cost is over a bound."""
    if cost <= 0:
        return Decimal(0)
    return Decimal(repr(max(1 - bound / float(cost), 0.0))).quantize(_GAP_STEP)
