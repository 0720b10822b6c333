"""SimulatePrincipalPolicy: what the policy of a user or a role says of actions, without doing them.

The answer follows the API reference and the IAM user guide ("Testing IAM policies", read 2026-11): one result
an action and resource, `*` where none is named; condition keys without a value are reported as missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.identity.accounts import Account, access_keys
from berth.yard.identity.authorisation import principal_arn
from berth.yard.identity.policies import (
    Context,
    Decision,
    PolicyRefused,
    Statement,
    evaluate,
    read_policy,
)
from berth.yard.identity.roles import roles
from berth.yard.services.operation import Call, reads
from berth.yard.services.paging import key_in, write_token
from berth.yard.store.transaction import Reading

_PAGE_DEFAULT = 100
_ACTION = re.compile(r"[A-Za-z0-9-]+:[A-Za-z0-9*?]+")
_NOT_SIMULATED = ("ResourcePolicy", "PolicyExclusionList", "ResourceHandlingOption")
_GRANTED = "IAM Policy"


@reads("iam", "SimulatePrincipalPolicy")
def simulate_principal_policy(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """What a user's or role's own policy, with those of PolicyInputList, allows; the boundary's beside."""
    source = _source(call, rows)
    _check(call)
    context = _context(call)
    granted = _read([source, *call.params.get("PolicyInputList", ())])
    boundary = _read(call.params.get("PermissionsBoundaryPolicyInputList", ()))
    asked = [
        (action, resource)
        for action in call.params["ActionNames"]
        for resource in call.params.get("ResourceArns") or ["*"]
    ]
    first, size = _first(call, len(asked)), int(call.params.get("MaxItems", _PAGE_DEFAULT))
    results = [
        _result(granted, boundary, action, resource, context)
        for action, resource in asked[first : first + size]
    ]
    end = first + len(results)
    if end >= len(asked):
        return {"EvaluationResults": results, "IsTruncated": False}
    return {"EvaluationResults": results, "IsTruncated": True, "Marker": write_token(_scope(call), [end])}


def _source(call: Call, rows: Reading) -> str:
    """The policy of the caller's account's user or role that PolicySourceArn names. Raises NoSuchEntity."""
    source, account_id = call.params["PolicySourceArn"], call.account.account_id
    for account in (call.account, *(key.account for key in access_keys(rows).values())):
        if account.account_id == account_id and _identity(account) == source:
            return account.policy
    for role in roles(rows).values():
        if role.account_id == account_id and role.arn() == source:
            return role.policy
    raise ServiceError("NoSuchEntity", f"The policy source {source} cannot be found.", status=404)


def _check(call: Call) -> None:
    """Raises InvalidInput for another caller than the source, for what is not simulated, for no action."""
    params = call.params
    if params.get("CallerArn", params["PolicySourceArn"]) != params["PolicySourceArn"]:
        raise _invalid("The caller ARN is not that of the policy source.")
    for name in _NOT_SIMULATED:
        if params.get(name):
            raise _invalid(f"{name} is not simulated by this yard.")
    for action in params["ActionNames"]:
        if not _ACTION.fullmatch(action):
            raise _invalid(f"Invalid action name: {action}")


def _identity(account: Account) -> str:
    return principal_arn(account, "us-east-1")


def _context(call: Call) -> Context:
    return {
        entry["ContextKeyName"].lower(): tuple(entry.get("ContextKeyValues", ()))
        for entry in call.params.get("ContextEntries", ())
        if "ContextKeyName" in entry
    }


def _read(texts: Sequence[str]) -> tuple[Statement, ...]:
    try:
        return tuple(statement for text in texts for statement in read_policy(text))
    except PolicyRefused as problem:
        raise _invalid(f"The policy cannot be evaluated: {problem}.") from None


def _result(
    granted: Sequence[Statement], boundary: Sequence[Statement], action: str, resource: str, context: Context
) -> dict[str, Any]:
    verdict = evaluate(granted, action, resource, context)
    decision, missing = verdict.decision, dict.fromkeys(verdict.missing)
    details: Mapping[str, Any] = {}
    if boundary:
        bound = evaluate(boundary, action, resource, context)
        within = bound.decision is Decision.ALLOWED
        missing |= dict.fromkeys(bound.missing)
        details = {"PermissionsBoundaryDecisionDetail": {"AllowedByPermissionsBoundary": within}}
        decision = decision if within or decision is Decision.EXPLICIT_DENY else bound.decision
    return {
        "EvalActionName": action,
        "EvalResourceName": resource,
        "EvalDecision": decision.value,
        "MatchedStatements": [
            {"SourcePolicyId": sid, "SourcePolicyType": _GRANTED} for sid in verdict.matched
        ],
        "MissingContextValues": list(missing),
        **details,
    }


def _scope(call: Call) -> str:
    """What a Marker belongs to: the same question."""
    return f"{call.operation}/{call.params['ActionNames']}/{call.params.get('ResourceArns')}"


def _first(call: Call, total: int) -> int:
    marker = call.params.get("Marker")
    if marker is None:
        return 0
    key = key_in(marker, _scope(call), 1)
    if key is None or not isinstance(key[0], int) or not 0 < key[0] < total:
        raise _invalid("Invalid Marker.")
    return key[0]


def _invalid(message: str) -> ServiceError:
    return ServiceError("InvalidInput", message, status=400)
