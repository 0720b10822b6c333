"""Reading the parts of a need: the one that a file's top says, or the tables `[[parts]]`."""

from __future__ import annotations

from collections.abc import Sequence

from berth.facts.instance_types import instance_type
from berth.planner.need_types import At, read_wanted
from berth.planner.part import MAIN, Part
from berth.terms.settings import Section
from berth.terms.ways import Target

_NAME = r"[a-z0-9][a-z0-9-]{0,19}"
_NAME_HINT = "lower-case letters, digits and hyphens, at most 20, a letter or digit first"


def read_planned(at: At, target: Target) -> Part:
    """The sole part of a need without `[[parts]]`."""
    wanted = read_wanted(at, target)
    return Part(MAIN, wanted.types, target, True, wanted.profile, wanted.accelerators)


def read_parts(sections: Sequence[Section], target: Target) -> tuple[Part, ...]:
    """The tables `[[parts]]`; `target` is what runs in a part that does not say."""
    parts: list[Part] = []
    for section in sections:
        part = _part(section, target)
        if part.name in {other.name for other in parts}:
            section.complain("name", f"two parts are called {part.name}")
        parts.append(part)
    return tuple(parts)


def _part(section: Section, target: Target) -> Part:
    name = section.text("name", pattern=_NAME, hint=_NAME_HINT)
    runs = Target(section.choice("target", tuple(Target), target.value))
    held = section.flag("reserve", _is_sold_ahead(section))
    wanted = read_wanted(lambda key: section, runs, held=held)
    return Part(name, wanted.types, runs, held, wanted.profile, wanted.accelerators)


def _is_sold_ahead(section: Section) -> bool:
    """What `reserve` means where it is left out: accelerated types are held ahead, others launched beside."""
    written = section.raw("type", None) or section.raw("instance_type", None)
    first = written[0] if isinstance(written, list) and written else written
    return not isinstance(first, str) or instance_type(first) is not None or "." not in first
