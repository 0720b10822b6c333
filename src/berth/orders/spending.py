"""Rules of spending: caps, allow-lists, required tags, and from what amount somebody else must agree. Pure.

A team writes them in one file (`spending_file`); `spending_gate` asks them before every paid call. What is
unknown never passes: a fee in a currency that a cap does not know, a zone without an id, a missing team.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum

from berth.terms.money import Money

TEAM = "team"
"""The tag that says whose money it is."""
EACH = "*"
"""As the team of a cap: each team for itself."""
HOUR = timedelta(hours=1)
FORTNIGHT = timedelta(days=14)


class Per(StrEnum):
    """What a cap bounds: one order with its extensions, the last 60 minutes, the last 14 days, a calendar
    month, everything."""

    ORDER = "order"
    HOUR = "hour"
    FORTNIGHT = "fortnight"
    MONTH = "month"
    TOTAL = "total"


_SPANS = {Per.HOUR: HOUR, Per.FORTNIGHT: FORTNIGHT}
"""Periods that move along: so much until now."""


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that may be spent. `team` None: by all together; `EACH`: by each. `line` is its line in the
    file (0: unknown)."""

    per: Per
    most: Money
    team: str | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class TagRule:
    """A tag that must be there. `values` (empty: any) are allowed; `pattern` (None: any) must match whole."""

    key: str
    values: tuple[str, ...] = ()
    pattern: str | None = None
    line: int = 0

    def complaint(self, tags: Mapping[str, str]) -> str | None:
        """What is wrong with the tags; None when nothing is."""
        value = tags.get(self.key, "")
        if not value:
            return f"the tag {self.key} is missing"
        if self.values and value not in self.values:
            return f"the tag {self.key} is {value!r}, allowed: {', '.join(self.values)}"
        if self.pattern is not None and re.fullmatch(self.pattern, value) is None:
            return f"the tag {self.key} is {value!r}, which does not match {self.pattern}"
        return None


@dataclass(frozen=True, slots=True)
class Allow:
    """What may be bought where, and whose credentials may pay (`payers`: ARNs of users and roles, `*` for any
    characters). An empty list allows everything; `types` may end in `*`."""

    regions: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    zone_ids: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    payers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalRule:
    """When somebody else must agree, and who may.

    `above` are thresholds, one a currency; a fee above one, or in a currency without one, needs approval. No
    threshold: every fee does. `approvers` are ARNs of users and roles, `*` standing for any characters. A
    request stands for `valid`.
    """

    above: tuple[Money, ...]
    approvers: tuple[str, ...]
    valid: timedelta = timedelta(hours=24)
    line: int = 0


@dataclass(frozen=True, slots=True)
class Rules:
    """A team's rules. `zone` is where calendar months begin; `source` names the file, for messages."""

    source: str
    zone: tzinfo = UTC
    caps: tuple[Cap, ...] = ()
    allow: Allow = Allow()
    tags: tuple[TagRule, ...] = ()
    approval: ApprovalRule | None = None


@dataclass(frozen=True, slots=True)
class Spend:
    """What a paid call would spend, or what is about to run in something paid for (`amount` None: nothing).

    `order` is the order's mark (`ACCOUNT/NEED/SEQUENCE`); an extension carries its order's. `zone_ids` are
    as the offer shows them: a name where no id is known.
    """

    order: str
    account: str
    region: str
    zone_ids: tuple[str, ...]
    instance_type: str
    way: str
    amount: Money | None
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def team(self) -> str | None:
        """Whose money it is; None where no tag says."""
        return self.tags.get(TEAM) or None


@dataclass(frozen=True, slots=True)
class Booked:
    """What the journal says was spent or may have been, with when it was intended. `team` None: not said."""

    at: datetime
    amount: Money
    order: str
    team: str | None


def month_start(now: datetime, zone: tzinfo) -> datetime:
    """The first instant of `now`'s calendar month in `zone`, in UTC.

    Where midnight of the first is skipped by a clock change, the month begins at the first instant after it.
    """
    local = now.astimezone(zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0, fold=0)
    return local.astimezone(UTC)


def looks_back_to(rules: Rules, now: datetime) -> datetime | None:
    """Since when the caps need to know what was spent, beside the order's own; None: since ever."""
    periods = {cap.per for cap in rules.caps}
    if Per.TOTAL in periods:
        return None
    return min(_since(per, rules, now) or now for per in {*periods, Per.ORDER})


def complaints(rules: Rules, spend: Spend, booked: Sequence[Booked], now: datetime) -> tuple[str, ...]:
    """Every rule that the spend breaks, one sentence each; () when it breaks none.

    `booked` holds at least what was spent since `looks_back_to`, and all of the spend's own order.
    """
    return (
        *_not_allowed(rules.allow, spend),
        *filter(None, (rule.complaint(spend.tags) for rule in rules.tags)),
        *(_over(rules, spend, spend.amount, booked, now) if spend.amount is not None else ()),
    )


def approval_needed(rule: ApprovalRule | None, amount: Money | None) -> str | None:
    """Why somebody else must agree to the amount, in a sentence; None when nobody must."""
    if rule is None or amount is None:
        return None
    if not rule.above:
        return "the rules ask for an approval of every purchase"
    bound = next((one for one in rule.above if one.currency == amount.currency), None)
    if bound is None:
        known = ", ".join(str(one) for one in rule.above)
        return f"{amount} cannot be compared with what goes without an approval ({known})"
    return f"{amount} is above {bound}, so the rules ask for an approval" if amount > bound else None


def _not_allowed(allow: Allow, spend: Spend) -> Iterator[str]:
    asked = (
        ("Region", (spend.region,), allow.regions),
        ("zone id", spend.zone_ids, allow.zone_ids),
        ("way", (spend.way,), allow.ways),
        ("account", (spend.account,), allow.accounts),
    )
    for noun, values, allowed in asked:
        strays = [value for value in values if value not in allowed]
        if allowed and (strays or not values):
            yield f"{noun} {', '.join(strays) or 'unknown'} is not allowed; allowed: {', '.join(allowed)}"
    if allow.types and not any(_is_type(spend.instance_type, pattern) for pattern in allow.types):
        yield f"type {spend.instance_type} is not allowed; allowed: {', '.join(allow.types)}"


def _is_type(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _over(
    rules: Rules, spend: Spend, amount: Money, booked: Sequence[Booked], now: datetime
) -> Iterator[str]:
    said = any(rule.key == TEAM for rule in rules.tags)
    if spend.team is None and not said and any(cap.team is not None for cap in rules.caps):
        yield f"the tag {TEAM} is missing, and the rules cap what a team may spend"
    for per, team in dict.fromkeys((cap.per, cap.team) for cap in rules.caps):
        if team not in {None, EACH, spend.team}:
            continue
        caps = [cap for cap in rules.caps if (cap.per, cap.team) == (per, team)]
        counted = _counted(per, team, spend, booked, _since(per, rules, now))
        yield from _over_caps(caps, amount, counted, rules)


def _over_caps(caps: Sequence[Cap], amount: Money, counted: Sequence[Booked], rules: Rules) -> Iterator[str]:
    """`caps` bound the same thing, each in a currency of its own."""
    same = [cap for cap in caps if cap.most.currency == amount.currency]
    if not same:
        known = " and ".join(str(cap.most) for cap in caps)
        yield f"{amount} cannot be compared with {_called(caps[0])} of {known} ({_where(rules, caps[0])})"
        return
    before = total((one.amount for one in counted), amount.currency)
    for cap in same:
        if before + amount > cap.most:
            spent = f", of which {before} is spent or may be" if before.amount else ""
            yield (
                f"{amount} would go over {_called(cap)} of {cap.most}{spent}; left:"
                f" {_left(cap.most, before)} ({_where(rules, cap)})"
            )


def total(amounts: Iterable[Money], currency: str) -> Money:
    """The sum of those in `currency`; the others are never counted into it."""
    return sum((one for one in amounts if one.currency == currency), start=Money.from_micros(0, currency))


def _left(most: Money, before: Money) -> Money:
    return max(most - before, Money.from_micros(0, most.currency))


def _counted(
    per: Per, team: str | None, spend: Spend, booked: Sequence[Booked], since: datetime | None
) -> list[Booked]:
    whose = spend.team if team == EACH else team
    return [
        one
        for one in booked
        if (whose is None or one.team == whose)
        and (one.order == spend.order if per is Per.ORDER else since is None or one.at >= since)
    ]


def _since(per: Per, rules: Rules, now: datetime) -> datetime | None:
    """From when a period counts; there is no end: what another machine's fast clock wrote counts too."""
    if per in _SPANS:
        return now - _SPANS[per] + timedelta(microseconds=1)  # what is 60 minutes old has left the window
    return month_start(now, rules.zone) if per is Per.MONTH else None


def _called(cap: Cap) -> str:
    whose = {None: "", EACH: " and team"}.get(cap.team, f" of team {cap.team}")
    return f"the cap in {cap.per}{whose}" if cap.per is Per.TOTAL else f"the cap per {cap.per}{whose}"


def _where(rules: Rules, cap: Cap) -> str:
    return f"{rules.source}:{cap.line}" if cap.line else rules.source
