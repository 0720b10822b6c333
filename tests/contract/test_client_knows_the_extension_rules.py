"""What the client believes about extensions, held against AWS's rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from berth.orders.extensions.history import WORDS, Payment
from berth.orders.extensions.wish import Standing, Wish, why_not
from berth.planner.ladder import LADDER, hours
from berth.terms.outcomes import BerthError

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
TICK = timedelta(microseconds=1)


@pytest.fixture(params=["block", "plan"])
def rules(request: pytest.FixtureRequest, block_rules: dict[str, Any], plan_rules: dict[str, Any]) -> Any:
    """What AWS says of extending the one and the other."""
    return (block_rules if request.param == "block" else plan_rules)["extension"]


def test_lengths_are_aws_own(rules: dict[str, Any]) -> None:
    """Every length that AWS sells can be wished for, and no other is asked about."""
    assert [hours(step) for step in LADDER] == rules["hours"]
    end = NOW + timedelta(days=3)
    for number in range(1, 183):
        length = timedelta(days=number)
        if number * 24 in rules["hours"]:
            assert Wish(length, length).lengths(end) == (length,)
        else:
            with pytest.raises(BerthError, match="1 to 14 days"):
                Wish(length, length).lengths(end)
        (reaches,) = Wish(until=end + length).lengths(end)
        assert reaches >= length
        assert hours(reaches) in rules["hours"]


def test_times_are_aws_own(rules: dict[str, Any]) -> None:
    """From 56 days to one hour before the end, to the microsecond; none beside one that is unpaid."""
    early = timedelta(days=rules["earliest_days_before_end"])
    late = timedelta(hours=rules["latest_hours_before_end"])
    for before_end, may in ((early, True), (early + TICK, False), (late, True), (late - TICK, False)):
        end = NOW + before_end
        assert (why_not(NOW, Standing(end, end, extended=False, unpaid=False)) is None) is may, before_end
        assert why_not(NOW, Standing(end, end, extended=True, unpaid=True)) is not None


def test_every_state_of_an_extension_is_known(
    block_rules: dict[str, Any], plan_rules: dict[str, Any]
) -> None:
    """The first of each is unpaid; what failed alone leaves the way free."""
    block, plan = block_rules["extension"], plan_rules["extension"]
    words = {
        block["first"],
        plan["first"],
        *plan["statuses"],
        *(word for pair in block["moves"] for word in pair),
    }
    assert words <= set(WORDS)
    assert {WORDS[block["first"]], WORDS[plan["first"]]} == {Payment.PENDING}
    assert {word for word in words if WORDS[word] is Payment.FAILED} == {"payment-failed", "Failed"}
