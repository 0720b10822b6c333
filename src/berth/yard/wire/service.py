"""The door to the wire: one `ServiceWire` per served service, and which service a request means."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias
from urllib.parse import unquote_plus

from .base import ServiceWire
from .http import Request
from .json_rpc import JsonWire
from .models import read_model
from .query import Ec2Wire, StsWire
from .rest import RestJsonWire

__all__ = ["SERVICES", "ServiceWire", "guess_service", "load", "service_of"]

_Wire: TypeAlias = "type[Ec2Wire | JsonWire | StsWire | RestJsonWire]"

_WIRES: dict[str, _Wire] = {
    "ec2": Ec2Wire,
    "sagemaker": JsonWire,
    "sts": StsWire,
    "sagemaker-runtime": RestJsonWire,
    "pricing": JsonWire,
    "service-quotas": JsonWire,
    "iam": StsWire,
}
SERVICES = tuple(_WIRES)
"""The served services, by botocore's names."""

_RUNTIME_PATH = "/endpoints/"
_SIGNED_AS = {
    "ec2": "ec2",
    "sts": "sts",
    "pricing": "pricing",
    "servicequotas": "service-quotas",
    "iam": "iam",
}
_TARGETS = {
    "SageMaker": "sagemaker",
    "AWSPriceListService": "pricing",
    "ServiceQuotasV20190624": "service-quotas",
}
_VERSIONS = {"2016-11-15": "ec2", "2011-06-15": "sts", "2010-05-08": "iam"}


@cache
def load(service: str) -> ServiceWire:
    """The wire of a service: reads its model now, compiles each operation when it is first used.

    Raises LookupError for a service that is not served or whose model the installed botocore lacks.
    """
    wire = _WIRES.get(service)
    if wire is None:
        raise LookupError(f"no wire for the service {service!r}; there is one for {', '.join(SERVICES)}")
    return wire(read_model(service))


def service_of(signing_name: str, request: Request) -> str | None:
    """The service of a signed request, by the service name in its signature's scope.

    SageMaker and SageMaker Runtime sign alike, so the path decides between them. None: no served service.
    """
    if signing_name == "sagemaker":
        return "sagemaker-runtime" if request.path.startswith(_RUNTIME_PATH) else "sagemaker"
    return _SIGNED_AS.get(signing_name)


def guess_service(request: Request) -> str | None:
    """The service that an unsigned request most likely means, so that it can be refused in its language.

    None when nothing tells.
    """
    target = request.headers.get("x-amz-target", "").partition(".")[0]
    if target in _TARGETS:
        return _TARGETS[target]
    if request.path.startswith(_RUNTIME_PATH):
        return "sagemaker-runtime"
    for text in (request.query, request.body[:65_536].decode("latin-1")):
        for pair in text.split("&"):
            if pair.startswith("Version="):
                return _VERSIONS.get(unquote_plus(pair[8:]))
    return None
