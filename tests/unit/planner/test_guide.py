"""The guide's questions: every way through them ends in a need, and answers are judged as a file's are."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.planner.guide import QUESTIONS, Question, complaint, need_of, need_toml, next_question, taken
from berth.planner.need_file import FLAGS

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
# Good answers to each question, the empty one apart.
ANSWERS = {
    "target": ["instances", "training-job"],
    "name": ["eval-1"],
    "type": ["{ml}p5.48xlarge", "{ml}p5.48xlarge, {ml}p4d.24xlarge"],
    "accelerators": ["H200:16", "H100:8:80"],
    "count": ["2"],
    "count_wanted": ["4"],
    "duration": ["2d", "5d..9d"],
    "goal": ["longest", "cheapest-hour"],
    "budget": ["30000 USD", "500"],
    "time_zone": ["Europe/Berlin"],
    "start": ["2026-12-02 12:30"],
    "earliest_start": ["tomorrow", "2026-12-05"],
    "latest_end": ["20 December"],
    "regions": ["us-east-1", "us-east-1, us-west-2"],
    "subnet_zones": ["use1-az4, use1-az6"],
    "same_zone": ["yes", "no"],
    "not_ways": ["odcr", "on-demand, spot"],
    "interruptible": ["yes", "no"],
    "checkpoint_every": ["1h"],
    "utilisation": ["0.6", "1"],
    "startup": ["20min"],
}


def question(key: str) -> Question:
    """The question about `key`."""
    return next(q for q in QUESTIONS if q.key == key)


@settings(deadline=None, max_examples=120)
@given(st.data())
def test_every_way_through_ends_in_a_need(data: st.DataObject) -> None:
    """Defaults or good answers, in any mix: none is refused, each question comes once, the file is read."""
    answers: dict[str, str] = {}
    while (asked := next_question(answers)) is not None:
        ml = "" if answers.get("target") == "instances" else "ml."
        typed = data.draw(st.sampled_from(["", *ANSWERS[asked.key]]), label=asked.key).format(ml=ml)
        if complaint(asked, taken(asked, typed), answers, NOW) == "this one has to be answered":
            typed = ANSWERS[asked.key][0]
        assert complaint(asked, taken(asked, typed), answers, NOW) == ""
        answers[asked.key] = taken(asked, typed)
    need = need_of(answers, NOW)
    assert need.name == answers["name"]
    assert need.target == answers["target"]
    assert need_toml(answers).startswith("name = ")


def test_each_question_is_whole_and_about_a_key_of_the_file() -> None:
    """Text, example and explanation; what has to be answered without a default is told."""
    for asked in QUESTIONS:
        assert asked.key in FLAGS
        assert asked.text.endswith((".", "?"))
        assert len(asked.explain) > 20
        assert asked.example
    assert len({asked.key for asked in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.parametrize(
    ("key", "answer", "answers", "said"),
    [
        ("name", "Eval 1", {}, "'Eval 1' is not valid"),
        ("target", "gpu", {}, "'gpu' is not one of instances"),
        ("type", "p5.48xlarge", {"target": "endpoint"}, "SageMaker calls it 'ml.p5.48xlarge'"),
        ("count", "0", {"type": "p5.48xlarge"}, "must be a whole number from 1 to 1000, not 0"),
        ("count", "two", {"type": "p5.48xlarge"}, 'must be a whole number from 1 to 1000, not "two"'),
        ("count_wanted", "2", {"type": "p5.48xlarge", "count": "4"}, "the least count of 4 or more, not 2"),
        ("duration", "9d..5d", {}, "the wrong way round"),
        ("budget", "", {"duration": "5d..9d", "goal": "longest"}, "this one has to be answered"),
        ("start", "2026-11-30 12:30", {"time_zone": "UTC"}, "is past; it is 2026-12-01 09:00Z"),
        ("latest_end", "2 December", {"duration": "9d", "time_zone": "UTC"}, "less than the duration of 9 d"),
        ("regions", "Frankfurt", {}, "is not valid here"),
        ("interruptible", "perhaps", {}, "write yes or no"),
        ("utilisation", "60", {}, "must be over 0 and at most 1"),
        ("utilisation", "1e9", {}, "must be over 0 and at most 1"),
        ("startup", "3d", {"duration": "2d"}, "nothing would be left to use"),
        ("name", '"\ncount = 5 #', {}, "is not valid"),
    ],
)
def test_what_cannot_be_is_refused_at_once(key: str, answer: str, answers: dict[str, str], said: str) -> None:
    """In the words of the need file, by its own reader; what is typed never becomes another key."""
    assert said in complaint(question(key), answer, answers, NOW)


def test_questions_follow_from_the_answers() -> None:
    """No accelerators where types were named, no goal without a range, no days beside a start."""
    keys = []
    answers: dict[str, str] = {}
    typed = {"type": "p5.48xlarge", "start": "2026-12-02 12:30", "target": "instances"}
    while (asked := next_question(answers)) is not None:
        keys.append(asked.key)
        answers[asked.key] = typed.get(asked.key, taken(asked, ""))
    assert keys == [
        "target", "name", "type", "count", "count_wanted", "duration", "budget", "time_zone", "start",
        "regions", "subnet_zones", "not_ways", "interruptible", "utilisation", "startup",
    ]  # fmt: skip
