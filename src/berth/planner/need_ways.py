"""Reading by which ways a need may be had, and whether all of it must be in one zone."""

from __future__ import annotations

from berth.planner.need_types import At
from berth.terms.ways import Way

_KNOWN = ", ".join(Way)


def read_ways(at: At) -> tuple[Way, ...]:
    """The ways that are allowed: those of `ways`, or all but those of `not_ways`; empty: any.

    Notes a complaint for an unknown way, for both keys at once, and where none is left.
    """
    only, never = _ways(at, "ways"), _ways(at, "not_ways")
    if at("ways").has("ways") and at("not_ways").has("not_ways"):
        at("not_ways").complain("not_ways", "ways says already which are allowed: leave out one of them")
        return ()
    if at("ways").has("ways") and not only:
        at("ways").complain("ways", f"names no way, so nothing could be had: there are {_KNOWN}")
    allowed = tuple(way for way in Way if (way in only if only else way not in never))
    if not allowed:
        at("not_ways").complain("not_ways", "leaves no way at all: nothing could be had")
    return allowed if only or never else ()


def _ways(at: At, key: str) -> tuple[Way, ...]:
    section = at(key)
    made = []
    for word in section.texts(key, ()):
        if word in set(Way):
            made.append(Way(word))
        else:
            section.complain(key, f"{word!r} is no way; there are {_KNOWN}")
    return tuple(made)


def read_same_zone(at: At) -> bool | None:
    """Whether all of it must be in one zone; None where nothing is written."""
    section = at("same_zone")
    return section.flag("same_zone") if section.has("same_zone") else None
