"""Cost against use: what an offer and the ways without reservation cost by the hour, and where they meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from math import ceil

from berth.planner.cost import HourlyRate, PayAsYouGo
from berth.planner.offers import hours_of
from berth.planner.plan import Choice
from berth.terms.money import Money
from berth.terms.text import plain
from berth.terms.ways import Way

_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Line:
    """What a way costs in all for `hours` of use of every instance: `fixed + hourly * hours`.

    `hourly` is for all instances together. `rate` is where an hourly price comes from; None for the offer.
    """

    way: Way
    fixed: Money
    hourly: Money
    rate: HourlyRate | None = None

    def at(self, hours: Decimal) -> Money:
        """The cost for that much use, to the cent."""
        return (self.fixed + self.hourly * hours).rounded()


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where a way begins to cost as much as the offer: `after` is rounded up to the minute.

    None: it never does within the usable time.
    """

    way: Way
    region: str
    after: timedelta | None


@dataclass(frozen=True, slots=True)
class Band:
    """One way over all its places: `near` is the cheapest line of the offer's own Region, or where there is
    none the cheapest of all; `lowest` and `highest` bound the others, `places` counts all. `meeting` is where
    `near` begins to cost as much as the offer."""

    near: Line
    lowest: Line
    highest: Line
    places: int
    meeting: Meeting


@dataclass(frozen=True, slots=True)
class Curves:
    """The lines of one choice over its usable time, of its own type and all in one currency.

    `region` is the offer's. `left_out` names, with the reason, each way that has no line: its price is not
    known, or is in another currency.
    """

    usable: timedelta
    count: int
    region: str
    offer: Line
    others: tuple[Line, ...]
    meetings: tuple[Meeting, ...]
    left_out: tuple[str, ...]

    @property
    def usable_hours(self) -> Decimal:
        """The usable time in hours: where the lines end."""
        return hours_of(self.usable)

    @property
    def bands(self) -> tuple[Band, ...]:
        """The other lines by way, in the order of the lines."""
        met = dict(zip(self.others, self.meetings, strict=True))
        return tuple(
            self._band([line for line in self.others if line.way is way], met)
            for way in dict.fromkeys(line.way for line in self.others)
        )

    def _band(self, lines: Sequence[Line], met: Mapping[Line, Meeting]) -> Band:
        ordered = sorted(lines, key=lambda line: line.at(self.usable_hours).amount)
        here = [line for line in ordered if line.rate is not None and line.rate.region == self.region]
        near = (here or ordered)[0]
        return Band(near, ordered[0], ordered[-1], len(lines), met[near])

    @property
    def highest(self) -> Money:
        """The dearest point of any line."""
        return max(
            (line.at(self.usable_hours) for line in (self.offer, *self.others)),
            key=lambda money: money.amount,
        )


def curves(choice: Choice, pay_lines: Iterable[PayAsYouGo]) -> Curves | None:
    """The lines of `choice` and of the ways without reservation; None where its price is not known."""
    cost, offer = choice.cost, choice.offer
    if cost.fee is None or cost.total is None or not cost.usable:
        return None
    currency = cost.fee.currency
    os_hourly = cost.surcharge.hourly if cost.surcharge else None
    own = Line(offer.way, cost.fee, (os_hourly or Money(Decimal(0), currency)) * offer.count)
    others: list[Line] = []
    left_out: list[str] = []
    # A rate of another type says nothing about this one; older documents name none.
    for pay in (p for p in pay_lines if (p.rate.instance_type or offer.instance_type) == offer.instance_type):
        hourly = pay.rate.hourly
        if hourly is None:
            why = f" ({plain(pay.rate.note, 80)})" if pay.rate.note else ""
            left_out.append(f"{pay.rate.way} {pay.rate.zone_id or pay.rate.region}: price not known{why}")
        elif hourly.currency != currency:
            left_out.append(
                f"{pay.rate.way} {pay.rate.zone_id or pay.rate.region}: priced in {hourly.currency}"
            )
        else:
            others.append(_line(pay.rate, hourly * offer.count, cost.usable))
    meetings = tuple(_meeting(own, line, cost.usable) for line in others)
    return Curves(cost.usable, offer.count, offer.region, own, tuple(others), meetings, tuple(left_out))


def _line(rate: HourlyRate, hourly: Money, usable: timedelta) -> Line:
    """A reservation costs the same whether it is used or idle; what is not reserved costs what is used."""
    nothing = Money(Decimal(0), hourly.currency)
    if rate.way is Way.ODCR:
        return Line(rate.way, hourly * hours_of(usable), nothing, rate)
    return Line(rate.way, nothing, hourly, rate)


def _meeting(own: Line, other: Line, usable: timedelta) -> Meeting:
    region = other.rate.region if other.rate else ""
    slower = Fraction(other.hourly.amount) - Fraction(own.hourly.amount)
    if slower <= 0:
        return Meeting(other.way, region, None)
    minutes = max(ceil((Fraction(own.fixed.amount) - Fraction(other.fixed.amount)) * 60 / slower), 0)
    if minutes > usable / timedelta(
        minutes=1
    ):  # compared as numbers: a tiny rate gives more than time can hold
        return Meeting(other.way, region, None)
    return Meeting(other.way, region, timedelta(minutes=minutes))


def sparkline(picture: Curves, line: Line, columns: int = 24) -> str:
    """`line` over the usable time in `columns` bars, on the scale of the dearest line of the picture."""
    top, hours = picture.highest.amount, picture.usable_hours
    points = (line.at(hours * (column + 1) / columns).amount for column in range(columns))
    return "".join(_BARS[min(int(point / top * len(_BARS)), len(_BARS) - 1)] for point in points)
