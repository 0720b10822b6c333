"""Proofs of an identity: bound to what they approve, sent to the declared world's STS alone, never shown."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.aws.proofs import HEADER, Proof, _place, make_proof, read_proof, verify_proof
from berth.aws.session import Door, open_door
from berth.terms.outcomes import BerthError, ExitCode

HASH = "ab" * 32
APPROVES = f"{HASH} 228.77 USD"


class RealClock:
    """The machine's clock, moved by hand."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        """The present."""
        return datetime.now(UTC) + self.ahead

    def elapsed(self) -> float:
        """Not asked."""
        return 0.0

    def sleep(self, seconds: float) -> None:
        """Not asked."""


@pytest.fixture
def clock() -> RealClock:
    """The machine's clock."""
    return RealClock()


@pytest.fixture
def door(in_a_rehearsal: Callable[..., None], clock: RealClock) -> Door:
    """A door to the small yard, whose own clock is years off."""
    in_a_rehearsal()
    return open_door(profile=None, regions=("us-east-1",), environ=os.environ, clock=clock)


def refused(door: Door, proof: Proof) -> BerthError:
    """How verifying fails; whatever the reason, its words hold nothing of the proof."""
    with pytest.raises(BerthError) as caught:
        verify_proof(door, proof, APPROVES)
    said = f"{caught.value.message} {caught.value.next_step}"
    assert "X-Amz-" not in said
    signature = parse_qs(urlsplit(proof.url).query).get("X-Amz-Signature", ["-none-"])[0]
    assert signature not in said
    return caught.value


def changed(proof: Proof, old: str, new: str) -> Proof:
    """The proof with a part of its URL changed."""
    assert old in proof.url
    return Proof(proof.hash, proof.url.replace(old, new, 1))


def test_a_proof_signs_what_it_approves(door: Door, small_yard: Any) -> None:
    """The header is among those signed, the verifier sends its own value of it, STS tells who it was."""
    proof = make_proof(door, HASH, APPROVES)
    said = parse_qs(urlsplit(proof.url).query)
    assert said["X-Amz-SignedHeaders"] == [f"host;{HEADER}"]
    assert said["X-Amz-Expires"] == ["900"]
    proven = verify_proof(door, proof, APPROVES)
    assert proven.arn == "arn:aws:iam::111122223333:user/ada"
    kind, path, headers = small_yard.asked[-1]
    assert (kind, headers[HEADER]) == ("presigned", APPROVES)
    assert parse_qs(urlsplit(path).query) == said


def test_a_verified_proof_tells_the_yards_time(door: Door, small_yard: Any) -> None:
    """Whoever listens for long follows the yard's clock by the answers that it gets."""
    small_yard.time = "2026-12-02T09:00:00Z"
    verify_proof(door, make_proof(door, HASH, APPROVES), APPROVES)
    assert door.clock.now() == datetime(2026, 12, 2, 9, 0, tzinfo=UTC)


def test_making_one_sends_nothing(door: Door, small_yard: Any) -> None:
    """Signing is local."""
    before = len(small_yard.asked)
    make_proof(door, HASH, APPROVES)
    assert len(small_yard.asked) == before


def test_a_proof_is_sent_nowhere_else(door: Door, ear: Any, small_yard: Any) -> None:
    """Another host, port, scheme or path, or AWS from within a rehearsal: refused before anything is sent."""
    proof = make_proof(door, HASH, APPROVES)
    before = len(small_yard.asked)
    for place in (ear.url, "https://sts.amazonaws.com", small_yard.url.replace("http", "https")):
        error = refused(door, changed(proof, small_yard.url, place))
        assert error.exit_code is ExitCode.BAD_REQUEST
    refused(door, changed(proof, "/?Action", "/elsewhere?Action"))
    assert not ear.heard
    assert len(small_yard.asked) == before


def test_no_redirect_is_followed(door: Door, ear: Any, small_yard: Any) -> None:
    """An STS that sends one elsewhere proves nothing, and elsewhere hears nothing."""
    small_yard.redirect = f"{ear.url}/"
    error = refused(door, make_proof(door, HASH, APPROVES))
    assert error.exit_code is not ExitCode.DONE
    assert not ear.heard


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Action=GetCallerIdentity", "Action=AssumeRole"),
        ("Action=GetCallerIdentity", "Action=GetCallerIdentity&Action=AssumeRole"),
        ("Action=GetCallerIdentity", "Action=GetCallerIdentity&Extra=1"),
        ("Version=2011-06-15", "Version=2000-01-01"),
        ("host%3Bx-berth-approval", "host"),
        ("host%3Bx-berth-approval", "host%3Bx-berth-approval%3Bx-other"),
        ("sts%2Faws4_request", "ec2%2Faws4_request"),
        ("us-east-1%2Fsts", "evil.example%2Fsts"),
        ("Algorithm=AWS4-HMAC-SHA256", "Algorithm=NONE"),
        ("X-Amz-Expires=900", "X-Amz-Expires=soon"),
        ("X-Amz-Signature=", "X-Amz-Other="),
        ("X-Amz-Signature=", "X-Amz-Signature=\ud800"),
        ("X-Amz-Signature=", "X-Amz-Signature=%C3%A4"),
    ],
)
def test_a_proof_of_something_else_is_none(door: Door, small_yard: Any, old: str, new: str) -> None:
    """Another operation, more parameters, the header not signed, letters of no URL: nothing is sent."""
    before = len(small_yard.asked)
    refused(door, changed(make_proof(door, HASH, APPROVES), old, new))
    assert len(small_yard.asked) == before


def test_keys_of_the_other_world_are_not_sent(door: Door, small_yard: Any) -> None:
    """A proof signed with keys of AWS is not shown to a yard."""
    before = len(small_yard.asked)
    error = refused(door, changed(make_proof(door, HASH, APPROVES), "Credential=YARD", "Credential=AKIA"))
    assert error.exit_code is ExitCode.CREDENTIALS
    assert len(small_yard.asked) == before


@pytest.mark.parametrize(
    ("minutes", "code"), [(14, None), (15, ExitCode.DECISION_NEEDED), (-6, ExitCode.BAD_REQUEST)]
)
def test_a_proof_lives_fifteen_minutes(
    door: Door, small_yard: Any, clock: RealClock, minutes: int, code: ExitCode | None
) -> None:
    """On the machine's clock, whatever the yard's says; afterwards the approver is asked again."""
    proof = make_proof(door, HASH, APPROVES)
    clock.ahead = timedelta(minutes=minutes)
    if code is None:
        verify_proof(door, proof, APPROVES)
        return
    before = len(small_yard.asked)
    error = refused(door, proof)
    assert error.exit_code is code
    assert len(small_yard.asked) == before
    if code is ExitCode.DECISION_NEEDED:
        assert "ask the approver again" in str(error.next_step)


ERROR = "<ErrorResponse><Error><Code>{}</Code><Message>m</Message></Error></ErrorResponse>"


@pytest.mark.parametrize(
    ("status", "text", "code"),
    [
        (403, ERROR.format("SignatureDoesNotMatch"), ExitCode.CREDENTIALS),
        (403, ERROR.format("ExpiredToken"), ExitCode.CREDENTIALS),
        (400, ERROR.format("Throttling"), ExitCode.INCOMPLETE),
        (500, ERROR.format("InternalFailure"), ExitCode.INCOMPLETE),
        (502, "<html>", ExitCode.INCOMPLETE),
        (200, "not xml", ExitCode.INCOMPLETE),
        (200, "<GetCallerIdentityResponse/>", ExitCode.INCOMPLETE),
        (403, "", ExitCode.INCOMPLETE),
    ],
)
def test_only_a_plain_yes_of_sts_counts(
    door: Door, small_yard: Any, status: int, text: str, code: ExitCode
) -> None:
    """Refused, out of order, damaged or silent about who: it approves nothing."""
    small_yard.answers["presigned"] = (status, text)
    assert refused(door, make_proof(door, HASH, APPROVES)).exit_code is code


def test_a_proof_hides_itself(door: Door) -> None:
    """Neither `repr` nor a log line of it shows the URL; its text comes back whole."""
    proof = make_proof(door, HASH, APPROVES)
    assert "X-Amz" not in repr(proof)
    assert read_proof(proof.text()) == proof


@settings(deadline=None, max_examples=200)
@given(
    st.one_of(
        st.text(max_size=200),
        st.dictionaries(
            st.sampled_from(["schema", "hash", "url", "approval"]),
            st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=80), st.just(HASH)),
        ).map(json.dumps),
    )
)
def test_whatever_is_no_proof_is_refused_in_the_same_words(text: str) -> None:
    """No text raises anything else, and no refusal repeats any of it."""
    try:
        proof = read_proof(text)
    except BerthError as error:
        assert error.exit_code is ExitCode.BAD_REQUEST  # noqa: PT017 - either end is right
        assert error.message.startswith("this is no proof of an approval")  # noqa: PT017
    else:
        assert set(json.loads(text)) == {"schema", "hash", "url"}
        assert proof.hash == HASH


def test_a_buyer_of_another_account_does_not_pay(door: Door, small_yard: Any, tmp_path: Any) -> None:
    """The buyer profile's account must be the caller's; then it alone pays, and everything else stays."""
    file = tmp_path / "credentials"
    file.write_text("[buyer]\naws_access_key_id = YARD2\naws_secret_access_key = x\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
        status, text = small_yard.answers["GetCallerIdentity"]
        small_yard.answers["GetCallerIdentity"] = (status, text.replace("111122223333", "444455556666"))
        with pytest.raises(BerthError, match="444455556666") as caught:
            door.pay_with("buyer")
        assert caught.value.exit_code is ExitCode.CREDENTIALS
        small_yard.answers["GetCallerIdentity"] = (status, text.replace("user/ada", "role/buyer"))
        door.pay_with("buyer")
        assert door.payer.arn.endswith("role/buyer")
        assert door.identity.arn.endswith("user/ada")
        with pytest.raises(Exception, match="InvalidAction"):
            door.buyer("us-east-1", "ec2").purchase_capacity_block(
                CapacityBlockOfferingId="cb-1", InstancePlatform="Linux/UNIX"
            )
        assert "Credential=YARD2/" in small_yard.asked[-1][2]["Authorization"]
        door.reader("ec2", "us-east-1").describe_availability_zones()
        assert "Credential=YARD0000000000000001/" in small_yard.asked[-1][2]["Authorization"]


TOKEN = "a-session-token-that-nobody-may-see"


@pytest.fixture
def in_a_session(in_a_rehearsal: Callable[..., None], clock: RealClock) -> Door:
    """A door opened with keys of a session."""
    in_a_rehearsal(AWS_SESSION_TOKEN=TOKEN)
    return open_door(profile=None, regions=("us-east-1",), environ=os.environ, clock=clock)


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.floats(0, 1), cut=st.integers(0, 30), put=st.text(max_size=10))
def test_no_damage_makes_a_proof_tell_its_secrets(
    in_a_session: Door, where: float, cut: int, put: str
) -> None:
    """Whatever part of a proof is lost or replaced: no error repeats signature, key, token or URL."""
    door = in_a_session
    proof = make_proof(door, HASH, APPROVES)
    assert TOKEN in proof.url
    at = int(where * len(proof.url))
    try:
        verify_proof(door, Proof(HASH, proof.url[:at] + put + proof.url[at + cut :]), APPROVES)
    except BerthError as error:
        said = f"{error.message} {error.next_step}"
        said += "".join(map(str, (error.__cause__ or "", error.__context__ or "")))
        values = [value for found in parse_qs(urlsplit(proof.url).query).values() for value in found]
        secrets = [TOKEN, "X-Amz-", *(value for value in values if len(value) > 24)]
        assert not [secret for secret in secrets if secret in said]


def in_aws(region: str) -> tuple[Any, Any]:
    """A door to AWS and its STS of a Region, as far as places are asked for; nothing can be sent."""
    identity = SimpleNamespace(rehearsal=None)
    endpoint = f"https://sts.{region}.amazonaws.com"
    return SimpleNamespace(identity=identity, regions=("us-east-1",)), SimpleNamespace(
        meta=SimpleNamespace(endpoint_url=endpoint, region_name=region)
    )


@pytest.mark.parametrize(
    ("region", "url"),
    [
        ("us-east-1", "https://sts.us-east-1.amazonaws.com/?x"),
        ("us-east-1", "https://sts.amazonaws.com/?x"),
        ("eu-west-1", "https://sts.eu-west-1.amazonaws.com/?x"),
    ],
)
def test_at_aws_a_proof_goes_to_the_sts_of_its_region(region: str, url: str) -> None:
    """The Region's endpoint, and for us-east-1 the old one of all Regions."""
    door, sts = in_aws(region)
    assert _place(door, sts, url, region) == url.removesuffix("/?x")


@pytest.mark.parametrize(
    ("region", "url"),
    [
        ("us-east-1", "https://abc123.execute-api.us-east-1.amazonaws.com/?x"),
        ("us-east-1", "https://bucket.s3.amazonaws.com/?x"),
        ("us-east-1", "https://sts.us-east-1.amazonaws.com.evil.example/?x"),
        ("us-east-1", "https://user@sts.us-east-1.amazonaws.com/?x"),
        ("us-east-1", "https://sts.us-east-1.amazonaws.com:8443/?x"),
        ("us-east-1", "http://sts.us-east-1.amazonaws.com/?x"),
        ("us-east-1", "https://sts.eu-west-1.amazonaws.com/?x"),
        ("eu-west-1", "https://sts.amazonaws.com/?x"),
        ("cn-north-1", "https://sts.cn-north-1.amazonaws.com/?x"),
    ],
)
def test_at_aws_a_proof_goes_to_no_other_host(region: str, url: str) -> None:
    """Other hosts of AWS may be anybody's; so may another port, another scheme, another partition."""
    door, sts = in_aws(region)
    with pytest.raises(BerthError) as caught:
        _place(door, sts, url, region)
    assert caught.value.exit_code is ExitCode.BAD_REQUEST
