"""One rule's word on a way: a sentence with its source and date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PLANS = "SageMaker guide, training plans, read 2026-11"
BLOCKS = "EC2 guide, Capacity Blocks, read 2026-11"
EC2 = "EC2 guide, purchase options, read 2026-11"
ODCRS = "EC2 guide, On-Demand Capacity Reservations, read 2026-11"
ULTRASERVERS = "EC2 and SageMaker guides, UltraServers, read 2026-11"
ARTICLE = "AWS Machine Learning Blog on short-term GPU capacity, 2026-05"
PRACTICE = "field practice, collected 2026-11"
NEED = "the need itself, read with this plan"
MODEL = "botocore model of SageMaker 2017-07-24"


@dataclass(frozen=True, slots=True)
class Reason:
    """One rule's word on a way, in a sentence, with where the rule comes from.

    `against` says that the way does not fit; otherwise the sentence is something to know.
    """

    rule: str
    against: bool
    sentence: str
    source: str

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "rule": self.rule,
            "against": self.against,
            "sentence": self.sentence,
            "source": self.source,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Reason:
        """The reason that `to_json` wrote."""
        return cls(value["rule"], bool(value["against"]), value["sentence"], value["source"])
