"""Pages as Service Quotas gives them. Its tokens are plain base64: the model lets no other letters pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from berth.yard.errors import ServiceError
from berth.yard.services.operation import Call
from berth.yard.services.paging import PAGE_DEFAULT, key_in, write_token
from berth.yard.store.transaction import Value

T = TypeVar("T")


def page_of(
    call: Call, found: Sequence[T], scope: str, key_of: Callable[[T], Value]
) -> tuple[list[T], dict[str, str]]:
    """The page of `found`, which is in the order of its keys, that the call asks for, and its NextToken if
    there is more. `scope` says what is listed. Raises InvalidPaginationTokenException."""
    scope = f"{call.operation}/{scope}"
    rest = list(found)
    token = call.params.get("NextToken")
    if token:
        key = key_in(token.replace("+", "-").replace("/", "_"), scope, 1)
        if key is None:
            raise ServiceError("InvalidPaginationTokenException", "Invalid token was used.")
        keys = [key_of(one) for one in rest]
        if key[0] not in keys:
            raise ServiceError("InvalidPaginationTokenException", "Invalid token was used.")
        rest = rest[keys.index(key[0]) + 1 :]
    size = int(call.params.get("MaxResults", PAGE_DEFAULT))
    if len(rest) <= size:
        return rest, {}
    following = write_token(scope, [key_of(rest[size - 1])])
    return rest[:size], {"NextToken": following.replace("-", "+").replace("_", "/")}
