"""A survey of all places: everything at once, the best so far, and what Ctrl-C leaves."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, cast

import pytest

from berth.aws.identity import Identity
from berth.aws.session import Door
from berth.cli.plan_ends import end
from berth.planner.need import Need
from berth.planner.offers import PlaceAnswer, PlaceOutcome
from berth.planner.part import Part, TypeCount
from berth.planner.plan import Plan
from berth.planner.wording import plan_text
from berth.sources.survey import survey
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Target

from .conftest import FakeClock, FakeService, refused, zones
from .test_capacity_blocks import offering

REGIONS = ("us-east-1", "us-west-2", "eu-north-1")


@dataclass
class FakeDoor:
    """A door whose EC2 is a function of the Region; SageMaker and the Price List are not there."""

    search: Callable[[str], Mapping[str, Any]]
    regions: tuple[str, ...] = REGIONS
    clock: FakeClock = field(default_factory=FakeClock)
    spot: Mapping[str, Any] = field(default_factory=lambda: {"SpotPriceHistory": []})

    @property
    def identity(self) -> Identity:
        """Somebody, on AWS."""
        return Identity("111122223333", "arn:aws:iam::111122223333:user/ada", self.regions, None)

    def check_account(self, wanted: str | None) -> None:
        """Any account is right."""

    def reader(self, service: str, region: str) -> Any:
        """A client of EC2, or one that knows no operation."""
        if service != "ec2":
            return FakeService()
        return FakeService(
            describe_capacity_block_offerings=lambda **_: self.search(region),
            describe_capacity_reservations=lambda **_: {"CapacityReservations": []},
            describe_spot_price_history=lambda **_: self.spot,
            describe_availability_zones=zones,
        )


def need(**changes: Any) -> Need:
    """One p5 for a day, anywhere."""
    made = Need("block-1", "p5.48xlarge", 1, timedelta(days=1), Target.INSTANCES, REGIONS)
    return replace(made, **changes)


def unheard(answer: PlaceAnswer, so_far: Plan | None) -> None:
    """Nobody listens."""


def asked(door: FakeDoor, told: Callable[[PlaceAnswer, Plan | None], None] = unheard) -> Plan:
    """The plan that comes of it."""
    return survey(cast(Door, door), need(), told)


def on_sale(region: str) -> Mapping[str, Any]:
    """One block, dearer from Region to Region."""
    number = REGIONS.index(region)
    return {"CapacityBlockOfferings": [offering(number, UpfrontFee=f"{1146 + number}.17")]}


def test_every_region_is_asked_and_the_best_so_far_is_told() -> None:
    """Three answers heard; the first ranking comes with the first offers; prices fall back, labelled."""
    heard: list[tuple[str, bool]] = []
    plan = asked(FakeDoor(on_sale), lambda answer, so_far: heard.append((answer.region, so_far is not None)))
    assert sorted(region for region, _ in heard) == sorted(REGIONS)
    assert heard[0][1], "the first offers are ranked at once"
    assert [c.offer.region for c in plan.choices] == list(REGIONS)
    assert plan.best is not None
    assert plan.best.fee == Money(Decimal("1146.17"))
    assert not plan.incomplete
    labelled = [line.rate.note for line in plan.pay_as_you_go if line.rate.component == "on-demand"]
    assert all("Price List: InvalidAction" in note for note in labelled)
    assert end(plan) == ExitCode.DONE


def test_ctrl_c_keeps_what_is_there() -> None:
    """One Region hangs; after the others have answered the person presses Ctrl-C."""
    forever = threading.Event()

    def search(region: str) -> Mapping[str, Any]:
        if region == "us-west-2":
            forever.wait(60)
        return on_sale(region)

    heard: list[str] = []

    def told(answer: PlaceAnswer, so_far: Plan | None) -> None:
        heard.append(answer.region)
        if len(heard) == 2:
            _thread.interrupt_main()

    plan = asked(FakeDoor(search), told)
    forever.set()
    assert {c.offer.region for c in plan.choices} == {"us-east-1", "eu-north-1"}
    missing = [a for a in plan.answers if not a.is_complete]
    assert [(a.region, a.outcome) for a in missing] == [("us-west-2", PlaceOutcome.NOT_ASKED)]
    assert "us-west-2 not asked (interrupted before it answered)" in " ".join(plan_text(plan, "AWS").split())
    with pytest.raises(BerthError) as ended:
        end(plan)
    assert ended.value.exit_code is ExitCode.INCOMPLETE


def refusing(**codes: str) -> Callable[[str], Mapping[str, Any]]:
    """A search in which Regions refuse with these codes; the rest have nothing on sale."""

    def search(region: str) -> Mapping[str, Any]:
        code = codes.get(region.replace("-", "_"))
        if code is not None:
            raise refused(code)
        return {"CapacityBlockOfferings": []}

    return search


QUOTA, FAST = "CapacityBlockDescribeLimitExceeded", "RequestLimitExceeded"
ENDS = [
    ({}, ExitCode.NO_CAPACITY, "every place answered"),
    ({"us_east_1": QUOTA, "us_west_2": QUOTA, "eu_north_1": QUOTA}, ExitCode.QUOTA, "no place answered"),
    ({"us_east_1": FAST, "us_west_2": FAST, "eu_north_1": FAST}, ExitCode.THROTTLED, "no place answered"),
    (
        {"us_east_1": "AuthFailure", "us_west_2": "AuthFailure", "eu_north_1": "UnauthorizedOperation"},
        ExitCode.CREDENTIALS,
        "no place answered",
    ),
    ({"us_east_1": "AuthFailure", "us_west_2": FAST}, ExitCode.INCOMPLETE, "1 of 3 places searched"),
    ({"us_east_1": QUOTA}, ExitCode.INCOMPLETE, "2 of 3 places searched"),
]


@pytest.mark.parametrize(("codes", "exit_code", "said"), ENDS, ids=[f"{e[1].name}-{len(e[0])}" for e in ENDS])
def test_how_it_ends_without_an_offer(codes: dict[str, str], exit_code: ExitCode, said: str) -> None:
    """Field faults 45 and 48: none, quota, throttled, rights, incomplete; a refusal is never "none found"."""
    with pytest.raises(BerthError) as ended:
        end(asked(FakeDoor(refusing(**codes))))
    assert ended.value.exit_code is exit_code
    assert said in ended.value.message


def test_parts_that_are_held_beside_are_asked_priced_and_bounded() -> None:
    """Both types are searched for, each question once; quotas of all parts are named, though not read."""
    eval_part = Part("eval", (TypeCount("p4d.24xlarge", 1, 1),), Target.INSTANCES)
    head = Part("head", (TypeCount("m7i.4xlarge", 1, 1),), Target.INSTANCES, reserve=False)
    plan = survey(cast(Door, FakeDoor(on_sale)), need(beside=(eval_part, head)), unheard)
    types = {answer.question.instance_type for answer in plan.answers if answer.question}
    assert types == {"p5.48xlarge", "p4d.24xlarge"}
    questions = [answer.question for answer in plan.answers]
    assert len(set(questions)) == len(questions)
    assert {rate.instance_type for rate in plan.rates} == {"p4d.24xlarge", "m7i.4xlarge"}
    bounds = {(q.region, q.instance_type) for q in plan.quotas}
    assert bounds == {(r, t) for r in REGIONS for t in ("p5.48xlarge", "p4d.24xlarge", "m7i.4xlarge")}
    assert all(q.value is None and "InvalidAction" in q.trouble for q in plan.quotas)
