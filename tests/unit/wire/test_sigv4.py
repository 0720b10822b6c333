"""Signature Version 4: what was signed by botocore's own signers holds, and nothing else does."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.yard.wire import sigv4
from berth.yard.wire.canonical import canonical_path
from berth.yard.wire.http import Request
from berth.yard.wire.refusals import tolerance_of
from berth.yard.wire.sigv4 import SignatureFault, SignatureProblem, Verifier, read_claim

KEY_ID, SECRET = "YARDEXAMPLEKEY", "a/secret+with=signs"
FIVE_MINUTES = timedelta(minutes=5)
BOTO3 = {
    "content-type": "application/x-amz-json-1.1",
    "x-amz-target": "SageMaker.DescribeTrainingPlan",
    "user-agent": "Boto3/1",
}
JAVASCRIPT = {
    **BOTO3,
    "amz-sdk-invocation-id": "7340012f-d036-1e0a-ad91-a2aebedc5b1a",
    "amz-sdk-request": "attempt=1; max=3",
    "x-amz-user-agent": "aws-sdk-js/3.9   ua/2.1",
}


def _url(path: str, query: str) -> str:
    return f"https://yard.example:8080{path}" + (f"?{query}" if query else "")


def _received(signed: AWSRequest, body: bytes) -> Request:
    parts = urlsplit(signed.url)
    headers = {name.lower(): str(value) for name, value in signed.headers.items()}
    headers.setdefault("host", parts.netloc)
    return Request(signed.method, parts.path, parts.query, headers, body)


def sign(
    method: str = "POST",
    path: str = "/",
    query: str = "",
    headers: dict[str, str] | None = None,
    body: bytes = b"{}",
    service: str = "sagemaker",
    token: str | None = None,
) -> Request:
    """Sign as boto3 does; with the JavaScript SDK's headers given, as that one does."""
    made = AWSRequest(method, _url(path, query), dict(headers or BOTO3), body)
    if "amz-sdk-request" in made.headers:
        made.headers["x-amz-content-sha256"] = hashlib.sha256(body).hexdigest()
        made.headers["content-length"] = str(len(body))
    SigV4Auth(Credentials(KEY_ID, SECRET, token), service, "us-east-1").add_auth(made)
    return _received(made, body)


def presign(query: str, *, expires_s: int = 60, token: str | None = None, **headers: str) -> Request:
    made = AWSRequest("GET", _url("/", query), headers, b"")
    SigV4QueryAuth(Credentials(KEY_ID, SECRET, token), "sts", "us-east-1", expires=expires_s).add_auth(made)
    return _received(made, b"")


def check(request: Request, *, late: timedelta = timedelta(0), secret: str = SECRET) -> sigv4.Claim:
    claim = read_claim(request)
    Verifier().check(request, claim, secret, datetime.now(UTC) + late, FIVE_MINUTES)
    return claim


def fault_of(request: Request, **how: Any) -> SignatureFault:
    with pytest.raises(SignatureProblem) as caught:
        check(request, **how)
    return caught.value.fault


# Published examples, which owe nothing to botocore.


def _at(text: str) -> datetime:
    return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def test_the_signature_of_awss_published_example_holds() -> None:
    """The ListUsers request of AWS's signing documentation (30 August 2015)."""
    request = Request(
        "GET",
        "/",
        "Action=ListUsers&Version=2010-05-08",
        {
            "host": "iam.amazonaws.com",
            "content-type": "application/x-www-form-urlencoded; charset=utf-8",
            "x-amz-date": "20150830T123600Z",
            "authorization": (
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
                "SignedHeaders=content-type;host;x-amz-date, "
                "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
            ),
        },
        b"",
    )
    secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    claim = read_claim(request)
    assert (claim.access_key_id, claim.region, claim.service) == ("AKIDEXAMPLE", "us-east-1", "iam")
    Verifier().check(request, claim, secret, _at("20150830T124000Z"), FIVE_MINUTES)
    with pytest.raises(SignatureProblem):
        Verifier().check(request, claim, secret + "x", _at("20150830T124000Z"), FIVE_MINUTES)


# What holds.

encoded = st.text("aZ0 /+%&=~.-_:;ü\U0001f600", min_size=1, max_size=12).map(
    lambda text: quote(text, safe="-_.~")
)
paths = st.lists(encoded, max_size=3).map(lambda parts: "/" + "/".join(parts))
queries = st.dictionaries(encoded, encoded, max_size=4).map(
    lambda q: "&".join(f"{k}={v}" for k, v in q.items())
)
requests = st.builds(
    sign,
    method=st.sampled_from(["POST", "GET"]),
    path=paths,
    query=queries,
    headers=st.sampled_from([BOTO3, JAVASCRIPT]),
    body=st.binary(max_size=40),
    service=st.sampled_from(["sagemaker", "ec2", "sts"]),
    token=st.sampled_from([None, "a+token/with=signs"]),
)


@settings(deadline=None, max_examples=80)
@given(requests)
def test_what_botocore_signs_holds(request: Request) -> None:
    """Any method, path, query, body, with or without a session token, in both SDKs' styles."""
    claim = check(request)
    assert claim.access_key_id == KEY_ID
    assert not claim.presigned
    assert claim.security_token == request.headers.get("x-amz-security-token")


@settings(deadline=None, max_examples=40)
@given(queries, st.sampled_from([None, "a+token/with=signs"]))
def test_what_botocore_presigns_holds(query: str, token: str | None) -> None:
    """Query form, as presigned GetCallerIdentity requests are sent."""
    claim = check(presign(query, token=token))
    assert claim.presigned
    assert claim.expires_s == 60
    assert claim.security_token == token


def test_a_presigned_request_may_sign_further_headers() -> None:
    """The headers by which clusters bind such requests are covered."""
    request = presign("Action=GetCallerIdentity", **{"x-k8s-aws-id": "cluster"})
    check(request)
    other = replace(request, headers={**request.headers, "x-k8s-aws-id": "another"})
    assert fault_of(other) is SignatureFault.MISMATCH


def test_an_unsigned_payload_leaves_the_body_out() -> None:
    """UNSIGNED-PAYLOAD, itself signed, says that the body is not covered."""
    request = sign(headers={**BOTO3, "x-amz-content-sha256": "UNSIGNED-PAYLOAD"})
    check(request)
    check(replace(request, body=b'{"other": 1}'))


def test_the_date_header_serves_where_x_amz_date_is_missing() -> None:
    """Both ways to give the time of signing are accepted."""
    request = sign(headers={**BOTO3, "date": "x"})
    assert "x-amz-date" not in request.headers
    check(request)


def test_what_means_the_same_still_holds() -> None:
    """White space in headers, the order of the query, a plus for a space, headers that nobody signed."""
    request = sign(query="a=1%202&b=2", headers={**BOTO3, "x-note": "two  words"})
    same = (
        replace(request, query="b=2&a=1+2"),
        replace(request, headers={**request.headers, "x-note": "  two\twords "}),
        replace(request, headers={**request.headers, "user-agent": "other", "x-forwarded-for": "::1"}),
    )
    for other in same:
        check(other)


def test_a_header_sent_twice_is_signed_as_its_values_with_a_comma() -> None:
    """The server hands such a header over joined with a comma, as AWS signs it."""
    made = AWSRequest("POST", _url("/", ""), {**BOTO3}, b"")
    made.headers["x-twice"] = "one"
    made.headers.add_header("x-twice", "two")
    SigV4Auth(Credentials(KEY_ID, SECRET), "ec2", "us-east-1").add_auth(made)
    request = _received(made, b"")
    check(replace(request, headers={**request.headers, "x-twice": "one,two"}))
    assert (
        fault_of(replace(request, headers={**request.headers, "x-twice": "two,one"}))
        is SignatureFault.MISMATCH
    )


@pytest.mark.parametrize(
    ("path", "canonical"),
    [("", "/"), ("/", "/"), ("//", "/"), ("/a//b", "/a/b"), ("/a/./b/../c", "/a/c"), ("/../..", "/"),
     ("/a/", "/a/"), ("/a/.", "/a"), ("/a%20b", "/a%2520b"), ("/a~_-.", "/a~_-.")],
)  # fmt: skip
def test_paths_are_normalised_and_encoded_once_more(path: str, canonical: str) -> None:
    """As for every service but S3."""
    assert canonical_path(path) == canonical


# What does not hold.


@pytest.mark.parametrize("left_out", ["host", "x-amz-target"])
def test_a_signature_that_leaves_out_what_it_must_cover_is_refused(left_out: str) -> None:
    """Even where it is right for what it does cover: the rest could be anything."""
    request = sign()
    claim = read_claim(request)
    claim = replace(claim, signed_headers=tuple(name for name in claim.signed_headers if name != left_out))
    text = sigv4.string_to_sign(request, claim, hashlib.sha256(request.body).hexdigest())
    key = sigv4.day_key(SECRET, claim.date, claim.region, claim.service)
    claim = replace(claim, signature=hmac.new(key, text.encode(), hashlib.sha256).hexdigest())
    with pytest.raises(SignatureProblem) as caught:
        Verifier().check(request, claim, SECRET, datetime.now(UTC), FIVE_MINUTES)
    assert caught.value.fault is SignatureFault.INCOMPLETE
    assert left_out in caught.value.detail.lower()


def test_a_hash_that_is_not_the_bodys_is_named() -> None:
    """The signature is right, for another body."""
    request = sign(headers=JAVASCRIPT)
    with pytest.raises(SignatureProblem, match="SHA-256 of the request's body"):
        check(replace(request, body=b"another"))


def _header(name: str, change: Callable[[str], str]) -> Callable[[Request], Request]:
    return lambda request: replace(request, headers={**request.headers, name: change(request.headers[name])})


def _authorization(old: str, new: str) -> Callable[[Request], Request]:
    return _header("authorization", lambda text: text.replace(old, new, 1))


def _without(name: str) -> Callable[[Request], Request]:
    return lambda request: replace(request, headers={k: v for k, v in request.headers.items() if k != name})


def _turn(digit: str) -> str:
    return "0" if digit != "0" else "1"


MUTATIONS: dict[str, Callable[[Request], Request]] = {
    "method": lambda request: replace(request, method="PUT"),
    "path": lambda request: replace(request, path=request.path + "x"),
    "path case": lambda request: replace(request, path=request.path + "/A"),
    "query added": lambda request: replace(request, query=request.query + "&zz=1"),
    "query emptied": lambda request: replace(request, query=request.query + "&zz"),
    "body": lambda request: replace(request, body=request.body + b" "),
    "target": _header("x-amz-target", lambda text: text.replace("Describe", "Delete")),
    "content type": _header("content-type", lambda text: text + "x"),
    "host": _header("host", lambda text: "other.example"),
    "date": _header("x-amz-date", lambda text: text[:-2] + _turn(text[-2]) + "Z"),
    "signature": _header("authorization", lambda text: text[:-1] + _turn(text[-1])),
    "signature short": _header("authorization", lambda text: text[:-1]),
    "signature upper": _header("authorization", lambda text: text[:-64] + text[-64:].upper() + "A"),
    "region": _authorization("us-east-1", "us-east-2"),
    "service": _authorization("/aws4_request", "x/aws4_request"),
    "scope's day": _header("authorization", lambda text: text.replace("/20", "/19", 1)),
    "terminator": _authorization("aws4_request", "aws3_request"),
    "algorithm": _authorization("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA1"),
    "signed header dropped": _authorization("content-type;", ""),
    "host not signed": _authorization("host;", ""),
    "target not signed": _authorization(";x-amz-target", ""),
    "signed header gone": _without("content-type"),
    "no credential": _authorization("Credential=", "Credentials="),
    "no signature": _authorization("Signature=", "Sig="),
    "a part twice": _authorization("Credential=", "Credential=a, Credential="),
    "unsigned amz header": lambda request: replace(request, headers={**request.headers, "x-amz-extra": "1"}),
    "hash of another body": lambda request: replace(
        request, headers={**request.headers, "x-amz-content-sha256": hashlib.sha256(b"?").hexdigest()}
    ),
    "payload called unsigned": lambda request: replace(
        request, headers={**request.headers, "x-amz-content-sha256": "UNSIGNED-PAYLOAD"}, body=b"?"
    ),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
@settings(deadline=None, max_examples=8)
@given(request_=requests)
def test_one_change_anywhere_and_the_signature_does_not_hold(mutation: str, request_: Request) -> None:
    """Whatever a signature covers cannot be changed, and what it must cover cannot be left out."""
    changed = MUTATIONS[mutation](request_)
    assert changed != request_
    assert fault_of(changed) in {SignatureFault.MISMATCH, SignatureFault.INCOMPLETE, SignatureFault.SCOPE}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Action=GetCallerIdentity", "Action=GetSessionToken"),
        ("X-Amz-Expires=60", "X-Amz-Expires=61"),
        ("us-east-1", "us-east-2"),
        ("X-Amz-SignedHeaders=host", "X-Amz-SignedHeaders=host%3Bx-k"),
        ("X-Amz-Security-Token=t", "X-Amz-Security-Token=u"),
        ("X-Amz-Algorithm=AWS4-HMAC-SHA256", "X-Amz-Algorithm=none"),
        ("X-Amz-Expires=60", "X-Amz-Expires=604801"),
        ("X-Amz-Expires=60", "X-Amz-Expires=0"),
        ("X-Amz-Expires=60", "X-Amz-Expires=-1"),
        ("X-Amz-Expires=60&", ""),
        ("X-Amz-Date=", "X-Amz-Date=x"),
        ("X-Amz-Credential=", "X-Amz-Credential=&X-Amz-Credential="),
    ],
)
def test_one_change_and_a_presigned_request_does_not_hold(old: str, new: str) -> None:
    """The same for the query form."""
    request = presign("Action=GetCallerIdentity", token="t")
    assert old in request.query
    changed = replace(request, query=request.query.replace(old, new, 1))
    assert fault_of(changed) in {SignatureFault.MISMATCH, SignatureFault.INCOMPLETE}


def test_a_credential_of_another_day_is_named() -> None:
    """In AWS's words, so that whoever writes a signer finds the fault."""
    request = MUTATIONS["scope's day"](sign())
    with pytest.raises(SignatureProblem, match="Date in Credential scope does not match") as caught:
        read_claim(request)
    assert caught.value.fault is SignatureFault.SCOPE


def test_another_secret_does_not_fit() -> None:
    """The right key id with the wrong secret."""
    assert fault_of(sign(), secret="another") is SignatureFault.MISMATCH


def test_a_request_without_signature_is_told_from_a_broken_one() -> None:
    """Nothing at all is MISSING; another scheme, or both forms at once, is INCOMPLETE."""
    request = sign()
    assert fault_of(_without("authorization")(request)) is SignatureFault.MISSING
    assert (
        fault_of(replace(request, query="X-Amz-Date=20260101T000000Z&a=b", headers={}))
        is SignatureFault.MISSING
    )
    assert fault_of(_header("authorization", lambda _: "Basic YTpi")(request)) is SignatureFault.INCOMPLETE
    assert fault_of(_header("authorization", lambda _: "")(request)) is SignatureFault.INCOMPLETE
    assert fault_of(replace(request, query=presign("a=b").query)) is SignatureFault.INCOMPLETE


# Time.


def test_the_clock_may_be_off_by_the_tolerance_and_no_more() -> None:
    """Both ways; the sentence names all three times, as AWS's does."""
    request = sign()
    for minutes in (-4.9, 4.9):
        check(request, late=timedelta(minutes=minutes))
    for minutes in (-5.1, 5.1, 60 * 24 * 400):
        assert fault_of(request, late=timedelta(minutes=minutes)) is SignatureFault.SKEWED
    claim = replace(read_claim(request), timestamp=_at("20261201T120000Z"))
    with pytest.raises(SignatureProblem) as caught:
        Verifier().check(request, claim, SECRET, _at("20261201T121000Z"), FIVE_MINUTES)
    assert caught.value.detail == (
        "Signature expired: 20261201T120000Z is now earlier than 20261201T120500Z (20261201T121000Z - 5 min.)"
    )
    with pytest.raises(SignatureProblem) as caught:
        Verifier().check(request, claim, SECRET, _at("20261201T110000Z"), FIVE_MINUTES)
    assert caught.value.detail == (
        "Signature not yet current: 20261201T120000Z is still later than 20261201T110500Z "
        "(20261201T110000Z + 5 min.)"
    )


def test_ec2_allows_fifteen_minutes() -> None:
    """The tolerances of the services."""
    assert tolerance_of("ec2") == timedelta(minutes=15)
    assert {tolerance_of(name) for name in ("sts", "sagemaker", "sagemaker-runtime")} == {FIVE_MINUTES}


def test_a_presigned_request_ends_when_it_says() -> None:
    """Its own time counts, not the tolerance; before its beginning the tolerance does."""
    request = presign("Action=GetCallerIdentity", expires_s=3600)
    check(request, late=timedelta(seconds=3590))
    check(request, late=timedelta(minutes=-4.9))
    assert fault_of(request, late=timedelta(seconds=3602)) is SignatureFault.EXPIRED
    assert fault_of(request, late=timedelta(minutes=-5.1)) is SignatureFault.SKEWED


def test_a_date_that_is_none_is_refused() -> None:
    """No traceback for 30 February, letters, or a year that no calendar has."""
    request = sign()
    for text in ("20260230T000000Z", "x", "", "99999999T999999Z", "20260101T000000", "２0260101T000000Z"):
        assert (
            fault_of(_header("x-amz-date", lambda _, text=text: text)(request)) is SignatureFault.INCOMPLETE
        )
    no_date = _without("x-amz-date")(request)
    assert fault_of(no_date) is SignatureFault.INCOMPLETE
    for text in ("yesterday", "Mon, 99 Feb 2026 00:00:00 GMT", "x" * 5000):
        other = replace(no_date, headers={**no_date.headers, "date": text})
        assert fault_of(other) is SignatureFault.INCOMPLETE


@settings(deadline=None, max_examples=200)
@given(
    st.one_of(st.text(max_size=200), st.text("AWS4-HMACS256 Credential=/,;Signature0", max_size=200)),
    st.text(max_size=80),
)
def test_no_authorization_text_is_a_traceback(authorization: str, query: str) -> None:
    """Whatever is sent is a claim or a SignatureProblem."""
    request = Request("GET", "/", f"X-Amz-Signature={query}", {"authorization": authorization}, b"")
    for one in (request, replace(request, query=""), replace(request, headers={})):
        try:
            check(one)
        except SignatureProblem:
            continue
        raise AssertionError("a random text verified")


# The keeping of day keys.


def test_day_keys_are_kept_only_for_signatures_that_held_and_in_bounded_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stranger cannot fill the cache; its owner cannot make it grow without end."""
    monkeypatch.setattr(sigv4, "DAY_KEYS_MAX", 3)
    verifier = Verifier()
    request = sign()
    claim = read_claim(request)
    now = datetime.now(UTC)
    for number in range(10):
        with pytest.raises(SignatureProblem):
            verifier.check(request, replace(claim, region=f"r{number}"), SECRET, now, FIVE_MINUTES)
    assert verifier._keys == {}
    for service in ("sagemaker", "ec2", "sts", "iam", "s4"):
        one = sign(service=service)
        verifier.check(one, read_claim(one), SECRET, now, FIVE_MINUTES)
        verifier.check(one, read_claim(one), SECRET, now, FIVE_MINUTES)
    assert [key[3] for key in verifier._keys] == ["sts", "iam", "s4"]
