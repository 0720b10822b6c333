"""What can be sold at all: who manages the machines, types, counts, durations, platforms, how far ahead."""

from __future__ import annotations

from datetime import timedelta

from berth.facts.instance_types import InstanceType
from berth.planner import ladder
from berth.planner.framework.case import Case, Rule
from berth.planner.framework.reason import BLOCKS, EC2, MODEL, NEED, ODCRS, PLANS, ULTRASERVERS, Reason
from berth.planner.platforms import BLOCK_PLATFORMS
from berth.terms.durations import spoken
from berth.terms.ways import Target, Way

PLAN_COUNTS = (1, 2, 4, 8, 16, 32, 64)
BLOCK_COUNT_MAX = 64
ODCR_COUNT_MAX = 1000
BLOCK_INSTANCES_MAX = 256
LONGEST = timedelta(days=182)
SEVERAL_BLOCKS = "64-instances-a-block"
LEFT_OUT = "left-out-by-the-need"
BOOKABLE_AHEAD = timedelta(weeks=8)

EC2_WAYS = (Way.CAPACITY_BLOCK, Way.ON_DEMAND, Way.SPOT, Way.ODCR)
SAGEMAKER_WAYS = (Way.TRAINING_PLAN, Way.SAGEMAKER_ON_DEMAND)


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
        return Reason("who-manages-the-machines", True, sentence, PLANS)
    if way in SAGEMAKER_WAYS and on_ec2:
        return Reason(
            "who-manages-the-machines", True, "SageMaker only, gives no instances of your own", PLANS
        )
    return None


def _is_allowed(way: Way, case: Case) -> Reason | None:
    if not case.need.ways or way in case.need.ways:
        return None
    return Reason(LEFT_OUT, True, "the need does not allow it", NEED)


def _type_sold(way: Way, case: Case) -> Reason | None:
    kind = case.kind
    if kind is None:
        return None
    if way is Way.TRAINING_PLAN:
        return _type_in_plans(kind)
    if way is Way.CAPACITY_BLOCK and not kind.capacity_block:
        return Reason("type-in-blocks", True, f"{kind.name} is not sold in Capacity Blocks", BLOCKS)
    if way is Way.SPOT and not kind.spot:
        return Reason("type-in-spot", True, f"{kind.name} is not offered as Spot", EC2)
    return None


def _type_in_plans(kind: InstanceType) -> Reason | None:
    if kind.is_ultraserver:
        sentence = "UltraServers in plans are sold by AWS's account team, not by a call"
        return Reason("ultraservers-in-plans", True, sentence, ULTRASERVERS)
    if kind.training_plan is not False:
        return None
    if kind.name.startswith("g6."):
        sentence = f"{kind.ml_name} in plans only through AWS's account team"
        return Reason("g6-through-the-account-team", True, sentence, PLANS)
    return Reason("type-in-plans", True, f"{kind.ml_name} is not sold in training plans", MODEL)


def _count_sold(way: Way, case: Case) -> Reason | None:
    count, most = case.need.count, case.need.count_wanted or case.need.count
    if way is Way.TRAINING_PLAN and not plan_counts_between(count, most):
        near = [c for c in PLAN_COUNTS if c < count][-1:] + [c for c in PLAN_COUNTS if c > count][:1]
        asked = str(count) if count == most else f"{count} to {most}"
        sentence = f"sold in 1, 2, 4, 8, 16, 32 or 64, not {asked}"
        sentence += f"; nearest {' or '.join(map(str, near))}"
        return Reason("counts-are-powers-of-two", True, sentence, PLANS)
    if way is Way.CAPACITY_BLOCK and count > BLOCK_COUNT_MAX:
        sizes = " + ".join(map(str, block_sizes(count)))
        sentence = f"a block holds {BLOCK_COUNT_MAX} instances at most: several blocks: {sizes}"
        return Reason(SEVERAL_BLOCKS, False, sentence, BLOCKS)
    if way is Way.ODCR and count > ODCR_COUNT_MAX:
        sentence = f"a request holds {ODCR_COUNT_MAX} instances at most, not {count}"
        return Reason("1000-instances-an-odcr", True, sentence, ODCRS)
    return None


def plan_counts_between(least: int, most: int) -> tuple[int, ...]:
    """The counts in which training plans are sold, from `least` to `most`, the largest first."""
    return tuple(count for count in reversed(PLAN_COUNTS) if least <= count <= most)


def block_sizes(count: int) -> tuple[int, ...]:
    """The sizes of the blocks that hold `count` instances together: as few blocks as can be."""
    whole, rest = divmod(count, BLOCK_COUNT_MAX)
    return (BLOCK_COUNT_MAX,) * whole + ((rest,) if rest else ())


def _blocks_in_all(way: Way, case: Case) -> Reason | None:
    owned, count = case.blocks_owned, case.need.count
    accounts = max(len(case.need.accounts), 1)
    if way is not Way.CAPACITY_BLOCK or owned + count <= BLOCK_INSTANCES_MAX * accounts:
        return None
    sentence = f"{BLOCK_INSTANCES_MAX} over all blocks of an account: {owned} owned, {count} more wanted"
    sentence += f" in {accounts} accounts" if accounts > 1 else ""
    return Reason("256-instances-over-all-blocks", True, sentence, BLOCKS)


def _duration_sold(way: Way, case: Case) -> Reason | None:
    span, longest = case.need.duration, case.need.duration_at_most
    if way is Way.TRAINING_PLAN and span > LONGEST:
        return Reason("182-days-at-most", True, "sold for 182 days at most", PLANS)
    if way is Way.CAPACITY_BLOCK and not ladder.steps_between(span, longest):
        near = " or ".join(days(step) for step in ladder.steps_around(span))
        asked = days(span) if span == longest else f"{days(span)} to {days(longest)}"
        sentence = f"sold for 1 to 14 days, then by whole weeks to 26: not {asked}; nearest {near}"
        return Reason("the-ladder-of-durations", True, sentence, BLOCKS)
    return None


def _platform_sold(way: Way, case: Case) -> Reason | None:
    platform = case.need.platform
    if way is Way.CAPACITY_BLOCK and platform not in BLOCK_PLATFORMS:
        sentence = f"sold for {', '.join(BLOCK_PLATFORMS)}, not {platform}"
        return Reason("platforms-of-blocks", True, sentence, BLOCKS)
    return None


def _not_too_far(way: Way, case: Case) -> Reason | None:
    starts = case.need.start or case.need.earliest_start
    if way in {Way.TRAINING_PLAN, Way.CAPACITY_BLOCK} and starts and starts > case.now + BOOKABLE_AHEAD:
        source = PLANS if way is Way.TRAINING_PLAN else BLOCKS
        opens = starts - BOOKABLE_AHEAD
        return Reason(
            "8-weeks-ahead", True, f"not on sale yet: 8 weeks ahead, so from {opens:%Y-%m-%d} on", source
        )
    return None


def days(span: timedelta) -> str:
    """`17 days` for whole days, else hours and minutes in words."""
    whole, rest = divmod(span, timedelta(days=1))
    if rest:
        return spoken(span)
    return f"{whole} {'day' if whole == 1 else 'days'}"


LIMITS: tuple[Rule, ...] = (
    _manager, _is_allowed, _type_sold, _count_sold, _blocks_in_all, _duration_sold, _platform_sold,
    _not_too_far,
)  # fmt: skip
