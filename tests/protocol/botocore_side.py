"""The other end of the wire: botocore's own serializers and parsers, without a network."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from typing import Any
from urllib.parse import urlencode, urlsplit

from botocore import parsers, serialize
from botocore.awsrequest import HeadersDict
from botocore.loaders import Loader
from botocore.model import OperationModel, ServiceModel

from berth.yard.wire.http import Request, Response


@cache
def service_model(service: str) -> ServiceModel:
    loader = Loader(include_default_extras=False)
    return ServiceModel(loader.load_service_model(service, "service-2"), service_name=service)


def operation_model(service: str, operation: str) -> OperationModel:
    return service_model(service).operation_model(operation)


@cache
def _serializer(protocol: str) -> Any:
    return serialize.create_serializer(protocol, include_validation=False)


def request_of(service: str, operation: str, params: dict[str, Any]) -> Request:
    """The request that botocore sends for these parameters."""
    model = service_model(service)
    made = _serializer(model.metadata["protocol"]).serialize_to_request(
        params, model.operation_model(operation)
    )
    body = made["body"]
    if isinstance(body, dict):
        body = urlencode(body, doseq=True)
    if isinstance(body, str):
        body = body.encode()
    headers = {name.lower(): str(value) for name, value in made["headers"].items()}
    path = urlsplit(made["url_path"]).path
    return Request(
        made["method"], path, urlencode(made["query_string"]) if made["query_string"] else "", headers, body
    )


def answer_of(service: str, operation: str, response: Response) -> dict[str, Any]:
    """What botocore makes of an answer; errors come as `Error`, the events of a stream as a list."""
    model = service_model(service)
    operation_shape = model.operation_model(operation)
    shape = operation_shape.output_shape
    parser = parsers.create_parser(model.metadata["protocol"])
    in_parts = response.status < 300 and operation_shape.has_event_stream_output
    as_file = response.status < 300 and operation_shape.has_streaming_output and not in_parts
    raw = {
        "status_code": response.status,
        "headers": HeadersDict(response.headers),
        "body": _Raw(response.body) if in_parts else BytesIO(response.body) if as_file else response.body,
        "context": {"operation_name": operation},
    }
    parsed = dict(parser.parse(raw, shape))
    if in_parts or as_file:
        payload = shape.serialization["payload"]
        parsed[payload] = list(parsed[payload]) if in_parts else parsed[payload].read()
    return parsed


class _Raw:
    """A body that is read in pieces, as an event stream is."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def stream(self, *_: Any, **__: Any) -> list[bytes]:
        return [self._data[:20], self._data[20:]]
