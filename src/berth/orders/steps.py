"""Steps: what was made for an order besides its reservation, so that cleaning touches that and no more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum


class StepKind(StrEnum):
    """What a step makes, in the order of making; clearing up goes the other way round."""

    DATA = "data"  # the artefact in S3; never deleted, since S3 keys may be shared
    MODEL = "model"
    CONFIGURATION = "configuration"
    ENDPOINT = "endpoint"


class StepState(StrEnum):
    """Where a step stands. BEGUN and REMOVING are committed before the call, so a crash is seen as one."""

    BEGUN = "begun"
    MADE = "made"
    REMOVING = "removing"
    REMOVED = "removed"
    REFUSED = "refused"  # SageMaker said no, or what has the name is not ours: there is nothing of ours


NOTHING_LEFT = frozenset({StepState.REMOVED, StepState.REFUSED})


@dataclass(frozen=True, slots=True)
class Step:
    """One thing of an order.

    `ours` says that Berth made it (or began to); a model that existed before is used, recorded, and left
    alone. `detail` holds what a later run must know, such as the model of a configuration.
    """

    kind: StepKind
    name: str
    state: StepState
    ours: bool
    detail: str
    started_at: datetime
    changed_at: datetime

    def to(self, state: StepState, now: datetime) -> Step:
        """The same step in another state."""
        return replace(self, state=state, changed_at=now)
