"""Token buckets at work: how often an account may call, per Region, on real time."""

from __future__ import annotations

from berth.yard.fleet.fleet import Fleet, Throttle


class Throttles:
    """The levels of a fleet's buckets, one per account, Region and bucket. Used by one thread.

    `scale` says how many seconds of a bucket pass in a real second: 1, or more in a rehearsal that measures a
    long sweep in a short time. How many calls a full bucket lets through at once stays as it is.
    """

    def __init__(self, fleet: Fleet, scale: float = 1.0) -> None:
        self._fleet = fleet
        self.scale = scale
        self._of: dict[tuple[str, str], Throttle | None] = {}
        self._levels: dict[tuple[str, str, str], tuple[float, float]] = {}

    def admits(self, account_id: str, region: str, service: str, operation: str, now_s: float) -> bool:
        """Take a token; False when the bucket is empty. `now_s` is elapsed real time in seconds."""
        named = (service, operation)
        if named not in self._of:
            self._of[named] = self._fleet.throttle_for(service, operation)
        bucket = self._of[named]
        if bucket is None:
            return True
        key = (account_id, region, bucket.name)
        level, since = self._levels.get(key, (float(bucket.size), now_s))
        refilled = (now_s - since) * self.scale * float(bucket.refill_per_s)
        level = min(float(bucket.size), level + refilled)
        admitted = level >= 1.0
        self._levels[key] = (level - 1.0 if admitted else level, now_s)
        return admitted


def throttling_error(service: str, operation: str, account_id: str) -> tuple[str, str, int]:
    """Code, message and HTTP status of a throttled call (EC2 Developer Guide, "Request throttling")."""
    if service == "ec2":
        message = (
            f"Request limit exceeded. Account {account_id} has been throttled on ec2:{operation} because it"
            " exceeded its request rate limit."
        )
        return "RequestLimitExceeded", message, 503
    code = "TooManyRequestsException" if service == "service-quotas" else "ThrottlingException"
    return code, "Rate exceeded", 400
