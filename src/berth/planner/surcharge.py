"""The operating system fee of a Capacity Block: paid while instances run, beside the fee of the block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from berth.planner.offers import hours_of, money_from_json, money_json
from berth.planner.platforms import LINUX
from berth.terms.money import Money


@dataclass(frozen=True, slots=True)
class OsRate:
    """What one instance hour of `platform` costs on top in `region`; `hourly` None: not known.

    `instance_type` is the type as the need names it; '' for the type that the need likes best.
    """

    region: str
    platform: str
    hourly: Money | None
    source: str = ""
    instance_type: str = ""


@dataclass(frozen=True, slots=True)
class Surcharge:
    """The operating system's line of an offer, for instances that run all of the paid time.

    `total` is exact, not rounded: only the sum of fee and surcharge is. `hourly` and `total` are None where
    the rate is not known.
    """

    platform: str
    hourly: Money | None
    total: Money | None
    source: str

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "platform": self.platform,
            "hourly": money_json(self.hourly),
            "total": money_json(self.total),
            "source": self.source,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Surcharge:
        """The surcharge that `to_json` wrote."""
        return cls(
            value["platform"],
            money_from_json(value["hourly"]),
            money_from_json(value["total"]),
            value["source"],
        )


def surcharge_for(platform: str, rate: OsRate | None, count: int, paid: timedelta) -> Surcharge | None:
    """The surcharge of a block of `count` instances; None where there is none: plain Linux, or no platform.

    Source: EC2 Capacity Blocks pricing page, read 2026-11: plain Linux has no operating system fee.
    """
    if platform in {"", LINUX}:
        return None
    hourly = rate.hourly if rate is not None else None
    if hourly is None or hourly.amount <= 0:
        return Surcharge(platform, None, None, rate.source if rate else "")
    return Surcharge(platform, hourly, hourly * (hours_of(paid) * count), rate.source if rate else "")
