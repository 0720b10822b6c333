"""B1 in process: what a search for offerings and a commit cost, from 1,000 to 1,000,000 reservations.

    python benchmarks/bench_calendar.py            1, 20 and 200 pools, up to 1,000,000 reservations in all
    python benchmarks/bench_calendar.py --quick    up to 100,000

Reservations start uniformly over 182 days, last 1 to 28 days and take 1 to 8 hosts; a pool may sell a little
less than its busiest slot holds, so that some days are full. Queries ask 1, 4, 16 or 64 instances for 1, 7,
14 or 56 days, starting within a day or within eight weeks. Everything is drawn from a fixed seed.

A search of a pool looks at all 57 starts. Compared in the same run: a scan of all reservations with numpy, as
a store of intervals without a calendar has to do it. Times are processor time of the one thread, so that
other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np

from berth.terms.ways import Target
from berth.terms.window import Window
from berth.yard.fleet.calendar import PoolCalendar, day_at, slots_of
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet, FleetKind
from berth.yard.fleet.pools import Face, Pool, Shares
from berth.yard.fleet.zones import Region, Zone
from berth.yard.market.plan_offerings import search_plan_offerings
from berth.yard.market.plan_query import PlanQuery
from berth.yard.market.price_lists import PriceList, Rate
from harness import Verdicts, machine, table, versions

SEED = 20261130
NOW = datetime(2026, 12, 1, 19, 8, tzinfo=UTC)
DAY = timedelta(days=1)
TYPE = "p5.48xlarge"
REGION = "us-east-1"


def reservations(rng: random.Random, many: int) -> Iterator[tuple[Window, int]]:
    """Windows and counts as the docstring of this file tells."""
    for _ in range(many):
        start = NOW.replace(hour=11, minute=30) + rng.randrange(182) * DAY
        if rng.random() < 0.2:
            start += timedelta(minutes=rng.randrange(1440))
        yield Window(start, start + rng.randint(1, 28) * DAY), rng.choice((1, 1, 2, 4, 8))


def fleet_of(pools: int, hosts: int) -> Fleet:
    """A fleet of `pools` pools of one type in one Region."""
    zones = tuple(Zone(f"use1-az{n}", REGION) for n in range(pools))
    made = [
        Pool(zone.id, REGION, TYPE, hosts, Shares(hosts, 0, 0), {"sagemaker": Face(f"ml.{TYPE}")},
             frozenset({Target.ENDPOINT}))
        for zone in zones
    ]  # fmt: skip
    return Fleet(
        name="benchmark",
        kind=FleetKind.REHEARSAL,
        regions={REGION: Region(REGION, "aws", False, zones)},
        pools={pool.key: pool for pool in made},
        price_lists=(PriceList("all", NOW - 999 * DAY, (Rate(TYPE, Decimal("47.757"), assumed=True),)),),
    )


def queries(rng: random.Random, many: int) -> list[PlanQuery]:
    """Searches as the docstring of this file tells."""
    return [
        PlanQuery(
            f"ml.{TYPE}",
            rng.choice((1, 4, 16, 64)),
            rng.choice((1, 7, 14, 56)) * 24,
            (Target.ENDPOINT,),
            start_after=NOW if rng.random() < 0.5 else NOW + rng.randrange(1, 56) * DAY,
        )
        for _ in range(many)
    ]


def timed(work: Callable[[int], object], rounds: int) -> list[float]:
    """Microseconds of each of `rounds` calls, after a few that do not count."""
    for n in range(min(20, rounds)):
        work(n)
    found = []
    for n in range(rounds):
        start = time.thread_time_ns()
        work(n)
        found.append((time.thread_time_ns() - start) / 1000)
    return found


def shown(values: list[float]) -> tuple[str, str]:
    """Median and p99 in microseconds."""
    return f"{statistics.median(values):,.1f}", f"{sorted(values)[int(len(values) * 0.99)]:,.1f}"


def commit_and_release(calendar: PoolCalendar, window: Window) -> None:
    """Both sides of a promise, so that the calendar stays as it was."""
    calendar.commit(window, 2)
    calendar.release(window, 2)


class IntervalScan:
    """The same reservations as rows, searched by looking at all of them."""

    def __init__(self) -> None:
        self.first: list[int] = []
        self.last: list[int] = []
        self.count: list[int] = []

    def add(self, window: Window, count: int) -> None:
        """One more row."""
        first, last = slots_of(window)
        self.first.append(first)
        self.last.append(last)
        self.count.append(count)

    def freeze(self) -> Callable[[int], int]:
        """A check of one window of 7 days against all rows."""
        first, last, count = (np.array(values) for values in (self.first, self.last, self.count))
        base = slots_of(Window(NOW, NOW + DAY))[0]

        def check(n: int) -> int:
            low = base + (n % 56) * 48
            hit = (first < low + 7 * 48) & (last > low)
            edges = np.concatenate([np.maximum(first[hit], low), last[hit]])
            order = np.argsort(edges, kind="stable")
            return int(np.concatenate([count[hit], -count[hit]])[order].cumsum().max(initial=0))

        return check


def measure_pool(many: list[int]) -> tuple[list[list[str]], dict[int, float]]:
    """One pool, filled step by step: a check, a search of 57 starts, a commit with its release, the scan."""
    rng, calendar, scan = random.Random(SEED), PoolCalendar(NOW), IntervalScan()
    rows, medians, held = [], {}, 0
    first = day_at(NOW)
    for target in many:
        for window, count in reservations(rng, target - held):
            calendar.commit(window, count)
            scan.add(window, count)
        held = target
        asks = [window for window, _ in reservations(rng, 500)]
        searches = timed(lambda n: calendar.free_min_for_days(first, (1, 7, 14, 56)[n % 4], 10**6) >= 4, 4000)
        checks = timed(lambda n, asks=asks: calendar.fits(asks[n % 500], 4, 10**6), 4000)

        pairs = timed(lambda n, asks=asks: commit_and_release(calendar, asks[n % 500]), 4000)
        scans = timed(scan.freeze(), 20 if target > 10**5 else 100)
        medians[target] = statistics.median(searches)
        rows.append([f"{target:,}", *shown(checks), *shown(searches), *shown(pairs), *shown(scans)])
    return rows, medians


def measure_fleet(pools: int, many: list[int]) -> tuple[list[list[str]], dict[int, float]]:
    """The whole search over a fleet, filled step by step: query checked, pools searched, fees reckoned."""
    rng = random.Random(SEED + pools)
    rows, p99s, held = [], {}, 0
    keys = list(fleet_of(pools, 1).pools)
    filling = FleetCalendars(fleet_of(pools, 1), NOW)
    for target in many:
        for n, (window, count) in enumerate(reservations(rng, target - held)):
            filling.commit(keys[n % pools], None, window, count)
        held = target
        busy = max(int(filling.pool(key).committed_max(Window(NOW, NOW + 150 * DAY))) for key in keys)
        fleet = fleet_of(pools, int(busy * 0.97) + 8)
        asked = queries(random.Random(SEED), 400)
        found = 0

        def search(n: int, fleet: Fleet = fleet, asked: list[PlanQuery] = asked) -> None:
            nonlocal found
            found += len(
                search_plan_offerings(
                    asked[n % len(asked)], region=REGION, now=NOW, fleet=fleet, calendars=filling
                )
            )

        times = timed(search, 400 if pools > 50 else 1200)
        p99s[target] = sorted(times)[int(len(times) * 0.99)]
        rows.append([f"{pools}", f"{target:,}", *shown(times), f"{found / (len(times) + 20):.1f}"])
    return rows, p99s


def main() -> None:
    """Measure, print, compare with the pass lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="stop at 100,000 reservations")
    many = [10**3, 10**4, 10**5, 10**6][: 3 if parser.parse_args().quick else 4]
    print(f"B1 in process. {machine()}\n{versions('numpy')}. Microseconds of processor time.\n")
    rows, medians = measure_pool(many)
    head = ["reservations in one pool"]
    for what in ("check p50", "57 starts p50", "commit+release p50", "scan of rows p50"):
        head += [what, "p99"]
    print(table(head, rows), "\n")
    lines, twenty = [], {}
    for pools in (1, 20, 200):
        found, p99s = measure_fleet(pools, many)
        lines += found
        twenty = p99s if pools == 20 else twenty
    print(table(["pools", "reservations", "search p50", "p99", "offers a query"], lines), "\n")
    verdicts = Verdicts("B1 in process")
    worst = max(twenty.values())
    verdicts.check(
        worst <= 1000, f"20 pools, any number of reservations: p99 {worst:,.0f} us, wanted <= 1,000"
    )
    slope = medians[many[-1]] / medians[many[0]]
    verdicts.check(slope <= 1.2, f"slope from {many[0]:,} to {many[-1]:,}: {slope:.2f}, wanted <= 1.2")
    verdicts.check(
        statistics.median(medians.values()) <= 20,
        f"57 starts of a pool: {statistics.median(medians.values()):.1f} us, floor measured before 20",
    )
    verdicts.finish()


if __name__ == "__main__":
    main()
