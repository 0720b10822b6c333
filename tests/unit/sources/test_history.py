"""The local history: counts by hour, own realm, bounded, no slower as it grows, and what is in its way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from berth.planner.cost import HourlyRate
from berth.planner.offers import PlaceAnswer, PlaceOutcome, Query
from berth.sources.capacity_blocks import read_offer
from berth.sources.history import History, open_history
from berth.sources.keeping import Kept
from berth.sources.quiet_hours import history_text, hours_of_day, quieter
from berth.terms.money import Money
from berth.terms.ways import Way

from .conftest import NOW, FakeClock
from .test_capacity_blocks import offering, query


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """An empty one."""
    made = open_history(tmp_path / "h.sqlite", "aws", "111122223333")
    yield made
    made.close()


def answer(
    at: datetime, fee: str | None = None, asked: Query | None = None, **changes: object
) -> PlaceAnswer:
    """One Region's answer: an offer at `fee`, or none on sale."""
    asked = asked or query()
    offers = (read_offer(offering(UpfrontFee=fee), asked, {}, at),) if fee else ()
    outcome = changes.get("outcome") or (PlaceOutcome.OFFERS if offers else PlaceOutcome.NONE_ON_SALE)
    assert isinstance(outcome, PlaceOutcome)
    return PlaceAnswer(asked.way, asked.region, outcome, at, "", offers, asked)


def test_asks_of_an_hour_add_up(history: History) -> None:
    """Two asks within an hour are one row with the lower price; what was refused says nothing about stock."""
    refused = answer(NOW, outcome=PlaceOutcome.THROTTLED)
    history.add([answer(NOW, "1200.00"), answer(NOW + timedelta(minutes=9), "1146.24")], at=NOW, wall=NOW)
    history.add([answer(NOW), refused], at=NOW, wall=NOW)
    (seen,) = history.by_hour("p5.48xlarge")
    assert (seen.hour, seen.asks, seen.with_offers, seen.refused, seen.answered) == (9, 4, 2, 1, 3)
    assert seen.cheapest == Money(Decimal("47.76"))
    assert (seen.first_at, seen.last_at) == (NOW, NOW + timedelta(minutes=9))
    (row,) = history._db.execute("SELECT asks, with_offers, refused, cheapest, outcome FROM seen").fetchall()
    assert tuple(row) == (4, 2, 1, 47_760_000, "throttled")


def test_worlds_and_accounts_are_apart(tmp_path: Path) -> None:
    """What a yard showed is nothing of AWS's, and one account's asks are not another's."""
    file = tmp_path / "h.sqlite"
    for realm, account in (("aws", "1"), ("127.0.0.1:4599", "1"), ("aws", "2")):
        made = open_history(file, realm, account)
        made.add([answer(NOW, "1146.17")], sent={"us-east-1": 3}, at=NOW, wall=NOW)
        made.close()
    made = open_history(file, "aws", "1")
    assert len(made.by_hour("p5.48xlarge")) == 1
    assert {seen.account for seen in made.by_hour("p5.48xlarge", every_account=True)} == {"1", "2"}
    assert len(made.sent_ago("us-east-1", NOW)) == 3
    made.close()


def test_searches_sent_are_remembered_for_the_bucket_alone(history: History) -> None:
    """Ten searches half a minute ago count, two minutes later they do not; a clock put back counts them."""
    history.add([], sent={"us-east-1": 10, "us-west-2": 0}, at=NOW, wall=NOW)
    assert history.sent_ago("us-east-1", NOW + timedelta(seconds=30)) == (30.0,) * 10
    assert history.sent_ago("us-east-1", NOW - timedelta(seconds=30)) == (0.0,) * 10
    assert history.sent_ago("us-west-2", NOW) == ()
    assert history.sent_ago("us-east-1", NOW + timedelta(seconds=121)) == ()


def test_only_live_prices_are_kept(history: History, tmp_path: Path) -> None:
    """A list price from a table says nothing about today."""
    live = HourlyRate(
        Way.SPOT, "us-east-1", "spot", Money(Decimal("15.5")), live=True, zone_id="use1-az1",
        instance_type="p5.48xlarge",
    )  # fmt: skip
    listed = HourlyRate(
        Way.ON_DEMAND, "us-east-1", "on-demand", Money(Decimal(55)), instance_type="p5.48xlarge"
    )
    history.add([], [live, listed], at=NOW, wall=NOW)
    rows = history._db.execute("SELECT way, place, price FROM rates").fetchall()
    assert [tuple(row) for row in rows] == [("spot", "use1-az1", 15_500_000)]


def test_it_is_bounded_and_the_oldest_hours_leave_first(tmp_path: Path) -> None:
    """500 hours into a history of 100 rows: the newest stay, and the table by hour of day has 24 rows."""
    made = open_history(tmp_path / "h.sqlite", "aws", "1", most_rows=100)
    for hour in range(500):
        made._until_forgetting = 0
        made.add([answer(NOW + timedelta(hours=hour))], at=NOW, wall=NOW)
    rows, oldest = made._db.execute("SELECT count(*), min(at_hour) FROM seen").fetchone()
    assert 85 <= rows <= 101
    assert oldest >= (NOW + timedelta(hours=395)).timestamp() * 1e6
    assert len(made.by_hour("p5.48xlarge")) == 24
    assert sum(seen.asks for seen in made.by_hour("p5.48xlarge")) == 500
    made.close()


def test_what_is_read_is_found_by_an_index(history: History) -> None:
    """No read walks a table: it costs the same however much is kept."""
    reads = (
        "SELECT * FROM by_hour WHERE realm = 'a' AND instance_type = 'b' AND (1 OR account = 'c')",
        "SELECT at, calls FROM sent WHERE realm = 'a' AND account = 'b' AND region = 'c' AND at > 1",
        "SELECT found_at FROM waits WHERE realm = 'a' AND account = 'b' AND wait = 'c'",
        "SELECT at_hour FROM seen ORDER BY at_hour LIMIT 1 OFFSET 5",
    )
    for read in reads:
        (plan, *more) = history._db.execute(f"EXPLAIN QUERY PLAN {read}").fetchall()
        assert not more
        assert plan["detail"].startswith("SEARCH") or "USING COVERING INDEX" in plan["detail"], plan["detail"]


def test_a_history_that_cannot_be_used_stops_no_plan(tmp_path: Path) -> None:
    """It is told once, and then nothing is kept."""
    file = tmp_path / "h.sqlite"
    file.write_text("this is no database, and long enough to be looked at as one " * 20)
    told: list[str] = []
    kept = Kept(file, "aws", "1", clock=FakeClock(), warn=told.append)
    kept.keep(answer(NOW), {})
    kept.end({"us-east-1": 1}, (), NOW)
    assert kept.sent_ago("us-east-1") == ()
    assert kept.by_hour("p5.48xlarge") == ()
    assert kept.history is None
    assert len(told) == 1
    assert "what was seen is not kept" in told[0]


def test_answers_reach_the_disk_while_a_long_sweep_runs(tmp_path: Path) -> None:
    """Whatever ends the program loses a few seconds' worth; searches sent are counted once."""
    clock, file = FakeClock(), tmp_path / "h.sqlite"
    kept = Kept(file, "aws", "1", clock=clock, warn=lambda text: None)
    kept.keep(answer(NOW), {"us-east-1": 1})
    clock.sleep(6)
    kept.keep(answer(NOW), {"us-east-1": 2})
    other = open_history(file, "aws", "1")
    assert [seen.asks for seen in other.by_hour("p5.48xlarge")] == [2]
    kept.end({"us-east-1": 5}, (), NOW)
    assert len(other.sent_ago("us-east-1", clock.now())) == 5
    other.close()
    kept.close()


def test_a_wait_is_written_down_before_and_after_it_is_told(history: History) -> None:
    """What was found first stays; a channel's state is what was written last."""
    assert history.found("w") is None
    history.keep_found("w", NOW, "first")
    history.keep_found("w", NOW + timedelta(hours=1), "second")
    assert history.found("w") == (NOW, "first")
    assert history.telling("w", "c") is None
    for state in ("telling", "told"):
        history.keep_telling("w", "c", state)
        assert history.telling("w", "c") == state


# -- quieter hours -------------------------------------------------------------------------------------------
def asked_at(history: History, hour: int, asks: int, with_offers: int, region: str = "us-east-1") -> None:
    """So many asks at an hour of the day, some of which saw offers."""
    at = NOW.replace(hour=hour)
    asked = query(region=region)
    answers = [answer(at, "1146.24" if n < with_offers else None, asked) for n in range(asks)]
    history.add(answers, at=at, wall=at)


def test_quieter_hours_are_unknown_until_enough_was_asked(history: History) -> None:
    """Three asks are no pattern, and nobody else's figures fill the gap."""
    asked_at(history, 3, 4, 4)
    asked_at(history, 9, 5, 0)
    assert quieter(history.by_hour("p5.48xlarge")).startswith("quieter hours: unknown.")
    assert "answered so far: 9" in quieter(history.by_hour("p5.48xlarge"))


def test_quieter_hours_come_from_counts_of_one_place(history: History) -> None:
    """Hours of one Region are compared; another that was asked at night alone does not make nights quiet."""
    for hour, seen in ((3, 6), (9, 1), (15, 2)):
        asked_at(history, hour, 6, seen)
    asked_at(history, 4, 50, 50, region="us-west-2")
    said = quieter(history.by_hour("p5.48xlarge"))
    assert said == "quieter hours (UTC), by your own asks and no forecast: us-east-1 03-04 (6 of 6 asks)"


def test_the_history_reads_in_80_columns(history: History) -> None:
    """Each place, then each hour; unknown prices are called unknown."""
    asked_at(history, 3, 2, 0)
    asked_at(history, 9, 2, 1, region="ap-southeast-2")
    seen = history.by_hour("p5.48xlarge")
    text = history_text("p5.48xlarge", "aws", seen)
    assert max(map(len, text.splitlines())) <= 80
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "capacity-block us-east-1 2 0 0 unknown" in rows
    assert "09-10 2 1 0 47.760 USD" in rows
    assert [hour.hour for hour in hours_of_day(seen)] == [3, 9]


def test_a_large_price_in_another_currency_stays_within_80_columns(history: History) -> None:
    """It takes the room of the column beside it."""
    asked_at(history, 9, 2, 1, region="ap-southeast-2")
    for digits in range(10):
        price = Money(Decimal("1.25") * 10**digits, "IDR")
        seen = [replace(one, cheapest=price) for one in history.by_hour("p5.48xlarge")]
        text = history_text("p5.48xlarge", "aws", seen)
        assert max(map(len, text.splitlines())) <= 80
        assert f" 0 {price.amount:,.3f} IDR" in " ".join(text.split())
