"""A search for Capacity Block offerings as it is asked, and what AWS refuses about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from berth.yard.errors import ServiceError
from berth.yard.fleet.fleet import Quotas
from berth.yard.fleet.pools import Pool
from berth.yard.market.block_rules import COUNT_MAX, DURATIONS_HOURS, family_of

# A client that asks for a start at its own "now" is a moment late when the yard reads it, and SDKs send whole
# seconds. Inferred.
LATE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class BlockQuery:
    """What DescribeCapacityBlockOfferings asks.

    `types` are InstanceType or the InstanceTypePreferences, none where the caller left both out; `count` None
    likewise. `end_before` bounds the block's end. With `every_zone` Local Zones count that the account has
    not opted into.
    """

    types: tuple[str, ...]
    count: int | None
    duration_hours: int
    start_after: datetime | None = None
    end_before: datetime | None = None
    every_zone: bool = False


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that may be answered: nothing missing, nothing out of range."""

    types: tuple[str, ...]
    count: int
    days: int
    start_after: datetime
    end_before: datetime | None
    every_zone: bool


def check_block_query(
    query: BlockQuery, now: datetime, region: str, pools: Mapping[str, Sequence[Pool]], quotas: Quotas
) -> CheckedQuery:
    """`query` with its gaps filled. `pools` are those of the Region that sell each asked type as blocks.

    Raises ServiceError: MissingParameter, InvalidParameterValue (known texts, EC2 capacity samples and public
    reports, where there are some), CapacityBlockDescribeLimitExceeded where the account's quota is 0.
    """
    if not query.types:
        raise _missing("InstanceType")
    if query.count is None:
        raise _missing("InstanceCount")
    for type_ in query.types:
        if not pools.get(type_):
            raise invalid(
                f"The instance type '{type_}' is not supported for Capacity Blocks in '{region}'."
                " Specify a compatible instance type and try again."
            )
    if not 1 <= query.count <= COUNT_MAX:
        raise invalid(
            f"The instance count is not valid: it must be from 1 to {COUNT_MAX}, not {query.count}."
        )
    if query.duration_hours not in DURATIONS_HOURS:
        raise invalid(
            "The capacity duration is not valid. Specify 24 to 336 hours in steps of 24, or 504 to 4368 hours"
            f" in steps of 168; not {query.duration_hours}."
        )
    _check_times(query, now)
    if all(quotas.block_vcpus_of(family_of(type_)) == 0 for type_ in query.types):
        raise ServiceError(
            "CapacityBlockDescribeLimitExceeded",
            "Your existing service limits for this AWS account are not sufficient to use EC2 Capacity"
            " Blocks.",
        )
    start_after = max(query.start_after or now, now)
    return CheckedQuery(
        query.types, query.count, query.duration_hours // 24, start_after, query.end_before, query.every_zone
    )


def _check_times(query: BlockQuery, now: datetime) -> None:
    if query.start_after is not None and query.start_after < now - LATE:
        raise invalid("The start date is not valid. Specify a start date in the future.")
    if query.end_before is not None and query.end_before <= max(query.start_after or now, now):
        raise invalid("The end date is not valid. Specify an end date after the start date.")


def invalid(message: str) -> ServiceError:
    """InvalidParameterValue."""
    return ServiceError("InvalidParameterValue", message)


def _missing(name: str) -> ServiceError:
    return ServiceError("MissingParameter", f"The request must contain the parameter {name}")
