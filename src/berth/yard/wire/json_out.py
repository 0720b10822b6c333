"""JSON answers: members straight to JSON text by the model, without a tree of plain values in between."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from json.encoder import encode_basestring as quoted
from typing import Any, TypeAlias

from . import scalars
from .models import Model, Shape

# A writer turns one Python value into its JSON text.
Writer: TypeAlias = Callable[[Any], str]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class NotOfShape(TypeError):
    """An operation's answer that the model does not allow: a fault of the service's own code."""


def encode(text: str) -> bytes:
    """JSON text as UTF-8. Half of a surrogate pair, which no encoding has, becomes `?`."""
    return text.encode("utf-8", "replace")


def error_text(writers: JsonWriters, code: str, message: str, members: Mapping[str, Any]) -> str:
    """An error: `__type`, the message under its model's name (`Message` or `message`), further members."""
    shape = writers.model.error(code)
    if shape is None:
        return _encode({"__type": code, "message": message, **members})
    named = next((name for name in shape.traits["members"] if name.lower() == "message"), "message")
    return f'{{"__type":{quoted(code)},' + writers.writer(shape)({named: message, **members})[1:]


# What most members are: a value of just this class needs no check and is written by the interpreter itself.
_FAST: dict[str, tuple[type | None, Writer]] = {
    "string": (str, quoted),
    "integer": (int, int.__repr__),
    "long": (int, int.__repr__),
}


class JsonWriters:
    """Compiles one writer per shape of a model, on first use."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._writers: dict[str, Writer] = {}
        self._makers: dict[str, Callable[[Shape], Writer]] = {
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

    def writer(self, shape: Shape) -> Writer:
        found = self._writers.get(shape.name)
        if found is None:
            # A structure enters the table itself, before its members, because shapes may contain themselves.
            found = self._writers[shape.name] = self._makers[shape.kind](shape)
        return found

    def _structure(self, shape: Shape) -> Writer:
        table: dict[str, tuple[str, type | None, Writer, Writer]] = {}

        def write(value: Any) -> str:
            parts = []
            for name, item in members_of(value, shape):
                if item is not None:
                    label, plain, fast, writer = table.get(name) or unknown_member(shape, name)
                    parts.append(label + (fast(item) if item.__class__ is plain else writer(item)))
            return "{" + ",".join(parts) + "}"

        self._writers[shape.name] = write
        for member in self.model.members(shape):
            writer = self.writer(member.shape)
            plain, fast = _FAST.get(member.shape.kind, (None, writer))
            table[member.name] = (f"{quoted(member.wire_name)}:", plain, fast, writer)
        return write

    def _list(self, shape: Shape) -> Writer:
        write_element = self.writer(self.model.element(shape).shape)

        def write(value: Any) -> str:
            return "[" + ",".join([write_element(item) for item in elements_of(value, shape)]) + "]"

        return write

    def _map(self, shape: Shape) -> Writer:
        write_key = self.writer(self.model.element(shape, "key").shape)
        write_value = self.writer(self.model.element(shape, "value").shape)

        def write(value: Any) -> str:
            parts = [f"{write_key(key)}:{write_value(item)}" for key, item in members_of(value, shape)]
            return "{" + ",".join(parts) + "}"

        return write


def members_of(value: Any, shape: Shape) -> Any:
    """The items of a mapping. Raises NotOfShape for anything else."""
    # The exact class first: asking an abstract class costs as much as writing a member.
    if value.__class__ is not dict and not isinstance(value, Mapping):
        raise wrong(shape, value)
    return value.items()


def elements_of(value: Any, shape: Shape) -> Any:
    """A list or tuple itself. Raises NotOfShape for anything else, such as a string."""
    if value.__class__ is not list and not isinstance(value, tuple):
        raise wrong(shape, value)
    return value


def unknown_member(shape: Shape, name: str) -> Any:
    raise NotOfShape(f"{shape.name} has no member {name!r}")


def wrong(shape: Shape, value: object) -> NotOfShape:
    return NotOfShape(f"{shape.name} is a {shape.kind}, not {type(value).__name__}")


def _string(shape: Shape) -> Writer:
    def write(value: Any) -> str:
        if not isinstance(value, str):
            raise wrong(shape, value)
        return quoted(value)

    return write


def _boolean(shape: Shape) -> Writer:
    def write(value: Any) -> str:
        if value is True:
            return "true"
        if value is False:
            return "false"
        raise wrong(shape, value)

    return write


def _integer(shape: Shape) -> Writer:
    def write(value: Any) -> str:
        # Numbers of an enum are welcome; a truth value is no number.
        if not isinstance(value, int) or value is True or value is False:
            raise wrong(shape, value)
        return int.__repr__(value)

    return write


def _float(shape: Shape) -> Writer:
    def write(value: Any) -> str:
        if value.__class__ is not float and value.__class__ is not int:
            raise wrong(shape, value)
        if not math.isfinite(value):
            raise ValueError(f"{shape.name} cannot be {value} in JSON")
        return repr(value)

    return write


def _timestamp(shape: Shape) -> Writer:
    def write(value: Any) -> str:
        if not isinstance(value, datetime):
            raise wrong(shape, value)
        return repr(scalars.epoch_seconds(value))

    return write


def _blob(shape: Shape) -> Writer:
    def write(value: Any) -> str:
        if not isinstance(value, bytes):
            raise wrong(shape, value)
        return f'"{scalars.base64_of(value)}"'

    return write
