"""Who acts, and whether this machine's clock is right enough to sign. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from berth.aws.identity import Identity
from berth.checkup.findings import Finding, State, Topic
from berth.terms.durations import spoken
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.text import plain

SIGNING_FAILS = timedelta(minutes=5)
"""How far a clock may be off: SageMaker, STS and most services allow 5 minutes, EC2 15 (docs/reference/
signatures.md)."""
WORTH_SAYING = timedelta(minutes=1)

Skew = tuple[str, timedelta]
"""A service, and how far this machine's clock was ahead of its `Date` header (negative: behind)."""


def identity_findings(identity: Identity, pinned: str | None) -> list[Finding]:
    """The caller. `pinned` is the account that the need is for, None where it names none."""
    who = f"account {identity.account_shown}, {identity.role}"
    facts = {"arn": identity.arn, "realm": identity.realm}
    found = [Finding(Topic.IDENTITY, State.OK, "caller", f"{who} ({plain(identity.arn, 200)})", None, facts)]
    if identity.rehearsal is not None:
        said = f"a rehearsal: the yard {identity.realm}; nothing can be charged"
        found.append(Finding(Topic.IDENTITY, State.OK, "realm", said))
    else:
        found.append(Finding(Topic.IDENTITY, State.OK, "realm", "AWS: what is bought there is paid"))
    if is_root(identity.arn):
        found.append(
            Finding(
                Topic.IDENTITY,
                State.WARNING,
                "root user",
                "these are keys of the root user, which no policy of the account limits",
                "make a role for this work (berth policy prints its rights) and delete the root user's keys",
            )
        )
    if pinned is not None and pinned != identity.account:
        found.append(
            Finding(
                Topic.IDENTITY,
                State.MISSING,
                "account",
                f"the need is for account {pinned}, these keys are of {identity.account}",
                "choose the right keys with --profile",
            )
        )
    return found


def payer_findings(identity: Identity, payer: Identity) -> list[Finding]:
    """Whose keys pay, where they are not the caller's."""
    if payer == identity:
        return []
    said = f"the paid call alone is sent by {payer.role} ({plain(payer.arn, 200)})"
    return [Finding(Topic.IDENTITY, State.OK, "payer", said, None, {"arn": payer.arn})]


def is_root(arn: str) -> bool:
    """Whether an ARN is that of an account's root user."""
    return arn.rpartition(":")[2] == "root"


def no_identity(problem: BerthError, clock: Finding) -> Finding:
    """Nobody is logged in, or who it is could not be asked. A clock that is wrong makes any keys fail: then
    that comes first, and no login is renewed for it."""
    first = problem.message.splitlines()[0] if problem.message else "no reason was told"
    known = problem.exit_code is ExitCode.CREDENTIALS
    todo = None if clock.state is State.MISSING else problem.next_step
    state = State.MISSING if known else State.UNKNOWN
    return Finding(Topic.IDENTITY, state, "caller", plain(first, 400), todo, {"arn": None, "realm": None})


def clock_finding(heard: Sequence[Skew], now: datetime) -> Finding:
    """This machine's clock beside what services said. The nearest counts: what took long seems late."""
    if not heard:
        return Finding(
            Topic.CLOCK, State.UNKNOWN, "clock", "no service answered with a date to compare this clock with",
            "compare `date -u` with a clock that you trust; signing fails from 5 minutes on",
            {"ahead_s": None},
        )  # fmt: skip
    service, ahead = min(heard, key=lambda one: abs(one[1]))
    off = abs(ahead)
    way = "ahead of" if ahead > timedelta(0) else "behind"
    facts = {"ahead_s": int(ahead.total_seconds()), "machine": now.isoformat(timespec="seconds")}
    if off < WORTH_SAYING:
        return Finding(Topic.CLOCK, State.OK, "clock", f"within a minute of {service}'s", None, facts)
    said = f"this machine's clock is {spoken(off)} {way} {service}'s"
    todo = "set the clock of this machine, and let it follow a time server (timedatectl set-ntp true)"
    if off >= SIGNING_FAILS:
        said += "; from 5 minutes on signed calls are refused"
        return Finding(Topic.CLOCK, State.MISSING, "clock", said, todo, facts)
    return Finding(Topic.CLOCK, State.WARNING, "clock", said + "; signing fails at 5 minutes", todo, facts)
