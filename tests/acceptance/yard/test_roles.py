"""Roles of a yard through stock clients: assumed, used across accounts, over, and refused."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from berth.terms.ids import SystemIds
from berth.yard.identity.roles import Role
from berth.yard.identity.sessions import begin_session
from berth.yard.testing.process import YardProcess

from .conftest import SMALL
from .test_sts import HEADER, VALUE, get

YARD = {"fleet": SMALL}
READ_ONLY = {
    "Version": "2012-10-17",
    "Statement": {"Effect": "Allow", "Action": "sagemaker:List*", "Resource": "*"},
}


@pytest.fixture(scope="module")
def arn(shared: YardProcess) -> str:
    """A role of another account, which the first one may assume."""
    shared.account("other")
    return shared.role("other", "reader", trust=["default"], external_id="xyz", policy=READ_ONLY)


def keys_of(yard: YardProcess, arn: str, **more: Any) -> dict[str, Any]:
    """Keys of a session called `ada`."""
    asked = {"RoleArn": arn, "RoleSessionName": "ada", "ExternalId": "xyz", **more}
    found: dict[str, Any] = yard.clients.sts.assume_role(**asked)["Credentials"]
    return found


def client(yard: YardProcess, service: str, keys: dict[str, Any], token: str | None = None) -> Any:
    """A stock client with a session's keys."""
    return boto3.client(
        service,  # type: ignore[call-overload]
        endpoint_url=yard.environment["AWS_ENDPOINT_URL"],
        region_name="us-east-1",
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=token or keys["SessionToken"],
    )


def code_of(call: Any) -> tuple[str, int]:
    """Code and status of a refusal."""
    with pytest.raises(ClientError) as refused:
        call()
    answer = refused.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


def test_a_session_acts_in_the_roles_account_with_the_roles_rights(shared: YardProcess, arn: str) -> None:
    """Who it is, what it may, what it may not; and what it began outlives a restart of the yard."""
    keys = keys_of(shared, arn)
    account = arn.split(":")[4]
    who = client(shared, "sts", keys).get_caller_identity()
    assert who["Arn"] == f"arn:aws:sts::{account}:assumed-role/reader/ada"
    assert who["UserId"].startswith("AROA")
    assert who["UserId"].endswith(":ada")
    assert abs(keys["Expiration"] - datetime.now(UTC) - timedelta(hours=1)) < timedelta(minutes=2)
    shared.restart()
    assert client(shared, "sagemaker", keys).list_training_plans()["TrainingPlanSummaries"] == []
    search = {
        "InstanceType": "ml.trn1.32xlarge",
        "InstanceCount": 1,
        "DurationHours": 24,
        "TargetResources": ["endpoint"],
    }
    sagemaker = client(shared, "sagemaker", keys)
    assert code_of(lambda: sagemaker.search_training_plan_offerings(**search)) == (
        "AccessDeniedException",
        400,
    )
    assert code_of(client(shared, "ec2", keys).describe_instances) == ("UnauthorizedOperation", 403)


def test_keys_of_a_session_are_nothing_without_its_token(shared: YardProcess, arn: str) -> None:
    """No token, a touched one, another session's, and a token with keys that are no session's."""
    keys, other = keys_of(shared, arn), keys_of(shared, arn)
    sts = client(shared, "sts", keys, keys["SessionToken"][:-8] + "AAAAAAA=")
    assert code_of(sts.get_caller_identity) == ("InvalidClientTokenId", 403)
    sts = client(shared, "sts", keys, other["SessionToken"])
    assert code_of(sts.get_caller_identity) == ("InvalidClientTokenId", 403)
    bare = client(shared, "sts", {**keys, "SessionToken": None})
    assert code_of(bare.get_caller_identity) == ("InvalidClientTokenId", 403)
    own = shared.environment
    first = {"AccessKeyId": own["AWS_ACCESS_KEY_ID"], "SecretAccessKey": own["AWS_SECRET_ACCESS_KEY"]}
    sts = client(shared, "sts", first, keys["SessionToken"])
    assert code_of(sts.get_caller_identity) == ("InvalidClientTokenId", 403)


@pytest.mark.parametrize(
    ("service", "call", "refusal"),
    [
        ("sts", "get_caller_identity", ("ExpiredToken", 403)),
        ("ec2", "describe_regions", ("RequestExpired", 400)),
        ("sagemaker", "list_training_plans", ("ExpiredTokenException", 400)),
    ],
)
def test_a_session_that_is_over_is_refused(
    shared: YardProcess, arn: str, service: str, call: str, refusal: tuple[str, int]
) -> None:
    """Each service in its own words, when a rehearsal is told so; keys of users do not end."""
    keys = keys_of(shared, arn)
    shared.fault("expired-session", times=None)
    assert code_of(getattr(client(shared, service, keys), call)) == refusal
    assert shared.clients.sts.get_caller_identity()


@pytest.mark.parametrize(
    ("began", "code"), [(timedelta(minutes=30), None), (timedelta(hours=1), "ExpiredToken")]
)
def test_a_session_ends_by_real_time(
    shared: YardProcess, arn: str, began: timedelta, code: str | None
) -> None:
    """One that began an hour ago, signed with the yard's own key, is over; the yard's clock stands still."""
    with contextlib.closing(sqlite3.connect(shared.folder.store)) as store:
        (key,) = store.execute("SELECT value FROM meta WHERE key = 'session-key'").fetchone()
        (role_id,) = store.execute("SELECT role_id FROM roles WHERE name = 'reader'").fetchone()
    role = Role(role_id, arn.split(":")[4], "other", "reader", ())
    made = begin_session(
        bytes.fromhex(key), role, "ada", now=datetime.now(UTC) - began, span=timedelta(hours=1), policy="",
        ids=SystemIds(),
    )  # fmt: skip
    keys = {"AccessKeyId": made.key.access_key_id, "SecretAccessKey": made.key.secret}
    sts = client(shared, "sts", keys, made.token)
    if code is None:
        assert sts.get_caller_identity()["Arn"].endswith("assumed-role/reader/ada")
    else:
        assert code_of(sts.get_caller_identity) == (code, 403)


def test_a_presigned_request_proves_a_session(shared: YardProcess, arn: str) -> None:
    """The token is among the signed parameters; without it nothing is proven."""
    keys = keys_of(shared, arn)
    url = f"{shared.environment['AWS_ENDPOINT_URL']}/?Action=GetCallerIdentity&Version=2011-06-15"
    request = AWSRequest(method="GET", url=url, headers={HEADER: VALUE})
    credentials = Credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
    SigV4QueryAuth(credentials, "sts", "us-east-1", expires=900).add_auth(request)
    status, body = get(str(request.url), {HEADER: VALUE})
    assert (status, "assumed-role/reader/ada" in body) == (200, True)
    bare = "&".join(part for part in str(request.url).split("&") if "Security-Token" not in part)
    assert get(bare, {HEADER: VALUE})[0] == 403


def test_whom_the_role_does_not_trust_is_refused(shared: YardProcess, arn: str) -> None:
    """Without the external id, by a user who lacks the right, and once the trust is withdrawn."""
    assert code_of(lambda: keys_of(shared, arn, ExternalId="abc")) == ("AccessDenied", 403)
    shared.user("default", "eve", policy=READ_ONLY)
    eve = shared.clients_of(None, "eve").sts
    asked = {"RoleArn": arn, "RoleSessionName": "eve", "ExternalId": "xyz"}
    assert code_of(lambda: eve.assume_role(**asked)) == ("AccessDenied", 403)
    with pytest.raises(
        ClientError, match=r"user/eve is not authorized to perform: sts:AssumeRole on resource"
    ):
        eve.assume_role(**asked)
    shared.role("other", "gone", trust=["default"])
    gone = arn.replace("reader", "gone")
    assert keys_of(shared, gone)
    shared.role("other", "gone", trust=["other"])
    assert code_of(lambda: keys_of(shared, gone)) == ("AccessDenied", 403)


def test_a_session_has_bounds(shared: YardProcess, arn: str) -> None:
    """12 hours at most, by botocore's own model of STS; what is too short no stock client sends."""
    too_long = {"DurationSeconds": 43_201}
    assert code_of(lambda: keys_of(shared, arn, **too_long)) == ("ValidationError", 400)
