"""Which quotas a need runs into, and what their values mean for it."""

from __future__ import annotations

import pytest

from berth.checkup.findings import State
from berth.checkup.quotas import QuotaAsked, QuotaSeen, quota_findings, quotas_of
from berth.terms.ways import Target

from .conftest import need_of

HERE = "us-east-1"
CODE = "--region us-east-1 --service-code ec2 --quota-code L-DA6814F2"
BLOCKS = QuotaAsked(HERE, "ec2", "L-DA6814F2", "P5 Capacity Blocks", 384, "vCPU")


def test_instances_run_into_blocks_on_demand_and_spot() -> None:
    """By AWS's codes, in vCPUs of all instances; the two that a block does without say so."""
    asked = quotas_of(need_of(), HERE)
    assert [(one.code, one.wanted, one.only_for) for one in asked] == [
        ("L-DA6814F2", 384, ""), ("L-417A185B", 384, "on demand"), ("L-7212CCBC", 384, "Spot"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "usage", "code"),
    [
        (Target.ENDPOINT, "ml.p5.48xlarge for endpoint usage", None),
        (Target.TRAINING_JOB, "ml.p5.48xlarge for training job usage", None),
        (Target.HYPERPOD_CLUSTER, "ml.p5.48xlarge for cluster usage", "L-8762A75F"),
    ],
)
def test_a_training_plan_runs_into_reserved_capacity_and_use(
    target: Target, usage: str, code: str | None
) -> None:
    """Three quotas: plans, reserved capacity of the type, and what runs in it (fault 37)."""
    asked = quotas_of(need_of(target), HERE)
    assert [one.code for one in asked] == ["L-867702E6", "L-9EF527CA", code]
    assert (asked[2].name, asked[2].wanted) == (usage, 2)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("g6.48xlarge", "Running On-Demand G and VT instances"),
        ("c7i.8xlarge", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"),
        ("trn1.32xlarge", "Running On-Demand Trn instances"),
    ],
)
def test_classes_that_share_a_quota_are_named_as_ec2_names_them(kind: str, name: str) -> None:
    """By the name its code is found, where none is published here."""
    assert name in {one.name for one in quotas_of(need_of(instance_type=kind), HERE)}


def test_a_type_without_a_published_code_is_asked_for_by_name() -> None:
    """No code is made up."""
    asked = quotas_of(need_of(Target.ENDPOINT, instance_type="ml.trn2.48xlarge"), HERE)
    assert asked[1].code is None
    assert asked[1].name.startswith("Number of ml.trn2.48xlarge instances in reserved capacity")
    of_blocks = quotas_of(need_of(instance_type="p99.48xlarge"), HERE)
    assert (of_blocks[0].code, of_blocks[0].wanted) == (None, None)


@pytest.mark.parametrize(
    ("seen", "state", "said", "todo"),
    [
        (QuotaSeen(BLOCKS, BLOCKS.code, 384.0), State.OK, "Blocks: 384; the need takes 384 vCPU", None),
        (
            QuotaSeen(BLOCKS, BLOCKS.code, 0.0, is_default=True), State.MISSING, "0 (AWS default)",
            f"aws service-quotas request-service-quota-increase {CODE} --desired-value 384",
        ),
        (
            QuotaSeen(BLOCKS, BLOCKS.code, 192.0, pending=((384.0, "CASE_OPENED"),)), State.MISSING,
            "384 asked for already (CASE_OPENED)",
            f"aws service-quotas list-requested-service-quota-change-history-by-quota {CODE}",
        ),
        (
            QuotaSeen(BLOCKS, BLOCKS.code, None, trouble="AccessDenied: no"), State.UNKNOWN,
            "not known (AccessDenied: no)",
            f"aws service-quotas get-service-quota {CODE}",
        ),
        (QuotaSeen(BLOCKS, BLOCKS.code, 1e6, trouble="Throttled"), State.OK, "open requests not known", None),
    ],
)  # fmt: skip
def test_value_beside_need(seen: QuotaSeen, state: State, said: str, todo: str | None) -> None:
    """Code, value, need, and the exact command that asks for more; a value that is not known is not zero."""
    (finding,) = quota_findings([seen])
    assert finding.state is state
    assert said in finding.said
    assert finding.todo == todo
    assert finding.facts["code"] == "L-DA6814F2"


def test_what_the_need_can_do_without_is_a_warning() -> None:
    """Too little on demand is no obstacle for a block, and does not change the exit code."""
    asked = QuotaAsked(HERE, "ec2", "L-417A185B", "Running On-Demand P instances", 384, "vCPU", "on demand")
    (finding,) = quota_findings([QuotaSeen(asked, asked.code, 0.0)])
    assert finding.state is State.WARNING
    assert "limits on demand alone" in finding.said


def test_unknown_amounts_and_codes_are_unknown() -> None:
    """With where to look; never "fine" because the limit is large."""
    asked = QuotaAsked(HERE, "ec2", None, "p99 Capacity Blocks", None, "vCPU")
    unknown, no_amount = quota_findings([QuotaSeen(asked, None, None), QuotaSeen(asked, "L-1", 1e6)])
    assert unknown.state is no_amount.state is State.UNKNOWN
    assert unknown.todo is not None
    assert "list-service-quotas" in unknown.todo
