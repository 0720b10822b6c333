"""The one authorisation step, between the signature and the operation.

An account sees nothing of another's: services look resources up by (account, Region, name), and a request
that names another account's resource by its ARN stops here. So does one that the account's own policy does
not allow. A yard knows of a request its action, its place and, for launches, the market; a policy that allows
an action on some resources only is kept to as far as that goes (docs/reference/unconfirmed.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from berth.yard.errors import ServiceError
from berth.yard.identity.accounts import Account
from berth.yard.identity.policies import EVERYTHING, Context, Decision, Place, evaluate, read_policy
from berth.yard.services.arns import partition_of, read_arn

_OWNED = frozenset({"sagemaker", "ec2"})  # roles, images and keys of other accounts may well be named
_FREE_TEXT = frozenset({"Environment", "Tags"})  # what stands there is the caller's own affair
# IAM's names of services, where they are not botocore's.
_PREFIXES = {"sagemaker-runtime": "sagemaker", "service-quotas": "servicequotas"}
_NEEDS_NO_RIGHT = frozenset({"sts:GetCallerIdentity"})  # STS API reference: "no permissions are required"
# Decided by the operation itself, which knows the role and whom it trusts.
_DECIDED_LATER = frozenset({"sts:AssumeRole"})
_ON_DEMAND = "on-demand"


def action_of(service: str, operation: str) -> str:
    """The IAM action of an operation: `servicequotas:GetServiceQuota`."""
    return f"{_PREFIXES.get(service, service)}:{operation}"


def caller_arn(account: Account, region: str) -> str:
    """The ARN of whoever asks: a role's session, or a user; an account's first is named like the account."""
    if account.as_role is not None:
        session = f"{account.as_role.name}/{account.as_role.session}"
        return f"arn:{partition_of(region)}:sts::{account.account_id}:assumed-role/{session}"
    return f"arn:{partition_of(region)}:iam::{account.account_id}:user/{account.user}"


def principal_arn(account: Account, region: str) -> str:
    """The ARN of the identity behind it: of a session, its role (IAM's key `aws:PrincipalArn`)."""
    if account.as_role is not None:
        return f"arn:{partition_of(region)}:iam::{account.account_id}:role/{account.as_role.name}"
    return caller_arn(account, region)


def authorise(
    account: Account, service: str, operation: str, params: Mapping[str, Any], region: str = "us-east-1"
) -> None:
    """Let the call pass, or raise AccessDeniedException (EC2: UnauthorizedOperation, IAM: AccessDenied)."""
    for text in _arns(params):
        arn = read_arn(text)
        if arn is not None and arn.service in _OWNED and arn.account_id != account.account_id:
            raise denied(account, service, operation, text, region)
    action = action_of(service, operation)
    if action in _NEEDS_NO_RIGHT | _DECIDED_LATER:
        return
    place = Place(region, account.account_id)
    for policy in account.policies:
        if policy == EVERYTHING:
            continue
        verdict = evaluate(read_policy(policy), action, place, known_of(account, action, params, region))
        if verdict.decision is not Decision.ALLOWED:
            raise denied(account, service, operation, "*", region)


def known_of(account: Account, action: str, params: Mapping[str, Any], region: str) -> Context:
    """The condition keys that a yard knows of a request."""
    known = {
        "aws:requestedregion": (region,),
        "aws:principalarn": (principal_arn(account, region),),
        "aws:principalaccount": (account.account_id,),
    }
    if action == "ec2:RunInstances":
        market = params.get("InstanceMarketOptions", {}).get("MarketType", _ON_DEMAND)
        known["ec2:instancemarkettype"] = (str(market),)
    return known


def denied(account: Account, service: str, operation: str, resource: str, region: str) -> ServiceError:
    """The refusal, in the words of AWS's services."""
    if service == "ec2":
        return ServiceError(
            "UnauthorizedOperation", "You are not authorized to perform this operation.", status=403
        )
    code, status = ("AccessDenied", 403) if service in ("iam", "sts") else ("AccessDeniedException", 400)
    return ServiceError(
        code,
        f"User: {caller_arn(account, region)} is not authorized to perform:"
        f" {action_of(service, operation)} on resource: {resource}",
        status=status,
    )


def _arns(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value.startswith("arn:"):
            yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if name not in _FREE_TEXT:
                yield from _arns(item)
    elif isinstance(value, list):
        for item in value:
            yield from _arns(item)
