"""Bad input: what a client is told, and that nothing is spent, written or half done."""

# ruff: noqa: E501 - tables of one row a line

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from berth.yard.testing.process import YardProcess

from .conftest import ONCE, ROLE, SMALL, TYPE, Answered, Refused, offers, refused, send, target, written

YARD = {"fleet": SMALL}
NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


@pytest.fixture
def client(shared: YardProcess) -> Any:
    """A SageMaker client that checks nothing itself and tries once."""
    import boto3

    environment = shared.environment
    return boto3.session.Session(
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        region_name="us-east-1",
    ).client("sagemaker", endpoint_url=shared.url, config=ONCE)


@pytest.fixture(autouse=True)
def nothing_written(shared: YardProcess) -> Iterator[None]:
    """Whatever a test of this file sends: no event, no entry, no writing call."""
    before = written(shared)
    yield
    assert written(shared) == before


SEARCH: dict[str, Any] = {
    "InstanceType": TYPE, "InstanceCount": 1, "DurationHours": 24, "TargetResources": ["endpoint"],
}  # fmt: skip
SEARCHES = [
    ("183 days", {"DurationHours": 183 * 24}, "DurationHours must be from 1 to 4368 (1 to 182 days), not 4392."),
    ("no time", {"DurationHours": 0}, "at 'durationHours' failed to satisfy constraint: Member must have value"),
    ("3 instances", {"InstanceCount": 3}, "InstanceCount must be one of 1, 2, 4, 8, 16, 32, 64, not 3."),
    ("65 instances", {"InstanceCount": 65}, "InstanceCount must be one of 1, 2, 4, 8, 16, 32, 64, not 65."),
    ("no instances", {"InstanceCount": 0}, "InstanceCount must be one of 1, 2, 4, 8, 16, 32, 64, not 0."),
    ("257 instances", {"InstanceCount": 257}, "at 'instanceCount' failed to satisfy constraint"),
    ("type unheard of", {"InstanceType": "ml.p9.48xlarge"}, "'instanceType' failed to satisfy constraint: Member must satisfy enum value set: ["),
    ("an EC2 type", {"InstanceType": "trn1.32xlarge"}, "'instanceType' failed to satisfy constraint: Member must satisfy enum value set: ["),
    ("type not sold here", {"InstanceType": "ml.p5en.48xlarge"}, "Invalid instance type ml.p5en.48xlarge for target resource endpoint."),
    ("type not for that target", {"InstanceType": "ml.p5.48xlarge"}, "Invalid instance type ml.p5.48xlarge for target resource endpoint."),
    ("target unheard of", {"TargetResources": ["notebook"]}, "Member must satisfy enum value set: [training-job"),
    ("no target", {"TargetResources": []}, "failed to satisfy constraint: Member must have length greater than or equal to 1"),
    ("start in the past", {"StartTimeAfter": NOW - timedelta(days=1)}, "StartTimeAfter must be in the future."),
    ("end in the past", {"EndTimeBefore": NOW - timedelta(days=1)}, "EndTimeBefore must be at least 24 hours after the start time."),
    ("end before the start", {"StartTimeAfter": NOW + timedelta(days=5), "EndTimeBefore": NOW + timedelta(days=4)}, "EndTimeBefore must be at least 24 hours after the start time."),
    ("an UltraServer", {"UltraServerType": "ml.u-p6e-gb200x72", "UltraServerCount": 1}, "UltraServers are sold through an account manager, not by a search."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "words"), [row[1:] for row in SEARCHES], ids=[row[0] for row in SEARCHES]
)
def test_a_search_that_cannot_be_answered(client: Any, changed: dict[str, Any], words: str) -> None:
    """ValidationException with what, where and what would be right."""
    error = refused(client.search_training_plan_offerings, **{**SEARCH, **changed})
    assert (error.code, error.status) == ("ValidationException", 400)
    assert words in error.message


@pytest.mark.parametrize("member", ["InstanceType", "InstanceCount", "DurationHours"])
def test_a_search_that_lacks_something(client: Any, member: str) -> None:
    """The guide calls these mandatory."""
    asked = {name: value for name, value in SEARCH.items() if name != member}
    error = refused(client.search_training_plan_offerings, **asked)
    assert (error.code, error.message) == ("ValidationException", f"{member} is required.")


@pytest.mark.parametrize("days", [1, 17, 182])
def test_every_whole_day_up_to_half_a_year_is_valid_for_a_plan(client: Any, days: int) -> None:
    """17 days too, which a Capacity Block could not have; a part of a day is rounded up."""
    found = offers(client, DurationHours=days * 24, StartTimeAfter=NOW + timedelta(days=2))
    assert {(offer["DurationHours"], offer["DurationMinutes"]) for offer in found} == {(days * 24, 0)}
    rounded = offers(client, DurationHours=days * 24 - 23, StartTimeAfter=NOW + timedelta(days=2))
    assert [offer["DurationHours"] for offer in rounded] == [days * 24 for _ in rounded]


LONG = "a" * 65
PURCHASES = [
    ("an id of nobody", {"TrainingPlanOfferingId": "tpo-" + "0" * 64}, "ResourceNotFound", "The training plan offering does not exist."),
    ("an id with capitals", {"TrainingPlanOfferingId": "TPO-1"}, "ValidationException", "'trainingPlanOfferingId' failed to satisfy constraint: Member must satisfy regular expression pattern"),
    ("no id", {"TrainingPlanOfferingId": ""}, "ValidationException", "'trainingPlanOfferingId' failed to satisfy constraint: Member must have length"),
    ("an endless id", {"TrainingPlanOfferingId": "a" * 257}, "ValidationException", "'trainingPlanOfferingId' failed to satisfy constraint: Member must have length less than or equal to 256"),
    ("a long name", {"TrainingPlanName": LONG}, "ValidationException", "'trainingPlanName' failed to satisfy constraint: Member must have length less than or equal to 64"),
    ("a name with spaces", {"TrainingPlanName": "a b"}, "ValidationException", "'trainingPlanName' failed to satisfy constraint: Member must satisfy regular expression pattern"),
    ("a hostile name", {"TrainingPlanName": "a'); DROP TABLE training_plans;--"}, "ValidationException", "'trainingPlanName' failed"),
    ("a name that ends in a line break", {"TrainingPlanName": "a\n"}, "ValidationException", "'trainingPlanName' failed"),
    ("a path for a name", {"TrainingPlanName": "../../x"}, "ValidationException", "'trainingPlanName' failed"),
    ("a name with a zero byte", {"TrainingPlanName": "a\x00b"}, "ValidationException", "'trainingPlanName' failed"),
    ("spares of an UltraServer", {"SpareInstanceCountPerUltraServer": 1}, "ValidationException", "Spare instances exist for UltraServers only."),
    ("51 tags", {"Tags": [{"Key": f"k{n}", "Value": "v"} for n in range(51)]}, "ValidationException", "'tags' failed to satisfy constraint: Member must have length less than or equal to 50"),
    ("a tag of AWS's own", {"Tags": [{"Key": "aws:mine", "Value": "v"}]}, "ValidationException", "'aws:'"),
    ("a tag without a key", {"Tags": [{"Key": "", "Value": "v"}]}, "ValidationException", "failed to satisfy constraint: Member must have length greater than or equal to 1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "code", "words"), [row[1:] for row in PURCHASES], ids=[r[0] for r in PURCHASES]
)
def test_a_purchase_that_cannot_be(client: Any, changed: dict[str, Any], code: str, words: str) -> None:
    """AWS's code, and where the fault is; no plan of that name afterwards."""
    offer = offers(client)[0]["TrainingPlanOfferingId"]
    error = refused(
        client.create_training_plan, **{"TrainingPlanName": "p", "TrainingPlanOfferingId": offer, **changed}
    )
    assert (error.code, error.status) == (code, 400)
    assert words in error.message
    assert refused(client.describe_training_plan, TrainingPlanName="p").code == "ResourceNotFound"


CONTAINER = {"Image": "rehearsal/echo:1"}
MODELS = [
    ("no container", {}, "Exactly one of PrimaryContainer and Containers must be specified."),
    ("two ways at once", {"PrimaryContainer": CONTAINER, "Containers": [CONTAINER]}, "Exactly one of"),
    ("a pipeline", {"Containers": [CONTAINER, CONTAINER]}, "models of one container, not pipelines"),
    ("no image", {"PrimaryContainer": {"ModelDataUrl": "s3://b/k"}}, "A container must have an Image"),
    ("a role that is none", {"PrimaryContainer": CONTAINER, "ExecutionRoleArn": "arn:aws:iam::1:user/me"}, "'executionRoleArn' failed"),
    ("data from elsewhere", {"PrimaryContainer": {**CONTAINER, "ModelDataUrl": "file:///etc/passwd"}}, "'primaryContainer.modelDataUrl' failed"),
    ("a variable that is none", {"PrimaryContainer": {**CONTAINER, "Environment": {"1=2": "x"}}}, "Member must satisfy regular expression pattern: [a-zA-Z_]"),
    ("too many variables", {"PrimaryContainer": {**CONTAINER, "Environment": {f"K{n}": "" for n in range(101)}}}, "environment' failed"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "words"), [row[1:] for row in MODELS], ids=[row[0] for row in MODELS])
def test_a_model_that_cannot_be(client: Any, changed: dict[str, Any], words: str) -> None:
    """ValidationException; no model afterwards."""
    error = refused(client.create_model, **{"ModelName": "m", "ExecutionRoleArn": ROLE, **changed})
    assert (error.code, error.status) == ("ValidationException", 400)
    assert words in error.message
    assert "Could not find model" in refused(client.describe_model, ModelName="m").message


def test_what_is_missing_is_said_by_its_arn(client: Any) -> None:
    """Describe, delete and use of what is not there, with the codes that the waiters rely on."""
    for call, params, words in (
        (client.describe_endpoint, {"EndpointName": "None"}, 'endpoint "arn:aws:sagemaker:us-east-1:'),
        (client.delete_endpoint, {"EndpointName": "None"}, 'endpoint "arn:aws:sagemaker:us-east-1:'),
        (client.describe_endpoint_config, {"EndpointConfigName": "None"}, "endpoint configuration"),
        (client.delete_endpoint_config, {"EndpointConfigName": "None"}, "endpoint configuration"),
        (
            client.create_endpoint,
            {"EndpointName": "e", "EndpointConfigName": "None"},
            "endpoint configuration",
        ),
        (client.describe_model, {"ModelName": "None"}, "model"),
        (client.delete_model, {"ModelName": "None"}, "model"),
        (client.list_tags, {"ResourceArn": "arn:aws:sagemaker:us-east-1:111122223333:model/m"}, ""),
    ):
        error = refused(call, **params)
        assert error.code in ("ValidationException", "AccessDeniedException"), params
        assert words in error.message
    assert refused(client.describe_training_plan, TrainingPlanName="None").code == "ResourceNotFound"


def test_tokens_of_nobody_are_refused(client: Any) -> None:
    """Made up, or of another listing."""
    for token in ("nonsense", "eyJhIjoxfQ==", "W10="):
        for call in (client.list_training_plans, client.list_models, client.list_endpoints):
            error = refused(call, NextToken=token)
            assert (error.code, error.message) == ("ValidationException", "Invalid pagination token given.")


# -- on the wire -----------------------------------------------------------------------------------------
def told(answer: Answered) -> Refused:
    """The error of a JSON answer."""
    found = answer.json
    return Refused(found["__type"], found.get("message") or found.get("Message") or "", answer.status)


BODIES = [
    ("nothing at all is an empty document", b"", 400, "ValidationException"),
    ("not JSON", b"{nonsense", 400, "SerializationException"),
    ("XML", b"<a><b/></a>", 400, "SerializationException"),
    ("an XML bomb", b'<!DOCTYPE a [<!ENTITY b "' + b"x" * 1000 + b'">]><a>&b;&b;</a>', 400, "SerializationException"),
    ("a list", b"[]", 400, "SerializationException"),
    ("null", b"null", 400, "SerializationException"),
    ("a deep bomb", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 400, "SerializationException"),
    ("a wide bomb", b"[" * 200_000, 400, "SerializationException"),
    ("an endless number", b'{"InstanceCount":' + b"9" * 100_000 + b"}", 400, "SerializationException"),
    ("not UTF-8", b'{"InstanceType":"\xff"}', 400, "SerializationException"),
    ("a text for a number", b'{"InstanceCount":"1"}', 400, "SerializationException"),
    ("a list for a text", b'{"InstanceType":["a"]}', 400, "SerializationException"),
    ("not a number", b'{"InstanceCount":NaN}', 400, "SerializationException"),
    ("above the limit of the service", b'{"a":"' + b"x" * 4_200_000 + b'"}', 413, "RequestEntityTooLargeException"),
    ("above the limit of the yard", b'{"a":"' + b"x" * 9_000_000 + b'"}', 413, "RequestEntityTooLargeException"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "status", "code"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES]
)
def test_a_body_that_is_none(shared: YardProcess, body: bytes, status: int, code: str) -> None:
    """Refused in the service's own language, in little time, and the yard serves on."""
    answer = send(shared, "POST", "/", body, target("SearchTrainingPlanOfferings"))
    assert (answer.status, told(answer).code) == (status, code)
    assert send(shared, "POST", "/", b"{}", target("ListModels")).status == 200


def test_other_envelopes_are_refused(shared: YardProcess) -> None:
    """Another content type, a compressed body, another path, another method."""
    plain = {**target("ListModels"), "content-type": "text/plain"}
    assert told(send(shared, "POST", "/", b"{}", plain)).code == "SerializationException"
    packed = {**target("ListModels"), "content-encoding": "gzip"}
    assert told(send(shared, "POST", "/", gzip.compress(b"{}"), packed)).code == "SerializationException"
    for method, path in (("POST", "/elsewhere"), ("PUT", "/"), ("GET", "/")):
        answer = send(shared, method, path, b"{}", target("ListModels"))
        assert told(answer).code == "UnknownOperationException", (method, path)


FORM = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"Action": "DescribeRegions"}, "MissingParameter"),
        ({"Version": "2016-11-15"}, "MissingAction"),
        ({"Action": "DescribeRegions", "Version": "1999-01-01"}, "NoSuchVersion"),
        ({"Action": "DescribeRegions", "Version": "2016-11-15", "RegionName.1": "mars-1"}, "InvalidParameterValue"),
        ({"Action": "DescribeRegions", "Version": "2016-11-15", "Filter.1.Name": "x", "Filter.1.Value.1": "y"}, "InvalidParameterValue"),
        ({"Action": "DescribeRegions", "Version": "2016-11-15", "DryRun": "true"}, "DryRunOperation"),
        ({"Action": "DescribeRegions", "Version": "2016-11-15", "DryRun": "perhaps"}, "InvalidParameterValue"),
        ({"Action": "DescribeRegions", "Version": "2016-11-15", "Nonsense": "1"}, "UnknownParameter"),
        ({"Action": "DescribeAvailabilityZones", "Version": "2016-11-15", "ZoneId.1": "use1-az9"}, "InvalidParameterValue"),
    ],
)  # fmt: skip
def test_ec2_refuses_in_its_own_words(shared: YardProcess, params: dict[str, str], code: str) -> None:
    """An XML error with the code; never an empty list where a filter is wrong."""
    answer = send(shared, "POST", "/", urlencode(params).encode(), FORM, sign="ec2")
    assert answer.status >= 400, answer.body
    assert f"<Code>{code}</Code>".encode() in answer.body, answer.body


def test_invoke_refuses_what_is_too_large(shared: YardProcess) -> None:
    """The model's limit of 6,291,456 bytes, before any container is asked."""
    headers = {"content-type": "application/octet-stream"}
    answer = send(shared, "POST", "/endpoints/e/invocations", b"x" * 6_291_457, headers)
    assert answer.status in (400, 413)
    assert answer.headers["x-amzn-errortype"] in ("ValidationError", "RequestEntityTooLargeException")
    answer = send(shared, "POST", "/endpoints/..%2f..%2fetc/invocations", b"x", headers)
    assert answer.headers["x-amzn-errortype"] == "ValidationError"


# -- signatures ------------------------------------------------------------------------------------------
def test_an_unsigned_request_is_refused_in_each_language(shared: YardProcess) -> None:
    """The codes of docs/reference/signatures.md."""
    assert told(send(shared, "POST", "/", b"{}", target("ListModels"), sign=None)).code == (
        "MissingAuthenticationTokenException"
    )
    answer = send(shared, "POST", "/endpoints/e/invocations", b"{}", sign=None)
    assert answer.headers["x-amzn-errortype"] == "MissingAuthenticationTokenException"
    for version, code in (("2016-11-15", b"MissingParameter"), ("2011-06-15", b"MissingAuthenticationToken")):
        body = urlencode({"Action": "DescribeRegions", "Version": version}).encode()
        assert b"<Code>" + code + b"</Code>" in send(shared, "POST", "/", body, FORM, sign=None).body


def test_a_broken_signature_is_refused(shared: YardProcess) -> None:
    """Another secret, a changed body, a changed header, an unknown key, another service, another Region."""
    environment = shared.environment
    key, secret = environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]
    listing = target("ListModels")
    for code, answer in (
        ("InvalidSignatureException", send(shared, "POST", "/", b"{}", listing, keys=(key, secret[::-1]))),
        ("UnrecognizedClientException", send(shared, "POST", "/", b"{}", listing, keys=("YARD0", secret))),
        (
            "UnrecognizedClientException",
            send(shared, "POST", "/", b"{}", listing, keys=("AKIA" + "A" * 16, secret)),
        ),
        ("InvalidSignatureException", send(shared, "POST", "/", b"{}", listing, sign="ec2")),
        ("UnrecognizedClientException", send(shared, "POST", "/", b"{}", listing, region="mars-north-1")),
        (
            "InvalidSignatureException",
            send(shared, "POST", "/", b"{}", listing, after_signing={"X-Amz-Date": "20200101T000000Z"}),
        ),
        (
            "IncompleteSignatureException",
            send(shared, "POST", "/", b"{}", listing, after_signing={"Authorization": "AWS4-HMAC-SHA256 x"}),
        ),
    ):
        assert told(answer).code == code
        assert answer.status == 400


def test_what_is_refused_before_the_account_is_known_is_not_in_the_log(shared: YardProcess) -> None:
    """The log holds accepted calls: signature good, account known; also those that were refused later."""
    before = len(shared.log)
    send(shared, "POST", "/", b"{}", target("ListModels"), sign=None)
    assert len(shared.log) == before
    send(shared, "POST", "/", b"{nonsense", target("ListModels"))
    assert [call["outcome"] for call in shared.log[before:]] == ["SerializationException"]
    assert json.dumps(shared.log)
