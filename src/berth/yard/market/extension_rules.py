"""AWS's rules for extending a Capacity Block or a training plan: when, how long, when the fee must be there.

Source of each number: EC2 User Guide, "Extend Capacity Blocks" (capacity-blocks-extend), and SageMaker
Developer Guide, "Extend a training plan" (training-plan-extension), copies of 2026. One copy of each says 57
days instead of 56: the narrower holds here. The guide of plans names no deadline of payment; that of blocks
is used for both.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from berth.terms.instants import iso
from berth.terms.money import Money
from berth.terms.window import Window
from berth.yard.errors import ServiceError
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.pools import Pool
from berth.yard.market.block_rules import DURATIONS_HOURS, reclaim_before_end

EARLIEST_BEFORE_END = timedelta(days=56)
LATEST_BEFORE_END = timedelta(hours=1)
PAID_BEFORE_END = timedelta(minutes=35)
PAID_WITHIN = timedelta(hours=12)
_FIVE_MINUTES = timedelta(minutes=5)
# "1-day increments up to 14 days, 7-day increments up to 182 days": the durations of blocks, also for plans.
EXTENSION_HOURS = DURATIONS_HOURS
HOURS_MAX = EXTENSION_HOURS[-1]
# An issue minute is the search's instant rounded up, so it may lie up to a minute ahead of it.
_AHEAD = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ExtensionTerms:
    """What an extension offering offers, as its id carries it.

    `issued_at` is a whole minute; `old_end` is the end of what is extended, `days` the length; `fee` the
    whole upfront fee.
    """

    issued_at: datetime
    days: int
    old_end: datetime
    fee: Money

    @property
    def window(self) -> Window:
        """What is added: it begins where the reservation ends now."""
        return Window(self.old_end, self.old_end + timedelta(days=self.days))


@dataclass(frozen=True, slots=True)
class Extended:
    """A reservation that somebody wants to extend: its present window and the hosts that it holds."""

    pool: Pool
    face: str
    count: int
    window: Window


def why_not_now(end: datetime, now: datetime, unpaid: bool) -> str | None:
    """Why no extension is sold at `now` for what ends at `end`; None when one may be.

    `unpaid` = an earlier extension is being paid still: AWS sells one at a time.
    """
    if unpaid:
        return "an earlier extension is still in payment-pending"
    if now > end - LATEST_BEFORE_END:
        return f"it ends at {iso(end)}, and an extension is bought at least 1 hour before the end"
    if now < end - EARLIEST_BEFORE_END:
        return f"it ends at {iso(end)}, and an extension is bought at most 56 days before the end"
    return None


def payment_deadline(bought_at: datetime, old_end: datetime, unit: int = 1) -> datetime:
    """When the fee must be there: 12 hours after the purchase or 35 minutes before the present end.

    That is 5 minutes before AWS begins to take instances back; of a pool that is sold by `unit` hosts
    (UltraServers) they go at 60 minutes, so there it is 65 (inferred).
    """
    before_end = max(PAID_BEFORE_END, reclaim_before_end(unit) + _FIVE_MINUTES)
    return min(bought_at + PAID_WITHIN, old_end - before_end)


def pays_at(
    bought_at: datetime, deadline: datetime, shortest: timedelta, longest: timedelta | None, draw: float
) -> datetime:
    """When a payment arrives: `draw` of [0, 1) between the delays, never past the deadline.

    `longest` None (or under `shortest`) = always after `shortest`.
    """
    spread = max(timedelta(0), longest - shortest) if longest is not None else timedelta(0)
    return min(bought_at + shortest + spread * draw, deadline)


def on_sale(
    extended: Extended, window: Window, now: datetime, fleet: Fleet, calendars: FleetCalendars
) -> bool:
    """Whether hosts are free for as many as the reservation has, in `window`, and it could be paid in time.

    Hosts are bound when a window starts, never before, so an extension needs a count and not the same hosts.
    """
    fits = calendars.fits(extended.pool, extended.face, window, extended.count)
    in_time = now + fleet.payment_delay <= payment_deadline(now, window.start, extended.pool.unit)
    return fits and in_time


def too_old(terms: ExtensionTerms, now: datetime, fleet: Fleet) -> bool:
    """Whether the offering was shown too long ago, or by a clock that is ahead."""
    return terms.issued_at > now + _AHEAD or now >= terms.issued_at + fleet.lifetimes.scheduled


def bad_duration(hours: int, code: str) -> ServiceError:
    """The refusal of a length that AWS does not sell."""
    return ServiceError(
        code,
        "The extension duration is not valid. Specify 24 to 336 hours in steps of 24, or 504 to 4368 hours in"
        f" steps of 168; not {hours}.",
    )
