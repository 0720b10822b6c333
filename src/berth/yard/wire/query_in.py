"""Query requests: a tree of texts to members by the model, for EC2's dialect and the plain one of STS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import scalars
from .json_in import label_of
from .models import Member, Model, Shape
from .validate import (
    Check,
    Finding,
    Findings,
    Malformed,
    Path,
    Reader,
    UnknownName,
    check_for,
    fold_elements,
    note_missing,
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one of the two query protocols names things.

    `flat`: lists are `Name.1` (EC2), not `Name.member.1`. `strict`: a parameter that the model lacks is
    refused. `wire_labels`: messages name parameters as sent, not as the model's members.
    """

    flat: bool
    strict: bool
    wire_labels: bool

    def wire_name(self, member: Member) -> str:
        """EC2: queryName, else locationName with an upper-case first letter, else the name; STS: plain."""
        if not self.flat:
            return member.wire_name
        query_name = member.trait("queryName")
        if query_name:
            return str(query_name)
        location_name = member.trait("locationName")
        return str(location_name[0].upper() + location_name[1:]) if location_name else member.name

    def label(self, member: Member) -> str:
        return self.wire_name(member) if self.wire_labels else label_of(member.name)


EC2 = Dialect(flat=True, strict=True, wire_labels=True)
STS = Dialect(flat=False, strict=False, wire_labels=False)

_INDEX_DIGITS_MAX = 6


class QueryReaders:
    """Compiles one reader per shape of a model, on first use."""

    def __init__(self, model: Model, dialect: Dialect) -> None:
        self._model = model
        self._dialect = dialect
        self._readers: dict[str, Reader] = {}
        self._makers: dict[str, Callable[[Shape], Reader]] = {
            "structure": self._structure,
            "list": self._list,
            "map": self._map,
        }

    def reader(self, shape: Shape) -> Reader:
        found = self._readers.get(shape.name)
        if found is None:
            # A structure enters the table itself, before its members, because shapes may contain themselves.
            found = self._readers[shape.name] = self._makers.get(shape.kind, text_reader)(shape)
        return found

    def _structure(self, shape: Shape) -> Reader:
        table: dict[str, tuple[str, str, Reader]] = {}
        required: dict[str, str] = {}
        strict = self._dialect.strict

        def read(node: Any, path: Path, findings: Findings) -> Any:
            if node.__class__ is not dict:
                if node == "":
                    return {}
                raise Malformed(path, "A structure is wanted", node)
            result = {}
            for name, item in node.items():
                known = table.get(name)
                if known is not None:
                    member, label, reader = known
                    result[member] = reader(item, (path, label), findings)
                elif strict:
                    raise UnknownName((path, name[:128]))
            if required and not required.keys() <= result.keys():
                note_missing(findings, path, (required[name] for name in required if name not in result))
            return result

        self._readers[shape.name] = read
        wanted = frozenset(shape.traits.get("required", ()))
        for member in self._model.members(shape):
            label = self._dialect.label(member)
            table[self._dialect.wire_name(member)] = (member.name, label, self.reader(member.shape))
            if member.name in wanted:
                required[member.name] = label
        return read

    def _list(self, shape: Shape) -> Reader:
        element = self._model.element(shape)
        read_element = self.reader(element.shape)
        check = check_for(shape)
        suffix = "" if self._dialect.wire_labels else ".member"
        level = None if self._dialect.flat else element.wire_name
        fold = not self._dialect.wire_labels and element.shape.kind not in {"structure", "list", "map"}

        def read(node: Any, path: Path, findings: Findings) -> Any:
            start = len(findings)
            result = [
                read_element(item, (path, f"{index}{suffix}"), findings)
                for index, item in _numbered(_step(node, level, path), path)
            ]
            if fold:
                fold_elements(findings, start, path, result, element.shape)
            _apply(check, result, path, findings)
            return result

        return read

    def _map(self, shape: Shape) -> Reader:
        key, value = (self._model.element(shape, role) for role in ("key", "value"))
        read_key, read_value = self.reader(key.shape), self.reader(value.shape)
        check = check_for(shape)

        def read(node: Any, path: Path, findings: Findings) -> Any:
            result = {}
            for index, entry in _numbered(_step(node, "entry", path), path):
                where = (path, f"entry.{index}")
                if entry.__class__ is not dict or entry.keys() != {key.wire_name, value.wire_name}:
                    raise Malformed(where, "A key and a value are wanted")
                name = read_key(entry[key.wire_name], where, findings)
                result[name] = read_value(entry[value.wire_name], where, findings)
            _apply(check, result, path, findings)
            return result

        return read


def _step(node: Any, level: str | None, path: Path) -> Any:
    """Go down the level that the plain dialect puts between a list's name and its numbers."""
    if level is None or node == "":
        return node
    if node.__class__ is not dict or node.keys() != {level}:
        raise Malformed(path, f"A list is wanted, as {level}.1, {level}.2 and so on")
    return node[level]


def _numbered(node: Any, path: Path) -> list[tuple[int, Any]]:
    """The children in order of their numbers; gaps are allowed. The bare name alone is an empty list."""
    if node == "":
        return []
    if node.__class__ is not dict:
        raise Malformed(path, "A list is wanted, numbered from 1", node)
    numbered = []
    for name, item in node.items():
        if not _is_number(name):
            raise Malformed((path, name[:128]), "A list is numbered from 1")
        numbered.append((int(name), item))
    numbered.sort(key=lambda pair: pair[0])
    return numbered


def _is_number(name: str) -> bool:
    # One spelling a number: "01" beside "1" would be two values for one place.
    return name.isascii() and name.isdigit() and name[0] != "0" and len(name) <= _INDEX_DIGITS_MAX


def _apply(check: Check | None, value: Any, path: Path, findings: Findings, sensitive: bool = False) -> None:
    if check is not None:
        findings.extend(Finding(path, value, rule, sensitive) for rule in check(value))


def text_reader(shape: Shape) -> Reader:
    """A reader of a single value from its text, as forms, headers and paths carry it."""
    convert = _CONVERTERS[shape.kind](shape.kind)
    check = check_for(shape)
    sensitive = shape.sensitive or shape.kind == "blob"

    def read(text: Any, path: Path, findings: Findings) -> Any:
        if text.__class__ is not str:
            raise Malformed(path, "A single value is wanted")
        if not text.isprintable() and scalars.NOT_XML.search(text):
            raise Malformed(path, "The value has characters that cannot be sent in XML")
        try:
            value = convert(text)
        except ValueError as fault:
            raise Malformed(path, f"The value is {fault}", None if sensitive else text) from None
        if check is not None and (broken := check(value)):
            findings.extend(Finding(path, value, rule, sensitive) for rule in broken)
        return value

    return read


_CONVERTERS: dict[str, Callable[[str], Callable[[str], Any]]] = {
    "string": lambda _: str,
    "boolean": lambda _: scalars.boolean_of,
    "integer": lambda kind: lambda text: scalars.integer_of(text, kind),
    "long": lambda kind: lambda text: scalars.integer_of(text, kind),
    "float": lambda _: scalars.float_of,
    "double": lambda _: scalars.float_of,
    "timestamp": lambda _: scalars.instant_of,
    "blob": lambda _: scalars.bytes_of,
}
