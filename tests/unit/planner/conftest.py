"""A need, an offer and the rates of the first picture in the docs, to be varied by each test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from berth.planner.cost import HourlyRate
from berth.planner.need import Need
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.terms.money import Money
from berth.terms.ways import Target, Way
from berth.terms.window import Window

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
START = datetime(2026, 12, 2, 11, 30, tzinfo=UTC)


@pytest.fixture
def now() -> datetime:
    """Tuesday, 1 December 2026, 09:00Z."""
    return NOW


@pytest.fixture
def start() -> datetime:
    """The next day's 11:30Z."""
    return START


@pytest.fixture
def a_need() -> Callable[..., Need]:
    """`a_need(count=2)`: the need of the picture with members replaced."""
    base = Need(
        name="eval-1",
        instance_type="ml.trn1.32xlarge",
        count=1,
        duration=timedelta(hours=24),
        target=Target.ENDPOINT,
        regions=("us-east-1",),
        start=START,
        time_zone="Europe/Berlin",
    )
    return lambda **changes: replace(base, **changes)


@pytest.fixture
def an_offer() -> Callable[..., Offer]:
    """`an_offer(fee="0.24", days=2)`: the offer of the picture with parts changed."""

    def made(
        fee: str | None = "228.77",
        *,
        starts: datetime = START,
        days: float = 1,
        zone: str | None = "use1-az6",
        parts: tuple[tuple[float, float], ...] = (),
        **changes: Any,
    ) -> Offer:
        spans = parts or ((0, days),)
        segments = tuple(
            Segment(
                Window(starts + timedelta(days=a), starts + timedelta(days=b)),
                zone,
                "us-east-1f",
                changes.get("instance_type", "ml.trn1.32xlarge"),
                changes.get("count", 1),
            )
            for a, b in spans
        )
        base = Offer(
            way=Way.TRAINING_PLAN,
            region="us-east-1",
            offering_id="tpo-1",
            segments=segments,
            count=1,
            instance_type="ml.trn1.32xlarge",
            fee=None if fee is None else Money(Decimal(fee)),
            targets=("endpoint",),
            seen_at=NOW,
            query=Query(
                Way.TRAINING_PLAN, "us-east-1", "ml.trn1.32xlarge", 1, 24, Target.ENDPOINT, None, None
            ),
        )
        return replace(base, **changes)

    return made


@pytest.fixture
def an_answer() -> Callable[..., PlaceAnswer]:
    """`an_answer(offer, ...)`: one place's answer with those offers."""

    def made(*offers: Offer, region: str = "us-east-1", outcome: str = "", detail: str = "") -> PlaceAnswer:
        said = PlaceOutcome(outcome) if outcome else PlaceOutcome.OFFERS
        return PlaceAnswer(Way.TRAINING_PLAN, region, said, NOW, detail, tuple(offers))

    return made


@pytest.fixture
def rates() -> tuple[HourlyRate, ...]:
    """EC2's and SageMaker's hourly prices of the picture."""
    return (
        HourlyRate(
            Way.ON_DEMAND, "us-east-1", "on-demand", Money(Decimal("21.5")), date(2026, 7, 20), "table"
        ),
        HourlyRate(
            Way.SAGEMAKER_ON_DEMAND,
            "us-east-1",
            "hosting",
            Money(Decimal("28.497")),
            date(2025, 1, 26),
            "table",
            region_assumed=True,
        ),
    )
