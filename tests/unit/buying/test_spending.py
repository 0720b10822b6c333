"""The rules of spending, as pure rules: what they count, what they never compare, what they let pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.orders.spending import (
    EACH,
    Allow,
    ApprovalRule,
    Booked,
    Cap,
    Per,
    Rules,
    Spend,
    TagRule,
    approval_needed,
    complaints,
    looks_back_to,
    month_start,
)
from berth.terms.money import Money

NOW = datetime(2027, 3, 15, 12, 0, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def usd(amount: int | str) -> Money:
    """US dollars."""
    return Money(Decimal(amount))


def spend(amount: Money | None = usd(100), team: str | None = "red", order: str = "1/a/1") -> Spend:
    """A purchase that no allow-list minds."""
    tags = {"team": team} if team else {}
    return Spend(
        order, "111122223333", "us-east-1", ("use1-az4",), "p5.48xlarge", "capacity-block", amount, tags
    )


def booked(
    amount: int | str, ago: timedelta = timedelta(), team: str | None = "red", order: str = "1/b/1"
) -> Booked:
    """What was spent before."""
    return Booked(NOW - ago, usd(amount), order, team)


def capped(per: Per, most: int | str, team: str | None = None) -> Rules:
    """One cap, months by Berlin."""
    return Rules("rules.toml", BERLIN, (Cap(per, usd(most), team, 3),))


def test_a_cap_allows_up_to_itself() -> None:
    """Spent and asked together may reach the cap, and not a cent more; the message says where it stands."""
    rules = capped(Per.HOUR, 300)
    assert complaints(rules, spend(), [booked(200)], NOW) == ()
    (said,) = complaints(rules, spend(), [booked("200.01")], NOW)
    assert said == (
        "100.00 USD would go over the cap per hour of 300.00 USD, of which 200.01 USD is spent or may be;"
        " left: 99.99 USD (rules.toml:3)"
    )


def test_an_hour_is_the_last_sixty_minutes() -> None:
    """What is 60 minutes old has left the window; a second less is in it; another machine's future counts."""
    rules = capped(Per.HOUR, 100)
    assert complaints(rules, spend(), [booked(1, timedelta(minutes=60))], NOW) == ()
    assert complaints(rules, spend(), [booked(1, timedelta(minutes=59, seconds=59))], NOW)
    assert complaints(rules, spend(), [booked(1, -timedelta(minutes=5))], NOW)


def test_a_fortnight_is_the_last_fourteen_days() -> None:
    """What was bought 14 days ago has left the window; a minute less is in it."""
    rules = capped(Per.FORTNIGHT, 100)
    assert complaints(rules, spend(), [booked(1, timedelta(days=14))], NOW) == ()
    (said,) = complaints(rules, spend(), [booked(1, timedelta(days=13, hours=23, minutes=59))], NOW)
    assert "the cap per fortnight of 100.00 USD" in said


@pytest.mark.parametrize(
    ("now", "start"),
    [
        ("2027-03-31T21:59:59Z", "2027-02-28T23:00:00Z"),  # still March in Berlin
        ("2027-03-31T22:00:00Z", "2027-03-31T22:00:00Z"),  # April begins at 22:00Z, in summer time
        ("2026-12-31T22:59:59Z", "2026-11-30T23:00:00Z"),
        ("2026-12-31T23:00:00Z", "2026-12-31T23:00:00Z"),  # the year turns
        ("2028-02-29T12:00:00Z", "2028-01-31T23:00:00Z"),  # leap day
    ],
)
def test_a_month_is_a_calendar_month_of_the_rules_zone(now: str, start: str) -> None:
    """Clock changes, leap day and year's end move no month's first instant."""
    assert month_start(datetime.fromisoformat(now), BERLIN) == datetime.fromisoformat(start)


def test_a_month_that_begins_in_a_gap_begins_after_it() -> None:
    """Where midnight of the first does not exist (Paraguay, October 2023), the month begins when it ends."""
    zone = ZoneInfo("America/Asuncion")
    assert month_start(datetime(2023, 10, 20, tzinfo=UTC), zone) == datetime(2023, 10, 1, 4, 0, tzinfo=UTC)


def test_months_count_by_the_zone() -> None:
    """A purchase of 28 February 23:30Z is March's in Berlin and February's in UTC."""
    before = [Booked(datetime(2027, 2, 28, 23, 30, tzinfo=UTC), usd(1), "1/b/1", "red")]
    berlin = capped(Per.MONTH, 100)
    assert complaints(berlin, spend(), before, NOW)
    assert complaints(Rules("r", UTC, berlin.caps), spend(), before, NOW) == ()


def test_an_order_counts_with_what_it_had_before() -> None:
    """The cap per order holds for the order with its extensions, whenever they were bought."""
    rules = capped(Per.ORDER, 150)
    old = timedelta(days=100)
    assert complaints(rules, spend(), [booked(60, old, order="1/a/1")], NOW)
    assert complaints(rules, spend(), [booked(60, old, order="1/a/2")], NOW) == ()


def test_a_teams_cap_is_its_own() -> None:
    """A cap of one team does not count the others, and a cap of each counts each by itself."""
    rules = capped(Per.TOTAL, 150, "red")
    assert complaints(rules, spend(), [booked(60)], NOW)
    assert complaints(rules, spend(), [booked(60, team="blue")], NOW) == ()
    assert complaints(rules, spend(team="blue"), [booked(60, team="blue")], NOW) == ()
    each = capped(Per.TOTAL, 150, EACH)
    assert complaints(each, spend(team="blue"), [booked(60, team="blue")], NOW)
    assert complaints(each, spend(team="blue"), [booked(60)], NOW) == ()


def test_leaving_the_team_out_dodges_no_cap() -> None:
    """Where caps name teams, a purchase without one is stopped."""
    assert (
        "the tag team is missing" in complaints(capped(Per.MONTH, 999, "red"), spend(team=None), [], NOW)[0]
    )


def test_currencies_are_never_compared() -> None:
    """Euros neither count against dollars nor pass a cap in dollars."""
    rules = capped(Per.HOUR, 150)
    euros = [Booked(NOW, Money(Decimal(9999), "EUR"), "1/b/1", "red")]
    assert complaints(rules, spend(), euros, NOW) == ()
    (said,) = complaints(rules, spend(Money(Decimal(1), "EUR")), [], NOW)
    assert "1.00 EUR cannot be compared with the cap per hour of 150.00 USD" in said


def test_one_cap_in_each_currency() -> None:
    """Two caps of one period, in two currencies, each bound their own."""
    both = (Cap(Per.HOUR, usd(100)), Cap(Per.HOUR, Money(Decimal(100), "EUR")))
    rules = Rules("r", UTC, both)
    assert complaints(rules, spend(), [Booked(NOW, Money(Decimal(99), "EUR"), "1/b/1", None)], NOW) == ()
    assert complaints(rules, spend(Money(Decimal(101), "EUR")), [], NOW)


def test_an_unknown_zone_is_on_no_list() -> None:
    """A zone whose id is not known is not allowed where ids are listed."""
    rules = Rules("r", allow=Allow(zone_ids=("use1-az4",)))
    assert complaints(rules, spend(), [], NOW) == ()
    named = Spend("o", "1", "us-east-1", ("us-east-1a",), "p5.48xlarge", "capacity-block", None)
    nowhere = Spend("o", "1", "us-east-1", (), "p5.48xlarge", "capacity-block", None)
    assert "us-east-1a is not allowed" in complaints(rules, named, [], NOW)[0]
    assert "unknown is not allowed" in complaints(rules, nowhere, [], NOW)[0]


@pytest.mark.parametrize(
    ("allowed", "passes"), [("p5.48xlarge", True), ("p5.*", True), ("p5", False), ("*", True)]
)
def test_types_may_end_in_a_star(allowed: str, passes: bool) -> None:
    """Nothing else is a wildcard."""
    rules = Rules("r", allow=Allow(types=(allowed,)))
    assert (complaints(rules, spend(), [], NOW) == ()) is passes


def test_tags_are_required_as_said() -> None:
    """Missing, not among the values, not matching the whole pattern."""
    rule = TagRule("cost-centre", ("4711",), "[0-9]{4}")
    assert rule.complaint({}) == "the tag cost-centre is missing"
    assert rule.complaint({"cost-centre": ""}) == "the tag cost-centre is missing"
    assert "allowed: 4711" in (rule.complaint({"cost-centre": "4712"}) or "")
    assert TagRule("x", pattern="[0-9]{4}").complaint({"x": "47111"}) is not None
    assert rule.complaint({"cost-centre": "4711"}) is None


def test_what_runs_in_what_is_paid_breaks_no_cap() -> None:
    """Without an amount only lists and tags hold."""
    assert complaints(capped(Per.ORDER, 1), spend(None), [], NOW) == ()


@pytest.mark.parametrize(
    ("above", "amount", "needs"),
    [
        ((), usd(1), True),
        ((usd(100),), usd(100), False),
        ((usd(100),), usd("100.01"), True),
        ((usd(100),), Money(Decimal(1), "EUR"), True),
        ((usd(100),), None, False),
    ],
)
def test_when_an_approval_is_needed(above: tuple[Money, ...], amount: Money | None, needs: bool) -> None:
    """Above the threshold, in a currency without one, or always where none is set."""
    assert (approval_needed(ApprovalRule(above, ("x",)), amount) is not None) is needs
    assert approval_needed(None, amount) is None


@settings(deadline=None, max_examples=200)
@given(
    before=st.lists(
        st.tuples(
            st.integers(1, 500),
            st.integers(-10, 50_000),
            st.sampled_from(["red", "blue", None]),
        ),
        max_size=8,
    ),
    amount=st.integers(1, 500),
    most=st.integers(1, 2000),
    per=st.sampled_from(list(Per)),
    team=st.sampled_from([None, EACH, "red"]),
)
def test_what_passes_never_goes_over(
    before: list[tuple[int, int, str | None]], amount: int, most: int, per: Per, team: str | None
) -> None:
    """A model that adds plainly agrees, and nothing older than `looks_back_to` matters."""
    rules = capped(per, most, team)
    spent = [booked(cents, timedelta(minutes=ago), whose, "1/a/1") for cents, ago, whose in before]
    spans = {Per.HOUR: NOW - timedelta(hours=1), Per.FORTNIGHT: NOW - timedelta(days=14)}
    since = {**spans, Per.MONTH: month_start(NOW, BERLIN)}.get(per)
    counts = [
        one.amount.amount
        for one in spent
        if (team is None or one.team == "red")
        and (since is None or one.at > since or (per is Per.MONTH and one.at == since))
    ]
    passes = complaints(rules, spend(usd(amount)), spent, NOW) == ()
    assert passes is (sum(counts) + amount <= most)
    back = looks_back_to(rules, NOW)
    if back is not None and per is not Per.ORDER:
        kept = [one for one in spent if one.at >= back]
        assert (complaints(rules, spend(usd(amount)), kept, NOW) == ()) is passes
