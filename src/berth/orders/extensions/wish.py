"""What is wished for: by how long, until when, how long before the end; whether it is had already. Pure.

Lengths: 1 to 14 days by the day, then whole weeks up to 26 (EC2 User Guide, "Extend Capacity Blocks", and
SageMaker Developer Guide, "Extend a training plan", read 2026-11).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from berth.planner.ladder import step_at_least, steps_around, steps_between
from berth.terms.durations import parse_duration, read_range, spoken
from berth.terms.outcomes import BerthError, ExitCode

EARLIEST = timedelta(days=56)
LATEST = timedelta(hours=1)
"""An extension is bought from 56 days to 1 hour before the end (the same guides)."""
MOST_ASKED = 6
"""How many lengths of a range are asked about, shortest first: the search has a bucket of 10 calls."""
_RULE = re.compile(r"extend\s+(?P<by>[^,]+?)\s*(?:,\s*look\s*ahead\s+(?P<within>[^,]+?)\s*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wish:
    """One wish to extend. Either `shortest` and `longest` are there (by how long), or `until` (to when).

    `within` None: now, and once: what is extended already is not extended further. Else only when the end is
    so near, and then again and again.
    """

    shortest: timedelta | None = None
    longest: timedelta | None = None
    until: datetime | None = None
    within: timedelta | None = None

    def lengths(self, end: datetime) -> tuple[timedelta, ...]:
        """The lengths to ask about, shortest first. Raises BerthError (bad request) where AWS sells none."""
        if self.until is not None:
            step = step_at_least(self.until - end)
            if step is None:
                raise BerthError(
                    ExitCode.BAD_REQUEST,
                    f"{minute(self.until)} is further than one extension reaches: 182 days",
                )
            return (step,)
        assert self.shortest is not None
        longest = self.longest or self.shortest
        steps = steps_between(self.shortest, longest)
        if not steps:
            near = " or ".join(f"{step.days}d" for step in steps_around(self.shortest))
            raise BerthError(
                ExitCode.BAD_REQUEST,
                f"AWS extends by 1 to 14 days or by whole weeks up to 26, not by {spoken(self.shortest)}",
                f"--by {near}",
            )
        return steps[:MOST_ASKED]


def read_wish(by: str | None, until: datetime | None, rule: str | None, within: str | None) -> Wish:
    """A wish as it is typed: `7d`, `7d..14d`, an instant, or a rule `extend 7d, look ahead 2d`.

    Raises ValueError for anything else, and unless exactly one of `by`, `until` and `rule` is there.
    """
    if sum(one is not None for one in (by, until, rule)) != 1:
        raise ValueError("say how far with exactly one of --by, --until and --rule")
    if rule is not None:
        found = _RULE.fullmatch(rule.strip())
        if found is None:
            raise ValueError(f"not a rule: {rule[:60]!r}; write it like 'extend 7d, look ahead 2d'")
        if within is not None and found["within"] is not None:
            raise ValueError("the rule says how far to look ahead; leave --within out")
        by, within = found["by"], within or found["within"]
    ahead = None if within is None else parse_duration(within)
    if until is not None:
        return Wish(until=until, within=ahead)
    assert by is not None
    shortest, longest = read_range(by) if ".." in by else (parse_duration(by),) * 2
    return Wish(shortest, longest, None, ahead)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a reservation stands: the end that holds, the end with what is being paid, and whether any
    extension of it was bought (and did not fail), one of which may be unpaid."""

    end: datetime
    until: datetime
    extended: bool
    unpaid: bool


def nothing_to_do(wish: Wish, now: datetime, at: Standing) -> str | None:
    """Why nothing is to be bought now, in words; None when something is."""
    so_far = f"already extended until {minute(at.until)}" if at.extended else f"ends at {minute(at.until)}"
    if wish.until is not None and at.until >= wish.until:
        return so_far
    if wish.within is not None:
        begins = at.until - wish.within
        return None if now >= begins else f"{so_far}; looked at again from {minute(begins)} on"
    if wish.until is None and at.extended:
        return so_far
    return None


def why_not(now: datetime, at: Standing) -> BerthError | None:
    """Why AWS would not sell an extension now; None when it would."""
    if at.unpaid:
        return BerthError(
            ExitCode.DECISION_NEEDED,
            f"an extension until {minute(at.until)} is being paid, and AWS sells one at a time",
            "run the same command again when it is paid: within 12 hours",
        )
    if now > at.end - LATEST:
        return BerthError(
            ExitCode.DECISION_NEEDED,
            f"it ends at {minute(at.end)}, and an extension is bought at least 1 hour before the end",
        )
    if now < at.end - EARLIEST:
        return BerthError(
            ExitCode.DECISION_NEEDED,
            f"it ends at {minute(at.end)}, and an extension is bought at most 56 days before the end",
            f"from {minute(at.end - EARLIEST)} on",
        )
    return None


def minute(at: datetime) -> str:
    """`2027-03-11T11:30Z`; seconds where there are some."""
    return f"{at:%Y-%m-%dT%H:%MZ}" if not (at.second or at.microsecond) else f"{at:%Y-%m-%dT%H:%M:%SZ}"
