"""A need in words: what, how many, how long, when. For the head of a plan, and for the guide."""

from __future__ import annotations

from datetime import datetime, timedelta

from berth.facts.general_types import stand_ins
from berth.facts.instance_types import instance_type
from berth.planner.need import Goal, Need
from berth.planner.part import Part, TypeCount
from berth.planner.phrases import instant_text, length, money_text
from berth.planner.queries import boundary_after, boundary_before
from berth.terms.durations import spoken
from berth.terms.ways import Target, Way

_DAY = timedelta(days=1)
_GOALS = {
    Goal.SHORTEST: "the shortest that does",
    Goal.LONGEST: "the longest that the budget pays",
    Goal.CHEAPEST: "the cheapest for a usable hour",
}


def need_text(need: Need) -> str:
    """What is wanted, for how long, where, and the budget; without the name and the times."""
    planned = need.parts[0]
    return ", ".join(
        (
            what(planned),
            need.target.value if need.target is not Target.INSTANCES else "EC2 instances",
            how_long(need),
            *need.regions,
            *([f"zone {' or '.join(need.zone_ids)}"] if need.zone_ids else []),
            *_tied(need),
            *([f"at most {money_text(need.budget)}"] if need.budget else []),
        )
    )


def _tied(need: Need) -> list[str]:
    """In how many zones, where the need says so or several instances work together; and by which ways."""
    together = need.target is Target.INSTANCES and need.count > 1
    told = ["one zone"] if need.same_zone or (need.same_zone is None and together) else []
    told += ["several zones will do"] if need.same_zone is False else []
    never = [way for way in Way if need.ways and way not in need.ways]
    if never and len(never) <= len(need.ways):
        return [*told, f"not by {' or '.join(never)}"]
    return [*told, f"by {' or '.join(need.ways)} only"] if never else told


def what(part: Part) -> str:
    """`2 x p5en.48xlarge (16 H200)`, with each other type that would do, and the count over time."""
    text = " or ".join(counted(wanted) for wanted in part.types)
    if part.profile:
        first, *later = part.profile
        told = [f"{first.count} at first", *(f"{n.count} from {_after(n.offset)} on" for n in later)]
        text = f"{text}: {', '.join(told)}"
    return text


def counted(wanted: TypeCount) -> str:
    """`2 x p5en.48xlarge (16 H200)`, `2 to 4 x p5.48xlarge (16 to 32 H100)`."""
    kind = instance_type(wanted.instance_type)
    has = kind.accelerator_count if kind else 0
    inside = f" ({_to(wanted.count * has, wanted.wanted * has)} {kind.accelerator})" if kind else ""
    return f"{_to(wanted.count, wanted.wanted)} x {wanted.instance_type}{inside}"


def how_long(need: Need) -> str:
    """`24 h`, `5 to 9 days, the shortest that does`."""
    if not need.is_range:
        return length(need.duration)
    low, high = length(need.duration), length(need.duration_at_most)
    if not (need.duration % _DAY or need.duration_at_most % _DAY):
        low, high = str(need.duration // _DAY), f"{need.duration_at_most // _DAY} days"
    elif low.count(" ") == high.count(" ") == 1 and low.rpartition(" ")[2] == high.rpartition(" ")[2]:
        low = low.rpartition(" ")[0]
    return f"{low} to {high}, {_GOALS[need.goal]}"


def when(need: Need) -> str:
    """The fixed start, or the bounds between which the window may lie."""
    if need.start:
        return f"start fixed {instant_text(need.start, need)}"
    begin = f"from {instant_text(need.earliest_start, need)}" if need.earliest_start else "from now"
    if need.latest_end is None:
        return f"{begin}, start may move"
    return f"{begin} to {instant_text(need.latest_end, need)}"


def readings_told(need: Need, made_at: datetime) -> list[str]:
    """How the words for days were read, with their dates; and when blocks and plans begin by local time."""
    zone = need.zone
    if zone is None:
        return []
    told = [reading.text(zone, made_at.astimezone(zone).year) for reading in need.readings]
    if told and need.start is None and need.earliest_start is not None:
        begin = boundary_after(need.earliest_start).astimezone(zone)
        what = "blocks" if need.target is Target.INSTANCES else "plans"
        or_at_once = "" if need.target is Target.INSTANCES else ", or at once"
        told[0] += f"; {what} start 11:30Z = {begin:%H:%M}{_other_hour(need, begin)}{or_at_once}"
    return [f"{sentence}." for sentence in told]


def _other_hour(need: Need, first: datetime) -> str:
    """What that is by local time at the last start in time, where the clocks change before; else ''."""
    if need.latest_end is None:
        return ""
    last = boundary_before(need.latest_end - need.duration).astimezone(first.tzinfo)
    return (
        ""
        if last <= first or last.utcoffset() == first.utcoffset()
        else f", {last:%H:%M} once the clocks have changed"
    )


def beside_text(part: Part, zones: tuple[str, ...], name: str, *, mixed: bool = False) -> str:
    """What is done about a part beside the planned one of need `name`.

    `zones` are those of the best choice: what is launched beside it belongs there; empty: none is chosen yet.
    `mixed`: the combination holds it.
    """
    if part.reserve and mixed:
        return f"{part.name}: {what(part)}, held with the others by {name}#best"
    if part.reserve:
        return f"{part.name}: {what(part)}, held by itself: berth plan FILE --part {part.name}"
    first, *others = part.types
    others_named = tuple(other.instance_type for other in others) or stand_ins(first.instance_type)
    where = f"zone of the block, {' and '.join(zones)}" if zones else "zone of the block"
    instead = f"else {' or '.join(others_named)}" if others_named else "no other type is known to do"
    return f"{part.name}: {counted(first)}, on-demand, {where}; {instead}"


def _to(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _after(offset: timedelta) -> str:
    return length(offset) if offset else spoken(offset)
