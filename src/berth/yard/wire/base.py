"""What every protocol has in common: the contract between the server, the services and the wire."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from ..errors import ServiceError
from .http import Request, Response
from .models import Model

_Compiled = TypeVar("_Compiled")


class ServiceWire(ABC):
    """One AWS service on the wire: requests to members, answers and errors to bytes.

    Operations are compiled on first use and kept. An instance may be used by several threads: at worst two
    of them compile the same operation.
    """

    #: Bytes of the longest body that `parse` accepts; a server may refuse longer ones before reading them.
    body_limit: int

    def __init__(self, model: Model) -> None:
        self.model = model
        self.service = model.service

    @property
    def operations(self) -> frozenset[str]:
        """The names of the model's operations, whether a yard serves them or not."""
        return frozenset(self.model.operations)

    @abstractmethod
    def operation_name(self, request: Request) -> str:
        """The operation that a request names. Raises ServiceError when it names none of the model's."""

    @abstractmethod
    def parse(self, operation: str, request: Request) -> dict[str, Any]:
        """The request's members by botocore's names, checked against the model.

        Timestamps are aware UTC datetimes, blobs bytes, numbers int or float; absent members are absent.
        Raises ServiceError with the code that AWS uses.
        """

    @abstractmethod
    def serialise(self, operation: str, result: Mapping[str, Any], request_id: str) -> Response:
        """The answer of an operation. Members that are None are left out; output values are not checked
        against enums, patterns or required members, only against their types.

        Raises NotOfShape (a TypeError) for a member that the model lacks or a value of another type.
        """

    @abstractmethod
    def error(self, error: ServiceError, request_id: str) -> Response:
        """The answer that is an error. A modelled error keeps its modelled status unless `error.status` says
        other than 400.
        """

    @abstractmethod
    def no_such_operation(self, operation: str) -> ServiceError:
        """What AWS answers where an operation does not exist; also for those that a yard does not serve."""

    def error_status(self, error: ServiceError) -> int:
        shape = self.model.error(error.code)
        modelled = None if shape is None else shape.traits.get("error", {}).get("httpStatusCode")
        return int(modelled) if modelled is not None and error.status == 400 else error.status


class PerOperation(Generic[_Compiled]):
    """What is compiled once an operation, on first use."""

    def __init__(self, make: Callable[[str], _Compiled]) -> None:
        self._make = make
        self._made: dict[str, _Compiled] = {}

    def __call__(self, operation: str) -> _Compiled:
        found = self._made.get(operation)
        if found is None:
            found = self._made[operation] = self._make(operation)
        return found


def too_long(limit: int) -> str:
    return f"The request's body is longer than {limit} bytes"


def content_encoding_of(request: Request) -> str | None:
    """The coding of the body where it has one that a yard does not undo; None for a plain body."""
    coding = request.headers.get("content-encoding", "").strip().lower()
    return None if coding in {"", "identity"} else coding[:64]


def media_type_of(request: Request) -> str:
    """The media type of the body, without parameters; empty when the request names none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
