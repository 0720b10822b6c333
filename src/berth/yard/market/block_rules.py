"""AWS's rules for Capacity Blocks that plans do not share: durations, sizes, platforms, what an offer says.

Source of each number: EC2 User Guide, "Capacity Blocks for ML", and EC2's API model (copies of 2026). The
rules of time are in `window_rules`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from berth.facts.instance_types import instance_type
from berth.terms.money import Money
from berth.terms.window import Window
from berth.yard.market.fees import fee
from berth.yard.market.window_rules import PAID_BEFORE_START, window_of

# 1 to 14 days by the day, then whole weeks up to 26: 38 values.
DURATIONS_HOURS = (*range(24, 337, 24), *range(504, 4369, 168))
COUNT_MAX = 64
INSTANCES_MAX = 256  # of one account, over all its blocks
PLATFORMS = ("Linux/UNIX", "Red Hat Enterprise Linux", "RHEL with HA", "SUSE Linux", "Ubuntu Pro")
# "The earlier of 12 hours after the purchase and 5 minutes before the start."
PAID_WITHIN = timedelta(hours=12)
RECLAIM_BEFORE_END = timedelta(minutes=30)
ULTRASERVER_RECLAIM_BEFORE_END = timedelta(minutes=60)


@dataclass(frozen=True, slots=True)
class BlockTerms:
    """What a block offering offers, as its id carries it.

    `issued_at` is a whole minute; `start` and `end` are numbers as `window_of` reads them. `usd_per_hour` is
    the rate per instance hour that the offering's fee was reckoned from.
    """

    pool_key: str
    count: int
    issued_at: datetime
    start: int
    end: int
    usd_per_hour: Decimal

    @property
    def immediate(self) -> bool:
        """Whether it starts as soon as it can instead of at an 11:30 UTC."""
        return self.start == 0

    @property
    def window(self) -> Window:
        """The paid window."""
        return window_of(self.issued_at, self.start, self.end)

    @property
    def fee(self) -> Money:
        """The whole upfront fee: all instances, hours and minutes, rounded once."""
        return fee(self.usd_per_hour, self.count, self.window)


def family_of(type_: str) -> str:
    """The family that EC2's quotas count: `p5` of `p5.48xlarge`, `p6-b200` of `p6-b200.48xlarge`."""
    return type_.partition(".")[0]


def vcpus_of(type_: str) -> int | None:
    """vCPUs of one instance; None where the published tables do not know the type."""
    known = instance_type(type_)
    return known.vcpus if known is not None else None


def reclaim_before_end(unit: int) -> timedelta:
    """How long before its end instances are taken out of a block of a pool that is sold by `unit` hosts."""
    return RECLAIM_BEFORE_END if unit == 1 else ULTRASERVER_RECLAIM_BEFORE_END


def payment_deadline(bought_at: datetime, starts: datetime) -> datetime:
    """When the fee must be there, or the block is not had."""
    return min(bought_at + PAID_WITHIN, starts - PAID_BEFORE_START)


def pays_at(
    bought_at: datetime, starts: datetime, shortest: timedelta, longest: timedelta | None, draw: float
) -> datetime:
    """When a payment arrives: `draw` of [0, 1) between the delays, never past the deadline.

    `longest` None (or under `shortest`) = always after `shortest`.
    """
    spread = max(timedelta(0), longest - shortest) if longest is not None else timedelta(0)
    return min(bought_at + shortest + spread * draw, payment_deadline(bought_at, starts))
