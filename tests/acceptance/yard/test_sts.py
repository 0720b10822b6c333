"""STS by presigned GET, as stock signers make it: with further headers signed, it proves more than who."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from berth.yard.testing.process import YardProcess

HEADER = "x-berth-approval"
VALUE = "ab" * 32 + " 228.77 USD"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardProcess]:
    """One yard for the tests of this file."""
    with YardProcess(tmp_path_factory.mktemp("y")) as yard:
        yield yard


def presigned(yard: YardProcess, headers: dict[str, str], *, expires: int = 900, secret: str = "") -> str:
    """A GetCallerIdentity that botocore's own signer has presigned, with these headers among the signed."""
    keys = yard.environment
    url = f"{keys['AWS_ENDPOINT_URL']}/?Action=GetCallerIdentity&Version=2011-06-15"
    request = AWSRequest(method="GET", url=url, headers=headers)
    credentials = Credentials(keys["AWS_ACCESS_KEY_ID"], secret or keys["AWS_SECRET_ACCESS_KEY"])
    SigV4QueryAuth(credentials, "sts", "us-east-1", expires=expires).add_auth(request)
    return str(request.url)


def get(url: str, headers: dict[str, str]) -> tuple[int, str]:
    """One GET; status and body."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_a_presigned_request_with_a_header_of_ones_own_is_answered(here: YardProcess) -> None:
    """The signer's ARN comes back to whoever sends the signed header along."""
    status, body = get(presigned(here, {HEADER: VALUE}), {HEADER: VALUE})
    assert status == 200
    assert here.clients.sts.get_caller_identity()["Arn"] in body


def test_the_client_makes_the_same(here: YardProcess) -> None:
    """What boto3 presigns by itself, without further headers, is answered by GET as well."""
    url = here.clients.sts.generate_presigned_url("get_caller_identity", HttpMethod="GET")
    assert get(url, {})[0] == 200


@pytest.mark.parametrize(
    "sent",
    [{}, {HEADER: VALUE.replace("228.77", "228.78")}, {HEADER: VALUE.replace("ab", "cd", 1)}, {HEADER: ""}],
)
def test_another_value_of_the_signed_header_does_not_hold(here: YardProcess, sent: dict[str, str]) -> None:
    """Left out, of another amount, of another order: SignatureDoesNotMatch."""
    status, body = get(presigned(here, {HEADER: VALUE}), sent)
    assert status == 403
    assert "SignatureDoesNotMatch" in body


def test_a_header_that_was_not_signed_proves_nothing(here: YardProcess) -> None:
    """It passes, as at AWS: whoever verifies has to look whether it is among the signed ones."""
    url = presigned(here, {})
    assert "x-berth-approval" not in url
    assert get(url, {HEADER: VALUE})[0] == 200


def test_one_that_is_over_is_refused(here: YardProcess) -> None:
    """After its time, and with another's secret."""
    long_ago = datetime.now(UTC) - timedelta(minutes=16)
    with mock.patch("botocore.auth.get_current_datetime", return_value=long_ago.replace(tzinfo=None)):
        url = presigned(here, {HEADER: VALUE})
    status, body = get(url, {HEADER: VALUE})
    assert status in {400, 403}
    assert "expired" in body
    assert get(presigned(here, {HEADER: VALUE}, secret="another"), {HEADER: VALUE})[0] == 403


def test_a_session_token_that_nobody_gave_is_refused(here: YardProcess) -> None:
    """The yard's keys have no session; a token in the query is not passed over."""
    url: Any = presigned(here, {HEADER: VALUE}) + "&X-Amz-Security-Token=x"
    assert get(url, {HEADER: VALUE})[0] == 403


def test_the_host_is_part_of_the_proof(here: YardProcess, tmp_path: Path) -> None:
    """A proof for one yard does not hold at another, even with the same keys told."""
    with YardProcess(tmp_path / "other") as other:
        url = presigned(here, {HEADER: VALUE}).replace(
            here.environment["AWS_ENDPOINT_URL"], other.environment["AWS_ENDPOINT_URL"]
        )
        assert get(url, {HEADER: VALUE})[0] == 403
