"""What is held: one value a reservation or endpoint, and what of it AWS and the journal know."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from berth.planner.offers import hours_of, money_json, reclaim_before_end
from berth.planner.owned import ORDER_TAG, OWNERS, Owned, places_free
from berth.terms.durations import spoken
from berth.terms.instants import iso
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

FEE_TAG = "berth:fee"
"""The tag that holds what was paid for a block: AWS shows its fee to nobody."""
OVER = frozenset({"expired", "cancelled", "failed", "payment-failed", "unsupported"})
"""States (in lower case) after which a reservation holds nothing any more."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the journal knows of one order's reservation.

    `id` is `cr-...` or a training plan's name. `idle` is the share of the fee of the usable hours that went
    by without anything of ours in service; None where that is not known.
    """

    order: str
    way: Way
    region: str
    id: str
    fee: Money
    window: Window
    instance_type: str
    count: int
    zones: tuple[str, ...]
    target: str
    idle: Money | None


class Shown(StrEnum):
    """What AWS makes of a reservation. Only the first two are answers about it."""

    LISTED = "listed"
    ENDED = "ended"  # no longer reported, and its end is past: what becomes of every old one
    NOT_SHOWN = "not-shown"  # the Region answered and does not show it, though it is not over
    NOT_KNOWN = "not-known"  # the Region did not answer in full


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One SageMaker endpoint. `reservations` are the ARNs that its variants run on; `instances` and
    `on_demand` (some variant runs on no reservation) are None where the service did not say."""

    region: str
    name: str
    state: str
    created: datetime | None
    instances: int | None
    reservations: tuple[str, ...]
    on_demand: bool | None

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "region": self.region,
            "name": self.name,
            "state": self.state,
            "created": iso(self.created) if self.created else None,
            "instances": self.instances,
            "reservations": list(self.reservations),
            "on_demand": self.on_demand,
        }


@dataclass(frozen=True, slots=True)
class Holding:
    """One reservation: as AWS lists it (`owned`), as the journal knows it (`known`), or both."""

    shown: Shown
    owned: Owned | None
    known: Known | None

    @property
    def _either(self) -> Owned | Known:
        found = self.owned or self.known
        assert found is not None, "a holding is known to somebody"
        return found

    @property
    def way(self) -> Way:
        """How it was got."""
        return self._either.way

    @property
    def region(self) -> str:
        """Where it is."""
        return self._either.region

    @property
    def id(self) -> str:
        """`cr-...`, or a training plan's name."""
        return self._either.id

    @property
    def start(self) -> datetime | None:
        """Its start, as AWS shows it, else as it was bought."""
        if self.owned is not None and self.owned.start is not None:
            return self.owned.start
        return self.known.window.start if self.known else None

    @property
    def end(self) -> datetime | None:
        """Its end, as AWS shows it, else as it was bought; None: no end, or not known."""
        if self.owned is not None and (self.owned.end is not None or self.known is None):
            return self.owned.end
        return self.known.window.end if self.known else None

    @property
    def instance_type(self) -> str | None:
        """The type, from whoever knows it."""
        told = self.owned.instance_type if self.owned else None
        return told or (self.known.instance_type if self.known else None)

    @property
    def count(self) -> int | None:
        """What was bought, from whoever knows it."""
        told = self.owned.count if self.owned else None
        return told or (self.known.count if self.known else None)

    @property
    def zones(self) -> tuple[str, ...]:
        """Zone ids, or names where no id is known."""
        told = self.owned.zones if self.owned else ()
        return told or (self.known.zones if self.known else ())

    @property
    def state(self) -> str:
        """AWS's word, or why there is none."""
        if self.shown is Shown.LISTED and self.owned is not None:
            return self.owned.state
        return {
            Shown.ENDED: "ended (no longer reported)",
            Shown.NOT_SHOWN: "not shown by AWS",
        }.get(self.shown, "not known")

    @property
    def is_over(self) -> bool:
        """Whether nothing is held any more, as far as is known."""
        return self.shown is Shown.ENDED or (self.owned is not None and self.owned.state.lower() in OVER)

    @property
    def fee(self) -> Money | None:
        """What was paid: from the journal, the service, or the tag that Berth leaves; None: not known."""
        if self.known is not None:
            return self.known.fee
        if self.owned is None:
            return None
        return self.owned.fee or _tagged_fee(self.owned.tag(FEE_TAG))

    @property
    def is_fee_by_tag(self) -> bool:
        """Whether the fee is known by Berth's tag alone: that of the purchase, without its extensions."""
        return (
            self.known is None and self.owned is not None and self.owned.fee is None and self.fee is not None
        )

    @property
    def who(self) -> str:
        """Who ordered it: an order of this journal, one the tag names, or what people's tags say."""
        if self.known is not None:
            return f"order {self.known.order}"
        marks = dict(self.owned.tags or ()) if self.owned else {}
        if ORDER_TAG in marks:
            _, _, rest = marks[ORDER_TAG].partition("/")
            return f"order {rest.removesuffix('/1') or marks[ORDER_TAG]}, by its tag"
        for key in (*OWNERS, "Name"):
            if key in marks:
                return f"{key}={marks[key]}"
        return "not ordered by berth here"

    def idle(self) -> Money | None:
        """Money that went by idle so far, from the journal alone; None: not known."""
        return self.known.idle if self.known is not None else None

    def idle_an_hour(self, now: datetime) -> Money | None:
        """What the places that stand empty now cost an hour, of the fee; None: not known, or not begun."""
        window, fee, owned = self._window(), self.fee, self.owned
        if window is None or fee is None or owned is None or not self.count or self.is_over:
            return None
        free = places_free(owned, now)
        if free is None or not window.contains(now):
            return None
        share = Decimal(free) / (hours_of(window.duration) * self.count)
        return Money(fee.amount * share, fee.currency).rounded()

    def countdown(self, now: datetime) -> str:
        """How long until it opens, is taken back, or ends."""
        start, end = self.start, self.end
        if self.is_over or (end is not None and now >= end):
            return "over"
        if start is not None and now < start:
            return f"opens in {_span(start - now)}"
        if end is None:
            return "no end"
        last = end - self._reclaim()
        if now < last:
            return f"usable for {_span(last - now)}"
        return f"ends in {_span(end - now)}"

    def to_json(self, now: datetime) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "way": self.way.value,
            "region": self.region,
            "id": self.id,
            "shown": self.shown.value,
            "state": self.owned.state if self.owned else None,
            "start": iso(self.start) if self.start else None,
            "end": iso(self.end) if self.end else None,
            "instance_type": self.instance_type,
            "count": self.count,
            "free": places_free(self.owned, now) if self.owned else None,
            "zones": list(self.zones),
            "fee": money_json(self.fee),
            "idle": money_json(self.idle()),
            "idle_an_hour": money_json(self.idle_an_hour(now)),
            "countdown": self.countdown(now),
            "order": self.known.order if self.known else None,
            "who": self.who,
            "tags": dict(self.owned.tags) if self.owned and self.owned.tags is not None else None,
        }

    def _window(self) -> Window | None:
        if self.start is None or self.end is None or self.end <= self.start:
            return None
        return Window(self.start, self.end)

    def _reclaim(self) -> timedelta:
        if self.way is Way.ODCR:
            return timedelta(0)
        targets = self.owned.targets if self.owned else ()
        fallback = self.known.target if self.known else Target.INSTANCES.value
        return reclaim_before_end(targets[0] if targets else fallback)


def _span(span: timedelta) -> str:
    """In words; without minutes from two days on."""
    return spoken(span - span % timedelta(hours=1) if span >= timedelta(days=2) else span)


def _tagged_fee(text: str | None) -> Money | None:
    try:
        return Money.parse(text) if text else None
    except ValueError:
        return None
