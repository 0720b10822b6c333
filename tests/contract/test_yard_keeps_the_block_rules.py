"""What the yard sells as Capacity Blocks, held against AWS's rules."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from berth.terms.window import Window
from berth.yard.errors import ServiceError
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.fleet_file import rehearsal_fleet
from berth.yard.lifecycle.moves import CAPACITY_BLOCK
from berth.yard.market.block_admission import EXPIRED, MALFORMED, NOT_FOUND
from berth.yard.market.block_ids import PoolNumbers, encode_block_offering
from berth.yard.market.block_offerings import BlockOffering, search_block_offerings
from berth.yard.market.block_query import BlockQuery
from berth.yard.market.block_rules import INSTANCES_MAX, PLATFORMS, payment_deadline, reclaim_before_end
from berth.yard.market.fees import fee
from berth.yard.services.ec2.block_shapes import aws_tags
from berth.yard.services.ec2.blocks import RESERVATION_ID

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
TYPE = "p5.48xlarge"


def search(
    now: datetime = NOW,
    count: int = 1,
    hours: int = 24,
    type_: str = TYPE,
    fleet: Fleet | None = None,
    **query: Any,
) -> tuple[BlockOffering, ...]:
    """Search an empty fleet."""
    fleet = fleet or rehearsal_fleet()
    return search_block_offerings(
        BlockQuery((type_,), count, hours, **query), region="us-east-1", now=now, fleet=fleet,
        calendars=FleetCalendars(fleet, now),
    )  # fmt: skip


def refusal(**query: Any) -> list[str]:
    """Code and message of a search that is refused."""
    with pytest.raises(ServiceError) as refused:
        search(**query)
    return [refused.value.code, refused.value.message]


def test_counts_and_durations_that_aws_sells_are_offered(block_rules: dict[str, Any]) -> None:
    """Every valid count and every valid duration finds something in an empty fleet."""
    for count in block_rules["counts"]["valid"]:
        assert search(count=count), count
    assert len(block_rules["duration_hours"]["valid"]) == 38
    for hours in block_rules["duration_hours"]["valid"]:
        assert timedelta(hours=hours) in {offer.window.duration for offer in search(hours=hours)}, hours


def test_what_aws_does_not_sell_is_refused_in_its_words(block_rules: dict[str, Any]) -> None:
    """Durations, counts, past starts, unsold types, a quota of 0."""
    errors = block_rules["errors"]
    none = replace(rehearsal_fleet(), quotas=replace(rehearsal_fleet().quotas, block_vcpus={"*": 0}))
    wrong = [({"hours": hours}, errors["duration"]) for hours in block_rules["duration_hours"]["invalid"]]
    wrong += [({"count": count}, ["InvalidParameterValue", ""]) for count in block_rules["counts"]["invalid"]]
    wrong += [
        ({"start_after": NOW - timedelta(days=1)}, errors["past_start"]),
        ({"type_": "m5.large"}, errors["unsold_type"]),
        ({"fleet": none}, errors["no_quota"]),
    ]
    for query, (code, words) in wrong:
        found = refusal(**query)
        assert found[0] == code, query
        assert words in found[1], query
    assert block_rules["counts"]["over_all_blocks"] == INSTANCES_MAX
    assert (errors["malformed"], errors["unknown"], errors["expired"]) == (MALFORMED, NOT_FOUND, EXPIRED)


def test_platforms_are_aws_five(block_rules: dict[str, Any]) -> None:
    """Spelling counts."""
    assert set(PLATFORMS) == set(block_rules["platforms"]["valid"])
    assert not set(PLATFORMS) & set(block_rules["platforms"]["invalid"])


def test_every_offering_keeps_to_aws_times(block_rules: dict[str, Any]) -> None:
    """At most six; each ends at 11:30 UTC, starts no sooner than it can be paid and no later than 56 days."""
    rules = block_rules["times"]
    end_of_day = time.fromisoformat(rules["end_of_day_utc"])
    for minute, hours, hour in product((0, 29, 30, 31, 59), (24, 48, 336, 504), (0, 10, 11, 12, 23)):
        now = NOW.replace(hour=hour, minute=minute)
        found = search(now=now, hours=hours)
        assert 0 < len(found) <= rules["offerings_max"]
        for offering in found:
            lead = offering.window.start - now
            assert offering.window.end.time() == end_of_day
            assert timedelta(minutes=rules["payment_minutes_before_start"]) <= lead
            assert lead <= timedelta(days=rules["lead_days_max"])
            immediate = timedelta(minutes=rules["immediate_minutes"])
            assert offering.window.start.time() == end_of_day or lead == immediate


def test_the_samples(block_rules: dict[str, Any]) -> None:
    """What starts at once is a shorter and a longer block, to the minute."""
    for example in block_rules["example"]:
        asked_at = example["asked_at"].replace(year=2026, month=12)
        found = search(now=asked_at, hours=example["duration_hours"])
        at_once = [offer for offer in found if offer.terms.immediate]
        assert sorted(list(offer.hours_and_minutes) for offer in at_once) == example["offered"]


def test_fees(block_rules: dict[str, Any]) -> None:
    """To the cent."""
    for case in block_rules["fee"]:
        window = Window(NOW, NOW + timedelta(minutes=case["minutes"]))
        assert fee(Decimal(case["usd_per_hour"]), case["count"], window).amount == Decimal(case["fee"])


def test_payment_and_reclaim(block_rules: dict[str, Any]) -> None:
    """Twelve hours or five minutes before the start; 30 minutes before the end, 60 for UltraServers."""
    rules = block_rules["times"]
    hours = timedelta(hours=rules["payment_hours"])
    before = timedelta(minutes=rules["payment_minutes_before_start"])
    assert payment_deadline(NOW, NOW + timedelta(days=9)) == NOW + hours
    assert payment_deadline(NOW, NOW + hours) == NOW + hours - before
    assert reclaim_before_end(1) == timedelta(minutes=rules["reclaim_minutes_before_end"])
    assert reclaim_before_end(18) == timedelta(minutes=rules["reclaim_minutes_before_end_ultraserver"])


def test_ids_and_tags(block_rules: dict[str, Any]) -> None:
    """17 hexadecimal digits; the size of a block that has not begun is in AWS's own tag."""
    numbers = PoolNumbers.of({key: number for number, key in enumerate(rehearsal_fleet().pools)})
    for offer in search():
        text = encode_block_offering(offer.terms, numbers=numbers, key=b"k", account_id="1" * 12, region="r")
        assert re.fullmatch(block_rules["ids"]["offering"], text)
    assert RESERVATION_ID.pattern == block_rules["ids"]["reservation"].strip("^$")
    tags = {tag["Key"]: tag["Value"] for tag in aws_tags(3)}
    assert tags == {block_rules["tags"]["count"]: "3", block_rules["tags"]["type"]: "capacity-block"}


def test_states_and_moves_are_aws_own(block_rules: dict[str, Any]) -> None:
    """No state and no move more or less."""
    states = block_rules["states"]
    assert set(CAPACITY_BLOCK.moves) == set(states["all"])
    moves = {(a, b) for a, targets in CAPACITY_BLOCK.moves.items() for b in targets}
    assert moves == {tuple(move) for move in states["moves"]}
