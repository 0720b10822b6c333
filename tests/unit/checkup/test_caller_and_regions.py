"""Who acts, whose clock is right, which Regions answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from berth.aws.identity import Identity
from berth.aws.refusals import Kind, Refusal
from berth.checkup.caller import clock_finding, identity_findings, no_identity
from berth.checkup.findings import State
from berth.checkup.regions import RegionLook, region_findings
from berth.terms.outcomes import BerthError, ExitCode

from .conftest import ACCOUNT

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


def identity(arn: str = f"arn:aws:iam::{ACCOUNT}:user/ada") -> Identity:
    """A caller on AWS."""
    return Identity(ACCOUNT, arn, ("us-east-1",), None)


def test_the_root_user_is_warned_of_and_another_account_is_missing() -> None:
    """Root may do everything, so nothing of Berth's limits would hold it."""
    states = [one.state for one in identity_findings(identity(f"arn:aws:iam::{ACCOUNT}:root"), None)]
    assert states == [State.OK, State.OK, State.WARNING]
    pinned = identity_findings(identity(), "999999999999")[-1]
    assert (pinned.state, pinned.what) == (State.MISSING, "account")
    assert [one.state for one in identity_findings(identity(), ACCOUNT)] == [State.OK, State.OK]


@pytest.mark.parametrize(
    ("ahead", "state", "said"),
    [
        (timedelta(seconds=1), State.OK, "within a minute"),
        (timedelta(seconds=-59), State.OK, "within a minute"),
        (timedelta(minutes=2), State.WARNING, "2 min ahead of sts's"),
        (timedelta(minutes=-4, seconds=-59), State.WARNING, "behind sts's"),
        (timedelta(minutes=5), State.MISSING, "signed calls are refused"),
        (timedelta(minutes=-5), State.MISSING, "5 min behind"),
        (timedelta(days=1), State.MISSING, "ahead"),
    ],
)
def test_the_clock_is_wrong_from_five_minutes_on(ahead: timedelta, state: State, said: str) -> None:
    """Either way; the answer that lies nearest counts, since what took long to arrive seems late."""
    finding = clock_finding([("ec2", ahead + timedelta(minutes=9)), ("sts", ahead)][-1:], NOW)
    assert finding.state is state
    assert said in finding.said
    assert clock_finding([("ec2", timedelta(minutes=9)), ("sts", timedelta(0))], NOW).state is State.OK


def test_without_any_answer_the_clock_is_unknown() -> None:
    """And says how to compare it."""
    finding = clock_finding([], NOW)
    assert finding.state is State.UNKNOWN
    assert finding.todo is not None
    assert "date -u" in finding.todo


def test_an_expired_login_names_its_renewal_unless_the_clock_is_to_blame() -> None:
    """No login is renewed for a clock that makes every signature fail."""
    problem = BerthError(ExitCode.CREDENTIALS, "no usable AWS login: ExpiredToken", "aws sso login")
    right, wrong = (clock_finding([("sts", timedelta(minutes=m))], NOW) for m in (0, 9))
    assert (no_identity(problem, right).state, no_identity(problem, right).todo) == (
        State.MISSING, "aws sso login",
    )  # fmt: skip
    assert no_identity(problem, wrong).todo is None
    silent = BerthError(ExitCode.INCOMPLETE, "could not be asked")
    assert no_identity(silent, right).state is State.UNKNOWN


OPT_IN_REQUIRED = Refusal(Kind.NOT_ALLOWED, "OptInRequired", "not subscribed", False)
NO_ANSWER = Refusal(Kind.UNREACHABLE, "EndpointConnectionError", "could not connect", False)
STATUSES = {"us-east-1": "opt-in-not-required", "ap-south-2": "not-opted-in", "xx-new-1": "opted-in"}


@pytest.mark.parametrize(
    ("region", "look", "state", "said", "todo"),
    [
        ("us-east-1", RegionLook("us-east-1", frozenset({"use1-az1"})), State.OK, "1 zone,", ""),
        ("xx-new-1", RegionLook("xx-new-1", frozenset({"a"})), State.OK, "opted-in", ""),
        ("ap-south-2", None, State.MISSING, "not enabled", "enable-region"),
        ("us-esat-1", RegionLook("us-esat-1", None, NO_ANSWER), State.MISSING, "us-east-1", "Regions"),
        ("eu-west-1", RegionLook("eu-west-1", None, NO_ANSWER), State.UNKNOWN, "could not", "network"),
        ("me-south-1", RegionLook("me-south-1", None, OPT_IN_REQUIRED), State.MISSING, "enabled", "enable"),
        ("eu-west-1", None, State.UNKNOWN, "interrupted", "ask again"),
    ],
)  # fmt: skip
def test_how_a_region_stands(
    region: str, look: RegionLook | None, state: State, said: str, todo: str
) -> None:
    """Enabled and answering; not enabled; mistyped; silent."""
    looks = {region: look} if look is not None else {}
    (finding,) = region_findings([region], STATUSES, looks)
    assert finding.state is state
    assert said in finding.said
    assert todo in (finding.todo or "")


def test_a_list_of_regions_that_could_not_be_read_hides_no_region() -> None:
    """Then what each Region itself answers counts."""
    (finding,) = region_findings(
        ["us-east-1"], "AccessDenied", {"us-east-1": RegionLook("us-east-1", frozenset())}
    )
    assert finding.state is State.OK
    assert finding.facts["opt_in"] is None
