"""JSON requests: bytes to plain values under bounds, then plain values to members by the model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

from . import scalars
from .models import Model, Shape
from .validate import (
    Check,
    Finding,
    Findings,
    Malformed,
    Path,
    Reader,
    check_for,
    fold_elements,
    note_missing,
)

# The deepest nesting of any operation of the served models is below 20.
DEPTH_MAX = 64
# Separators in one document, an upper bound on its values: it bounds the memory that decoding takes.
VALUES_MAX = 400_000

_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\Z)|[\[\]{}]', re.DOTALL)


class JsonFault(Exception):
    """A body that is not the JSON document it should be; the message says why."""


def decode(body: bytes) -> dict[str, Any]:
    """Decode a body that must hold one JSON object; an empty body is an empty object.

    Of a name given twice the last counts, as with AWS. Raises JsonFault for anything else: no UTF-8, no
    JSON, NaN or Infinity, nesting beyond `DEPTH_MAX`, more than `VALUES_MAX` values, numbers of thousands
    of digits.
    """
    if not body:
        return {}
    if _too_deep(body):
        raise JsonFault(f"The document is nested deeper than {DEPTH_MAX} levels")
    if body.count(b",") > VALUES_MAX:
        raise JsonFault(f"The document has more than {VALUES_MAX} values")
    try:
        document = _decode(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise JsonFault("The document is not UTF-8") from None
    except (ValueError, RecursionError) as fault:
        raise JsonFault(f"The document is not JSON: {_brief(fault)}") from None
    if document.__class__ is not dict:
        raise JsonFault("The document is not a JSON object")
    return document


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode


def _brief(fault: Exception) -> str:
    # Python's own message repeats the offending number's size, never the document.
    return str(fault).split("\n", 1)[0][:200]


def _too_deep(body: bytes) -> bool:
    if body.count(b"[") + body.count(b"{") <= DEPTH_MAX:
        return False
    depth = 0
    for token in _BRACKETS.finditer(body):
        text = token.group()
        if text in (b"[", b"{"):
            depth += 1
            if depth > DEPTH_MAX:
                return True
        elif text in (b"]", b"}"):
            depth -= 1
    return False


def label_of(name: str) -> str:
    """A member's name as AWS's validation messages write it: `TrainingPlanName` is `trainingPlanName`."""
    return name[0].lower() + name[1:]


class JsonReaders:
    """Compiles one reader per shape of a model, on first use."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._readers: dict[str, Reader] = {}
        self._makers: dict[str, Callable[[Shape], Reader]] = {
            "structure": self._structure,
            "list": self._list,
            "map": self._map,
            "string": _string,
            "boolean": _boolean,
            "integer": _integer,
            "long": _integer,
            "float": _float,
            "double": _float,
            "timestamp": _timestamp,
            "blob": _blob,
        }

    def reader(self, shape: Shape) -> Reader:
        found = self._readers.get(shape.name)
        if found is None:
            # A structure enters the table itself, before its members, because shapes may contain themselves.
            found = self._readers[shape.name] = self._makers[shape.kind](shape)
        return found

    def _structure(self, shape: Shape) -> Reader:
        table: dict[str, tuple[str, str, Reader]] = {}
        required: dict[str, str] = {name: label_of(name) for name in shape.traits.get("required", ())}
        union = bool(shape.traits.get("union"))

        def read(value: Any, path: Path, findings: Findings) -> Any:
            if value.__class__ is not dict:
                raise Malformed(path, "Unexpected field type: a structure is wanted", value)
            result = {}
            for name, item in value.items():
                known = table.get(name)
                # As with AWS, a name that the model lacks is ignored, and null means absent.
                if known is not None and item is not None:
                    member, label, reader = known
                    result[member] = reader(item, (path, label), findings)
            if required and not required.keys() <= result.keys():
                note_missing(findings, path, (required[name] for name in required if name not in result))
            if union and len(result) != 1:
                findings.append(Finding(path, sorted(result), "Member must have exactly one field set"))
            return result

        self._readers[shape.name] = read
        for member in self._model.members(shape):
            table[member.wire_name] = (member.name, label_of(member.name), self.reader(member.shape))
        return read

    def _list(self, shape: Shape) -> Reader:
        element = self._model.element(shape).shape
        read_element = self.reader(element)
        check = check_for(shape)
        scalar = element.kind not in {"structure", "list", "map"}

        def read(value: Any, path: Path, findings: Findings) -> Any:
            if value.__class__ is not list:
                raise Malformed(path, "Unexpected field type: a list is wanted", value)
            start = len(findings)
            result = []
            for index, item in enumerate(value, 1):
                where = (path, f"{index}.member")
                if item is None:
                    raise Malformed(where, "null is no element of a list")
                result.append(read_element(item, where, findings))
            if scalar:
                fold_elements(findings, start, path, value, element)
            _apply(check, result, path, findings)
            return result

        return read

    def _map(self, shape: Shape) -> Reader:
        read_key = self.reader(self._model.element(shape, "key").shape)
        read_value = self.reader(self._model.element(shape, "value").shape)
        check = check_for(shape)

        def read(value: Any, path: Path, findings: Findings) -> Any:
            if value.__class__ is not dict:
                raise Malformed(path, "Unexpected field type: a map is wanted", value)
            result = {}
            for key, item in value.items():
                where = (path, f"{key[:64]}.member")
                if item is None:
                    raise Malformed(where, "null is no value of a map")
                result[read_key(key, where, findings)] = read_value(item, where, findings)
            _apply(check, result, path, findings)
            return result

        return read


def _apply(check: Check | None, value: Any, path: Path, findings: Findings, sensitive: bool = False) -> None:
    if check is not None:
        findings.extend(Finding(path, value, rule, sensitive) for rule in check(value))


def _string(shape: Shape) -> Reader:
    check = check_for(shape)
    sensitive = shape.sensitive

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value.__class__ is not str:
            raise Malformed(path, f"{_kind_word(value)} can not be converted to a String", value)
        if not (value.isascii() or scalars.is_text(value)):
            raise Malformed(path, "Half of a surrogate pair is no text")
        if check is not None and (broken := check(value)):
            findings.extend(Finding(path, value, rule, sensitive) for rule in broken)
        return value

    return read


def _boolean(_: Shape) -> Reader:
    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value.__class__ is not bool:
            raise Malformed(path, f"{_kind_word(value)} can not be converted to a Boolean", value)
        return value

    return read


def _integer(shape: Shape) -> Reader:
    check, kind = check_for(shape), shape.kind

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value.__class__ is float and value.is_integer():
            value = int(value)
        if value.__class__ is not int:
            raise Malformed(path, f"{_kind_word(value)} can not be converted to {_article(kind)}", value)
        try:
            scalars.ranged(value, kind)
        except ValueError as fault:
            raise Malformed(path, f"The number is {fault}") from None
        _apply(check, value, path, findings)
        return value

    return read


def _float(shape: Shape) -> Reader:
    check, kind = check_for(shape), shape.kind

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value.__class__ is not float and value.__class__ is not int:
            raise Malformed(path, f"{_kind_word(value)} can not be converted to {_article(kind)}", value)
        try:
            number = scalars.finite(float(value))
        except (ValueError, OverflowError):
            raise Malformed(path, "The number is not finite") from None
        _apply(check, number, path, findings)
        return number

    return read


def _timestamp(_: Shape) -> Reader:
    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value.__class__ is not float and value.__class__ is not int:
            raise Malformed(path, f"{_kind_word(value)} can not be converted to a Timestamp", value)
        try:
            return scalars.instant_of_epoch(value)
        except (ValueError, OverflowError) as fault:
            raise Malformed(path, f"The number of seconds is {fault}") from None

    return read


def _blob(shape: Shape) -> Reader:
    check = check_for(shape)

    def read(value: Any, path: Path, findings: Findings) -> Any:
        if value.__class__ is not str:
            raise Malformed(path, f"{_kind_word(value)} can not be converted to a Blob", value)
        try:
            data = scalars.bytes_of(value)
        except ValueError as fault:
            raise Malformed(path, f"The blob is {fault}") from None
        # A refused blob is not repeated in the message: it may be long, and it is not text.
        _apply(check, data, path, findings, sensitive=True)
        return data

    return read


def _kind_word(value: Any) -> str:
    if value is True or value is False:
        return "TRUE_VALUE" if value else "FALSE_VALUE"
    if isinstance(value, float):
        return "DECIMAL_VALUE"
    if isinstance(value, int):
        return "NUMBER_VALUE"
    return "STRING_VALUE" if isinstance(value, str) else "A structure or list"


def _article(kind: str) -> str:
    return {"integer": "an Integer", "long": "a Long", "float": "a Float", "double": "a Double"}[kind]
