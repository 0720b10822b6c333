"""What a client reads of answers, and answers with a member left out, unknown, or never heard of."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

import botocore.session
from botocore.model import Shape

from berth.yard.wire.http import Response

STRANGE = "never-heard-of"
_SERVICES = ("sagemaker", "ec2")
_NAMESPACE = re.compile(r"\{.*\}")


class How(StrEnum):
    """What is different about an answer."""

    ABSENT = "absent"  # the member is left out, wherever it stands
    UNKNOWN = "unknown"  # it holds a value that no model knows
    ADDED = "added"  # every structure has one member more


@dataclass(frozen=True, slots=True)
class Change:
    """One difference in the answers of one operation. `wire` is the member's name on the wire."""

    operation: str
    how: How
    member: str = ""
    wire: str = ""

    def __call__(self, operation: str, response: Response) -> Response:
        """The answer, changed; those of other operations and refusals stay as they are."""
        if operation != self.operation or response.status != 200 or not response.body:
            return response
        changed = self._xml if response.body.lstrip().startswith(b"<") else self._json
        return Response(response.status, response.headers, changed(response.body))

    def __str__(self) -> str:
        return f"{self.operation}: {self.member or 'a new member'} {self.how}"

    def _json(self, body: bytes) -> bytes:
        return json.dumps(self._walked(json.loads(body))).encode()

    def _walked(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._walked(one) for one in value]
        if not isinstance(value, dict):
            return value
        made = {name: self._walked(one) for name, one in value.items()}
        if self.how is How.ADDED:
            return {**made, "NeverHeardOf": {"Deep": [1, STRANGE]}}
        if self.how is How.ABSENT:
            made.pop(self.wire, None)
        elif isinstance(made.get(self.wire), str):
            made[self.wire] = STRANGE
        return made

    def _xml(self, body: bytes) -> bytes:
        root = ET.fromstring(body)
        for parent in list(root.iter()):
            if self.how is How.ADDED and len(parent):
                ET.SubElement(ET.SubElement(parent, "neverHeardOf"), "item").text = STRANGE
                continue
            for child in [one for one in parent if _NAMESPACE.sub("", one.tag) == self.wire]:
                if self.how is How.ABSENT:
                    parent.remove(child)
                else:
                    child.text = STRANGE
        return bytes(ET.tostring(root))


class Watched(dict[str, Any]):
    """A structure of an answer that remembers which of its members were asked for."""

    def __init__(self, value: dict[str, Any], heard: Callable[[str], None]) -> None:
        super().__init__(value)
        self._heard = heard

    def get(self, name: str, default: Any = None) -> Any:
        """As dict's, remembered."""
        self._heard(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> Any:
        self._heard(name)
        return super().__getitem__(name)


class Reading:
    """What was read of the answers of which operation. Of the outermost structure: all that was there."""

    def __init__(self) -> None:
        self.members: dict[str, set[str]] = {}

    def __call__(self, operation: str, answer: dict[str, Any]) -> None:
        """Hear of one answer; its structures are watched from now on."""
        if "Error" in answer:
            return
        read = self.members.setdefault(operation, set())
        read.update(name for name in answer if name != "ResponseMetadata")
        for name, value in answer.items():
            answer[name] = self._watched(value, read.add)

    def _watched(self, value: Any, heard: Callable[[str], None]) -> Any:
        if isinstance(value, list):
            return [self._watched(one, heard) for one in value]
        if not isinstance(value, dict):
            return value
        return Watched({name: self._watched(one, heard) for name, one in value.items()}, heard)

    def changes(self) -> Iterator[Change]:
        """Every difference that could matter: each member that was read, absent and (enums) unknown."""
        for operation, members in sorted(self.members.items()):
            yield Change(operation, How.ADDED)
            known = _members(operation)
            for member in sorted(members & known.keys()):
                shape = known[member]
                wire = str(shape.serialization.get("name", member))
                yield Change(operation, How.ABSENT, member, wire)
                if getattr(shape, "enum", None):
                    yield Change(operation, How.UNKNOWN, member, wire)


@cache
def _members(operation: str) -> dict[str, Shape]:
    """The members of the operation's answer by name, at any depth, from botocore's model."""
    session = botocore.session.Session()
    for service in _SERVICES:
        model = session.get_service_model(service)
        if operation in model.operation_names:
            found: dict[str, Shape] = {}
            output = model.operation_model(operation).output_shape
            if output is not None:
                _collect(output, found, set())
            return found
    raise KeyError(operation)


def _collect(shape: Shape, found: dict[str, Shape], seen: set[str]) -> None:
    if shape.name in seen:
        return
    seen.add(shape.name)
    if shape.type_name == "list":
        _collect(shape.member, found, seen)  # type: ignore[attr-defined]
    elif shape.type_name == "structure":
        for name, member in shape.members.items():  # type: ignore[attr-defined]
            found.setdefault(name, member)
            _collect(member, found, seen)
