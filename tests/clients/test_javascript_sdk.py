"""The real JavaScript SDK against a yard: search, create, describe, and the errors that it throws."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

pytestmark = pytest.mark.clients

WANTED = {
    "InstanceType": "ml.trn1.32xlarge",
    "InstanceCount": 1,
    "DurationHours": 24,
    "TargetResources": ["endpoint"],
}


def search_ahead(javascript: Any, yard: Any) -> dict[str, Any]:
    """The first offering that starts at least a day ahead."""
    tomorrow = {"$date": (yard.clock.now + timedelta(days=1)).isoformat()}
    said = javascript("sagemaker", "SearchTrainingPlanOfferings", **WANTED, StartTimeAfter=tomorrow)
    return dict(said["TrainingPlanOfferings"][0])


def test_search_create_describe(javascript: Any, yard: Any) -> None:
    """The SDK signs, sends and parses all three calls, and sees the plan go from Pending to Active."""
    offering = search_ahead(javascript, yard)
    made = javascript(
        "sagemaker", "CreateTrainingPlan",
        TrainingPlanName="js-day", TrainingPlanOfferingId=offering["TrainingPlanOfferingId"],
        Tags=[{"Key": "team", "Value": "Zürich + 東京"}],
    )  # fmt: skip

    def described() -> dict[str, Any]:
        return dict(javascript("sagemaker", "DescribeTrainingPlan", TrainingPlanName="js-day"))

    plan = described()
    assert plan["TrainingPlanArn"] == made["TrainingPlanArn"]
    assert (plan["Status"], plan["UpfrontFee"]) == ("Pending", offering["UpfrontFee"])
    yard.clock.advance(minutes=10)
    assert described()["Status"] == "Scheduled"
    # The SDK turned the wire's seconds into a Date, and JSON.stringify a Date into ISO 8601.
    yard.clock.set(datetime.fromisoformat(plan["StartTime"]))
    assert described()["Status"] == "Active"
    tags = javascript("sagemaker", "ListTags", ResourceArn=made["TrainingPlanArn"])["Tags"]
    assert {"Key": "team", "Value": "Zürich + 東京"} in tags


def test_who_and_where(javascript: Any, yard: Any) -> None:
    """STS and EC2 speak XML; the SDK reads both."""
    assert len(javascript("sts", "GetCallerIdentity")["Account"]) == 12
    zones = javascript("ec2", "DescribeAvailabilityZones")["AvailabilityZones"]
    assert {zone["RegionName"] for zone in zones} == {yard.environment["AWS_REGION"]}


@pytest.mark.parametrize(
    ("service", "operation", "parameters", "code"),
    [
        ("sagemaker", "DescribeTrainingPlan", {"TrainingPlanName": "nobodys"}, "ResourceNotFound"),
        ("sagemaker", "ListClusters", {}, "UnknownOperationException"),
        ("ec2", "DescribeKeyPairs", {}, "InvalidAction"),
        (
            "sagemaker-runtime",
            "InvokeEndpoint",
            {"EndpointName": "nobodys", "Body": {"$utf8": "x"}},
            "ValidationError",
        ),
    ],
    ids=["no such plan", "not served, JSON", "not served, EC2", "no such endpoint"],
)
def test_errors_arrive_under_their_name(
    javascript: Any, service: str, operation: str, parameters: dict[str, Any], code: str
) -> None:
    """The SDK finds the code, the message and the request id in each protocol's error body."""
    error = javascript.refused(service, operation, **parameters)
    assert (error.name, error.status) == (code, 400)
    assert error.message
    assert error.request_id


def test_the_sdk_gives_up_after_three_attempts(javascript: Any, yard: Any) -> None:
    """Our pages say three; a lost answer is an error of the connection, with no status."""
    yard.fault("lost-reply", "ListModels", times=None)
    assert javascript.refused("sagemaker", "ListModels").status is None
    assert len(yard.log_of("ListModels")) == 3
