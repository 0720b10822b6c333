"""A team's journal in PostgreSQL, and a lost journal made anew: the command line at a yard over HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

SECRET = "tr0ub4dor-and-3"
BLOCK = """
name = "{name}"
instance_type = "p5.48xlarge"
count = 1
duration = "24h"
target = "instances"
regions = ["us-east-1"]
"""


@pytest.fixture
def shared(postgresql: Any, berth: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The journal of `berth` is in PostgreSQL; the URL, with a password in it."""
    with postgresql.journals() as new:
        url = str(postgresql.url(new(), password=SECRET))
        monkeypatch.setenv("BERTH_JOURNAL", url)
        yield url


def other_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From here on `berth` runs on a machine with a folder of its own."""
    monkeypatch.setenv("BERTH_HOME", str(tmp_path / "other-machine"))


def plan_block(berth: Any, name: str) -> None:
    """Plan a Capacity Block."""
    file = berth.folder / f"{name}.toml"
    file.write_text(BLOCK.format(name=name))
    assert berth("plan", str(file)).code == 0


def test_two_machines_make_one_order(
    berth: Any, shared: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What one machine planned and bought, the other shows, and does not buy again."""
    berth.plan("team")
    first = berth.buy("team", "--json")
    assert first.code == 0, first.err
    other_machine(monkeypatch, tmp_path)
    again = berth.buy("team")
    assert again.code == 0, again.err
    assert "bought already" in again.err
    assert not (tmp_path / "other-machine").exists()
    listed = berth("ls", "--orders", "--json")
    (order,) = listed.json["orders"]
    assert (order["order"], order["state"], order["fee"]["amount"]) == ("team", "bought", "228.77")
    assert order["caller"].startswith("arn:aws:")
    assert "by arn:aws:" in berth("ls", "--orders").out
    assert "intended: attempt 1" in berth("show", "team", "--history").out
    assert berth("show", "team", "--json").json["history"][0]["caller"] == order["caller"]
    assert len(berth.sold("team")) == 1


def test_killed_right_after_the_intent(berth: Any, shared: str) -> None:
    """`kill -9` as soon as the intent is in the team's journal, then run again: one sale."""
    berth.plan("killed")
    berth.yard.fault("stall", "CreateTrainingPlan", amount="5")
    child = subprocess.Popen(
        [sys.executable, "-m", "berth", "buy", "killed#1", "--yes", "--max", "500"],
        env={**berth.environment(), "BERTH_JOURNAL": shared}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with closing(psycopg.connect(shared, autocommit=True)) as other:
        while child.poll() is None:
            if other.execute("SELECT 1 FROM berth.orders WHERE state = 'buying'").fetchone():
                break
            time.sleep(0.002)
    child.send_signal(signal.SIGKILL)
    said = child.communicate()
    assert child.returncode == -signal.SIGKILL, said
    berth.yard.clear_faults()
    for _ in range(6):
        ended = berth.buy("killed")
        if ended.code == 0:
            break
        assert ended.code == 40, ended.err
        assert "do not buy by hand" in ended.money
        berth.yard.clock.advance(minutes=3)
    assert ended.code == 0, ended.err
    assert len(berth.sold("killed")) == 1


def test_the_password_is_nowhere(
    berth: Any, shared: str, postgresql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in an answer, a message, a failure, the audit or the journal; the place is named without it."""
    berth.plan("quiet")
    said = [berth.buy("quiet", "--json"), berth("audit", "--json"), berth("show", "quiet"), berth("ls")]
    assert said[1].json["journal"].startswith("postgresql://postgres@")
    assert [event["kind"] for event in said[1].json["events"]][:2] == ["intended", "bought"]
    for broken in (
        shared.replace(str(postgresql.folder), "/nowhere"),
        shared.replace("postgresql://", "mysql://"),
        shared.replace(f":{SECRET}@", f":{SECRET}/@#"),
        f"postgresql://postgres:pass@{SECRET}@nowhere/journal",
        f"postgresql://postgres:{SECRET}@nobody.invalid/journal",
        shared.replace("@/t", "@/no-such-database-t"),
    ):
        monkeypatch.setenv("BERTH_JOURNAL", broken)
        said += [berth("show", "quiet"), berth("audit"), berth("--debug", "show")]
        assert said[-3].code in {1, 20}, said[-3].err
        assert said[-3].err.splitlines()[-1] == "nothing was spent"
        assert "Traceback" not in said[-1].err
    for one in said:
        assert SECRET not in one.out + one.err
    with closing(psycopg.connect(shared)) as other:
        for (table,) in other.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'berth'"
        ).fetchall():
            assert SECRET not in str(other.execute(f'SELECT * FROM berth."{table}"').fetchall())


def test_only_a_journal_of_ones_own_cannot_see_others(berth: Any, shared: str, monkeypatch: Any) -> None:
    """Before a block is paid: what this journal cannot see is said, and a shared one sees its team."""
    plan_block(berth, "seen")
    ended = berth("buy", "seen#1", "--yes", "--max", "5000")
    assert ended.code == 0, ended.err
    words = " ".join(ended.err.split())
    assert "before paying:" in words
    assert "every machine that uses this journal" in words
    monkeypatch.delenv("BERTH_JOURNAL")
    plan_block(berth, "unseen")
    ended = berth("buy", "unseen#1", "--yes", "--max", "5000")
    assert "another machine with a journal of its own" in " ".join(ended.err.split())


def test_a_lost_journal_is_made_anew(berth: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A plan and a block are orders again, with fee and window; twice is the same; nothing is sold."""
    berth.plan("gone")
    plan_block(berth, "gone-too")
    assert berth.buy("gone").code == 0
    assert berth("buy", "gone-too#1", "--yes", "--max", "5000").code == 0
    before = [berth("show", name, "--json").json for name in ("gone", "gone-too")]
    other_machine(monkeypatch, tmp_path)
    sales = len(berth.yard.ledger)
    first = berth("rebuild", "--region", "us-east-1", "--json")
    assert first.code == 0, first.err
    assert first.json["complete"] is True
    fates = {one["order"]: one["fate"] for one in first.json["found"] if one["order"]}
    assert fates["gone"] == fates["gone-too"] == "restored"
    after = [berth("show", name, "--json").json for name in ("gone", "gone-too")]
    for was, now in zip(before, after, strict=True):
        for member in ("order", "state", "way", "reservation", "reservation_arn", "money"):
            assert now[member] == was[member]
        parts = [(part["start"], part["end"], part["count"]) for part in was["offer"]["segments"]]
        assert [(part["start"], part["end"], part["count"]) for part in now["offer"]["segments"]] == parts
    again = berth("rebuild", "--region", "us-east-1", "--json")
    assert {one["fate"] for one in again.json["found"] if one["order"] in fates} == {"known"}
    assert len(berth.yard.ledger) == sales
    assert berth.buy("gone").code == 20  # no plan is remembered: what is lost is told, not made up
    assert "the plans, so that NAME#1" in first.out


def test_what_cannot_be_read_is_not_called_complete(
    berth: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A read that fails: exit 14, what was found is restored all the same."""
    berth.plan("half")
    assert berth.buy("half").code == 0
    other_machine(monkeypatch, tmp_path)
    berth.yard.fault("throttle", "DescribeCapacityReservations", times=50)
    ended = berth("rebuild", "--region", "us-east-1", "--json")
    assert ended.code == 14, ended.err
    assert ended.out == "" or json.loads(ended.out)["complete"] is False
    berth.yard.clear_faults()
    assert berth("show", "half").code == 0
