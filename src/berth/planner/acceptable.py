"""Which instance types would do: for a target, and for accelerators of a kind, number and memory."""

from __future__ import annotations

import difflib
import re
from decimal import Decimal

from berth.facts.general_types import general_type
from berth.facts.instance_types import ML_PREFIX, InstanceType, instance_type, instance_types
from berth.planner.framework.limits import PLAN_COUNTS
from berth.planner.part import Accelerators, TypeCount, check_count
from berth.terms.ways import Target

_TYPE_NAME = re.compile(r"(ml\.)?[a-z][a-z0-9-]*\.[a-z0-9-]+")


def types_for(asked: Accelerators, at_best: int, target: Target) -> tuple[TypeCount, ...]:
    """The types that have such accelerators, each with the count that is enough; the best fit first.

    First those that are sold ahead for the target, then those with the fewest accelerators too many, then the
    fewest instances. Where SageMaker sells powers of two, the count is the next of them. Raises ValueError
    where no type will do.
    """
    fitting = [kind for kind in _of_kinds(asked) if _may(kind, target)]
    made = []
    for kind in fitting:
        least = _instances(asked.count, kind, target)
        most = _instances(at_best, kind, target)
        if least is not None and most is not None:
            over = least * kind.accelerator_count - asked.count
            name = kind.name if target is Target.INSTANCES else kind.ml_name
            made.append(((not _sold_ahead(kind, target), over, least), TypeCount(name, least, most)))
    if not made:
        raise ValueError(_no_such(asked, target))
    # Stable: what is equal so far stays in the order of the table.
    return tuple(wanted for _, wanted in sorted(made, key=lambda pair: pair[0]))


def _of_kinds(asked: Accelerators) -> list[InstanceType]:
    wanted = [kind.casefold() for kind in asked.kinds]
    unknown = [k for k in asked.kinds if not any(_is(t, k.casefold()) for t in instance_types())]
    if unknown:
        known = sorted({t.accelerator for t in instance_types()})
        near = difflib.get_close_matches(unknown[0].upper(), known, 3, 0.4) or known
        raise ValueError(f"no type has {unknown[0]!r}; near: {', '.join(near)}")
    least = asked.least_memory_gib
    return [
        t
        for t in instance_types()
        if any(_is(t, kind) for kind in wanted) and not t.is_ultraserver
        and (least is None or (_each(t) or Decimal(0)) >= least)
    ]  # fmt: skip


def _is(kind: InstanceType, wanted: str) -> bool:
    """`RTX PRO 6000` names what the table calls by a longer name; `L4` is no `L40S`."""
    name = kind.accelerator.casefold()
    return name == wanted or name.startswith(f"{wanted} ")


def _each(kind: InstanceType) -> Decimal | None:
    total = kind.accelerator_memory_gib
    return None if total is None else total / kind.accelerator_count


def _may(kind: InstanceType, target: Target) -> bool:
    try:
        check_type(kind.name if target is Target.INSTANCES else kind.ml_name, target)
    except ValueError:
        return False
    return True


def _sold_ahead(kind: InstanceType, target: Target) -> bool:
    return kind.capacity_block if target is Target.INSTANCES else kind.training_plan is True


def _instances(accelerators: int, kind: InstanceType, target: Target) -> int | None:
    """How many instances hold that many; None where that is more than can be asked for."""
    count = -(-accelerators // kind.accelerator_count)
    if target is not Target.INSTANCES:
        return next((c for c in PLAN_COUNTS if c >= count), None)
    try:
        return check_count(count)
    except ValueError:
        return None


def _no_such(asked: Accelerators, target: Target) -> str:
    what = " or ".join(asked.kinds)
    if asked.least_memory_gib is not None:
        most = max(
            (_each(t) or Decimal(0) for t in _of_kinds(Accelerators(asked.kinds, 1))), default=Decimal(0)
        )
        if most < asked.least_memory_gib:
            return f"no {what} has {asked.least_memory_gib} GiB; the most is {most.normalize():f}"
    return f"no type for target {target.value} has {asked.count} x {what}"


def check_ec2_name(name: str) -> None:
    """Raise ValueError unless `name` can be an EC2 type: tables need not know what is not bought ahead."""
    if general_type(name) is None and not _TYPE_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no instance type; they look like c7g.2xlarge")
    if name.startswith(ML_PREFIX):
        raise ValueError(f"{name!r}: EC2 calls it {name.removeprefix(ML_PREFIX)!r}")


def check_type(name: str, target: Target) -> InstanceType:
    """The type called `name`, if `target` can have it. Raises ValueError saying which name would be right."""
    on_sagemaker = target is not Target.INSTANCES
    bare = name.removeprefix(ML_PREFIX)
    kind = instance_type(bare)
    if kind is None:
        prefix = ML_PREFIX if on_sagemaker else ""
        near = difflib.get_close_matches(bare, [t.name for t in instance_types()], 3, 0.5)
        hint = f"; near: {', '.join(prefix + n for n in near)}" if near else ""
        raise ValueError(f"{name!r} is not a known accelerated instance type{hint}")
    right = kind.ml_name if on_sagemaker else kind.name
    if name != right:
        who = "SageMaker" if on_sagemaker else "EC2"
        raise ValueError(f"{name!r}: {who} calls it {right!r}, and target {target.value} is {who}'s")
    if kind.is_ultraserver:
        return kind  # whether one can be had by a call is each way's own matter
    hosts = {
        Target.ENDPOINT: kind.sagemaker_hosting,
        Target.TRAINING_JOB: kind.sagemaker_training,
        Target.HYPERPOD_CLUSTER: kind.sagemaker_hyperpod,
    }.get(target, True)
    if not hosts:
        raise ValueError(f"{name} does not exist for target {target.value}")
    return kind
