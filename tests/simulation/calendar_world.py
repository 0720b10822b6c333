"""A yard that sells blocks and plans, in memory, driven step by step and counted again from its own rows.

Shared by the stateful test and by the benchmark that takes a million steps. Real are the store's tables,
the transactions, the operations, the timers and the calendars; network, engine and disk are not there.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import numpy as np

from berth.storage.sqlite import migrate
from berth.terms.clock import SystemClock
from berth.terms.ids import SeededIds
from berth.terms.instants import from_micros
from berth.terms.window import Window
from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.faults import Fault, FaultKind, Faults
from berth.yard.fleet.calendars import FleetCalendars
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.fleet_file import load_fleet
from berth.yard.fleet.zones import ZoneNames
from berth.yard.identity.accounts import Account
from berth.yard.lifecycle.clock import YardClock
from berth.yard.lifecycle.timers import Timekeeper, Timer
from berth.yard.market import bookings
from berth.yard.market.block_ids import PoolNumbers
from berth.yard.opening import MIGRATIONS
from berth.yard.services import catalogue
from berth.yard.services.ec2.block_life import BLOCK_TIMERS
from berth.yard.services.operation import Call, find
from berth.yard.services.sagemaker.plan_life import PLAN_TIMERS
from berth.yard.store.transaction import Transaction
from berth.yard.store.writer import GroupCommit, SerialWriter

assert catalogue.SERVICES

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
REGION = "us-east-1"
TYPES = ("p5.48xlarge", "trn1.32xlarge")
HOURS = (24, 48, 168, 336, 504)
LIVE_BLOCKS = ("payment-pending", "scheduled", "active")
LIVE_PLANS = ("Pending", "Scheduled", "Active")
FLEET = """
kind = "rehearsal"
payment_delay = "5m"

[blocks]
payment_delay_max = "20h"
shown_after_end = "3d"

[[regions]]
name = "us-east-1"
zones = ["use1-az1", "use1-az2"]

[[hardware]]
type = "p5.48xlarge"

[[hardware]]
type = "trn1.32xlarge"

[[pools]]
hardware = "p5.48xlarge"
hosts = { use1-az1 = 6, use1-az2 = 3 }

[[pools]]
hardware = "trn1.32xlarge"
hosts = { use1-az1 = 5 }
caps = { ec2 = 3, sagemaker = 4 }

[[price_lists]]
name = "only"
from = 2026-01-01T00:00:00Z
rates = [
  { hardware = "p5.48xlarge", usd_per_hour = 47.757, assumed = true },
  { hardware = "trn1.32xlarge", usd_per_hour = 9.532, assumed = true },
]

[quotas]
training_plans = 100000

[quotas.reserved_capacity]
"*" = 100000
"""


class Cancelled(Exception):
    """A transaction that does its work and then fails, as on a full disk."""


@dataclass
class World:
    """One yard and what was tried on it. `done` counts what came of the steps."""

    seed: int = 0
    fleet: Fleet = field(default_factory=lambda: load_fleet(FLEET, "world"))
    done: Counter[str] = field(default_factory=Counter)
    known: list[tuple[str, str]] = field(default_factory=list)  # (operation, offering id), some of them old

    def __post_init__(self) -> None:
        self.store = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.store.row_factory = sqlite3.Row
        self.store.execute("PRAGMA foreign_keys=ON")
        migrate(self.store, MIGRATIONS)
        self.store.execute("INSERT INTO meta VALUES ('clock', '0')")
        ids, real = SeededIds(self.seed), SystemClock()
        clock = YardClock(real, NOW)
        self.writer = SerialWriter(GroupCommit(self.store, clock.now, ids))
        keys = sorted(self.fleet.pools)
        self.yard = Yard(
            fleet=self.fleet, calendars=FleetCalendars(self.fleet, NOW),
            zone_names=lambda account, region: ZoneNames.for_account(account, self.fleet.regions[region]),
            offering_key=b"world", session_key=b"world",
            pool_numbers=PoolNumbers.of({key: n for n, key in enumerate(keys)}),
            clock=clock, real=real, ids=ids, faults=Faults(), **_not_there(),
        )  # fmt: skip
        self.accounts = [Account(f"{number:012d}", f"a{number}") for number in (1, 2)]
        self.keeper = Timekeeper(self.writer, clock, real, self._timers(), lambda: True)
        self.do(bookings.begin_days)
        self._plans = 0

    def _timers(self) -> dict[str, Timer]:
        def bound(play: Callable[[Transaction, Yard, str], None]) -> Timer:
            return Timer(lambda tx, subject: play(tx, self.yard, subject))

        kinds = {kind: bound(play) for kind, (play, _) in PLAN_TIMERS.items()}
        kinds |= {kind: bound(play) for kind, play in BLOCK_TIMERS.items()}
        kinds[bookings.DAY_TIMER] = Timer(lambda tx, _: bookings.play_day(tx, self.yard.calendars))
        return kinds

    def do(self, work: Callable[[Transaction], Any]) -> Any:
        """One transaction."""
        return self.writer.submit(work).result()

    def call(self, service: str, name: str, account: int = 0, fails: bool = False, **params: Any) -> Any:
        """One operation of an account in a transaction; with `fails` it does all and is taken back."""
        operation = find(service, name)
        assert operation is not None, name
        call = Call(self.accounts[account], REGION, service, name, params, "r", self.yard.clock.now())

        def work(tx: Transaction) -> Any:
            result = operation.run(call, self.yard, tx)
            if fails:
                raise Cancelled
            return result

        return self.do(work)

    # -- steps -------------------------------------------------------------------------------------------
    def search_blocks(self, type_: str, count: int, hours: int, lead_hours: int, account: int) -> None:
        """Look for blocks; what is found may be bought later."""
        start = self.yard.clock.now() + timedelta(hours=lead_hours)
        found = self.call(
            "ec2", "DescribeCapacityBlockOfferings", account, InstanceType=type_, InstanceCount=count,
            CapacityDurationHours=hours, StartDateRange=start,
        )["CapacityBlockOfferings"]  # fmt: skip
        self._remember("PurchaseCapacityBlock", [offer["CapacityBlockOfferingId"] for offer in found])

    def search_plans(self, type_: str, count: int, hours: int, lead_hours: int, account: int) -> None:
        """Look for plans."""
        start = self.yard.clock.now() + timedelta(hours=lead_hours)
        found = self.call(
            "sagemaker", "SearchTrainingPlanOfferings", account, InstanceType=f"ml.{type_}",
            InstanceCount=count, DurationHours=hours, StartTimeAfter=start, TargetResources=["endpoint"],
        )["TrainingPlanOfferings"]  # fmt: skip
        self._remember("CreateTrainingPlan", [offer["TrainingPlanOfferingId"] for offer in found])

    def _remember(self, operation: str, ids: list[str]) -> None:
        self.done[f"{operation}: found"] += len(ids)
        self.known += [(operation, offering_id) for offering_id in ids]
        del self.known[:-40]

    def buy(self, which: int, account: int, fails: bool) -> None:
        """Buy an offer that somebody found at some time, perhaps not this account, perhaps long ago."""
        if not self.known:
            return
        operation, offering_id = self.known[which % len(self.known)]
        try:
            if operation == "PurchaseCapacityBlock":
                self.call(
                    "ec2", operation, account, fails, CapacityBlockOfferingId=offering_id,
                    InstancePlatform="Linux/UNIX",
                )  # fmt: skip
            else:
                self._plans += 1
                self.call(
                    "sagemaker", operation, account, fails, TrainingPlanName=f"p{self._plans}",
                    TrainingPlanOfferingId=offering_id,
                )  # fmt: skip
            self.done[f"{operation}: bought"] += 1
        except ServiceError as refused:
            self.done[f"{operation}: {refused.code}"] += 1
        except Cancelled:
            self.done[f"{operation}: taken back"] += 1

    def spoil_next(self, kind: FaultKind, operation: str) -> None:
        """The next purchase meets a fault."""
        self.yard.faults.clear()
        self.yard.faults.arm(Fault(1, kind, operation, times=1))

    def advance(self, minutes: int) -> None:
        """Let time pass: payments, starts, ends happen."""
        self.done["timers"] += self.keeper.move_to(self.yard.clock.now() + timedelta(minutes=minutes))

    def restart(self) -> None:
        """Forget the calendars and count them from the rows, as a yard does when it opens."""
        object.__setattr__(self.yard, "calendars", self._recounted())
        self.done["restarts"] += 1

    # -- counting again ----------------------------------------------------------------------------------
    def _recounted(self) -> FleetCalendars:
        fresh = FleetCalendars(self.fleet, self.yard.clock.now())
        for row in self.store.execute("SELECT * FROM bookings"):
            window = Window(from_micros(row["start_us"]), from_micros(row["end_us"]))
            if window.end > self.yard.clock.now():
                fresh.commit(row["pool"], row["face"], window, row["count"])
        return fresh

    def _holdings(self) -> Iterator[tuple[str, str, int, int, int]]:
        """(pool, face, start, end, count) of everything that lives, from the resources' own rows."""
        for table, face, live in (
            ("capacity_reservations", "ec2", LIVE_BLOCKS),
            ("training_plans", "sagemaker", LIVE_PLANS),
        ):
            marks = ", ".join("?" * len(live))
            for row in self.store.execute(f"SELECT * FROM {table} WHERE status IN ({marks})", live):
                yield row["pool"], face, row["start_us"], row["end_us"], row["count"]

    def check(self) -> None:
        """Nothing promised twice; the calendars, the bookings and the resources tell the same."""
        now = self.yard.clock.now()
        booked = [
            (row["pool"], row["face"], row["start_us"], row["end_us"], row["count"])
            for row in self.store.execute("SELECT * FROM bookings")
            if from_micros(row["end_us"]) > now
        ]
        assert Counter(booked) == Counter(self._holdings())
        fresh = self._recounted()
        forever = Window(now, now + timedelta(days=260))
        for key, pool in self.fleet.pools.items():
            kept, counted = self.yard.calendars.pool(key), fresh.pool(key)
            kept.roll_to(now)
            here = (now - kept.base) // timedelta(minutes=30)
            assert np.array_equal(kept._slots[here:], counted._slots[here:])
            assert np.array_equal(kept._days[1:], counted._days[1:])
            assert kept.committed_max(forever) <= pool.shares.reservable
            for face in pool.faces:
                capped = self.yard.calendars.face(key, face)
                if capped is not None:
                    assert capped.committed_max(forever) <= pool.limit(face)

    def check_ledger(self) -> None:
        """Paid is what was ever paid for, once each, and nothing else."""
        paid = [row[0] for row in self.store.execute("SELECT subject FROM ledger")]
        moved = [
            row[0]
            for row in self.store.execute(
                "SELECT subject FROM events WHERE to_state IN ('scheduled', 'Scheduled')"
                " AND from_state IS NOT NULL"
            )
        ]
        assert sorted(paid) == sorted(moved)
        assert len(set(paid)) == len(paid)

    def close(self) -> None:
        """Forget everything."""
        self.store.close()


def _not_there() -> dict[str, Any]:
    """The parts of a yard that no step reaches."""
    known = {
        "fleet",
        "calendars",
        "zone_names",
        "offering_key",
        "session_key",
        "pool_numbers",
        "clock",
        "real",
        "ids",
        "faults",
    }
    return {name: cast(Any, None) for name in Yard.__dataclass_fields__ if name not in known}
