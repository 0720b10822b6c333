"""How likely Spot is to be had, in AWS's own word: the Spot placement score of each Region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from berth.aws.refusals import Kind, Refusal
from berth.sources.reading import every_page, text, whole
from berth.terms.text import plain

_REGIONS_A_CALL = 10  # EC2 API reference, GetSpotPlacementScores, read 2026-11
_PAGE = 1000
_TYPES_ENOUGH = 3
_OPERATION = "GetSpotPlacementScores"


def spot_scores(
    ec2: Any, instance_types: Sequence[str], count: int, regions: Sequence[str], *, at_yard: bool
) -> str:
    """One sentence about the scores of these Regions, or why there are none. Raises nothing.

    A score is 1 to 10, holds for the moment, and says nothing about interruption. AWS scores fewer than three
    types low by rule, so the sentence says that too (EC2 guide, Spot placement score, read 2026-11).
    """
    found: dict[str, int] = {}
    for begin in range(0, len(regions), _REGIONS_A_CALL):
        rows, stopped = every_page(
            ec2.get_spot_placement_scores, "SpotPlacementScores", absent_is_empty=True,
            InstanceTypes=list(instance_types), TargetCapacity=count, TargetCapacityUnitType="units",
            RegionNames=list(regions[begin : begin + _REGIONS_A_CALL]), MaxResults=_PAGE,
        )  # fmt: skip
        if stopped is not None:
            return _not_known(stopped, at_yard=at_yard)
        for row in rows:
            region, score = text(row.get("Region"), 64), whole(row.get("Score"))
            if region is not None and score is not None:
                found[region] = score
    if not found:
        return "Spot placement score: none was told for these Regions"
    best = sorted(found.items(), key=lambda one: (-one[1], one[0]))[:5]
    told = ", ".join(f"{region} {score}" for region, score in best)
    low = "" if len(instance_types) >= _TYPES_ENOUGH else ", fewer than 3 types score low by rule"
    return f"Spot placement score, of 10, for now{low}: {told}"


def _not_known(stopped: Refusal, *, at_yard: bool) -> str:
    if at_yard and stopped.kind is Kind.UNKNOWN_OPERATION:
        return f"Spot placement score: not asked here: this yard does not serve {_OPERATION}"
    return f"Spot placement score: not known ({plain(stopped, 160)})"
