"""JSON answers: members to plain values by the model, then to bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from . import scalars
from .models import Model, Shape

# A writer turns one Python value into what JSON can hold.
Writer: TypeAlias = Callable[[Any], Any]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class NotOfShape(TypeError):
    """An operation's answer that the model does not allow: a fault of the service's own code."""


def encode(document: Mapping[str, Any]) -> bytes:
    """Encode as compact UTF-8. Half of a surrogate pair, which no encoding has, becomes `?`."""
    return _encode(document).encode("utf-8", "replace")


class JsonWriters:
    """Compiles one writer per shape of a model, on first use."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._writers: dict[str, Writer] = {}
        self._makers: dict[str, Callable[[Shape], Writer]] = {
            "structure": self._structure,
            "list": self._list,
            "map": self._map,
            "string": lambda shape: _plain(shape, str),
            "boolean": lambda shape: _plain(shape, bool),
            "integer": lambda shape: _plain(shape, int),
            "long": lambda shape: _plain(shape, int),
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
        table: dict[str, tuple[str, Writer]] = {}

        def write(value: Any) -> Any:
            result = {}
            for name, item in members_of(value, shape):
                if item is not None:
                    wire_name, writer = table.get(name) or unknown_member(shape, name)
                    result[wire_name] = writer(item)
            return result

        self._writers[shape.name] = write
        for member in self._model.members(shape):
            table[member.name] = (member.wire_name, self.writer(member.shape))
        return write

    def _list(self, shape: Shape) -> Writer:
        write_element = self.writer(self._model.element(shape).shape)

        def write(value: Any) -> Any:
            return [write_element(item) for item in elements_of(value, shape)]

        return write

    def _map(self, shape: Shape) -> Writer:
        write_key = self.writer(self._model.element(shape, "key").shape)
        write_value = self.writer(self._model.element(shape, "value").shape)

        def write(value: Any) -> Any:
            return {write_key(key): write_value(item) for key, item in members_of(value, shape)}

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


def _plain(shape: Shape, kind: type) -> Writer:
    def write(value: Any) -> Any:
        if value.__class__ is kind:
            return value
        # Enums of text or number are welcome; a truth value is no number.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise wrong(shape, value)
        return value

    return write


def _float(shape: Shape) -> Writer:
    def write(value: Any) -> Any:
        if value.__class__ is not float and value.__class__ is not int:
            raise wrong(shape, value)
        return value

    return write


def _timestamp(shape: Shape) -> Writer:
    def write(value: Any) -> Any:
        if not isinstance(value, datetime):
            raise wrong(shape, value)
        return scalars.epoch_seconds(value)

    return write


def _blob(shape: Shape) -> Writer:
    def write(value: Any) -> Any:
        if not isinstance(value, bytes):
            raise wrong(shape, value)
        return scalars.base64_of(value)

    return write
