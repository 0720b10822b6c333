"""What each way is like, whatever is needed: the three axes, and the terms that people get wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from berth.planner.framework.reason import ARTICLE, BLOCKS, EC2, ODCRS, PLANS
from berth.terms.ways import Way


@dataclass(frozen=True, slots=True)
class Terms:
    """What people get wrong about a way (field fault 70), one short sentence each."""

    who_launches: str
    who_buys: str
    when_paid: str
    can_cancel: str
    at_the_end: str
    source: str

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "who_launches": self.who_launches,
            "who_buys": self.who_buys,
            "when_paid": self.when_paid,
            "can_cancel": self.can_cancel,
            "at_the_end": self.at_the_end,
            "source": self.source,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Terms:
        """The terms that `to_json` wrote."""
        return cls(**value)


TERMS: dict[Way, Terms] = {
    Way.TRAINING_PLAN: Terms(
        "you do, once it is Active (jobs and clusters may be sent before)",
        "you, by one purchase; no autoscaler buys it",
        "all of it at the purchase",
        "no: no cancel, no refund, also not for idle hours",
        "AWS takes the instances 30 min (HyperPod 60 min) before the paid end",
        PLANS,
    ),
    Way.SAGEMAKER_ON_DEMAND: Terms(
        "SageMaker, when you create the endpoint, job or cluster",
        "nobody: it is had or refused at the moment you ask",
        "by the second while it runs",
        "yes: delete it and paying stops",
        "it ends when you delete it; what you give back you may not get again",
        PLANS,
    ),
    Way.CAPACITY_BLOCK: Terms(
        "you do, from the start of the block; nothing starts by itself",
        "you, by one purchase; no autoscaler buys it",
        "all of it at the purchase; operating system fees while instances run",
        "no: no cancel, no refund",
        "AWS begins to end the instances 30 min (UltraServers 60 min) before the end",
        BLOCKS,
    ),
    Way.ON_DEMAND: Terms(
        "you, or your autoscaler",
        "nobody: it is had or refused at the moment you ask",
        "by the second while it runs",
        "yes: end the instance and paying stops",
        "if you stop it, you may not get it back",
        EC2,
    ),
    Way.SPOT: Terms(
        "you, or your autoscaler",
        "nobody: it is had or refused at the moment you ask",
        "by the second while it runs, at a price that moves",
        "yes: end the instance and paying stops",
        "AWS may take it back with two minutes' notice",
        EC2,
    ),
    Way.ODCR: Terms(
        "you, or your autoscaler; matching instances fill it by themselves when it is open",
        "you, by creating it; it is granted or refused at once",
        "from creation at on-demand rates, used or idle",
        "yes: cancel it and paying for idle places stops",
        "it stays until its end date or until you cancel it",
        EC2,
    ),
}


@dataclass(frozen=True, slots=True)
class Axes:
    """A way on the three axes along which AWS's article compares them, one line each."""

    availability: str
    cost_model: str
    environment: str
    source: str


AXES: dict[Way, Axes] = {
    Way.ON_DEMAND: Axes(
        "none promised: had or refused when you ask",
        "by the second at list price, Savings Plans count",
        "EC2: machines that you manage",
        ARTICLE,
    ),
    Way.SPOT: Axes(
        "none promised, and taken back on two minutes' notice",
        "by the second at a price that moves, never over on-demand",
        "EC2: machines that you manage",
        EC2,
    ),
    Way.ODCR: Axes(
        "promised while it exists; from a date ahead only for other than P and Trn types",
        "on-demand rates from creation on, used or idle; Savings Plans count",
        "EC2: machines that you manage",
        ODCRS,
    ),
    Way.CAPACITY_BLOCK: Axes(
        "promised from start to end, up to 8 weeks ahead",
        "all at the purchase, at a price of its own, never refunded",
        "EC2: machines that you manage; SageMaker's ways do not use it",
        ARTICLE,
    ),
    Way.SAGEMAKER_ON_DEMAND: Axes(
        "none promised: had or refused when you ask",
        "by the second at SageMaker's list price",
        "SageMaker: jobs, endpoints and clusters, machines managed for you",
        ARTICLE,
    ),
    Way.TRAINING_PLAN: Axes(
        "promised from start to end, up to 8 weeks ahead",
        "all at the purchase, at a price of its own, never refunded",
        "SageMaker: bound to one kind of work at the purchase",
        ARTICLE,
    ),
}
