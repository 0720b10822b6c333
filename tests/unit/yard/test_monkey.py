"""A monkey at every served operation: whatever the models allow, nothing breaks and the calendar stays true.
A monkey at every served operation: whatever the models allow, nothing breaks and the calendar stays true."""

from __future__ import annotations

import importlib.util
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from berth.terms.instants import from_micros
from berth.terms.window import Window
from berth.yard.engines.engine import ReportKind
from berth.yard.errors import ServiceError
from berth.yard.fleet.calendar import SLOT
from berth.yard.services.operation import Kind, find, served
from berth.yard.wire.service import load

from .bench import TYPE, Bench

SPEC = importlib.util.spec_from_file_location(
    "samples", Path(__file__).parents[2] / "protocol" / "samples.py"
)
assert SPEC is not None
assert SPEC.loader is not None
samples = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(samples)

STEPS = 600
# The chain that leads to a container; what changes most.
FAVOURITES = (
    "SearchTrainingPlanOfferings", "CreateTrainingPlan", "CreateModel", "CreateEndpointConfig",
    "CreateEndpoint",
)  # fmt: skip
NAMES = ("a", "b", "c")
# What a caller may well say, so that the monkey gets beyond "not found".
LIKELY: dict[str, Callable[[random.Random], Any]] = {
    **dict.fromkeys(
        ("TrainingPlanName", "ModelName", "EndpointConfigName", "EndpointName", "VariantName"),
        lambda draw: draw.choice(NAMES),
    ),
    "InstanceType": lambda draw: draw.choice((TYPE, TYPE, TYPE, "ml.p5.48xlarge")),
    "InstanceCount": lambda draw: draw.choice((1, 1, 2, 4)),
    "InitialInstanceCount": lambda draw: draw.choice((1, 1, 2)),
    "DurationHours": lambda draw: draw.choice((24, 24, 48, 4368)),
    "TargetResources": lambda draw: draw.choice((["endpoint"], ["endpoint"], ["training-job"])),
    "MaxResults": lambda draw: draw.randint(1, 100),
}
# What only leads to "not served": tried elsewhere, one by one.
DROPPED = {
    "NextToken", "StartTimeAfter", "EndTimeBefore", "UltraServerType", "UltraServerCount", "TrainingPlanArn",
    "DryRun", "DeploymentConfig", "SpareInstanceCountPerUltraServer", "ServerlessConfig", "InstancePools",
    "ManagedInstanceScaling", "AcceleratorType", "AsyncInferenceConfig", "DataCaptureConfig",
    "ExplainerConfig", "ShadowProductionVariants", "Containers",
}  # fmt: skip


KEPT = {
    *LIKELY, "PrimaryContainer", "Image", "ProductionVariants", "CapacityReservationConfig",
    "MlReservationArn", "CapacityReservationPreference", "Key", "Value", "Name", "Values",
}  # fmt: skip


class Monkey:
    """Calls served operations in random order with random inputs, and plays the engine and the clock."""

    def __init__(self, bench: Bench, seed: int) -> None:
        self.bench, self.draw = bench, random.Random(seed)
        session = botocore.session.get_session()
        self.operations = [
            (service, name, session.get_service_model(service).operation_model(name).input_shape)
            for service, name in served()
            if (operation := find(service, name)) is not None and operation.kind is not Kind.RELAY
        ]
        self.favourites = [one for one in self.operations if one[1] in FAVOURITES]
        self.samples = samples.Samples(blank_ok=True)
        self.plans: list[str] = []
        self.offers: list[str] = []
        self.outcomes: Counter[str] = Counter()

    def step(self) -> None:
        """One call, or a move of the clock, or news of a container."""
        turn = self.draw.random()
        if turn < 0.08:
            self.bench.advance(minutes=self.draw.choice((1, 5, 30, 120, 1500)))
        elif turn < 0.2:
            self._report()
        else:
            self._call(*self.draw.choice(self.favourites if turn < 0.5 else self.operations))

    def _report(self) -> None:
        self.bench.settle()
        if self.bench.engine.started:
            key = self.draw.choice(self.bench.engine.started).key
            self.bench.engine.say(self.draw.choice(list(ReportKind)), "said the monkey", key)

    def _call(self, service: str, name: str, shape: Any) -> None:
        params = self._params(shape)
        try:
            result = self.bench.call(name, service=service, **params)
        except ServiceError as refused:
            self.outcomes[f"{name} {refused.code}"] += 1
            return
        self.outcomes[f"{name} ok"] += 1
        assert load(service).serialise(name, result, "request").status == 200
        if name == "CreateTrainingPlan":
            self.plans.append(result["TrainingPlanArn"])
        if name == "SearchTrainingPlanOfferings":
            self.offers += [offer["TrainingPlanOfferingId"] for offer in result["TrainingPlanOfferings"]]

    def _params(self, shape: Any) -> dict[str, Any]:
        params: dict[str, Any] = (
            {} if shape is None else self._likely("", shape, self.samples.value(shape) or {})
        )
        return params

    def _likely(self, name: str, shape: Any, value: Any) -> Any:
        if name == "TrainingPlanOfferingId" and self.offers:
            return self.offers[-self.draw.randint(1, min(3, len(self.offers)))]
        if name in ("MlReservationArn", "ResourceArn") and self.plans:
            return self.draw.choice(self.plans)
        if name in LIKELY:
            return LIKELY[name](self.draw)
        if shape.type_name == "structure":
            return {
                key: self._likely(key, shape.members[key], item)
                for key, item in value.items()
                if key in shape.required_members or self._wanted(key)
            }
        if shape.type_name == "list":
            return [self._likely("", shape.member, value[0])] if value else []
        return value

    def _wanted(self, name: str) -> bool:
        """Members that lead further nearly always, the others now and then."""
        return name not in DROPPED and self.draw.random() < (0.95 if name in KEPT else 0.3)


@pytest.mark.parametrize("seed", range(3))
def test_a_monkey_breaks_nothing(bench: Bench, seed: int) -> None:
    """Only refusals, only answers that can be sent; the calendar equals its rows, use never passes a plan."""
    monkey = Monkey(bench, seed)
    for _ in range(STEPS):
        monkey.step()
    assert monkey.outcomes["CreateTrainingPlan ok"] > 0, monkey.outcomes
    assert monkey.outcomes["SearchTrainingPlanOfferings ok"] > 0
    assert monkey.outcomes["CreateModel ok"] > 0
    assert monkey.outcomes["DescribeTrainingPlan ok"] > 0
    rows = bench.rows("SELECT * FROM bookings")
    first = bench.yard.clock.now()
    for key, pool in bench.yard.fleet.pools.items():
        for number in range(96):
            slot = Window(first + number * SLOT, first + (number + 1) * SLOT)
            booked = sum(
                row["count"]
                for row in rows
                if row["pool"] == key
                and from_micros(row["start_us"]) < slot.end
                and (row["end_us"] is None or from_micros(row["end_us"]) > slot.start)
            )
            assert booked <= pool.hosts
    over = bench.rows(
        "SELECT arn FROM training_plans AS p WHERE"
        " (SELECT coalesce(sum(count), 0) FROM variants WHERE plan_arn = p.arn) > p.count"
    )
    assert over == []
