"""What a mix takes of the quotas that bound its hours, and what a quota would have to allow. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from berth.planner.best.reckon import Metered
from berth.planner.hourly_quotas import NOT_READ, HourlyQuota
from berth.terms.text import plain
from berth.terms.ways import Way


@dataclass(frozen=True, slots=True)
class QuotaNeed:
    """The most that a mix takes at once of one quota, in the quota's `unit`.

    `value` is the quota and `used` what takes it now; None: not known, and `trouble` says why.
    """

    way: Way
    region: str
    code: str | None
    name: str
    unit: str
    needed: int
    value: int | None
    used: int | None
    trouble: str

    @property
    def allowed(self) -> bool:
        """Whether the quota is known to allow it, as far as what runs now is known."""
        return self.value is not None and self.needed + (self.used or 0) <= self.value

    @property
    def sentence(self) -> str:
        """`on-demand 384 vCPU in us-east-2 (L-417A185B, not read)`."""
        unit = "instances" if self.unit == "instance" and self.needed != 1 else self.unit
        return f"{self.way} {self.needed:,} {unit} in {self.region} ({self._state()})"

    def _state(self) -> str:
        code = self.code or f'quota "{plain(self.name, 80)}"'
        if self.value is None:
            why = plain(self.trouble, 120)
            return f"{code}, not read" if why in {"", NOT_READ} else f"{code}, not known: {why}"
        runs = f"{self.used:,} in use now" if self.used is not None else "what runs now is not known"
        return f"{code} is {self.value:,}, {runs}"

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "way": self.way.value,
            "region": self.region,
            "code": self.code,
            "name": self.name,
            "unit": self.unit,
            "needed": self.needed,
            "value": self.value,
            "used": self.used,
            "trouble": self.trouble,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> QuotaNeed:
        """What `to_json` wrote."""
        return cls(
            Way(value["way"]),
            value["region"],
            value["code"],
            value["name"],
            value["unit"],
            int(value["needed"]),
            value["value"],
            value["used"],
            value["trouble"],
        )


def quota_needs(metered: Iterable[Metered], quotas: Sequence[HourlyQuota]) -> tuple[QuotaNeed, ...]:
    """What the hours of a mix take at once of each quota, in order of way and place.

    Types that count against one quota add up. A way and type without one among `quotas` is left out.
    """
    changes: dict[HourlyQuota, dict[datetime, int]] = defaultdict(lambda: defaultdict(int))
    for use in metered:
        meter = use.meter
        one = next(
            (q for q in quotas
             if (q.way, q.region, q.instance_type) == (meter.way, meter.region, meter.instance_type)),
            None,
        )  # fmt: skip
        if one is not None:
            changes[one][use.paid.start] += use.count * (one.each or 1)
            changes[one][use.paid.end] -= use.count * (one.each or 1)
    together: dict[tuple[object, ...], list[HourlyQuota]] = defaultdict(list)
    for one in changes:
        together[(one.way.value, one.region, one.code or one.name)].append(one)
    return tuple(_need(together[key], changes) for key in sorted(together, key=str))


def _need(alike: Sequence[HourlyQuota], changes: Mapping[HourlyQuota, Mapping[datetime, int]]) -> QuotaNeed:
    summed: dict[datetime, int] = defaultdict(int)
    for one in alike:
        for at, change in changes[one].items():
            summed[at] += change
    now = most = 0
    for at in sorted(summed):
        now += summed[at]
        most = max(most, now)
    one = alike[0]
    unit = one.unit if one.each else "instance"
    value = one.value if one.each else None
    why = one.trouble if one.each or one.value is None else "what an instance takes of it is not known"
    return QuotaNeed(one.way, one.region, one.code, one.name, unit, most, value, one.used, why)
