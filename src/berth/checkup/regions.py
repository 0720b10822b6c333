"""The need's Regions: known, enabled for the account, and answering. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from berth.aws.refusals import Kind, Refusal
from berth.checkup.findings import Finding, State, Topic
from berth.facts.regions import region as known_region
from berth.facts.regions import regions_near

OPTED_OUT = "not-opted-in"  # EC2 model, Region$OptInStatus: opt-in-not-required, opted-in, not-opted-in


@dataclass(frozen=True, slots=True)
class RegionLook:
    """What one Region answered. `zones` are its zone ids, None: it did not answer; `trouble` says why."""

    region: str
    zones: frozenset[str] | None
    trouble: Refusal | None = None


def region_findings(
    asked: Sequence[str], statuses: Mapping[str, str] | str, looks: Mapping[str, RegionLook]
) -> list[Finding]:
    """One line a Region. `statuses` is each Region's opt-in status as the account sees it, or why it is not
    known."""
    return [_finding(region, statuses, looks.get(region)) for region in asked]


def _finding(region: str, statuses: Mapping[str, str] | str, look: RegionLook | None) -> Finding:
    listed = statuses.get(region) if not isinstance(statuses, str) else None
    facts = {"region": region, "opt_in": listed}
    if listed == OPTED_OUT:
        return Finding(
            Topic.REGIONS, State.MISSING, region, "not enabled for this account",
            f"aws account enable-region --region-name {region}", facts,
        )  # fmt: skip
    if look is not None and look.zones is not None:
        zones = "zones not read" if not look.zones else f"{len(look.zones)} zone{'s' * (len(look.zones) > 1)}"
        said = f"answers, {zones}" + (f", {listed}" if listed else "")
        if not isinstance(statuses, str) and listed is None and known_region(region) is None:
            said += "; no table of Berth knows it"
        return Finding(Topic.REGIONS, State.OK, region, said, None, facts)
    if listed is None and known_region(region) is None:
        return _unheard_of(region, facts)
    return _silent(region, look, facts)


def _unheard_of(region: str, facts: Mapping[str, object]) -> Finding:
    near = regions_near(region)
    meant = f"; meant is perhaps {' or '.join(near)}" if near else ""
    return Finding(
        Topic.REGIONS, State.MISSING, region, f"no Region of this name is known, and none answers{meant}",
        "write Regions like us-east-1", facts,
    )  # fmt: skip


def _silent(region: str, look: RegionLook | None, facts: Mapping[str, object]) -> Finding:
    trouble = look.trouble if look is not None else None
    if trouble is None:
        return Finding(
            Topic.REGIONS, State.UNKNOWN, region, "interrupted before it answered", "ask again", facts
        )
    known = known_region(region)
    if trouble.kind in {Kind.CREDENTIALS, Kind.NOT_ALLOWED} and known is not None and known.opt_in:
        return Finding(
            Topic.REGIONS, State.MISSING, region, f"refuses these keys, and must be enabled first: {trouble}",
            f"aws account enable-region --region-name {region}", facts,
        )  # fmt: skip
    return Finding(
        Topic.REGIONS, State.UNKNOWN, region, f"did not answer: {trouble}",
        "look at the network between this machine and that Region, then ask again", facts,
    )  # fmt: skip
