"""How each way is extended: searched, looked up and paid for, behind one protocol."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from berth.aws.refusals import Refusal
from berth.orders.calls import asked, pages
from berth.orders.extensions.extension import Extension
from berth.orders.extensions.history import WORDS, History, Past, Payment
from berth.orders.extensions.offers import ExtensionOffer
from berth.orders.seen import instant, listed, money, text
from berth.terms.window import Window

_HOUR = timedelta(hours=1)
MOST_PLAN_PAGE = 100  # the most that DescribeTrainingPlanExtensionHistory takes
MOST_BLOCK_PAGE = 1000


@dataclass(frozen=True, slots=True)
class _Names:
    """What AWS calls the same members of both ways' extensions."""

    id: str
    start: str
    end: str
    bought: str


_BLOCK = _Names(
    "CapacityBlockExtensionOfferingId", "CapacityBlockExtensionStartDate", "CapacityBlockExtensionEndDate",
    "CapacityBlockExtensionPurchaseDate",
)  # fmt: skip
_PLAN = _Names("TrainingPlanExtensionOfferingId", "StartDate", "EndDate", "ExtendedAt")


class ExtensionShop(Protocol):
    """Extending one reservation. It reads, and says how to pay; it holds nothing that can pay."""

    @property
    def service(self) -> str:
        """boto's name of the service whose client pays."""
        ...

    @property
    def pays(self) -> str:
        """boto's name of the paid operation."""
        ...

    @property
    def gone(self) -> frozenset[str]:
        """Codes of the paid call that mean: not on sale any more, nothing was done."""
        ...

    @property
    def taken(self) -> frozenset[str]:
        """Codes of the paid call with which AWS refuses an extension beside one that is being paid: that may
        be the very one of this call, which the network delivered twice."""
        ...

    def search(self, length: timedelta, now: datetime) -> tuple[ExtensionOffer, ...] | Refusal:
        """The offers to extend by `length`, or why there is no answer."""
        ...

    def history(self) -> History:
        """Every extension of the reservation: all pages, all states."""
        ...

    def request(self, extension: Extension) -> dict[str, Any]:
        """The parameters of the one paid call."""
        ...

    def bought(self, answer: Mapping[str, Any]) -> str | None:
        """What the answer to the paid call names as bought; None when it names nothing."""
        ...

    def inspect(self) -> str:
        """The AWS CLI command with which a person looks for themselves."""
        ...


@dataclass(frozen=True, slots=True)
class BlockExtensions:
    """Extending the Capacity Block `reservation_id` (`cr-...`); `reads` is an EC2 client that cannot pay."""

    reads: Any
    reservation_id: str
    region: str
    service: str = "ec2"
    pays: str = "purchase_capacity_block_extension"
    gone: frozenset[str] = frozenset(
        {"InvalidCapacityBlockOfferingIdExpired", "InvalidCapacityBlockOfferingIdNotFound"}
    )
    taken: frozenset[str] = frozenset({"InvalidCapacityReservationState"})

    def search(self, length: timedelta, now: datetime) -> tuple[ExtensionOffer, ...] | Refusal:
        """DescribeCapacityBlockExtensionOfferings, every page."""
        found, stopped = pages(
            self.reads.describe_capacity_block_extension_offerings, "CapacityBlockExtensionOfferings",
            CapacityReservationId=self.reservation_id, CapacityBlockExtensionDurationHours=length // _HOUR,
        )  # fmt: skip
        if stopped is not None:
            return stopped
        return _offers(found, now, _BLOCK)

    def history(self) -> History:
        """DescribeCapacityBlockExtensionHistory, every page, and what is this block's of it."""
        return block_histories(self.reads, [self.reservation_id])[self.reservation_id]

    def request(self, extension: Extension) -> dict[str, Any]:
        """PurchaseCapacityBlockExtension: it takes no token and no tags."""
        return {
            "CapacityBlockExtensionOfferingId": extension.offering_id,
            "CapacityReservationId": self.reservation_id,
        }

    def bought(self, answer: Mapping[str, Any]) -> str | None:
        """The id of the offering that is bought; the reservation's where the answer has none."""
        made = [one for one in listed(answer.get("CapacityBlockExtensions")) if isinstance(one, Mapping)]
        return text(made[0].get("CapacityBlockExtensionOfferingId")) or self.reservation_id if made else None

    def inspect(self) -> str:
        """The history of the block."""
        return (
            f"aws ec2 describe-capacity-block-extension-history --region {self.region}"
            f" --capacity-reservation-ids {self.reservation_id}"
        )


def block_histories(reads: Any, reservation_ids: Collection[str]) -> dict[str, History]:
    """The history of each block, from one reading of DescribeCapacityBlockExtensionHistory, every page.

    Without the list of ids, which must not come with a page size, and without a filter: an empty answer to
    either would have to be believed. An entry that names no block is the one block's that is asked about;
    where there are several, nobody knows whose it is, and no history is complete.
    """
    found, stopped = pages(
        reads.describe_capacity_block_extension_history, "CapacityBlockExtensions", MaxResults=MOST_BLOCK_PAGE
    )
    rows = [one for one in found if isinstance(one, Mapping)]
    trouble = f"DescribeCapacityBlockExtensionHistory: {stopped}" if stopped else ""
    alone = len(reservation_ids) == 1
    if not alone and any(text(one.get("CapacityReservationId")) is None for one in rows):
        trouble = trouble or "DescribeCapacityBlockExtensionHistory: an entry names no block"

    def of(block: str) -> History:
        named = {block, None} if alone else {block}
        own = (one for one in rows if text(one.get("CapacityReservationId")) in named)
        entries = (_past(one, _BLOCK, _word(one.get("CapacityBlockExtensionStatus"))) for one in own)
        return History(tuple(entries), not trouble, trouble)

    return {block: of(block) for block in reservation_ids}


@dataclass(frozen=True, slots=True)
class PlanExtensions:
    """Extending the training plan `arn`; `reads` is a SageMaker client that cannot pay."""

    reads: Any
    arn: str
    region: str
    service: str = "sagemaker"
    pays: str = "extend_training_plan"
    gone: frozenset[str] = frozenset({"ResourceNotFound"})
    taken: frozenset[str] = frozenset({"ValidationException"})

    def search(self, length: timedelta, now: datetime) -> tuple[ExtensionOffer, ...] | Refusal:
        """SearchTrainingPlanOfferings with the plan's ARN; it has no pages."""
        answer = asked(
            lambda: self.reads.search_training_plan_offerings(
                TrainingPlanArn=self.arn, DurationHours=length // _HOUR
            )
        )
        if isinstance(answer, Refusal):
            return answer
        found = listed(answer.get("TrainingPlanExtensionOfferings"))
        offers = _offers(found, now, _PLAN)
        return tuple(offer for offer in offers if offer.window.duration == length)

    def history(self) -> History:
        """DescribeTrainingPlanExtensionHistory, every page."""
        found, stopped = pages(
            self.reads.describe_training_plan_extension_history, "TrainingPlanExtensions",
            TrainingPlanArn=self.arn, MaxResults=MOST_PLAN_PAGE,
        )  # fmt: skip
        entries = tuple(_past(one, _PLAN, _plan_word(one)) for one in found if isinstance(one, Mapping))
        trouble = f"DescribeTrainingPlanExtensionHistory: {stopped}" if stopped else ""
        return History(entries, stopped is None, trouble)

    def request(self, extension: Extension) -> dict[str, Any]:
        """ExtendTrainingPlan: the offering's id is all that it takes."""
        return {"TrainingPlanExtensionOfferingId": extension.offering_id}

    def bought(self, answer: Mapping[str, Any]) -> str | None:
        """The plan's ARN: the answer lists all of its extensions, the new one among them."""
        return self.arn if listed(answer.get("TrainingPlanExtensions")) else None

    def inspect(self) -> str:
        """The history of the plan."""
        return (
            f"aws sagemaker describe-training-plan-extension-history --region {self.region}"
            f" --training-plan-arn {self.arn}"
        )


def _offers(found: list[Any], now: datetime, names: _Names) -> tuple[ExtensionOffer, ...]:
    """Offers of an answer; one without an id or without its window cannot be bought and is passed over."""
    offers = []
    for one in found:
        if not isinstance(one, Mapping):
            continue
        offering_id = text(one.get(names.id))
        starts, ends = instant(one.get(names.start)), instant(one.get(names.end))
        if offering_id is None or starts is None or ends is None or starts >= ends:
            continue
        fee = money(one.get("UpfrontFee"), one.get("CurrencyCode"))
        offers.append(ExtensionOffer(offering_id, Window(starts, ends), fee, now))
    return tuple(offers)


def _past(one: Mapping[str, Any], names: _Names, word: str) -> Past:
    return Past(
        offering_id=text(one.get(names.id)),
        start=instant(one.get(names.start)),
        end=instant(one.get(names.end)),
        bought_at=instant(one.get(names.bought)),
        payment=WORDS.get(word, Payment.UNKNOWN),
        word=word,
        fee=money(one.get("UpfrontFee"), one.get("CurrencyCode")),
    )


def _word(value: object) -> str:
    return text(value) or "unknown"


def _plan_word(one: Mapping[str, Any]) -> str:
    """The more certain of the two words: a payment's, unless the extension itself has failed."""
    status, payment = _word(one.get("Status")), _word(one.get("PaymentStatus"))
    if WORDS.get(status) is Payment.FAILED or payment not in WORDS:
        return status
    return payment
