"""A lost journal made anew from what AWS keeps: reservations that carry an order's mark become orders again.

Only the mark makes it ours: what has a name like ours without it is told, and left to a person. Nothing here
pays, and what the journal knows already stays as it is, so doing it twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from berth.aws.refusals import Kind, Refusal
from berth.orders.block_descriptions import described_block
from berth.orders.calls import pages
from berth.orders.elsewhere import Held, Reference, look, offer_for
from berth.orders.extensions.history import History
from berth.orders.extensions.shops import PlanExtensions, block_histories
from berth.orders.journal import Journal, OrderTaken
from berth.orders.names import ORDER_TAG, reservation_name
from berth.orders.order import Approval, Order, OrderKey, OrderState, key_of_mark
from berth.orders.rebuild_extensions import as_first_bought, restore_extensions
from berth.orders.rebuild_pieces import context_of
from berth.orders.reconcile import UNSETTLED
from berth.orders.seen import SeenReservation, Stage, text
from berth.orders.shops.training_plans import MOST_TAGS
from berth.terms.outcomes import BerthError
from berth.terms.text import plain
from berth.terms.ways import Way

_PLAN_NAME = re.compile(r"(?P<need>[a-z0-9][a-z0-9-]*)-(?P<sequence>[1-9]\d{0,5})-[0-9a-z]{4}")
_PIECE_NAME = re.compile(
    r"(?P<need>[a-z0-9][a-z0-9-]*)-(?P<sequence>[1-9]\d{0,5})-(?P<piece>[1-9]\d{0,3})-[0-9a-z]{4}"
)

LOST = (
    "what was agreed: caps, budgets, approvals and who gave them",
    "the plans, so that NAME#1 means nothing until the need is planned again",
    "attempts that bought nothing, looks, and the history before now",
    "what was made for an order; clean and launch find it by name and mark",
    "when each was bought: caps count it from now on, and not at all what is over",
)
"""What AWS keeps nowhere."""


class Fate(StrEnum):
    """What became of one reservation."""

    RESTORED = "restored"  # an order of this journal again
    KNOWN = "known"  # the journal has it
    LEFT = "left"  # told, and left as it is: a person, or another verb, goes on with it


@dataclass(frozen=True, slots=True)
class Found:
    """A reservation that carries a mark, or may: `mark` is '' where none could be read. `history` is that of
    its extensions; None where nothing was asked."""

    held: Held
    mark: str
    made: datetime | None = None
    history: History | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What one Region shows. `troubles` say what could not be read: then there may be more."""

    region: str
    found: tuple[Found, ...]
    troubles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """One reservation and what became of it; `order` is its order's name, None where it has none here.
    `extended` tells what was found of its extensions and was not known here."""

    fate: Fate
    region: str
    reservation: str
    order: str | None
    why: str
    extended: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As `berth.rebuild/1` has it."""
        return {
            "fate": self.fate.value,
            "region": self.region,
            "reservation": self.reservation,
            "order": self.order,
            "why": self.why,
            "extended": list(self.extended),
        }


# -- reading ---------------------------------------------------------------------------------------------
def marked_in(region: str, ec2: Any, sagemaker: Any, account: str) -> Seen:
    """Everything in a Region that carries an order's mark, in every state. Clients that only read do."""
    blocks, no_blocks = _blocks(region, ec2)
    plans, troubles = _plans(region, sagemaker, account)
    return Seen(region, (*blocks, *plans), tuple(filter(None, (*no_blocks, *troubles))))


def _blocks(region: str, ec2: Any) -> tuple[list[Found], list[str]]:
    rows, stopped = pages(ec2.describe_capacity_reservations, "CapacityReservations", MaxResults=1000)
    troubles = [_trouble("DescribeCapacityReservations", stopped)]
    described = (described_block(row) for row in rows if isinstance(row, Mapping))
    marked = [one for one in described if one is not None and ORDER_TAG in one.tags]
    histories = block_histories(ec2, [one.seen.name for one in marked]) if marked else {}
    found = [
        Found(
            Held(Way.CAPACITY_BLOCK, region, one.seen, one.tags), one.tags[ORDER_TAG], one.created_at,
            histories[one.seen.name],
        )
        for one in marked
    ]  # fmt: skip
    return found, [*troubles, *dict.fromkeys(one.trouble for one in histories.values())]


def _plans(region: str, sagemaker: Any, account: str) -> tuple[list[Found], list[str]]:
    rows, stopped = pages(sagemaker.list_training_plans, "TrainingPlanSummaries", MaxResults=100)
    found: list[Found] = []
    troubles = [_trouble("ListTrainingPlans", stopped)]
    for row in rows:
        name = text(row.get("TrainingPlanName")) if isinstance(row, Mapping) else None
        arn = text(row.get("TrainingPlanArn")) if isinstance(row, Mapping) else None
        if name is None or arn is None:
            troubles.append("ListTrainingPlans: a plan without a name or an ARN")
            continue
        tags, unread = pages(sagemaker.list_tags, "Tags", ResourceArn=arn, MaxResults=MOST_TAGS)
        marks = [one.get("Value") for one in tags if isinstance(one, Mapping) and one.get("Key") == ORDER_TAG]
        if marks:
            troubles.append(_add(found, name, region, sagemaker, str(marks[0])))
        elif unread is not None:
            troubles.append(f"{_trouble('ListTags', unread)}: whether {plain(name, 80)} is ours is not known")
        elif ours_by_name(name, account) is not None:
            troubles.append(_add(found, name, region, sagemaker, ""))
    return found, troubles


def _add(found: list[Found], name: str, region: str, sagemaker: Any, mark: str) -> str:
    """Add what AWS shows of a plan; why it could not be read, '' when it was."""
    try:
        held = look(Reference(Way.TRAINING_PLAN, name), region, sagemaker)
    except BerthError as problem:
        return problem.message
    history = PlanExtensions(sagemaker, held.seen.arn, region).history() if mark else None
    found.append(Found(held, mark, history=history))
    return history.trouble if history else ""


def ours_by_name(name: str, account: str) -> OrderKey | None:
    """The order of which a training plan has the name (with its check word); None when of none."""
    found = _PLAN_NAME.fullmatch(name)
    if found is None:
        return None
    keys = [OrderKey(account, found["need"], int(found["sequence"]))]
    of_piece = _PIECE_NAME.fullmatch(name)
    if of_piece is not None:
        numbers = int(of_piece["sequence"]), int(of_piece["piece"])
        keys.append(OrderKey(account, of_piece["need"], *numbers))
    return next((key for key in keys if reservation_name(key) == name), None)


def _trouble(call: str, stopped: Refusal | None) -> str:
    """What stopped a read; '' also where the Region does not have the service."""
    if stopped is None or stopped.kind is Kind.UNKNOWN_OPERATION:
        return ""
    return f"{call}: {plain(str(stopped), 200)}"


# -- restoring -------------------------------------------------------------------------------------------
def restore(
    journal: Journal, account: str, found: Sequence[Found], now: Callable[[], datetime]
) -> tuple[Told, ...]:
    """Make orders of what carries this account's marks; what became of each, in the order of `found`.

    Of several with one mark the oldest becomes the order; the others are told, since each was paid.
    """
    first: dict[str, Found] = {}
    for one in sorted(found, key=_oldest):
        first.setdefault(one.mark, one)
    told = []
    for one in found:
        key = key_of_mark(one.mark)
        if key is None or key.account != account:
            told.append(_left(one, None, _whose(one, account)))
        elif first[one.mark] is not one:
            other = first[one.mark].held.seen.name
            told.append(_left(one, key, f"carries the mark of {other} too, and was paid as well"))
        else:
            told.append(_restored(journal, one, key, now()))
    return tuple(told)


def _restored(journal: Journal, one: Found, key: OrderKey, now: datetime) -> Told:
    order, seen = journal.order(key), one.held.seen
    if order is not None and order.state in UNSETTLED:
        return _left(one, key, f"the order is {order.state} here: berth show {key} looks for it")
    if order is not None and order.state is not OrderState.REFUSED:
        longer = restore_extensions(journal, order, one.history, now) if _has(order, seen) else ()
        return Told(Fate.KNOWN, one.held.region, seen.name, str(key), f"{order.state} here already", longer)
    if seen.fee is None:
        return _left(
            one, key, f"what was paid is not shown: berth adopt {seen.name} --as {key} --paid AMOUNT"
        )
    try:
        offer = offer_for(as_first_bought(one.held, one.history), now)
        approval = Approval(offer, context=context_of(one.held.tags or {}))
        order = journal.adopt(key, approval, seen=seen.to_json(), now=now)
        if seen.stage is Stage.FAILED:
            order = journal.settle(order, OrderState.FAILED, now=now, detail=f"AWS says {seen.state}")
    except BerthError as problem:
        return _left(one, key, problem.message)
    except OrderTaken as other:
        return Told(Fate.KNOWN, one.held.region, seen.name, str(key), f"{other.order.state} here meanwhile")
    longer = restore_extensions(journal, order, one.history, now) if _has(order, seen) else ()
    return Told(Fate.RESTORED, one.held.region, seen.name, str(key), f"{order.state}, {seen.fee}", longer)


def _has(order: Order, seen: SeenReservation) -> bool:
    """Whether the order has bought this very reservation."""
    return order.state is OrderState.BOUGHT and order.reservation_arn in {seen.arn, seen.name}


def _left(one: Found, key: OrderKey | None, why: str) -> Told:
    return Told(Fate.LEFT, one.held.region, one.held.seen.name, None if key is None else str(key), why)


def _whose(one: Found, account: str) -> str:
    if not one.mark:
        return "has the name of an order and not its mark: a look-alike, which a person has to judge"
    key = key_of_mark(one.mark)
    if key is None:
        return f"its mark is none of an order: {plain(one.mark, 80)}"
    return f"it is an order of account {key.account}, and these keys are of {account}"


def _oldest(one: Found) -> tuple[bool, float, str]:
    return (one.made is None, one.made.timestamp() if one.made else 0.0, one.held.seen.name)
