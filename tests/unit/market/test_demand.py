"""The outside account: seeded, with a rhythm, and never in the way of a rehearsal in Virginia."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache

import pytest

from berth.terms.ways import Target
from berth.terms.window import Window
from berth.yard.fleet.calendar import day_at, day_start
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import DemandLevel, DemandSettings, Fleet
from berth.yard.fleet.fleet_file import rehearsal_fleet
from berth.yard.fleet.pools import Pool, Shares
from berth.yard.market.admission import admit_outside
from berth.yard.market.demand import Arrival, arrivals, arrivals_between, backlog
from berth.yard.market.plan_offerings import PlanOffering, search_plan_offerings
from berth.yard.market.plan_query import PlanQuery
from berth.yard.market.plan_rules import COUNTS
from berth.yard.market.window_rules import PAID_BEFORE_START

FLEET = rehearsal_fleet()
NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def only(*keys: str) -> Fleet:
    """The rehearsal fleet with some of its pools."""
    return replace(FLEET, pools={key: FLEET.pools[key] for key in keys})


@cache
def autumn() -> list[Arrival]:
    """Every arrival of a few weeks."""
    return arrivals_between(FLEET, NOW - 28 * DAY, NOW)


def test_the_same_seed_brings_the_same_arrivals_in_any_pieces() -> None:
    """A span asked whole or in parts, or a day alone, gives the same."""
    middle = NOW - 9 * DAY - timedelta(hours=3, minutes=17)
    pieces = arrivals_between(FLEET, NOW - 28 * DAY, middle) + arrivals_between(FLEET, middle, NOW)
    assert pieces == autumn()
    assert FLEET.demand is not None
    pool = FLEET.pools["use1-az6/p5.48xlarge"]
    alone = [a for n in range(14, 20) for a in arrivals(FLEET.demand, pool, date(2026, 11, n))]
    span = (datetime(2026, 11, 14, 5, tzinfo=UTC), datetime(2026, 11, 20, 5, tzinfo=UTC))
    assert alone == [a for a in arrivals_between(FLEET, *span) if a.pool_key == pool.key]


def test_arrivals_never_change_from_version_to_version() -> None:
    """People rehearse against a seed, so what it brings is pinned."""
    settings = DemandSettings(7, (DemandLevel(None, None, Decimal(1), 0),))
    pool = Pool("lab-az1", "lab-1", "x.large", 40, Shares(40, 0, 0), {}, frozenset())
    found = [one for day in range(2, 6) for one in arrivals(settings, pool, date(2026, 11, day))]
    assert [(f"{one.at:%d %H:%M:%S}", f"{one.window.start:%m-%d %H:%M}", one.count) for one in found] == [
        ("02 21:21:30", "11-23 11:30", 1),
        ("03 23:05:57", "11-03 23:36", 1),
        ("05 20:45:37", "11-07 11:30", 4),
        ("05 22:57:02", "11-26 11:30", 1),
    ]


def test_another_seed_is_another_market() -> None:
    """The seed alone tells two markets apart."""
    assert FLEET.demand is not None
    other = type(FLEET.demand)(FLEET.demand.seed + 1, FLEET.demand.levels)
    pool = FLEET.pools["use1-az6/p5.48xlarge"]
    days = [date(2026, 11, n) for n in range(1, 30)]
    assert [arrivals(other, pool, d) for d in days] != [arrivals(FLEET.demand, pool, d) for d in days]


def test_every_arrival_is_something_that_could_be_bought() -> None:
    """Starts at 11:30 or at once, ends at 11:30, counts of AWS's list, paid before the start."""
    for one in autumn():
        assert one.count // FLEET.pools[one.pool_key].unit in COUNTS
        assert one.window.end == day_start(day_at(one.window.end))
        assert one.window.start - one.at >= 2 * PAID_BEFORE_START
        assert one.window.start - one.at <= 57 * DAY
        assert one.count <= FLEET.pools[one.pool_key].shares.reservable


def test_people_buy_on_weekdays_in_office_hours() -> None:
    """Nights and weekends (New York) are quiet, and some ask weeks ahead."""
    local = [one.at - timedelta(hours=5) for one in autumn()]
    weekdays = sum(1 for at in local if at.weekday() < 5) / 5
    weekends = sum(1 for at in local if at.weekday() >= 5) / 2
    assert weekdays > 2.5 * weekends
    by_hour = Counter(at.hour for at in local)
    assert sum(by_hour[h] for h in range(8, 18)) > 4 * sum(by_hour[h] for h in (22, 23, 0, 1, 2, 3, 4, 5))
    leads = sorted(one.window.start - one.at for one in autumn())
    assert leads[len(leads) // 10] < timedelta(hours=1)
    assert leads[-len(leads) // 10] > 13 * DAY


def test_without_demand_nobody_comes() -> None:
    """A fleet without the section has no outside account."""
    quiet = replace(FLEET, demand=None)
    assert arrivals_between(quiet, NOW - DAY, NOW) == []
    assert backlog(quiet, NOW) == []


def test_the_backlog_is_what_still_matters() -> None:
    """A yard that starts now admits the arrivals before now whose window is not over."""
    waiting = backlog(FLEET, NOW)
    assert waiting == sorted(waiting)
    assert all(one.at < NOW < one.window.end for one in waiting)
    recent = [one for one in autumn() if one.window.end > NOW]
    assert [one for one in waiting if one.at >= NOW - 28 * DAY] == recent
    longest = max(one.window.end - one.at for one in autumn())
    assert waiting[0].at > NOW - longest - 30 * DAY


class Market:
    """The outside account buying day by day in some pools, as the yard would let it."""

    def __init__(self, fleet: Fleet, start: datetime) -> None:
        self.fleet, self.now = fleet, start
        self.calendars = FleetCalendars(fleet, start)
        self._admit(backlog(fleet, start))

    def run_to(self, now: datetime) -> None:
        """Let everything arrive that arrives before `now`."""
        self._admit(arrivals_between(self.fleet, self.now, now))
        self.now = now
        self.calendars.roll_to(now)

    def offers(
        self, region: str, type_: str, count: int, target: Target = Target.ENDPOINT
    ) -> tuple[PlanOffering, ...]:
        """What can be had for 24 h from 11:30 of the next day."""
        starts = self.now.replace(hour=11, minute=30) + DAY
        return search_plan_offerings(
            PlanQuery(type_, count, 24, (target,), starts, starts + DAY),
            region=region,
            now=self.now,
            fleet=self.fleet,
            calendars=self.calendars,
        )

    def _admit(self, wishes: list[Arrival]) -> None:
        assert self.fleet.demand is not None
        for one in wishes:
            pool = self.fleet.pools[one.pool_key]
            level = self.fleet.demand.level_of(pool)
            assert level is not None
            if admit_outside(
                pool, one.window, one.count, keep_free=level.keep_free, calendars=self.calendars
            ):
                self.calendars.commit(pool.key, None, one.window, one.count)


def virginia(hardware: str) -> Fleet:
    """The rehearsal fleet with the pools of one type in us-east-1."""
    return only(
        *(
            key
            for key, pool in FLEET.pools.items()
            if pool.region == "us-east-1" and pool.hardware == hardware
        )
    )


@pytest.mark.parametrize("hardware", ["trn1.32xlarge", "p5.48xlarge"])
def test_virginia_has_a_day_to_sell_for_every_day_of_two_years(hardware: str) -> None:
    """At 09:00 UTC of the day before, one instance for 24 h from 11:30 can be had, whatever others bought."""
    first = datetime(2025, 12, 31, 9, 0, tzinfo=UTC)
    market = Market(virginia(hardware), first)
    for number in range(730):
        market.run_to(first + number * DAY)
        starts = market.now.replace(hour=11, minute=30) + DAY
        for target in (Target.ENDPOINT, Target.TRAINING_JOB):
            offers = market.offers("us-east-1", f"ml.{hardware}", 1, target)
            assert [offer.window for offer in offers] == [Window(starts, starts + DAY)], starts
    assert starts == datetime(2027, 12, 31, 11, 30, tzinfo=UTC)


def test_hosts_that_are_kept_free_stay_free_however_much_is_wanted() -> None:
    """What saves the last host is the fleet file's number and not a mild demand: at load 5 it decides."""
    fleet = only("use1-az6/trn1.32xlarge")
    assert fleet.demand is not None
    for keep_free, expected in ((1, 0), (0, 20)):
        settings = DemandSettings(fleet.demand.seed, (DemandLevel(None, None, Decimal(5), keep_free),))
        market = Market(replace(fleet, demand=settings), NOW)
        without = 0
        for _ in range(60):
            market.run_to(market.now + DAY)
            without += not market.offers("us-east-1", "ml.trn1.32xlarge", 1)
        assert without >= expected
        assert keep_free == 0 or without == 0


def test_offers_differ_by_day_and_place() -> None:
    """Of 16 p5 in Virginia some days have some, in one zone or another, and other days none."""
    market = Market(virginia("p5.48xlarge"), NOW)
    found = set()
    for _ in range(60):
        market.run_to(market.now + DAY)
        offers = market.offers("us-east-1", "ml.p5.48xlarge", 16)
        found.add(offers[0].zone_id if offers else "none")
    assert "none" in found
    assert len(found) >= 3


def test_elsewhere_days_are_sold_out() -> None:
    """Not every day can be had where nothing is kept free: p6-b200 in Stockholm has days without any."""
    pools = [
        k for k, p in FLEET.pools.items() if p.region == "eu-north-1" and p.hardware == "p6-b200.48xlarge"
    ]
    market = Market(only(*pools), NOW)
    sold_out = 0
    for _ in range(120):
        market.run_to(market.now + DAY)
        sold_out += not market.offers("eu-north-1", "ml.p6-b200.48xlarge", 1)
    assert 10 <= sold_out <= 110
