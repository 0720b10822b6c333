"""Faults on demand and token buckets, as values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.yard.app import spoil_result
from berth.yard.faults import STANDING, Fault, FaultKind, Faults, read_fault
from berth.yard.services import catalogue
from berth.yard.services.operation import served
from berth.yard.throttles import Throttles, throttling_error

from .bench import small_fleet

assert catalogue.SERVICES  # fills the register that operations are checked against
SERVED = {name for _, name in served()}

BUCKETS = """
[[throttles]]
name = "plans"
service = "sagemaker"
operations = ["*TrainingPlan*"]
size = 3
refill_per_s = 0.5
assumed = true

[[throttles]]
name = "rest"
service = "sagemaker"
operations = ["*"]
size = 1
refill_per_s = 1
assumed = true
"""


# -- faults ----------------------------------------------------------------------------------------------
def test_a_fault_is_used_up() -> None:
    """Twice means twice, and what is left can be seen."""
    faults = Faults([Fault(1, FaultKind.LOST_REPLY, "CreateTrainingPlan", times=2)])
    assert faults.take(FaultKind.LOST_REPLY, "CreateTrainingPlan", "1") is not None
    assert [fault.times for fault in faults.armed()] == [1]
    assert faults.take(FaultKind.LOST_REPLY, "CreateTrainingPlan", "1") is not None
    assert faults.take(FaultKind.LOST_REPLY, "CreateTrainingPlan", "1") is None
    assert faults.armed() == ()


def test_a_fault_without_times_lasts_until_it_is_cleared() -> None:
    """`clear` says how many there were."""
    faults = Faults()
    faults.arm(Fault(1, FaultKind.STALL))
    faults.arm(Fault(2, FaultKind.LAG))
    for _ in range(10):
        assert faults.take(FaultKind.STALL, "Anything", "1") is not None
    assert faults.clear() == 2
    assert faults.take(FaultKind.STALL, "Anything", "1") is None


def test_a_fault_meets_what_it_names() -> None:
    """Kind, operation with wildcards and in its case, and account."""
    faults = Faults([Fault(1, FaultKind.THROTTLE, "Describe*", account_id="1", times=1)])
    assert faults.take(FaultKind.STALL, "DescribeEndpoint", "1") is None
    assert faults.take(FaultKind.THROTTLE, "ListEndpoints", "1") is None
    assert faults.take(FaultKind.THROTTLE, "describeEndpoint", "1") is None
    assert faults.take(FaultKind.THROTTLE, "DescribeEndpoint", "2") is None
    assert faults.take(FaultKind.THROTTLE, "DescribeEndpoint", "1") is not None


def test_the_oldest_of_two_comes_first() -> None:
    """Two faults of one kind are used up one after the other."""
    faults = Faults([Fault(1, FaultKind.STALL, times=1, amount="1"), Fault(2, FaultKind.STALL, amount="2")])
    amounts = [fault.amount for _ in range(3) if (fault := faults.take(FaultKind.STALL, "X", "1"))]
    assert amounts == ["1", "2", "2"]


@pytest.mark.parametrize("kind", sorted(STANDING))
def test_a_condition_is_not_used_up(kind: FaultKind) -> None:
    """Lag and a price change hold until they are cleared, whatever number of times was asked for."""
    assert read_fault({"kind": kind.value, "times": 1}, None, 1, SERVED).times is None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "no fault None; there are: lost-reply"),
        ({"kind": "LostReply"}, "no fault 'LostReply'"),
        ({"kind": "stall", "times": 0}, "times must be a whole number"),
        ({"kind": "stall", "times": True}, "times must be a whole number"),
        ({"kind": "stall", "times": "2"}, "times must be a whole number"),
        ({"kind": "stall", "operation": "CreateTrainigPlan"}, "no operation matches 'CreateTrainigPlan'"),
        ({"kind": "gone", "operation": "SearchTrainingPlanOfferings"}, "gone concerns CreateTrainingPlan"),
        ({"kind": "payment-failure", "operation": "Delete*"}, "payment-failure concerns CreateTrainingPlan"),
        ({"kind": "throttle", "amount": "3"}, "throttle takes no amount"),
        ({"kind": "absent-members"}, "needs an amount: the names of members"),
        ({"kind": "unknown-values", "amount": " , "}, "needs an amount: the names of members"),
        *(
            ({"kind": "stall", "amount": text}, "amount must be a number")
            for text in (
                "-1",
                "0",
                "nan",
                "inf",
                "1e9",
                "100000",
                "1_0",
                "soon",
                "\N{ARABIC-INDIC DIGIT THREE}",
            )
        ),
    ],
)
def test_a_fault_that_could_never_happen_is_refused(body: dict[str, Any], words: str) -> None:
    """A fault that stays away looks like a client that copes with it."""
    with pytest.raises(ValueError, match=words):
        read_fault(body, None, 1, SERVED)


def test_members_are_left_out_and_values_made_strange_wherever_they_stand() -> None:
    """In lists and inside other members too; numbers stay numbers."""
    result = {"Status": "Active", "Plans": [{"Status": "Pending", "Fee": "1", "Count": 2}], "Fee": "3"}
    absent = Fault(1, FaultKind.ABSENT_MEMBERS, amount="Fee, Nothing")
    strange = Fault(2, FaultKind.UNKNOWN_VALUES, amount="Status,Count")
    assert spoil_result((absent, strange), result) == {
        "Status": "never-heard-of", "Plans": [{"Status": "never-heard-of", "Count": 2}],
    }  # fmt: skip


# -- throttles -------------------------------------------------------------------------------------------
def test_a_bucket_empties_and_fills_again() -> None:
    """Three at once, then one every two seconds, never more than three saved up."""
    throttles = Throttles(small_fleet(BUCKETS))

    def calls(now_s: float, wanted: int) -> int:
        return sum(throttles.admits("1", "r", "sagemaker", "ListTrainingPlans", now_s) for _ in range(wanted))

    assert calls(0.0, 5) == 3
    assert calls(1.9, 5) == 0
    assert calls(2.0, 5) == 1
    assert calls(1000.0, 9) == 3


def test_a_rehearsal_may_refill_its_buckets_faster() -> None:
    """Scaled by 100: a token comes back in 20 ms; still no more than three at once."""
    throttles = Throttles(small_fleet(BUCKETS), 100)

    def calls(now_s: float) -> int:
        return sum(throttles.admits("1", "r", "sagemaker", "ListTrainingPlans", now_s) for _ in range(5))

    assert [calls(0.0), calls(0.0199), calls(0.02), calls(1.0)] == [3, 0, 1, 3]


def test_buckets_are_shared_by_operations_and_not_by_accounts_or_regions() -> None:
    """One bucket for all operations that it names; another account, Region or service has its own."""
    throttles = Throttles(small_fleet(BUCKETS))
    spent = [
        throttles.admits("1", "r", "sagemaker", name, 0.0)
        for name in ("CreateTrainingPlan", "ListTrainingPlans", "DescribeTrainingPlan", "CreateTrainingPlan")
    ]
    assert spent == [True, True, True, False]
    for account, region, operation in (
        ("2", "r", "CreateTrainingPlan"),
        ("1", "s", "CreateTrainingPlan"),
        ("1", "r", "ListModels"),
    ):
        assert throttles.admits(account, region, "sagemaker", operation, 0.0)
    assert all(throttles.admits("1", "r", "ec2", "DescribeRegions", 0.0) for _ in range(100))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0, 3), min_size=1, max_size=60))
def test_no_more_than_the_bucket_gives_ever_passes(gaps: list[float]) -> None:
    """Over any span: at most its size and what was refilled since."""
    fleet = small_fleet(BUCKETS)
    throttles, now, admitted = Throttles(fleet), 0.0, 0
    for gap in gaps:
        now += gap
        admitted += throttles.admits("1", "r", "sagemaker", "CreateTrainingPlan", now)
    assert admitted <= 3 + Decimal("0.5") * Decimal(now) + Decimal("1e-6")


def test_each_service_throttles_in_its_own_words() -> None:
    """EC2's code and status differ from SageMaker's."""
    code, message, status = throttling_error("ec2", "DescribeRegions", "111122223333")
    assert (code, status) == ("RequestLimitExceeded", 503)
    assert "Account 111122223333 has been throttled on ec2:DescribeRegions" in message
    assert throttling_error("sagemaker", "ListModels", "1") == ("ThrottlingException", "Rate exceeded", 400)
