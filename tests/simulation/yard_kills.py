"""A yard under work that is killed at a random moment, started again, and looked over.

Used by the test of the same name and by benchmarks/kills.py; the only difference is how often.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from berth.yard.admin.client import NoYard
from berth.yard.testing.leftovers import wait_until_none
from berth.yard.testing.process import YardProcess

TYPE = "ml.trn1.32xlarge"
ONE_TRY = {"retries": {"total_max_attempts": 1}, "connect_timeout": 2, "read_timeout": 10}
GONE_WITHIN_S = 10.0
MICROS = 1_000_000


@dataclass
class Acknowledged:
    """What the yard said that it had done. Only what is here must be there after a kill."""

    plans: dict[str, str] = field(default_factory=dict)  # name: fee
    tried_plans: set[str] = field(default_factory=set)
    endpoints: set[str] = field(default_factory=set)
    deleting: set[str] = field(default_factory=set)  # DeleteEndpoint was sent, whatever came of it
    deleted: set[str] = field(default_factory=set)  # ... and acknowledged
    clock: datetime = datetime(2026, 12, 1, 9, tzinfo=UTC)
    writes: int = 0


class Workers:
    """Three clients at work until the yard is killed: one buys, one deploys, one moves the clock."""

    def __init__(self, yard: YardProcess, seen: Acknowledged, seed: int) -> None:
        self._yard, self._seen = yard, seen
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._client = yard.clients("sagemaker", max_pool_connections=4, **ONE_TRY)
        self._names = (f"{seed}-{number}" for number in range(1_000_000))
        self.unexpected: list[BaseException] = []

    def run(self) -> list[threading.Thread]:
        """Start the three."""
        threads = [
            threading.Thread(target=self._until_killed, args=(step,))
            for step in (self._buy, self._deploy, self._advance)
        ]
        for thread in threads:
            thread.start()
        return threads

    def stop(self) -> None:
        """The yard is about to be killed, or has been."""
        self._stop.set()

    def _until_killed(self, step: Callable[[], None]) -> None:
        while not self._stop.is_set():
            try:
                step()
            except (BotoCoreError, NoYard, OSError):
                if not self._stop.is_set():
                    time.sleep(0.005)  # it was killed this very moment
            except ClientError as error:
                if error.response["Error"]["Code"] not in _ORDINARY:
                    self.unexpected.append(error)
            except Exception as fault:  # noqa: BLE001 - told by the caller of `run`
                self.unexpected.append(fault)

    def _buy(self) -> None:
        found = self._client.search_training_plan_offerings(
            InstanceType=TYPE, InstanceCount=1, DurationHours=24, TargetResources=["endpoint"]
        )["TrainingPlanOfferings"]
        if not found:
            return
        offer, name = self._random.choice(found), f"p-{next(self._names)}"
        self._seen.tried_plans.add(name)
        self._client.create_training_plan(
            TrainingPlanName=name, TrainingPlanOfferingId=offer["TrainingPlanOfferingId"]
        )
        self._seen.plans[name] = offer["UpfrontFee"]
        self._seen.writes += 1

    def _deploy(self) -> None:
        ready = [
            endpoint["EndpointName"]
            for endpoint in self._client.list_endpoints(StatusEquals="InService")["Endpoints"]
            if endpoint["EndpointName"] not in self._seen.deleting
        ]
        if ready and self._random.random() < 0.5:
            name = self._random.choice(ready)
            self._seen.deleting.add(name)
            self._client.delete_endpoint(EndpointName=name)
            self._seen.deleted.add(name)
        else:
            name = f"e-{next(self._names)}"
            self._client.create_endpoint(EndpointName=name, EndpointConfigName="c")
            self._seen.endpoints.add(name)
        self._seen.writes += 1

    def _advance(self) -> None:
        self._seen.clock = self._yard.clock.advance(minutes=self._random.randint(1, 4))
        time.sleep(0.02)


# Sold out, too many at once, and the endpoint that is in between: what such a crowd must expect.
_ORDINARY = {"ResourceNotFound", "ValidationException", "ResourceLimitExceeded", "ResourceInUse"}


class KilledYard:
    """One data folder, killed as often as wanted."""

    def __init__(self, folder: Path, fleet: Path, seed: int) -> None:
        self.seed, self.seen = seed, Acknowledged()
        self.yard = YardProcess(folder, fleet=fleet)
        self._random = random.Random(seed)
        client = self.yard.clients.sagemaker
        plan = self.yard.seed.plan(name="held", state="Active", count=2, duration="60d")["arn"]
        client.create_model(
            ModelName="m", ExecutionRoleArn="arn:aws:iam::111122223333:role/r",
            PrimaryContainer={"Image": "rehearsal/echo:1", "Environment": {"MARK": str(folder)}},
        )  # fmt: skip
        client.create_endpoint_config(
            EndpointConfigName="c",
            ProductionVariants=[
                {
                    "VariantName": "v", "ModelName": "m", "InstanceType": TYPE, "InitialInstanceCount": 1,
                    "CapacityReservationConfig": {
                        "CapacityReservationPreference": "capacity-reservations-only",
                        "MlReservationArn": plan,
                    },
                }
            ],
        )  # fmt: skip

    def kill_once(self, number: int) -> None:
        """Let the clients work, kill -9 at a random moment, start again, look everything over."""
        workers = Workers(self.yard, self.seen, self.seed * 1000 + number)
        threads = workers.run()
        time.sleep(self._random.uniform(0.02, 0.5))
        self.yard.kill()
        workers.stop()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert [repr(fault) for fault in workers.unexpected] == []
        assert wait_until_none(self.yard.folder.path, GONE_WITHIN_S) == {}
        self.yard.start()
        self.look_over()

    def look_over(self) -> None:
        """Everything that was acknowledged is there, nothing twice, books and calendar agree."""
        with contextlib.closing(sqlite3.connect(self.yard.folder.store)) as store:
            store.row_factory = sqlite3.Row
            with store:
                store.execute("BEGIN")
                plans = {row["name"]: row for row in store.execute("SELECT * FROM training_plans")}
                self._check_plans(store, plans)
                self._check_books(store, plans)
                self._check_calendar(store, plans)
                self._check_endpoints(store)
                self._check_log(store)
        assert self.yard.clock.now >= self.seen.clock

    def _check_plans(self, store: sqlite3.Connection, plans: dict[str, sqlite3.Row]) -> None:
        for name, fee in self.seen.plans.items():
            assert name in plans, f"{name} was acknowledged and is lost"
            assert plans[name]["fee_micros"] == round(float(fee) * MICROS)
        assert set(plans) - {"held"} <= self.seen.tried_plans
        bought = Counter(
            row["subject"] for row in store.execute("SELECT * FROM events WHERE to_state = 'Pending'")
        )
        assert set(bought.values()) <= {1}, "a plan was bought twice"

    def _check_books(self, store: sqlite3.Connection, plans: dict[str, sqlite3.Row]) -> None:
        billed = [(row["subject"], row["amount_micros"]) for row in store.execute("SELECT * FROM ledger")]
        paid = [
            (row["arn"], row["fee_micros"])
            for row in plans.values()
            if row["status"] in ("Scheduled", "Active", "Expired")
        ]
        assert sorted(billed) == sorted(paid)

    def _check_calendar(self, store: sqlite3.Connection, plans: dict[str, sqlite3.Row]) -> None:
        bookings = store.execute("SELECT * FROM bookings").fetchall()
        holders = Counter(row["holder"] for row in bookings)
        assert set(holders.values()) <= {1}, "hosts were booked twice for one plan"
        recent = {row["arn"] for row in plans.values() if row["end_us"] > _now_us(store)}
        assert recent <= set(holders)
        hosts = {"use1-az1/trn1.32xlarge": 4, "use1-az2/trn1.32xlarge": 2}
        for pool, limit in hosts.items():
            assert max(_levels([row for row in bookings if row["pool"] == pool])) <= limit, pool

    def _check_endpoints(self, store: sqlite3.Connection) -> None:
        there = {row["name"]: row["status"] for row in store.execute("SELECT * FROM endpoints")}
        lost = self.seen.endpoints - self.seen.deleting - set(there)
        assert not lost, f"{lost} were acknowledged and are lost"
        assert not self.seen.deleted & set(there), "deleted endpoints came back"
        held = store.execute("SELECT coalesce(sum(count), 0) FROM variants").fetchone()[0]
        assert held <= 2, "more instances are in use than the plan has"

    def _check_log(self, store: sqlite3.Connection) -> None:
        wrote = store.execute(
            "SELECT count(*) FROM calls WHERE wrote = 1 AND operation IN"
            " ('CreateTrainingPlan', 'CreateEndpoint', 'DeleteEndpoint')"
        ).fetchone()[0]
        assert wrote >= self.seen.writes, "an acknowledged call is not in the log"

    def close(self) -> None:
        """Stop in order; nothing may be left of it either."""
        self.yard.stop()
        assert wait_until_none(self.yard.folder.path, GONE_WITHIN_S) == {}


def _now_us(store: sqlite3.Connection) -> int:
    return int(store.execute("SELECT value FROM meta WHERE key = 'clock'").fetchone()[0])


def _levels(bookings: list[sqlite3.Row]) -> Iterator[int]:
    """How many hosts are promised at each instant at which that changes, half hours rounded outwards."""
    half = round(timedelta(minutes=30).total_seconds()) * MICROS
    changes: Counter[int] = Counter()
    for row in bookings:
        changes[row["start_us"] // half] += row["count"]
        changes[-(-row["end_us"] // half)] -= row["count"]
    level = 0
    yield level
    for slot in sorted(changes):
        level += changes[slot]
        yield level
