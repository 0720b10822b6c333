"""The whole list: its exit code, what to do, its text; and what the need names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.aws.refusals import Kind, Refusal
from berth.aws.sdk import MEMBERS, lacking, version
from berth.checkup.findings import Checkup, Finding, State, Topic, in_order
from berth.checkup.parts import PartsLook, part_findings
from berth.checkup.wording import WIDTH, checkup_text
from berth.planner.launch import Launch
from berth.planner.need import Deployment, Need
from berth.terms.outcomes import ExitCode
from berth.terms.ways import Target

from .conftest import ACCOUNT, ROLE, need_of

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
SILENT = Refusal(Kind.UNREACHABLE, "EndpointConnectionError", "could not connect", False)


def checkup(*found: tuple[Topic, State, str | None]) -> Checkup:
    """One with these findings."""
    findings = [Finding(topic, state, "what", "said", todo) for topic, state, todo in found]
    return Checkup(NOW, "eval", ACCOUNT, None, in_order(findings))


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ([(Topic.QUOTAS, State.OK, None)], ExitCode.DONE),
        ([(Topic.QUOTAS, State.WARNING, "x")], ExitCode.DONE),
        ([(Topic.QUOTAS, State.UNKNOWN, "x")], ExitCode.INCOMPLETE),
        ([(Topic.QUOTAS, State.MISSING, "x"), (Topic.RIGHTS, State.UNKNOWN, "y")], ExitCode.QUOTA),
        ([(Topic.QUOTAS, State.MISSING, "x"), (Topic.RIGHTS, State.MISSING, "y")], ExitCode.CREDENTIALS),
        ([(Topic.REGIONS, State.MISSING, "x"), (Topic.QUOTAS, State.MISSING, "y")], ExitCode.BAD_REQUEST),
    ],
)
def test_the_exit_code_is_of_what_comes_first(
    found: list[tuple[Topic, State, str | None]], code: ExitCode
) -> None:
    """Done only where nothing is missing and nothing unknown."""
    assert checkup(*found).exit_code is code


def test_what_to_do_is_told_once_and_what_is_missing_first() -> None:
    """In the text too."""
    made = checkup(
        (Topic.RIGHTS, State.UNKNOWN, "ask"), (Topic.QUOTAS, State.MISSING, "aws do it"),
        (Topic.NEED, State.MISSING, "aws do it"), (Topic.CLOCK, State.OK, None),
    )  # fmt: skip
    assert made.todo == ("aws do it", "ask")
    text = checkup_text(made)
    assert text.index("1. aws do it") < text.index("2. ask")
    assert text.endswith("1 ok, 2 missing, 1 unknown")
    assert checkup_text(checkup((Topic.CLOCK, State.OK, None))).endswith("1 ok: nothing to do")


words = st.text(alphabet="ab c\n\x1b\u202e", min_size=1, max_size=200)


@settings(deadline=None, max_examples=100)
@given(
    said=st.lists(st.tuples(st.sampled_from(Topic), st.sampled_from(State), words), min_size=1, max_size=8)
)
def test_the_text_is_for_eighty_columns_and_obeys_nobody(said: list[tuple[Topic, State, str]]) -> None:
    """Whatever a service says, no line but a command's is longer where words allow it, and none has control
    characters."""
    findings = [Finding(topic, state, "thing", " ".join(text.split(" ")[:9])) for topic, state, text in said]
    text = checkup_text(Checkup(NOW, None, None, None, in_order(findings)))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert all(len(line) <= WIDTH or max(map(len, line.split())) > WIDTH - 20 for line in text.splitlines())


def states(need: Need, *looks: PartsLook, artefact: bool | None = None) -> list[tuple[str, State]]:
    """What is found of what the need names."""
    return [(one.what, one.state) for one in part_findings(need, ACCOUNT, looks, artefact)]


def test_image_subnet_and_zone_of_a_launch(blocks: Need) -> None:
    """Each in each Region; a subnet in another zone than the need's cannot be used."""
    there = PartsLook("us-east-1", image=True, default_zones=frozenset({"use1-az1"}))
    assert states(blocks, there) == [
        ("image ami-0123456789abcdef0", State.OK), ("subnet in us-east-1", State.OK),
    ]  # fmt: skip
    absent = PartsLook("us-east-1", image=False, default_zones=frozenset())
    assert [state for _, state in states(blocks, absent)] == [State.MISSING, State.MISSING]
    silent = PartsLook("us-east-1", image=SILENT, default_zones=SILENT)
    assert [state for _, state in states(blocks, silent)] == [State.UNKNOWN, State.UNKNOWN]
    zoned = replace(blocks, zone_ids=("use1-az6",))
    assert states(zoned, there)[1][1] is State.WARNING
    named = replace(zoned, launch=Launch(image="ami-1", subnet="subnet-1"))
    for zones, state in (({"subnet-1": "use1-az6"}, State.OK), ({"subnet-1": "use1-az1"}, State.MISSING),
                         ({}, State.MISSING), (SILENT, State.UNKNOWN)):  # fmt: skip
        assert states(named, PartsLook("us-east-1", subnet_zones=zones)) == [  # type: ignore[arg-type]
            (states(named, PartsLook("us-east-1", subnet_zones=zones))[0][0], state)  # type: ignore[arg-type]
        ]
    assert states(replace(blocks, launch=None)) == [("image", State.WARNING)]
    assert states(replace(blocks, launch=Launch(template="t", role="p")))[-1] == ("role p", State.UNKNOWN)


def test_model_artefact_and_role_of_a_deployment(served: Need) -> None:
    """A role of another account cannot be used; a local artefact is there or not."""
    assert states(served, PartsLook("us-east-1"), artefact=True) == [("artefact", State.OK)]
    assert states(served, artefact=False) == [("artefact", State.MISSING)]
    foreign = Deployment(image="i", role=ROLE.replace(ACCOUNT, "999999999999"))
    assert states(need_of(Target.ENDPOINT, deployment=foreign))[-1][1] is State.MISSING
    model = need_of(Target.ENDPOINT, deployment=Deployment(model_name="m"))
    assert states(model, PartsLook("us-east-1", model=False)) == [("model m", State.MISSING)]
    assert states(need_of(Target.ENDPOINT)) == [("deployment", State.WARNING)]
    assert states(need_of(Target.TRAINING_JOB)) == []


def test_an_sdk_that_lacks_something_is_named_by_it() -> None:
    """Operations and members alike; the installed one has what Berth sends."""
    assert lacking(MEMBERS) == ()
    assert lacking(["ec2:NoSuchThing", "nothing:X"]) == ("ec2:NoSuchThing", "nothing:X")
    assert version()[0].isdigit()
