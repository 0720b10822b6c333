"""Token buckets: how often an account may call, per Region and class of operation, on real time."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Bucket:
    """`size` calls at once, `refill` calls a second in the long run, for operations matching `operation`."""

    service: str
    operation: str
    size: float
    refill: float


class Throttles:
    """The buckets of one yard. Used by one thread."""

    def __init__(self, buckets: tuple[Bucket, ...]) -> None:
        self._buckets = buckets
        self._of: dict[tuple[str, str], tuple[int, Bucket] | None] = {}
        self._levels: dict[tuple[str, str, int], tuple[float, float]] = {}

    def admits(self, account_id: str, region: str, service: str, operation: str, now_s: float) -> bool:
        """Take a token; False when the bucket is empty. `now_s` is elapsed real time."""
        found = self._bucket(service, operation)
        if found is None:
            return True
        number, bucket = found
        key = (account_id, region, number)
        level, since = self._levels.get(key, (bucket.size, now_s))
        level = min(bucket.size, level + (now_s - since) * bucket.refill)
        admitted = level >= 1.0
        self._levels[key] = (level - 1.0 if admitted else level, now_s)
        return admitted

    def _bucket(self, service: str, operation: str) -> tuple[int, Bucket] | None:
        """The first bucket of the fleet file that matches, remembered per operation."""
        key = (service, operation)
        if key not in self._of:
            self._of[key] = next(
                (
                    (number, bucket)
                    for number, bucket in enumerate(self._buckets)
                    if bucket.service == service and fnmatchcase(operation, bucket.operation)
                ),
                None,
            )
        return self._of[key]


def throttling_error(service: str, operation: str, account_id: str) -> tuple[str, str, int]:
    """Code, message and HTTP status of a throttled call (EC2 Developer Guide, "Request throttling")."""
    if service == "ec2":
        return (
            "RequestLimitExceeded",
            f"Request limit exceeded. Account {account_id} has been throttled on ec2:{operation} because it"
            " exceeded its request rate limit.",
            503,
        )
    return "ThrottlingException", "Rate exceeded", 400


