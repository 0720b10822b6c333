"""AWS JSON 1.1: one path, the operation in a header, a JSON document each way. SageMaker speaks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ServiceError
from . import json_in, json_out
from .base import PerOperation, ServiceWire, content_encoding_of, media_type_of, too_long
from .http import Request, Response
from .json_in import JsonReaders
from .json_out import JsonWriters
from .models import Model
from .patterns import PatternTimeout
from .validate import Findings, Malformed, Reader, show, spell, summarise


class JsonWire(ServiceWire):
    """AWS JSON 1.1."""

    # PipelineDefinition, the longest string of SageMaker's model, has 1 MiB before escapes.
    body_limit = 4 * 1024 * 1024

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._prefix = str(model.metadata["targetPrefix"]) + "."
        self._content_type = f"application/x-amz-json-{model.metadata['jsonVersion']}"
        self._readers = JsonReaders(model)
        self._writers = JsonWriters(model)
        self._reader = PerOperation(self._make_reader)
        self._writer = PerOperation(self._make_writer)

    def _make_reader(self, operation: str) -> Reader | None:
        shape = self.model.input(operation)
        return None if shape is None else self._readers.reader(shape)

    def _make_writer(self, operation: str) -> json_out.Writer | None:
        shape = self.model.output(operation)
        return None if shape is None else self._writers.writer(shape)

    def operation_name(self, request: Request) -> str:
        target = request.headers.get("x-amz-target", "")
        name = target.removeprefix(self._prefix)
        addressed = request.method == "POST" and request.path in {"", "/"} and target.startswith(self._prefix)
        if not addressed or name not in self.model.operations:
            raise self.no_such_operation(name)
        return name

    def no_such_operation(self, operation: str) -> ServiceError:
        # Code and text as reported where an operation is not in a Region
        # (github.com/hashicorp/terraform-provider-aws pull 27258).
        return ServiceError(
            "UnknownOperationException", "The requested operation is not supported in the called region."
        )

    def parse(self, operation: str, request: Request) -> dict[str, Any]:
        if len(request.body) > self.body_limit:
            raise ServiceError("RequestEntityTooLargeException", too_long(self.body_limit), status=413)
        coding = content_encoding_of(request)
        if coding is not None:
            raise _serialization(f"The content encoding {coding} is not supported")
        if media_type_of(request) != self._content_type:
            raise _serialization(f"The body must be of the type {self._content_type}")
        try:
            document = json_in.decode(request.body)
        except json_in.JsonFault as fault:
            raise _serialization(str(fault)) from None
        reader = self._reader(operation)
        return {} if reader is None else read_document(reader, document, "ValidationException")

    def serialise(self, operation: str, result: Mapping[str, Any], request_id: str) -> Response:
        writer = self._writer(operation)
        # Operations without modelled output answer 200 and an empty body.
        body = b"" if writer is None else json_out.encode(writer(result))
        return Response(200, self._headers(request_id), body)

    def error(self, error: ServiceError, request_id: str) -> Response:
        text = json_out.error_text(self._writers, error.code, error.message, error.members)
        return Response(self.error_status(error), self._headers(request_id), json_out.encode(text))

    def _headers(self, request_id: str) -> dict[str, str]:
        return {"content-type": self._content_type, "x-amzn-RequestId": request_id}


def read_document(reader: Reader, document: Mapping[str, Any], validation_code: str) -> dict[str, Any]:
    """Read a JSON document's members. Raises ServiceError: SerializationException or `validation_code`."""
    findings: Findings = []
    try:
        members: dict[str, Any] = reader(document, None, findings)
    except Malformed as fault:
        where = spell(fault.path)
        raise _serialization(f"{fault.message} (at {show(where)})" if where else fault.message) from None
    except PatternTimeout:
        raise ServiceError(validation_code, "A value takes too long to compare with its pattern") from None
    if findings:
        raise ServiceError(validation_code, summarise(findings))
    return members


def _serialization(why: str) -> ServiceError:
    return ServiceError("SerializationException", why)
