"""EC2's pages: NextToken and MaxResults, by key, so that a page costs the same however much is stored.

A page may hold fewer items than asked for, none even, and still have a next one (EC2 API Reference,
"Query requests": loop until there is no token). This yard uses that right only where filters leave little of
what it has looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from berth.yard.errors import ServiceError
from berth.yard.services.ec2.filters import Shape
from berth.yard.services.operation import Call
from berth.yard.services.paging import key_in, write_token
from berth.yard.store.transaction import Reading, Row, Value

PAGE_MAX = 1000
# Rows that one page looks at when filters leave few of them.
LOOKED_AT_MAX = 5000
_KEPT_FROM_TOKENS = frozenset({"NextToken", "MaxResults", "DryRun"})

T = TypeVar("T")


def check_page(call: Call, ids: str = "") -> None:
    """Raises InvalidParameterCombination when the list of ids `ids` comes with MaxResults."""
    if ids and call.params.get(ids) and "MaxResults" in call.params:
        raise ServiceError(
            "InvalidParameterCombination",
            f"The parameter {ids} cannot be used with the parameter MaxResults.",
        )


def page_size(call: Call, default: int = PAGE_MAX) -> int:
    """How many items a page holds: MaxResults, else `default`; at most PAGE_MAX.

    Raises InvalidParameterValue below 1 where the model sets no bound itself.
    """
    size = int(call.params.get("MaxResults", default))
    if size < 1:
        raise ServiceError("InvalidParameterValue", f"Value ({size}) for parameter MaxResults is invalid.")
    return min(size, PAGE_MAX)


def scope_of(call: Call) -> str:
    """What a token belongs to: this question of this account in this Region. Another question has another."""
    asked = sorted(
        (name, repr(value)) for name, value in call.params.items() if name not in _KEPT_FROM_TOKENS
    )
    text = f"{call.account.account_id}/{call.region}/{call.operation}/{asked}"
    return hashlib.blake2b(text.encode(), digest_size=9).hexdigest()


def token_key(call: Call, parts: int) -> list[Value] | None:
    """The key in the call's NextToken, None without one. Raises InvalidNextToken for a made-up token."""
    token = call.params.get("NextToken")
    if not token:
        return None
    key = key_in(token, scope_of(call), parts)
    if key is None:
        raise ServiceError("InvalidNextToken", "The token is not valid: begin again without one.")
    return key


def next_token(call: Call, key: Sequence[Value]) -> str:
    """The token of the page that begins after `key`."""
    return write_token(scope_of(call), key)


def page(
    call: Call,
    rows: Reading,
    *,
    table: str,
    where: Sequence[str],
    values: Sequence[Value],
    shapes: Callable[[list[Row]], list[Shape | None]],
    key: Sequence[str] = ("number",),
    size_default: int = PAGE_MAX,
) -> tuple[list[Shape], str | None]:
    """One page of `table` in the order of the columns `key`, and the token of the next or None.

    `shapes` makes what the answer holds of some rows at once, None for a row that the filters leave out.
    `table`, `where` and `key` come from code. Raises InvalidNextToken, InvalidParameterValue.
    """
    size = page_size(call, size_default)
    after = token_key(call, len(key))
    columns, marks = ", ".join(key), ", ".join("?" * len(key))
    found: list[Shape] = []
    looked_at = 0
    while True:
        limit = (PAGE_MAX if looked_at else size) + 1
        clauses = [*where, *([f"({columns}) > ({marks})"] if after is not None else [])]
        some = rows.all(
            f"SELECT * FROM {table} WHERE {' AND '.join(clauses)} ORDER BY {columns} LIMIT ?",  # noqa: S608 - literals of our code
            *values, *(after or ()), limit,
        )  # fmt: skip
        more, some = len(some) == limit, some[: limit - 1]
        for row, shape in zip(some, shapes(some), strict=True):
            if shape is not None:
                if len(found) == size:
                    assert after is not None
                    return found, next_token(call, after)
                found.append(shape)
            after = [row[name] for name in key]
        looked_at += len(some)
        if not more:
            return found, None
        if len(found) == size or looked_at >= LOOKED_AT_MAX:
            assert after is not None
            return found, next_token(call, after)


def page_of(
    call: Call,
    items: Sequence[T],
    key: Callable[[T], tuple[Value, ...]],
    parts: int,
    size_default: int = PAGE_MAX,
) -> tuple[Sequence[T], str | None]:
    """One page of `items`, sorted by `key` (of so many parts), for what is reckoned and not stored.

    What comes up or goes between two pages shifts nothing: a page goes on after the last key.
    """
    size = page_size(call, size_default)
    after = token_key(call, parts)
    rest = [item for item in items if after is None or _beyond(key(item), after)]
    if len(rest) <= size:
        return rest, None
    return rest[:size], next_token(call, key(rest[size - 1]))


def _beyond(key: tuple[Any, ...], after: list[Value]) -> bool:
    try:
        return key > tuple(after)
    except TypeError:  # a token that somebody made up
        raise ServiceError("InvalidNextToken", "The token is not valid: begin again without one.") from None
