"""Opening the door for a verb, and its first line: who and where."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from berth.aws.session import Door
    from berth.cli.output import Output


def enter(
    output: Output,
    *,
    profile: str | None,
    regions: Sequence[str] = (),
    quiet: bool = False,
    hear_date: Callable[[str, str], None] | None = None,
) -> Door:
    """Open the way to AWS or the yard, and say who acts and where on stderr.

    `regions` empty means the session's own Region. `quiet` leaves the line to the caller, for an answer that
    carries it itself. `hear_date` as in `open_door`. Raises what `open_door` raises.
    """
    from berth.aws.session import open_door
    from berth.terms.clock import SystemClock

    door = open_door(
        profile=profile, regions=regions, environ=os.environ, clock=SystemClock(), hear_date=hear_date
    )
    if not quiet:
        output.talk(door.identity.header())
    return door
