"""Other faces of a plan: every offer with its whole id, the ways side by side, rows for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.planner.choose import make_plan
from berth.planner.compare_text import compare_text
from berth.planner.cost import HourlyRate
from berth.planner.csv_text import COLUMNS, csv_text
from berth.planner.offers_text import offers_text
from berth.planner.plan import Plan
from berth.terms.ways import Way

Make = Callable[..., Any]
LONG_ID = "tpo-" + "0123456789abcdef" * 6
FIXTURE = [HealthCheck.function_scoped_fixture]


def a_plan(
    a_need: Make,
    an_offer: Make,
    an_answer: Make,
    rates: tuple[HourlyRate, ...],
    now: datetime,
    **changes: Any,
) -> Plan:
    """One offer that fits, under `changes`, one that is for another target, one without a price."""
    offers = [
        an_offer(offering_id=LONG_ID, **changes),
        an_offer("99.00", offering_id="tpo-other", targets=("training-job",)),
        an_offer(None, offering_id="tpo-unpriced", zone="use1-az1"),
    ]
    return make_plan(a_need(), [an_answer(*offers)], rates, now)


def test_every_offer_is_listed_with_its_whole_id(
    a_need: Make, an_offer: Make, an_answer: Make, rates: tuple[HourlyRate, ...], now: datetime
) -> None:
    """Whole ids in lines of their own (field fault 51), and the reasons of those that do not fit."""
    text = offers_text(a_plan(a_need, an_offer, an_answer, rates, now))
    lines = text.splitlines()
    assert f"#1     {LONG_ID}" in lines
    assert "no     tpo-other" in lines
    assert "  not  is for training-job, not for endpoint" in lines
    assert any("unknown, usable 23:30" in line for line in lines)
    assert lines[-1] == "Offers: 2 that fit, 1 that do not, seen 2026-12-01 09:00Z."
    assert all(len(line) <= 80 for line in lines if LONG_ID not in line)
    assert offers_text(make_plan(a_need(), [], rates, now)) == "No offer was seen."


def test_the_ways_stand_side_by_side(
    a_need: Make, an_offer: Make, an_answer: Make, rates: tuple[HourlyRate, ...], now: datetime
) -> None:
    """Six paragraphs, each with promise, payment and place; what fits has its cost, or says why not."""
    plan = a_plan(a_need, an_offer, an_answer, rates, now)
    text = compare_text(plan)
    assert text.count("  promise ") == len(Way)
    assert "  costs   $228.77, used or not, for 23:30 usable (eval-1#1)" in text
    assert "$669.68 for 23:30 of use, us-east-1 (list price of 2025-01-26)" in text
    assert "NO     capacity-block: EC2 only, cannot serve an endpoint" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    nothing = compare_text(make_plan(a_need(), [], (), now))
    assert "  costs   not known: nothing was seen" in nothing


def test_rows_for_a_spreadsheet(
    a_need: Make, an_offer: Make, an_answer: Make, rates: tuple[HourlyRate, ...], now: datetime
) -> None:
    """One row an offer and a rate; unknown is an empty cell."""
    rows = list(csv.DictReader(io.StringIO(csv_text(a_plan(a_need, an_offer, an_answer, rates, now)))))
    assert tuple(rows[0]) == COLUMNS
    by_id = {row["offering_id"]: row for row in rows if row["offering_id"]}
    assert (by_id[LONG_ID]["fee"], by_id[LONG_ID]["total"], by_id[LONG_ID]["fits"]) == (
        "228.77",
        "228.77",
        "yes",
    )
    assert (by_id["tpo-unpriced"]["fee"], by_id["tpo-unpriced"]["total"]) == ("", "")
    assert by_id["tpo-other"]["reasons_against"].startswith("is for training-job")
    assert (by_id[LONG_ID]["paid_hours"], by_id[LONG_ID]["usable_hours"]) == ("24", "23.5")
    rate = next(row for row in rows if row["way"] == "sagemaker-on-demand")
    assert (rate["total"], rate["seen"], rate["fits"]) == ("669.68", "2025-01-26", "")


@settings(deadline=None, max_examples=50, suppress_health_check=FIXTURE)
@given(name=st.text(min_size=1, max_size=20))
def test_no_cell_is_taken_for_a_formula(
    a_need: Make, an_offer: Make, an_answer: Make, rates: tuple[HourlyRate, ...], now: datetime, name: str
) -> None:
    """Ids come from outside: a cell that began with `=` would be run by a spreadsheet."""
    plan = make_plan(a_need(), [an_answer(an_offer(offering_id=name))], rates, now)
    for row in csv.reader(io.StringIO(csv_text(plan), newline="")):
        assert all(cell[:1] not in {"=", "+", "-", "@", "\t", "\r"} for cell in row)
