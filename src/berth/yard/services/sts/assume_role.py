"""AssumeRole: keys of a role for a while, for whoever the role trusts.

Requests and answers as in botocore's model of STS 2011-06-15; the refusals after the STS API reference and
the IAM user guide ("Troubleshoot IAM roles", read 2026-11): a role that is not there, one that does not trust
the caller and a caller who lacks the right are all answered alike.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.identity.authorisation import caller_arn, denied, known_of, principal_arn
from berth.yard.identity.policies import PolicyRefused, read_policy
from berth.yard.identity.roles import CHAINED_MAXIMUM, Role, may_assume, named_in, roles
from berth.yard.identity.sessions import POLICY_MAX, begin_session
from berth.yard.services.arns import partition_of
from berth.yard.services.operation import Call, reads
from berth.yard.store.transaction import Reading

_DEFAULT_S = 3_600
_NOT_SERVED = (
    "PolicyArns", "Tags", "TransitiveTagKeys", "SerialNumber", "TokenCode", "SourceIdentity",
    "ProvidedContexts",
)  # fmt: skip


@reads("sts", "AssumeRole")
def assume_role(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Key, secret and token of a new session; nothing is stored (identity/sessions.py)."""
    for name in _NOT_SERVED:
        if call.params.get(name):
            raise _invalid(f"{name} is not served by this yard.")
    policy = _session_policy(call.params.get("Policy", ""))
    role = _trusting(call, rows)
    span = _span(call, role)
    name = call.params["RoleSessionName"]
    made = begin_session(
        yard.session_key, role, name, now=yard.real.now(), span=span, policy=policy, ids=yard.ids
    )
    answer: dict[str, Any] = {
        "Credentials": {
            "AccessKeyId": made.key.access_key_id,
            "SecretAccessKey": made.key.secret,
            "SessionToken": made.token,
            "Expiration": made.until,
        },
        "AssumedRoleUser": {
            "AssumedRoleId": f"{role.role_id}:{name}",
            "Arn": caller_arn(made.key.account, call.region),
        },
    }
    return {**answer, "PackedPolicySize": len(policy) * 100 // POLICY_MAX} if policy else answer


def _trusting(call: Call, rows: Reading) -> Role:
    """The role, which the caller may assume. Raises AccessDenied."""
    arn, caller = call.params["RoleArn"], call.account
    named = named_in(arn)
    role = roles(rows).get(named) if named else None
    arns = [caller_arn(caller, call.region), principal_arn(caller, call.region)]
    known = known_of(caller, "sts:AssumeRole", call.params, call.region)
    external_id = call.params.get("ExternalId", "")
    context = {**known, "sts:externalid": (external_id,)} if external_id else known
    same = role is not None and role.arn(partition_of(call.region)) == arn
    if role is None or not same or not may_assume(role, caller, arns, external_id, arn=arn, context=context):
        raise denied(caller, "sts", "AssumeRole", arn, call.region)
    return role


def _span(call: Call, role: Role) -> timedelta:
    """How long the session is. The model has bounded it already, to between 15 minutes and 12 hours."""
    span = timedelta(seconds=call.params.get("DurationSeconds", _DEFAULT_S))
    if call.account.as_role is not None and span > CHAINED_MAXIMUM:
        raise _invalid(
            "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role"
            " chaining."
        )
    if span > role.max_session:
        raise _invalid("The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")
    return span


def _session_policy(text: str) -> str:
    if len(text) > POLICY_MAX:
        share = len(text) * 100 // POLICY_MAX
        raise ServiceError(
            "PackedPolicyTooLarge",
            f"Packed policy consumes {share}% of allotted space, please use smaller policy.",
        )
    try:
        read_policy(text)
    except PolicyRefused as problem:
        raise ServiceError("MalformedPolicyDocument", f"The policy is not valid: {problem}.") from None
    return text


def _invalid(message: str) -> ServiceError:
    return ServiceError("ValidationError", message)
