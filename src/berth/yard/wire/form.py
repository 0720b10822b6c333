"""Query requests: `application/x-www-form-urlencoded` text to fields, fields to a tree by their dots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias
from urllib.parse import unquote_to_bytes

FIELDS_MAX = 10_000
# RunInstances, the deepest of the served requests, has 8 dots.
DEPTH_MAX = 24

# A leaf is text; a branch has the next part of the name as key.
Tree: TypeAlias = dict[str, Any]


class FormFault(Exception):
    """A query string or form that cannot be read; the message says why."""


def fields(*texts: str) -> dict[str, str]:
    """The fields of a query string and a form together, by name.

    Raises FormFault for text that is not UTF-8 once decoded, for a name given twice (which of the two was
    meant cannot be known), and for more than `FIELDS_MAX` fields.
    """
    found: dict[str, str] = {}
    for text in texts:
        if not text:
            continue
        if text.count("&") >= FIELDS_MAX:
            raise FormFault(f"There are more than {FIELDS_MAX} parameters")
        for name, value in _pairs(text):
            if name in found:
                raise FormFault(f"The parameter {name[:128]} is given more than once")
            found[name] = value
    return found


def _pairs(text: str) -> Iterable[tuple[str, str]]:
    for pair in text.split("&"):
        if pair:
            name, _, value = pair.partition("=")
            if "%" in pair or "+" in pair:
                yield unescape(name), unescape(value)
            else:
                yield name, value


def unescape(text: str) -> str:
    """Undo form encoding. Raises FormFault when the bytes are not UTF-8."""
    try:
        return unquote_to_bytes(text.replace("+", " ")).decode("utf-8")
    except UnicodeDecodeError:
        raise FormFault("A parameter is not UTF-8") from None


def tree(named: dict[str, str]) -> Tree:
    """Put fields into a tree: `Filter.1.Name=state` becomes `{"Filter": {"1": {"Name": "state"}}}`.

    Raises FormFault for names nested deeper than `DEPTH_MAX` and for a name that is both leaf and branch.
    """
    root: Tree = {}
    for name, value in named.items():
        if "." not in name:
            _plant(root, name, value, name)
            continue
        parts = name.split(".", DEPTH_MAX + 1)
        if len(parts) > DEPTH_MAX:
            raise FormFault(f"A parameter's name is nested deeper than {DEPTH_MAX} levels")
        branch = root
        for part in parts[:-1]:
            branch = _branch(branch, part, name)
        _plant(branch, parts[-1], value, name)
    return root


def _branch(branch: Tree, part: str, name: str) -> Tree:
    found = branch.get(part)
    if found is None:
        found = branch[part] = {}
    elif found.__class__ is not dict:
        raise _both(name)
    return found


def _plant(branch: Tree, part: str, value: str, name: str) -> None:
    if part in branch:
        raise _both(name)
    branch[part] = value


def _both(name: str) -> FormFault:
    return FormFault(f"The parameter {name[:128]} conflicts with another parameter")
