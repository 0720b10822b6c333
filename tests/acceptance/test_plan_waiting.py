"""`berth plan --wait-until`, `--zones` and `berth history` at a yard; `berth plan` without a login."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from berth.cli.main import run
from berth.sources.history import history_file, open_history
from berth.terms.outcomes import ExitCode

BLOCK = """
name = "{name}"
instance_type = "p5.48xlarge"
count = 1
duration = "24h"
target = "instances"
regions = ["us-east-1"]
"""
LATER = "2027-01-05T09:00Z"
PAST = "2026-12-01T08:00Z"


@pytest.fixture
def need(berth: Any) -> Callable[[str], str]:
    """Writes a need for a block; its path."""

    def write(name: str) -> str:
        file = berth.folder / f"{name}.toml"
        file.write_text(BLOCK.format(name=name))
        return str(file)

    return write


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A program on this machine that is told: its address, and what it heard."""
    heard: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's word
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/", heard
        server.shutdown()
        thread.join()


def test_what_fits_is_told_once_and_never_bought(
    berth: Any, need: Callable[[str], str], webhook: tuple[str, list[dict[str, Any]]]
) -> None:
    """Found in the first round: exit 0, one message; the same command again asks and tells nothing."""
    url, heard = webhook
    command = ("plan", need("told"), "--wait-until", LATER, "--max-total", "1200", "--notify", url)
    first = berth(*command)
    assert first.code == ExitCode.DONE, first.err
    assert "BUY    berth buy told#1 --max 1146.17" in first.out
    (notice,) = heard
    assert re.search(
        r"told: 1 x p5\.48xlarge, us-east-1 use1-\S+, .* UTC, \$1,146\.17 in all", notice["text"]
    )
    assert notice["text"].endswith("berth buy told#1 --max 1146.17")
    searched = len(berth.yard.log_of("DescribeCapacityBlockOfferings"))
    again = berth(*command)
    assert (again.code, len(heard)) == (ExitCode.DONE, 1)
    assert "told once: told: 1 x p5.48xlarge" in " ".join(again.out.split())
    assert max(map(len, again.out.splitlines())) <= 80
    assert len(berth.yard.log_of("DescribeCapacityBlockOfferings")) == searched
    assert berth.yard.log_of("PurchaseCapacityBlock") == []


def test_a_message_that_may_have_been_sent_is_not_sent_again(
    berth: Any,
    need: Callable[[str], str],
    webhook: tuple[str, list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Killed between writing "telling" and "told": whether it was told is not known, so it counts as told."""
    url, heard = webhook

    def dies(self: object, notice: object) -> None:
        raise SystemExit(1)

    command = ("plan", need("dies"), "--wait-until", LATER, "--max-total", "1200", "--notify", url)
    with monkeypatch.context() as patched:
        patched.setattr("berth.watch.notices.Webhook.tell", dies)
        berth(*command)
    assert berth(*command).code == ExitCode.DONE
    assert heard == []


def test_a_channel_that_refused_is_told_by_the_same_command(
    berth: Any, need: Callable[[str], str], webhook: tuple[str, list[dict[str, Any]]]
) -> None:
    """Nobody listened the first time: the restart tells, once, without asking AWS again."""
    url, heard = webhook
    typed = ("plan", need("late"), "--wait-until", LATER)
    first = berth(*typed, "--notify", "http://127.0.0.1:1/")
    assert first.code == ExitCode.DONE
    assert "http://127.0.0.1:1 was not told" in " ".join(first.err.split())
    assert berth(*typed, "--notify", url).code == ExitCode.DONE
    assert len(heard) == 1


def test_nothing_until_the_date_is_an_exit_code_of_its_own(berth: Any, need: Callable[[str], str]) -> None:
    """Under a price that nobody sells for: one round at a date that is over, exit 10; the plan is shown."""
    ended = berth("plan", need("never"), "--wait-until", PAST, "--max-total", "5")
    assert ended.code == ExitCode.NO_CAPACITY
    assert (
        "nothing fitted for 5 or less until 2026-12-01T08:00Z; every place answered (rounds: 1)"
        in " ".join(ended.err.split())
    )
    assert "round 1: 1 of 1 answered, best $1,146.17, over the limit" in " ".join(ended.err.split())
    assert ended.money == "nothing was spent"
    assert berth("plan", need("never"), "--wait-until", PAST, "--max-total", "5").code == ExitCode.NO_CAPACITY


def test_a_date_in_words_is_told_back(berth: Any, need: Callable[[str], str]) -> None:
    """Read by the yard's clock in the need's zone; an offer that fits ends the wait at once."""
    ended = berth("plan", need("words"), "--wait-until", "next friday 09:00", "--time-zone", "Europe/Berlin")
    assert ended.code == ExitCode.DONE, ended.err
    assert (
        'waiting: "until next friday 09:00" = Fri 4 Dec 09:00 Berlin; if Fri 11 Dec is meant, write '
        "2026-12-11 09:00"
    ) in " ".join(ended.err.split())


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--wait-until", "soon"), "--wait-until: must be an instant"),
        (("--wait-until", LATER, "--max-total", "cheap"), "--max-total: not an amount of money"),
        (("--wait-until", LATER, "--max-total", "0"), "--max-total: must be more than zero"),
        (("--max-total", "5"), "--max-total and --notify are for --wait-until"),
        (("--zones", "near"), "--zones near: there are all and regional"),
    ],
)
def test_what_cannot_be_read_is_a_usage_error(
    berth: Any, need: Callable[[str], str], flags: tuple[str, ...], said: str
) -> None:
    """Told before anything is searched."""
    searched = len(berth.yard.log_of("DescribeCapacityBlockOfferings"))
    ended = berth("plan", need("wrong"), *flags)
    assert ended.code == ExitCode.USAGE
    assert said in " ".join(ended.err.split())
    assert len(berth.yard.log_of("DescribeCapacityBlockOfferings")) == searched


def test_local_zones_are_left_out_on_request(berth: Any, need: Callable[[str], str]) -> None:
    """Field fault 43: they stand apart by default, and `--zones regional` hides them."""

    def kinds(*flags: str) -> list[str]:
        plan = berth("plan", need("zones"), "--json", *flags).json
        assert {choice["offer"]["region"] for choice in plan["choices"]} == {"us-east-1"}
        return [part["zone_type"] for choice in plan["choices"] for part in choice["offer"]["segments"]]

    everywhere = kinds()
    assert "local-zone" in everywhere
    assert everywhere[0] == "availability-zone"
    assert set(kinds("--zones", "regional")) == {"availability-zone"}
    head = "   in Local Zones, which need an opt-in and local subnets (--zones regional):"
    assert head in berth("plan", need("zones")).out.splitlines()
    assert head not in berth("plan", need("zones"), "--zones", "regional").out.splitlines()


def test_the_history_shows_what_was_asked(berth: Any, need: Callable[[str], str]) -> None:
    """Two plans are two asks of the hour; another world's history is empty; a list of none says so."""
    assert "nothing was asked of p5.48xlarge" in berth("history", "p5.48xlarge").err
    berth("plan", need("seen"))
    berth("plan", need("seen"))
    ended = berth("history", "p5.48xlarge", "--json")
    (row,) = ended.json["hours"]
    assert (row["region"], row["way"], row["asks"], row["with_offers"]) == (
        "us-east-1",
        "capacity-block",
        2,
        2,
    )
    assert ended.json["quieter"].startswith("quieter hours: unknown.")
    assert "capacity-block us-east-1 2 2 0" in " ".join(berth("history", "p5.48xlarge").out.split())
    assert berth("history", "p5.48xlarge", "--region", "eu-north-1").out == ""


def test_a_bucket_that_was_used_before_is_waited_for(house: Any, at_yard: Callable[..., Any]) -> None:
    """The history knows what was just asked, so that a next program is not throttled in its place.

    In an account of its own: what other tests asked has used up the bucket of theirs.
    """
    house.account("paced")
    berth = at_yard(house, "paced")
    file = berth.folder / "paced.toml"
    file.write_text(BLOCK.format(name="paced"))
    berth("plan", str(file))
    account = berth("plan", str(file), "--json").json["account"]
    history = open_history(
        history_file(os.environ), berth.environment()["BERTH_YARD"].split()[0].partition("//")[2], account
    )
    assert len(history.sent_ago("us-east-1", _now())) == 2
    history.close()


def _now() -> Any:
    from berth.terms.clock import SystemClock

    return SystemClock().now()


# -- without a login -----------------------------------------------------------------------------------------
@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """A new machine: no keys, no files, no instance to ask."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "BERTH_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BERTH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.usefixtures("nobody")
def test_without_a_login_the_plan_is_marked_not_live(
    capsys: pytest.CaptureFixture[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verdicts, list prices with their age, no offer to buy; the exit code says that a login is missing."""
    file = tmp_path / "need.toml"
    file.write_text(BLOCK.format(name="new"))
    code = run(["plan", str(file), "--ways"])
    said = capsys.readouterr()
    assert code == ExitCode.CREDENTIALS
    assert said.out.startswith("NOT LIVE  nobody was asked")
    assert max(map(len, said.out.splitlines())) <= 80
    text = " ".join(said.out.split())
    assert "us-east-1 not asked (no login)" in text
    assert re.search(r"55\.04/h on-demand, seen \d{4}-\d\d-\d\d \(\d+ \w+ old\)", text)
    assert "capacity-block list price, p5.48xlarge in us-east-1: 47.757/h" in text
    assert "BUY" not in said.out.replace("BUYS", "")
    assert "the plan above is not live: no AWS credentials were found" in said.err
    assert said.err.strip().endswith("nothing was spent")
    assert run(["plan", str(file), "--json"]) == ExitCode.CREDENTIALS
    plan = json.loads(capsys.readouterr().out)
    assert (plan["live"], plan["account"], plan["choices"]) == (False, None, [])


@pytest.mark.usefixtures("nobody")
def test_without_a_login_in_a_rehearsal_nothing_is_made_up(
    capsys: pytest.CaptureFixture[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS's list prices are not a yard's: with a yard declared the login is all that is spoken of."""
    monkeypatch.setenv("BERTH_YARD", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    file = tmp_path / "need.toml"
    file.write_text(BLOCK.format(name="new"))
    assert run(["plan", str(file)]) == ExitCode.CREDENTIALS
    said = capsys.readouterr()
    assert said.out == ""
    assert "no keys for the yard were found" in said.err
