"""Whether a block offering is sold: every reason against, each with AWS's code."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.terms.window import Window
from berth.yard.errors import ServiceError
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet_file import load_fleet
from berth.yard.market.block_admission import (
    EXPIRED,
    MALFORMED,
    NOT_FOUND,
    HeldBlock,
    admit_block,
    peak_vcpus,
)
from berth.yard.market.block_ids import MalformedOffering
from berth.yard.market.block_rules import BlockTerms
from berth.yard.market.offering_ids import UnknownOffering

FLEET = load_fleet((Path(__file__).parents[1] / "yard" / "blocks.toml").read_text(), "blocks.toml")
NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
RATE = Decimal("47.757")
TERMS = BlockTerms("use1-az1/p5.48xlarge", 1, NOW, 2, 1, RATE)
DAY = timedelta(days=1)


def admit(offering: Any = TERMS, **changed: Any) -> Any:
    """Ask as the yard does for a fleet with nothing sold; whatever is named differs."""
    asked: dict[str, Any] = {
        "region": "us-east-1", "now": NOW, "fleet": FLEET, "calendars": FleetCalendars(FLEET, NOW),
        "held": [], "usd_per_hour": RATE, **changed,
    }  # fmt: skip
    return admit_block(offering, **asked)


def code(offering: Any = TERMS, **changed: Any) -> str:
    """The code of the refusal."""
    with pytest.raises(ServiceError) as refused:
        admit(offering, **changed)
    return refused.value.code


def test_an_offer_is_sold_while_nothing_speaks_against_it() -> None:
    """The pool, the window and the fee are the id's."""
    granted = admit()
    assert (granted.pool.key, granted.instance_type) == (TERMS.pool_key, "p5.48xlarge")
    assert str(granted.terms.fee) == "1,146.17 USD"


def test_what_is_no_offer_of_this_account_is_not_found_or_malformed() -> None:
    """Form first, then knowledge."""
    assert code(MalformedOffering("x")) == MALFORMED
    assert code(UnknownOffering("cb-0")) == NOT_FOUND


def test_what_is_not_on_sale_any_more_has_expired() -> None:
    """Age, too near to be paid, a pool gone or moved, a price that moved or vanished, hosts taken."""
    assert code(now=NOW + timedelta(minutes=60)) == EXPIRED
    assert admit(now=NOW + timedelta(minutes=59)) is not None
    immediate = replace(TERMS, start=0)
    assert code(immediate, now=NOW + timedelta(minutes=20, seconds=1)) == EXPIRED
    assert admit(immediate, now=NOW + timedelta(minutes=19)) is not None
    assert code(replace(TERMS, pool_key="use1-az9/p5.48xlarge")) == EXPIRED
    assert code(region="us-west-2") == EXPIRED
    assert code(usd_per_hour=Decimal("54.92")) == EXPIRED
    assert code(usd_per_hour=None) == EXPIRED
    assert code(replace(TERMS, issued_at=NOW + timedelta(minutes=2))) == EXPIRED
    full = FleetCalendars(FLEET, NOW)
    full.commit(TERMS.pool_key, "sagemaker", TERMS.window, 8)
    assert code(calendars=full) == EXPIRED


def test_a_local_zone_is_opted_into_first() -> None:
    """A search may show it, buying needs the opt-in."""
    there = replace(TERMS, pool_key="use1-atl2-az1/p5.48xlarge")
    assert code(there) == "OptInRequired"
    assert admit(there, opted_in=frozenset({"use1-atl2-az1"})) is not None


def held(count: int, start: int = 1, days: int = 5, region: str = "us-east-1", **more: str) -> HeldBlock:
    """A block that begins `start` days from now."""
    window = Window(NOW + start * DAY, NOW + (start + days) * DAY)
    return HeldBlock(window, more.get("type", "p5.48xlarge"), count, region)


def test_at_most_256_instances_over_all_blocks_wherever_and_whenever() -> None:
    """250 owned and 8 asked are too many; 6 are not."""
    owned = [held(64), held(64, region="us-west-2"), held(64, start=30), held(58, type="p5.4xlarge")]
    there = {"region": "us-west-2", "held": owned}
    west = replace(TERMS, pool_key="usw2-az1/p5.48xlarge")
    assert admit(replace(west, count=6), **there) is not None
    assert code(replace(west, count=8), **there) == "InstanceLimitExceeded"


def test_the_quota_counts_vcpus_of_the_family_that_are_active_at_once() -> None:
    """384 vCPUs are two p5.48xlarge at a time: one after the other is fine, other families do not count."""
    tight = replace(FLEET, quotas=replace(FLEET.quotas, block_vcpus={"*": 0, "p5": 384}))
    assert admit(replace(TERMS, count=2), fleet=tight) is not None
    assert code(replace(TERMS, count=3), fleet=tight) == "VcpuLimitExceeded"
    assert code(held=[held(1), held(1)], fleet=tight) == "VcpuLimitExceeded"
    assert admit(held=[held(1, start=1, days=1), held(1, start=3)], fleet=tight) is not None
    assert admit(held=[held(2, region="us-west-2"), held(2, type="trn1.32xlarge")], fleet=tight) is not None
    assert code(held=[held(24, type="p5.4xlarge")], fleet=tight) == "VcpuLimitExceeded"
    none = replace(FLEET, quotas=replace(FLEET.quotas, block_vcpus={"*": 0}))
    assert code(fleet=none) == "VcpuLimitExceeded"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 30), st.integers(1, 12)), max_size=8),
    st.integers(0, 30), st.integers(1, 12),
)  # fmt: skip
def test_the_peak_is_what_counting_every_day_finds(
    blocks: list[tuple[int, int, int]], start: int, days: int
) -> None:
    """Windows are half-open: what ends when another begins is not counted with it."""
    window = Window(NOW + start * DAY, NOW + (start + days) * DAY)
    all_held = [held(count, begins, length) for count, begins, length in blocks]
    daily = [
        sum(one.count for one in all_held if one.window.contains(NOW + day * DAY))
        for day in range(start, start + days)
    ]
    assert peak_vcpus(all_held, window) == 192 * max(daily)
