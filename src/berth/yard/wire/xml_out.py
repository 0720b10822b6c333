"""XML answers: members straight to text by the model, one writer a shape, appending strings."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeAlias

from . import scalars
from .json_out import elements_of, members_of, unknown_member, wrong
from .models import Model, Shape

Push: TypeAlias = Callable[[str], None]
# A writer appends one value with its tags to the answer.
Writer: TypeAlias = Callable[[Any, Push], None]
_CONTAINERS: frozenset[type] = frozenset({list, tuple, dict})
Instant: TypeAlias = Callable[[datetime], str]

_UNSAFE = re.compile("[&<>\r]|[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# A bare carriage return would be read back as a line feed (XML 1.0, section 2.11).
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}


def escape(text: str) -> str:
    """Text for an element. Characters that XML 1.0 cannot carry are shown as U+FFFD."""
    if _UNSAFE.search(text) is None:
        return text
    return _UNSAFE.sub(lambda match: _ESCAPES.get(match.group(), "\ufffd"), text)


class XmlWriters:
    """Compiles one writer per shape and tag of a model, on first use. `instant` spells timestamps."""

    def __init__(self, model: Model, instant: Instant) -> None:
        self._model = model
        self._instant = instant
        self._bodies: dict[str, Writer] = {}
        self._makers: dict[str, Callable[[Shape], Writer]] = {
            "structure": self._structure,
            "list": self._list,
            "map": self._map,
        }

    def body(self, shape: Shape) -> Writer:
        """A writer of a structure's, list's or map's content, without tags of its own."""
        found = self._bodies.get(shape.name)
        if found is None:
            # A structure enters the table itself, before its members, because shapes may contain themselves.
            found = self._bodies[shape.name] = self._makers[shape.kind](shape)
        return found

    def element(self, shape: Shape, tag: str) -> Writer:
        """A writer of a whole element of this tag."""
        start, end, empty = f"<{tag}>", f"</{tag}>", f"<{tag}/>"
        if shape.kind == "string":
            return _string(start, end, shape)
        if shape.kind not in self._makers:
            return _scalar(start, end, self._text(shape))
        body = self.body(shape)

        def write(value: Any, push: Push) -> None:
            # An empty list is sent as an empty element: EC2 emits empty sets.
            if not value and value.__class__ in _CONTAINERS:
                push(empty)
                return
            push(start)
            body(value, push)
            push(end)

        return write

    def _structure(self, shape: Shape) -> Writer:
        table: dict[str, Writer] = {}

        def write(value: Any, push: Push) -> None:
            for name, item in members_of(value, shape):
                if item is not None:
                    (table.get(name) or unknown_member(shape, name))(item, push)

        self._bodies[shape.name] = write
        for member in self._model.members(shape):
            table[member.name] = self.element(member.shape, member.wire_name)
        return write

    def _list(self, shape: Shape) -> Writer:
        member = self._model.element(shape)
        write_element = self.element(member.shape, member.wire_name)

        def write(value: Any, push: Push) -> None:
            for item in elements_of(value, shape):
                write_element(item, push)

        return write

    def _map(self, shape: Shape) -> Writer:
        key, value = (self._model.element(shape, role) for role in ("key", "value"))
        write_key, write_value = (
            self.element(key.shape, key.wire_name),
            self.element(value.shape, value.wire_name),
        )

        def write(items: Any, push: Push) -> None:
            for name, item in members_of(items, shape):
                push("<entry>")
                write_key(name, push)
                write_value(item, push)
                push("</entry>")

        return write

    def _text(self, shape: Shape) -> Callable[[Any], str]:
        if shape.kind == "timestamp":
            return _timestamp_text(shape, self._instant)
        return _TEXTS[shape.kind](shape)


def _scalar(start: str, end: str, text: Callable[[Any], str]) -> Writer:
    def write(value: Any, push: Push) -> None:
        push(start + text(value) + end)

    return write


def _string(start: str, end: str, shape: Shape) -> Writer:
    # Most of any answer is strings, so this one does all in one call.
    unsafe = _UNSAFE.search

    def write(value: Any, push: Push) -> None:
        if value.__class__ is not str and not isinstance(value, str):
            raise wrong(shape, value)
        push(start + (value if unsafe(value) is None else escape(value)) + end)

    return write


def _boolean_text(shape: Shape) -> Callable[[Any], str]:
    def text(value: Any) -> str:
        if value is True:
            return "true"
        if value is False:
            return "false"
        raise wrong(shape, value)

    return text


def _integer_text(shape: Shape) -> Callable[[Any], str]:
    def text(value: Any) -> str:
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong(shape, value)
        return str(int(value))

    return text


def _float_text(shape: Shape) -> Callable[[Any], str]:
    def text(value: Any) -> str:
        if value.__class__ is not float and value.__class__ is not int:
            raise wrong(shape, value)
        return repr(scalars.finite(value))

    return text


def _blob_text(shape: Shape) -> Callable[[Any], str]:
    def text(value: Any) -> str:
        if not isinstance(value, bytes):
            raise wrong(shape, value)
        return scalars.base64_of(value)

    return text


def _timestamp_text(shape: Shape, instant: Instant) -> Callable[[Any], str]:
    def text(value: Any) -> str:
        if not isinstance(value, datetime):
            raise wrong(shape, value)
        return instant(value)

    return text


_TEXTS: dict[str, Callable[[Shape], Callable[[Any], str]]] = {
    "boolean": _boolean_text,
    "integer": _integer_text,
    "long": _integer_text,
    "float": _float_text,
    "double": _float_text,
    "blob": _blob_text,
}
