"""Rows of the journal and the values that they hold, both ways."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from berth.orders.extensions.extension import Extension
from berth.orders.launches import Launch
from berth.orders.looks import Look
from berth.orders.order import Approval, Attempt, Order, OrderKey, OrderState
from berth.orders.spending import TEAM
from berth.orders.steps import Step, StepKind, StepState
from berth.planner.offers import Offer, money_from_json, money_json
from berth.storage.database import Row
from berth.terms.instants import from_micros, to_micros
from berth.terms.money import Money


def order_from(
    row: Row, attempts: Iterable[Row], looks: Iterable[Row], extensions: tuple[Extension, ...] = ()
) -> Order:
    """An order from its row, those of its attempts in order, those of its latest attempt's looks, and its
    extensions."""
    return Order(
        key=OrderKey(row["account"], row["need"], row["sequence"], row["piece"]),
        state=OrderState(row["state"]),
        reservation_name=row["reservation_name"],
        offer=Offer.from_json(json.loads(row["offer"])),
        cap=None if row["cap"] is None else money_from_json(json.loads(row["cap"])),
        context=json.loads(row["context"]),
        reservation_arn=row["reservation_arn"],
        seen=None if row["seen"] is None else json.loads(row["seen"]),
        created_at=from_micros(row["created_at"]),
        changed_at=from_micros(row["changed_at"]),
        attempts=tuple(_attempt(found) for found in attempts),
        looks=tuple(
            Look(
                from_micros(found["began_at"]),
                from_micros(found["ended_at"]),
                bool(found["complete"]),
                bool(found["found"]),
            )
            for found in looks
        ),
        extensions=extensions,
    )


def step_from(row: Row) -> Step:
    """A step from its row."""
    return Step(
        kind=StepKind(row["kind"]),
        name=row["name"],
        state=StepState(row["state"]),
        ours=bool(row["ours"]),
        detail=row["detail"],
        started_at=from_micros(row["started_at"]),
        changed_at=from_micros(row["changed_at"]),
    )


def launch_from(row: Row) -> Launch:
    """A launch from its row."""
    return Launch(
        number=row["number"],
        block=row["block"],
        token=row["token"],
        count=row["count"],
        state=StepState(row["state"]),
        request=json.loads(row["request"]),
        instance_ids=tuple(json.loads(row["instance_ids"])),
        began_at=from_micros(row["began_at"]),
        made_at=None if row["made_at"] is None else from_micros(row["made_at"]),
        removing_at=None if row["removing_at"] is None else from_micros(row["removing_at"]),
    )


def launch_values(launch: Launch) -> tuple[Any, ...]:
    """What is stored of a launch, in the order of the columns from `number` on."""
    return (
        launch.number, launch.block, launch.token, launch.count, launch.state, json.dumps(launch.request),
        json.dumps(launch.instance_ids), to_micros(launch.began_at),
        None if launch.made_at is None else to_micros(launch.made_at),
        None if launch.removing_at is None else to_micros(launch.removing_at),
    )  # fmt: skip


def approval_texts(approval: Approval) -> tuple[str, str | None, str, str | None]:
    """Offer, cap, context and team of an approval as they are stored."""
    cap = None if approval.cap is None else json.dumps(money_json(approval.cap))
    team = tags_of_context(approval.context).get(TEAM) or None
    return json.dumps(approval.offer.to_json()), cap, json.dumps(approval.context), team


def tags_of_context(context: Mapping[str, Any]) -> dict[str, str]:
    """The tags of the need in an order's context, or those that a journal made anew found; else none."""
    need = context.get("need")
    return dict((need or context).get("tags", {}))


def _attempt(row: Row) -> Attempt:
    return Attempt(
        number=row["number"],
        intent_id=row["intent_id"],
        offering_id=row["offering_id"],
        fee=Money.from_micros(row["fee_micros"], row["currency"]),
        holder=row["holder"],
        started_at=from_micros(row["started_at"]),
        ended_at=None if row["ended_at"] is None else from_micros(row["ended_at"]),
        outcome=row["outcome"],
        detail=row["detail"],
    )
