"""Eight clients after the same last hosts, kills, and a full disk: nothing lost, nothing sold twice."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from .rush import LAST, LAST_HOSTS, asks, recount, rush_fleet
from .rush_clients import InsideYard, send_all
from .rush_yard import RushYard

MANY = 800
WINDOW = 8 * LAST_HOSTS  # asks until twice as many want each host of the first contested window


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for a unix socket, gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix="rush-"))
    yield path
    shutil.rmtree(path)


def test_eight_clients_after_the_same_hosts_sell_none_of_them_twice(folder: Path) -> None:
    """In process with the real writer and disk: every window of the contested zone is sold to the last host
    and no further, the calendar equals its recount from the rows, and a yard opened again knows the same."""
    yard = InsideYard(folder / "y", buyers=16, seed=1)
    sent = asks(MANY, yard.buyers, seed=2)
    yard.prepare(sent)
    told = send_all(sent, yard.client)
    memory = yard.committed()
    yard.close()
    assert told.unexpected == []
    assert recount(yard.store, rush_fleet()).against(told.acknowledged, sent) == []
    assert {ask.contested for ask in told.refused} == {True}
    windows = MANY // 2 // (4 * LAST_HOSTS)  # those of which twice as many were asked as there are
    sold = [ask for ask in told.acknowledged if ask.zone == LAST and ask.start <= windows]
    assert len(sold) == 2 * windows * LAST_HOSTS
    again = InsideYard(folder / "y", buyers=0, seed=3)
    assert again.committed() == memory
    again.close()


def test_what_was_acknowledged_in_a_rush_survives_kills(folder: Path) -> None:
    """Over HTTP; killed twice in the middle, then everything is sent that was not sent before."""
    rush, draw = RushYard(folder, buyers=1, seed=4), random.Random(5)
    try:
        for _ in range(2):
            told = rush.kill_once(120, draw)
            assert told.unexpected == []
            assert told.answers < 120  # it was killed in the middle
            assert rush.faults() == []
        before = len(rush.acknowledged)
        assert before > 20
        assert rush.rush(40).unexpected == []
        assert rush.faults() == []
        assert len(rush.acknowledged) > before
    finally:
        rush.close()


def test_a_full_disk_refuses_and_loses_nothing(folder: Path) -> None:
    """While nothing fits the answer is InternalFailure, status 500; what was acknowledged is there, what was
    refused is not, hosts of failed purchases are free again, and it goes on when there is room."""
    rush = RushYard(folder, buyers=1, seed=6)
    try:
        assert rush.rush(40).failed == []
        with rush.full_disk():
            rush.until(lambda told: len(told.failed) == 16, 16)  # every one of a rush
            failed = rush.rush(16).failed
            assert len(failed) == 16
            assert rush.yard.clients.sagemaker.list_training_plans()["TrainingPlanSummaries"]  # reads go on
        assert rush.until(lambda told: not told.failed, 16).acknowledged
        rush.rush(WINDOW - len(rush.tried))
        rows = recount(rush.yard.folder.store, rush_fleet())
        assert rows.against(rush.acknowledged, rush.tried) == []
        assert [ask.name for ask in failed if rows.sold[ask.name]] == []
        # Had memory kept a failed purchase, a host of the first contested window would be missing here.
        sold = Counter(ask.kind for ask in rush.acknowledged if ask.contested and ask.start == 1)
        assert sold == {"plan": LAST_HOSTS, "block": LAST_HOSTS}
    finally:
        rush.close()
