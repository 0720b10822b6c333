"""Deploying and clearing up: in order, read back, stopped at every effect; what is not ours stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from berth.orders.purchase import Purchase
from berth.orders.shops.training_plans import seen_plan
from berth.orders.steps import StepKind, StepState
from berth.planner.need import Deployment
from berth.terms.outcomes import BerthError, ExitCode
from berth.workloads.clean import clean, still_paid
from berth.workloads.deploy import Storage, deploy
from berth.workloads.sites import Site

MODEL = Deployment(image="echo:1", data="s3://bucket/model.tar.gz", role="arn:aws:iam::111122223333:role/x")
KINDS = {"model": "Model", "endpoint_config": "EndpointConfig", "endpoint": "Endpoint"}


def refused(code: str, message: str, status: int = 400) -> ClientError:
    """An error as botocore raises it."""
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}, "Any"
    )


class FakeSageMaker:
    """Models, configurations and endpoints of one account, and the training plans of the shared fake."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.things: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in KINDS}
        self.tags: dict[str, list[dict[str, str]]] = {}
        self.made: list[str] = []
        self.deleted: list[str] = []
        self.looks_until_ready = 2
        self.ends_in = "InService"
        self.change: Callable[[str, dict[str, Any]], dict[str, Any]] = lambda kind, answer: answer
        self.fault: str | None = None
        self.late_configuration = 0

    def __getattr__(self, name: str) -> Any:
        verb, _, kind = name.partition("_")
        if kind in KINDS and verb in {"create", "describe", "delete"}:
            return lambda **request: self._call(verb, kind, request)
        raise AttributeError(name)

    def _call(self, verb: str, kind: str, request: dict[str, Any]) -> Mapping[str, Any]:
        self.world.effects(f"{verb} {kind}:before")
        answer: dict[str, Any] = getattr(self, f"_{verb}")(kind, request)
        if verb == "create" and self.fault == f"lost {kind}":
            self.fault = None
            raise ReadTimeoutError(endpoint_url="http://127.0.0.1:1")
        self.world.effects(f"{verb} {kind}:after")
        return answer

    def _create(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        name = request[f"{KINDS[kind]}Name"]
        if name in self.things[kind]:
            raise refused("ValidationException", f'Cannot create already existing {kind} "{name}".')
        if kind == "endpoint" and self.late_configuration > 0:
            self.late_configuration -= 1
            raise refused("ValidationException", 'Could not find endpoint configuration "x".')
        arn = f"arn:aws:sagemaker:us-east-1:111122223333:{kind}/{name}"
        self.tags[arn] = request.get("Tags", [])
        self.made.append(f"{kind} {name}")
        thing = {key: value for key, value in request.items() if key != "Tags"}
        self.things[kind][name] = {**thing, f"{KINDS[kind]}Arn": arn, "looks": 0}
        return {f"{KINDS[kind]}Arn": arn}

    def _describe(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        name = request[f"{KINDS[kind]}Name"]
        thing = self.things[kind].get(name)
        if thing is None:
            raise refused("ValidationException", f'Could not find {kind} "{name}".')
        thing["looks"] += 1
        answer = {key: value for key, value in thing.items() if key != "looks"}
        if kind == "endpoint":
            answer.update(self._endpoint(name, thing))
        return self.change(kind, answer)

    def _endpoint(self, name: str, thing: dict[str, Any]) -> dict[str, Any]:
        config = self.things["endpoint_config"][thing["EndpointConfigName"]]
        ready = thing["looks"] > self.looks_until_ready
        variants = [
            {"VariantName": one["VariantName"], "CapacityReservationConfig": {
                **one["CapacityReservationConfig"], "UsedByCurrentEndpoint": 1, "TotalInstanceCount": 1}}
            for one in config["ProductionVariants"]
        ]  # fmt: skip
        return {
            "EndpointStatus": self.ends_in if ready else "Creating",
            "ProductionVariants": variants,
            "FailureReason": "did not pass the ping health check",
        }

    def _delete(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        name = request[f"{KINDS[kind]}Name"]
        if name not in self.things[kind]:
            raise refused("ValidationException", f'Could not find {kind} "{name}".')
        self.deleted.append(f"{kind} {name}")
        del self.things[kind][name]
        return {}

    def list_tags(self, **request: Any) -> Mapping[str, Any]:
        """ListTags."""
        return {"Tags": self.tags.get(request["ResourceArn"], [])}

    def list_training_plans(self, **request: Any) -> Mapping[str, Any]:
        """ListTrainingPlans."""
        listed: Mapping[str, Any] = self.world.aws.list_training_plans(**request)
        return listed


class Yard:
    """A bought, open reservation and what runs in it."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.sagemaker = FakeSageMaker(world)
        self.purchase: Purchase = world.buy()
        self.open()

    @property
    def name(self) -> str:
        """The name of everything that is made for the order."""
        return self.purchase.order.reservation_name

    def open(self) -> None:
        """The window opens."""
        self.world.aws.plans[self.name]["Status"] = "Active"
        self.world.clock.at = self.purchase.order.offer.paid_window.start + timedelta(minutes=1)

    def site(self) -> Site:
        """What deploying leans on."""
        world = self.world
        return Site(
            world.journal, world.clock, lambda service: self.sagemaker, "111122223333",
            world.warnings.append, world.warnings.append,
        )  # fmt: skip

    def seen(self) -> Any:
        """The reservation as AWS shows it."""
        return seen_plan(self.world.aws.plans[self.name], self.name)

    def deploy(self, wanted: Deployment = MODEL) -> str:
        """Deploy into the reservation."""
        return deploy(self.site(), self.world.order(), self.seen(), wanted, no_storage)

    def clean(self) -> tuple[str, ...]:
        """Clear up."""
        return clean(self.site(), self.world.order())

    def steps(self) -> dict[StepKind, StepState]:
        """The journal's steps."""
        found = self.world.journal.steps(self.world.order().key)
        return {kind: step.state for kind, step in found.items()}


def no_storage() -> Storage:
    """Nothing local is deployed in these tests."""
    raise AssertionError("no storage is needed")


@pytest.fixture
def make_yard(make_world: Callable[[], Any]) -> Callable[[], Yard]:
    """Makes reservations."""
    return lambda: Yard(make_world())


@pytest.fixture
def rented(make_yard: Callable[[], Yard]) -> Yard:
    """An open reservation."""
    return make_yard()


def test_an_endpoint_is_made_on_the_reservation_only(rented: Yard) -> None:
    """Model, configuration, endpoint, in this order, tied to the training plan's ARN."""
    assert rented.deploy() == rented.name
    assert rented.sagemaker.made == [f"{kind} {rented.name}" for kind in KINDS]
    variant = rented.sagemaker.things["endpoint_config"][rented.name]["ProductionVariants"][0]
    assert variant["CapacityReservationConfig"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "MlReservationArn": rented.purchase.order.reservation_arn,
    }
    assert set(rented.steps().values()) == {StepState.MADE}


def test_deploying_twice_makes_nothing_twice(rented: Yard) -> None:
    """Run again, it finds what is there."""
    rented.deploy()
    made = list(rented.sagemaker.made)
    rented.deploy()
    assert rented.sagemaker.made == made


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_answer_of_a_creation_is_found(rented: Yard, kind: str) -> None:
    """The reply of a creation is lost: what was made carries our mark and is taken over."""
    rented.sagemaker.fault = f"lost {kind}"
    rented.deploy()
    assert sorted(rented.sagemaker.made) == sorted(f"{one} {rented.name}" for one in KINDS)


def test_a_late_configuration_is_waited_for(rented: Yard) -> None:
    """CreateEndpoint does not find a configuration that was just made: tried again, shortly."""
    rented.sagemaker.late_configuration = 3
    rented.deploy()
    assert rented.sagemaker.things["endpoint"]


def test_a_configuration_that_lost_the_reservation_launches_nothing(rented: Yard) -> None:
    """Read back before anything runs: no reservation in it, no endpoint, an alarm (field fault 11)."""

    def drop(kind: str, answer: dict[str, Any]) -> dict[str, Any]:
        if kind == "endpoint_config":
            del answer["ProductionVariants"][0]["CapacityReservationConfig"]
        return answer

    rented.sagemaker.change = drop
    with pytest.raises(BerthError) as caught:
        rented.deploy()
    assert caught.value.exit_code is ExitCode.BOUGHT_NOT_LAUNCHED
    assert "ALARM" in caught.value.message
    assert rented.sagemaker.things["endpoint"] == {}


def test_an_endpoint_on_something_else_is_stopped(rented: Yard) -> None:
    """The endpoint shows another reservation: it is deleted at the first look (field fault 11)."""

    def swap(kind: str, answer: dict[str, Any]) -> dict[str, Any]:
        if kind == "endpoint":
            answer["ProductionVariants"][0]["CapacityReservationConfig"] = {"MlReservationArn": "arn:other"}
        return answer

    rented.sagemaker.change = swap
    with pytest.raises(BerthError) as caught:
        rented.deploy()
    assert "ALARM" in caught.value.message
    assert "it is being deleted" in caught.value.message
    assert rented.sagemaker.deleted == [f"endpoint {rented.name}"]


@pytest.mark.parametrize("member", ["ProductionVariants", "EndpointStatus", "FailureReason", "EndpointArn"])
def test_absent_members_break_nothing(rented: Yard, member: str) -> None:
    """What an endpoint's description leaves out is unknown: no crash, nothing deleted."""

    def drop(kind: str, answer: dict[str, Any]) -> dict[str, Any]:
        if kind == "endpoint":
            answer.pop(member, None)
        return answer

    rented.sagemaker.change = drop
    try:
        rented.deploy()
    except BerthError as error:
        assert error.exit_code is ExitCode.INCOMPLETE  # noqa: PT017 - the only other end
    assert rented.sagemaker.deleted == []


@pytest.mark.parametrize("said", [None, "never-heard-of"])
@pytest.mark.parametrize("times", [3, None])
def test_a_state_that_cannot_be_read_is_looked_for_again(
    rented: Yard, said: str | None, times: int | None
) -> None:
    """Unreadable answers are passed over; where none can be read, nobody is told to remove what may serve."""
    left = [times]

    def garble(kind: str, answer: dict[str, Any]) -> dict[str, Any]:
        if kind != "endpoint" or left[0] == 0:
            return answer
        left[0] = None if left[0] is None else left[0] - 1
        return {k: v for k, v in (answer | {"EndpointStatus": said}).items() if v is not None}

    rented.sagemaker.change = garble
    if times is not None:
        assert rented.deploy() == rented.name
        return
    with pytest.raises(BerthError) as caught:
        rented.deploy()
    assert caught.value.exit_code is ExitCode.INCOMPLETE
    assert "may be in service" in caught.value.message
    assert "berth show" in (caught.value.next_step or "")
    assert "clean" not in f"{caught.value.message} {caught.value.next_step}"
    rented.sagemaker.change = lambda kind, answer: answer
    assert rented.deploy() == rented.name


def test_a_garbled_reservation_deletes_nothing(rented: Yard) -> None:
    """A reservation's ARN that is none proves nothing about where the endpoint runs."""

    def garble(kind: str, answer: dict[str, Any]) -> dict[str, Any]:
        if kind == "endpoint":
            answer["ProductionVariants"][0]["CapacityReservationConfig"]["MlReservationArn"] = (
                "never-heard-of"
            )
        return answer

    rented.sagemaker.change = garble
    assert rented.deploy() == rented.name
    assert rented.sagemaker.deleted == []


def test_a_container_that_does_not_start_is_told(rented: Yard) -> None:
    """Failed: exit 30 with AWS's reason and what was paid."""
    rented.sagemaker.ends_in = "Failed"
    with pytest.raises(BerthError) as caught:
        rented.deploy()
    assert caught.value.exit_code is ExitCode.BOUGHT_NOT_LAUNCHED
    assert "ping health check" in caught.value.message
    assert caught.value.spent.line() == "paid 228.77 USD, order eval"


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_our_name_and_not_our_mark_is_left_alone(rented: Yard, kind: str) -> None:
    """A look-alike stops the deployment and is never deleted."""
    arn = f"arn:aws:sagemaker:us-east-1:111122223333:{kind}/{rented.name}"
    rented.sagemaker.things[kind][rented.name] = {
        f"{KINDS[kind]}Arn": arn, "looks": 0, "EndpointConfigName": rented.name,
    }  # fmt: skip
    if kind == "endpoint":
        rented.sagemaker.things["endpoint_config"].setdefault(rented.name, {"ProductionVariants": []})
    with pytest.raises(BerthError):
        rented.deploy()
    rented.clean()
    assert rented.name in rented.sagemaker.things[kind]


def test_another_model_needs_a_clean_place(rented: Yard) -> None:
    """A different image into the same order is refused until it is cleaned."""
    rented.deploy()
    with pytest.raises(BerthError) as caught:
        rented.deploy(Deployment(image="other:2", role=MODEL.role))
    assert caught.value.exit_code is ExitCode.BAD_REQUEST
    assert "berth clean" in (caught.value.next_step or "")


@pytest.mark.parametrize(
    ("state", "shift", "words"),
    [
        ("Pending", timedelta(days=-1), "opens at"),
        ("Scheduled", timedelta(minutes=-30), "opens at"),
        ("Scheduled", timedelta(minutes=1), "AWS has not opened it yet"),
        ("Active", timedelta(hours=23, minutes=35), "too late in this window"),
        ("Expired", timedelta(days=2), "the window is over"),
        ("Dreaming", timedelta(hours=1), "only an Active one"),
    ],
)
def test_a_window_that_is_not_open_is_refused_before_any_call(
    rented: Yard, state: str, shift: timedelta, words: str
) -> None:
    """Not Active, or too late: exit 30, when it opens, and nothing is created."""
    rented.world.aws.plans[rented.name]["Status"] = state
    rented.world.clock.at = rented.purchase.order.offer.paid_window.start + shift
    with pytest.raises(BerthError) as caught:
        rented.deploy()
    assert caught.value.exit_code is ExitCode.BOUGHT_NOT_LAUNCHED
    assert words in caught.value.message
    assert rented.sagemaker.made == []


def test_a_wrong_target_is_refused_and_fitting_ones_are_named(rented: Yard) -> None:
    """Bought for training jobs: refused locally, and the account's endpoint plans are listed."""
    world = rented.world
    world.aws.sell("other-plan", world.approved, {})
    world.aws.plans[rented.name]["TargetResources"] = ["training-job"]
    with pytest.raises(BerthError) as caught:
        rented.deploy()
    assert caught.value.exit_code is ExitCode.BAD_REQUEST
    assert "fits: other-plan: Pending, 1 x ml.trn1.32xlarge" in caught.value.message
    assert rented.sagemaker.made == []


def test_clean_removes_in_order_and_again_does_no_harm(rented: Yard) -> None:
    """Endpoint, configuration, model; a second time there is nothing left."""
    rented.deploy()
    rented.clean()
    assert rented.sagemaker.deleted == [f"{kind} {rented.name}" for kind in reversed(KINDS)]
    assert rented.clean() == ()
    rented.deploy()
    assert rented.sagemaker.things["endpoint"]


def test_what_somebody_put_in_its_place_is_left_alone(rented: Yard) -> None:
    """An endpoint of our name that somebody deleted and made anew without our mark is not deleted."""
    rented.deploy()
    arn = f"arn:aws:sagemaker:us-east-1:111122223333:endpoint/{rented.name}"
    rented.sagemaker.tags[arn] = [{"Key": "berth:order", "Value": "111122223333/other/1"}]
    rented.clean()
    assert rented.name in rented.sagemaker.things["endpoint"]
    assert any("left alone" in said for said in rented.world.warnings)


def test_clean_works_from_a_lost_journal(rented: Yard, make_world: Callable[[], Any]) -> None:
    """Without a journal, what carries the order's name and mark is found and removed."""
    rented.deploy()
    fresh = make_world()
    fresh.aws = rented.world.aws
    fresh.buy()
    rented.sagemaker.world = fresh
    site = Site(fresh.journal, fresh.clock, lambda service: rented.sagemaker, "111122223333", print, print)
    assert len(clean(site, fresh.order())) == 3
    assert rented.sagemaker.things == {kind: {} for kind in KINDS}


def test_what_is_still_paid_is_said(rented: Yard) -> None:
    """A quarter into the window three quarters of the fee are unused (field fault 4)."""
    window = rented.purchase.order.offer.paid_window
    paid = still_paid(rented.world.order(), rented.seen(), window.start + window.duration / 4)
    assert paid is not None
    assert paid.until == window.end
    assert str(paid.unused) == "171.58 USD"
    assert still_paid(rented.world.order(), rented.seen(), window.end) is None


def test_a_crash_at_every_effect_of_deploying_and_clearing(
    make_yard: Callable[[], Yard], crash: type[BaseException]
) -> None:
    """Stopped anywhere and run again: one of each is made, all of it is removed."""
    stop, crashed = 0, True
    while crashed:
        stop += 1
        rented = make_yard()
        crashed = False
        rented.world.stop_after(stop)
        try:
            rented.deploy()
            rented.clean()
        except crash:
            crashed = True
            rented.world.crash()
        rented.world.effects.stop_at = None
        if StepState.REMOVING in rented.steps().values():
            with pytest.raises(BerthError, match="half removed"):
                rented.deploy()
            rented.clean()
        rented.deploy()
        assert len(rented.sagemaker.things["endpoint"]) == 1
        rented.clean()
        assert rented.sagemaker.things == {kind: {} for kind in KINDS}
        assert rented.clean() == ()
        rented.world.journal.close()
    assert stop > 40
