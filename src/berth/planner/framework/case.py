"""What a rule of the framework looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from berth.facts.instance_types import InstanceType
from berth.planner.framework.reason import Reason
from berth.planner.need import Need
from berth.terms.ways import Way


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule looks at.

    `kind` is the need's type, None when the tables do not know it. `blocks_owned` counts the instances of all
    Capacity Blocks that the account was seen to own and that are not over.
    """

    need: Need
    kind: InstanceType | None
    now: datetime
    blocks_owned: int = 0


Rule = Callable[[Way, Case], Reason | None]
