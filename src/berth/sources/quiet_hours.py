"""Quieter hours: when one's own asks saw offers, by hour of the day. Pure.

Nobody publishes when capacity is freer, so nothing is said but what one's own asks show, as counts: a share
of three asks is no probability.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from berth.planner.phrases import WIDTH, wrapped
from berth.sources.history import HourSeen
from berth.terms.money import Money
from berth.terms.text import plain
from berth.terms.ways import Way

ENOUGH_ASKS = 5
"""So many answered asks make an hour one that can be compared."""
ENOUGH_HOURS = 3
"""So many comparable hours make one hour quieter than another."""
_HEADS = ("ASKS", "OFFERS", "NOT ANSWERED", "CHEAPEST /H")


@dataclass(frozen=True, slots=True)
class Hour:
    """One hour of the day (UTC) over all Regions and accounts that were asked.

    `cheapest` is the lowest price of an instance-hour, None where none was told or currencies differ.
    """

    hour: int
    answered: int
    with_offers: int
    refused: int
    cheapest: Money | None

    @property
    def share(self) -> float:
        """The share of answered asks that saw offers."""
        return self.with_offers / self.answered if self.answered else 0.0


def hours_of_day(seen: Iterable[HourSeen]) -> tuple[Hour, ...]:
    """The hours in which something was asked, from 0 on, Regions and accounts together."""
    grouped: dict[int, list[HourSeen]] = defaultdict(list)
    for one in seen:
        grouped[one.hour].append(one)
    return tuple(_together(hour, grouped[hour]) for hour in sorted(grouped))


def _together(hour: int, seen: Sequence[HourSeen]) -> Hour:
    prices = [one.cheapest for one in seen if one.cheapest is not None]
    same = len({price.currency for price in prices}) == 1
    cheapest = min(prices, key=lambda price: price.amount) if same else None
    return Hour(
        hour,
        sum(one.answered for one in seen),
        sum(one.with_offers for one in seen),
        sum(one.refused for one in seen),
        cheapest,
    )


def quieter(seen: Iterable[HourSeen]) -> str:
    """In which hours offers were seen most often, place by place, or why that is not known.

    Hours are compared within one way and Region: a place that was asked at night alone says nothing about
    another that was asked by day.
    """
    places: dict[tuple[Way, str], list[HourSeen]] = defaultdict(list)
    for one in seen:
        places[one.way, one.region].append(one)
    said = [f"{region} {told}" for (_, region), found in sorted(places.items()) if (told := _place(found))]
    if said:
        return f"quieter hours (UTC), by your own asks and no forecast: {'; '.join(said)}"
    asks = sum(one.answered for found in places.values() for one in found)
    return (
        f"quieter hours: unknown. That takes {ENOUGH_HOURS} hours of the day with {ENOUGH_ASKS} answered "
        f"asks each in one Region; answered so far: {asks}"
    )


def _place(seen: Sequence[HourSeen]) -> str:
    """The best hours of one place; '' where too few can be compared."""
    known = [hour for hour in hours_of_day(seen) if hour.answered >= ENOUGH_ASKS]
    if len(known) < ENOUGH_HOURS:
        return ""
    best = max(hour.share for hour in known)
    if best == min(hour.share for hour in known):
        return f"none, the same in all {len(known)} hours that can be compared"
    return ", ".join(
        f"{hour.hour:02d}-{hour.hour + 1:02d} ({hour.with_offers} of {hour.answered} asks)"
        for hour in known
        if hour.share == best
    )


def history_text(instance_type: str, realm: str, seen: Sequence[HourSeen]) -> str:
    """What `berth history` prints: each way and Region in a line, then the hours, in 80 columns."""
    first, last = min(one.first_at for one in seen), max(one.last_at for one in seen)
    what = f"{plain(instance_type, 40)} in {plain(realm, 40)}, by your own asks"
    lines = [f"{what} {first:%Y-%m-%d} to {last:%Y-%m-%d} (UTC)", _row("WAY", "REGION", *_HEADS)]
    places: dict[tuple[Way, str], list[HourSeen]] = defaultdict(list)
    for one in seen:
        places[one.way, one.region].append(one)
    lines += [_line(way.value, region, _together(0, found)) for (way, region), found in places.items()]
    lines.append(_row("", "HOUR UTC", *_HEADS))
    lines += [_line("", f"{hour.hour:02d}-{hour.hour + 1:02d}", hour) for hour in hours_of_day(seen)]
    return "\n".join([*(line.rstrip() for line in lines), *wrapped(quieter(seen), hang=2)])


def _line(way: str, where: str, hour: Hour) -> str:
    price = "unknown" if hour.cheapest is None else f"{hour.cheapest.amount:,.3f} {hour.cheapest.currency}"
    asks = hour.answered + hour.refused
    return _row(way, plain(where, 20), str(asks), str(hour.with_offers), str(hour.refused), price)


def _row(way: str, where: str, *cells: str) -> str:
    asks, offers, refused, price = cells
    left = f"{way:<20}{where:<16}{asks:>7}{offers:>8}"
    price = f"{price:>15}" if len(price) < 15 else f" {price}"  # a long one takes from its neighbour's column
    return f"{left}{refused:>{max(WIDTH - len(left) - len(price), len(refused) + 1)}}{price}"
