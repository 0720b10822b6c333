"""AWS in memory with a ledger: a test may stop the buyer at every wire call and every commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from berth.orders.desk import Desk
from berth.orders.journal import Journal, open_journal
from berth.orders.order import Approval, Order, OrderKey
from berth.orders.purchase import Purchase, buy
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.terms.ids import SeededIds
from berth.terms.money import Money
from berth.terms.outcomes import Spending
from berth.terms.ways import Target, Way
from berth.terms.window import Window

ACCOUNT = "111122223333"
START = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
WINDOW = Window(datetime(2027, 3, 2, 11, 30, tzinfo=UTC), datetime(2027, 3, 3, 11, 30, tzinfo=UTC))
FEE = Decimal("228.77")


class SimulatedCrash(BaseException):
    """The process dies here: nothing in it may catch this."""


class FakeClock:
    """A clock that moves by sleeping (unless it stands still) and by the test."""

    def __init__(self, at: datetime = START, stands: bool = False) -> None:
        self.at = at
        self.stands = stands
        self.real = 0.0

    @property
    def is_simulated(self) -> bool:
        """Whether it stands still, as a yard's clock does."""
        return self.stands

    def now(self) -> datetime:
        """The present."""
        return self.at

    def elapsed(self) -> float:
        """Real seconds."""
        return self.real

    def sleep(self, seconds: float) -> None:
        """Let real time pass; this clock goes along unless it stands still."""
        self.real += seconds
        if not self.stands:
            self.at += timedelta(seconds=seconds)

    def advance(self, **span: float) -> None:
        """Move the clock."""
        self.at += timedelta(**span)


class Effects:
    """Counts effects and stops the process at the one that was chosen."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.stop_at: int | None = None

    def __call__(self, effect: str) -> None:
        """Called before and after each effect."""
        self.log.append(effect)
        if self.stop_at is not None and len(self.log) == self.stop_at:
            raise SimulatedCrash(effect)


@dataclass
class FakeHolders:
    """Processes by name; a test kills them."""

    name: str = "p1"
    alive: set[str] = field(default_factory=lambda: {"p1"})

    def me(self) -> str:
        """This process."""
        return self.name

    def lives(self, holder: str) -> bool | None:
        """Whether it lives."""
        return holder in self.alive

    def restart(self) -> None:
        """The process dies and another takes its place."""
        self.alive.discard(self.name)
        self.name = f"p{int(self.name[1:]) + 1}"
        self.alive.add(self.name)


def client_error(code: str, status: int = 400, operation: str = "CreateTrainingPlan") -> ClientError:
    """An error as botocore raises it."""
    return ClientError(
        {"Error": {"Code": code, "Message": f"says {code}"}, "ResponseMetadata": {"HTTPStatusCode": status}},
        operation,
    )


class FakeAws:
    """Training plans of one account. `ledger` holds (plan name, fee) of every sale."""

    def __init__(self, clock: FakeClock, effects: Effects) -> None:
        self.clock = clock
        self.effects = effects
        self.ledger: list[tuple[str, Decimal]] = []
        self.plans: dict[str, dict[str, Any]] = {}
        self.tags: dict[str, dict[str, str]] = {}
        self.visible_at: dict[str, datetime] = {}
        self.lag = timedelta(0)
        self.fault: str | None = None  # of the next CreateTrainingPlan
        self.read_fault: Callable[[str], None] = lambda operation: None
        self.change_answer: Callable[[dict[str, Any]], dict[str, Any]] = lambda answer: answer
        self.offers: dict[str, Offer] = {}
        self.fee: Decimal | None = FEE
        self.on_sale = True
        self.outcome: PlaceOutcome | None = None
        self.starts_at_once = False
        self.zone_id = "use1-az4"
        self.page_size = 100
        self.searches: list[Query] = []
        self._ids = SeededIds(7)

    # -- searching -------------------------------------------------------------------------------------
    def search(self, query: Query) -> PlaceAnswer:
        """SearchTrainingPlanOfferings as a source reads it; each search gives new ids."""
        self.effects("search:before")
        self.searches.append(query)
        offers = (self.offer(query),) if self.on_sale else ()
        outcome = self.outcome or (PlaceOutcome.OFFERS if offers else PlaceOutcome.NONE_ON_SALE)
        answer = PlaceAnswer(Way.TRAINING_PLAN, "us-east-1", outcome, self.clock.now(), "", offers)
        self.effects("search:after")
        return answer

    def offer(self, query: Query | None = None) -> Offer:
        """An offer as it can be had now."""
        window = WINDOW
        fee = self.fee
        if self.starts_at_once:
            start = (self.clock.now() + timedelta(minutes=30)).replace(second=0, microsecond=0)
            window = Window(start, WINDOW.end)
            hours = Decimal(int(window.duration.total_seconds())) / 3600
            fee = None if fee is None else (fee / 24 * hours).quantize(Decimal("0.01"))
        offer = Offer(
            way=Way.TRAINING_PLAN,
            region="us-east-1",
            offering_id=f"tpo-{self._ids.hex(16)}",
            segments=(Segment(window, self.zone_id, "us-east-1d", "ml.trn1.32xlarge", 1),),
            count=1,
            instance_type="ml.trn1.32xlarge",
            fee=None if fee is None else Money(fee),
            targets=("endpoint",),
            seen_at=self.clock.now(),
            query=query or QUERY,
            starts_at_once=self.starts_at_once,
        )
        self.offers[offer.offering_id or ""] = offer
        return offer

    # -- the wire --------------------------------------------------------------------------------------
    def create_training_plan(self, **request: Any) -> Mapping[str, Any]:
        """CreateTrainingPlan with the fault that was ordered; a rehearsal never de-duplicates."""
        self.effects("CreateTrainingPlan:before")
        fault, self.fault = self.fault, None
        self._fail_before(fault)
        offer = self.offers.get(request["TrainingPlanOfferingId"])
        if offer is None:
            raise client_error("ResourceNotFound")
        name = request["TrainingPlanName"]
        if name in self.plans:
            raise client_error("ResourceInUse")
        tags = {tag["Key"]: tag["Value"] for tag in request["Tags"]}
        arn = self.sell(name, offer, tags)
        self._fail_after(fault)
        self.effects("CreateTrainingPlan:after")
        return {} if fault == "no ARN" else {"TrainingPlanArn": arn}

    def sell(self, name: str, offer: Offer, tags: dict[str, str]) -> str:
        """Make the plan and take the money."""
        assert offer.fee is not None
        arn = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/{name}"
        self.ledger.append((name, offer.fee.amount))
        window = offer.paid_window
        self.plans[name] = {
            "TrainingPlanArn": arn,
            "TrainingPlanName": name,
            "Status": "Pending",
            "StatusMessage": "Payment is under way.",
            "UpfrontFee": str(offer.fee.amount),
            "CurrencyCode": "USD",
            "StartTime": window.start,
            "EndTime": window.end,
            "TotalInstanceCount": 1,
            "AvailableInstanceCount": 1,
            "InUseInstanceCount": 0,
            "TargetResources": list(offer.targets),
            "ReservedCapacitySummaries": [
                {"InstanceType": offer.instance_type, "AvailabilityZone": "us-east-1d", "Status": "Pending"}
            ],
        }
        self.tags[arn] = tags
        self.visible_at[name] = self.clock.now() + self.lag
        return arn

    def describe_training_plan(self, *, TrainingPlanName: str) -> Mapping[str, Any]:  # noqa: N803
        """DescribeTrainingPlan, late by `lag`."""
        self.effects("DescribeTrainingPlan:before")
        self.read_fault("DescribeTrainingPlan")
        if not self._visible(TrainingPlanName):
            raise client_error("ResourceNotFound", operation="DescribeTrainingPlan")
        answer = self.change_answer(dict(self.plans[TrainingPlanName]))
        self.effects("DescribeTrainingPlan:after")
        return answer

    def list_training_plans(self, **request: Any) -> Mapping[str, Any]:
        """ListTrainingPlans in pages, late by `lag`."""
        self.effects("ListTrainingPlans:before")
        self.read_fault("ListTrainingPlans")
        names = [name for name in sorted(self.plans) if self._visible(name)]
        first = int(request.get("NextToken", "0"))
        last = first + self.page_size
        answer: dict[str, Any] = {"TrainingPlanSummaries": [self.plans[name] for name in names[first:last]]}
        if last < len(names):
            answer["NextToken"] = str(last)
        self.effects("ListTrainingPlans:after")
        return answer

    def list_tags(self, **request: Any) -> Mapping[str, Any]:
        """ListTags."""
        self.effects("ListTags:before")
        self.read_fault("ListTags")
        tags = self.tags.get(request["ResourceArn"], {})
        self.effects("ListTags:after")
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}

    def _visible(self, name: str) -> bool:
        return name in self.plans and self.visible_at[name] <= self.clock.now()

    @staticmethod
    def _fail_before(fault: str | None) -> None:
        if fault == "gone":
            raise client_error("ResourceNotFound")
        if fault == "throttled":
            raise client_error("ThrottlingException")
        if fault == "no quota":
            raise client_error("ResourceLimitExceeded")
        if fault == "500 before":
            raise client_error("InternalFailure", 500)
        if fault == "no line":
            raise EndpointConnectionError(endpoint_url="http://127.0.0.1:1")
        if fault == "strange":
            raise client_error("TeapotException", 418)

    @staticmethod
    def _fail_after(fault: str | None) -> None:
        if fault == "lost reply":
            raise ReadTimeoutError(endpoint_url="http://127.0.0.1:1")
        if fault == "500 after":
            raise client_error("InternalFailure", 500)
        if fault == "malformed":
            raise ResponseParserError("unable to parse")


QUERY = Query(
    way=Way.TRAINING_PLAN,
    region="us-east-1",
    instance_type="ml.trn1.32xlarge",
    count=1,
    duration_hours=24,
    target=Target.ENDPOINT,
    start_after=START,
    end_before=WINDOW.end + timedelta(days=2),
)
KEY = OrderKey(ACCOUNT, "eval", 1)


class World:
    """One buyer, one journal, one AWS."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.effects = Effects()
        self.aws = FakeAws(self.clock, self.effects)
        self.holders = FakeHolders()
        self.file = folder / "journal.sqlite"
        self.warnings: list[str] = []
        self.spending: list[Spending] = []
        self.approved = self.aws.offer()
        self.ids = SeededIds(1)
        self.journal: Journal = self.open()

    def open(self) -> Journal:
        """Open the journal as a new process does."""
        self.journal = open_journal(self.file, "aws", self.effects)
        return self.journal

    def desk(self) -> Desk:
        """What the buyer leans on."""
        return Desk(
            journal=self.journal,
            clock=self.clock,
            ids=self.ids,
            holders=self.holders,
            reads=self.aws,
            search=self.aws.search,
            tell_spending=self.spending.append,
            warn=self.warnings.append,
        )

    def buy(self, key: OrderKey = KEY, cap: str | None = "250") -> Purchase:
        """Run the purchase of the approved offer."""
        approval = Approval(self.approved, None if cap is None else Money(Decimal(cap)))
        return buy(self.desk(), lambda: self.aws, key, approval)

    def order(self, key: OrderKey = KEY) -> Order:
        """The order as the journal holds it."""
        order = self.journal.order(key)
        assert order is not None
        return order

    def crash(self) -> None:
        """The process is gone; the journal is opened anew."""
        self.effects.stop_at = None
        self.journal.close()
        self.holders.restart()
        self.open()

    def stop_after(self, more: int) -> None:
        """Crash at the `more`-th effect from here."""
        self.effects.stop_at = len(self.effects.log) + more


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[[], World]]:
    """Makes worlds, each with a journal of its own."""
    made: list[World] = []

    def make() -> World:
        folder = tmp_path / f"w{len(made)}"
        folder.mkdir()
        made.append(World(folder))
        return made[-1]

    yield make
    for one in made:
        one.journal.close()


@pytest.fixture
def world(make_world: Callable[[], World]) -> World:
    """One buyer, one journal, one AWS."""
    return make_world()


@pytest.fixture
def crash() -> type[SimulatedCrash]:
    """What a simulated death raises."""
    return SimulatedCrash
