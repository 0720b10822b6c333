"""`berth extend` against a yard: a later end, paid once; what runs goes on; what failed ends in time."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from berth.terms.instants import parse_instant

BLOCK = """
name = "{name}"
instance_type = "p5.48xlarge"
count = 1
duration = "24h"
target = "instances"
regions = ["us-east-1"]
"""
WEEK = timedelta(days=7)
PAID = ("--yes", "--max", "9000")
BUY = "PurchaseCapacityBlockExtension"


class Longer:
    """One account with an order that is bought and paid."""

    def __init__(self, berth: Any, account: str, name: str = "train") -> None:
        self.berth, self.yard, self.name = berth, berth.yard, name
        self.clients = self.yard.clients_of(account)
        self.id: str = self.clients.sts.get_caller_identity()["Account"]
        need = berth.folder / f"{name}.toml"
        need.write_text(BLOCK.format(name=name))
        assert berth("plan", str(need)).code == 0
        assert berth("buy", f"{name}#1", *PAID).code == 0
        self.yard.clock.advance(minutes=6)
        self.end = parse_instant(berth("show", name, "--json").json["seen"]["end"])

    def __call__(self, *words: str) -> Any:
        """Run `berth extend NAME WORDS`."""
        return self.berth("extend", self.name, *words)

    def billed(self) -> list[str]:
        """What the yard billed the account for extensions."""
        return [
            entry["amount"]
            for entry in self.yard.ledger
            if entry["account_id"] == self.id and entry["kind"] == "capacity-block-extension"
        ]

    def calls(self) -> int:
        """How often the account bought an extension, or tried to."""
        return sum(call["account_id"] == self.id for call in self.yard.log_of(BUY))


@pytest.fixture
def longer(house: Any, at_yard: Callable[..., Any], request: pytest.FixtureRequest) -> Iterator[Longer]:
    """An account of its own at the shared yard."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:30].strip("-")
    house.account(name)
    yield Longer(at_yard(house, name), name)
    house.clear_faults()


@pytest.fixture
def alone(yard: Any, at_yard: Callable[..., Any]) -> Longer:
    """The same at a yard of its own: for who moves the clock by days, and with it what others can buy."""
    yard.account("alone")
    return Longer(at_yard(yard, "alone"), "alone")


def minute(at: Any) -> str:
    """As `berth extend` writes it."""
    return f"{at:%Y-%m-%dT%H:%MZ}"


def test_a_block_is_extended_once_and_every_verb_knows(longer: Longer) -> None:
    """Bought, known, paid; show, ls, clean and the audit follow the new end and the fee."""
    first = longer("--by", "7d", *PAID)
    assert first.code == 0, first.err
    until = longer.end + WEEK
    assert f"extended until {minute(until)}" in first.out
    again = longer("--by", "7d", *PAID)
    assert f"already extended until {minute(until)}" in again.out
    assert "nothing was spent now" in again.out
    longer.yard.clock.advance(minutes=6)
    assert longer.billed() == ["8023.18"]
    shown = longer.berth("show", longer.name, "--json").json
    assert parse_instant(shown["seen"]["end"]) == until
    assert [one["payment"] for one in shown["extensions"]] == ["payment-succeeded"]
    assert shown["report"]["paid"] == {"amount": "9169.35", "currency": "USD"}
    listed = longer.berth("show").out
    assert "9,169.35" in listed
    assert "9,169.35 USD" in longer.berth("ls", "--orders").out
    assert f"{until:%m-%d %H:%M}Z" in listed
    assert f"{until:%Y-%m-%d %H:%M}" in longer.berth("ls", "--region", "us-east-1").out
    cleaned = longer.berth("clean", longer.name)
    assert cleaned.code == 31
    assert "9,169.35 USD of the fee unused" in cleaned.err.replace("\n  ", " ")
    amounts = {one["kind"]: one["amount"] for one in longer.berth("audit", "--json").json["events"]}
    assert amounts["extension bought"] == {"amount": "8023.18", "currency": "USD"}


def test_the_rule_of_a_timer(longer: Longer) -> None:
    """Field fault 5 over the wire: ten runs a minute apart, the store taking nothing after the call: one
    purchase; then "already extended until" nine times."""
    rule = ("--rule", "extend 7d, look ahead 2d", *PAID)
    journal = next(Path(longer.berth.environment()["BERTH_HOME"]).rglob("journal.sqlite"))
    with closing(sqlite3.connect(journal)) as db:
        # The intent is written and the answer is not: from then on the store refuses every write.
        db.executescript(
            "CREATE TRIGGER full BEFORE INSERT ON events WHEN EXISTS (SELECT 1 FROM extensions)"
            " AND NEW.kind != 'extension intended'"
            " BEGIN SELECT RAISE(ABORT, 'attempt to write a readonly database'); END;"
        )
    ended = [longer(*rule)]
    for _ in range(9):
        longer.yard.clock.advance(minutes=1)
        ended.append(longer(*rule))
    assert [one.code for one in ended] == [0] * 10, ended[0].err
    until = minute(longer.end + WEEK)
    assert f"order    {longer.name}: extended until {until}" in ended[0].out
    assert all(f"already extended until {until}" in one.out for one in ended[1:])
    assert "cannot be written" in ended[1].err
    assert longer.calls() == 1
    longer.yard.clock.advance(minutes=6)
    assert len(longer.billed()) == 1


def test_the_extension_loop_of_the_field(house: Any, at_yard: Callable[..., Any], tmp_path: Path) -> None:
    """Field fault 5 to the letter: a block that ends 2027-03-04T11:30Z, taken over, and its rule: 1 purchase,
    then 9 times "already extended until 2027-03-11T11:30Z"."""
    house.account("loop")
    berth = at_yard(house, "loop")
    house.clock.set(max(house.clock.now, parse_instant("2027-03-03T00:00Z")))
    account = house.clients_of("loop").sts.get_caller_identity()["Account"]
    block = house.seed.block(
        account=account, state="active", start="2027-02-28T11:30Z", duration="96h", fee="5000.00"
    )["capacity_reservation_id"]
    adopted = berth("adopt", block, "--as", "loop", "--region", "us-east-1", "--paid", "5000.00")
    assert adopted.code == 0, adopted.err
    ended = []
    for _ in range(10):
        ended.append(berth("extend", "loop", "--rule", "extend 7 d, look ahead 2 d", *PAID))
        journal = next((tmp_path / "home").rglob("journal.sqlite"))
        with closing(sqlite3.connect(journal)) as db:
            db.execute(
                "CREATE TRIGGER IF NOT EXISTS full BEFORE INSERT ON events"
                " BEGIN SELECT RAISE(ABORT, 'attempt to write a readonly database'); END"
            )
            db.execute("UPDATE extensions SET state = 'buying', payment = ''")
            db.commit()
        house.clock.advance(minutes=1)
    assert [one.code for one in ended] == [0] * 10, [one.err for one in ended]
    assert "order    loop: extended until 2027-03-11T11:30Z" in ended[0].out
    assert all("already extended until 2027-03-11T11:30Z" in one.out for one in ended[1:])
    assert sum(call["account_id"] == account for call in house.log_of(BUY)) == 1


def test_before_the_look_ahead_nothing_happens(longer: Longer) -> None:
    """Fit for a timer: exit 0, nothing asked of the paid call, and it says when it looks again."""
    far = longer("--by", "7d", "--within", "1h", *PAID)
    assert (far.code, longer.calls()) == (0, 0)
    assert f"ends at {minute(longer.end)}" in far.out
    assert f"looked at again from {minute(longer.end - timedelta(hours=1))} on" in far.out


def test_an_answer_that_is_lost_is_found_in_the_history(longer: Longer) -> None:
    """Cut, answered with 500, answered with half a body: sent once; the history tells; again buys nothing."""
    for days, fault in enumerate(("lost-reply", "error-after-commit", "malformed-body"), start=1):
        longer.yard.fault(fault, BUY, times=1)
        until = ("--until", minute(longer.end + timedelta(days=days)), *PAID)
        first = longer(*until)
        assert first.code == 0, first.err
        assert "without a certain answer" in first.err
        assert "nothing was spent now" not in first.out
        assert "already extended" in longer(*until).out
        longer.yard.clock.advance(minutes=6)
        assert (longer.calls(), len(longer.billed())) == (days, days)


def test_an_answer_that_shows_late_is_waited_for(longer: Longer) -> None:
    """AWS shows writes five minutes late: not known, exit 40; nothing bought beside it; then found."""
    longer.yard.clock.advance(minutes=6)
    longer.yard.fault("lag", amount="5")
    longer.yard.fault("lost-reply", BUY, times=1)
    first = longer("--by", "7d", *PAID)
    assert first.code == 40
    assert first.money.startswith("not known whether 8,023.18 USD was paid")
    assert longer.berth("show", longer.name).code == 40
    longer.yard.clock.advance(minutes=5)
    second = longer("--by", "7d", *PAID)
    assert second.code == 0, second.err
    assert f"already extended until {minute(longer.end + WEEK)}" in second.out
    assert longer.calls() == 1


def test_waiting_ends_when_the_time_that_it_would_add_has_begun(alone: Longer) -> None:
    """Bought, and the history keeps silent: no look tells any more, so `--wait` ends; found once it shows."""
    alone.yard.fault("lag", "DescribeCapacityBlockExtensionHistory", times=None, amount="20000")
    alone.yard.fault("lost-reply", BUY, times=1)
    assert alone("--by", "7d", *PAID).code == 40
    alone.yard.clock.set(alone.end + timedelta(minutes=1))
    waited = alone.berth("show", alone.name, "--wait")
    assert waited.code == 40, waited.err
    assert "looking for longer tells nothing" in " ".join(waited.err.split())
    assert waited.money.startswith("not known whether 8,023.18 USD was paid")
    alone.yard.clear_faults()
    shown = alone.berth("show", alone.name, "--wait")
    assert shown.code == 0, shown.err
    assert alone.billed() == ["8023.18"]


def test_a_price_that_moves_between_question_and_call(
    longer: Longer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field fault 7: nothing is bought; the old and the new fee are told."""
    from berth.cli.output import Output

    def answer(_: Output, question: str) -> bool:
        assert "8,023.18 USD" in question
        longer.yard.fault("price-change", "DescribeCapacityBlockExtensionOfferings", amount="1.000002")
        return True

    monkeypatch.setattr(Output, "can_ask", lambda _: True)
    monkeypatch.setattr(Output, "ask", answer)
    ended = longer("--by", "7d", "--max", "9000")
    assert ended.code == 15
    assert "price moved 8023.18 → 8023.19" in ended.err
    assert ended.money == "nothing was spent"
    assert (longer.calls(), longer.billed()) == (0, [])


def test_a_payment_that_fails_ends_the_block_in_time(longer: Longer) -> None:
    """`--wait` says so; the end is the old one; the next run buys anew."""
    longer.yard.fault("payment-failure", BUY, times=1)
    with moved_after_the_call(longer):
        ended = longer("--by", "7d", *PAID, "--wait")
    assert ended.code == 15
    assert f"failed: the reservation ends at {minute(longer.end)}" in ended.err
    assert ended.money == "nothing was spent"
    shown = longer.berth("show", longer.name)
    assert "payment-failed, nothing was paid for it" in shown.out
    with moved_after_the_call(longer):
        again = longer("--by", "7d", *PAID, "--wait")
    assert again.code == 0, again.err
    assert "payment-succeeded" in again.out
    assert len(longer.billed()) == 1


@contextmanager
def moved_after_the_call(longer: Longer) -> Iterator[None]:
    """The yard's clock moves on by six minutes once one more extension was bought."""
    before = longer.calls()

    def move() -> None:
        while longer.calls() == before:
            time.sleep(0.05)
        longer.yard.clock.advance(minutes=6)

    mover = threading.Thread(target=move)
    mover.start()
    yield
    mover.join()


def test_killed_at_the_call_and_run_again(longer: Longer) -> None:
    """The process dies while the yard has committed and not answered: the next one finds it."""
    longer.yard.fault("stall", BUY, times=1, amount="60")
    process = subprocess.Popen(
        [sys.executable, "-m", "berth", "extend", longer.name, "--by", "7d", *PAID],
        env=longer.berth.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not longer.calls():
        assert process.poll() is None
    process.kill()
    process.wait()
    again = longer("--by", "7d", *PAID)
    assert again.code == 0, again.err
    assert f"already extended until {minute(longer.end + WEEK)}" in again.out
    assert longer.calls() == 1
    (left,) = longer.berth("leave", "--json", "--region", "us-east-1").json["paid"]
    assert f"extended until {longer.end + WEEK:%Y-%m-%dT%H:%M:%SZ} for 8,023.18 USD" in left["extension"]


def test_a_training_plan_is_extended_and_its_endpoint_runs_on(longer: Longer) -> None:
    """By name and history; the report and the way to clean follow the new end."""
    berth = longer.berth
    berth.plan("served")
    assert berth.buy("served").code == 0
    berth.open_window("served")
    end = parse_instant(berth("show", "served", "--json").json["seen"]["end"])
    done = berth("extend", "served", "--by", "2d", "--yes", "--max", "600", "--json")
    assert done.code == 0, done.err
    assert (done.json["how"], parse_instant(done.json["until"])) == ("bought", end + timedelta(days=2))
    longer.yard.clock.advance(minutes=6)
    shown = berth("show", "served")
    assert f"to {end + timedelta(days=2):%Y-%m-%dT%H:%M:%SZ}" in shown.out
    assert berth("extend", "served", "--by", "2d", "--yes", "--max", "600").out.count("already extended") == 1


def test_an_extension_waits_for_an_approval_of_its_own(
    longer: Longer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Rules of spending hold for it too: one alarm, nothing bought, and how to go on."""
    rules = tmp_path / "rules.toml"
    approver = f"arn:aws:iam::{longer.id}:user/boss"
    rules.write_text(f'[approval]\nabove = ["2000 USD"]\napprovers = ["{approver}"]\n')
    monkeypatch.setenv("BERTH_RULES", str(rules))
    first, second = longer("--by", "7d", *PAID), longer("--by", "7d", *PAID)
    assert (first.code, second.code) == (15, 15)
    assert (first.err + second.err).count("ALARM") == 1
    assert "the same command with --proof proof.json" in first.err
    assert first.money == "nothing was spent"
    assert longer.calls() == 0
    left = longer.berth("leave", "--region", "us-east-1")
    assert left.code == 32, "the extension that is asked for can still be made"
    assert "1 armed" in left.out
    assert longer("--by", "1d", *PAID).code == 0  # below the threshold


def test_what_is_refused_spends_nothing(longer: Longer) -> None:
    """Each ends with what to do and that nothing was spent."""
    for words, code, says in (
        (("--by", "7d", "--yes", "--max", "8000"), 15, "--max allows 8,000.00 USD"),
        (("--by", "15d", *PAID), 20, "--by 14d or 21d"),
        (("--by", "7d"), 15, "--yes --max"),
        (PAID, 2, "exactly one of --by, --until and --rule"),
        (("--until", "2027-01-01", *PAID), 2, "names no time zone"),
    ):
        ended = longer(*words)
        assert ended.code == code, words
        assert says in ended.err
        assert ended.money == "nothing was spent"
    assert longer.calls() == 0


def test_what_extensions_cost_comes_back_with_a_lost_journal(
    longer: Longer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A block and a plan, extended and paid: rebuilt, they have their ends and fees again, once."""
    berth = longer.berth
    assert longer("--by", "7d", *PAID).code == 0
    berth.plan("again")
    assert berth.buy("again").code == 0
    longer.yard.clock.advance(minutes=6)
    assert berth("extend", "again", "--by", "2d", "--yes", "--max", "600").code == 0
    longer.yard.clock.advance(minutes=6)
    names = (longer.name, "again")
    before = [berth("show", name, "--json").json for name in names]
    sales = len(longer.yard.ledger)
    monkeypatch.setenv("BERTH_HOME", str(tmp_path / "new"))
    rebuilt = berth("rebuild", "--region", "us-east-1")
    assert rebuilt.code == 0, rebuilt.err
    assert f"extended until {longer.end + WEEK:%Y-%m-%dT%H:%M:%SZ} for 8,023.18 USD" in rebuilt.out
    assert max(map(len, rebuilt.out.splitlines())) <= 80
    for name, was in zip(names, before, strict=True):
        now = berth("show", name, "--json").json
        for member in ("money", "reservation_arn", "seen"):
            assert now[member] == was[member]
        assert now["offer"]["fee"] == was["offer"]["fee"]
        assert [part["end"] for part in now["offer"]["segments"]] == [
            part["end"] for part in was["offer"]["segments"]
        ]
        assert [(one["until"], one["fee"]) for one in now["extensions"]] == [
            (one["until"], one["fee"]) for one in was["extensions"]
        ]
    again = berth("rebuild", "--region", "us-east-1", "--json").json
    assert all(not one["extended"] for one in again["found"])
    assert len(longer.yard.ledger) == sales
