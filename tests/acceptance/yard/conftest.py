"""One yard for a whole file of tests, short ways to common things, and requests as no SDK would send them."""

from __future__ import annotations

import http.client
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from berth.yard.testing.process import YardProcess

SMALL = Path(__file__).parents[2] / "unit" / "yard" / "small.toml"
TYPE = "ml.trn1.32xlarge"
ROLE = "arn:aws:iam::111122223333:role/serving"
ONCE = Config(retries={"total_max_attempts": 1}, parameter_validation=False)
TARGET = {"content-type": "application/x-amz-json-1.1"}


@pytest.fixture(scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[YardProcess]:
    """A yard for the whole module, started as the module's `YARD` (keywords of YardProcess) says."""
    path = Path(tempfile.mkdtemp(prefix="yard-"))
    with YardProcess(path, **getattr(request.module, "YARD", {})) as yard:
        yield yard
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(autouse=True)
def no_faults_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test of a shared yard begins and ends without faults."""
    yield
    if "shared" in request.fixturenames:
        request.getfixturevalue("shared").clear_faults()


def offers(client: Any, **more: Any) -> list[dict[str, Any]]:
    """Offerings for one trn1 instance of 24 h for an endpoint, unless told otherwise."""
    asked = {"InstanceType": TYPE, "InstanceCount": 1, "DurationHours": 24, "TargetResources": ["endpoint"]}
    found: list[dict[str, Any]] = client.search_training_plan_offerings(**{**asked, **more})[
        "TrainingPlanOfferings"
    ]
    return found


def buy(client: Any, name: str, **more: Any) -> str:
    """Buy the first such offering; the plan's ARN."""
    offer = offers(client, **more)[0]["TrainingPlanOfferingId"]
    arn: str = client.create_training_plan(TrainingPlanName=name, TrainingPlanOfferingId=offer)[
        "TrainingPlanArn"
    ]
    return arn


def configure(client: Any, name: str, plan: str | None, count: int = 1, **environment: str) -> None:
    """A model of the echo image and a configuration on the plan, both called `name`."""
    client.create_model(
        ModelName=name, ExecutionRoleArn=ROLE,
        PrimaryContainer={"Image": "rehearsal/echo:1", "Environment": environment},
    )  # fmt: skip
    variant: dict[str, Any] = {
        "VariantName": "v", "ModelName": name, "InstanceType": TYPE, "InitialInstanceCount": count,
    }  # fmt: skip
    if plan is not None:
        variant["CapacityReservationConfig"] = {
            "CapacityReservationPreference": "capacity-reservations-only",
            "MlReservationArn": plan,
        }
    client.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[variant])


def wait(client: Any, waiter: str, **names: str) -> None:
    """botocore's own waiter, looking more often than every 30 s."""
    found = client.get_waiter(waiter)
    found.wait(WaiterConfig={"Delay": 0.05, "MaxAttempts": 400}, **names)


def serve(client: Any, name: str, plan: str | None, **environment: str) -> None:
    """Model, configuration and endpoint called `name`, InService."""
    configure(client, name, plan, **environment)
    client.create_endpoint(EndpointName=name, EndpointConfigName=name)
    wait(client, "endpoint_in_service", EndpointName=name)


@dataclass(frozen=True)
class Refused:
    """An error as botocore tells it."""

    code: str
    message: str
    status: int


def refused(call: Any, **params: Any) -> Refused:
    """The error of a call that must fail."""
    with pytest.raises(ClientError) as caught:
        call(**params)
    error = caught.value.response
    return Refused(
        error["Error"]["Code"], error["Error"]["Message"], error["ResponseMetadata"]["HTTPStatusCode"]
    )


@dataclass(frozen=True)
class Answered:
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def send(
    yard: YardProcess,
    method: str,
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    sign: str | None = "sagemaker",
    region: str = "us-east-1",
    keys: tuple[str, str] | None = None,
    after_signing: Mapping[str, str] | None = None,
) -> Answered:
    """One request over a line of its own, signed for the service `sign` (None: not signed).

    `after_signing` changes headers when the signature stands already.
    """
    environment = yard.environment
    key, secret = keys or (environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"])
    request = AWSRequest(method=method, url=yard.url + path, data=body, headers=dict(headers or {}))
    if sign is not None:
        SigV4Auth(Credentials(key, secret), sign, region).add_auth(request)
    final = {**dict(request.headers.items()), **(after_signing or {})}
    line = http.client.HTTPConnection(urlsplit(yard.url).netloc, timeout=30)
    try:
        line.request(method, path, body=body, headers=final)
        response = line.getresponse()
        return Answered(
            response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        )
    finally:
        line.close()


def target(operation: str) -> dict[str, str]:
    """The headers of a SageMaker operation."""
    return {**TARGET, "x-amz-target": f"SageMaker.{operation}"}


def written(yard: YardProcess) -> tuple[int, int, int]:
    """How many events, ledger entries and writing calls there are: equal before and after = nothing written.
    How many events, ledger entries and writing calls there are: equal before and after = nothing written."""
    return len(yard.events), len(yard.ledger), sum(call["wrote"] for call in yard.log)


def in_time(instant: datetime, **span: float) -> datetime:
    """So much later."""
    return instant + timedelta(**span)
