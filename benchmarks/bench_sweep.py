"""Sweeping all Regions under AWS's throttling: how soon the best is found, and whether a Region is lost.

    python benchmarks/bench_sweep.py             both measurements
    python benchmarks/bench_sweep.py --scale 100 the long sweep with time pressed 100 times

The first: 14 Regions, 2 types, 4 durations, 150 ms a call, AWS's buckets (10, then 0.15 a second and Region):
time to the first ranking and to the complete one, as `bench_search.py` measures it.

The second: 14 Regions, 11 types, 14 durations, 2,156 questions, which take AWS 16 minutes at least. Time is
pressed: the stub's buckets refill `scale` times faster, its answers come `scale` times sooner, and the client
sleeps `scale` times shorter; all seconds shown are AWS's. The need takes any of the types for 1 to 14 days,
and the best plan is the one with the least total, as `berth plan` ranks. The field of prices is drawn
with a seed: an hourly price for each type from 20 to 120, 10 % up or down by Region and by length; a fifth of
the cells have something on sale. The value of what was seen is the least total that there is over the least
so far. Measured is when it is 0.9, the area under it until the least time of the sweep, and which Regions and
cells are not answered in the end; and, for a need that wants the cheapest hour instead, when 0.9 of that is
seen. Beside it a sweep as tools in public write it: 8 threads over one list, a throttled call is asked again
after a pause that doubles from 1 s to 64 s; once with the Regions outermost and once innermost.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from multiprocessing.connection import Connection

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

import bench_search as search
from berth.planner import ladder
from berth.planner.need import Need
from berth.planner.offers import PlaceAnswer, Query
from berth.planner.queries import block_queries
from berth.sources.asking import ask_all
from berth.sources.capacity_blocks import region_lane
from berth.sources.pacing import BLOCK_SEARCH, Pacer
from berth.sources.sweep import lanes_of, sweep_seconds
from berth.terms.clock import SystemClock
from berth.terms.ways import Target
from harness import Verdicts, machine, spread, table, versions

TYPES = (
    "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge", "p4d.24xlarge", "p4de.24xlarge", "p6-b200.48xlarge",
    "p6-b300.48xlarge", "trn1.32xlarge", "trn2.48xlarge", "p5.4xlarge", "trn2.3xlarge",
)  # fmt: skip
DAYS = tuple(range(1, 15))
CALL_S = 0.15
SCALE = 50
SEEDS = (11, 12, 13)
ON_SALE = 0.2
Cell = tuple[str, str, int]
"""Region, type, hours."""


# -- the field of prices -----------------------------------------------------------------------------------
class Field:
    """What is on sale: the fee of each cell; absent where nothing is."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        of_type = {kind: rng.uniform(20, 120) for kind in TYPES}
        of_region = {region: rng.uniform(0.9, 1.1) for region in search.REGIONS}
        of_length = {days: rng.uniform(0.9, 1.1) for days in DAYS}
        self.fee: dict[Cell, float] = {}
        for region in search.REGIONS:
            for kind in TYPES:
                for days in DAYS:
                    hourly = of_type[kind] * of_region[region] * of_length[days]
                    if rng.random() < ON_SALE:
                        self.fee[region, kind, 24 * days] = round(hourly * 24 * days, 2)

    @property
    def least_total(self) -> float:
        """The least fee that there is."""
        return min(self.fee.values())

    @property
    def least_hourly(self) -> float:
        """The least price of an hour that there is."""
        return min(fee / hours for (_, _, hours), fee in self.fee.items())


class PressedStub(search.Stub):
    """The stub of `bench_search`, with time pressed and prices from a field."""

    def __init__(self, scale: int, seed: int) -> None:
        super().__init__(CALL_S / scale)
        self._scale = scale
        self._field = Field(seed)

    def takes(self, region: str) -> bool:
        """Whether the Region's bucket has a token; it refills faster by the scale."""
        tokens, at = self.buckets[region]
        now = time.monotonic()
        tokens = min(search.BUCKET, tokens + (now - at) * search.REFILL_PER_S * self._scale)
        self.buckets[region] = (tokens - 1 if tokens >= 1 else tokens, now)
        return tokens >= 1

    def offerings(self, region: str, form: dict[str, str]) -> tuple[int, str]:
        """One block at the field's price, or none."""
        if not self.takes(region):
            return 503, search.REFUSED
        kind, hours = form["InstanceType"], int(form["CapacityDurationHours"])
        fee = self._field.fee.get((region, kind, hours))
        items = ""
        if fee is not None:
            start = datetime.now().astimezone() + timedelta(days=1)
            number = hash((region, kind, hours)) & ((1 << 68) - 1)
            items = search._item(
                capacityBlockOfferingId=f"cb-{number:017x}", instanceType=kind,
                availabilityZone=f"{region}a", instanceCount=1, startDate=search._stamp(start),
                endDate=search._stamp(start + timedelta(hours=hours)), capacityBlockDurationHours=hours,
                upfrontFee=f"{fee:.2f}", currencyCode="USD",
            )  # fmt: skip
        inside = f"<capacityBlockOfferingSet>{items}</capacityBlockOfferingSet>"
        return 200, search._ec2("DescribeCapacityBlockOfferings", inside)


def run_pressed(scale: int, seed: int, ready: Connection) -> None:
    """The stub's process."""
    search.serve_stub(PressedStub(scale, seed), ready)


@contextlib.contextmanager
def pressed(scale: int, seed: int) -> Iterator[str]:
    """A fresh stub with full buckets; its URL."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=run_pressed, args=(scale, seed, there), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()


class PressedClock:
    """A clock on which `scale` seconds pass in one."""

    def __init__(self, scale: int) -> None:
        self._scale = scale
        self._real = SystemClock()

    def now(self) -> datetime:
        """The present of this machine."""
        return self._real.now()

    def elapsed(self) -> float:
        """Seconds of the pressed time."""
        return self._real.elapsed() * self._scale

    def sleep(self, seconds: float) -> None:
        """Sleep pressed seconds."""
        self._real.sleep(seconds / self._scale)


# -- sweeps ------------------------------------------------------------------------------------------------
@dataclass
class Curve:
    """What a sweep found: (seconds of AWS, fee, hours) of each offer as it came, and the cells answered."""

    seen: list[tuple[float, float, int]]
    answered: set[Cell]
    ended_s: float

    def total_at_most(self, fee: float) -> float | None:
        """When an offer for that fee or less was seen; None: never."""
        return next((at for at, seen, _ in self.seen if seen <= fee), None)

    def hour_at_most(self, price: float) -> float | None:
        """When an offer with an hour for that price or less was seen; None: never."""
        return next((at for at, fee, hours in self.seen if fee / hours <= price), None)

    def area(self, until_s: float, least: float) -> float:
        """The area under the value so far up to `until_s`, over what knowing it at once would give."""
        total, value, at = 0.0, 0.0, 0.0
        for when, fee, _ in self.seen:
            total += value * (min(when, until_s) - at)
            at, value = min(when, until_s), max(value, least / fee)
        return (total + value * (until_s - at)) / until_s

    def regions_lost(self) -> int:
        """Regions with a question that was never answered."""
        every = {(region, kind, 24 * days) for region in search.REGIONS for kind in TYPES for days in DAYS}
        return len({region for region, _, _ in every - self.answered})


def questions(now: datetime) -> list[Query]:
    """What a need for any of the types and lengths asks: types as they are liked, the shortest first."""
    asked: list[Query] = []
    for kind in TYPES:
        for days in DAYS:
            need = Need("bench", kind, 1, timedelta(days=days), Target.INSTANCES, search.REGIONS)
            assert ladder.on_ladder(need.duration)
            asked += block_queries(need, search.REGIONS, now)
    return asked


def our_sweep(url: str, scale: int) -> Curve:
    """The sweep of `berth plan`: every Region in a lane of its own, paced, most promising first."""
    door, _ = search.opened(url)
    clock = PressedClock(scale)
    for region in search.REGIONS:
        door.reader("ec2", region)
    lanes = [
        region_lane(
            region, lambda region=region: door.reader("ec2", region), clock, asked,
            Pacer(clock.elapsed, clock.sleep),
        )
        for (_, region), asked in lanes_of(questions(clock.now())).items()
    ]  # fmt: skip
    curve = Curve([], set(), 0.0)
    began = clock.elapsed()

    def hear(answer: PlaceAnswer) -> None:
        asked = answer.question
        assert asked is not None
        at = clock.elapsed() - began
        if answer.is_complete:
            curve.answered.add((asked.region, asked.instance_type, asked.duration_hours))
        curve.seen += [(at, float(o.fee.amount), asked.duration_hours) for o in answer.offers if o.fee]

    ask_all(lanes, hear)
    curve.ended_s = clock.elapsed() - began
    return curve


def public_sweep(url: str, scale: int, limit_s: float, *, regions_first: bool) -> Curve:
    """8 threads over one list; a throttled call is sent again after 1, 2, 4 ... 64 s, 10 times at most."""
    clock = PressedClock(scale)
    session = botocore.session.Session()
    session.set_credentials("YARDBENCH", "x")
    clients = {
        region: session.create_client(
            "ec2", region_name=region, endpoint_url=url, config=Config(retries={"total_max_attempts": 1})
        )
        for region in search.REGIONS
    }
    cells = [(region, kind, days) for region in search.REGIONS for kind in TYPES for days in DAYS]
    if not regions_first:
        cells = [(region, kind, days) for kind in TYPES for days in DAYS for region in search.REGIONS]
    curve, lock, began = Curve([], set(), 0.0), threading.Lock(), clock.elapsed()

    def work(cell: tuple[str, str, int]) -> None:
        region, kind, days = cell
        for attempt in range(10):
            if clock.elapsed() - began > limit_s:
                return
            try:
                answer = clients[region].describe_capacity_block_offerings(
                    InstanceType=kind,
                    InstanceCount=1,
                    CapacityDurationHours=24 * days,
                    AllAvailabilityZones=True,
                )
            except ClientError:
                clock.sleep(min(64, 2**attempt))
                continue
            at = clock.elapsed() - began
            with lock:
                curve.answered.add((region, kind, 24 * days))
                for found in answer["CapacityBlockOfferings"]:
                    curve.seen.append((at, float(found["UpfrontFee"]), 24 * days))
            return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, cells))
    curve.seen.sort()
    curve.ended_s = clock.elapsed() - began
    return curve


SWEEPS: dict[str, Callable[[str, int, float], Curve]] = {
    "berth": lambda url, scale, limit_s: our_sweep(url, scale),
    "8 threads, Regions innermost": lambda *args: public_sweep(*args, regions_first=False),
    "8 threads, Regions outermost": lambda *args: public_sweep(*args, regions_first=True),
}


def long_sweep(scale: int, seeds: Sequence[int]) -> bool:
    """Measure the long sweep and print it; whether all that must hold held."""
    least = sweep_seconds(questions(SystemClock().now()), call_s=CALL_S)
    sizes = f"{len(search.REGIONS)} Regions x {len(TYPES)} types x {len(DAYS)} durations"
    print(f"{sizes}, time pressed {scale} times")
    print(f"least time on AWS by its buckets: {least:,.0f} s; bucket {BLOCK_SEARCH}\n")
    curves: dict[str, list[Curve]] = {name: [] for name in SWEEPS}
    for seed in seeds:
        for name, sweep in SWEEPS.items():
            with pressed(scale, seed) as url:
                curves[name].append(sweep(url, scale, 1.5 * least))
    fields = [Field(seed) for seed in seeds]
    heads = ["AWS's seconds, median [lowest-highest]", "90 % of the best total", "area", "of the best hour"]
    rows = [_row(name, found, fields, least) for name, found in curves.items()]
    print(table([*heads, "complete", "cells", "Regions lost"], rows) + "\n")
    verdicts = Verdicts("long sweep")
    verdicts.check(not any(c.regions_lost() for c in curves["berth"]), "no Region lost")
    ours, *theirs = (_to_90(found, fields, 1.5 * least) for found in curves.values())
    for name, times in zip(list(SWEEPS)[1:], theirs, strict=True):
        us, them = statistics.median(ours), statistics.median(times)
        verdicts.check(us < them, f"90 % of the best sooner than {name}: {us:,.0f} s against {them:,.0f} s")
    return verdicts.held()


def _to_90(found: Sequence[Curve], fields: Sequence[Field], never: float) -> list[float]:
    times = [c.total_at_most(f.least_total / 0.9) for c, f in zip(found, fields, strict=True)]
    return [never if at is None else at for at in times]


def _row(name: str, found: Sequence[Curve], fields: Sequence[Field], least: float) -> list[str]:
    pairs = list(zip(found, fields, strict=True))
    never = 1.5 * least
    return [
        name,
        spread(_to_90(found, fields, never)),
        spread([curve.area(least, field.least_total) for curve, field in pairs], 2),
        spread([curve.hour_at_most(field.least_hourly / 0.9) or never for curve, field in pairs]),
        spread([curve.ended_s for curve in found]),
        str(min(len(curve.answered) for curve in found)),
        str(max(curve.regions_lost() for curve in found)),
    ]


def main() -> None:
    """Both measurements; exit 0 when what must hold held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scale", type=int, default=SCALE, help="how many times time is pressed")
    parser.add_argument("--runs", type=int, default=search.RUNS, help="of the short sweep")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="fields of the long sweep")
    chosen = parser.parse_args()
    print(machine())
    print(versions("boto3", "botocore"))
    held = search.short_sweep(0.15, chosen.runs)
    print()
    held &= long_sweep(chosen.scale, SEEDS[: chosen.seeds])
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
