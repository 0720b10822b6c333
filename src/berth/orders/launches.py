"""Launches: which instances were put into which block for an order, and with what token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from berth.orders.steps import StepState


@dataclass(frozen=True, slots=True)
class Launch:
    """One RunInstances of an order. `number` counts from 1 within the order.

    `block` is the Capacity Reservation's id, `token` the client token that makes repeating it harmless,
    `count` how many were asked for at most, `request` the parameters as sent. `state` is BEGUN from before
    the call, MADE once EC2 answered, REFUSED when it launched nothing, REMOVING and REMOVED while and after
    clearing up. `made_at` and `removing_at` bound the use of the block; None: not yet.
    """

    number: int
    block: str
    token: str
    count: int
    state: StepState
    request: Mapping[str, Any]
    instance_ids: tuple[str, ...]
    began_at: datetime
    made_at: datetime | None = None
    removing_at: datetime | None = None

    def made(self, instance_ids: tuple[str, ...], now: datetime) -> Launch:
        """The launch with the instances that it became."""
        return replace(self, state=StepState.MADE, instance_ids=instance_ids, made_at=self.made_at or now)

    def to(self, state: StepState, now: datetime) -> Launch:
        """The launch in another state."""
        removing = (self.removing_at or now) if state is StepState.REMOVING else self.removing_at
        return replace(self, state=state, removing_at=removing)
