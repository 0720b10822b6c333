"""The query protocols: EC2's, and the plain one of STS."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_plus

from ..errors import ServiceError
from . import form, scalars
from .base import PerOperation, ServiceWire, content_encoding_of, media_type_of, too_long
from .http import Request, Response
from .models import Model
from .patterns import PatternTimeout
from .query_in import EC2, STS, Dialect, QueryReaders
from .validate import NOT_NULL, Finding, Findings, Malformed, Reader, UnknownName, show, spell, summarise
from .xml_out import Instant, Writer, XmlWriters, escape

_FORM = "application/x-www-form-urlencoded"
_ACTION = re.compile(r"(?:^|&)Action=([^&]*)")
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


class QueryWire(ServiceWire):
    """Shared by both query protocols: fields in, XML out."""

    body_limit = 1024 * 1024
    dialect: Dialect
    instant: Instant

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._version = str(model.metadata["apiVersion"])
        self._namespace = str(model.metadata["xmlNamespace"])
        self._readers = QueryReaders(model, self.dialect)
        self._writers = XmlWriters(model, self.instant)
        self._reader = PerOperation(self._make_reader)
        self._body = PerOperation(self._make_body)

    def _make_reader(self, operation: str) -> Reader | None:
        shape = self.model.input(operation)
        return None if shape is None else self._readers.reader(shape)

    def _make_body(self, operation: str) -> Writer | None:
        shape = self.model.output(operation)
        return None if shape is None else self._writers.body(shape)

    def operation_name(self, request: Request) -> str:
        found = _ACTION.search(request.query) or _ACTION.search(self._text(request))
        name = unquote_plus(found[1]) if found else ""
        if not name:
            raise ServiceError("MissingAction", "The request must contain the parameter Action")
        if name not in self.model.operations:
            raise self.no_such_operation(name)
        return name

    def parse(self, operation: str, request: Request) -> dict[str, Any]:
        try:
            named = form.fields(request.query, self._text(request))
            self._take_common(operation, named)
            tree = form.tree(named)
        except form.FormFault as fault:
            raise self.malformed(str(fault)) from None
        reader = self._reader(operation)
        return {} if reader is None else self._read(reader, tree)

    def _text(self, request: Request) -> str:
        body = request.body
        if not body:
            return ""
        if len(body) > self.body_limit:
            raise ServiceError("RequestEntityTooLarge", too_long(self.body_limit), status=413)
        coding = content_encoding_of(request)
        if coding is not None:
            raise self.malformed(f"The content encoding {coding} is not supported")
        if media_type_of(request) != _FORM:
            raise self.malformed(f"The body must be of the type {_FORM}")
        try:
            return body.decode("utf-8")
        except UnicodeDecodeError:
            raise self.malformed("The body is not UTF-8") from None

    def _take_common(self, operation: str, named: dict[str, str]) -> None:
        """Remove the parameters that are no members: Action, Version, and a presigned request's own."""
        if named.pop("Action", None) != operation:
            raise form.FormFault("The parameter Action is given more than once")
        version = named.pop("Version", None)
        if version is None:
            raise ServiceError("MissingParameter", "The request must contain the parameter Version")
        if version != self._version:
            raise self.no_such_version(version)
        for name in [name for name in named if name.startswith("X-Amz-")]:
            del named[name]

    def _read(self, reader: Reader, tree: form.Tree) -> dict[str, Any]:
        findings: Findings = []
        try:
            members: dict[str, Any] = reader(tree, None, findings)
        except UnknownName as unknown:
            raise ServiceError("UnknownParameter", f"The parameter {unknown} is not recognized") from None
        except Malformed as fault:
            raise self.unreadable(fault) from None
        except PatternTimeout:
            raise self.malformed("A value takes too long to compare with its pattern") from None
        if findings:
            raise self.invalid(findings)
        return members

    @abstractmethod
    def malformed(self, why: str) -> ServiceError:
        """The refusal of a request that is no readable form."""

    @abstractmethod
    def no_such_version(self, version: str) -> ServiceError:
        """The refusal of another version of the API than the model's."""

    @abstractmethod
    def unreadable(self, fault: Malformed) -> ServiceError:
        """The refusal of a value that is not of its type."""

    @abstractmethod
    def invalid(self, findings: Findings) -> ServiceError:
        """The refusal of values that break the model's constraints."""

    def _answer(self, status: int, text: str, content_type: str, request_id: str) -> Response:
        headers = {"content-type": content_type, "x-amzn-requestid": request_id}
        return Response(status, headers, text.encode("utf-8"))

    def _error_parts(self, error: ServiceError) -> str:
        parts = [f"<Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message>"]
        parts.extend(f"<{name}>{escape(str(value))}</{name}>" for name, value in error.members.items())
        return "".join(parts)


class Ec2Wire(QueryWire):
    """EC2's query protocol."""

    dialect = EC2
    instant = staticmethod(scalars.iso_millis)

    def malformed(self, why: str) -> ServiceError:
        return ServiceError("MalformedQueryString", why)

    def no_such_version(self, version: str) -> ServiceError:
        message = f"The requested version ({show(version)}) of service AmazonEC2 does not exist"
        return ServiceError("NoSuchVersion", message)

    def no_such_operation(self, operation: str) -> ServiceError:
        message = f"The action {show(operation)} is not valid for this web service."
        return ServiceError("InvalidAction", message)

    def unreadable(self, fault: Malformed) -> ServiceError:
        shown = "" if fault.value is None or isinstance(fault.value, dict) else f" ({show(fault.value)})"
        return _invalid_value(spell(fault.path), shown, fault.message)

    def invalid(self, findings: Findings) -> ServiceError:
        """EC2 names one parameter at a time; one that is missing comes first."""
        missing = [finding for finding in findings if finding.rule == NOT_NULL]
        if missing:
            message = f"The request must contain the parameter {spell(missing[0].path)}"
            return ServiceError("MissingParameter", message)
        return _refused(findings[0])

    def serialise(self, operation: str, result: Mapping[str, Any], request_id: str) -> Response:
        start = f'<{operation}Response xmlns="{self._namespace}/">'
        parts = [_DECLARATION, start, f"<requestId>{escape(request_id)}</requestId>"]
        body = self._body(operation)
        if body is None:
            # Operations without modelled output answer `<return>true</return>`.
            parts.append("<return>true</return>")
        else:
            body(result, parts.append)
        parts.append(f"</{operation}Response>")
        return self._answer(200, "".join(parts), "text/xml;charset=UTF-8", request_id)

    def error(self, error: ServiceError, request_id: str) -> Response:
        text = (
            f"{_DECLARATION}<Response><Errors><Error>{self._error_parts(error)}</Error></Errors>"
            f"<RequestID>{escape(request_id)}</RequestID></Response>"
        )
        return self._answer(self.error_status(error), text, "text/xml;charset=UTF-8", request_id)


def _refused(finding: Finding) -> ServiceError:
    shown = "" if finding.sensitive else f" ({show(finding.value)})"
    return _invalid_value(spell(finding.path), shown, finding.rule)


def _invalid_value(name: str, shown: str, why: str) -> ServiceError:
    return ServiceError("InvalidParameterValue", f"Value{shown} for parameter {name} is invalid. {why}.")


class StsWire(QueryWire):
    """The plain query protocol, as STS speaks it."""

    dialect = STS
    instant = staticmethod(scalars.iso_seconds)

    def malformed(self, why: str) -> ServiceError:
        return ServiceError("MalformedQueryString", why)

    def no_such_version(self, version: str) -> ServiceError:
        message = f"Could not find the version {show(version)} of this web service; it is {self._version}"
        return ServiceError("NoSuchVersion", message)

    def no_such_operation(self, operation: str) -> ServiceError:
        message = f"Could not find operation {show(operation)} for version {self._version}"
        return ServiceError("InvalidAction", message)

    def unreadable(self, fault: Malformed) -> ServiceError:
        return ServiceError("MalformedInput", f"{fault.message} at {spell(fault.path)}")

    def invalid(self, findings: Findings) -> ServiceError:
        return ServiceError("ValidationError", summarise(findings))

    def serialise(self, operation: str, result: Mapping[str, Any], request_id: str) -> Response:
        parts = [f'<{operation}Response xmlns="{self._namespace}">']
        body = self._body(operation)
        if body is not None:
            wrapper = self.model.operations[operation]["output"].get("resultWrapper", f"{operation}Result")
            parts.append(f"<{wrapper}>")
            body(result, parts.append)
            parts.append(f"</{wrapper}>")
        parts.append(
            f"<ResponseMetadata><RequestId>{escape(request_id)}</RequestId></ResponseMetadata></{operation}Response>"
        )
        return self._answer(200, "".join(parts), "text/xml", request_id)

    def error(self, error: ServiceError, request_id: str) -> Response:
        status = self.error_status(error)
        side = "Sender" if status < 500 else "Receiver"
        text = (
            f'<ErrorResponse xmlns="{self._namespace}"><Error><Type>{side}</Type>'
            f"{self._error_parts(error)}</Error><RequestId>{escape(request_id)}</RequestId></ErrorResponse>"
        )
        return self._answer(status, text, "text/xml", request_id)
