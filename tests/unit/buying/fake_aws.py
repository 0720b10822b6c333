"""AWS in memory with a ledger: training plans and Capacity Blocks, with faults, lag and stops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from berth.orders.order import Order, OrderKey
from berth.orders.shops.capacity_blocks import BlockShop
from berth.orders.shops.shop import Shop
from berth.orders.shops.training_plans import PlanShop
from berth.planner.offers import Offer, PlaceAnswer, PlaceOutcome, Query, Segment
from berth.planner.platforms import LINUX
from berth.terms.ids import SeededIds
from berth.terms.money import Money
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
        self.ahead = timedelta(0)
        self.real = 0.0

    @property
    def is_simulated(self) -> bool:
        """Whether it stands still, as a yard's clock does."""
        return self.stands

    def now(self) -> datetime:
        """The present; `ahead` is how wrong it is."""
        return self.at + self.ahead

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


def client_error(code: str, status: int = 400, operation: str = "CreateTrainingPlan") -> ClientError:
    """An error as botocore raises it."""
    return ClientError(
        {"Error": {"Code": code, "Message": f"says {code}"}, "ResponseMetadata": {"HTTPStatusCode": status}},
        operation,
    )


class FakeAws:
    """What both fakes have: offers, faults, lag, and a ledger of (reservation, fee) of every sale."""

    way: Way
    paid: str  # AWS's name of the paid call
    reads: tuple[str, ...]  # its reads, the one that lists last
    instance_type: str
    targets: tuple[str, ...]

    def __init__(self, clock: FakeClock, effects: Effects) -> None:
        self.clock = clock
        self.effects = effects
        self.ledger: list[tuple[str, Decimal]] = []
        self.visible_at: dict[str, datetime] = {}
        self.lag = timedelta(0)
        self.fault: str | None = None  # of the next paid call
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
        """The search as a source reads it; each search gives new ids."""
        self.effects("search:before")
        self.searches.append(query)
        offers = (self.offer(query),) if self.on_sale else ()
        outcome = self.outcome or (PlaceOutcome.OFFERS if offers else PlaceOutcome.NONE_ON_SALE)
        answer = PlaceAnswer(self.way, "us-east-1", outcome, self.clock.now(), "", offers)
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
            way=self.way,
            region="us-east-1",
            offering_id=f"offer-{self._ids.hex(16)}",
            segments=(Segment(window, self.zone_id, "us-east-1d", self.instance_type, 1),),
            count=1,
            instance_type=self.instance_type,
            fee=None if fee is None else Money(fee),
            targets=self.targets,
            seen_at=self.clock.now(),
            query=query or self.query,
            starts_at_once=self.starts_at_once,
        )
        self.offers[offer.offering_id or ""] = offer
        return offer

    @property
    def query(self) -> Query:
        """The question that found what is approved."""
        raise AssertionError("each way has its own")

    @property
    def shop(self) -> Shop:
        """The shop as the program builds it."""
        raise AssertionError("each way has its own")

    def _visible(self, name: str) -> bool:
        return name in self.visible_at and self.visible_at[name] <= self.clock.now()

    def _fail_before(self, fault: str | None) -> None:
        if fault == "gone":
            raise client_error(self.gone, operation=self.paid)
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


class FakePlans(FakeAws):
    """SageMaker training plans of one account."""

    way = Way.TRAINING_PLAN
    paid = "CreateTrainingPlan"
    reads = ("DescribeTrainingPlan", "ListTrainingPlans")
    gone = "ResourceNotFound"
    instance_type = "ml.trn1.32xlarge"
    targets = ("endpoint",)

    def __init__(self, clock: FakeClock, effects: Effects) -> None:
        super().__init__(clock, effects)
        self.plans: dict[str, dict[str, Any]] = {}
        self.tags: dict[str, dict[str, str]] = {}

    @property
    def query(self) -> Query:
        """A day of one instance for an endpoint."""
        return QUERY

    @property
    def shop(self) -> Shop:
        """Training plans."""
        return PlanShop(self, self.search)

    def fail_plan(self, order: Order) -> None:
        """AWS fails what the order bought."""
        self.plans[order.reservation_name]["Status"] = "Failed"

    def strip(self, order: Order) -> None:
        """The mark of what the order bought is gone."""
        self.tags[order.reservation_arn or ""] = {}

    def sell_to_nobody(self, order: Order, offer: Offer) -> None:
        """What the order asked for, bought by somebody else, without its mark."""
        self.sell(order.reservation_name, offer, {})

    # -- the wire --------------------------------------------------------------------------------------
    def create_training_plan(self, **request: Any) -> Mapping[str, Any]:
        """CreateTrainingPlan with the fault that was ordered; a rehearsal never de-duplicates."""
        self.effects("CreateTrainingPlan:before")
        fault, self.fault = self.fault, None
        self._fail_before(fault)
        offer = self.offers.get(request["TrainingPlanOfferingId"])
        if offer is None:
            raise client_error(self.gone)
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

    def describe_training_plan_extension_history(self, **request: Any) -> Mapping[str, Any]:
        """DescribeTrainingPlanExtensionHistory: nothing was extended (`fake_extensions` has what was)."""
        return {"TrainingPlanExtensions": []}

    def list_tags(self, **request: Any) -> Mapping[str, Any]:
        """ListTags."""
        self.effects("ListTags:before")
        self.read_fault("ListTags")
        tags = self.tags.get(request["ResourceArn"], {})
        self.effects("ListTags:after")
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


class FakeBlocks(FakeAws):
    """EC2 Capacity Blocks of one account; the same offer may be sold twice, and tags are all that is ours."""

    way = Way.CAPACITY_BLOCK
    paid = "PurchaseCapacityBlock"
    reads = ("DescribeCapacityReservations",)
    gone = "InvalidCapacityBlockOfferingIdExpired"
    instance_type = "p5.48xlarge"
    targets = ("instances",)

    def __init__(self, clock: FakeClock, effects: Effects) -> None:
        super().__init__(clock, effects)
        self.blocks: dict[str, dict[str, Any]] = {}

    @property
    def query(self) -> Query:
        """A day of one instance."""
        return replace(
            QUERY, way=self.way, instance_type=self.instance_type, target=Target.INSTANCES, platform=LINUX
        )

    @property
    def shop(self) -> Shop:
        """Capacity Blocks."""
        return BlockShop(self, self.search)

    def describe_capacity_block_extension_history(self, **request: Any) -> Mapping[str, Any]:
        """DescribeCapacityBlockExtensionHistory: nothing was extended."""
        return {"CapacityBlockExtensions": []}

    # -- the wire --------------------------------------------------------------------------------------
    def purchase_capacity_block(self, **request: Any) -> Mapping[str, Any]:
        """PurchaseCapacityBlock with the fault that was ordered; nothing is ever de-duplicated."""
        self.effects("PurchaseCapacityBlock:before")
        fault, self.fault = self.fault, None
        self._fail_before(fault)
        offer = self.offers.get(request["CapacityBlockOfferingId"])
        if offer is None:
            raise client_error(self.gone, operation=self.paid)
        assert request["InstancePlatform"] == LINUX
        (specification,) = request["TagSpecifications"]
        assert specification["ResourceType"] == "capacity-reservation"
        tags = {tag["Key"]: tag["Value"] for tag in specification["Tags"]}
        block_id = self.sell(offer, tags)
        self._fail_after(fault)
        self.effects("PurchaseCapacityBlock:after")
        made = dict(self.blocks[block_id])
        return {} if fault == "no ARN" else {"CapacityReservation": self.change_answer(made)}

    def sell(self, offer: Offer, tags: dict[str, str]) -> str:
        """Make the block and take the money; its id."""
        assert offer.fee is not None
        block_id = f"cr-{self._ids.hex(17)}"
        self.ledger.append((block_id, offer.fee.amount))
        window, part = offer.paid_window, offer.segments[0]
        size = {
            "aws:ec2capacityreservation:incrementalRequestedQuantity": str(offer.count),
            "aws:ec2capacityreservation:capacityReservationType": "capacity-block",
        }
        self.blocks[block_id] = {
            "CapacityReservationId": block_id,
            "OwnerId": ACCOUNT,
            "CapacityReservationArn": f"arn:aws:ec2:us-east-1:{ACCOUNT}:capacity-reservation/{block_id}",
            "AvailabilityZoneId": part.zone_id,
            "AvailabilityZone": part.zone_name,
            "InstanceType": offer.instance_type,
            "InstancePlatform": offer.platform,
            "Tenancy": "default",
            "TotalInstanceCount": 0,
            "AvailableInstanceCount": 0,
            "State": "payment-pending",
            "StartDate": window.start,
            "EndDate": window.end,
            "EndDateType": "limited",
            "CreateDate": self.clock.now(),
            "ReservationType": "capacity-block",
            "Tags": [{"Key": key, "Value": value} for key, value in (size | tags).items()],
        }
        self.visible_at[block_id] = self.clock.now() + self.lag
        return block_id

    def describe_capacity_reservations(self, **request: Any) -> Mapping[str, Any]:
        """DescribeCapacityReservations by id or in pages, late by `lag`; no filter."""
        assert set(request) <= {"CapacityReservationIds", "MaxResults", "NextToken"}
        self.effects("DescribeCapacityReservations:before")
        self.read_fault("DescribeCapacityReservations")
        ids = request.get("CapacityReservationIds")
        if ids and not all(self._visible(one) for one in ids):
            raise client_error("InvalidCapacityReservationId.NotFound", operation=self.reads[0])
        shown = [one for one in (ids or sorted(self.blocks)) if self._visible(one)]
        first = int(request.get("NextToken", "0"))
        last = len(shown) if ids else first + self.page_size
        found = [self.change_answer(dict(self.blocks[one])) for one in shown[first:last]]
        answer: dict[str, Any] = {"CapacityReservations": found}
        if last < len(shown):
            answer["NextToken"] = str(last)
        self.effects("DescribeCapacityReservations:after")
        return answer

    # -- what a test does to them ----------------------------------------------------------------------
    def tags_of(self, block_id: str) -> dict[str, str]:
        """The tags of a block."""
        return {tag["Key"]: tag["Value"] for tag in self.blocks[block_id]["Tags"]}

    def fail_plan(self, order: Order) -> None:
        """The payment of what the order bought does not come through."""
        self.blocks[(order.reservation_arn or "").rpartition("/")[2]]["State"] = "payment-failed"

    def strip(self, order: Order) -> None:
        """The tags of what the order bought are gone."""
        self.blocks[(order.reservation_arn or "").rpartition("/")[2]]["Tags"] = []

    def sell_to_nobody(self, order: Order, offer: Offer) -> None:
        """What the order asked for, bought by somebody else, without its mark."""
        self.sell(offer, {})


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
