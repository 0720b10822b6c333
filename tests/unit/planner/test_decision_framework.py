"""The decision framework: every row of the table in the docs is a case, and the picture is the rules'."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from berth.facts.instance_types import instance_type
from berth.planner.framework.advice import QUESTIONS, Step, advice
from berth.planner.framework.case import Case
from berth.planner.framework.picture import svg
from berth.planner.framework.ways import AXES
from berth.planner.need import Need
from berth.planner.need_file import read_need
from berth.planner.verdicts import WayVerdict, verdicts
from berth.terms.ways import Way

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "decision-framework.md").read_text(encoding="utf-8")
DEFAULTS = {
    "name": '"case"',
    "count": "1",
    "duration": '"24h"',
    "target": '"instances"',
    "regions": '["us-east-1"]',
}
COLUMNS = (
    Way.TRAINING_PLAN, Way.SAGEMAKER_ON_DEMAND, Way.CAPACITY_BLOCK, Way.ON_DEMAND, Way.SPOT, Way.ODCR,
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One row of the table of cases."""

    story: str
    need: str
    ways: dict[Way, str]
    first: str
    because: str


def rows() -> list[Row]:
    """The rows of the last table of the page."""
    lines = PAGE.rsplit("|---|", 1)[1].splitlines()
    return [_row(line) for line in lines if line.startswith("| ")]


def _row(line: str) -> Row:
    story, need, *ways, first, because = (cell.strip() for cell in line.strip("| ").split(" | "))
    return Row(story, need.strip("`"), dict(zip(COLUMNS, ways, strict=True)), first, because)


ROWS = rows()


def the_need(row: Row) -> Need:
    """The need that a row writes down, what it leaves out filled in."""
    written = dict(part.split(" = ", 1) for part in re.split(r", (?=[a-z_]+ = )", row.need))
    return read_need(
        "\n".join(f"{k} = {v}" for k, v in {**DEFAULTS, **written}.items()), "case.toml", NOW, {}
    )


def judged(need: Need) -> tuple[dict[Way, WayVerdict], tuple[Step, ...]]:
    """The verdict on each way, and what to try in what order."""
    found = {verdict.way: verdict for verdict in verdicts(need, NOW)}
    case = Case(need, instance_type(need.instance_type), NOW)
    return found, advice(case, {way for way, verdict in found.items() if verdict.fits})


def test_the_table_is_whole() -> None:
    """Forty cases at least, and each rule that recommends a way is the reason of at least one of them."""
    assert len(ROWS) >= 40
    assert len({row.story for row in ROWS}) == len(ROWS)
    recommending = {question.rule for question in QUESTIONS if question.ways}
    # This one speaks second, never first.
    assert recommending - {row.because for row in ROWS} == {"spot-beside"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.story)
def test_a_case_of_the_table(row: Row) -> None:
    """Verdict on every way, what to try first, and why, as the page says."""
    found, steps = judged(the_need(row))
    said = {way: _cell(found[way]) for way in COLUMNS}
    assert said == row.ways
    assert (steps[0].way.value if steps[0].way else "nothing", steps[0].rule) == (row.first, row.because)


def _cell(verdict: WayVerdict) -> str:
    if verdict.fits:
        return "yes"
    rule = next(reason.rule for reason in verdict.reasons if reason.against)
    return "-" if rule == "who-manages-the-machines" else f"no: {rule}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.story)
def test_advice_names_each_fitting_way_once_at_most_and_no_other(row: Row) -> None:
    """What cannot hold the need is never advised, and no way stands twice."""
    found, steps = judged(the_need(row))
    ways = [step.way for step in steps if step.way]
    assert len(ways) == len(set(ways))
    assert all(found[way].fits for way in ways)
    assert all(step.sentence and step.source for step in steps)


def test_a_fall_back_follows_on_demand_when_the_start_may_move() -> None:
    """On-demand first, then what promises it, then other Regions and one's own hours."""
    row = next(row for row in ROWS if row.story.startswith("The same load test"))
    _, steps = judged(the_need(row))
    assert [step.rule for step in steps] == [
        "on-demand-first", "reserve-as-fall-back", "other-regions-next", "quieter-hours-are-your-own",
    ]  # fmt: skip


def test_large_work_is_told_to_begin_early_unless_it_does() -> None:
    """Sixty-four nodes a week ahead are late; five weeks ahead they are not."""
    row = next(row for row in ROWS if row.story.startswith("Pre-training"))
    need = the_need(row)
    _, steps = judged(need)
    assert "begin-three-weeks-ahead" in {step.rule for step in steps}
    early = the_need(Row("", row.need.replace("2026-12-09", "2027-01-11"), {}, "", ""))
    assert "begin-three-weeks-ahead" not in {step.rule for step in judged(early)[1]}


def test_what_nobody_sells_ends_with_whom_to_ask() -> None:
    """Where no way fits, the first step says so instead of naming a way."""
    need = the_need(next(row for row in ROWS if "G6" in row.story))
    case = Case(need, instance_type(need.instance_type), NOW)
    assert advice(case, set())[0].rule == "ask-the-account-team"
    plain = the_need(ROWS[0])
    assert advice(Case(plain, instance_type(plain.instance_type), NOW), set())[0].rule == "change-the-need"


def test_steps_survive_json() -> None:
    """Plans are remembered as JSON."""
    for row in ROWS:
        _, steps = judged(the_need(row))
        assert tuple(Step.from_json(step.to_json()) for step in steps) == steps


def test_the_picture_is_drawn_from_the_rules_of_now() -> None:
    """`python tools/framework_picture.py` draws it anew."""
    assert (DOCS / "decision-framework.svg").read_text(encoding="utf-8") == svg()
    for question in QUESTIONS:
        assert question.rule in svg()


def test_the_page_tells_the_axes_of_the_rules() -> None:
    """The table of the six ways is what the program knows."""
    for way, axes in AXES.items():
        line = f"| {way.value} | {axes.availability} | {axes.cost_model} | {axes.environment} |"
        assert line in PAGE
