"""Faults of the field, exactly as they were told: the values of the stories (docs/internals/planner.md)."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from berth.facts.list_prices import ListPrice
from berth.facts.tables import Provenance
from berth.orders.guard import check_count
from berth.planner.choose import make_plan
from berth.planner.cost import HourlyRate
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.planner.plan import Plan
from berth.planner.surcharge import OsRate
from berth.planner.wording import plan_text
from berth.sources.training_plans import search_place
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.ways import Target, Way
from berth.terms.window import Window

NOW = datetime(2027, 3, 1, 9, tzinfo=UTC)
MONDAY = datetime(2027, 3, 8, 11, 30, tzinfo=UTC)
DAY = timedelta(days=1)


def block(kind: str, fee: str | None, **changes: object) -> Offer:
    """A day of one machine from Monday on."""
    count = int(str(changes.get("count", 1)))
    base = Offer(
        Way.CAPACITY_BLOCK, "us-east-1", "cb-1",
        (Segment(Window(MONDAY, MONDAY + DAY), "use1-az6", None, kind, count),), count, kind,
        None if fee is None else Money(Decimal(fee)), ("instances",), NOW,
        Query(Way.CAPACITY_BLOCK, "us-east-1", kind, count, 24, Target.INSTANCES),
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def planned(
    need: Need, *offers: Offer, rates: tuple[HourlyRate, ...] = (), fees: tuple[OsRate, ...] = ()
) -> Plan:
    """What one place answered."""
    answer = PlaceAnswer(offers[0].way, need.regions[0], PlaceOutcome.OFFERS, NOW, "", offers)
    return make_plan(need, [answer], rates, NOW, os_rates=fees)


def words(plan: Plan) -> str:
    """The plan's text without its line breaks."""
    return " ".join(plan_text(plan, "AWS").split())


def test_an_add_on_price_is_no_price_and_the_unknown_never_leads() -> None:
    """Field fault 17: p5e without an on-demand price, surcharge 0.336, fee 5,000.00 for a day, Ubuntu Pro."""
    need = Need("os", "p5e.48xlarge", 1, DAY, Target.INSTANCES, ("us-east-1",), platform="Ubuntu Pro")
    fees = (OsRate("us-east-1", "Ubuntu Pro", Money(Decimal("0.336")), "Price List"),)
    rate = HourlyRate(Way.ON_DEMAND, "us-east-1", "on-demand", Money(Decimal(0)))
    asked = Query(
        Way.CAPACITY_BLOCK, "us-east-1", "p5e.48xlarge", 1, 24, Target.INSTANCES, platform="Ubuntu Pro"
    )
    priced = block("p5e.48xlarge", "5000.00", query=asked)
    free = replace(priced, offering_id="cb-0", fee=Money(Decimal("0.00")))
    nameless = replace(priced, offering_id="cb-2", fee=None, segments=tuple(
        replace(s, window=Window(MONDAY + DAY, MONDAY + 2 * DAY)) for s in priced.segments
    ))  # fmt: skip
    plan = planned(need, free, nameless, priced, rates=(rate,), fees=fees)
    assert plan.choices[0].cost.total == Money(Decimal("5008.06"))
    assert [choice.cost.total for choice in plan.choices[1:]] == [None, None]
    text = words(plan)
    assert "no on-demand price of us-east-1 is known: not cheap, unknown" in text
    assert "$5,000.00 fee + $8.06 operating system (Ubuntu Pro, 0.336/h while instances run, 24 h)" in text


def test_two_parts_with_a_gap_are_96_hours_that_end_on_sunday() -> None:
    """Field fault 53: Mon 11:30 to Wed 11:30 and Fri 11:30 to Sun 11:30 for 9,000."""
    need = Need("parts", "ml.p5.48xlarge", 1, 4 * DAY, Target.TRAINING_JOB, ("us-east-1",))
    segments = tuple(
        Segment(Window(MONDAY + a * DAY, MONDAY + b * DAY), "use1-az6", None, "ml.p5.48xlarge", 1)
        for a, b in ((0, 2), (4, 6))
    )
    offer = Offer(
        Way.TRAINING_PLAN, "us-east-1", "tpo-1", segments, 1, "ml.p5.48xlarge", Money(Decimal(9000)),
        ("training-job",), NOW,
        Query(Way.TRAINING_PLAN, "us-east-1", "ml.p5.48xlarge", 1, 96, Target.TRAINING_JOB),
    )  # fmt: skip
    plan = planned(need, offer)
    (choice,) = plan.choices
    assert choice.cost.paid == timedelta(hours=96)
    assert choice.cost.usable == timedelta(hours=95), "half an hour is taken from each part"
    assert (offer.gaps[0].duration, offer.paid_window.end) == (2 * DAY, MONDAY + 6 * DAY)
    text = words(plan)
    assert "8 Mar 11:30-14 Mar 11:30" in text
    assert "use1-az6 8 Mar 11:30-10 Mar 11:30 use1-az6 12 Mar 11:30-14 Mar 11:30" in text
    assert "It comes in 2 parts, 2 d off between them: checkpoint." in text
    strict = planned(replace(need, gap_at_most=timedelta(hours=1)), offer)
    assert strict.best is None
    assert "a gap of 2 d, over the 1 h allowed" in words(strict)


def test_a_published_price_stands_beside_the_live_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Field fault 55: the table says 31.464/h, nine days old; the live offer works out to 36.10/h."""
    seen = Provenance(date(2027, 2, 20), "exact", "table")
    listed = ListPrice("p5en.48xlarge", "us-east-1", "capacity-block", Decimal("31.464"), seen)
    monkeypatch.setattr("berth.planner.costs.published.capacity_block_hourly", lambda *_: listed)
    need = Need("gap", "p5en.48xlarge", 1, DAY, Target.INSTANCES, ("us-east-1",))
    plan = planned(need, block("p5en.48xlarge", "866.40"))
    assert plan.choices[0].cost.total == Money(Decimal("866.40")), "the live figure is what counts"
    assert words(plan).count("published 31.464/h, 9 days old, 12.8 % below the live offer of 36.10/h") == 1


@pytest.mark.parametrize(("count", "sold"), [(64, True), (65, False), (256, False)])
def test_a_purchase_of_65_is_refused_locally(count: int, sold: bool) -> None:
    """Field fault 37: a block holds 64; more is refused before anybody is asked."""
    offer = block("p5.48xlarge", "1.00", count=count)
    if sold:
        check_count(offer)
        return
    with pytest.raises(BerthError) as refused:
        check_count(offer)
    assert refused.value.exit_code is ExitCode.BAD_REQUEST
    assert "1 to 64 are" in refused.value.message


def test_sagemakers_quota_is_named() -> None:
    """Field fault 37: SageMaker's refusal is told as a quota, with the quota's name."""
    said = (
        "The account-level service limit 'ml.p5.48xlarge for training plan reserved capacity' is 0 "
        "Instances, with current utilization of 0 Instances and a request delta of 1 Instances."
    )

    class Full:
        def search_training_plan_offerings(self, **_: object) -> dict[str, object]:
            reply = {"Error": {"Code": "ResourceLimitExceeded", "Message": said}}
            raise ClientError(reply, "SearchTrainingPlanOfferings")  # type: ignore[arg-type]

    query = Query(Way.TRAINING_PLAN, "us-east-1", "ml.p5.48xlarge", 1, 96, Target.TRAINING_JOB)
    answer = search_place(query, Full(), object(), now=lambda: NOW)
    assert answer.outcome is PlaceOutcome.NO_QUOTA
    need = Need("quota", "ml.p5.48xlarge", 1, 4 * DAY, Target.TRAINING_JOB, ("us-east-1",))
    text = words(make_plan(need, [answer], (), NOW))
    assert "us-east-1 no quota" in text
    assert "ml.p5.48xlarge for training plan reserved capacity" in text


def test_the_table_of_field_faults_names_tests_that_exist() -> None:
    """Every file and every test that docs/internals/planner.md names for a fault is there."""
    tests = Path(__file__).parents[2]
    page = (tests.parent / "docs" / "internals" / "planner.md").read_text()
    rows = re.findall(r"^\| (\d+) \|.*$", page, re.MULTILINE)
    assert len(rows) == 15
    named = re.findall(r"`((?:\w+/)?test_\w+\.py)(?:::(\w+))?`", page)
    assert len(named) > 25
    for file, test in named:
        places = [folder / file for folder in (tests / "unit" / "planner", tests / "unit", tests)]
        found = [place for place in places if place.exists()]
        assert found, file
        assert not test or f"def {test}(" in found[0].read_text(), f"{file}::{test}"
