"""AWS in memory with a ledger of extensions, of a block or of a plan, with faults, lag and stops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from berth.orders.extensions.shops import BlockExtensions, ExtensionShop, PlanExtensions
from berth.terms.ids import SeededIds

from .fake_aws import ACCOUNT, WINDOW, Effects, FakeAws, FakeClock, client_error

PAID_AFTER = timedelta(minutes=5)
BLOCK = "cr-0123456789abcdef0"


class FakeExtensions:
    """One reservation that ends at `end`, its offers and its history. `fees` are those of the lengths, in
    the order in which they are offered; an offer's id holds what it says."""

    paid: str
    gone: str
    taken: str

    @property
    def shop(self) -> ExtensionShop:
        """As the program builds it."""
        raise AssertionError("each way has its own")

    def of(self, arn: str) -> None:
        """Be the extensions of that reservation."""
        raise AssertionError("each way has its own")

    def __init__(self, clock: FakeClock, effects: Effects, end: datetime = WINDOW.end) -> None:
        self.clock = clock
        self.effects = effects
        self.first_end = end
        self.rows: list[dict[str, Any]] = []
        self.fees: dict[int, list[str]] = {168: ["7000.00"]}
        self.lag = timedelta(0)
        self.fault: str | None = None
        self.fail_payment = False
        self.read_fault: Callable[[str], None] = lambda operation: None
        self.change_entry: Callable[[dict[str, Any]], dict[str, Any]] = lambda entry: entry
        self.page_size = 1
        self.searches = 0
        self.calls = 0
        self._ids = SeededIds(11)

    # -- what is so --------------------------------------------------------------------------------------
    @property
    def end(self) -> datetime:
        """The reservation's end: those that are paid moved it."""
        return max([self.first_end, *(row["end"] for row in self.rows if self.word(row) == "done")])

    @property
    def ledger(self) -> list[Decimal]:
        """What was paid."""
        return [Decimal(row["fee"]) for row in self.rows if self.word(row) != "failed"]

    def word(self, row: dict[str, Any]) -> str:
        """pending, done, failed."""
        if self.clock.now() < row["at"] + PAID_AFTER:
            return "pending"
        return "failed" if row["fails"] else "done"

    def seen(self) -> list[dict[str, Any]]:
        """The rows that reads show by now."""
        return [row for row in self.rows if row["at"] + self.lag <= self.clock.now()]

    # -- the wire ----------------------------------------------------------------------------------------
    def _search(self, hours: int) -> list[dict[str, Any]]:
        self.effects("search:before")
        self.searches += 1
        found = []
        for fee in self.fees.get(hours, []):
            offering = f"{hours}|{fee}|{self.end.timestamp()}|{self._ids.hex(6)}"
            found.append({"id": offering, "hours": hours, "fee": fee})
        self.effects("search:after")
        return found

    def _buy(self, offering_id: str) -> dict[str, Any]:
        self.effects(f"{self.paid}:before")
        self.calls += 1
        fault, self.fault = self.fault, None
        FakeAws._fail_before(_Codes(self.gone, self.paid), fault)  # type: ignore[arg-type]
        hours, fee, end, _ = offering_id.split("|")
        if any(self.word(row) == "pending" for row in self.rows):
            raise client_error(self.taken, operation=self.paid)
        if float(end) != self.end.timestamp():
            raise client_error(self.gone, operation=self.paid)
        row = {
            "offering": offering_id, "start": self.end, "end": self.end + timedelta(hours=int(hours)),
            "fee": fee, "at": self.clock.now(), "fails": self.fail_payment,
        }  # fmt: skip
        self.rows.append(row)
        FakeAws._fail_after(fault)
        self.effects(f"{self.paid}:after")
        if fault == "twice":
            return self._buy(offering_id)
        return {} if fault == "no ARN" else row

    def _history(self, request: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        self.effects("history:before")
        self.read_fault("history")
        shown = self.seen()
        first = int(request.get("NextToken", "0"))
        last = first + self.page_size
        self.effects("history:after")
        return shown[first:last], str(last) if last < len(shown) else None


class _Codes:
    """What `_fail_before` reads."""

    def __init__(self, gone: str, paid: str) -> None:
        self.gone, self.paid = gone, paid


class FakeBlockExtensions(FakeExtensions):
    """Of a Capacity Block, as an EC2 client shows it."""

    paid, gone = "PurchaseCapacityBlockExtension", "InvalidCapacityBlockOfferingIdExpired"
    taken = "InvalidCapacityReservationState"
    block = BLOCK

    @property
    def shop(self) -> ExtensionShop:
        """As the program builds it."""
        return BlockExtensions(self, self.block, "us-east-1")

    def of(self, arn: str) -> None:
        """Be the extensions of that block."""
        self.block = arn.rpartition("/")[2]

    def describe_capacity_block_extension_offerings(self, **request: Any) -> Mapping[str, Any]:
        """DescribeCapacityBlockExtensionOfferings."""
        assert request["CapacityReservationId"] == self.block
        found = self._search(request["CapacityBlockExtensionDurationHours"])
        return {
            "CapacityBlockExtensionOfferings": [
                {
                    "CapacityBlockExtensionOfferingId": one["id"], "UpfrontFee": one["fee"],
                    "CurrencyCode": "USD",
                    "CapacityBlockExtensionStartDate": self.end,
                    "CapacityBlockExtensionEndDate": self.end + timedelta(hours=one["hours"]),
                }
                for one in found
            ]
        }  # fmt: skip

    def purchase_capacity_block_extension(self, **request: Any) -> Mapping[str, Any]:
        """PurchaseCapacityBlockExtension with the fault that was ordered."""
        assert set(request) == {"CapacityBlockExtensionOfferingId", "CapacityReservationId"}
        made = self._buy(request["CapacityBlockExtensionOfferingId"])
        return {"CapacityBlockExtensions": [self._entry(made)] if made else []}

    def describe_capacity_block_extension_history(self, **request: Any) -> Mapping[str, Any]:
        """DescribeCapacityBlockExtensionHistory in pages, late by `lag`; another block's is among them."""
        rows, token = self._history(request)
        entries = [self.change_entry(self._entry(row)) for row in rows]
        other = {
            "CapacityReservationId": "cr-0aaaaaaaaaaaaaaaa",
            "CapacityBlockExtensionStatus": "payment-pending",
            "CapacityBlockExtensionEndDate": self.end + timedelta(days=99),
        }  # fmt: skip
        answer: dict[str, Any] = {"CapacityBlockExtensions": [other, *entries]}
        return answer | ({"NextToken": token} if token else {})

    def _entry(self, row: dict[str, Any]) -> dict[str, Any]:
        words = {"pending": "payment-pending", "done": "payment-succeeded", "failed": "payment-failed"}
        return {
            "CapacityReservationId": self.block, "CapacityBlockExtensionOfferingId": row["offering"],
            "CapacityBlockExtensionStatus": words[self.word(row)], "UpfrontFee": row["fee"],
            "CurrencyCode": "USD", "CapacityBlockExtensionStartDate": row["start"],
            "CapacityBlockExtensionEndDate": row["end"], "CapacityBlockExtensionPurchaseDate": row["at"],
        }  # fmt: skip


class FakePlanExtensions(FakeExtensions):
    """Of a training plan, as a SageMaker client shows it."""

    paid, gone, taken = "ExtendTrainingPlan", "ResourceNotFound", "ValidationException"
    arn = f"arn:aws:sagemaker:us-east-1:{ACCOUNT}:training-plan/eval"

    @property
    def shop(self) -> ExtensionShop:
        """As the program builds it."""
        return PlanExtensions(self, self.arn, "us-east-1")

    def of(self, arn: str) -> None:
        """Be the extensions of that plan."""
        self.arn = arn

    def search_training_plan_offerings(self, **request: Any) -> Mapping[str, Any]:
        """SearchTrainingPlanOfferings with a plan's ARN."""
        assert request["TrainingPlanArn"] == self.arn
        found = self._search(request["DurationHours"])
        return {
            "TrainingPlanOfferings": [],
            "TrainingPlanExtensionOfferings": [
                {
                    "TrainingPlanExtensionOfferingId": one["id"], "UpfrontFee": one["fee"],
                    "CurrencyCode": "USD",
                    "StartDate": self.end, "EndDate": self.end + timedelta(hours=one["hours"]),
                }
                for one in found
            ],
        }  # fmt: skip

    def extend_training_plan(self, **request: Any) -> Mapping[str, Any]:
        """ExtendTrainingPlan with the fault that was ordered."""
        assert set(request) == {"TrainingPlanExtensionOfferingId"}
        made = self._buy(request["TrainingPlanExtensionOfferingId"])
        return {"TrainingPlanExtensions": [self._entry(row) for row in self.rows] if made else []}

    def describe_training_plan_extension_history(self, **request: Any) -> Mapping[str, Any]:
        """DescribeTrainingPlanExtensionHistory in pages, late by `lag`."""
        rows, token = self._history(request)
        answer: dict[str, Any] = {
            "TrainingPlanExtensions": [self.change_entry(self._entry(row)) for row in rows]
        }
        return answer | ({"NextToken": token} if token else {})

    def _entry(self, row: dict[str, Any]) -> dict[str, Any]:
        status = {"pending": "Pending", "done": "Scheduled", "failed": "Failed"}[self.word(row)]
        payment = {"pending": "Pending", "done": "Completed", "failed": "Failed"}[self.word(row)]
        return {
            "TrainingPlanExtensionOfferingId": row["offering"], "Status": status, "PaymentStatus": payment,
            "UpfrontFee": row["fee"], "CurrencyCode": "USD", "StartDate": row["start"], "EndDate": row["end"],
            "ExtendedAt": row["at"],
        }  # fmt: skip
