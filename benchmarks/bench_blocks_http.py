"""Capacity Blocks over HTTP, beside moto's DescribeInstances and a server that does nothing, in one run.

Searches (DescribeCapacityBlockOfferings) over counts, lengths and starts; pages of 100 reservations
(DescribeCapacityReservations) with 100 and with 100,000 stored by the account. Signatures on, keep-alive,
requests as boto3 signs them, made beforehand; rounds of all targets alternate.
Figures: answers a second as median [lowest-highest] of the rounds; latencies and processor time are medians.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from berth.terms.instants import to_micros
from berth.yard.testing.process import YardProcess
from filling import HOUR_US, FilledBlock, fill
from harness import ROOT, Verdicts, machine, table, versions
from load import send
from servers import REGION, Server, bare, moto
from target import BUSY, NOISE, Target, times

SEED = 20261130
FLEET = ROOT / "tests" / "simulation" / "rush.toml"
CLOCK = datetime(2026, 12, 1, 9, tzinfo=UTC)
ROUNDS = 5
FEW, MANY = 100, 100_000
DISTINCT = 256
AGAINST_MOTO, AGAINST_BARE = 10.0, 0.2


def signed(port: int, keys: tuple[str, str], fields: dict[str, object]) -> bytes:
    """A whole request of EC2's query protocol, signed as boto3 does."""
    body = urlencode({"Version": "2016-11-15", **fields}).encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    request = AWSRequest("POST", f"http://127.0.0.1:{port}/", kind, body)
    SigV4Auth(Credentials(*keys), "ec2", REGION).add_auth(request)
    lines = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def searches(port: int, keys: tuple[str, str]) -> list[bytes]:
    """DescribeCapacityBlockOfferings, drawn with the seed."""
    draw, found = random.Random(SEED), []
    for _ in range(DISTINCT):
        fields = {
            "Action": "DescribeCapacityBlockOfferings", "InstanceType": "p5.48xlarge",
            "InstanceCount": draw.choice((1, 4, 16, 64)),
            "CapacityDurationHours": 24 * draw.choice((1, 7, 14, 56)),
            "StartDateRange": f"2026-12-{draw.randint(2, 28):02d}T00:00:00Z",
        }  # fmt: skip
        found.append(signed(port, keys, fields))
    return found


def pages(port: int, keys: tuple[str, str]) -> list[bytes]:
    """DescribeCapacityReservations, the first page of 100."""
    return [signed(port, keys, {"Action": "DescribeCapacityReservations", "MaxResults": 100})]


def stocked(
    path: Path, many: int, stack: contextlib.ExitStack
) -> tuple[YardProcess, Server, tuple[str, str]]:
    """A yard whose first account holds `many` blocks, and that account's keys."""
    yard = stack.enter_context(YardProcess(path, fleet=FLEET))
    account, keys = yard.clients.sts.get_caller_identity()["Account"], yard.environment
    yard.stop()
    fill(yard.folder.store, blocks(account, many))
    yard.start()
    assert yard.process is not None
    server = Server(int(yard.url.rsplit(":", 1)[1]), yard.process.pid)
    return yard, server, (keys["AWS_ACCESS_KEY_ID"], keys["AWS_SECRET_ACCESS_KEY"])


def blocks(account: str, many: int) -> list[FilledBlock]:
    """Blocks of the account, uniformly over eight weeks, in the zones that are wide."""
    draw, present, found = random.Random(SEED), to_micros(CLOCK), []
    for number in range(many):
        start = present + draw.randrange(1, 56) * 24 * HOUR_US
        end = start + draw.randrange(1, 14) * 24 * HOUR_US
        found.append(FilledBlock(number, account, f"use1-az{1 + number % 2}", start, end, present))
    return found


def moto_instances(server: Server) -> list[bytes]:
    """DescribeInstances of moto, with one instance that is made first."""
    ec2 = boto3.session.Session("testing", "testing", region_name=REGION).client(
        "ec2", endpoint_url=f"http://127.0.0.1:{server.port}"
    )
    image = ec2.describe_images()["Images"][0]["ImageId"]
    ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1)
    return [signed(server.port, ("testing", "testing"), {"Action": "DescribeInstances"})]


def main() -> None:
    """Start everything, measure in rounds, stop everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.2, help="length of a round")
    options = parser.parse_args()
    print(
        f"{machine()}\n{versions('uvicorn', 'uvloop', 'httptools', 'boto3', 'moto')}; seed {SEED}; {REGION}"
    )
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="blocks-")))
        stands = stack.enter_context(moto())
        _, few, few_keys = stocked(folder / "few", FEW, stack)
        _, many, many_keys = stocked(folder / "many", MANY, stack)
        searching = searches(few.port, few_keys)
        size = len(send(few.port, searching[:1], 1, None).sample)
        nothing = stack.enter_context(bare(size))
        targets = {
            "moto": Target("moto_server, DescribeInstances", stands, moto_instances(stands)),
            "few": Target(f"DescribeCapacityBlockOfferings, {FEW}", few, searching),
            "bare": Target(f"bare ASGI handler, {size:,} bytes", nothing, searching),
            "many": Target(f"DescribeCapacityBlockOfferings, {MANY:,}", many, searches(many.port, many_keys)),
            "page few": Target(f"page of 100 reservations of {FEW}", few, pages(few.port, few_keys)),
            "page many": Target(f"page of 100 of {MANY:,}", many, pages(many.port, many_keys)),
        }
        for _ in range(ROUNDS):
            for target in targets.values():
                target.round(options.seconds)
    report(targets)


def row(target: Target) -> list[str]:
    """The target's line of the table."""
    size = f"{len(target.busy[0].sample):,}"
    return [target.name, target.rates(), *target.latencies(target.busy, 2), f"{target.cost:.0f}", size]


def report(t: dict[str, Target]) -> None:
    """The table, the ratios, the pass lines."""
    head = ["target", f"req/s, {BUSY} connections", "p50 ms", "p99 ms", "CPU us", "bytes"]
    print(table(head, [row(target) for target in t.values()]))
    verdicts = Verdicts("blocks over HTTP")
    for name, aim in (("moto", AGAINST_MOTO), ("bare", AGAINST_BARE)):
        ratio, processor = times(t["few"], t[name])
        verdicts.check(
            ratio >= aim,
            f"{ratio:.2f} times the rate of: {t[name].name} (aim: {aim:g}); by processor time"
            f" {processor:.2f} times",
        )
    for one, other, what in (("few", "many", "a search"), ("page few", "page many", "a page of 100")):
        ratio = t[other].cost / t[one].cost
        verdicts.check(
            ratio <= 1 + NOISE,
            f"{what}: {ratio:.2f} times the processor time with {MANY:,} stored as with {FEW}"
            f" (aim: the same within noise, at most {1 + NOISE:g})",
        )
    verdicts.finish()


if __name__ == "__main__":
    main()
