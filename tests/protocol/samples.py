"""Values for every shape of a model: text that matches its pattern, numbers in range, one of each member.

Deterministic, and independent of the code under test: it walks botocore's own shapes and Python's own parse
of a pattern.
"""

from __future__ import annotations

import re
import re._constants as op  # the parse tree of `re`: the one place that knows how a pattern is built
import re._parser as parser
from datetime import UTC, datetime
from functools import cache
from typing import Any

INSTANT = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
DEPTH_MAX = 6

# Patterns of which nothing can be made by walking: what stands for them.
HAND_MADE = {
    r"((25[0-5]|(2[0-4]|1\d|[1-9]|)\d)\.?\b){4}": "10.0.0.1",
    r"ip-((25[0-5]|(2[0-4]|1\d|[1-9]|)\d)-?\b){4}\..*": "ip-10-0-0-1.host",
    r"(?=.{1,1024}$)(https)://([^/]+)/(.+)": "https://host.example/path",
    r"^(?=.{20,2048}$)arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[a-zA-Z0-9/_+=.@-]+": (
        "arn:aws:secretsmanager:us-east-1:123456789012:secret:name"
    ),
}


@cache
def text_for(pattern: str, least: int = 0, most: int | None = None) -> str:
    """A string that the pattern should accept, of a length from `least` to `most`."""
    if pattern in HAND_MADE:
        return HAND_MADE[pattern]
    tree = parser.parse(_for_re(pattern))
    for repeats in range(2100):
        for text in {_walk(tree, repeats, {}), _walk(tree, repeats, {}, widest=True)}:
            if least <= len(text) and (most is None or len(text) <= most) and text:
                return text
    raise AssertionError(f"no text for {pattern!r} of length {least} to {most}")


def _for_re(pattern: str) -> str:
    """The pattern with what `re` lacks replaced by a part of it that `re` has."""
    pattern = (
        re.sub(r"\\p\{\w+\}", "a-z", pattern) if "[" in pattern else pattern.replace(r"\p{ASCII}", "[a-z]")
    )
    pattern = pattern.replace(r"\uD800\uDC00-\uDBFF\uDFFF", "").replace(r"\z", r"\Z")
    pattern = re.sub(r"\$\{\d+,\d+\}", "", pattern)
    pattern = pattern.replace("group/^.", "group/.")  # a misprint in EC2's model: `^` in the middle
    return re.sub(r"\(\?[=!](?:[^()]|\([^()]*\))*\)|\(\?<![^()]*\)", "", pattern)


def _walk(tree: Any, repeats: int, groups: dict[int, str], widest: bool = False) -> str:
    out = []
    for code, argument in tree:
        if code is op.LITERAL:
            out.append(chr(argument))
        elif code is op.NOT_LITERAL:
            out.append("a" if argument != ord("a") else "b")
        elif code is op.ANY:
            out.append("a")
        elif code is op.IN:
            out.append(_one_of(argument))
        elif code in (op.MAX_REPEAT, op.MIN_REPEAT):
            low, high, inner = argument
            out.append(_walk(inner, repeats, groups, widest) * min(max(low, repeats), int(high)))
        elif code is op.BRANCH:
            branches = argument[1]
            chosen = branches[-1 if widest else 0]
            out.append(_walk(chosen, repeats, groups, widest))
        elif code is op.SUBPATTERN:
            out.append(_walk(argument[3], repeats, groups, widest))
        elif code is not op.AT:
            raise AssertionError(f"cannot walk {code}")
    return "".join(out)


_CATEGORY = {
    op.CATEGORY_DIGIT: "1",
    op.CATEGORY_WORD: "a",
    op.CATEGORY_SPACE: " ",
    op.CATEGORY_NOT_SPACE: "a",
}


def _one_of(choices: Any) -> str:
    negated = choices[0][0] is op.NEGATE
    if negated:
        excluded = _members(choices[1:])
        return next(char for char in "aA1-_" if char not in excluded)
    return min(_members(choices), key=lambda char: (not char.isalnum(), char))


def _members(choices: Any) -> set[str]:
    found: set[str] = set()
    for code, argument in choices:
        if code is op.LITERAL:
            found.add(chr(argument))
        elif code is op.RANGE:
            found.update(
                chr(number) for number in range(argument[0], min(argument[1], argument[0] + 100) + 1)
            )
        elif code is op.CATEGORY:
            found.add(_CATEGORY[argument])
    return found


class Samples:
    """One value per shape. `blank_ok`: whether an empty list or structure survives this protocol."""

    def __init__(self, *, blank_ok: bool) -> None:
        self._blank_ok = blank_ok

    def value(self, shape: Any, path: tuple[str, ...] = ()) -> Any:
        """A value, or None where a shape that contains itself has been followed far enough."""
        if path.count(shape.name) > 1 or len(path) > 2 * DEPTH_MAX + 4:
            return None
        maker = getattr(self, "_" + shape.type_name, self._number)
        return maker(shape, (*path, shape.name))

    def _structure(self, shape: Any, path: tuple[str, ...]) -> Any:
        names = list(shape.members)
        if shape.metadata.get("union"):
            names = names[:1]
        values = {name: self.value(shape.members[name], path) for name in names}
        kept = {name: value for name, value in values.items() if value is not None}
        if any(name not in kept for name in shape.metadata.get("required", ())):
            return None
        return kept if kept or self._blank_ok else None

    def _list(self, shape: Any, path: tuple[str, ...]) -> Any:
        item = self.value(shape.member, path)
        count = max(2 if shape.metadata.get("max", 2) > 1 else 1, shape.metadata.get("min", 0))
        if item is None:
            return [] if self._blank_ok and not shape.metadata.get("min") else None
        return [item] * count

    def _map(self, shape: Any, path: tuple[str, ...]) -> Any:
        item = self.value(shape.value, path)
        return None if item is None else {self.value(shape.key, path): item}

    def _string(self, shape: Any, _: tuple[str, ...]) -> str:
        metadata = shape.metadata
        if metadata.get("enum"):
            return str(metadata["enum"][-1])
        least = metadata.get("min", 0)
        if "pattern" in metadata:
            return text_for(metadata["pattern"], least, metadata.get("max"))
        text = 'a <b> & "c" ü'
        text = text * (least // len(text) + 1)
        return text[: metadata["max"]] if "max" in metadata else text

    def _number(self, shape: Any, _: tuple[str, ...]) -> Any:
        number = max(shape.metadata.get("min", 3), min(3, shape.metadata.get("max", 3)))
        return float(number) if shape.type_name in {"float", "double"} else int(number)

    def _boolean(self, *_: Any) -> bool:
        return True

    def _timestamp(self, *_: Any) -> datetime:
        return INSTANT

    def _blob(self, shape: Any, _: tuple[str, ...]) -> bytes:
        return b"\x00\xff blob"
