"""What the client believes of Capacity Blocks, held against AWS's rules."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest

from berth.inventory.holdings import OVER
from berth.planner import ladder
from berth.planner.fit import PAYMENT_LEAD
from berth.planner.framework.limits import BOOKABLE_AHEAD
from berth.planner.need import Need
from berth.planner.need_file import NeedError, read_need
from berth.planner.offers import hours_of, reclaim_before_end
from berth.planner.owned import HELD
from berth.planner.platforms import BLOCK_PLATFORMS
from berth.planner.queries import BOUNDARY, block_queries
from berth.planner.verdicts import verdicts
from berth.sources.capacity_blocks import TOO_FAST_OR_NO_QUOTA
from berth.sources.owned import SIZE_TAG, TYPE_TAG
from berth.terms.money import Money
from berth.terms.ways import Way

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
NEED = """
name = "block-1"
instance_type = "p5.48xlarge"
count = {count}
duration = "{hours}h"
target = "instances"
regions = ["us-east-1"]
platform = "{platform}"
"""


def need(count: int = 1, hours: int = 24, platform: str = "Linux/UNIX") -> Need:
    """A need of so many instances and hours."""
    return read_need(NEED.format(count=count, hours=hours, platform=platform), "need.toml", NOW)


def block_fits(wanted: Need, owned: int = 0) -> bool:
    """Whether the client would buy a block for it."""
    return next(v.fits for v in verdicts(wanted, NOW, owned) if v.way is Way.CAPACITY_BLOCK)


def refused(**wrong: Any) -> bool:
    """Whether no such block is asked for: by the file's reader, the verdict, or as several smaller blocks."""
    try:
        wanted = need(**wrong)
    except NeedError:
        return True
    asked = block_queries(wanted, wanted.regions, NOW)
    return not block_fits(wanted) or all(query.count != wanted.count for query in asked)


def test_what_aws_sells_may_be_needed(block_rules: dict[str, Any]) -> None:
    """Every valid duration, count and platform, and each duration is asked as AWS takes it."""
    for hours in block_rules["duration_hours"]["valid"]:
        wanted = need(hours=hours)
        assert block_fits(wanted), hours
        assert [q.duration_hours for q in block_queries(wanted, wanted.regions, NOW)] == [hours]
    for count in block_rules["counts"]["valid"]:
        assert block_fits(need(count=count)), count
    for platform in block_rules["platforms"]["valid"]:
        assert block_fits(need(platform=platform)), platform
    assert len(ladder.LADDER) == len(block_rules["duration_hours"]["valid"]) == 38
    assert set(BLOCK_PLATFORMS) == set(block_rules["platforms"]["valid"])


def test_what_aws_does_not_sell_is_refused_before_anything_is_sent(block_rules: dict[str, Any]) -> None:
    """Every invalid duration, count and platform; 17 days among them."""
    assert 17 * 24 in block_rules["duration_hours"]["invalid"]
    for hours in block_rules["duration_hours"]["invalid"]:
        assert refused(hours=hours), hours
    for count in block_rules["counts"]["invalid"]:
        assert refused(count=count), count
    for platform in block_rules["platforms"]["invalid"]:
        assert refused(platform=platform), platform


def test_the_limit_over_all_blocks_is_kept(block_rules: dict[str, Any]) -> None:
    """What is owned and what is wanted together (field fault 37)."""
    most = block_rules["counts"]["over_all_blocks"]
    assert block_fits(need(count=8), owned=most - 8)
    assert not block_fits(need(count=8), owned=most - 7)


def test_times_are_aws_own(block_rules: dict[str, Any]) -> None:
    """End of day, lead, payment, reclaim."""
    rules = block_rules["times"]
    assert time.fromisoformat(rules["end_of_day_utc"]) == BOUNDARY
    assert timedelta(days=rules["lead_days_max"]) == BOOKABLE_AHEAD
    assert timedelta(minutes=rules["payment_minutes_before_start"]) == PAYMENT_LEAD
    assert reclaim_before_end("instances") == timedelta(minutes=rules["reclaim_minutes_before_end"])


def test_every_state_is_held_or_over_or_told_as_it_is(block_rules: dict[str, Any]) -> None:
    """No state counts as both; the first of a purchase is held; `unavailable`, whose meaning nobody told, is
    neither."""
    states = block_rules["states"]
    assert not HELD & OVER
    assert states["first"] in HELD
    assert set(states["all"]) - HELD - OVER == {"unavailable"}


def test_tags_and_codes_are_spelled_as_aws_does(block_rules: dict[str, Any]) -> None:
    """The size and kind of a block, and the refusal with two meanings."""
    assert (block_rules["tags"]["count"], block_rules["tags"]["type"]) == (SIZE_TAG, TYPE_TAG)
    assert block_rules["errors"]["no_quota"][0] == TOO_FAST_OR_NO_QUOTA


@pytest.mark.parametrize("row", range(5))
def test_fees_are_reckoned_alike(block_rules: dict[str, Any], row: int) -> None:
    """Rate x instances x exact time, the total rounded once, half up."""
    fee = block_rules["fee"][row]
    hours = hours_of(timedelta(minutes=fee["minutes"]))
    assert (Money(Decimal(fee["usd_per_hour"])) * (hours * fee["count"])).rounded().amount == Decimal(
        fee["fee"]
    )
