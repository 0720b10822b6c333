"""A search for plan offerings as it is asked, and what AWS refuses about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from berth.terms.ways import Target
from berth.yard.errors import ServiceError
from berth.yard.fleet.fleet import Quotas
from berth.yard.fleet.pools import Pool
from berth.yard.market.plan_rules import COUNTS, HOURS_MAX

# A client that asks for a start at its own "now" is a moment late when the yard reads it, and SDKs send whole
# seconds. Inferred: AWS says only that the start must be in the future.
LATE = timedelta(minutes=1)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class PlanQuery:
    """What SearchTrainingPlanOfferings asks. `duration_hours` is as asked, not rounded yet.

    None where the caller left a member out. AWS's guide calls type, count and duration mandatory though the
    model does not, so a search without one of them is refused; no target means training-job.
    """

    instance_type: str | None
    count: int | None
    duration_hours: int | None
    targets: tuple[Target, ...] = (Target.TRAINING_JOB,)
    start_after: datetime | None = None
    end_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that may be answered: nothing missing, nothing out of range."""

    instance_type: str
    count: int
    duration_hours: int
    targets: tuple[Target, ...]
    start_after: datetime
    end_before: datetime | None


def check_query(query: PlanQuery, now: datetime, pools: Sequence[Pool], quotas: Quotas) -> CheckedQuery:
    """`query` with its gaps filled. `pools` are those of the Region with the asked type.

    Raises ServiceError: ValidationException for what is malformed or not sold, ResourceLimitExceeded where
    the account's quota for the type is too low (AWS does so for a quota of 0; for one below the count it is
    inferred, since such an offering could not be bought).
    """
    if query.instance_type is None:
        raise _invalid("InstanceType is required.")
    if query.count is None:
        raise _invalid("InstanceCount is required.")
    if query.duration_hours is None:
        raise _invalid("DurationHours is required.")
    _check_targets(query.instance_type, query.targets, pools)
    _check_count(query.count, max((pool.unit for pool in pools), default=1))
    if not 1 <= query.duration_hours <= HOURS_MAX:
        raise _invalid(
            f"DurationHours must be from 1 to {HOURS_MAX} (1 to 182 days), not {query.duration_hours}."
        )
    _check_times(query, now)
    check_reserved_quota(query.instance_type, query.count, 0, quotas)
    return CheckedQuery(
        query.instance_type,
        query.count,
        query.duration_hours,
        tuple(dict.fromkeys(query.targets)),
        max(query.start_after or now, now),
        query.end_before,
    )


def _invalid(message: str) -> ServiceError:
    return ServiceError("ValidationException", message)


def _check_targets(instance_type: str, targets: Sequence[Target], pools: Sequence[Pool]) -> None:
    if not targets:
        raise _invalid("TargetResources must name at least one target.")
    for target in targets:
        if not any(target in pool.targets for pool in pools):
            # Seen in a public discovery tool's test data, word for word.
            raise _invalid(f"Invalid instance type {instance_type} for target resource {target.value}.")


def _check_count(count: int, unit: int) -> None:
    allowed = [unit * number for number in COUNTS if unit * number <= COUNTS[-1]]
    if count not in allowed:
        raise _invalid(f"InstanceCount must be one of {', '.join(map(str, allowed))}, not {count}.")


def _check_times(query: PlanQuery, now: datetime) -> None:
    if query.start_after is not None and query.start_after < now - LATE:
        raise _invalid("StartTimeAfter must be in the future.")
    earliest = max(query.start_after or now, now)
    if query.end_before is not None and query.end_before < earliest + _DAY - LATE:
        raise _invalid("EndTimeBefore must be at least 24 hours after the start time.")


def check_reserved_quota(instance_type: str, delta: int, used: int, quotas: Quotas) -> None:
    """Raises ResourceLimitExceeded when `delta` more instances pass the reserved-capacity quota."""
    limit = quotas.reserved_capacity_of(instance_type)
    if used + delta > limit:
        name = f"Number of {instance_type} instances in reserved capacity across training plans per Region"
        raise limit_exceeded(name, limit, used, delta, "Instances")


def limit_exceeded(name: str, limit: int, used: int, delta: int, unit: str) -> ServiceError:
    """ResourceLimitExceeded in AWS's words for account-level limits (seen in public issue threads)."""
    return ServiceError(
        "ResourceLimitExceeded",
        f"The account-level service limit '{name}' is {limit} {unit}, with current utilization of {used} "
        f"{unit} and a request delta of {delta} {unit}. Please use AWS Service Quotas to request an increase "
        "for this quota.",
    )
