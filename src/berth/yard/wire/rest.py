"""REST with JSON: the operation in method and path, members in path, headers and body. SageMaker Runtime."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from ..errors import ServiceError
from . import eventstream, json_in, json_out
from .base import PerOperation, ServiceWire, content_encoding_of, too_long
from .http import Request, Response
from .json_in import JsonReaders, label_of
from .json_out import JsonWriters, NotOfShape
from .models import Member, Model, Shape
from .patterns import PatternTimeout
from .query_in import text_reader
from .validate import (
    Check,
    Finding,
    Findings,
    Malformed,
    Reader,
    check_for,
    note_missing,
    spell,
    summarise,
)

_JSON = "application/json"
_CONTROL = re.compile("[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class _Input:
    """How one operation's request is read. Headers and labels: (wire name, member, label, reader)."""

    headers: tuple[tuple[str, str, str, Reader], ...]
    labels: tuple[tuple[str, str, str, Reader], ...]
    payload: Member | None
    payload_check: Check | None
    body: Reader | None
    required: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Output:
    """How one operation's answer is written."""

    status: int
    headers: Mapping[str, tuple[str, Shape]]
    payload: Member | None
    body: json_out.Writer


class RestJsonWire(ServiceWire):
    """AWS's rest-json, as far as SageMaker Runtime uses it: labels, headers, blob and stream payloads."""

    # The longest blob of the model, 6,291,456 bytes, and nothing around it.
    body_limit = 6_291_456

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._readers = JsonReaders(model)
        self._writers = JsonWriters(model)
        self._routes = [_route(name, operation["http"]) for name, operation in model.operations.items()]
        self._input = PerOperation(self._make_input)
        self._output = PerOperation(self._make_output)

    def _make_input(self, operation: str) -> _Input:
        shape = self.model.input(operation)
        if shape is None:
            return _Input((), (), None, None, None, ())
        located = {"header": [], "uri": [], None: []}  # type: dict[str | None, list[Member]]
        for member in self.model.members(shape):
            located[member.traits.get("location")].append(member)
        payload = self._payload(shape)
        return _Input(
            headers=tuple(_text_member(member, member.wire_name.lower()) for member in located["header"]),
            labels=tuple(_text_member(member, member.wire_name) for member in located["uri"]),
            payload=payload,
            payload_check=None if payload is None else check_for(payload.shape),
            body=self._readers.reader(shape) if payload is None and located[None] else None,
            required=tuple((name, label_of(name)) for name in shape.traits.get("required", ())),
        )

    def _make_output(self, operation: str) -> _Output:
        status = int(self.model.operations[operation]["http"].get("responseCode", 200))
        shape = self.model.output(operation)
        if shape is None:
            return _Output(status, {}, None, lambda _: "{}")
        headers = {
            member.name: (member.wire_name, member.shape)
            for member in self.model.members(shape)
            if member.traits.get("location") == "header"
        }
        return _Output(status, headers, self._payload(shape), self._writers.writer(shape))

    def _payload(self, shape: Shape) -> Member | None:
        name = shape.traits.get("payload")
        return None if name is None else self.model.member(name, shape.traits["members"][name])

    def operation_name(self, request: Request) -> str:
        for name, method, path in self._routes:
            if method == request.method and path.fullmatch(request.path):
                return name
        raise self.no_such_operation(request.path)

    def no_such_operation(self, operation: str) -> ServiceError:
        message = "The requested operation is not supported in the called region."
        return ServiceError("UnknownOperationException", message, status=404)

    def parse(self, operation: str, request: Request) -> dict[str, Any]:
        if len(request.body) > self.body_limit:
            raise ServiceError("ValidationError", too_long(self.body_limit), status=413)
        coding = content_encoding_of(request)
        if coding is not None:
            raise ServiceError(
                "ValidationError", f"The content encoding {coding} is not supported", status=415
            )
        findings: Findings = []
        try:
            members = self._members(self._input(operation), operation, request, findings)
        except (Malformed, json_in.JsonFault) as fault:
            path = fault.path if isinstance(fault, Malformed) else None
            at = f" (at {spell(path)})" if path else ""
            raise ServiceError("ValidationError", f"{fault}{at}") from None
        except PatternTimeout:
            raise ServiceError(
                "ValidationError", "A value takes too long to compare with its pattern"
            ) from None
        if findings:
            raise ServiceError("ValidationError", summarise(findings))
        return members

    def _members(self, how: _Input, operation: str, request: Request, findings: Findings) -> dict[str, Any]:
        members: dict[str, Any] = {}
        labels = self._labels(operation, request.path)
        for source, wanted in ((labels, how.labels), (request.headers, how.headers)):
            for wire_name, name, label, reader in wanted:
                text = source.get(wire_name)
                if text is not None:
                    members[name] = reader(text, (None, label), findings)
        if how.payload is not None:
            self._read_payload(how, request.body, members, findings)
        elif how.body is not None:
            members.update(how.body(json_in.decode(request.body), None, findings))
        note_missing(findings, None, (label for name, label in how.required if name not in members))
        return members

    def _read_payload(self, how: _Input, body: bytes, members: dict[str, Any], findings: Findings) -> None:
        assert how.payload is not None
        name = how.payload.name
        if not body and name not in dict(how.required):
            return
        members[name] = body
        if how.payload_check is not None:
            broken = how.payload_check(body)
            findings.extend(Finding((None, label_of(name)), b"", rule, sensitive=True) for rule in broken)

    def _labels(self, operation: str, path: str) -> dict[str, str]:
        for name, _, pattern in self._routes:
            if name == operation and (match := pattern.fullmatch(path)):
                return {label: _decode_label(text, label) for label, text in match.groupdict().items()}
        return {}

    def serialise(self, operation: str, result: Mapping[str, Any], request_id: str) -> Response:
        how = self._output(operation)
        headers = {"content-type": _JSON, "x-amzn-RequestId": request_id}
        rest: dict[str, Any] = {}
        for name, value in result.items():
            located = how.headers.get(name)
            if located is None:
                rest[name] = value
            elif value is not None:
                wire_name, shape = located
                # One spelling a header: the answer's own content type replaces the default one.
                headers[wire_name.lower()] = _header_text(value, shape)
        if how.payload is None:
            return Response(how.status, headers, json_out.encode(how.body(rest)))
        return Response(how.status, headers, self._write_payload(how.payload, rest, headers))

    def _write_payload(self, payload: Member, rest: dict[str, Any], headers: dict[str, str]) -> bytes:
        value = rest.pop(payload.name, None)
        if rest:
            raise NotOfShape(f"members that the answer has no place for: {', '.join(sorted(rest))}")
        if payload.shape.traits.get("eventstream"):
            headers["content-type"] = eventstream.CONTENT_TYPE
            return b"".join(self._event(payload.shape, event) for event in value or ())
        if value is not None and not isinstance(value, bytes):
            raise json_out.wrong(payload.shape, value)
        return value or b""

    def _event(self, stream: Shape, event: Mapping[str, Any]) -> bytes:
        """One event, given as a mapping of its one name to its members."""
        ((name, content),) = event.items()
        member = self.model.member(name, stream.traits["members"][name])
        if member.shape.traits.get("exception"):
            headers = {":message-type": "exception", ":exception-type": name, ":content-type": _JSON}
            return eventstream.message(headers, json_out.encode(self._writers.writer(member.shape)(content)))
        headers = {":message-type": "event", ":event-type": name, ":content-type": "application/octet-stream"}
        raw = next(part.name for part in self.model.members(member.shape) if part.traits.get("eventpayload"))
        return eventstream.message(headers, content.get(raw, b""))

    def error(self, error: ServiceError, request_id: str) -> Response:
        headers = {"content-type": _JSON, "x-amzn-RequestId": request_id, "x-amzn-ErrorType": error.code}
        text = json_out.error_text(self._writers, error.code, error.message, error.members)
        return Response(self.error_status(error), headers, json_out.encode(text))


def _route(name: str, http: Mapping[str, Any]) -> tuple[str, str, re.Pattern[str]]:
    """An operation's method and path; a label is one segment, still percent-encoded."""
    path = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(str(http["requestUri"])))
    return name, str(http["method"]), re.compile(path)


def _text_member(member: Member, wire_name: str) -> tuple[str, str, str, Reader]:
    return wire_name, member.name, label_of(member.name), text_reader(member.shape)


def _decode_label(text: str, label: str) -> str:
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed((None, label_of(label)), "The path is not UTF-8") from None


def _header_text(value: Any, shape: Shape) -> str:
    """A header's value. A model may send any bytes; a line end would start a header of its own making."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise json_out.wrong(shape, value)
    return _CONTROL.sub(" ", str(value))
