"""Searching all Regions for Capacity Blocks when every call takes 150 ms: first ranking, and complete.

    python benchmarks/bench_search.py            14 Regions, 2 types, 4 durations; and one whole plan
    python benchmarks/bench_search.py --delay 50 with another delay, in milliseconds

The stub is a process of its own on loopback. It answers in AWS's protocol after the delay, keeps AWS's bucket
of ten searches a Region (one more every 6.7 s), and refuses what is faster. Times run from the open door to
the first plan with a choice, and to the last plan with every answer in it; making the door (credentials,
clients, GetCallerIdentity) is shown apart.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from multiprocessing.connection import Connection
from urllib.parse import parse_qs

from berth.aws.session import Door, open_door
from berth.planner.choose import make_plan
from berth.planner.need import Need
from berth.planner.offers import PlaceAnswer, Query
from berth.planner.plan import Plan
from berth.planner.queries import block_queries
from berth.sources.asking import ask_all
from berth.sources.capacity_blocks import region_lane
from berth.sources.list_prices import list_rates
from berth.sources.survey import survey
from berth.terms.clock import SystemClock
from berth.terms.ways import Target
from harness import Verdicts, machine, spread, table, versions

REGIONS = (
    "us-east-1", "us-east-2", "us-west-1", "us-west-2", "eu-north-1", "eu-west-2", "eu-west-3", "sa-east-1",
    "ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4",
)  # fmt: skip
TYPES = ("p5.48xlarge", "p5en.48xlarge")
DAYS = (1, 2, 5, 14)
BUCKET, REFILL_PER_S = 10.0, 0.15
RUNS = 5
REFUSED = "<Response><Errors><Error><Code>RequestLimitExceeded</Code></Error></Errors></Response>"
NS = "http://ec2.amazonaws.com/doc/2016-11-15/"


# -- the stub ----------------------------------------------------------------------------------------------
class Stub:
    """Answers the reads of a plan after a delay."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self.buckets: dict[str, tuple[float, float]] = defaultdict(lambda: (BUCKET, time.monotonic()))

    def takes(self, region: str) -> bool:
        """Whether the Region's bucket has a token for one more search."""
        tokens, at = self.buckets[region]
        now = time.monotonic()
        tokens = min(BUCKET, tokens + (now - at) * REFILL_PER_S)
        self.buckets[region] = (tokens - 1 if tokens >= 1 else tokens, now)
        return tokens >= 1

    def answer(self, region: str, body: str) -> tuple[int, str]:
        """Status and body for one request."""
        form = {key: values[0] for key, values in parse_qs(body).items()}
        action = form.get("Action", "")
        if action == "GetCallerIdentity":
            return 200, _sts()
        if action == "DescribeAvailabilityZones":
            names = "".join(_item(zoneName=f"{region}{z}", zoneId=f"{region}-az{z}") for z in "abc")
            return 200, _ec2(action, f"<availabilityZoneInfo>{names}</availabilityZoneInfo>")
        if action == "DescribeCapacityBlockOfferings":
            return self.offerings(region, form)
        if action:
            return 200, _ec2(action, "")
        return 200, '{"PriceList": [], "TrainingPlanSummaries": []}'

    def offerings(self, region: str, form: dict[str, str]) -> tuple[int, str]:
        """Three blocks of the asked length, on the next three days."""
        if not self.takes(region):
            return 503, REFUSED
        hours = int(form["CapacityDurationHours"])
        begin = (datetime.now(UTC) + timedelta(days=1)).replace(hour=11, minute=30, second=0, microsecond=0)
        items = ""
        for day, zone in enumerate("abc"):
            start = begin + timedelta(days=day)
            fee = Decimal("47.757") * hours * int(form["InstanceCount"]) + REGIONS.index(region) + day
            number = hash((region, day, hours, form["InstanceType"])) & ((1 << 68) - 1)
            items += _item(
                capacityBlockOfferingId=f"cb-{number:017x}",
                instanceType=form["InstanceType"], availabilityZone=f"{region}{zone}",
                instanceCount=form["InstanceCount"], startDate=_stamp(start),
                endDate=_stamp(start + timedelta(hours=hours)), capacityBlockDurationHours=hours,
                upfrontFee=f"{fee:.2f}", currencyCode="USD", tenancy="default",
            )  # fmt: skip
        action = "DescribeCapacityBlockOfferings"
        return 200, _ec2(action, f"<capacityBlockOfferingSet>{items}</capacityBlockOfferingSet>")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, kept alive."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = re.search(r"(?i)content-length: (\d+)", head)
                body = (await reader.readexactly(int(length.group(1)) if length else 0)).decode()
                scope = re.search(r"Credential=[^/]+/\d+/([\w-]+)/", head)
                await asyncio.sleep(self.delay_s)
                status, text = self.answer(scope.group(1) if scope else "us-east-1", body)
                reply = text.encode()
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(reply)}\r\n\r\n".encode() + reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def _item(**members: object) -> str:
    return "<item>" + "".join(f"<{name}>{value}</{name}>" for name, value in members.items()) + "</item>"


def _ec2(action: str, inside: str) -> str:
    return f'<{action}Response xmlns="{NS}"><requestId>r</requestId>{inside}</{action}Response>'


def _sts() -> str:
    return (
        '<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>'
        "<Arn>arn:aws:iam::111122223333:user/ada</Arn><UserId>U</UserId><Account>111122223333</Account>"
        "</GetCallerIdentityResult></GetCallerIdentityResponse>"
    )


def _stamp(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%S}.000Z"


def run_stub(delay_s: float, ready: Connection) -> None:
    """The stub's process: tells its port, then serves until it is ended."""
    serve_stub(Stub(delay_s), ready)


def serve_stub(stub: Stub, ready: Connection) -> None:
    """Tell the port, and serve `stub` until the process is ended."""

    async def main() -> None:
        server = await asyncio.start_server(stub.serve, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        async with server:
            await server.serve_forever()

    asyncio.run(main())


# -- what is measured --------------------------------------------------------------------------------------
def need_of(kind: str) -> Need:
    """One instance for a day, anywhere."""
    return Need("bench", kind, 1, timedelta(days=1), Target.INSTANCES, REGIONS)


def questions(now: datetime) -> dict[str, list[Query]]:
    """Every Region's questions: the shortest first, both types in turn."""
    asked: dict[str, list[Query]] = {region: [] for region in REGIONS}
    for days in DAYS:
        for kind in TYPES:
            need = Need("bench", kind, 1, timedelta(days=days), Target.INSTANCES, REGIONS)
            for query in block_queries(need, REGIONS, now):
                asked[query.region].append(query)
    return asked


def ranked(answers: Sequence[PlaceAnswer], now: datetime) -> list[Plan]:
    """A plan for each type from what was heard."""
    needs = [need_of(kind) for kind in TYPES]
    return [make_plan(need, answers, list_rates(need, REGIONS), now) for need in needs]


def sweep(door: Door) -> tuple[float, float, int]:
    """Seconds to the first ranking and to the complete one, and how many places answered in full."""
    began = time.perf_counter()
    answers: list[PlaceAnswer] = []
    first, last_ranked = 0.0, 0.0
    lanes = [
        region_lane(region, lambda region=region: door.reader("ec2", region), door.clock, queries)
        for region, queries in questions(door.clock.now()).items()
    ]

    def hear(answer: PlaceAnswer) -> None:
        nonlocal first, last_ranked
        answers.append(answer)
        now = time.perf_counter() - began
        if answer.offers and (not first or now - last_ranked > 0.5):
            found = ranked(answers, door.clock.now())
            last_ranked = time.perf_counter() - began
            first = first or (last_ranked if any(plan.best for plan in found) else 0.0)

    ask_all(lanes, hear)
    plans = ranked(answers, door.clock.now())
    assert all(plan.best and plan.best.offer.region == REGIONS[0] for plan in plans)
    return first, time.perf_counter() - began, sum(a.is_complete for a in answers)


def whole_plan(door: Door) -> tuple[float, float]:
    """The same for everything that `berth plan` asks about one need: owned, blocks, Spot, prices."""
    began = time.perf_counter()
    first = 0.0

    def told(answer: PlaceAnswer, plan: Plan | None) -> None:
        nonlocal first
        if plan is not None and plan.best is not None:
            first = first or time.perf_counter() - began

    plan = survey(door, need_of(TYPES[0]), told)
    assert plan.best is not None
    assert not plan.incomplete
    return first, time.perf_counter() - began


def opened(url: str) -> tuple[Door, float]:
    """A door to the stub, and how long it took."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {
        "BERTH_YARD": url, "AWS_ENDPOINT_URL": url, "AWS_REGION": REGIONS[0],
        "AWS_ACCESS_KEY_ID": "YARDBENCH", "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true", "BERTH_HOME": tempfile.mkdtemp(),
    }  # fmt: skip
    began = time.perf_counter()
    door = open_door(profile=None, regions=REGIONS, environ=os.environ, clock=SystemClock())
    return door, time.perf_counter() - began


def with_stub(delay_s: float) -> tuple[float, tuple[float, float, int], tuple[float, float]]:
    """One run: door and sweep against a fresh stub with full buckets, a whole plan against another."""
    found: list[tuple[Door, float]] = []
    results: list[tuple[float, ...]] = []
    for measure in (sweep, whole_plan):
        here, there = multiprocessing.Pipe()
        process = multiprocessing.Process(target=run_stub, args=(delay_s, there), daemon=True)
        process.start()
        found.append(opened(f"http://127.0.0.1:{here.recv()}"))
        results.append(measure(found[-1][0]))
        process.terminate()
        process.join()
    return found[0][1], results[0], results[1]  # type: ignore[return-value]


def short_sweep(delay_s: float, number: int) -> bool:
    """Measure, print, and hold it against the aims; whether all held."""
    sizes = f"{len(REGIONS)} Regions x {len(TYPES)} types x {len(DAYS)} durations"
    print(f"{sizes}, {delay_s * 1000:.0f} ms a call\n")
    runs = [with_stub(delay_s) for _ in range(number)]
    doors = [door for door, _, _ in runs]
    firsts, ends, complete = zip(*(found for _, found, _ in runs), strict=True)
    plan_firsts, plan_ends = zip(*(found for _, _, found in runs), strict=True)
    rows = [
        ["open the door", "", spread(doors, 2)],
        ["112 searches", spread(firsts, 2), spread(ends, 2)],
        ["one berth plan", spread(plan_firsts, 2), spread(plan_ends, 2)],
    ]
    print(table(["seconds, median [lowest-highest]", "first ranking", "complete"], rows) + "\n")
    verdicts = Verdicts("search of all Regions")
    everything = len(REGIONS) * len(TYPES) * len(DAYS)
    verdicts.check(min(complete) == everything, f"every place answered: {min(complete)} of {everything}")
    first, end = statistics.median(firsts), statistics.median(ends)
    verdicts.check(first < 1, f"first ranking under 1 s: {first:.2f} s")
    verdicts.check(end < 3, f"complete under 3 s: {end:.2f} s")
    return verdicts.held()


def main() -> None:
    """The measurement by itself."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--delay", type=int, default=150, help="milliseconds that every call takes")
    parser.add_argument("--runs", type=int, default=RUNS)
    chosen = parser.parse_args()
    print(machine())
    print(versions("boto3", "botocore"))
    raise SystemExit(0 if short_sweep(chosen.delay / 1000, chosen.runs) else 1)


if __name__ == "__main__":
    main()
