"""Requests made to hurt: each is refused in AWS's words or read; none is a traceback, none is slow."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.yard.errors import ServiceError
from berth.yard.wire import form, json_in
from berth.yard.wire.http import Request
from berth.yard.wire.service import SERVICES, load

FORM = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
JSON = {"content-type": "application/x-amz-json-1.1", "x-amz-target": "SageMaker.CreateTrainingPlan"}
EC2 = "Action=DescribeCapacityReservations&Version=2016-11-15"
OPERATION = {
    "ec2": "DescribeCapacityReservations",
    "sagemaker": "CreateTrainingPlan",
    "sts": "AssumeRole",
    "sagemaker-runtime": "InvokeEndpoint",
    "pricing": "GetProducts",
    "service-quotas": "RequestServiceQuotaIncrease",
    "iam": "SimulatePrincipalPolicy",
}


def parse(service: str, request: Request) -> dict[str, Any] | ServiceError:
    try:
        return load(service).parse(load(service).operation_name(request), request)
    except ServiceError as error:
        return error


def json_request(body: bytes, **headers: str) -> Request:
    return Request("POST", "/", "", {**JSON, **headers}, body)


def ec2_request(body: str | bytes, query: str = "", **headers: str) -> Request:
    raw = body if isinstance(body, bytes) else body.encode()
    return Request("POST", "/", query, {**FORM, **headers}, raw)


def code_of(service: str, request: Request) -> str:
    answer = parse(service, request)
    assert isinstance(answer, ServiceError), answer
    assert 400 <= answer.status < 500
    assert len(answer.message) < 4096
    return answer.code


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"1",
        b"\xff\xfe{}",
        b'\xef\xbb\xbf{"TrainingPlanName": "p"}',
        b'{"TrainingPlanName": NaN}',
        b'{"TrainingPlanName": Infinity}',
        b'{"TrainingPlanName": "\\ud800"}',
        b'{"TrainingPlanName": 1}',
        b'{"TrainingPlanName": {"a": "b"}}',
        b'{"TrainingPlanName": ["p"]}',
        b'{"Tags": {}}',
        b'{"Tags": [null]}',
        b'{"Tags": [{"Key": true}]}',
        b'{"SpareInstanceCountPerUltraServer": 1.5}',
        b'{"SpareInstanceCountPerUltraServer": "1"}',
        b'{"SpareInstanceCountPerUltraServer": true}',
        b'{"SpareInstanceCountPerUltraServer": 2147483648}',
        b'{"SpareInstanceCountPerUltraServer": 1e400}',
        b'{"SpareInstanceCountPerUltraServer": ' + b"9" * 5000 + b"}",
        b'{"Tags": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a": ' * 50_000 + b"1" + b"}" * 50_000,
        b'{"a": "' + b'\\"' * 500_000,
        b'{"a": [' + b"[],[" * 100_000,
        b'{"a": [' + b"1," * 500_000 + b"1]}",
        b"<?xml version='1.0'?><a/>",
    ],
    ids=lambda body: repr(body[:40]),
)
def test_json_that_is_none_is_a_serialization_exception(body: bytes) -> None:
    """Broken, deep, long, wrongly typed or not JSON at all."""
    assert code_of("sagemaker", json_request(body)) == "SerializationException"


def test_json_of_another_type_or_coding_is_refused() -> None:
    """The content type is the protocol's; a compressed body is not undone."""
    for headers in ({"content-type": "application/json"}, {"content-type": ""}, {"content-encoding": "gzip"}):
        assert code_of("sagemaker", json_request(b"{}", **headers)) == "SerializationException"
    assert isinstance(
        parse("sagemaker", json_request(b"{}", **{"content-encoding": "identity"})), ServiceError
    )


def test_deep_documents_are_told_from_long_ones() -> None:
    """Brackets inside strings, and many shallow ones, are no depth."""
    json_in.decode(json.dumps({"a": "[" * 1000, "b": [[]] * 1000}).encode())
    json_in.decode(b'{"a": "\\\\", "b": ' + b"[" * 60 + b"]" * 60 + b"}")
    with pytest.raises(json_in.JsonFault, match="deeper than 64"):
        json_in.decode(b'{"a": "\\\\", "b": ' + b"[" * 64 + b"]" * 64 + b"}")


def test_of_a_name_given_twice_the_last_counts() -> None:
    """As with AWS's own reader; the signature covers the bytes either way."""
    assert json_in.decode(b'{"a": 1, "a": 2}') == {"a": 2}


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (ec2_request(""), "MissingAction"),
        (ec2_request("Version=2016-11-15"), "MissingAction"),
        (ec2_request("Action=&Version=2016-11-15"), "MissingAction"),
        (ec2_request("Action=Nonsense&Version=2016-11-15"), "InvalidAction"),
        (ec2_request("Action=" + "A" * 100_000), "InvalidAction"),
        (ec2_request("Action=DescribeRegions"), "MissingParameter"),
        (ec2_request("Action=DescribeRegions&Version=2010-01-01"), "NoSuchVersion"),
        (
            ec2_request("Action=DescribeRegions&Action=DescribeInstances&Version=2016-11-15"),
            "MalformedQueryString",
        ),
        (ec2_request(f"{EC2}&%ff=1"), "MalformedQueryString"),
        (ec2_request(f"{EC2}&MaxResults=1", query="MaxResults=2"), "MalformedQueryString"),
        (ec2_request(f"{EC2}&Filter=1&Filter.1.Name=a"), "MalformedQueryString"),
        (ec2_request(f"{EC2}&" + ".".join(["a"] * 1000) + "=1"), "MalformedQueryString"),
        (ec2_request(f"{EC2}&" + "&".join(f"a{n}=1" for n in range(20_000))), "MalformedQueryString"),
        (ec2_request(EC2, **{"content-type": "text/xml"}), "MalformedQueryString"),
        (ec2_request(EC2, **{"content-encoding": "deflate"}), "MalformedQueryString"),
        (ec2_request(b"\xff\xfe"), "MalformedQueryString"),
        (ec2_request("a" * 1_100_000), "RequestEntityTooLarge"),
        (ec2_request(f"{EC2}&MaxResults=ten"), "InvalidParameterValue"),
        (ec2_request(f"{EC2}&MaxResults=99999999999999999999999"), "InvalidParameterValue"),
        (ec2_request(f"{EC2}&MaxResults=%D9%A1%D9%A0"), "InvalidParameterValue"),
        (ec2_request(f"{EC2}&MaxResults.1=1"), "InvalidParameterValue"),
        (ec2_request(f"{EC2}&DryRun=perhaps"), "InvalidParameterValue"),
        (ec2_request(f"{EC2}&NextToken=%00"), "InvalidParameterValue"),
        (ec2_request(f"{EC2}&Filter=a"), "InvalidParameterValue"),
        (ec2_request(f"{EC2}&Filter.Name=a"), "InvalidParameterValue"),
        (ec2_request(f"{EC2}&Filter.0.Name=a"), "InvalidParameterValue"),
        (ec2_request(f"{EC2}&Filter.01.Name=a&Filter.1.Name=b"), "InvalidParameterValue"),
        (ec2_request(f"{EC2}&Filter.9999999.Name=a"), "InvalidParameterValue"),
        (ec2_request(f"{EC2}&Filter.1=a"), "InvalidParameterValue"),
        (ec2_request(f"{EC2}&Filter.1.Value=a"), "InvalidParameterValue"),
        (ec2_request(f"{EC2}&..=a"), "UnknownParameter"),
        (ec2_request(f"{EC2}&Filter.1.Value.1.x=a"), "InvalidParameterValue"),
        (ec2_request(f"{EC2}&maxResults=1"), "UnknownParameter"),
        (ec2_request(f"{EC2}&{'u' * 5000}=1"), "UnknownParameter"),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value.body[50:90]),
)
def test_forms_that_are_none_are_refused_by_ec2(request_: Request, code: str) -> None:
    """Each with the code that says what is wrong with it."""
    assert code_of("ec2", request_) == code


def test_an_instant_without_a_zone_is_refused() -> None:
    """A date that could be anybody's is not guessed."""
    search = (
        "Action=DescribeCapacityBlockOfferings&Version=2016-11-15&CapacityDurationHours=24&StartDateRange="
    )
    no_instants = ("2026-12-01", "2026-12-01T00:00:00", "2026-W01-1T00:00:00Z", "1798761600")
    no_dates = ("2026-13-01T00:00:00Z", "0001-01-01T00:00:00%2B23:00")
    for text in no_instants + no_dates:
        assert code_of("ec2", ec2_request(search + text)) == "InvalidParameterValue", text
    for text in ("2026-12-01T00:00:00Z", "2026-12-01T01:00:00.000%2B01:00", "2026-11-30T19:00:00-0500"):
        answer = parse("ec2", ec2_request(search + text))
        assert isinstance(answer, dict)
        assert answer["StartDateRange"].isoformat() == "2026-12-01T00:00:00+00:00"


def test_gaps_in_the_numbers_of_a_list_are_allowed() -> None:
    """Order is by number, not by place in the form."""
    answer = parse("ec2", ec2_request(f"{EC2}&CapacityReservationId.10=c&CapacityReservationId.2=b"))
    assert answer == {"CapacityReservationIds": ["b", "c"]}


def test_a_get_request_is_read_from_its_query_string() -> None:
    """As presigned STS requests are sent; the signature's own parameters are no members."""
    query = "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0"
    request = Request("GET", "/", query, {"host": "yard"}, b"")
    assert load("sts").operation_name(request) == "GetCallerIdentity"
    assert load("sts").parse("GetCallerIdentity", request) == {}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Action=AssumeRole&Version=2011-06-15&DurationSeconds=x", "MalformedInput"),
        ("Action=AssumeRole&Version=2011-06-15&Tags.1.Key=x", "MalformedInput"),
        ("Action=AssumeRole&Version=2011-06-15&Unheard.1=x", "ValidationError"),
        ("Action=AssumeRole&Version=2010-06-15", "NoSuchVersion"),
        ("Action=Assume&Version=2011-06-15", "InvalidAction"),
    ],
)
def test_forms_that_are_none_are_refused_by_sts(text: str, code: str) -> None:
    """STS numbers its lists under `member`, and ignores what it does not know."""
    assert code_of("sts", Request("POST", "/", "", FORM, text.encode())) == code


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/endpoints/e/invocations", "UnknownOperationException"),
        ("POST", "/endpoints/e", "UnknownOperationException"),
        ("POST", "/endpoints//invocations", "UnknownOperationException"),
        ("POST", "/endpoints/e/invocations/", "UnknownOperationException"),
        ("POST", "/endpoints/../invocations\n", "UnknownOperationException"),
        ("POST", "/endpoints/../invocations", "ValidationError"),
        ("POST", "/endpoints/%2e%2e/invocations", "ValidationError"),
        ("POST", "/endpoints/a%2Fb/invocations", "ValidationError"),
        ("POST", "/endpoints/%ff/invocations", "ValidationError"),
        ("POST", "/endpoints/e%00/invocations", "ValidationError"),
        ("POST", "/endpoints/" + "e" * 64 + "/invocations", "ValidationError"),
    ],
)
def test_paths_that_lead_nowhere(method: str, path: str, code: str) -> None:
    """The runtime's paths are matched whole, and a label is one percent-decoded segment."""
    assert code_of("sagemaker-runtime", Request(method, path, "", {}, b"x")) == code


def test_a_runtime_body_beyond_the_models_limit_is_refused() -> None:
    """6,291,456 bytes are accepted, one more is not."""
    limit = load("sagemaker-runtime").body_limit
    answer = parse("sagemaker-runtime", Request("POST", "/endpoints/e/invocations", "", {}, b"x" * limit))
    assert isinstance(answer, dict)
    assert len(answer["Body"]) == limit
    over = Request("POST", "/endpoints/e/invocations", "", {}, b"x" * (limit + 1))
    assert code_of("sagemaker-runtime", over) == "ValidationError"


def test_a_percent_encoded_endpoint_name_is_decoded() -> None:
    """`%65` is `e`."""
    answer = parse("sagemaker-runtime", Request("POST", "/endpoints/%65-1/invocations", "", {}, b"x"))
    assert answer == {"EndpointName": "e-1", "Body": b"x"}


headers_of_any_kind = st.dictionaries(
    st.sampled_from(
        ["content-type", "content-encoding", "x-amz-target", "accept", "x-amzn-sagemaker-session-id"]
    ),
    st.one_of(st.text(max_size=20), st.sampled_from([*JSON.values(), *FORM.values()])),
)


@settings(deadline=None, max_examples=150)
@given(
    service=st.sampled_from(SERVICES),
    path=st.one_of(st.text(max_size=30), st.sampled_from(["/", "/endpoints/a/invocations"])),
    query=st.text(max_size=40),
    headers=headers_of_any_kind,
    body=st.binary(max_size=80),
)
def test_no_bytes_are_a_traceback(
    service: str, path: str, query: str, headers: dict[str, str], body: bytes
) -> None:
    """Whatever is sent, the answer is members or a ServiceError that the wire can send."""
    request = Request("POST", path, query, headers, body)
    for one in (lambda: parse(service, request), lambda: load(service).parse(OPERATION[service], request)):
        try:
            answer = one()
        except ServiceError as error:
            answer = error
        if isinstance(answer, ServiceError):
            assert 400 <= load(service).error(answer, "an-id").status < 500


PARTS = ["Filter", "CapacityReservationId", "1", "2", "Name", "Value", ""]
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["TrainingPlanName", "Tags", "Key", "Value", "x"]), inner, max_size=3
        ),
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=150)
@given(st.dictionaries(st.sampled_from(["TrainingPlanName", "TrainingPlanOfferingId", "Tags"]), json_values))
def test_no_json_document_is_a_traceback(document: dict[str, Any]) -> None:
    """Any values in the places of the model's members."""
    answer = parse("sagemaker", json_request(json.dumps(document).encode()))
    assert isinstance(answer, dict | ServiceError)


@settings(deadline=None, max_examples=150)
@given(
    st.dictionaries(
        st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map(".".join),
        st.text(max_size=6),
        max_size=4,
    )
)  # fmt: skip
def test_no_form_is_a_traceback(fields: dict[str, str]) -> None:
    """Any names made of the model's parts."""
    try:
        tree = form.tree(fields)
    except form.FormFault:
        return
    assert tree.keys() == {name.partition(".")[0] for name in fields}
    answer = parse("ec2", ec2_request(EC2 + "&" + urlencode(fields, errors="replace")))
    assert isinstance(answer, dict | ServiceError)
