"""IAM policies: read, and asked what they say of one action on one resource. Pure.

The policy language as the IAM user guide describes it ("Policy evaluation logic", "IAM JSON policy elements",
read 2026-11), without what nothing here could decide: principals, policy variables, dates, numbers and
addresses. A document that needs those is refused when it is given, not misread later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

EVERYTHING = ""
"""The text that stands for an administrator's policy."""
LONGEST = 131_072  # characters of a document in the IAM model

Context = Mapping[str, tuple[str, ...]]
"""Condition keys in lower case, each with its values."""


class Decision(StrEnum):
    """What policies say of one action on one resource, in IAM's words."""

    ALLOWED = "allowed"
    IMPLICIT_DENY = "implicitDeny"
    EXPLICIT_DENY = "explicitDeny"


class PolicyRefused(ValueError):
    """The document is no policy, or needs what is not decided here."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One key under one operator. `base` is the operator without `Not` and `IfExists`."""

    base: str
    negated: bool
    if_exists: bool
    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement. `not_actions` and `not_resources`: it speaks of all but those that it names."""

    sid: str
    allows: bool
    actions: tuple[str, ...]
    not_actions: bool
    resources: tuple[str, ...]
    not_resources: bool
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call is made whose resource is not known: the least that a resource's ARN must agree with."""

    region: str
    account_id: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision, the Sids of the statements that made it, and the condition keys that had no value."""

    decision: Decision
    matched: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def read_policy(text: str) -> tuple[Statement, ...]:
    """The statements of a document; those of an administrator for ''. Raises PolicyRefused."""
    if text == EVERYTHING:
        return (Statement("AdministratorAccess", True, ("*",), False, ("*",), False, ()),)
    if len(text) > LONGEST:
        raise PolicyRefused(f"longer than {LONGEST:,} characters")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise PolicyRefused("not JSON") from None
    if not isinstance(document, dict) or "Statement" not in document:
        raise PolicyRefused("no object with a Statement")
    found = document["Statement"]
    statements = found if isinstance(found, list) else [found]
    if not statements:
        raise PolicyRefused("no statement")
    return tuple(_statement(one, number) for number, one in enumerate(statements, start=1))


def evaluate(
    statements: Sequence[Statement], action: str, resource: str | Place, context: Context
) -> Verdict:
    """What the statements say of `action` (`ec2:RunInstances`) on a resource's ARN, `*` or a Place.

    For an ARN or `*` it is IAM's answer. For a Place nobody knows the resource, nor keys that are not in
    `context`: then what may be allowed is allowed, and only what is denied wherever it is, is denied.
    """
    guess = isinstance(resource, Place)
    missing: dict[str, None] = {}
    denies: list[str] = []
    allows: list[str] = []
    for one in statements:
        if not _speaks_of(one, action, resource):
            continue
        absent = [c.key for c in one.conditions if c.key.lower() not in context]
        if guess:
            holds = _holds_perhaps(one, context)
        else:
            missing.update(dict.fromkeys(absent))
            holds = all(_holds(c, context) for c in one.conditions)
        if holds:
            (allows if one.allows else denies).append(one.sid)
    if denies:
        return Verdict(Decision.EXPLICIT_DENY, tuple(denies), tuple(missing))
    if allows:
        return Verdict(Decision.ALLOWED, tuple(allows), tuple(missing))
    return Verdict(Decision.IMPLICIT_DENY, (), tuple(missing))


def _holds_perhaps(statement: Statement, context: Context) -> bool:
    """Whether the conditions hold where keys are not known: an Allow's may, a Deny's need not."""
    known = [c for c in statement.conditions if c.key.lower() in context]
    if not statement.allows and len(known) < len(statement.conditions):
        return False
    return all(_holds(c, context) for c in known)


# -- what a statement speaks of --------------------------------------------------------------------------
def _speaks_of(statement: Statement, action: str, resource: str | Place) -> bool:
    named = any(_like(pattern.lower(), action.lower()) for pattern in statement.actions)
    if named == statement.not_actions:
        return False
    if isinstance(resource, Place):
        return _may_lie_at(statement, resource)
    named = any(_like(pattern, resource) for pattern in statement.resources)
    return named != statement.not_resources


def _may_lie_at(statement: Statement, place: Place) -> bool:
    """Whether some resource there is spoken of (Allow), or every one (Deny)."""
    if not statement.allows:
        return not statement.not_resources and "*" in statement.resources
    return statement.not_resources or any(_lies_at(pattern, place) for pattern in statement.resources)


def _lies_at(pattern: str, place: Place) -> bool:
    parts = pattern.split(":", 5)
    if len(parts) < 6:
        return _like(pattern, "arn:")
    region, account = parts[3], parts[4]
    return (not region or _like(region, place.region)) and (not account or _like(account, place.account_id))


@lru_cache(maxsize=4096)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*").replace(r"\?", "."), re.DOTALL)


def _like(pattern: str, text: str) -> bool:
    """IAM's wildcards: `*` any run of characters, `?` any one."""
    if "*" not in pattern and "?" not in pattern:
        return pattern == text
    return pattern == "*" or _pattern(pattern).fullmatch(text) is not None


# -- conditions ------------------------------------------------------------------------------------------
def _holds(condition: Condition, context: Context) -> bool:
    values = context.get(condition.key.lower())
    if condition.base == "Null":
        return (values is None) == (condition.values[0].lower() == "true")
    if values is None:
        # "If the key is not in the request, a negated operator is true, any other false."
        return condition.negated or condition.if_exists
    compare = _COMPARE[condition.base]
    agrees = any(compare(pattern, value) for pattern in condition.values for value in values)
    return agrees != condition.negated


def _equals(pattern: str, value: str) -> bool:
    return pattern == value


def _equals_ignoring_case(pattern: str, value: str) -> bool:
    return pattern.casefold() == value.casefold()


_COMPARE: Mapping[str, Callable[[str, str], bool]] = {
    "StringEquals": _equals,
    "StringEqualsIgnoreCase": _equals_ignoring_case,
    "StringLike": _like,
    "ArnEquals": _like,
    "ArnLike": _like,
    "Bool": _equals_ignoring_case,
    "Null": _equals,
}
_OPERATOR = re.compile(
    r"(String|Arn)(Not)?(Equals|Like|EqualsIgnoreCase)(IfExists)?|(Bool)(IfExists)?|(Null)"
)


# -- reading ---------------------------------------------------------------------------------------------
def _statement(value: Any, number: int) -> Statement:
    if not isinstance(value, dict):
        raise PolicyRefused(f"statement {number} is no object")
    unknown = set(value) - {
        "Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition",
    }  # fmt: skip
    if unknown:
        raise PolicyRefused(f"statement {number} has {', '.join(sorted(unknown))}, which is not decided here")
    if value.get("Effect") not in ("Allow", "Deny"):
        raise PolicyRefused(f"statement {number}: Effect is Allow or Deny")
    actions, not_actions = _one_of(value, "Action", number)
    resources, not_resources = _one_of(value, "Resource", number)
    sid = str(value.get("Sid") or f"Statement{number}")
    conditions = tuple(_conditions(value.get("Condition", {}), number))
    allows = value["Effect"] == "Allow"
    return Statement(sid, allows, actions, not_actions, resources, not_resources, conditions)


def _one_of(value: Mapping[str, Any], name: str, number: int) -> tuple[tuple[str, ...], bool]:
    """Action or NotAction, Resource or NotResource."""
    if (name in value) == (f"Not{name}" in value):
        raise PolicyRefused(f"statement {number} has either {name} or Not{name}")
    negated = name not in value
    found = _texts(value[f"Not{name}" if negated else name], f"statement {number}: {name}")
    return found, negated


def _conditions(value: Any, number: int) -> list[Condition]:
    if not isinstance(value, dict):
        raise PolicyRefused(f"statement {number}: Condition is no object")
    found = []
    for operator, keys in value.items():
        read = _OPERATOR.fullmatch(operator)
        if read is None or not isinstance(keys, dict):
            raise PolicyRefused(f"statement {number}: the condition {operator} is not decided here")
        kind, negation, how, exists, boolean, boolean_exists, _ = read.groups()
        base = f"{kind}{how}" if kind else ("Bool" if boolean else "Null")
        if base not in _COMPARE:
            raise PolicyRefused(f"statement {number}: there is no operator {operator}")
        for key, values in keys.items():
            texts = _texts(values, f"statement {number}: {key}")
            found.append(Condition(base, bool(negation), bool(exists or boolean_exists), key, texts))
    return found


def _texts(value: Any, where: str) -> tuple[str, ...]:
    found = value if isinstance(value, list) else [value]
    texts = [str(one).lower() if isinstance(one, bool) else one for one in found]
    if not texts or not all(isinstance(one, str) and one for one in texts):
        raise PolicyRefused(f"{where} is a text or a list of texts")
    if any("${" in one for one in texts):
        raise PolicyRefused(f"{where}: policy variables are not decided here")
    return tuple(texts)
