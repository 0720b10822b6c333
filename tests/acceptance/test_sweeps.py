"""A sweep against a yard with AWS's buckets, whose throttles run faster: every cell is filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from berth.terms.outcomes import ExitCode
from berth.yard.testing.process import YardProcess

SEARCH = "DescribeCapacityBlockOfferings"
SWEEP = (
    *("plan", "--name", "sweep", "--type", "p5.48xlarge", "--count", "1", "--duration", "1d..28d"),
    *("--target", "instances", "--region", "us-east-1", "--region", "us-west-2", "--json"),
)


@pytest.fixture(scope="module")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YardProcess]:
    """A yard whose buckets refill 100 times faster than AWS's: ten at once, then 15 a second."""
    with YardProcess(Path(tmp_path_factory.mktemp("y")), throttle_scale=100) as yard:
        yield yard


def outcomes(yard: YardProcess, after: int = 0) -> Counter[str]:
    """How the yard answered searches."""
    return Counter(call["outcome"] for call in yard.log_of(SEARCH)[after:])


def test_a_sweep_is_complete_and_so_is_the_next(scaled: YardProcess, at_yard: Callable[..., Any]) -> None:
    """32 questions, 16 a Region with room for ten; then a second program, which knows what was asked."""
    berth = at_yard(scaled)
    for number in (1, 2):
        ended = berth(*SWEEP)
        assert ended.code == ExitCode.DONE, ended.err
        places = ended.json["places"]
        assert Counter(place["region"] for place in places) == {"us-east-1": 16, "us-west-2": 16}
        assert {place["outcome"] for place in places} == {"offers"}
        assert outcomes(scaled)["ok"] == 32 * number


def test_without_its_history_a_second_program_is_throttled_and_still_complete(
    scaled: YardProcess, at_yard: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else takes from the same bucket: refused searches are asked again, and no cell is lost."""
    berth = at_yard(scaled)
    before = len(scaled.log_of(SEARCH))
    for home in ("one", "two"):
        monkeypatch.setenv("BERTH_HOME", str(berth.folder / home))
        ended = berth(*SWEEP)
        assert ended.code == ExitCode.DONE, ended.err
        assert {place["outcome"] for place in ended.json["places"]} == {"offers"}
    assert outcomes(scaled, before)["ok"] == 64
