"""What can be had: candidates to buy, ways that are paid by the hour, and which sums a search confirmed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from berth.terms.money import Money
from berth.terms.ways import Way
from berth.terms.window import Window


@dataclass(frozen=True, slots=True)
class Candidate:
    """An offer that may be bought. `fee` is the price of all `count` instances over all segments.

    `held` are the windows in which it takes capacity, `usable` those in which work can run, in order of
    time. `divisible`: any smaller count can be had for its share of the fee; otherwise all or nothing.
    `zone_id` None: not known, and then it is taken to be in any zone of its Region that would speak against
    it.
    """

    id: str
    way: Way
    instance_type: str
    region: str
    zone_id: str | None
    held: tuple[Window, ...]
    usable: tuple[Window, ...]
    count: int
    fee: Money
    divisible: bool = False

    def __post_init__(self) -> None:
        if self.count < 1 or self.fee.amount < 0:
            raise ValueError(f"candidate {self.id!r} needs a count from 1 and a fee that is not negative")
        for windows in (self.held, self.usable):
            if any(a.end > b.start for a, b in pairwise(windows)):
                raise ValueError(f"the windows of candidate {self.id!r} overlap or are out of order")


@dataclass(frozen=True, slots=True)
class Meter:
    """A way that is paid by the hour: on-demand, Spot.

    `limit` is how many instances may run at once (a quota). None is not known, and what is not known is not
    counted on, unless `unlimited` says that there is no limit. `zone_id` None: in any zone of the Region. A
    meter promises nothing: it may say no on the day.
    """

    id: str
    way: Way
    instance_type: str
    region: str
    zone_id: str | None
    hourly: Money
    limit: int | None = None
    unlimited: bool = False

    def __post_init__(self) -> None:
        if self.hourly.amount <= 0 or (self.limit is not None and self.limit < 0):
            raise ValueError(f"meter {self.id!r} needs a price over zero and a limit that is not negative")

    @property
    def counted_on(self) -> bool:
        """Whether it is known how many can be had."""
        return self.unlimited or bool(self.limit)


@dataclass(frozen=True, slots=True)
class Confirmed:
    """One search said that `count` instances of the type can be had in the zone all through `window`.

    Each candidate confirms its own count; these are further searches, as for the sum of two.
    """

    instance_type: str
    zone_id: str
    window: Window
    count: int


@dataclass(frozen=True, slots=True)
class Supply:
    """All that can be had. `most_by_way` bounds the sum of counts bought by a way (256 over all blocks)."""

    candidates: tuple[Candidate, ...]
    meters: tuple[Meter, ...] = ()
    confirmed: tuple[Confirmed, ...] = ()
    most_by_way: tuple[tuple[Way, int], ...] = ()

    def __post_init__(self) -> None:
        for things in (self.candidates, self.meters):
            if len({thing.id for thing in things}) != len(things):
                raise ValueError("two candidates or two meters have one id")
