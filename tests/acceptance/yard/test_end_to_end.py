"""boto3 as it comes, against a yard: from search to a clean account, by the clock."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import WaiterError

from berth.yard.testing.process import YardProcess

from .conftest import ROLE, SMALL, TYPE, configure, offers, refused, serve, wait

YARD = {"fleet": SMALL}


@pytest.fixture(scope="module")
def plan(shared: YardProcess) -> str:
    """A plan of two instances, Active for days."""
    return shared.seed.plan(name="shared", state="Active", count=2, duration="9d")["arn"]


def test_a_plan_by_the_clock(yard: YardProcess) -> None:
    """Search, buy, Pending, Scheduled, Active, Expired; the counters; the ledger; the target."""
    client = yard.clients.sagemaker
    offer = offers(client)[0]
    (capacity,) = offer["ReservedCapacityOfferings"]
    arn = client.create_training_plan(
        TrainingPlanName="eval-1", TrainingPlanOfferingId=offer["TrainingPlanOfferingId"]
    )["TrainingPlanArn"]

    def seen() -> dict[str, Any]:
        found: dict[str, Any] = client.describe_training_plan(TrainingPlanName="eval-1")
        return found

    assert seen()["Status"] == "Pending"
    assert seen()["TargetResources"] == ["endpoint"]
    assert yard.ledger == []
    yard.clock.advance(minutes=5)
    assert seen()["Status"] == "Scheduled"
    assert seen()["StatusMessage"] == "Payment confirmed, training plan scheduled."
    assert [(entry["subject"], entry["amount"]) for entry in yard.ledger] == [(arn, offer["UpfrontFee"])]
    yard.clock.set(capacity["StartTime"])
    active = seen()
    assert (active["Status"], active["AvailableInstanceCount"], active["TotalInstanceCount"]) == (
        "Active",
        1,
        1,
    )
    assert active["ReservedCapacitySummaries"][0]["Status"] == "Active"
    yard.clock.set(capacity["EndTime"])
    assert (seen()["Status"], seen()["AvailableInstanceCount"]) == ("Expired", 0)
    assert len(yard.ledger) == 1


def test_an_endpoint_from_creation_to_deletion(shared: YardProcess, plan: str) -> None:
    """Creating, InService for botocore's waiter, an answer, deleted for its other waiter; instances come and
    go."""
    clients = shared.clients
    client = clients.sagemaker

    def free() -> int:
        number: int = client.describe_training_plan(TrainingPlanName="shared")["AvailableInstanceCount"]
        return number

    before = free()
    serve(client, "served", plan)
    assert free() == before - 1
    answer = clients.runtime.invoke_endpoint(EndpointName="served", Body=b"ping?", ContentType="text/plain")
    assert answer["Body"].read() == b"ping?"
    assert (answer["ContentType"], answer["InvokedProductionVariant"]) == ("text/plain", "v")
    (variant,) = client.describe_endpoint(EndpointName="served")["ProductionVariants"]
    assert variant["CapacityReservationConfig"]["MlReservationArn"] == plan
    client.delete_endpoint(EndpointName="served")
    wait(client, "endpoint_deleted", EndpointName="served")
    assert free() == before
    client.delete_endpoint_config(EndpointConfigName="served")
    client.delete_model(ModelName="served")
    error = refused(clients.runtime.invoke_endpoint, EndpointName="served", Body=b"")
    assert error.code == "ValidationError"
    assert error.message.endswith("not found.")


@pytest.mark.yard(fleet=SMALL)
def test_thirty_minutes_before_the_end_the_endpoint_stops_serving(yard: YardProcess) -> None:
    """OutOfService at that instant, its container gone, InvokeEndpoint a ModelError in AWS's words."""
    clients = yard.clients
    client = clients.sagemaker
    plan = yard.seed.plan(name="p", state="Active", duration="8h")["arn"]
    serve(client, "e", plan)
    end = client.describe_training_plan(TrainingPlanName="p")["EndTime"]
    yard.clock.set(end - timedelta(minutes=31))
    assert clients.runtime.invoke_endpoint(EndpointName="e", Body=b"x")["Body"].read() == b"x"
    yard.clock.set(end - timedelta(minutes=30))
    assert client.describe_endpoint(EndpointName="e")["EndpointStatus"] == "OutOfService"
    error = refused(clients.runtime.invoke_endpoint, EndpointName="e", Body=b"x")
    assert (error.code, error.status) == ("ModelError", 424)
    assert "Endpoint capacity reservation has expired. Please update endpoint configuration." in error.message
    assert client.describe_training_plan(TrainingPlanName="p")["Status"] == "Active"
    yard.clock.set(end)
    assert client.describe_training_plan(TrainingPlanName="p")["Status"] == "Expired"
    client.delete_endpoint(EndpointName="e")
    wait(client, "endpoint_deleted", EndpointName="e")


def test_a_container_that_never_answers_fails_the_endpoint(shared: YardProcess, plan: str) -> None:
    """The waiter fails; FailureReason names the ping and the container's last words; the instance is free
    again."""
    client = shared.clients.sagemaker
    configure(client, "broken", plan, ECHO_EXIT_AT_ONCE="7")
    client.create_endpoint(EndpointName="broken", EndpointConfigName="broken")
    with pytest.raises(WaiterError):
        wait(client, "endpoint_in_service", EndpointName="broken")
    reason = client.describe_endpoint(EndpointName="broken")["FailureReason"]
    assert reason.startswith(
        "The primary container for production variant v did not pass the ping health check."
    )
    assert "exit code 7" in reason
    assert "no: I was told not to" in reason
    client.delete_endpoint(EndpointName="broken")
    wait(client, "endpoint_deleted", EndpointName="broken")


def test_an_image_that_the_fleet_file_lacks_fails_the_endpoint(shared: YardProcess, plan: str) -> None:
    """FailureReason names the image."""
    client = shared.clients.sagemaker
    client.create_model(
        ModelName="nobody", PrimaryContainer={"Image": "nobody/knows:1"}, ExecutionRoleArn=ROLE
    )
    client.create_endpoint_config(
        EndpointConfigName="nobody",
        ProductionVariants=[
            {
                "VariantName": "v", "ModelName": "nobody", "InstanceType": TYPE, "InitialInstanceCount": 1,
                "CapacityReservationConfig": {
                    "CapacityReservationPreference": "capacity-reservations-only", "MlReservationArn": plan,
                },
            }
        ],
    )  # fmt: skip
    client.create_endpoint(EndpointName="nobody", EndpointConfigName="nobody")
    with pytest.raises(WaiterError):
        wait(client, "endpoint_in_service", EndpointName="nobody")
    assert "nobody/knows:1" in client.describe_endpoint(EndpointName="nobody")["FailureReason"]
    client.delete_endpoint(EndpointName="nobody")


def test_a_container_that_dies_is_replaced(shared: YardProcess, plan: str) -> None:
    """A ModelError for the call that killed it; Updating with the reason; InService again by itself."""
    clients = shared.clients
    client = clients.sagemaker
    serve(client, "mortal", plan, ECHO_EXIT_AFTER="2")
    runtime = clients("sagemaker-runtime", retries={"total_max_attempts": 1})
    assert runtime.invoke_endpoint(EndpointName="mortal", Body=b"1")["Body"].read() == b"1"
    assert refused(runtime.invoke_endpoint, EndpointName="mortal", Body=b"2").code == "ModelError"
    moved = _moves(shared, "endpoint/mortal", until="Updating")
    assert "exit code 3" in moved[-1]["reason"]
    wait(client, "endpoint_in_service", EndpointName="mortal")
    assert runtime.invoke_endpoint(EndpointName="mortal", Body=b"3")["Body"].read() == b"3"
    client.delete_endpoint(EndpointName="mortal")
    wait(client, "endpoint_deleted", EndpointName="mortal")


def _moves(yard: YardProcess, ending: str, until: str) -> list[dict[str, Any]]:
    """The moves of a resource, once it has come to `until`."""
    for _ in range(2000):
        found = [event for event in yard.events if event["subject"].endswith(ending) and event["to_state"]]
        if until in [event["to_state"] for event in found]:
            return found
    raise AssertionError(f"{ending} never came to {until}")


def test_a_container_that_hangs_up_is_a_model_error(shared: YardProcess, plan: str) -> None:
    """Code 424 with AWS's words for no answer, and the members that botocore reads."""
    clients = shared.clients
    serve(clients.sagemaker, "hangs-up", plan, ECHO_EVAL="1")  # left behind: it dies of this
    runtime = clients("sagemaker-runtime", retries={"total_max_attempts": 1})
    with pytest.raises(runtime.exceptions.ModelError) as caught:
        runtime.invoke_endpoint(EndpointName="hangs-up", Body=b"eval nonsense(")
    response = caught.value.response
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 424
    assert response["OriginalStatusCode"] == 0
    assert "Received server error (0) from primary" in response["Error"]["Message"]
    assert response["LogStreamArn"].startswith("arn:aws:logs:us-east-1:")


def test_every_paginator_gives_everything_once(shared: YardProcess, plan: str) -> None:
    """Plans, models, configurations, endpoints and tags, three or fifty a page, in both orders."""
    client = shared.clients.sagemaker
    names = [f"page-{number:02d}" for number in range(7)]
    for name in names:
        shared.seed.plan(name=name, state="Expired")
        configure(client, name, None)
        client.create_endpoint(EndpointName=name, EndpointConfigName=name)
    client.add_tags(
        ResourceArn=plan, Tags=[{"Key": f"k{number:02d}", "Value": ""} for number in range(50)]
    )  # fmt: skip
    for operation, key, name_of, filters in (
        ("list_training_plans", "TrainingPlanSummaries", "TrainingPlanName", {}),
        ("list_models", "Models", "ModelName", {"NameContains": "page-"}),
        ("list_endpoint_configs", "EndpointConfigs", "EndpointConfigName", {"NameContains": "PAGE-"}),
        ("list_endpoints", "Endpoints", "EndpointName", {"NameContains": "page-", "StatusEquals": "Failed"}),
    ):
        for order in ("Ascending", "Descending"):
            pages = list(
                client.get_paginator(operation).paginate(
                    SortOrder=order, PaginationConfig={"PageSize": 3}, **filters
                )
            )
            assert len(pages) > 1
            found = [item[name_of] for page in pages for item in page[key] if item[name_of] in names]
            assert found == sorted(names, reverse=order == "Descending"), operation
    tags = client.get_paginator("list_tags").paginate(ResourceArn=plan, PaginationConfig={"PageSize": 50})
    assert len([tag for page in tags for tag in page["Tags"]]) == 50
