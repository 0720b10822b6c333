"""Every fault on demand, and what a stock client sees of it. The yard never de-duplicates."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from berth.yard.faults import FaultKind
from berth.yard.testing.process import YardProcess

from .conftest import SMALL, buy, offers, refused, serve, wait

YARD = {"fleet": SMALL}
ONE_TRY = {"retries": {"total_max_attempts": 1}}


def plans(yard: YardProcess, name: str) -> int:
    """How many purchases of that name there were, by the events."""
    return sum(
        event["subject"].endswith(f"/{name}") and event["to_state"] == "Pending" for event in yard.events
    )


def outcomes(yard: YardProcess, operation: str, since: int) -> list[str]:
    """How the calls of an operation ended, after call number `since`."""
    return [call["outcome"] for call in yard.log_of(operation) if call["call_id"] > since]


@pytest.fixture
def since(shared: YardProcess) -> int:
    """The last call before the test."""
    calls = shared.log
    return calls[-1]["call_id"] if calls else 0


def test_a_lost_reply_makes_a_stock_client_buy_again_and_only_the_name_stops_it(
    shared: YardProcess, since: int
) -> None:
    """boto3 resends by itself: its second attempt meets ResourceInUse, under the same invocation id. One
    plan."""
    client = shared.clients.sagemaker
    offer = offers(client)[0]["TrainingPlanOfferingId"]
    shared.fault("lost-reply", "CreateTrainingPlan")
    error = refused(client.create_training_plan, TrainingPlanName="lost", TrainingPlanOfferingId=offer)
    assert error.code == "ResourceInUse"
    assert plans(shared, "lost") == 1
    calls = [call for call in shared.log_of("CreateTrainingPlan") if call["call_id"] > since]
    assert sorted((call["outcome"], call["wrote"]) for call in calls) == [("ResourceInUse", 0), ("ok", 1)]
    assert len({call["invocation_id"] for call in calls}) == 1
    shared.clock.advance(minutes=5)
    assert sum(entry["subject"].endswith("/lost") for entry in shared.ledger) == 1


def test_a_lost_reply_to_a_client_that_does_not_retry_is_a_closed_line(shared: YardProcess) -> None:
    """The outcome is unknown to it; looking by name finds the plan."""
    client = shared.clients("sagemaker", **ONE_TRY)
    offer = offers(client)[0]["TrainingPlanOfferingId"]
    shared.fault("lost-reply", "CreateTrainingPlan")
    with pytest.raises(ConnectionClosedError):
        client.create_training_plan(TrainingPlanName="closed", TrainingPlanOfferingId=offer)
    assert client.describe_training_plan(TrainingPlanName="closed")["Status"] == "Pending"


def test_an_error_after_the_commit_is_500_and_the_plan_is_there(shared: YardProcess, since: int) -> None:
    """boto3 retries 500s too: ResourceInUse again, one plan."""
    client = shared.clients.sagemaker
    offer = offers(client)[0]["TrainingPlanOfferingId"]
    shared.fault("error-after-commit", "CreateTrainingPlan")
    error = refused(client.create_training_plan, TrainingPlanName="late", TrainingPlanOfferingId=offer)
    assert error.code == "ResourceInUse"
    assert plans(shared, "late") == 1
    shared.fault("error-after-commit", "DescribeTrainingPlan")
    error = refused(shared.clients("sagemaker", **ONE_TRY).describe_training_plan, TrainingPlanName="late")
    assert (error.code, error.status) == ("InternalFailure", 500)


def test_a_stall_looks_like_a_time_out_and_the_plan_is_there(shared: YardProcess) -> None:
    """Done and stored, and no answer until the client gives up."""
    client = shared.clients("sagemaker", read_timeout=0.3, **ONE_TRY)
    offer = offers(client)[0]["TrainingPlanOfferingId"]
    shared.fault("stall", "CreateTrainingPlan", amount=30)
    with pytest.raises(ReadTimeoutError):
        client.create_training_plan(TrainingPlanName="stalled", TrainingPlanOfferingId=offer)
    assert client.describe_training_plan(TrainingPlanName="stalled")["Status"] == "Pending"


@pytest.mark.yard(fleet=SMALL)
def test_a_stalled_answer_does_not_hold_up_the_end_of_a_yard(yard: YardProcess) -> None:
    """`stop` waits a few seconds for what is under way and no longer."""
    client = yard.clients("sagemaker", read_timeout=0.2, **ONE_TRY)
    yard.fault("stall", "ListTrainingPlans", amount=300)
    with pytest.raises(ReadTimeoutError):
        client.list_training_plans()
    begun = time.monotonic()
    yard.stop()
    assert time.monotonic() - begun < 200
    assert yard.process is not None
    assert yard.process.returncode == 0
    assert not yard.folder.running.exists()


def test_throttling_is_retried_and_nothing_is_done_meanwhile(shared: YardProcess, since: int) -> None:
    """boto3 tries again until it passes; without retries it is ThrottlingException, in EC2
    RequestLimitExceeded."""
    shared.fault("throttle", "ListTrainingPlans", times=2)
    shared.clients.sagemaker.list_training_plans()
    assert outcomes(shared, "ListTrainingPlans", since) == [
        "ThrottlingException",
        "ThrottlingException",
        "ok",
    ]
    shared.fault("throttle", times=3)
    clients = shared.clients
    assert refused(clients("sagemaker", **ONE_TRY).list_models).code == "ThrottlingException"
    assert refused(clients("ec2", **ONE_TRY).describe_regions).code == "RequestLimitExceeded"
    error = refused(clients("sagemaker-runtime", **ONE_TRY).invoke_endpoint, EndpointName="e", Body=b"")
    assert error.code == "ThrottlingException"


def test_an_offering_can_be_gone_between_search_and_purchase(shared: YardProcess) -> None:
    """ResourceNotFound, nothing bought; the next attempt gets it."""
    client = shared.clients.sagemaker
    offer = offers(client)[0]["TrainingPlanOfferingId"]
    shared.fault("gone")
    error = refused(client.create_training_plan, TrainingPlanName="gone", TrainingPlanOfferingId=offer)
    assert error.code == "ResourceNotFound"
    assert "no longer available" in error.message
    assert refused(client.describe_training_plan, TrainingPlanName="gone").code == "ResourceNotFound"
    client.create_training_plan(TrainingPlanName="gone", TrainingPlanOfferingId=offer)


def test_a_price_change_shows_in_the_next_search_and_not_in_what_was_shown(shared: YardProcess) -> None:
    """The old offering is sold at its own fee; new ones cost more, until the fault is cleared."""
    client = shared.clients.sagemaker
    old = offers(client)[-1]
    shared.fault("price-change", amount="1.5")
    new = offers(client)[-1]
    assert float(new["UpfrontFee"]) == pytest.approx(1.5 * float(old["UpfrontFee"]), abs=0.01)
    client.create_training_plan(
        TrainingPlanName="old-fee", TrainingPlanOfferingId=old["TrainingPlanOfferingId"]
    )
    assert client.describe_training_plan(TrainingPlanName="old-fee")["UpfrontFee"] == old["UpfrontFee"]
    assert offers(client)[-1]["UpfrontFee"] == new["UpfrontFee"], "a condition is not used up"
    shared.clear_faults()
    assert offers(client)[-1]["UpfrontFee"] == old["UpfrontFee"]


def test_a_payment_can_fail(shared: YardProcess) -> None:
    """Pending, then Failed with the reason; nothing in the ledger."""
    client = shared.clients.sagemaker
    shared.fault("payment-failure")
    buy(client, "unpaid")
    shared.clock.advance(minutes=5)
    plan = client.describe_training_plan(TrainingPlanName="unpaid")
    assert (plan["Status"], plan["StatusMessage"]) == (
        "Failed",
        "Payment failed, training plan was not created.",
    )
    assert not any(entry["subject"].endswith("/unpaid") for entry in shared.ledger)


def test_describes_can_lag_a_write(shared: YardProcess) -> None:
    """Five yard minutes long a new plan is not there for anybody who looks, and then it is."""
    client = shared.clients.sagemaker
    shared.fault("lag", times=None)
    arn = buy(client, "late-seen")

    def listed() -> bool:
        found = client.list_training_plans(MaxResults=100)["TrainingPlanSummaries"]
        return arn in [plan["TrainingPlanArn"] for plan in found]

    for minutes in (0, 2, 2):
        shared.clock.advance(minutes=minutes)
        assert refused(client.describe_training_plan, TrainingPlanName="late-seen").code == "ResourceNotFound"
        assert not listed()
    shared.clock.advance(minutes=1)
    assert client.describe_training_plan(TrainingPlanName="late-seen")["Status"] == "Pending"
    assert listed()
    shared.clear_faults()
    assert client.describe_training_plan(TrainingPlanName="late-seen")["Status"] == "Scheduled"


def test_lag_of_endpoints_too(shared: YardProcess) -> None:
    """An endpoint that was just made is not found by Describe, and another of its name cannot be made."""
    client = shared.clients.sagemaker
    plan = shared.seed.plan(name="for-lag", state="Active", region="us-west-2")
    west = shared.clients("sagemaker", region="us-west-2")
    serve(west, "lagging", plan["arn"])
    shared.fault("lag", "DescribeEndpoint", amount=1)
    assert "Could not find endpoint" in refused(west.describe_endpoint, EndpointName="lagging").message
    shared.clear_faults()
    west.delete_endpoint(EndpointName="lagging")
    wait(west, "endpoint_deleted", EndpointName="lagging")
    assert client.list_endpoints()["Endpoints"] == []


def test_optional_members_can_be_absent_and_values_unheard_of(shared: YardProcess) -> None:
    """boto3 passes both on: a client must cope."""
    client = shared.clients.sagemaker
    buy(client, "odd")
    shared.fault("absent-members", "DescribeTrainingPlan", amount="UpfrontFee,ReservedCapacitySummaries")
    shared.fault("unknown-values", "DescribeTrainingPlan", amount="Status")
    plan = client.describe_training_plan(TrainingPlanName="odd")
    assert "UpfrontFee" not in plan
    assert "ReservedCapacitySummaries" not in plan
    assert plan["Status"] == "never-heard-of"
    assert client.describe_training_plan(TrainingPlanName="odd")["Status"] == "Pending"


def test_a_body_can_be_cut_in_the_middle(shared: YardProcess) -> None:
    """Of half an XML botocore makes an error; half a JSON it takes for an answer without any members."""
    shared.fault("malformed-body", "ListTrainingPlans")
    assert "TrainingPlanSummaries" not in shared.clients("sagemaker", **ONE_TRY).list_training_plans()
    shared.fault("malformed-body", "DescribeRegions")
    with pytest.raises(ResponseParserError):
        shared.clients("ec2", **ONE_TRY).describe_regions()


def test_a_session_can_be_over_before_its_time(shared: YardProcess) -> None:
    """Once, for the operation that was named; the keys of a user never end."""
    role = shared.role("default", "reader", trust=["default"])
    given = shared.clients.sts.assume_role(RoleArn=role, RoleSessionName="ada")["Credentials"]
    session = boto3.client(
        "sagemaker", region_name="us-east-1", endpoint_url=shared.environment["AWS_ENDPOINT_URL"],
        aws_access_key_id=given["AccessKeyId"], aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
    )  # fmt: skip
    shared.fault("expired-session", "ListModels")
    shared.clients.sagemaker.list_models()
    assert refused(session.list_models).code == "ExpiredTokenException"
    assert session.list_models()["Models"] == []


def test_a_fault_may_concern_one_account_only(shared: YardProcess) -> None:
    """By name or id; whoever else calls is served."""
    shared.account("victim")
    shared.fault("throttle", "ListModels", times=None, account="victim")
    shared.clients.sagemaker.list_models()
    victim = shared.clients_of("victim")("sagemaker", **ONE_TRY)
    assert refused(victim.list_models).code == "ThrottlingException"


def test_every_kind_has_a_test_here() -> None:
    """A kind that is added is tried against a stock client too."""
    text = " ".join(Path(__file__).read_text("utf-8").split())
    missing = [kind.value for kind in FaultKind if f'fault("{kind.value}"' not in text]
    assert missing == []


def test_faults_are_forgotten_with_the_process(yard: YardProcess) -> None:
    """A restarted yard behaves."""
    yard.fault("throttle", times=None)
    yard.restart()
    found: Any = yard.clients("sagemaker", **ONE_TRY).list_models()
    assert found["Models"] == []
    assert yard.status["faults"] == []
