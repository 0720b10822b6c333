"""The site: everything that deploying and clearing up lean on, handed in as one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from berth.orders.journal import Journal
from berth.orders.order import Order
from berth.orders.steps import NOTHING_LEFT, Step, StepKind, StepState
from berth.watch.waiting import FollowedClock


@dataclass(frozen=True, slots=True)
class Site:
    """Journal, clock and clients that can create and delete what carries no fee, and cannot pay.

    `client` gives the client of a service (boto's name) in the order's Region, the same one every time;
    `account` is the caller's. `talk` hears what happens; `warn` what a person should read.
    """

    journal: Journal
    clock: FollowedClock
    client: Callable[[str], Any]
    account: str
    talk: Callable[[str], None]
    warn: Callable[[str], None]

    @property
    def sagemaker(self) -> Any:
        """The SageMaker client."""
        return self.client("sagemaker")

    @property
    def ec2(self) -> Any:
        """The EC2 client. It can run instances in a Capacity Block, and nowhere else."""
        return self.client("ec2")

    def step(self, order: Order, kind: StepKind) -> Step | None:
        """What was made of this kind and not removed; None when nothing was."""
        step = self.journal.steps(order.key).get(kind)
        return None if step is None or step.state in NOTHING_LEFT else step

    def put(self, order: Order, step: Step, state: StepState) -> Step:
        """Commit the step in another state."""
        return self.journal.put_step(order.key, step.to(state, self.clock.now()))

    def begin(self, order: Order, kind: StepKind, name: str, *, ours: bool, detail: str) -> Step:
        """Commit that something of this kind is about to be made."""
        now = self.clock.now()
        return self.journal.put_step(order.key, Step(kind, name, StepState.BEGUN, ours, detail, now, now))
