"""The rules of spending as a person writes them: one TOML file, read strictly.

A key that nobody knows is an error, and every error names the line and the key: a cap with a slip of the pen
must not be a cap that is not there.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from datetime import UTC, timedelta, tzinfo
from pathlib import Path

from berth.orders.spending import EACH, Allow, ApprovalRule, Cap, Per, Rules, TagRule
from berth.planner.local_dates import read_zone
from berth.storage.home import berth_home
from berth.terms.money import Money
from berth.terms.outcomes import BerthError, ExitCode
from berth.terms.settings import MAX_BYTES, Section, read_settings
from berth.terms.ways import Way

NAME = "rules.toml"
VARIABLE = "BERTH_RULES"

_REGION = r"[a-z]{2,4}(-[a-z]+)+-\d{1,2}"
_TYPE = r"[a-z0-9][a-z0-9.-]*\*?"
_ZONE_ID = r"[a-z0-9-]+-az\d{1,2}"
_ACCOUNT = r"\d{12}"
# No wildcard for the account: anybody may have an account, and a role of any name in it.
_IDENTITY = (
    r"arn:aws[a-z-]*:(iam::\d{12}:(root|(user|role)/[\w+=,.@/*-]+)"
    r"|sts::\d{12}:assumed-role/[\w+=,.@*-]+(/[\w+=,.@*-]+)?)"
)
_MOST_VALID = timedelta(days=30)
_LEAST_VALID = timedelta(minutes=15)


def rules_file(environ: Mapping[str, str]) -> Path | None:
    """Where the rules are: the file that BERTH_RULES names, else `rules.toml` beside the journal; None where
    nobody wrote any. A file that BERTH_RULES names is expected to be there."""
    named = environ.get(VARIABLE)
    if named:
        return Path(named)
    beside = berth_home(environ) / NAME
    return beside if beside.exists() else None


def load_rules(environ: Mapping[str, str]) -> Rules | None:
    """The rules that hold here; None where there are none. Raises BerthError or SettingsError."""
    file = rules_file(environ)
    if file is None:
        return None
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {MAX_BYTES:,} bytes")
        text = raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise BerthError(
            ExitCode.BAD_REQUEST,
            f"the rules of spending {file} cannot be read: {reason}; nothing is bought without them",
            f"mend the file, or unset {VARIABLE} if no rules are meant to hold",
        ) from None
    return read_rules(text, str(file))


def read_rules(text: str, source: str) -> Rules:
    """The rules in the TOML `text` of file `source`. Raises SettingsError with everything that is wrong."""
    top = read_settings(text, source)
    rules = Rules(
        source,
        _zone(top),
        tuple(_cap(table) for table in top.tables("cap")),
        _allow(top.table("allow")),
        _tags(top.table("tags")),
        _approval(top.table("approval")),
    )
    _check_caps(top, rules)
    top.finish()
    return rules


def _zone(top: Section) -> tzinfo:
    name = top.text("time_zone", "")
    if not name:
        return UTC
    try:
        return read_zone(name)
    except ValueError as problem:
        top.complain("time_zone", str(problem))
        return UTC


def _cap(table: Section) -> Cap:
    per = Per(table.choice("per", [one.value for one in Per]))
    most = _money(table, "most")
    team = table.text("team", "", pattern=r"\S(.{0,254}\S)?", hint=f'a value of the tag team, or "{EACH}"')
    return Cap(per, most or Money.from_micros(0), team or None, table.line())


def _check_caps(top: Section, rules: Rules) -> None:
    seen: set[tuple[Per, str | None, str]] = set()
    for cap in rules.caps:
        bounds = (cap.per, cap.team, cap.most.currency)
        if bounds in seen:
            top.complain("cap", f"the cap in line {cap.line} bounds what another bounds already: leave one")
        seen.add(bounds)
    if any(cap.per is Per.MONTH for cap in rules.caps) and not top.has("time_zone"):
        top.complain(
            None, 'time_zone is missing: caps per month need one, like time_zone = "Europe/Berlin" or "UTC"'
        )


def _money(table: Section, key: str) -> Money | None:
    value = table.text(key)
    return _amount(table, key, value) if value else None


def _amount(table: Section, key: str, value: str) -> Money | None:
    try:
        money = Money.parse(value)
        if money.amount <= 0:
            raise ValueError("must be more than zero")
        if not (" " in value.strip() or value.strip().startswith("$")):
            raise ValueError(f"{value!r} names no currency; write it like 30,000.00 USD")
        if not re.fullmatch(r"[A-Z]{3}", money.currency):
            raise ValueError(f"{money.currency!r} is no currency; write three letters, like USD")
        money.micros  # noqa: B018 - raises where the amount is finer than a store keeps
        return money
    except ValueError as problem:
        table.complain(key, str(problem))
        return None


def _allow(table: Section | None) -> Allow:
    if table is None:
        return Allow()
    keys = table.keys()
    for key in keys:
        if table.has(key) and table.raw(key, None) == []:
            table.complain(key, "allows nothing: name what is allowed, or leave it out")
    return Allow(
        regions=table.texts("regions", (), pattern=_REGION),
        types=table.texts("types", (), pattern=_TYPE),
        zone_ids=table.texts("zone_ids", (), pattern=_ZONE_ID),
        ways=_ways(table),
        accounts=table.texts("accounts", (), pattern=_ACCOUNT),
        payers=_identities(table, "payers", table.texts("payers", (), pattern=_IDENTITY)),
    )


def _identities(table: Section, key: str, found: tuple[str, ...]) -> tuple[str, ...]:
    for arn in found:
        name = arn.partition("/")[2]
        if ":assumed-role/" in arn:
            account, role = arn.split(":")[4], name.partition("/")[0]
            table.complain(
                key,
                f"{arn} is a session, whose name whoever assumes the role chooses: name the role,"
                f" {arn.partition(':sts:')[0]}:iam::{account}:role/{role}",
            )
        if ":role/" in arn and "/" in name and "*" in name:
            table.complain(
                key, f"{arn}: STS does not tell a role's path; write the role's whole name, or no path"
            )
    return found


def _ways(table: Section) -> tuple[str, ...]:
    known = [way.value for way in Way]
    found = table.texts("ways", ())
    for way in found:
        if way not in known:
            table.complain("ways", f"{way!r} is not one of {', '.join(known)}")
    return found


def _tags(table: Section | None) -> tuple[TagRule, ...]:
    if table is None:
        return ()
    keys = table.keys()
    found = [(key, table.table(key)) for key in keys]
    return tuple(_tag(key, one) for key, one in found if one is not None)


def _tag(key: str, table: Section) -> TagRule:
    values = table.texts("values", ())
    pattern = table.text("pattern", "")
    if pattern:
        try:
            re.compile(pattern)
        except re.error as problem:
            table.complain("pattern", f"is no regular expression: {problem}")
    if table.has("values") and not values:
        table.complain("values", "allows nothing: name values, or leave it out")
    return TagRule(key, values, pattern or None, table.line())


def _approval(table: Section | None) -> ApprovalRule | None:
    if table is None:
        return None
    approvers = _identities(table, "approvers", table.texts("approvers", pattern=_IDENTITY))
    if table.has("approvers") and not approvers:
        table.complain("approvers", "names nobody: nothing could ever be approved")
    valid = table.duration("valid", timedelta(hours=24))
    if not _LEAST_VALID <= valid <= _MOST_VALID:
        table.complain("valid", "must be from 15m to 30d")
    return ApprovalRule(_thresholds(table), approvers, valid, table.line())


def _thresholds(table: Section) -> tuple[Money, ...]:
    value = table.raw("above", [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        table.complain("above", 'must be an amount like "10,000.00 USD", or a list of them')
        return ()
    read = [_amount(table, "above", text) for text in texts]
    found = tuple(money for money in read if money is not None)
    if len({money.currency for money in found}) < len(found):
        table.complain("above", "names a currency twice")
    return found
