"""Pacing: AWS counts some calls in token buckets, one an account and Region."""

from __future__ import annotations

from collections.abc import Callable

# EC2 developer guide, API throttling, read 2026-11: a bucket of 10 for DescribeCapacityBlockOfferings, one
# token back every 6.7 s.
BLOCK_SEARCH_BUCKET = 10
BLOCK_SEARCH_REFILL_PER_S = 0.15


class Pacer:
    """A token bucket that starts full. `take` waits until there is a token. For one thread."""

    def __init__(
        self,
        elapsed: Callable[[], float],
        sleep: Callable[[float], None],
        *,
        bucket: int = BLOCK_SEARCH_BUCKET,
        refill_per_s: float = BLOCK_SEARCH_REFILL_PER_S,
    ) -> None:
        self._elapsed = elapsed
        self._sleep = sleep
        self._bucket = float(bucket)
        self._refill = refill_per_s
        self._tokens = self._bucket
        self._at = elapsed()

    def take(self) -> None:
        """Take one token, and sleep before where there is none yet."""
        self._fill()
        if self._tokens < 1:
            self._sleep((1 - self._tokens) / self._refill)
            self._fill()
        self._tokens = max(0.0, self._tokens - 1)

    def drain(self) -> None:
        """The service says that we were too fast: somebody else takes from the same bucket."""
        self._fill()
        self._tokens = min(self._tokens, 0.0)

    def _fill(self) -> None:
        now = self._elapsed()
        self._tokens = min(self._bucket, self._tokens + (now - self._at) * self._refill)
        self._at = now
