"""What is promised, what may be taken back, what idles: things to know about a way that fits."""

from __future__ import annotations

from berth.planner.framework.case import Case, Rule
from berth.planner.framework.reason import EC2, PLANS, Reason
from berth.terms.ways import Way


def _promise(way: Way, case: Case) -> Reason | None:
    if case.need.start is None:
        return None
    if way in {Way.TRAINING_PLAN, Way.CAPACITY_BLOCK}:
        return Reason(
            "reserve-when-the-start-is-fixed", False, "the start is fixed, and it promises it", PLANS
        )
    if way in {Way.ON_DEMAND, Way.SAGEMAKER_ON_DEMAND}:
        return Reason("on-demand-promises-nothing", False, "may say no on the day", EC2)
    return None


def _interrupted(way: Way, case: Case) -> Reason | None:
    if way is not Way.SPOT:
        return None
    return Reason("spot-may-end", False, "only for what survives two minutes' notice", EC2)


def _idle_is_paid(way: Way, case: Case) -> Reason | None:
    if way is not Way.ODCR:
        return None
    sentence = "idle time is paid at on-demand rates, and P types are rarely to be had at short notice"
    return Reason("odcr-pays-idle-time", False, sentence, EC2)


RISKS: tuple[Rule, ...] = (_promise, _interrupted, _idle_is_paid)
