"""What is left when somebody wants to go: the exit code, the unused money, the text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from berth.inventory.holdings import Endpoint
from berth.inventory.join import RegionAnswer, join
from berth.inventory.leaving import (
    Armed,
    Doubt,
    Leaving,
    MoreOfRegion,
    OpenRequest,
    Remembered,
    RunningInstance,
    leaving,
)
from berth.inventory.leaving_text import leaving_text
from berth.planner.owned import Owned
from berth.terms.money import Money
from berth.terms.outcomes import ExitCode, Spending
from berth.terms.ways import Way

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
FEE = Money(Decimal("1000"), "USD")
INSTANCE = RunningInstance("us-east-1", "i-1", "running", "eval", "p5.48xlarge", "cr-1")
REQUEST = OpenRequest("us-east-1", "ec2", "L-1", "P5 Capacity Blocks", 384.0, "PENDING")
ENDPOINT = Endpoint("us-east-1", "e", "InService", NOW, 1, ("arn:aws:sagemaker:r:a:training-plan/p",), False)
DOUBT = Doubt("eval", "unknown", Spending.not_known(FEE, "eval"))


def owned(**more: Any) -> Owned:
    """A block of 24 hours, six of them gone."""
    facts: dict[str, Any] = {
        "way": Way.CAPACITY_BLOCK, "region": "us-east-1", "id": "cr-1", "arn": None, "state": "active",
        "instance_type": "p5.48xlarge", "count": 1, "free": 1, "start": NOW - timedelta(hours=6),
        "end": NOW + timedelta(hours=18), "zones": ("use1-az1",), "tags": (("berth:fee", "1000.00 USD"),),
    }  # fmt: skip
    return Owned(**{**facts, **more})


def left(
    *held: Owned,
    more: MoreOfRegion | None = None,
    doubts: tuple[Doubt, ...] = (),
    journal: Remembered | None = None,
    **region: Any,
) -> Leaving:
    """What is left of one Region."""
    answer = RegionAnswer("us-east-1", owned=tuple(held), **region)
    inventory = join([answer], [], NOW, account="123456789012")
    return leaving(inventory, [more] if more else [], journal or Remembered(doubts=doubts))


def test_what_is_unused_is_the_share_of_the_time_to_come() -> None:
    """A quarter of the window is gone, so three quarters of the fee are unused (field fault 4)."""
    made = left(owned())
    assert made.paid[0].unused == Money(Decimal("750"), "USD")
    assert made.exit_code is ExitCode.CLEANED_STILL_PAID
    assert "paid until 2026-12-02T03:00:00Z, 750.00 USD unused" in " ".join(leaving_text(made).split())
    assert "of its first fee: what extending it cost is on no tag" in " ".join(leaving_text(made).split())
    ahead = left(owned(start=NOW + timedelta(hours=1), end=NOW + timedelta(hours=2)))
    assert ahead.paid[0].unused == FEE


def test_a_fee_that_is_not_known_is_said_and_is_no_zero() -> None:
    """Nor is what has no fee at all: it is billed until somebody ends it."""
    assert left(owned(tags=())).paid[0].unused is None
    assert "not known" in leaving_text(left(owned(tags=())))
    odcr = left(owned(way=Way.ODCR, end=None))
    assert odcr.exit_code is ExitCode.SOMETHING_LEFT
    assert "cancel-capacity-reservation" in leaving_text(odcr)


@pytest.mark.parametrize("state", ["expired", "cancelled", "payment-failed"])
def test_what_is_over_is_not_left(state: str) -> None:
    """Then nothing is left, and only then is it done."""
    assert left(owned(state=state)).exit_code is ExitCode.DONE
    assert left(owned(end=NOW)).exit_code is ExitCode.DONE
    assert leaving_text(left()) == "nothing is left; 1 Region looked at"


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (left(), ExitCode.DONE),
        (left(owned()), ExitCode.CLEANED_STILL_PAID),
        (left(owned(), troubles=("throttled",)), ExitCode.INCOMPLETE),
        (left(more=MoreOfRegion("us-east-1", troubles=("denied",))), ExitCode.INCOMPLETE),
        (left(owned(), more=MoreOfRegion("us-east-1", (INSTANCE,))), ExitCode.SOMETHING_LEFT),
        (left(more=MoreOfRegion("us-east-1", (), (REQUEST,), ("denied",))), ExitCode.SOMETHING_LEFT),
        (left(endpoints=(ENDPOINT,)), ExitCode.SOMETHING_LEFT),
        (left(more=MoreOfRegion("us-east-1", (INSTANCE,)), doubts=(DOUBT,)), ExitCode.OUTCOME_UNKNOWN),
    ],
)
def test_the_exit_code_tells_nothing_left_from_all_else(made: Leaving, code: ExitCode) -> None:
    """Doubt about money first, then what somebody could end, then what was not read."""
    assert made.exit_code is code
    assert made.to_json()["exit_code"] == int(code)


def test_the_text_says_of_each_thing_how_to_end_it() -> None:
    """In eighty columns, with what was not read."""
    made = left(
        owned(), endpoints=(ENDPOINT,), troubles=("throttled",), doubts=(DOUBT,),
        more=MoreOfRegion("us-east-1", (INSTANCE,), (REQUEST,), ("denied",)),
    )  # fmt: skip
    text = leaving_text(made)
    flat = " ".join(text.split())
    for words in (
        "berth show eval", "berth clean eval", "endpoint e (InService) on p", "384 asked for, PENDING",
        "NOT KNOWN us-east-1: throttled; denied",
        "1 in doubt, 0 armed, 2 running, 1 still paid, 1 waited for",
    ):  # fmt: skip
        assert words in flat
    assert max(map(len, text.splitlines())) <= 80
    on_demand = RunningInstance("us-east-1", "i-2", "running", "eval", "p5.48xlarge", None, FEE)
    said = leaving_text(left(more=MoreOfRegion("us-east-1", (on_demand,))))
    assert "1,000.00 USD/h by the list" in " ".join(said.split())


def test_an_approved_purchase_that_was_not_made_is_armed() -> None:
    """Whoever may pay can still make it, so nobody who goes has left nothing."""
    inventory = join([RegionAnswer("us-east-1")], [], NOW, account="123456789012")
    armed = (Armed("eval", FEE, NOW + timedelta(minutes=5), True),)
    made = leaving(inventory, [], Remembered(armed=armed))
    assert made.exit_code is ExitCode.SOMETHING_LEFT
    assert "order eval for 1,000.00 USD, approved" in " ".join(leaving_text(made).split())
    assert made.to_json()["armed"][0]["given"] is True


UNREADABLE = Remembered(trouble="the journal j.sqlite cannot be used: file is not a database", hint="move it")


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (left(journal=UNREADABLE), ExitCode.INCOMPLETE),
        (left(owned(), journal=UNREADABLE), ExitCode.INCOMPLETE),
        (left(more=MoreOfRegion("us-east-1", (INSTANCE,)), journal=UNREADABLE), ExitCode.SOMETHING_LEFT),
    ],
)
def test_without_the_journal_nothing_is_called_done(made: Leaving, code: ExitCode) -> None:
    """What AWS shows is told all the same; that intents are not seen stands in text and JSON."""
    assert made.exit_code is code
    assert made.to_json()["journal"] == UNREADABLE.trouble
    text = leaving_text(made)
    assert "NOT KNOWN the journal j.sqlite cannot be used" in " ".join(text.split())
    assert "an order in doubt, an approval that waits" in " ".join(text.split())
    assert "the journal not" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


def test_an_extension_that_is_being_paid_is_money_too() -> None:
    """Its end is not shown yet, and its fee is as good as gone: both are told beside what is paid."""
    words = "extended until 2026-12-09T11:30:00Z for 8,023.18 USD, payment-pending"
    made = left(owned(), journal=Remembered(coming={("us-east-1", "cr-1"): words}))
    text = " ".join(leaving_text(made).split())
    assert f"750.00 USD unused of its first fee: what extending it cost is on no tag; {words}" in text
    assert made.to_json()["paid"][0]["extension"] == words
    assert left(owned()).to_json()["paid"][0]["extension"] is None
