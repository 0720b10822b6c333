"""The door: two worlds are never mixed, and what is refused was not sent anywhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from berth.aws.guards import PAID as PAID_CALLS
from berth.aws.guards import Power
from berth.aws.session import Door, open_door
from berth.aws.worlds import check_endpoints, declared_yard, is_aws
from berth.aws.yard_clock import FollowingClock
from berth.terms.clock import SystemClock
from berth.terms.outcomes import BerthError, ExitCode

Surroundings = Callable[..., None]


def opened(profile: str | None = None, regions: tuple[str, ...] = ("us-east-1",)) -> Door:
    """The door of the present environment."""
    return open_door(profile=profile, regions=regions, environ=os.environ, clock=SystemClock())


def refusal(**options: Any) -> BerthError:
    """The error with which the door stays shut."""
    with pytest.raises(BerthError) as found:
        opened(**options)
    return found.value


YARD = "http://127.0.0.1:4599"
S3 = "http://127.0.0.1:4600"
# What the environment says (EAR stands for a place that must hear nothing), and what must be said of it.
MIXED = [
    ({"AWS_ENDPOINT_URL": "EAR"}, "BERTH_YARD declares no yard"),
    ({"AWS_ENDPOINT_URL_SAGEMAKER": "EAR"}, "BERTH_YARD declares no yard"),
    ({"AWS_ENDPOINT_URL_S3": "EAR"}, "BERTH_YARD declares no yard"),
    ({"AWS_ENDPOINT_URL_SSO": "EAR"}, "BERTH_YARD declares no yard"),
    ({"AWS_ENDPOINT_URL": "http://sagemaker.us-east-1.amazonaws.com"}, "BERTH_YARD declares no yard"),
    ({"AWS_ENDPOINT_URL": "https://amazonaws.com.evil.example"}, "BERTH_YARD declares no yard"),
    ({"BERTH_YARD": "EAR"}, "endpoints are mixed"),
    ({"BERTH_YARD": "EAR", "AWS_ENDPOINT_URL_SAGEMAKER": "EAR"}, "endpoints are mixed"),
    ({"BERTH_YARD": "EAR", "AWS_ENDPOINT_URL": YARD}, "endpoints are mixed"),
    ({"BERTH_YARD": "EAR", "AWS_ENDPOINT_URL": "EAR", "AWS_ENDPOINT_URL_S3": S3}, "but s3 in us-east-1"),
    ({"BERTH_YARD": "EAR " + S3, "AWS_ENDPOINT_URL": S3}, "endpoints are mixed"),
    (
        {"BERTH_YARD": "EAR", "AWS_ENDPOINT_URL": "EAR", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is set",
    ),
    (
        {"AWS_ENDPOINT_URL": "EAR", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "1"},
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS is set",
    ),
    ({"BERTH_YARD": "ear"}, "is not a URL like http://127.0.0.1:4599"),
    ({"BERTH_YARD": "ftp://127.0.0.1"}, "is not a URL like"),
    ({"BERTH_YARD": "http://10.0.0.7:4599"}, "keys and data would travel in clear"),
    ({"BERTH_YARD": "https://sts.us-east-1.amazonaws.com"}, "is AWS, which is no yard"),
    ({"BERTH_YARD": "EAR EAR EAR"}, "BERTH_YARD holds 3 words"),
]


@pytest.mark.parametrize(("variables", "said"), MIXED, ids=[str(n) for n in range(len(MIXED))])
def test_mixed_endpoints_are_refused_and_nothing_is_sent(
    variables: dict[str, str], said: str, surroundings: Surroundings, ear: Any
) -> None:
    """Every mixture of worlds ends with exit code 20 before anything leaves, whatever keys there are."""
    keys = {"AWS_ACCESS_KEY_ID": "YARD1", "AWS_SECRET_ACCESS_KEY": "x"}
    surroundings(**keys, **{name: value.replace("EAR", ear.url) for name, value in variables.items()})
    error = refusal()
    assert error.exit_code is ExitCode.BAD_REQUEST
    assert said in error.message
    assert "nothing was sent" in error.message
    assert not ear.heard


def test_a_profile_that_ignores_endpoints_is_refused(
    surroundings: Surroundings, ear: Any, tmp_path: Path
) -> None:
    """The setting may also stand in the configuration file; the comparison of built clients finds it."""
    config = tmp_path / "config"
    config.write_text("[default]\nignore_configured_endpoint_urls = true\n")
    surroundings(
        AWS_CONFIG_FILE=str(config), BERTH_YARD=ear.url, AWS_ENDPOINT_URL=ear.url,
        AWS_ACCESS_KEY_ID="YARD1", AWS_SECRET_ACCESS_KEY="x",
    )  # fmt: skip
    assert "endpoints are mixed" in refusal().message
    assert not ear.heard


def test_an_endpoint_in_a_profile_is_refused(surroundings: Surroundings, ear: Any, tmp_path: Path) -> None:
    """A local emulator configured in a profile is no yard."""
    config = tmp_path / "config"
    config.write_text(
        f"[profile p]\nendpoint_url = {ear.url}\naws_access_key_id = A\naws_secret_access_key = b\n"
    )
    surroundings(AWS_CONFIG_FILE=str(config))
    assert "speaks to AWS, but ec2 in us-east-1 would go to" in refusal(profile="p").message
    assert not ear.heard


def test_a_yard_is_never_shown_other_keys(surroundings: Surroundings, ear: Any) -> None:
    """Keys without the yard's prefix stay at home."""
    surroundings(
        BERTH_YARD=ear.url, AWS_ENDPOINT_URL=ear.url, AWS_ACCESS_KEY_ID="AKIAIOSFODNN7EXAMPLE",
        AWS_SECRET_ACCESS_KEY="x",
    )  # fmt: skip
    error = refusal()
    assert error.exit_code is ExitCode.CREDENTIALS
    assert "never shown keys of AWS" in error.message
    assert error.next_step == 'eval "$(berth yard env)"'
    assert not ear.heard


def test_aws_is_never_shown_a_yards_keys(surroundings: Surroundings, ear: Any) -> None:
    """A yard's key without a declared yard is refused before the credential is used."""
    surroundings(AWS_ACCESS_KEY_ID="YARD1", AWS_SECRET_ACCESS_KEY="x")
    error = refusal()
    assert error.exit_code is ExitCode.CREDENTIALS
    assert "belong to a yard" in error.message
    assert not ear.heard


def test_a_rehearsal_never_asks_the_metadata_service(surroundings: Surroundings, ear: Any) -> None:
    """Without keys for the yard nothing looks for some: no metadata, no container endpoint, no program."""
    surroundings(
        BERTH_YARD=ear.url, AWS_ENDPOINT_URL=ear.url, AWS_EC2_METADATA_DISABLED="false",
        AWS_EC2_METADATA_SERVICE_ENDPOINT=ear.url, AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{ear.url}/creds",
    )  # fmt: skip
    error = refusal()
    assert error.exit_code is ExitCode.CREDENTIALS
    assert "no keys for the yard" in error.message
    assert not ear.heard


def test_an_expired_login_names_the_command_that_renews_it(
    surroundings: Surroundings, ear: Any, tmp_path: Path
) -> None:
    """A profile of single sign-on without a valid token: `aws sso login --profile NAME`."""
    config = tmp_path / "config"
    config.write_text(
        "[profile lab]\nsso_session = s\nsso_account_id = 111122223333\nsso_role_name = r\n"
        "[sso-session s]\nsso_region = us-east-1\nsso_start_url = https://example.awsapps.com/start\n"
    )
    surroundings(AWS_CONFIG_FILE=str(config), HOME=str(tmp_path))
    error = refusal(profile="lab")
    assert error.exit_code is ExitCode.CREDENTIALS
    assert error.next_step == "aws sso login --profile lab"
    assert not ear.heard


@pytest.mark.parametrize(("profile", "said"), [("nobody", "nobody"), (None, "no AWS credentials were found")])
def test_missing_keys_say_so(profile: str | None, said: str, surroundings: Surroundings, ear: Any) -> None:
    """An unknown profile, and nothing at all."""
    surroundings()
    error = refusal(profile=profile)
    assert error.exit_code is ExitCode.CREDENTIALS
    assert said in error.message
    assert not ear.heard


def test_without_any_region_it_asks_for_one(surroundings: Surroundings) -> None:
    """Neither need nor session names a Region."""
    surroundings(AWS_ACCESS_KEY_ID="A", AWS_SECRET_ACCESS_KEY="x")
    assert "no Region is named" in refusal(regions=()).message


def test_a_rehearsal_opens_says_so_and_follows_the_yards_clock(
    in_a_rehearsal: Surroundings, small_yard: Any, ear: Any
) -> None:
    """One call, the identity; the first line names yard and clock; proxies are not used."""
    in_a_rehearsal()
    door = opened(regions=("us-east-1", "us-west-2"))
    assert small_yard.operations() == ["GetCallerIdentity"]
    assert door.identity.account == "111122223333"
    assert door.clock.now() == datetime(2026, 12, 1, 9, tzinfo=UTC)
    header = door.identity.header()
    assert header.startswith(f"REHEARSAL  yard {small_yard.url[7:]}, its clock Tue 2026-12-01 09:00Z.")
    assert all(len(line) <= 80 for line in header.splitlines())
    assert not ear.heard
    small_yard.time = "2026-12-03T00:00:00Z"
    door.reader("ec2", "us-west-2").describe_availability_zones()
    assert door.clock.now() == datetime(2026, 12, 3, tzinfo=UTC)


def test_a_yard_without_a_clock_runs_on_this_machines(in_a_rehearsal: Surroundings, small_yard: Any) -> None:
    """No header: real time, and the line says that no clock was told."""
    small_yard.time = None
    in_a_rehearsal()
    door = opened()
    assert abs((door.clock.now() - datetime.now(UTC)).total_seconds()) < 5
    assert "its clock not told" in door.identity.header()


PAID = [
    ("sagemaker", "create_training_plan", {"TrainingPlanName": "p", "TrainingPlanOfferingId": "tpo-1"}),
    ("sagemaker", "extend_training_plan", {"TrainingPlanExtensionOfferingId": "tpeo-1"}),
    ("ec2", "purchase_capacity_block", {"CapacityBlockOfferingId": "cb-1", "InstancePlatform": "Linux/UNIX"}),
    (
        "ec2",
        "purchase_capacity_block_extension",
        {"CapacityBlockExtensionOfferingId": "x", "CapacityReservationId": "cr-1"},
    ),
    ("ec2", "run_instances", {"MinCount": 1, "MaxCount": 1}),
    (
        "ec2",
        "create_capacity_reservation",
        {"InstanceType": "p5.48xlarge", "InstancePlatform": "Linux/UNIX", "InstanceCount": 1},
    ),
]


@pytest.mark.parametrize(("service", "operation", "arguments"), PAID, ids=[p[1] for p in PAID])
def test_a_client_that_does_not_buy_refuses_the_paid_calls(
    service: str, operation: str, arguments: dict[str, Any], in_a_rehearsal: Surroundings, small_yard: Any
) -> None:
    """Refused before it is built, signed or sent, also as a presigned URL (field fault 9)."""
    in_a_rehearsal()
    door = opened()
    for client in (door.reader(service, "us-east-1"), door.launcher("us-east-1", service)):
        with pytest.raises(BerthError, match="was refused before it was sent"):
            getattr(client, operation)(**arguments)
        with pytest.raises(BerthError, match="was refused before it was sent"):
            client.generate_presigned_url(operation, Params=arguments)
    assert small_yard.operations() == ["GetCallerIdentity"]


def test_no_paid_call_looks_like_a_read() -> None:
    """The pattern of reads lets none of them through, nor any other creating call of the models."""
    assert [name for name in PAID_CALLS if Power.READ.allows(name)] == []
    assert [name for name in PAID_CALLS if Power.LAUNCH.allows(name)] == []
    buys = {name for name in PAID_CALLS if Power.BUY.allows(name)}
    reservations = {"CreateTrainingPlan", "PurchaseCapacityBlock"}
    longer = {"ExtendTrainingPlan", "PurchaseCapacityBlockExtension"}
    assert buys == reservations | longer | {"RunInstances"}


def test_a_reader_creates_nothing(in_a_rehearsal: Surroundings, small_yard: Any) -> None:
    """Not even what carries no fee; a launcher may."""
    in_a_rehearsal()
    door = opened()
    with pytest.raises(BerthError, match="may only read"):
        door.reader("sagemaker", "us-east-1").delete_endpoint(EndpointName="e")
    with pytest.raises(ClientError):
        door.launcher("us-east-1").delete_endpoint(EndpointName="e")
    assert small_yard.operations() == ["GetCallerIdentity", "DeleteEndpoint"]


def test_a_buyer_sends_once(in_a_rehearsal: Surroundings, small_yard: Any) -> None:
    """A 500 is not answered by a second attempt; a reader would try again."""
    in_a_rehearsal()
    door = opened()
    small_yard.answers["CreateTrainingPlan"] = (500, '{"__type": "InternalFailure"}')
    with pytest.raises(ClientError):
        door.buyer("us-east-1").create_training_plan(TrainingPlanName="p", TrainingPlanOfferingId="tpo-1")
    assert small_yard.operations().count("CreateTrainingPlan") == 1


def test_a_request_that_strays_is_stopped_at_the_last_moment(
    in_a_rehearsal: Surroundings, small_yard: Any, ear: Any
) -> None:
    """Even if an endpoint changes after the comparison, the signed request does not leave."""
    in_a_rehearsal()
    client = opened().reader("ec2", "us-east-1")
    client.meta.events.register_first(
        "before-send", lambda request, **_: setattr(request, "url", ear.url + "/")
    )
    with pytest.raises(BerthError, match="outside the declared world; it was not sent"):
        client.describe_availability_zones()
    assert not ear.heard


def test_a_pinned_account_is_checked(in_a_rehearsal: Surroundings) -> None:
    """A need for another account ends with credentials, not with a purchase in the wrong one."""
    in_a_rehearsal()
    door = opened()
    door.check_account("111122223333")
    with pytest.raises(BerthError, match="the need is for account 999900001111") as found:
        door.check_account("999900001111")
    assert found.value.exit_code is ExitCode.CREDENTIALS


@pytest.mark.parametrize(
    ("url", "aws"),
    [
        ("https://api.sagemaker.us-east-1.amazonaws.com", True),
        ("https://sts.cn-north-1.amazonaws.com.cn/", True),
        ("https://vpce-1.sagemaker.us-east-1.vpce.amazonaws.com", True),
        ("http://api.sagemaker.us-east-1.amazonaws.com", False),
        ("https://amazonaws.com.evil.example", False),
        ("https://evilamazonaws.com", False),
        ("https://amazonaws.com@evil.example", False),
        ("https://127.0.0.1:443", False),
    ],
)
def test_which_hosts_are_aws(url: str, aws: bool) -> None:
    """Only AWS's own names over TLS, however the URL is dressed up."""
    assert is_aws(url) is aws


def test_a_yard_may_run_an_s3_of_its_own() -> None:
    """The second word of BERTH_YARD; S3 clients may go to either, all others to the yard alone."""
    yard = declared_yard({"BERTH_YARD": f"{YARD}/ {S3}"})
    assert yard is not None
    assert (yard.url, yard.s3_url, yard.address) == (YARD, S3, "127.0.0.1:4599")
    check_endpoints({("s3", "us-east-1"): S3, ("ec2", "us-east-1"): YARD + "/"}, yard)
    with pytest.raises(BerthError, match="but ec2 in us-east-1 would go to"):
        check_endpoints({("ec2", "us-east-1"): S3}, yard)


def test_a_rehearsal_says_how_much_faster_its_throttles_are() -> None:
    """The scale is taken from the answer; what makes no sense is AWS's own pace."""
    clock = FollowingClock(SystemClock())
    assert clock.throttle_scale == 1.0
    for header, scale in (("100", 100.0), ("0.5", 1.0), ("inf", 1.0), ("nan", 1.0), ("50", 50.0)):
        clock.hear_scale(header)
        assert clock.throttle_scale == scale
    clock.hear_scale("fast")
    assert clock.throttle_scale == 50.0
