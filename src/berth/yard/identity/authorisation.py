"""The one authorisation step, between the signature and the operation.

For now an account may do everything to its own and sees nothing of another's: services look resources up by
(account, Region, name), and a request that names another account's resource by its ARN stops here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from berth.yard.errors import ServiceError
from berth.yard.identity.accounts import Account
from berth.yard.services.arns import read_arn

_OWNED = frozenset({"sagemaker", "ec2"})  # roles, images and keys of other accounts may well be named
_FREE_TEXT = frozenset({"Environment", "Tags"})  # what stands there is the caller's own affair


def authorise(account: Account, service: str, operation: str, params: Mapping[str, Any]) -> None:
    """Let the call pass, or raise AccessDeniedException (EC2: UnauthorizedOperation)."""
    for text in _arns(params):
        arn = read_arn(text)
        if arn is not None and arn.service in _OWNED and arn.account_id != account.account_id:
            raise _denied(account, service, operation, text)


def _denied(account: Account, service: str, operation: str, resource: str) -> ServiceError:
    if service == "ec2":
        return ServiceError(
            "UnauthorizedOperation", "You are not authorized to perform this operation.", status=403
        )
    return ServiceError(
        "AccessDeniedException",
        f"User: arn:aws:iam::{account.account_id}:user/{account.name} is not authorized to perform:"
        f" {service}:{operation} on resource: {resource}",
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
