"""What somebody pays less than the list says: an enterprise discount, and rates of a Savings Plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from berth.planner.offers import money_from_json, money_json
from berth.terms.money import Money


@dataclass(frozen=True, slots=True)
class OwnRates:
    """Rates as agreed with AWS; nothing in here is looked up, it is what the need says.

    `edp_percent` is the percentage off list prices (over 0, under 100), None when there is none. `savings`
    holds, by EC2's name of a type, what an instance hour costs under a Savings Plan; a type not in it
    has no such rate.
    """

    edp_percent: Decimal | None = None
    savings: tuple[tuple[str, Money], ...] = ()

    def savings_rate(self, instance_type: str) -> Money | None:
        """What an instance hour of `instance_type` costs under the Savings Plan; None when it has no rate."""
        return dict(self.savings).get(instance_type.removeprefix("ml."))

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "edp_percent": None if self.edp_percent is None else str(self.edp_percent),
            "savings": {name: money_json(hourly) for name, hourly in self.savings},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> OwnRates:
        """The rates that `to_json` wrote."""
        percent = value["edp_percent"]
        hourly = {name: money_from_json(money) for name, money in value["savings"].items()}
        return cls(
            None if percent is None else Decimal(percent),
            tuple(sorted((name, money) for name, money in hourly.items() if money is not None)),
        )
