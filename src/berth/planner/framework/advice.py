"""Which way to try first, and what after it: the order of AWS's decision article, as named rules.

The article asks in this order: who manages the machines; may the start move, or the work be tried again (then
on-demand first: it costs nothing while it says no); does the work survive interruption (then Spot); otherwise
reserve. A verdict says which ways can hold a need at all; this says in what order they are worth trying.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from berth.planner.framework.case import Case
from berth.planner.framework.reason import ARTICLE, EC2, ODCRS, PRACTICE
from berth.planner.framework.reservable import future_dated, is_scarce
from berth.planner.need import Need
from berth.terms.ways import Target, Way

LARGE = 16
"""Instances from which on a need counts as large. AWS gives no number; this one is ours."""
EARLY = timedelta(weeks=3)
"""How far ahead AWS's article tells large or production work to begin."""

_ON_DEMAND = (Way.SAGEMAKER_ON_DEMAND, Way.ON_DEMAND)
_RESERVED = (Way.TRAINING_PLAN, Way.CAPACITY_BLOCK)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to try. `way` is None for what is no way (another Region, the account team)."""

    rule: str
    way: Way | None
    sentence: str
    source: str

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "rule": self.rule,
            "way": self.way.value if self.way else None,
            "sentence": self.sentence,
            "source": self.source,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Step:
        """The step that `to_json` wrote."""
        way = Way(value["way"]) if value["way"] else None
        return cls(value["rule"], way, value["sentence"], value["source"])


@dataclass(frozen=True, slots=True)
class Question:
    """One question of the framework: where its answer is yes, one of `ways` is worth trying.

    `ways` is empty where the advice is no way. `answer` looks at a case and gives the sentence to tell, None
    for no. The picture of the framework is drawn from these.
    """

    rule: str
    asks: str
    ways: tuple[Way, ...]
    source: str
    answer: Callable[[Case, Set[Way]], str | None]

    def step(self, case: Case, fits: Set[Way]) -> Step | None:
        """What the question says for this case, None for nothing: no, or none of its ways fits."""
        way = next((way for way in self.ways if way in fits), None)
        if self.ways and way is None:
            return None
        sentence = self.answer(case, fits)
        return None if sentence is None else Step(self.rule, way, sentence, self.source)


def advice(case: Case, fits: Set[Way]) -> tuple[Step, ...]:
    """What to try, first things first; never empty. `fits` holds the ways whose verdict is for them.

    A way stands once, at the first question that speaks for it.
    """
    found: list[Step] = []
    for question in QUESTIONS:
        step = question.step(case, fits)
        if step is not None and (step.way is None or step.way not in {s.way for s in found}):
            found.append(step)
    if any(step.way for step in found):
        return tuple(found)
    return (_nothing_left(found), *(step for step in found if step.rule != "ask-the-account-team"))


def _nothing_left(found: Sequence[Step]) -> Step:
    """No way can hold the need: whom to ask, or what to change."""
    team = next((step for step in found if step.rule == "ask-the-account-team"), None)
    sentence = "no way can hold this need as it stands: change what the verdicts name"
    return team or Step("change-the-need", None, sentence, ARTICLE)


def _must_be_promised(case: Case) -> bool:
    return must_be_promised(case.need)


def must_be_promised(need: Need) -> bool:
    """Whether a refusal on the day hurts: the start is fixed, or the need says that trying again is dear."""
    return need.start is not None if need.retryable is None else not need.retryable


def _begins_in(case: Case) -> timedelta:
    """How far off the start is; zero where none is said."""
    begin = case.need.start or case.need.earliest_start
    return timedelta(0) if begin is None else begin - case.now


# -- ways --------------------------------------------------------------------------------------------------
def _survives(case: Case, fits: Set[Way]) -> str | None:
    if not case.need.interruptible or _must_be_promised(case):
        return None
    return "the work survives interruption, and Spot is the cheapest where it is to be had"


def _may_wait(case: Case, fits: Set[Way]) -> str | None:
    if _must_be_promised(case):
        return None
    why = "the start may move" if case.need.start is None else "it can be tried again"
    return f"{why}, and it costs nothing while it says no"


def _is_fixed(case: Case, fits: Set[Way]) -> str | None:
    if not _must_be_promised(case):
        return None
    why = "the start is fixed" if case.need.start is not None else "failure is dear"
    return f"{why}, and this promises it"


def _still_refused(case: Case, fits: Set[Way]) -> str | None:
    if _must_be_promised(case):
        return None
    if fits & set(_ON_DEMAND):
        return "promises it, if on-demand goes on saying no"
    return "promises it, and on-demand is not to be had for this need"


def _from_a_date(case: Case, fits: Set[Way]) -> str | None:
    if not future_dated(case):
        return None
    return "a reservation from a date: assessed within about 5 days, paid from its start on"


def _from_now(case: Case, fits: Set[Way]) -> str | None:
    if is_scarce(case) or not _must_be_promised(case):
        return None
    return "the one promise for this type: create it before the start, and pay from then on, used or idle"


def _on_the_day(case: Case, fits: Set[Way]) -> str | None:
    return "on the day, without a promise: hold what you get, and have a second type or Region"


def _alone_is_left(case: Case, fits: Set[Way]) -> str | None:
    if fits & {*_ON_DEMAND, *_RESERVED}:
        return None
    if Way.ODCR in fits:
        return "all that is left, and for this type rarely to be had at short notice"
    return "all that is left, and it may end at two minutes' notice: is it for what survives that?"


def _may_run_beside(case: Case, fits: Set[Way]) -> str | None:
    return "what survives interruption may run on Spot beside it" if case.need.interruptible else None


# -- what is no way ----------------------------------------------------------------------------------------
def _elsewhere(case: Case, fits: Set[Way]) -> str | None:
    if not fits or case.need.zone_ids:
        return None
    places = len(case.need.regions)
    return f"other Regions, beside the {'one' if places == 1 else places} that you name"


def _at_other_hours(case: Case, fits: Set[Way]) -> str | None:
    if not fits & set(_ON_DEMAND) or _must_be_promised(case):
        return None
    return "quieter hours: nobody publishes them; your own are in `berth history`"


def _too_late(case: Case, fits: Set[Way]) -> str | None:
    large = case.need.count >= LARGE
    if not fits or not (large or case.need.retryable is False) or _begins_in(case) >= EARLY:
        return None
    why = f"{case.need.count} instances" if large else "what must not fail"
    return f"{why}: begin three weeks ahead, quotas included"


def _by_people(case: Case, fits: Set[Way]) -> str | None:
    g6 = case.need.instance_type.startswith("ml.g6.")
    ultraserver = case.kind is not None and case.kind.is_ultraserver
    if case.need.target is Target.INSTANCES or not (g6 or ultraserver):
        return None
    return f"{'G6' if g6 else 'UltraServers'} in plans: through AWS's account team"


QUESTIONS: tuple[Question, ...] = (
    Question(
        "spot-for-what-survives",
        "Does the work survive two minutes' notice, and may it be tried again?",
        (Way.SPOT,), ARTICLE, _survives,
    ),
    Question(
        "on-demand-first", "May the start move, or may it be tried again?", _ON_DEMAND, ARTICLE, _may_wait
    ),
    Question(
        "reserve-when-the-start-is-fixed", "Is the start fixed, or failure dear?",
        _RESERVED, ARTICLE, _is_fixed,
    ),
    Question(
        "reserve-as-fall-back", "Does on-demand go on saying no?", _RESERVED, ARTICLE, _still_refused
    ),
    Question(
        "odcr-from-a-date", "Neither P nor Trn, 14 days or more, 5 to 120 days ahead?",
        (Way.ODCR,), ODCRS, _from_a_date,
    ),
    Question(
        "odcr-promises-from-now", "Neither P nor Trn, and must it be promised?",
        (Way.ODCR,), ODCRS, _from_now,
    ),
    Question("on-demand-on-the-day", "Is nothing else left?", _ON_DEMAND, EC2, _on_the_day),
    Question(
        "all-that-is-left", "Does the need allow nothing else?", (Way.ODCR, Way.SPOT), EC2, _alone_is_left
    ),
    Question("spot-beside", "May a part of it be interrupted?", (Way.SPOT,), ARTICLE, _may_run_beside),
    Question("other-regions-next", "Are there other Regions?", (), ARTICLE, _elsewhere),
    Question("quieter-hours-are-your-own", "Are there quieter hours?", (), PRACTICE, _at_other_hours),
    Question("begin-three-weeks-ahead", "Is it large, or production?", (), ARTICLE, _too_late),
    Question("ask-the-account-team", "Is it sold by people only?", (), ARTICLE, _by_people),
)  # fmt: skip
"""Every question in the order in which it is asked."""
