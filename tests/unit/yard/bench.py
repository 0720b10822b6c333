"""A whole yard in the test's own thread: real store, rules and timers; an engine that only remembers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from berth.terms.clock import SystemClock
from berth.terms.ids import SeededIds
from berth.terms.instants import iso
from berth.yard.data_folder import DataFolder
from berth.yard.engines.engine import Answer, Container, EngineRefused, Invocation, Report, ReportKind
from berth.yard.engines.provisioner import ArtefactProblem, Order
from berth.yard.fleet.fleet import Fleet
from berth.yard.fleet.fleet_file import load_fleet
from berth.yard.identity.accounts import Account, access_keys, add_account
from berth.yard.opening import Doors, open_yard
from berth.yard.services.operation import Call, Kind, find
from berth.yard.store.transaction import Row

START = "2026-12-01T09:00:00Z"
NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
SMALL = Path(__file__).with_name("small.toml")
TYPE = "ml.trn1.32xlarge"


def small_fleet(more: str = "", **replaced: str) -> Fleet:
    """The fleet of small.toml, with some of its text replaced and `more` added."""
    text = SMALL.read_text("utf-8")
    for old, new in replaced.items():
        text = text.replace(old.replace("_", " "), new)
    return load_fleet(text + more, "small.toml")


class RememberingEngine:
    """Starts nothing: it remembers what it was told, and reports what a test says."""

    name = "remembering"

    def __init__(self, report: Callable[[Report], None], most_accounts: int = 99) -> None:
        self.started: list[Container] = []
        self.stopped: list[str] = []
        self.closed = False
        self._report, self._most = report, most_accounts

    def start(self, container: Container) -> None:
        """Remember it."""
        self.started.append(container)

    def stop(self, key: str) -> None:
        """Remember it; nothing runs, so it has ended at once."""
        self.stopped.append(key)
        self._report(Report(key, ReportKind.STOPPED))

    def say(self, kind: ReportKind, reason: str = "", key: str | None = None) -> None:
        """Report about the container started last, or about `key`."""
        self._report(Report(key or self.started[-1].key, kind, reason))

    async def invoke(self, key: str, invocation: Invocation) -> Answer:
        """Echo."""
        return Answer(200, {}, invocation.body)

    def settled(self) -> bool:
        """Always: it has no processes."""
        return True

    def describe(self) -> Mapping[str, str]:
        """Nothing to say."""
        return {}

    def allow_accounts(self, count: int) -> None:
        """As many as the test allows."""
        if count > self._most:
            raise EngineRefused(f"{count} accounts are too many")

    def logs(self, key: str, last_bytes: int = 4096) -> str:
        """Nothing was printed."""
        return ""

    def close(self) -> None:
        """Remember that too."""
        self.closed = True


def no_artefacts(order: Order, url: str, into: Path) -> None:
    """Models of these tests have no data; one that names `s3://broken/` meets a fault of ours."""
    if url.startswith("s3://broken/"):
        raise AssertionError(f"a fault, at {url}")
    raise ArtefactProblem(f"there is nothing at {url}")


class Bench:
    """An opened yard, driven by hand."""

    def __init__(
        self,
        path: Path,
        fleet: Fleet | None = None,
        clock: str = START,
        most_accounts: int = 99,
        seed: int = 7,
    ) -> None:
        folder = DataFolder(path)
        folder.prepare()
        self.engines: list[RememberingEngine] = []

        def engine(report: Callable[[Report], None]) -> RememberingEngine:
            self.engines.append(RememberingEngine(report, most_accounts))
            return self.engines[-1]

        doors = Doors(engine, no_artefacts, SystemClock(), SeededIds(seed), threaded=False)
        self.opened = open_yard(folder, fleet or small_fleet(), clock, doors)
        self.yard, self.writer = self.opened.yard, self.opened.writer
        self.opened.restart()
        self.account = next(iter(self.do(access_keys).values())).account
        self.path = path

    @property
    def engine(self) -> RememberingEngine:
        """The engine."""
        return self.engines[-1]

    def close(self) -> None:
        """Close the yard in order."""
        self.opened.close()

    def do(self, work: Callable[[Any], Any]) -> Any:
        """Do `work` in a transaction; its result."""
        return self.writer.submit(work).result()

    def add_account(self, name: str) -> Account:
        """One more account."""
        account: Account = self.do(lambda tx: add_account(tx, name)).account
        return account

    def call(
        self,
        name: str,
        *,
        account: Account | None = None,
        region: str = "us-east-1",
        service: str = "sagemaker",
        lag: timedelta = timedelta(0),
        **params: Any,
    ) -> Any:
        """Run one operation as a request that passed signature and validation."""
        operation = find(service, name)
        assert operation is not None, name
        call = Call(
            account or self.account, region, service, name, params, "request", self.yard.clock.now(), lag
        )
        if operation.kind is Kind.WRITE:
            return self.do(lambda tx: operation.run(call, self.yard, tx))
        with self.opened.reader.snapshot() as rows:
            return operation.run(call, self.yard, rows)

    def advance(self, **span: float) -> int:
        """Advance the clock; how many timers were played."""
        return self.opened.timekeeper.move_to(self.yard.clock.now() + timedelta(**span))

    def move(self, to: datetime) -> int:
        """Set the clock."""
        return self.opened.timekeeper.move_to(to)

    def rows(self, sql: str, *values: Any) -> list[Row]:
        """What the store holds."""
        found: list[Row] = self.do(lambda tx: tx.all(sql, *values))
        return found

    def offer(self, count: int = 1, hours: int = 24, **more: Any) -> Any:
        """The first scheduled offering for endpoints."""
        found = self.call(
            "SearchTrainingPlanOfferings", InstanceType=TYPE, InstanceCount=count, DurationHours=hours,
            **{"TargetResources": ["endpoint"], **more},
        )["TrainingPlanOfferings"]  # fmt: skip
        return found[0] if found else None

    def buy(self, name: str, count: int = 1, hours: int = 24, **more: Any) -> str:
        """Buy the first offering; the plan's ARN."""
        offer = self.offer(count, hours, **more)
        arn: str = self.call(
            "CreateTrainingPlan",
            TrainingPlanName=name,
            TrainingPlanOfferingId=offer["TrainingPlanOfferingId"],
        )["TrainingPlanArn"]
        return arn

    def plan(self, name: str) -> Any:
        """DescribeTrainingPlan."""
        return self.call("DescribeTrainingPlan", TrainingPlanName=name)

    def active_plan(self, name: str, count: int = 1) -> str:
        """A plan that was bought, paid and has begun; its ARN."""
        arn = self.buy(name, count)
        self.move(self.plan(name)["StartTime"])
        return arn

    def config(self, name: str, plan: str | None, **variant: Any) -> None:
        """A model and a configuration of one variant, both called `name`."""
        self.call("CreateModel", ModelName=name, PrimaryContainer={"Image": "rehearsal/echo:1"})
        reservation = {
            "CapacityReservationConfig": {
                "CapacityReservationPreference": "capacity-reservations-only",
                "MlReservationArn": plan,
            }
        }
        self.call(
            "CreateEndpointConfig", EndpointConfigName=name,
            ProductionVariants=[
                {
                    "VariantName": "v", "ModelName": name, "InstanceType": TYPE, "InitialInstanceCount": 1,
                    **(reservation if plan else {}), **variant,
                }
            ],
        )  # fmt: skip

    def create_endpoint(self, name: str, config: str) -> None:
        """CreateEndpoint, and wait until the engine was told."""
        self.call("CreateEndpoint", EndpointName=name, EndpointConfigName=config)
        self.settle()

    def settle(self) -> None:
        """Wait for the thread that hands containers to the engine."""
        while not self.yard.provisioner.settled():
            time.sleep(0.001)

    def endpoint(self, name: str) -> Any:
        """DescribeEndpoint."""
        return self.call("DescribeEndpoint", EndpointName=name)

    def moves(self, ending: str) -> list[tuple[str, str | None, str]]:
        """The moves of the resource whose ARN ends so: (when, from, to)."""
        return [
            (iso_of(row["at_us"]), row["from_state"], row["to_state"])
            for row in self.rows("SELECT * FROM events WHERE to_state IS NOT NULL ORDER BY event_id")
            if row["subject"].endswith(ending)
        ]


def iso_of(micros: int) -> str:
    """Microseconds as ISO 8601."""
    return iso(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros))
