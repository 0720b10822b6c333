"""Pacing: AWS counts some calls in token buckets, one an account and Region."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from berth.terms.clock import Clock

# EC2 developer guide, API throttling, read 2026-11: a bucket of 10 for DescribeCapacityBlockOfferings, one
# token back every 6.7 s.
BLOCK_SEARCH_BUCKET = 10
BLOCK_SEARCH_REFILL_PER_S = 0.15


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket: `size` calls at once, then `refill_per_s` a second."""

    size: int
    refill_per_s: float

    def seconds(self, calls: int, tokens: float | None = None) -> float:
        """The least time in which the bucket lets so many calls through. Pure.

        `tokens` is what is in it when the first is sent; None: it is full.
        """
        there = float(self.size) if tokens is None else min(float(self.size), tokens)
        return max(0.0, calls - there) / self.refill_per_s

    def level(self, taken_ago_s: Iterable[float]) -> float:
        """Tokens that are left now, when it was full before calls so many seconds ago. Pure."""
        level, at = float(self.size), None
        for ago in sorted(taken_ago_s, reverse=True):
            if at is not None:
                level = min(float(self.size), level + (at - ago) * self.refill_per_s)
            level, at = max(0.0, level - 1), ago
        return level if at is None else min(float(self.size), level + max(0.0, at) * self.refill_per_s)


JITTER_S = 0.5
"""How much later than another a request may reach the service: who sends a call the moment that a token is
back is refused whenever the call before it was slow on its way. It is waited once, not at every call."""

BLOCK_SEARCH = Bucket(BLOCK_SEARCH_BUCKET, BLOCK_SEARCH_REFILL_PER_S)


class ScaledClock:
    """A clock on which `scale` seconds pass in a real one, for throttles that are scaled alike."""

    def __init__(self, clock: Clock, scale: float) -> None:
        self._clock = clock
        self._scale = scale

    def now(self) -> datetime:
        """The present on the clock behind it."""
        return self._clock.now()

    def elapsed(self) -> float:
        """Scaled seconds."""
        return self._clock.elapsed() * self._scale

    def sleep(self, seconds: float) -> None:
        """Sleep scaled seconds."""
        self._clock.sleep(seconds / self._scale)


class Pacer:
    """A token bucket that starts full. `take` waits until there is a token. For one thread at a time."""

    def __init__(
        self,
        elapsed: Callable[[], float],
        sleep: Callable[[float], None],
        *,
        bucket: int = BLOCK_SEARCH_BUCKET,
        refill_per_s: float = BLOCK_SEARCH_REFILL_PER_S,
        tokens: float | None = None,
    ) -> None:
        self._elapsed = elapsed
        self._sleep = sleep
        self._bucket = float(bucket)
        self._refill = refill_per_s
        self._tokens = self._bucket if tokens is None else min(self._bucket, tokens)
        self._at = elapsed()
        self.taken = 0

    @property
    def tokens(self) -> float:
        """What is in the bucket now."""
        self._fill()
        return self._tokens

    def take(self) -> None:
        """Take one token, and sleep before where there is none yet, with room for `JITTER_S`."""
        self._fill()
        if self._tokens < 1:
            self._sleep((1 - self._tokens) / self._refill + JITTER_S)
            self._fill()
        self._tokens = max(0.0, self._tokens - 1)
        self.taken += 1

    def drain(self) -> None:
        """The service says that we were too fast: somebody else takes from the same bucket."""
        self._fill()
        self._tokens = min(self._tokens, 0.0)

    def _fill(self) -> None:
        now = self._elapsed()
        self._tokens = min(self._bucket, self._tokens + (now - self._at) * self._refill)
        self._at = now
