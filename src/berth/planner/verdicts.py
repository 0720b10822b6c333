"""Whether a way fits a need: named rules, each with its sentence, source and date.

Who manages the machines decides which ways exist at all: what runs under SageMaker can only be served by
SageMaker's ways, what runs on instances of one's own only by EC2's. The rest of the rules speak about counts,
durations, types and times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from berth.facts.instance_types import InstanceType, instance_type
from berth.planner import ladder
from berth.planner.need import Need
from berth.planner.platforms import BLOCK_PLATFORMS
from berth.terms.durations import spoken
from berth.terms.ways import Target, Way

PLAN_COUNTS = (1, 2, 4, 8, 16, 32, 64)
BLOCK_COUNT_MAX = 64
BLOCK_INSTANCES_MAX = 256
LONGEST = timedelta(days=182)
BOOKABLE_AHEAD = timedelta(weeks=8)

EC2_WAYS = (Way.CAPACITY_BLOCK, Way.ON_DEMAND, Way.SPOT, Way.ODCR)
SAGEMAKER_WAYS = (Way.TRAINING_PLAN, Way.SAGEMAKER_ON_DEMAND)

_PLANS = "SageMaker guide, training plans, read 2026-11"
_BLOCKS = "EC2 guide, Capacity Blocks, read 2026-11"
_EC2 = "EC2 guide, purchase options, read 2026-11"
_MODEL = "botocore model of SageMaker 2017-07-24"


@dataclass(frozen=True, slots=True)
class Reason:
    """One rule's word on a way, in a sentence, with where the rule comes from.

    `against` says that the way does not fit; otherwise the sentence is something to know.
    """

    rule: str
    against: bool
    sentence: str
    source: str

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "rule": self.rule,
            "against": self.against,
            "sentence": self.sentence,
            "source": self.source,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Reason:
        """The reason that `to_json` wrote."""
        return cls(value["rule"], bool(value["against"]), value["sentence"], value["source"])


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


@dataclass(frozen=True, slots=True)
class WayVerdict:
    """Whether `way` fits a need; `reasons` holds every rule that spoke, against it first."""

    way: Way
    fits: bool
    reasons: tuple[Reason, ...]
    terms: Terms

    @property
    def why_not(self) -> str:
        """The first sentence against the way, empty when it fits."""
        return next((r.sentence for r in self.reasons if r.against), "")

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "way": self.way.value,
            "fits": self.fits,
            "reasons": [r.to_json() for r in self.reasons],
            "terms": self.terms.to_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> WayVerdict:
        """The verdict that `to_json` wrote."""
        return cls(
            Way(value["way"]),
            bool(value["fits"]),
            tuple(Reason.from_json(r) for r in value["reasons"]),
            Terms.from_json(value["terms"]),
        )


TERMS: dict[Way, Terms] = {
    Way.TRAINING_PLAN: Terms(
        "you do, once it is Active (jobs and clusters may be sent before)",
        "you, by one purchase; no autoscaler buys it",
        "all of it at the purchase",
        "no: no cancel, no refund, also not for idle hours",
        "AWS takes the instances 30 min (HyperPod 60 min) before the paid end",
        _PLANS,
    ),
    Way.SAGEMAKER_ON_DEMAND: Terms(
        "SageMaker, when you create the endpoint, job or cluster",
        "nobody: it is had or refused at the moment you ask",
        "by the second while it runs",
        "yes: delete it and paying stops",
        "it ends when you delete it; what you give back you may not get again",
        _PLANS,
    ),
    Way.CAPACITY_BLOCK: Terms(
        "you do, from the start of the block; nothing starts by itself",
        "you, by one purchase; no autoscaler buys it",
        "all of it at the purchase; operating system fees while instances run",
        "no: no cancel, no refund",
        "AWS begins to end the instances 30 min (UltraServers 60 min) before the end",
        _BLOCKS,
    ),
    Way.ON_DEMAND: Terms(
        "you, or your autoscaler",
        "nobody: it is had or refused at the moment you ask",
        "by the second while it runs",
        "yes: end the instance and paying stops",
        "if you stop it, you may not get it back",
        _EC2,
    ),
    Way.SPOT: Terms(
        "you, or your autoscaler",
        "nobody: it is had or refused at the moment you ask",
        "by the second while it runs, at a price that moves",
        "yes: end the instance and paying stops",
        "AWS may take it back with two minutes' notice",
        _EC2,
    ),
    Way.ODCR: Terms(
        "you, or your autoscaler; matching instances fill it by themselves when it is open",
        "you, by creating it; it is granted or refused at once",
        "from creation at on-demand rates, used or idle",
        "yes: cancel it and paying for idle places stops",
        "it stays until its end date or until you cancel it",
        _EC2,
    ),
}


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


def verdicts(need: Need, now: datetime, blocks_owned: int = 0) -> tuple[WayVerdict, ...]:
    """A verdict on each of the six ways, those that fit first, else in the order of `Way`."""
    case = Case(need, instance_type(need.instance_type), now, blocks_owned)
    made = [_verdict(way, case) for way in Way]
    return tuple(sorted(made, key=lambda v: not v.fits))


def _verdict(way: Way, case: Case) -> WayVerdict:
    said = [reason for rule in RULES if (reason := rule(way, case)) is not None]
    against = [r for r in said if r.against]
    return WayVerdict(way, not against, tuple(against + [r for r in said if not r.against]), TERMS[way])


def _manager(way: Way, case: Case) -> Reason | None:
    on_ec2 = case.need.target is Target.INSTANCES
    if way in EC2_WAYS and not on_ec2:
        what = {
            Target.ENDPOINT: "cannot serve an endpoint",
            Target.TRAINING_JOB: "cannot run a SageMaker training job",
            Target.HYPERPOD_CLUSTER: "cannot hold a HyperPod cluster",
            Target.STUDIO_APPS: "cannot hold Studio apps",
        }[case.need.target]
        sentence = f"EC2 only, {what}" if way is Way.CAPACITY_BLOCK else "EC2 only"
        return Reason("who-manages-the-machines", True, sentence, _PLANS)
    if way in SAGEMAKER_WAYS and on_ec2:
        return Reason(
            "who-manages-the-machines", True, "SageMaker only, gives no instances of your own", _PLANS
        )
    return None


def _promise(way: Way, case: Case) -> Reason | None:
    if case.need.start is None:
        return None
    if way in {Way.TRAINING_PLAN, Way.CAPACITY_BLOCK}:
        return Reason(
            "reserve-when-the-start-is-fixed", False, "the start is fixed, and it promises it", _PLANS
        )
    if way in {Way.ON_DEMAND, Way.SAGEMAKER_ON_DEMAND}:
        return Reason("on-demand-promises-nothing", False, "may say no on the day", _EC2)
    return None


def _type_sold(way: Way, case: Case) -> Reason | None:
    kind = case.kind
    if kind is None:
        return None
    if way is Way.TRAINING_PLAN and kind.training_plan is False:
        return Reason("type-in-plans", True, f"{kind.ml_name} is not sold in training plans", _MODEL)
    if way is Way.CAPACITY_BLOCK and not kind.capacity_block:
        return Reason("type-in-blocks", True, f"{kind.name} is not sold in Capacity Blocks", _BLOCKS)
    if way is Way.SPOT and not kind.spot:
        return Reason("type-in-spot", True, f"{kind.name} is not offered as Spot", _EC2)
    return None


def _count_sold(way: Way, case: Case) -> Reason | None:
    count = case.need.count
    if way is Way.TRAINING_PLAN and count not in PLAN_COUNTS:
        return Reason(
            "counts-are-powers-of-two", True, f"sold in 1, 2, 4, 8, 16, 32 or 64, not {count}", _PLANS
        )
    if way is Way.CAPACITY_BLOCK and count > BLOCK_COUNT_MAX:
        sentence = f"a block holds {BLOCK_COUNT_MAX} instances at most, not {count}"
        return Reason("64-instances-a-block", True, sentence, _BLOCKS)
    return None


def _blocks_in_all(way: Way, case: Case) -> Reason | None:
    owned, count = case.blocks_owned, case.need.count
    if way is not Way.CAPACITY_BLOCK or owned + count <= BLOCK_INSTANCES_MAX:
        return None
    sentence = f"{BLOCK_INSTANCES_MAX} over all blocks of an account: {owned} owned, {count} more wanted"
    return Reason("256-instances-over-all-blocks", True, sentence, _BLOCKS)


def _duration_sold(way: Way, case: Case) -> Reason | None:
    span = case.need.duration
    if way is Way.TRAINING_PLAN and span > LONGEST:
        return Reason("182-days-at-most", True, "sold for 182 days at most", _PLANS)
    if way is Way.CAPACITY_BLOCK and not ladder.on_ladder(span):
        near = " or ".join(days(step) for step in ladder.steps_around(span))
        sentence = f"sold for 1 to 14 days, then by whole weeks to 26: not {days(span)}; nearest {near}"
        return Reason("the-ladder-of-durations", True, sentence, _BLOCKS)
    return None


def _platform_sold(way: Way, case: Case) -> Reason | None:
    platform = case.need.platform
    if way is Way.CAPACITY_BLOCK and platform not in BLOCK_PLATFORMS:
        sentence = f"sold for {', '.join(BLOCK_PLATFORMS)}, not {platform}"
        return Reason("platforms-of-blocks", True, sentence, _BLOCKS)
    return None


def _not_too_far(way: Way, case: Case) -> Reason | None:
    starts = case.need.start or case.need.earliest_start
    if way in {Way.TRAINING_PLAN, Way.CAPACITY_BLOCK} and starts and starts > case.now + BOOKABLE_AHEAD:
        source = _PLANS if way is Way.TRAINING_PLAN else _BLOCKS
        opens = starts - BOOKABLE_AHEAD
        return Reason(
            "8-weeks-ahead", True, f"not on sale yet: 8 weeks ahead, so from {opens:%Y-%m-%d} on", source
        )
    return None


def _interrupted(way: Way, case: Case) -> Reason | None:
    if way is not Way.SPOT:
        return None
    return Reason("spot-may-end", False, "only for what survives two minutes' notice", _EC2)


def _idle_is_paid(way: Way, case: Case) -> Reason | None:
    if way is not Way.ODCR:
        return None
    sentence = "idle time is paid at on-demand rates, and P types are rarely to be had at short notice"
    return Reason("odcr-pays-idle-time", False, sentence, _EC2)


def days(span: timedelta) -> str:
    """`17 days` for whole days, else hours and minutes in words."""
    whole, rest = divmod(span, timedelta(days=1))
    if rest:
        return spoken(span)
    return f"{whole} {'day' if whole == 1 else 'days'}"


RULES: tuple[Rule, ...] = (
    _manager, _type_sold, _count_sold, _blocks_in_all, _duration_sold, _platform_sold, _not_too_far, _promise,
    _interrupted, _idle_is_paid,
)  # fmt: skip
