"""What is promised, what may be taken back, what idles: things to know about a way that fits."""

from __future__ import annotations

from berth.planner.framework.case import Case, Rule
from berth.planner.framework.reason import EC2, ODCRS, PLANS, ULTRASERVERS, Reason
from berth.planner.framework.reservable import SOON, future_dated, is_scarce
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
    if case.need.interruptible is False:
        return Reason("spot-for-what-survives", True, "the need says that it cannot be interrupted", EC2)
    if case.need.interruptible:
        return Reason("spot-for-what-survives", False, "the need survives two minutes' notice", EC2)
    return Reason("spot-may-end", False, "only for what survives two minutes' notice", EC2)


def _idle_is_paid(way: Way, case: Case) -> Reason | None:
    if way is not Way.ODCR:
        return None
    sentence = "idle time is paid at on-demand rates (less with a Savings Plan)"
    if is_scarce(case):
        sentence += ", and P and Trn types are rarely to be had at short notice"
    return Reason("odcr-pays-idle-time", False, sentence, ODCRS)


def _ahead_with_odcr(way: Way, case: Case) -> Reason | None:
    begin = case.need.start or case.need.earliest_start
    if way is not Way.ODCR or begin is None or begin - case.now <= SOON:
        return None
    if future_dated(case):
        sentence = "can be asked for that date: 5 to 120 days ahead, 14 days and 32 vCPUs at least"
        return Reason("odcr-from-a-date", False, sentence, ODCRS)
    why = (
        "not for P and Trn types"
        if is_scarce(case)
        else "only for 14 days and 32 vCPUs or more, 5 days ahead"
    )
    return Reason("odcr-starts-now", False, f"begins and is paid at once; from a date ahead {why}", ODCRS)


def _held(way: Way, case: Case) -> Reason | None:
    if way not in {Way.ON_DEMAND, Way.SAGEMAKER_ON_DEMAND}:
        return None
    return Reason("held-on-demand", False, "if you stop it you may not get it back", EC2)


def _not_shared(way: Way, case: Case) -> Reason | None:
    if way is not Way.CAPACITY_BLOCK or case.kind is None or not case.kind.is_ultraserver:
        return None
    sentence = "an UltraServer cannot be shared with other accounts"
    return Reason("ultraservers-are-not-shared", False, sentence, ULTRASERVERS)


RISKS: tuple[Rule, ...] = (_promise, _interrupted, _idle_is_paid, _ahead_with_odcr, _held, _not_shared)
