"""Tags, what reads see late, and what accounts see of each other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from berth.yard.errors import ServiceError
from berth.yard.identity.accounts import Account
from berth.yard.identity.authorisation import authorise

from .bench import Bench

FIVE = timedelta(minutes=5)


def tags(*keys: str) -> list[dict[str, str]]:
    """Tags with these keys."""
    return [{"Key": key, "Value": "v"} for key in keys]


# -- tags ------------------------------------------------------------------------------------------------
def test_tags_are_listed_by_key_page_by_page(bench: Bench) -> None:
    """AddTags overwrites values of keys that are there; ListTags gives fifty a page at most here."""
    arn = bench.buy("p")
    bench.call("AddTags", ResourceArn=arn, Tags=tags(*(f"k{n:02d}" for n in range(50))))
    bench.call("AddTags", ResourceArn=arn, Tags=[{"Key": "k00", "Value": "new"}])
    first = bench.call("ListTags", ResourceArn=arn, MaxResults=30)
    rest = bench.call("ListTags", ResourceArn=arn, MaxResults=30, NextToken=first["NextToken"])
    assert "NextToken" not in rest
    found = first["Tags"] + rest["Tags"]
    assert [tag["Key"] for tag in found] == [f"k{n:02d}" for n in range(50)]
    assert found[0]["Value"] == "new"


def test_the_fifty_first_tag_is_refused_with_all_of_its_call(bench: Bench) -> None:
    """Neither it nor the tags that came with it are written."""
    arn = bench.buy("p")
    bench.call("AddTags", ResourceArn=arn, Tags=tags(*(f"k{n}" for n in range(49))))
    with pytest.raises(ServiceError, match="at most 50 tags"):
        bench.call("AddTags", ResourceArn=arn, Tags=tags("one", "two"))
    assert len(bench.call("ListTags", ResourceArn=arn)["Tags"]) == 49


def test_a_refused_tag_undoes_the_purchase_that_carries_it(bench: Bench) -> None:
    """No plan, no booking, no timer, no event: nothing half done."""
    offer = bench.offer()["TrainingPlanOfferingId"]
    before = [bench.rows(f"SELECT * FROM {table}") for table in ("bookings", "timers", "events", "tags")]
    for key in ("aws:mine", "AWS:mine"):
        with pytest.raises(ServiceError, match="reserved"):
            bench.call(
                "CreateTrainingPlan", TrainingPlanName="p", TrainingPlanOfferingId=offer, Tags=tags(key)
            )
    assert [bench.rows(f"SELECT * FROM {t}") for t in ("bookings", "timers", "events", "tags")] == before
    bench.call("CreateTrainingPlan", TrainingPlanName="p", TrainingPlanOfferingId=offer, Tags=tags("mine"))


def test_tags_go_with_what_they_are_on(bench: Bench) -> None:
    """A new model of the same name has none of the old one's."""
    for _ in range(2):
        created = bench.call(
            "CreateModel", ModelName="m", PrimaryContainer={"Image": "i"}, Tags=tags("once")
        )["ModelArn"]
        assert len(bench.call("ListTags", ResourceArn=created)["Tags"]) == 1
        bench.call("DeleteModel", ModelName="m")
    with pytest.raises(ServiceError, match="Could not find resource"):
        bench.call("ListTags", ResourceArn=created)


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:sagemaker:us-east-1:{}:training-plan/nobody",
        "arn:aws:sagemaker:us-east-1:{}:app/unserved",
        "arn:aws:sagemaker:us-west-2:{}:training-plan/p",
        "nonsense",
    ],
)
def test_tags_of_what_is_not_there_are_refused(bench: Bench, arn: str) -> None:
    """Another name, kind or Region, or no ARN at all."""
    bench.buy("p")
    with pytest.raises(ServiceError, match="Could not find resource"):
        bench.call("AddTags", ResourceArn=arn.format(bench.account.account_id), Tags=tags("k"))


# -- lag -------------------------------------------------------------------------------------------------
def test_a_lagging_read_does_not_see_a_new_plan(bench: Bench) -> None:
    """Describe and List show nothing until the lag has passed on the yard's clock; a purchase sees it at
    once."""
    bench.buy("p")
    with pytest.raises(ServiceError, match="does not exist"):
        bench.call("DescribeTrainingPlan", TrainingPlanName="p", lag=FIVE)
    assert bench.call("ListTrainingPlans", lag=FIVE)["TrainingPlanSummaries"] == []
    with pytest.raises(ServiceError, match="already exists"):
        bench.buy("p")
    bench.advance(minutes=5)
    assert bench.call("DescribeTrainingPlan", TrainingPlanName="p", lag=FIVE)["Status"] == "Pending"
    assert bench.plan("p")["Status"] == "Scheduled"
    bench.advance(minutes=5)
    assert bench.call("DescribeTrainingPlan", TrainingPlanName="p", lag=FIVE)["Status"] == "Scheduled"


def test_a_lagging_state_does_not_come_with_a_later_message(bench: Bench) -> None:
    """What says Pending does not say that the payment is confirmed."""
    bench.buy("p")
    bench.advance(minutes=5)
    seen = bench.call("DescribeTrainingPlan", TrainingPlanName="p", lag=FIVE)
    assert seen["Status"] == "Pending"
    assert "StatusMessage" not in seen


def test_without_lag_a_row_from_the_future_is_seen(bench: Bench) -> None:
    """A real clock may be set back after a write; nothing vanishes for that."""
    bench.buy("p")
    bench.do(lambda tx: tx.run("UPDATE training_plans SET created_us = created_us + 60000000"))
    assert bench.plan("p")["Status"] == "Pending"
    assert len(bench.call("ListTrainingPlans")["TrainingPlanSummaries"]) == 1


# -- accounts --------------------------------------------------------------------------------------------
def test_two_accounts_see_nothing_of_each_other(bench: Bench) -> None:
    """Same names on both sides, other things; lists hold one's own; quotas and names are one's own too."""
    other = bench.add_account("other")
    plan = bench.active_plan("p")
    bench.config("c", plan)
    bench.create_endpoint("e", "c")
    for operation, params, words in (
        ("DescribeTrainingPlan", {"TrainingPlanName": "p"}, "does not exist"),
        ("DescribeModel", {"ModelName": "c"}, "Could not find model"),
        ("DescribeEndpointConfig", {"EndpointConfigName": "c"}, "Could not find endpoint configuration"),
        ("DescribeEndpoint", {"EndpointName": "e"}, "Could not find endpoint"),
        ("DeleteEndpoint", {"EndpointName": "e"}, "Could not find endpoint"),
        ("DeleteModel", {"ModelName": "c"}, "Could not find model"),
        ("ListTags", {"ResourceArn": plan}, "Could not find resource"),
    ):  # fmt: skip
        with pytest.raises(ServiceError, match=words):
            bench.call(operation, account=other, **params)
    for operation in ("ListTrainingPlans", "ListModels", "ListEndpointConfigs", "ListEndpoints"):
        (found,) = bench.call(operation, account=other).values()
        assert found == [], operation
        (mine,) = bench.call(operation).values()
        assert len(mine) == 1, operation
    bench.call("CreateModel", account=other, ModelName="c", PrimaryContainer={"Image": "i"})


def test_an_offering_is_for_the_account_and_region_that_searched(bench: Bench) -> None:
    """Its id means nothing to anybody else."""
    offer = bench.offer()["TrainingPlanOfferingId"]
    other = bench.add_account("other")
    for where in ({"account": other}, {"region": "us-west-2"}):
        with pytest.raises(ServiceError, match="does not exist"):
            bench.call("CreateTrainingPlan", TrainingPlanName="p", TrainingPlanOfferingId=offer, **where)


def test_zone_names_of_two_accounts_are_permuted(bench: Bench) -> None:
    """The same zone ids under other names; a plan tells its zone in the words of its account."""

    def zones(account: Account | None) -> dict[str, str]:
        found = bench.call("DescribeAvailabilityZones", service="ec2", account=account)["AvailabilityZones"]
        return {zone["ZoneId"]: zone["ZoneName"] for zone in found}

    accounts = [bench.account, *(bench.add_account(f"a{n}") for n in range(12))]
    views = [zones(account) for account in accounts]
    for view in views:
        assert set(view) == {"use1-az1", "use1-az2", "use1-az3"}
        assert set(view.values()) == {"us-east-1a", "us-east-1b", "us-east-1c"}
    assert len({tuple(sorted(view.items())) for view in views}) > 1
    bench.buy("p", count=4)
    (capacity,) = bench.plan("p")["ReservedCapacitySummaries"]
    assert capacity["AvailabilityZone"] == views[0]["use1-az1"]


@pytest.mark.parametrize(
    ("service", "params", "passes"),
    [
        ("sagemaker", {"ResourceArn": "arn:aws:sagemaker:us-east-1:111122223333:model/m"}, True),
        ("sagemaker", {"ResourceArn": "arn:aws:sagemaker:us-east-1:999999999999:model/m"}, False),
        ("sagemaker", {"A": [{"B": "arn:aws:sagemaker:us-east-1:999999999999:model/m"}]}, False),
        ("sagemaker", {"ExecutionRoleArn": "arn:aws:iam::999999999999:role/r"}, True),
        ("sagemaker", {"Tags": [{"Value": "arn:aws:sagemaker:us-east-1:999999999999:model/m"}]}, True),
        ("sagemaker", {"Environment": {"M": "arn:aws:sagemaker:us-east-1:999999999999:model/m"}}, True),
        ("sagemaker", {"Name": "arn:nonsense"}, True),
    ],
)
def test_the_one_authorisation_step(service: str, params: dict[str, Any], passes: bool) -> None:
    """What is another account's by its ARN stops here; roles, tags and environments are the caller's affair.
    What is another account's by its ARN stops here; roles, tags and environments are the caller's affair."""
    account = Account("111122223333", "me")
    if passes:
        authorise(account, service, "Operation", params)
        return
    with pytest.raises(ServiceError) as refused:
        authorise(account, service, "Operation", params)
    assert refused.value.code == "AccessDeniedException"
    assert "not authorized to perform: sagemaker:Operation on resource" in refused.value.message
