"""Rows of the journal and the values that they hold, both ways."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from berth.orders.order import Attempt, Look, Order, OrderKey, OrderState
from berth.orders.steps import Step, StepKind, StepState
from berth.planner.offers import Offer, money_from_json, money_json
from berth.terms.instants import from_micros
from berth.terms.money import Money


def order_from(row: sqlite3.Row, attempts: Iterable[sqlite3.Row], looks: Iterable[sqlite3.Row]) -> Order:
    """An order from its row, those of its attempts in order, and those of its latest attempt's looks."""
    return Order(
        key=OrderKey(row["account"], row["need"], row["sequence"]),
        state=OrderState(row["state"]),
        reservation_name=row["reservation_name"],
        offer=Offer.from_json(json.loads(row["offer"])),
        cap=None if row["cap"] is None else money_from_json(json.loads(row["cap"])),
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
    )


def step_from(row: sqlite3.Row) -> Step:
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


def offer_text(offer: Offer) -> str:
    """An offer as it is stored."""
    return json.dumps(offer.to_json())


def money_text(money: Money | None) -> str | None:
    """Money as it is stored in a text column; None stays None."""
    return None if money is None else json.dumps(money_json(money))


def _attempt(row: sqlite3.Row) -> Attempt:
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
