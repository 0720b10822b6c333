"""Endpoints from creation to deletion, as their containers report and their plan's clock says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from berth.yard.engines.engine import ReportKind
from berth.yard.errors import ServiceError

from .bench import TYPE, Bench


@pytest.fixture
def serving(bench: Bench) -> Bench:
    """A plan of two instances with the endpoint `e` InService on one of them."""
    plan = bench.active_plan("p", count=2)
    bench.config("c", plan)
    bench.create_endpoint("e", "c")
    bench.engine.say(ReportKind.READY)
    return bench


def test_an_endpoint_is_creating_until_ping_answers(bench: Bench) -> None:
    """CreateEndpoint takes the instances at once; READY makes it InService."""
    bench.config("c", bench.active_plan("p", count=2))
    bench.create_endpoint("e", "c")
    assert bench.endpoint("e")["EndpointStatus"] == "Creating"
    assert bench.plan("p")["AvailableInstanceCount"] == 1
    bench.engine.say(ReportKind.READY)
    shown = bench.endpoint("e")
    assert shown["EndpointStatus"] == "InService"
    (variant,) = shown["ProductionVariants"]
    reservation = variant["CapacityReservationConfig"]
    assert (reservation["TotalInstanceCount"], reservation["AvailableInstanceCount"]) == (2, 1)
    assert reservation["UsedByCurrentEndpoint"] == 1


def test_a_container_that_fails_fails_the_endpoint_and_frees_its_instances(bench: Bench) -> None:
    """FailureReason has the engine's words; the plan has its instances back; only delete works then."""
    bench.config("c", bench.active_plan("p"))
    bench.create_endpoint("e", "c")
    bench.engine.say(ReportKind.FAILED, "it said no")
    assert bench.endpoint("e")["EndpointStatus"] == "Failed"
    assert bench.endpoint("e")["FailureReason"] == "it said no"
    assert bench.plan("p")["AvailableInstanceCount"] == 1
    bench.call("DeleteEndpoint", EndpointName="e")
    with pytest.raises(ServiceError, match="Could not find endpoint"):
        bench.endpoint("e")


def test_a_container_that_dies_is_replaced(serving: Bench) -> None:
    """InService, Updating with the reason, InService again, with a container of the same key."""
    key = serving.engine.started[-1].key
    serving.engine.say(ReportKind.DIED, "exit code 3")
    assert serving.endpoint("e")["EndpointStatus"] == "Updating"
    serving.settle()
    assert [container.key for container in serving.engine.started] == [key, key]
    serving.engine.say(ReportKind.READY)
    assert serving.endpoint("e")["EndpointStatus"] == "InService"
    assert "FailureReason" not in serving.endpoint("e")


def test_the_fifth_death_is_the_last(serving: Bench) -> None:
    """A container that cannot live is not started for ever."""
    for _ in range(5):
        serving.engine.say(ReportKind.DIED, "exit code 3")
        serving.settle()
    assert serving.endpoint("e")["EndpointStatus"] == "Failed"
    assert "exit code 3" in serving.endpoint("e")["FailureReason"]
    assert len(serving.engine.started) == 5
    assert serving.plan("p")["AvailableInstanceCount"] == 2


def test_the_plan_takes_its_instances_back_before_its_end(serving: Bench) -> None:
    """OutOfService thirty minutes before the end, at that very instant, its container ended."""
    end = serving.plan("p")["EndTime"]
    serving.move(end - timedelta(minutes=30, microseconds=1))
    assert serving.endpoint("e")["EndpointStatus"] == "InService"
    serving.move(end - timedelta(minutes=30))
    assert serving.endpoint("e")["EndpointStatus"] == "OutOfService"
    assert serving.engine.stopped == [serving.engine.started[-1].key]
    with pytest.raises(ServiceError, match=r"\(1\) exceeds reserved capacity \(0\)"):
        serving.create_endpoint("late", "c")
    serving.call("DeleteEndpoint", EndpointName="e")
    with pytest.raises(ServiceError, match="Could not find endpoint"):
        serving.endpoint("e")


def test_an_endpoint_still_creating_at_reclaim_fails(bench: Bench) -> None:
    """There is no move from Creating to OutOfService: it never served."""
    bench.config("c", bench.active_plan("p"))
    bench.create_endpoint("e", "c")
    bench.move(bench.plan("p")["EndTime"] - timedelta(minutes=30))
    assert bench.endpoint("e")["EndpointStatus"] == "Failed"


def test_instances_are_free_again_once_the_endpoint_is_gone(serving: Bench) -> None:
    """Delete and create again on the same plan, as AWS allows."""
    serving.call("DeleteEndpoint", EndpointName="e")
    assert serving.plan("p")["AvailableInstanceCount"] == 2
    serving.create_endpoint("e", "c")
    assert serving.endpoint("e")["EndpointStatus"] == "Creating"


def test_delete_is_refused_while_creating_and_while_updating(serving: Bench) -> None:
    """AWS's words: in-progress."""
    serving.create_endpoint("f", "c")
    serving.engine.say(ReportKind.DIED, "gone", key=serving.engine.started[0].key)
    for name in ("f", "e"):
        with pytest.raises(ServiceError, match="Cannot update in-progress endpoint"):
            serving.call("DeleteEndpoint", EndpointName=name)


def test_late_news_of_a_container_that_nobody_knows_changes_nothing(serving: Bench) -> None:
    """An engine may still report what was deleted long ago."""
    before = serving.rows("SELECT * FROM events")
    for kind in ReportKind:
        serving.engine.say(kind, "late", key="nobody")
    assert len(serving.rows("SELECT * FROM events")) == len(before)


def test_more_than_is_free_is_refused_in_the_words_of_aws(serving: Bench) -> None:
    """The message carries what was asked and what is there; nothing is written."""
    serving.create_endpoint("f", "c")
    with pytest.raises(ServiceError) as refused:
        serving.create_endpoint("g", "c")
    assert refused.value.message == (
        "Requested instance count (1) exceeds reserved capacity (0) for training plan."
    )
    with pytest.raises(ServiceError, match="Could not find"):
        serving.endpoint("g")


def test_two_endpoints_may_not_differ_in_case_only(serving: Bench) -> None:
    """Unique without regard to case at creation, found with regard to it."""
    with pytest.raises(ServiceError, match="Cannot create already existing endpoint"):
        serving.create_endpoint("E", "c")
    with pytest.raises(ServiceError, match="Could not find endpoint"):
        serving.endpoint("E")


def test_without_a_plan_there_is_no_capacity(bench: Bench) -> None:
    """On-demand hosting is not sold here: the endpoint fails as AWS's does when there are no machines."""
    bench.config("c", None)
    bench.create_endpoint("e", "c")
    assert bench.endpoint("e")["EndpointStatus"] == "Failed"
    assert "InsufficientInstanceCapacity" in bench.endpoint("e")["FailureReason"]
    assert bench.engine.started == []


def test_a_restarted_yard_starts_its_containers_again(open_bench: type[Bench]) -> None:
    """InService is Updating until ping passes; Creating goes on; Deleting is gone; Failed stays."""
    bench = open_bench()
    bench.config("c", bench.active_plan("p", count=4))
    for name in ("served", "waits", "broken", "leaves"):
        bench.create_endpoint(name, "c")
        if name != "waits":
            bench.engine.say(ReportKind.FAILED if name == "broken" else ReportKind.READY, "no")
    bench.do(lambda tx: tx.run("UPDATE endpoints SET status = 'Deleting' WHERE name = 'leaves'"))
    bench = open_bench()
    bench.settle()
    states = {row["name"]: row["status"] for row in bench.rows("SELECT * FROM endpoints")}
    assert states == {"served": "Updating", "waits": "Creating", "broken": "Failed"}
    assert len(bench.engine.started) == 2
    for container in bench.engine.started:
        bench.engine.say(ReportKind.READY, key=container.key)
    assert {bench.endpoint(name)["EndpointStatus"] for name in ("served", "waits")} == {"InService"}
    assert bench.plan("p")["AvailableInstanceCount"] == 2


def test_what_cannot_run_on_the_plan_is_refused_with_the_reason(bench: Bench) -> None:
    """Not Active yet, wrong target, wrong type, more than the plan has, unknown plan, half a reservation."""
    scheduled = bench.buy("scheduled")
    with pytest.raises(ServiceError, match="must be Active to be used by an endpoint; it is Pending"):
        bench.config("a", scheduled)
    training = bench.buy("training", TargetResources=["training-job"])
    bench.advance(minutes=45)
    assert bench.plan("training")["Status"] == "Active"
    for name, plan, variant, words in (
        ("b", training, {}, "has target training-job; an endpoint needs target endpoint"),
        ("d", scheduled, {"InstanceType": "ml.p5.48xlarge"}, "does not match the training plan's"),
        ("f", scheduled, {"InitialInstanceCount": 3}, r"\(3\) exceeds reserved capacity \(1\)"),
        ("g", scheduled + "x", {}, "Could not find training plan"),
        ("h", scheduled, {"CapacityReservationConfig": {"MlReservationArn": scheduled}}, "needs"),
    ):
        with pytest.raises(ServiceError, match=words):
            bench.config(name, plan, **variant)
    assert bench.rows("SELECT * FROM endpoint_configs") == []


def test_the_endpoint_quota_counts_what_runs(open_bench: type[Bench]) -> None:
    """The text names type, limit, use and request, as AWS's does."""
    from .bench import small_fleet

    quota = f'\n[quotas]\nendpoint_usage = {{ "*" = 256, "{TYPE}" = 1 }}\n'
    bench = open_bench(fleet=small_fleet(quota))
    bench.config("c", bench.active_plan("p", count=2))
    bench.create_endpoint("e", "c")
    with pytest.raises(ServiceError) as refused:
        bench.create_endpoint("f", "c")
    assert refused.value.code == "ResourceLimitExceeded"
    assert refused.value.message.startswith(
        f"The account-level service limit '{TYPE} for endpoint usage' is 1 Instances, with current"
        " utilization of 1 Instances and a request delta of 1 Instances."
    )


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("s3://b/k", "there is nothing at s3://b/k"),
        ("s3://broken/k", "The yard could not start the container"),
    ],
)
def test_data_that_cannot_be_had_fails_the_endpoint(bench: Bench, url: str, reason: str) -> None:
    """Whether the data is at fault or the yard: the endpoint does not stay Creating, and can be deleted."""
    bench.config("c", bench.active_plan("p"))
    bench.call("DeleteModel", ModelName="c")
    bench.call("CreateModel", ModelName="c", PrimaryContainer={"Image": "i", "ModelDataUrl": url})
    bench.create_endpoint("e", "c")
    assert bench.endpoint("e")["EndpointStatus"] == "Failed"
    assert bench.endpoint("e")["FailureReason"].startswith(reason)
    bench.call("DeleteEndpoint", EndpointName="e")
