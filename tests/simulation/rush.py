"""A rush of purchases by eight clients, half of them after the same last hosts, and what must hold after it.

Shared by the tests and by benchmarks/bench_admission.py. Plans and blocks in turn, one host for one day each.
Every ask names itself (the plan's name; a tag of the block), so that one that came out twice is seen.
Of the contested asks, twice as many come for each window as it has hosts.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from berth.terms.money import Money
from berth.terms.ways import Target
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.fleet_file import load_fleet
from berth.yard.market.block_ids import PoolNumbers, encode_block_offering
from berth.yard.market.block_rules import BlockTerms
from berth.yard.market.offering_ids import encode_offering
from berth.yard.market.plan_rules import PlanTerms
from berth.yard.market.price_lists import rate_at
from berth.yard.market.window_rules import LEAD_DAYS_MAX, issue_minute

REGION = "us-east-1"
FLEET = Path(__file__).with_name("rush.toml")
WIDE, LAST = ("use1-az1", "use1-az2"), "use1-az3"
LAST_HOSTS = 64  # of each type in the contested zone
CONTESTED_MAX = 2 * 2 * LAST_HOSTS * LEAD_DAYS_MAX  # two types, twice as many asks as hosts, 56 starts
BLOCKS_EACH_MAX = 256  # EC2's limit of instances in blocks of one account
HALF_HOUR_US = 1_800_000_000
OPERATIONS = {"plan": ("sagemaker", "CreateTrainingPlan"), "block": ("ec2", "PurchaseCapacityBlock")}


def rush_fleet() -> Fleet:
    """The fleet of rush.toml."""
    return load_fleet(FLEET.read_text("utf-8"), FLEET.name)


@dataclass(frozen=True, slots=True)
class Buyer:
    """An account that buys."""

    account_id: str
    access_key_id: str
    secret: str


@dataclass(frozen=True, slots=True)
class Ask:
    """One purchase that will be sent once. `name` is its own."""

    name: str
    kind: str  # plan or block
    buyer: Buyer
    zone: str
    start: int  # the n-th 11:30 UTC from now

    @property
    def contested(self) -> bool:
        """Whether twice as many want the hosts as there are."""
        return self.zone == LAST


def asks(many: int, buyers: Sequence[Buyer], seed: int, first: int = 0) -> list[Ask]:
    """`many` asks, numbered from `first`: every second one contested, window after window. Raises ValueError
    when there are not windows enough, or blocks would pass an account's limit."""
    if (first + many) // 2 > CONTESTED_MAX:
        raise ValueError(f"{first + many} asks need more contested windows than there are")
    if (first + many) // 2 > BLOCKS_EACH_MAX * len(buyers):
        raise ValueError(f"{first + many} asks need more accounts than {len(buyers)}")
    draw = random.Random(seed)
    found = []
    for number in range(first, first + many):
        half = number // 2
        kind = ("plan", "block")[half % 2]
        zone, start = (LAST, 1 + half // (4 * LAST_HOSTS)) if number % 2 else (draw.choice(WIDE), 0)
        found.append(
            Ask(
                f"ask-{number}", kind, buyers[(number // 4) % len(buyers)], zone, start or draw.randint(1, 56)
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class Market:
    """Writes the ids of offerings as a search would, so that a rush needs no search for each ask."""

    fleet: Fleet
    now: datetime
    offering_key: bytes
    pool_numbers: PoolNumbers

    @classmethod
    def of_store(cls, store: Path, now: datetime) -> Market:
        """From a yard's rows."""
        with closing(sqlite3.connect(store)) as rows:
            key = rows.execute("SELECT value FROM meta WHERE key = 'offering-key'").fetchone()[0]
            numbers = dict(rows.execute("SELECT pool, number FROM pool_numbers"))
        return cls(rush_fleet(), now, bytes.fromhex(key), PoolNumbers.of(numbers))

    def parameters(self, ask: Ask) -> dict[str, Any]:
        """The parameters of the purchase."""
        hardware = "trn1.32xlarge" if ask.kind == "plan" else "p5.48xlarge"
        pool, issued = f"{ask.zone}/{hardware}", issue_minute(self.now)
        rate = rate_at(self.fleet.price_lists, issued, hardware, REGION)
        assert rate is not None
        to = {"account_id": ask.buyer.account_id, "region": REGION}
        if ask.kind == "plan":
            fee = Money(rate.usd_per_hour * Decimal(24), "USD").rounded()
            terms = PlanTerms(pool, 1, (Target.ENDPOINT,), issued, ask.start, 1, fee)
            offering = encode_offering(terms, key=self.offering_key, **to)
            return {"TrainingPlanName": ask.name, "TrainingPlanOfferingId": offering}
        block = BlockTerms(pool, 1, issued, ask.start, 1, rate.usd_per_hour)
        return {
            "CapacityBlockOfferingId": encode_block_offering(
                block, numbers=self.pool_numbers, key=self.offering_key, **to
            ),
            "InstancePlatform": "Linux/UNIX",
            "TagSpecifications": [
                {"ResourceType": "capacity-reservation", "Tags": [{"Key": "ask", "Value": ask.name}]}
            ],
        }

    def request(self, ask: Ask, host: str) -> bytes:
        """The whole HTTP request, signed as botocore signs; good for five minutes."""
        service, operation = OPERATIONS[ask.kind]
        sent = self.parameters(ask)
        if ask.kind == "plan":
            kind, body = "application/x-amz-json-1.1", json.dumps(sent)
            headers = {"X-Amz-Target": f"SageMaker.{operation}"}
        else:
            kind, headers = "application/x-www-form-urlencoded; charset=utf-8", {}
            fields = {
                "Action": operation, "Version": "2016-11-15",
                "CapacityBlockOfferingId": sent["CapacityBlockOfferingId"],
                "InstancePlatform": sent["InstancePlatform"],
                "TagSpecification.1.ResourceType": "capacity-reservation",
                "TagSpecification.1.Tag.1.Key": "ask", "TagSpecification.1.Tag.1.Value": ask.name,
            }  # fmt: skip
            body = urlencode(fields)
        request = AWSRequest("POST", f"http://{host}/", {"Content-Type": kind, **headers}, body.encode())
        credentials = Credentials(ask.buyer.access_key_id, ask.buyer.secret)
        SigV4Auth(credentials, service, REGION).add_auth(request)
        lines = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        return f"POST / HTTP/1.1\r\nHost: {host}\r\n{lines}Content-Length: {len(body)}\r\n\r\n{body}".encode()


# -- afterwards ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Recount:
    """What the rows say."""

    sold: Counter[str]  # how many plans or blocks each ask has
    faults: tuple[str, ...]  # empty when nothing is wrong in itself

    def against(self, acknowledged: Sequence[Ask], tried: Sequence[Ask]) -> list[str]:
        """Everything that is wrong: lost, sold twice, never asked for, over capacity, rows at odds."""
        lost = [f"{ask.name} was acknowledged and is lost" for ask in acknowledged if not self.sold[ask.name]]
        twice = [f"{name} was sold {count} times" for name, count in self.sold.items() if count > 1]
        strange = [f"{name} was never sent" for name in set(self.sold) - {ask.name for ask in tried}]
        return [*lost, *twice, *strange, *self.faults]


def recount(store: Path, fleet: Fleet) -> Recount:
    """Count the rows of a yard of `rush_fleet` again, without the yard's own code."""
    with closing(sqlite3.connect(store)) as rows:
        rows.row_factory = sqlite3.Row
        plans = rows.execute("SELECT arn, name AS ask, pool, start_us, end_us FROM training_plans").fetchall()
        blocks = rows.execute(
            "SELECT arn, value AS ask, pool, start_us, end_us FROM capacity_reservations"
            " JOIN ec2_tags ON resource_id = reservation_id AND key = 'ask'"
        ).fetchall()
        untagged = rows.execute("SELECT count(*) FROM capacity_reservations").fetchone()[0] - len(blocks)
        bookings = rows.execute("SELECT * FROM bookings").fetchall()
        bought = rows.execute(
            "SELECT count(*) FROM events WHERE to_state IN ('Pending', 'payment-pending')"
        ).fetchone()[0]
    sold = [*plans, *blocks]
    faults = [f"{untagged} blocks lack their tag"] if untagged else []
    if bought != len(sold):
        faults.append(f"{bought} purchases are among the events, {len(sold)} in the rows")
    wanted = {row["arn"]: (row["pool"], row["start_us"], row["end_us"]) for row in sold}
    held = {row["holder"]: (row["pool"], row["start_us"], row["end_us"]) for row in bookings}
    if len(held) != len(bookings) or held != wanted:
        faults.append(f"{len(bookings)} bookings do not match {len(sold)} things sold")
    hosts = {key: pool.shares.reservable for key, pool in fleet.pools.items()}
    faults += [
        f"{pool} promises {peak} of {hosts[pool]} hosts"
        for pool, peak in peaks(bookings).items()
        if peak > hosts[pool]
    ]
    return Recount(Counter(row["ask"] for row in sold), tuple(faults))


def peaks(bookings: Sequence[sqlite3.Row]) -> Mapping[str, int]:
    """The most hosts of each pool that are promised in one half hour; windows rounded outwards."""
    changes: dict[str, Counter[int]] = {}
    for row in bookings:
        of_pool = changes.setdefault(row["pool"], Counter())
        of_pool[row["start_us"] // HALF_HOUR_US] += row["count"]
        of_pool[-(-row["end_us"] // HALF_HOUR_US)] -= row["count"]
    return {pool: max(_levels(of_pool)) for pool, of_pool in changes.items()}


def _levels(changes: Counter[int]) -> Iterator[int]:
    level = 0
    for slot in sorted(changes):
        level += changes[slot]
        yield level
