"""What the docs of the yard promise: every fault, verb and fixture name that they show is there, and works.
What the docs of the yard promise: every fault, verb and fixture name that they show is there, and works."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path
from typing import Any

from berth.yard.admin.app import ROUTES
from berth.yard.faults import FaultKind, read_fault
from berth.yard.lifecycle.moves import ENDPOINT, QUOTA_REQUEST, TRAINING_PLAN, States
from berth.yard.services import catalogue
from berth.yard.services.operation import served
from berth.yard.testing.process import Clients, YardProcess

DOCS = Path(__file__).parents[3] / "docs"
assert catalogue.SERVICES  # fills the register
SERVED = {name for _, name in served()}


def page(name: str) -> str:
    """The text of a page."""
    return (DOCS / name).read_text("utf-8")


def test_every_fault_is_in_the_table_with_a_command_that_works() -> None:
    """The example of each row is taken as it stands."""
    rows = dict(
        re.findall(r"^\| `([a-z-]+)` \|.*\| `arm ([^`]+)` \|$", page("internals/faults.md"), re.MULTILINE)
    )
    assert set(rows) == {kind.value for kind in FaultKind}
    for kind, command in rows.items():
        words = shlex.split(command)
        options = dict(zip(words[1::2], words[2::2], strict=True))
        times = int(options["--times"]) if "--times" in options else None
        body: dict[str, Any] = {"kind": words[0], "times": times, "amount": options.get("--amount", "")}
        assert read_fault({**body, "operation": options.get("--operation")}, None, 1, SERVED).kind == kind


def drawn(heading: str) -> set[tuple[str, str]]:
    """The arrows of a diagram of the page of states."""
    part = page("reference/states.md").split(f"## {heading}\n")[1].split("```mermaid\n")[1].split("```")[0]
    arrows = re.findall(r"^ +(\S+) --> ([^\s:]+)", part, re.MULTILINE)
    return {(one, other) for one, other in arrows if "[*]" not in (one, other)}


def test_the_diagrams_are_the_tables() -> None:
    """Every move is drawn, and nothing else."""

    def moves(states: States) -> set[tuple[str, str]]:
        return {(state, to) for state, reached in states.moves.items() for to in reached}

    assert drawn("Training plans") == moves(TRAINING_PLAN)
    assert drawn("Endpoints") == moves(ENDPOINT)
    assert drawn("Requests for a higher quota") == moves(QUOTA_REQUEST)


def test_every_route_of_the_admin_is_on_its_page() -> None:
    """And no other."""
    shown = set(re.findall(r"`(GET|POST|DELETE) (/[a-z/.]+)", page("reference/admin-api.md")))
    known = {(method, path) for method, path, _ in ROUTES if not path.startswith("/seed/")}
    assert known | {("POST", "/stop"), ("GET", "/openapi.json"), ("POST", "/seed/plans")} <= shown


def test_what_the_page_of_the_fixture_names_exists() -> None:
    """`yard.x` and `.x` of clients, clock and seed."""
    text = page("howto/rehearse-in-pytest.md")
    source = inspect.getsource(YardProcess)
    for name in set(re.findall(r"(?<![.\w])yard\.([a-z_0-9]+)", text)):
        assert hasattr(YardProcess, name) or f"self.{name}" in source, name
    for name in re.findall(r"`\.([a-z0-9]+)`", text.split("yard.clients.sagemaker`")[1].split("\n")[0]):
        assert hasattr(Clients, name), name


def test_the_examples_of_the_fixture_run(yard: YardProcess) -> None:
    """The two tests of the page, with a buyer and a deployment of a few lines."""
    text = page("howto/rehearse-in-pytest.md")
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)

    def our_buyer(client: Any, name: str) -> None:
        offer = client.search_training_plan_offerings(
            InstanceType="ml.trn1.32xlarge", InstanceCount=1, DurationHours=24, TargetResources=["endpoint"]
        )["TrainingPlanOfferings"][-1]
        try:
            client.create_training_plan(
                TrainingPlanName=name, TrainingPlanOfferingId=offer["TrainingPlanOfferingId"]
            )
        except client.exceptions.ResourceInUse:
            client.describe_training_plan(TrainingPlanName=name)

    def our_deployment(clients: Any, plan: str) -> None:
        assert clients.sagemaker.list_endpoints()["Endpoints"] == []

    namespace: dict[str, Any] = {"our_buyer": our_buyer, "our_deployment": our_deployment}
    exec("\n".join(examples), namespace)
    for name in [name for name in namespace if name.startswith("test_")]:
        namespace[name](yard)
