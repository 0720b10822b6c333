"""What a yard does not serve answers as AWS does where an operation does not exist, never with an empty
success."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import botocore.session
import pytest

from berth.yard.services import catalogue
from berth.yard.services.operation import served
from berth.yard.testing.process import YardProcess
from berth.yard.wire.service import SERVICES

from .conftest import SMALL, send, target, written

YARD = {"fleet": SMALL}
assert catalogue.SERVICES


def unserved(service: str) -> list[str]:
    """Every operation of the installed model that the yard does not serve."""
    model = botocore.session.get_session().get_service_model(service)
    known = {name for where, name in served() if where == service}
    assert known <= set(model.operation_names)
    return [name for name in model.operation_names if name not in known]


def _ask(yard: YardProcess, service: str, operation: str) -> Any:
    if service == "sagemaker":
        return send(yard, "POST", "/", b"{}", target(operation))
    version = {"ec2": "2016-11-15", "sts": "2011-06-15"}[service]
    body = urlencode({"Action": operation, "Version": version}).encode()
    form = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    return send(yard, "POST", "/", body, form, sign=service)


@pytest.mark.parametrize(
    ("service", "code", "least"),
    [
        ("ec2", "InvalidAction", 700),
        ("sagemaker", "UnknownOperationException", 350),
        ("sts", "InvalidAction", 5),
    ],
)
def test_every_other_operation_does_not_exist(
    shared: YardProcess, service: str, code: str, least: int
) -> None:
    """All of the model's operations but the served ones, one by one: status 400 and AWS's code."""
    names = unserved(service)
    assert len(names) >= least
    before = written(shared)
    for name in names:
        answer = _ask(shared, service, name)
        assert answer.status == 400, name
        if service == "sagemaker":
            assert answer.json["__type"] == code, name
        else:
            assert f"<Code>{code}</Code>".encode() in answer.body, name
            assert name.encode() in answer.body
    assert written(shared) == before


def test_other_operations_of_the_runtime_do_not_exist(shared: YardProcess) -> None:
    """Streams and asynchronous invocations: the code in the header, where a REST client looks."""
    names = unserved("sagemaker-runtime")
    model = botocore.session.get_session().get_service_model("sagemaker-runtime")
    assert names
    for name in names:
        http = model.operation_model(name).http
        path = http["requestUri"].replace("{EndpointName}", "e").split("?")[0]
        answer = send(shared, http["method"], path, b"{}", {"content-type": "application/json"})
        assert answer.headers["x-amzn-errortype"] == "UnknownOperationException", name
        assert answer.status in (400, 404), name


def test_operations_that_no_model_has_do_not_exist_either(shared: YardProcess) -> None:
    """Hostile names come back as text, in a well-formed answer."""
    for name in ("Nonsense", "describe_regions", "<script>", "A" * 5000, "\u00e9"):
        answer = _ask(shared, "ec2", name)
        assert b"<Code>InvalidAction</Code>" in answer.body
        assert b"<script>" not in answer.body
    assert _ask(shared, "sagemaker", "Nonsense").json["__type"] == "UnknownOperationException"


def test_what_is_served_is_what_the_models_know() -> None:
    """Every served operation is one of the installed model; the services are the four that have a wire."""
    assert {service for service, _ in served()} == set(SERVICES)


def test_whoever_speaks_to_no_service_of_aws_is_told_so(shared: YardProcess) -> None:
    """A browser, a health check, another service's client: 404 in plain words."""
    for method, path in (
        ("GET", "/"),
        ("GET", "/favicon.ico"),
        ("POST", "/anything"),
        ("PUT", "/bucket/key"),
    ):
        answer = send(shared, method, path, sign=None)
        assert (answer.status, answer.body) == (404, b"This is a yard: it speaks AWS's APIs only.\n")
    assert send(shared, "POST", "/", b"Action=ListBuckets", sign="s3").status == 404
