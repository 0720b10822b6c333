"""Roles at the door: assumed through guarded clients of the declared world, or told in words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import CredentialRetrievalError

from berth.aws.guards import Power
from berth.aws.permissions import SENT
from berth.aws.roles import RoleToAssume, check_answer
from berth.aws.session import Door, open_door
from berth.terms.clock import SystemClock
from berth.terms.outcomes import BerthError, ExitCode

from .conftest import ACCOUNT

Surroundings = Callable[..., None]
ROLE = "arn:aws:iam::444455556666:role/buyer"
SESSION = "arn:aws:sts::444455556666:assumed-role/buyer/berth"
SECRET, TOKEN = "a-secret-that-nobody-tells", "a-token-that-nobody-tells"


def answer(*, key: str = "YARDASIA0000000000001", until: datetime | None = None) -> str:
    """What STS answers."""
    ends = (until or datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return (
        '<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>'
        f"<AssumedRoleUser><AssumedRoleId>AROA1:berth</AssumedRoleId><Arn>{SESSION}</Arn></AssumedRoleUser>"
        f"<Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>"
        f"<SessionToken>{TOKEN}</SessionToken><Expiration>{ends}</Expiration></Credentials>"
        "</AssumeRoleResult></AssumeRoleResponse>"
    )


def refusal_of(code: str) -> str:
    """An answer of STS that is a refusal."""
    return (
        '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>'
        f"<Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"
    )


def opened(role: RoleToAssume | None = None, profile: str | None = None) -> Door:
    """The door, in a role."""
    import os

    return open_door(
        profile=profile, regions=("us-east-1",), environ=os.environ, clock=SystemClock(), role=role
    )


def test_a_client_that_assumes_can_do_nothing_else_and_no_other_can_assume() -> None:
    """One call, one power."""
    assert [name for name in SENT if Power.ASSUME.allows(name)] == ["AssumeRole"]
    others = [power for power in Power if power is not Power.ASSUME]
    assert [power for power in others if power.allows("AssumeRole")] == []


def test_a_role_is_assumed_with_the_callers_keys_and_acts_from_then_on(
    in_a_rehearsal: Surroundings, small_yard: Any
) -> None:
    """AssumeRole with the external id once, then everything with the session's token, identity first."""
    in_a_rehearsal()
    small_yard.answers["AssumeRole"] = (200, answer())
    door = opened(RoleToAssume(ROLE, "cluster-7"))
    door.reader("ec2", "us-east-1").describe_availability_zones()
    assert small_yard.operations() == ["AssumeRole", "GetCallerIdentity", "DescribeAvailabilityZones"]
    (_, body, headers), *later = small_yard.asked
    assert "ExternalId=cluster-7" in body
    assert "RoleSessionName=berth" in body
    lower = [{name.lower(): value for name, value in one[2].items()} for one in small_yard.asked]
    assert "x-amz-security-token" not in lower[0]
    assert [one["x-amz-security-token"] for one in lower[1:]] == [TOKEN, TOKEN]
    assert len(later) == 2
    assert "YARD0000000000000001/" in str(headers)


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        (403, "AccessDenied", ExitCode.CREDENTIALS),
        (403, "ExpiredToken", ExitCode.CREDENTIALS),
        (400, "Throttling", ExitCode.THROTTLED),
    ],
)
def test_a_role_that_is_refused_is_named(
    status: int, code: str, exit_code: ExitCode, in_a_rehearsal: Surroundings, small_yard: Any
) -> None:
    """What STS said, and of which role."""
    in_a_rehearsal()
    small_yard.answers["AssumeRole"] = (status, refusal_of(code))
    with pytest.raises(BerthError, match=f"the role {ROLE} could not be assumed: {code}") as refused:
        opened(RoleToAssume(ROLE))
    assert refused.value.exit_code is exit_code
    assert ("berth doctor NEED" in (refused.value.next_step or "")) is (code == "AccessDenied")


def test_keys_of_aws_are_not_taken_from_a_yard(in_a_rehearsal: Surroundings, small_yard: Any) -> None:
    """A yard's sessions are known by their letters like all its keys; others are never sent to it."""
    in_a_rehearsal()
    small_yard.answers["AssumeRole"] = (200, answer(key="ASIA0000000000000001"))
    with pytest.raises(BerthError, match="not the yard's") as refused:
        opened(RoleToAssume(ROLE))
    assert refused.value.exit_code is ExitCode.CREDENTIALS
    assert small_yard.operations() == ["AssumeRole"]


def test_keys_that_are_over_when_they_come_are_told(in_a_rehearsal: Surroundings, small_yard: Any) -> None:
    """This machine's clock is ahead: words, and no fault of ours."""
    in_a_rehearsal()
    small_yard.answers["AssumeRole"] = (200, answer(until=datetime.now(UTC) - timedelta(seconds=1)))
    with pytest.raises(BerthError, match="over by this machine's clock") as refused:
        opened(RoleToAssume(ROLE))
    assert SECRET not in str(refused.value)


def test_a_rehearsal_asks_no_program_for_a_source(
    in_a_rehearsal: Surroundings, small_yard: Any, tmp_path: Path
) -> None:
    """A source profile with `credential_process` or single sign-on stays unasked."""
    ran = tmp_path / "ran"
    config = tmp_path / "config"
    config.write_text(
        f"[profile buyer]\nrole_arn = {ROLE}\nsource_profile = program\n\n"
        f"[profile program]\ncredential_process = touch {ran}\n"
    )
    in_a_rehearsal(AWS_CONFIG_FILE=str(config))
    with pytest.raises(BerthError, match="program"):
        opened(profile="buyer")
    assert not ran.exists()
    assert small_yard.operations() == []


@pytest.mark.parametrize("missing", ["AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"])
def test_an_answer_that_lacks_a_member_holds_nothing_of_it(missing: str) -> None:
    """The member is named, the others are not told."""
    keys: dict[str, Any] = {
        "AccessKeyId": "YARDASIA1", "SecretAccessKey": SECRET, "SessionToken": TOKEN,
        "Expiration": datetime.now(UTC) + timedelta(hours=1),
    }  # fmt: skip
    check_answer({"Credentials": keys})
    check_answer({"Error": {"Code": "AccessDenied"}})
    del keys[missing]
    for parsed in ({"Credentials": keys}, {}, {"Credentials": "never-heard-of"}):
        with pytest.raises(CredentialRetrievalError, match=missing) as refused:
            check_answer(parsed)
        assert SECRET not in str(refused.value)
        assert TOKEN not in str(refused.value)


def test_the_door_is_the_roles_and_not_the_callers(in_a_rehearsal: Surroundings, small_yard: Any) -> None:
    """The identity is what STS says of the session's keys."""
    in_a_rehearsal()
    small_yard.answers["AssumeRole"] = (200, answer())
    status, text = small_yard.answers["GetCallerIdentity"]
    told = text.replace(f"arn:aws:iam::{ACCOUNT}:user/ada", SESSION).replace(ACCOUNT, "444455556666")
    small_yard.answers["GetCallerIdentity"] = (status, told)
    door = opened(RoleToAssume(ROLE))
    assert (door.identity.account, door.identity.role) == ("444455556666", "role buyer")
