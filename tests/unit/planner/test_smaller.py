"""What to try when nothing is on sale: only sizes that are sold, each change named."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.planner.framework.limits import PLAN_COUNTS
from berth.planner.ladder import on_ladder
from berth.planner.need import Need
from berth.planner.smaller import smaller, smaller_text
from berth.terms.ways import Target


def need(days: int, count: int, target: Target = Target.INSTANCES) -> Need:
    """So many for so long."""
    prefix = "" if target is Target.INSTANCES else "ml."
    return Need("n", f"{prefix}p5.48xlarge", count, timedelta(days=days), target, ("us-east-1",))


def test_35_days_and_3_instances() -> None:
    """Field fault 47: 28, 21 or 14 days, 2 or 1 instances; never 17 days."""
    found = smaller(need(35, 3))
    assert [one.duration.days for one in found if one.count == 3] == [28, 21, 14]
    assert [one.count for one in found if one.duration.days == 35] == [2, 1]
    assert found[0].change == "28 days instead of 35 days"
    assert smaller_text(need(35, 3)) == (
        "ask in the same Regions for 28 days, 21 days or 14 days instead of 35 days; or for 2 or 1 instead "
        "of 3 (not asked yet)"
    )


@settings(deadline=None, max_examples=80)
@given(st.integers(1, 182), st.integers(1, 64), st.sampled_from([Target.INSTANCES, Target.ENDPOINT]))
def test_every_proposal_is_sold_and_smaller(days: int, count: int, target: Target) -> None:
    """One thing changes, to a step of the ladder or to a count in which the way is sold."""
    wanted = need(days, count, target)
    for one in smaller(wanted):
        assert (one.duration < wanted.duration) != (one.count < wanted.count)
        assert one.duration == wanted.duration or on_ladder(one.duration)
        assert one.count == count or target is Target.INSTANCES or one.count in PLAN_COUNTS
        assert one.count >= 1


def test_nothing_is_smaller_than_one_for_a_day() -> None:
    """Then nothing is proposed."""
    assert smaller(need(1, 1)) == ()
    assert smaller_text(need(1, 1)) == ""
