"""What the yard sells, held against AWS's rules."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import product
from typing import Any

import pytest

from berth.terms.ways import Target
from berth.yard.errors import ServiceError
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet_file import rehearsal_fleet
from berth.yard.lifecycle.moves import TRAINING_PLAN
from berth.yard.market.plan_offerings import PlanOffering, search_plan_offerings
from berth.yard.market.plan_query import PlanQuery
from berth.yard.services.sagemaker.plan_life import RECLAIM_BEFORE_END

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)


def search(now: datetime = NOW, count: int = 1, hours: int = 24, **query: Any) -> tuple[PlanOffering, ...]:
    """Search an empty fleet."""
    fleet = rehearsal_fleet()
    wanted = PlanQuery("ml.trn1.32xlarge", count, hours, (Target.ENDPOINT,), **query)
    return search_plan_offerings(
        wanted, region="us-east-1", now=now, fleet=fleet, calendars=FleetCalendars(fleet, now)
    )


def test_counts_and_days_that_aws_sells_are_not_refused(plan_rules: dict[str, Any]) -> None:
    """Every valid count and every valid number of days may be asked for."""
    for count in plan_rules["counts"]["valid"]:
        search(count=count)
    for days in plan_rules["days"]["valid"]:
        assert search(hours=24 * days), f"{days} days: an empty fleet has room"


def test_counts_and_days_that_aws_does_not_sell_are_refused(plan_rules: dict[str, Any]) -> None:
    """Every invalid one is a ValidationException."""
    wrong = [(count, 24) for count in plan_rules["counts"]["invalid"]]
    wrong += [(1, 24 * days) for days in plan_rules["days"]["invalid"]]
    for count, hours in wrong:
        with pytest.raises(ServiceError) as refused:
            search(count=count, hours=hours)
        assert refused.value.code == "ValidationException", (count, hours)


def test_every_offering_keeps_to_aws_times(plan_rules: dict[str, Any]) -> None:
    """At most three; each ends at 11:30 UTC, starts when it can be paid by then, within 56 days."""
    rules = plan_rules["times"]
    end_of_day = time.fromisoformat(rules["end_of_day_utc"])
    for minute, hours in product((0, 29, 30, 31, 59), (1, 15, 24, 48, 17 * 24)):
        for hour in (0, 10, 11, 12, 23):
            now = NOW.replace(hour=hour, minute=minute)
            found = search(now=now, hours=hours)
            assert 0 < len(found) <= rules["offerings_max"]
            for offering in found:
                window = offering.window
                assert window.end.time() == end_of_day
                lead = window.start - now
                assert lead >= timedelta(minutes=rules["payment_minutes_before_start"])
                assert lead <= timedelta(days=rules["lead_days_max"])
                immediate = timedelta(minutes=rules["immediate_minutes"])
                assert window.start.time() == end_of_day or lead == immediate


def test_the_worked_example(plan_rules: dict[str, Any]) -> None:
    """AWS's own example comes out, length by length."""
    for example in plan_rules["example"]:
        found = search(now=example["asked_at"], hours=example["duration_hours"])
        lengths = sorted(list(offering.hours_and_minutes) for offering in found)
        wanted = sorted(example["offered"])
        # The sample's answer came half a minute after the question: allow a minute on immediate starts.
        for (hours, minutes), (wanted_hours, wanted_minutes) in zip(lengths, wanted, strict=True):
            assert abs((hours * 60 + minutes) - (wanted_hours * 60 + wanted_minutes)) <= 1


def test_states_and_moves_are_aws_own(plan_rules: dict[str, Any]) -> None:
    """No state and no move more or less."""
    states = plan_rules["states"]
    assert set(TRAINING_PLAN.moves) == set(states["all"])
    moves = {(a, b) for a, targets in TRAINING_PLAN.moves.items() for b in targets}
    assert moves == {tuple(move) for move in states["moves"]}
    assert {a for a, targets in TRAINING_PLAN.moves.items() if not targets} == set(states["final"])


def test_endpoints_are_reclaimed_when_aws_does(plan_rules: dict[str, Any]) -> None:
    """Half an hour before the end."""
    assert timedelta(minutes=plan_rules["reclaim_minutes_before_end"]["endpoint"]) == RECLAIM_BEFORE_END
