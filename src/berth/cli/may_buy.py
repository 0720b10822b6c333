"""Whether whoever plans may also pay: said under the first line of a plan, asked of IAM once."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from berth.terms.ways import Way

if TYPE_CHECKING:
    from berth.aws.session import Door
    from berth.checkup.rights import Answer
    from berth.planner.plan import Plan

PAID_BY = {Way.CAPACITY_BLOCK: "ec2:PurchaseCapacityBlock", Way.TRAINING_PLAN: "sagemaker:CreateTrainingPlan"}


def may_buy(door: Door, made: Plan) -> Answer | None:
    """What IAM says of the paid call for what the plan puts first; None where it puts nothing first."""
    from berth.sources.checkup import may_pay

    bought = [(made.best.offer.way, made.best.offer.region)] if made.best else []
    bought += [(one.way, one.region) for one in made.mix.pieces] if made.mix else []
    bought = [(way, region) for way, region in bought if way in PAID_BY]
    if not bought:
        return None
    way, region = bought[0]
    return may_pay(door, made.need, region, PAID_BY[way])


def payer_line(answer: Answer | None, who: str) -> str:
    """What a person must know before typing `berth buy`; '' where the policies allow it, or nobody knows."""
    from berth.checkup.rights import Say

    if answer is None or answer.say is not Say.DENIED:
        return ""
    text = (
        f"{who} cannot buy: {answer.right.action}: {answer.why}. berth buy with other keys:"
        " --buyer-profile NAME"
    )
    indent = "     "
    return "\n".join(
        textwrap.wrap(text, 80, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    )
