"""The real AWS CLI against a yard: from a search to a clean account, and what it says when it is refused."""

from __future__ import annotations

import json
import tarfile
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.clients

TYPE = "ml.trn1.32xlarge"
ROLE = "arn:aws:iam::111122223333:role/digits"
# A shipped image: a small server that answers what it was asked.
IMAGE = "rehearsal/echo:1"
# Real seconds that a container may take from its start to InService on a busy machine of two cores.
SETTLE_LIMIT_S = 60


def instant(value: float | str) -> datetime:
    """A time as the CLI prints it: version 1 hands on the wire's seconds, version 2 writes ISO 8601."""
    return datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value, UTC)


def search(aws: Any, *more: str) -> list[dict[str, Any]]:
    """Offerings of one instance for a day, for an endpoint."""
    wanted = ("--instance-type", TYPE, "--instance-count", "1", "--duration-hours", "24")
    said = aws(
        "sagemaker", "search-training-plan-offerings", *wanted, "--target-resources", "endpoint", *more
    )
    return list(said["TrainingPlanOfferings"])


def naming(name: str, offering_id: str) -> tuple[str, ...]:
    """The options of create-training-plan."""
    return ("--training-plan-name", name, "--training-plan-offering-id", offering_id)


def buy(aws: Any, name: str, yard: Any) -> dict[str, Any]:
    """Buy the first offering that starts at least a day ahead, and answer its description."""
    tomorrow = (yard.clock.now + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    offering = search(aws, "--start-time-after", tomorrow)[0]
    made = aws("sagemaker", "create-training-plan", *naming(name, offering["TrainingPlanOfferingId"]))
    assert made["TrainingPlanArn"].endswith(f":training-plan/{name}")
    plan = describe(aws, name)
    assert Decimal(plan["UpfrontFee"]) == Decimal(offering["UpfrontFee"]) > 0
    return plan


def describe(aws: Any, name: str) -> dict[str, Any]:
    """DescribeTrainingPlan."""
    return dict(aws("sagemaker", "describe-training-plan", "--training-plan-name", name))


def upload_model(aws: Any, folder: Path) -> str:
    """Upload an artefact with `aws s3` to the yard's companion; its address."""
    (folder / "greeting.txt").write_text("hello from the artefact\n")
    with tarfile.open(folder / "model.tar.gz", "w:gz") as packed:
        packed.add(folder / "greeting.txt", "greeting.txt")
    aws("s3", "mb", "s3://artefacts")
    aws("s3", "cp", str(folder / "model.tar.gz"), "s3://artefacts/model.tar.gz")
    return "s3://artefacts/model.tar.gz"


def deploy(aws: Any, plan_arn: str, image: str, artefact: str) -> None:
    """Model, endpoint configuration on the plan alone, endpoint."""
    container = {"Image": image, "ModelDataUrl": artefact}
    variant = {
        "VariantName": "AllTraffic",
        "ModelName": "greeter",
        "InitialInstanceCount": 1,
        "InstanceType": TYPE,
        "CapacityReservationConfig": {
            "CapacityReservationPreference": "capacity-reservations-only",
            "MlReservationArn": plan_arn,
        },
    }
    aws(
        "sagemaker", "create-model",
        "--model-name", "greeter", "--execution-role-arn", ROLE, "--primary-container", json.dumps(container),
    )  # fmt: skip
    aws(
        "sagemaker", "create-endpoint-config",
        "--endpoint-config-name", "greeter", "--production-variants", json.dumps([variant]),
    )  # fmt: skip
    aws("sagemaker", "create-endpoint", "--endpoint-name", "greeter", "--endpoint-config-name", "greeter")


def wait_for_endpoint(aws: Any, status: str) -> dict[str, Any]:
    """Describe the endpoint until it has left its passing states; it must then have `status`."""
    end = time.monotonic() + SETTLE_LIMIT_S
    while True:
        endpoint = dict(aws("sagemaker", "describe-endpoint", "--endpoint-name", "greeter"))
        if endpoint["EndpointStatus"] not in {"Creating", "Updating"} or time.monotonic() > end:
            assert endpoint["EndpointStatus"] == status, endpoint.get("FailureReason", endpoint)
            return endpoint


def test_from_a_search_to_a_clean_account(aws: Any, yard: Any, tmp_path: Path) -> None:
    """Search, buy, wait, deploy on reserved capacity, serve a request, clean up: with the stock CLI alone."""
    plan = buy(aws, "cli-day", yard)
    assert (plan["Status"], plan["TargetResources"]) == ("Pending", ["endpoint"])
    yard.clock.advance(minutes=10)
    assert describe(aws, "cli-day")["Status"] == "Scheduled"
    yard.clock.set(instant(plan["StartTime"]))
    active = describe(aws, "cli-day")
    assert (active["Status"], active["AvailableInstanceCount"]) == ("Active", 1)

    deploy(aws, plan["TrainingPlanArn"], IMAGE, upload_model(aws, tmp_path))
    endpoint = wait_for_endpoint(aws, "InService")
    assert endpoint["ProductionVariants"][0]["CurrentInstanceCount"] == 1
    assert describe(aws, "cli-day")["InUseInstanceCount"] == 1

    (tmp_path / "request.txt").write_bytes(b"how are you?")
    answered = aws(
        "sagemaker-runtime", "invoke-endpoint", "--endpoint-name", "greeter", "--content-type", "text/plain",
        "--body", f"fileb://{tmp_path}/request.txt", str(tmp_path / "answer.txt"),
    )  # fmt: skip
    assert answered["InvokedProductionVariant"] == "AllTraffic"
    assert b"how are you?" in (tmp_path / "answer.txt").read_bytes()

    aws("sagemaker", "delete-endpoint", "--endpoint-name", "greeter")
    aws("sagemaker", "wait", "endpoint-deleted", "--endpoint-name", "greeter")
    aws("sagemaker", "delete-endpoint-config", "--endpoint-config-name", "greeter")
    aws("sagemaker", "delete-model", "--model-name", "greeter")
    assert describe(aws, "cli-day")["InUseInstanceCount"] == 0
    for kind in ("endpoints", "endpoint-configs", "models"):
        assert all(found == [] for found in aws("sagemaker", f"list-{kind}").values())


def test_the_cli_pages_through_a_list(aws: Any) -> None:
    """The CLI's own paginator follows our tokens to the end, and each name comes once."""
    container = json.dumps({"Image": "any"})
    for number in range(3):
        aws("sagemaker", "create-model", "--model-name", f"m{number}", "--primary-container", container)
    listed = aws("sagemaker", "list-models", "--page-size", "1")["Models"]
    assert sorted(model["ModelName"] for model in listed) == ["m0", "m1", "m2"]


def test_who_and_where(aws: Any, yard: Any) -> None:
    """STS tells the account; EC2 the Regions, and the zones by id and by this account's name."""
    account = aws("sts", "get-caller-identity")
    assert len(account["Account"]) == 12
    assert f":{account['Account']}:" in account["Arn"]
    regions = {region["RegionName"] for region in aws("ec2", "describe-regions")["Regions"]}
    assert yard.environment["AWS_REGION"] in regions
    zones = aws("ec2", "describe-availability-zones")["AvailabilityZones"]
    assert all(
        zone["ZoneId"].startswith("use1-") and zone["ZoneName"].startswith("us-east-1") for zone in zones
    )
    assert len({zone["ZoneId"] for zone in zones}) == len(zones) > 0


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (("ec2", "describe-key-pairs"), "InvalidAction"),
        (("sagemaker", "list-clusters"), "UnknownOperationException"),
        (("sts", "get-session-token"), "InvalidAction"),
    ],
    ids=["ec2", "sagemaker", "sts"],
)
def test_what_a_yard_does_not_serve_does_not_exist(aws: Any, call: tuple[str, ...], code: str) -> None:
    """An operation that is not served is refused in AWS's words, never answered with an empty success."""
    assert f"({code})" in aws.refused(*call)


@pytest.mark.parametrize(
    ("call", "unknown_key", "wrong_secret"),
    [
        (("sts", "get-caller-identity"), "InvalidClientTokenId", "SignatureDoesNotMatch"),
        (("ec2", "describe-regions"), "AuthFailure", "AuthFailure"),
        (("sagemaker", "list-models"), "UnrecognizedClientException", "InvalidSignatureException"),
    ],
    ids=["sts", "ec2", "sagemaker"],
)
def test_wrong_keys_are_refused_in_each_services_words(
    aws: Any, yard: Any, call: tuple[str, ...], unknown_key: str, wrong_secret: str
) -> None:
    """An unknown key and a wrong secret get the code that the service on AWS gives."""
    stranger = yard.environment["AWS_ACCESS_KEY_ID"][:-4] + "AAAA"
    assert f"({unknown_key})" in aws.refused(*call, AWS_ACCESS_KEY_ID=stranger)
    assert f"({wrong_secret})" in aws.refused(*call, AWS_SECRET_ACCESS_KEY="x" * 40)


def test_a_second_purchase_under_one_name_is_refused_and_costs_nothing(aws: Any, yard: Any) -> None:
    """The name of a training plan is AWS's only guard against buying twice."""
    plan = buy(aws, "once", yard)
    offering = search(aws)[0]["TrainingPlanOfferingId"]
    said = aws.refused("sagemaker", "create-training-plan", *naming("once", offering))
    assert "(ResourceInUse)" in said
    yard.clock.advance(minutes=10)
    assert [line["amount"] for line in yard.ledger] == [plan["UpfrontFee"]]


def test_the_stock_cli_resends_a_purchase_whose_answer_was_lost(aws: Any, yard: Any) -> None:
    """It ends in an error although the plan was bought: what a careful client has to be prepared for."""
    offering = search(aws)[0]["TrainingPlanOfferingId"]
    yard.fault("lost-reply", "CreateTrainingPlan")
    assert "(ResourceInUse)" in aws.refused("sagemaker", "create-training-plan", *naming("lost", offering))
    sent = yard.log_of("CreateTrainingPlan")
    assert [call["outcome"] for call in sent] == ["ok", "ResourceInUse"]
    assert len({call["invocation_id"] for call in sent}) == 1
    assert describe(aws, "lost")["TrainingPlanName"] == "lost"


def test_the_stock_cli_gives_up_after_five_attempts(aws: Any, yard: Any) -> None:
    """Our pages say five for version 1; AWS_MAX_ATTEMPTS=1 makes it one."""
    yard.fault("lost-reply", "ListModels", times=None)
    aws.refused("sagemaker", "list-models")
    assert len(yard.log_of("ListModels")) == 5
    aws.refused("sagemaker", "list-models", AWS_MAX_ATTEMPTS="1")
    assert len(yard.log_of("ListModels")) == 6


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (("--instance-count", "3"), "3"),
        (("--instance-count", "65"), "65"),
        (("--duration-hours", "4392"), "182 days"),
        (("--instance-type", "ml.p5.49xlarge"), "ml.p5.49xlarge"),
    ],
    ids=["three instances", "65 instances", "183 days", "unknown type"],
)
def test_a_search_that_cannot_be_right_says_why(aws: Any, changed: tuple[str, str], told: str) -> None:
    """A count, a length or a type that is never sold is refused with the value that was wrong."""
    wanted = {
        "--instance-type": TYPE,
        "--instance-count": "1",
        "--duration-hours": "24",
        changed[0]: changed[1],
    }
    flat = [word for pair in wanted.items() for word in pair]
    said = aws.refused("sagemaker", "search-training-plan-offerings", *flat, "--target-resources", "endpoint")
    assert "ValidationException" in said
    assert told in said
