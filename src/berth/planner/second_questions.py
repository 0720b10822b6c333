"""What to ask once more after all was heard: several blocks are of use only where their windows meet.

A search answers with a few windows, the earliest first. Where 64 machines are free from January on, and 36
from December on, the first answers have no start in common; that says nothing about 36 in January.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from berth.planner.framework.limits import BLOCK_COUNT_MAX
from berth.planner.need import Need
from berth.planner.offers import PlaceAnswer, Query
from berth.planner.queries import ROOM
from berth.terms.ways import Way

_Kind = tuple[str, str, int]


def second_questions(need: Need, answers: Iterable[PlaceAnswer]) -> tuple[Query, ...]:
    """The sizes of several blocks again, from where the size that comes last is to be had.

    Empty where one block is enough, where the start is fixed (then all were asked for the same time), where a
    size is not on sale at all, and where the sizes have a start in common already.
    """
    if need.start is not None or not any(t.count > BLOCK_COUNT_MAX for t in need.types):
        return ()
    found: dict[_Kind, dict[Query, tuple[datetime, ...]]] = defaultdict(dict)
    for answer in answers:
        asked = answer.question
        if asked is None or answer.way is not Way.CAPACITY_BLOCK or not answer.is_complete:
            continue
        starts = tuple(sorted({offer.paid_window.start for offer in answer.offers}))
        found[asked.region, asked.instance_type, asked.duration_hours][asked] = starts
    return tuple(query for sizes in found.values() for query in _again(sizes))


def _again(sizes: Mapping[Query, Sequence[datetime]]) -> tuple[Query, ...]:
    if len(sizes) < 2 or not all(sizes.values()) or set.intersection(*map(set, sizes.values())):
        return ()
    last = max(starts[0] for starts in sizes.values())
    behind = [query for query, starts in sizes.items() if last not in starts]
    return tuple(replace(query, start_after=last - ROOM) for query in behind)
