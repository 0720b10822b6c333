"""Whether a way fits a need: named rules, each with its sentence, source and date.

Who manages the machines decides which ways exist at all: what runs under SageMaker can only be served by
SageMaker's ways, what runs on instances of one's own only by EC2's. The rest of the rules speak about counts,
durations, types and times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from berth.facts.instance_types import instance_type
from berth.planner.framework.case import Case
from berth.planner.framework.limits import LIMITS
from berth.planner.framework.reason import Reason
from berth.planner.framework.risks import RISKS
from berth.planner.framework.ways import TERMS, Terms
from berth.planner.need import Need
from berth.terms.ways import Way

RULES = (*LIMITS, *RISKS)


@dataclass(frozen=True, slots=True)
class WayVerdict:
    """Whether `way` fits a need; `reasons` holds every rule that spoke, against it first."""

    way: Way
    fits: bool
    reasons: tuple[Reason, ...]
    terms: Terms

    @property
    def why_not(self) -> str:
        """The first sentence against the way, empty when it fits."""
        return next((r.sentence for r in self.reasons if r.against), "")

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "way": self.way.value,
            "fits": self.fits,
            "reasons": [r.to_json() for r in self.reasons],
            "terms": self.terms.to_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> WayVerdict:
        """The verdict that `to_json` wrote."""
        return cls(
            Way(value["way"]),
            bool(value["fits"]),
            tuple(Reason.from_json(r) for r in value["reasons"]),
            Terms.from_json(value["terms"]),
        )


def verdicts(need: Need, now: datetime, blocks_owned: int = 0) -> tuple[WayVerdict, ...]:
    """A verdict on each of the six ways, those that fit first, else in the order of `Way`.

    Where several types would do, a way fits if one of them can be had by it.
    """
    cases = []
    for wanted in need.types:
        alone = need.as_type(wanted)
        cases.append(Case(alone, instance_type(alone.instance_type), now, blocks_owned))
    made = [_kindest([_verdict(way, case) for case in cases]) for way in Way]
    return tuple(sorted(made, key=lambda v: not v.fits))


def _kindest(judged: Sequence[WayVerdict]) -> WayVerdict:
    return next((verdict for verdict in judged if verdict.fits), judged[0])


def _verdict(way: Way, case: Case) -> WayVerdict:
    said = [reason for rule in RULES if (reason := rule(way, case)) is not None]
    against = [r for r in said if r.against]
    return WayVerdict(way, not against, tuple(against + [r for r in said if not r.against]), TERMS[way])
