"""`berth plan` without a login: verdicts by rule and list prices with their age, marked not live."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from berth.cli.needs import TypedNeed
from berth.cli.output import Output
from berth.cli.plan_faces import Faces
from berth.terms.outcomes import BerthError, ExitCode

if TYPE_CHECKING:
    from berth.planner.plan import Plan

HEADER = (
    "NOT LIVE  nobody was asked: there is no usable AWS login. Verdicts are by\n"
    "rule; prices are list prices with their age, not offers."
)


def answer_offline(output: Output, typed: TypedNeed, problem: BerthError, faces: Faces) -> BerthError:
    """Print what can be said without a login; the error with which the command ends.

    Only for AWS, and only where the login is what is missing: else it is `problem` itself.
    """
    made = _plan(typed) if problem.exit_code is ExitCode.CREDENTIALS else None
    if made is None:
        return problem
    faces.show(output, HEADER, made, live=False)
    return BerthError(
        ExitCode.CREDENTIALS, f"the plan above is not live: {problem.message}", problem.next_step
    )


def _plan(typed: TypedNeed) -> Plan | None:
    """The plan that nobody was asked for; None where a yard is declared or no Region is known."""
    from berth.aws.worlds import declared_yard
    from berth.sources.offline import plan_offline
    from berth.terms.clock import SystemClock

    if declared_yard(os.environ) is not None:
        return None
    now = SystemClock().now()
    need = typed.read(now)
    own = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    regions = need.regions or ((own,) if own else ())
    return plan_offline(replace(need, regions=regions), now) if regions else None
