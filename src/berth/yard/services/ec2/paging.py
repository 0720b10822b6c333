"""EC2's pages: NextToken and MaxResults, by key, so that a page costs the same however much is stored.

A page may hold fewer items than asked for, none even, and still have a next one (EC2 API Reference,
"Query requests": loop until there is no token). This yard uses that right only where filters leave little of
what it has looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from berth.yard.errors import ServiceError
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.operation import Call
from berth.yard.services.paging import key_in, write_token
from berth.yard.store.transaction import Reading, Row, Value

PAGE_MAX = 1000
# Rows that one page looks at when filters leave few of them.
LOOKED_AT_MAX = 1000
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
    any_of: tuple[str, Sequence[Value]] | None = None,
    size_default: int = PAGE_MAX,
) -> tuple[list[Shape], str | None]:
    """One page of `table` in the order of the columns `key`, and the token of the next or None.

    `shapes` makes what the answer holds of some rows at once, None for a row that the filters leave out.
    `any_of` is a column and the values of which it must hold one: each is read from its own place of an index
    and they are merged, so that a rare value costs no more than a common one. `table`, `where`, `key` and the
    column come from code. Raises InvalidNextToken, InvalidParameterValue.
    """
    size = page_size(call, size_default)
    after = token_key(call, len(key))
    read = _Read(table, [*where], [*values], key, any_of)
    found: list[Shape] = []
    looked_at = 0
    while True:
        limit = (PAGE_MAX if looked_at else size) + 1
        some = read.after(rows, after, limit)
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


@dataclass(frozen=True, slots=True)
class _Read:
    """How a page's rows are read; the members are those of `page`."""

    table: str
    where: list[str]
    values: list[Value]
    key: Sequence[str]
    any_of: tuple[str, Sequence[Value]] | None

    def after(self, rows: Reading, last: Sequence[Value] | None, limit: int) -> list[Row]:
        """The first `limit` rows behind the key `last` (None = from the beginning)."""
        columns, marks = ", ".join(self.key), ", ".join("?" * len(self.key))
        clauses = [*self.where, *([] if last is None else [f"({columns}) > ({marks})"])]
        bound = [*self.values, *(last or ())]
        order = f" ORDER BY {columns} LIMIT ?"
        if self.any_of is None:
            return rows.all(_select(self.table, clauses) + order, *bound, limit)
        column, wanted = self.any_of
        if not wanted:
            return []
        one = f"SELECT * FROM ({_select(self.table, [*clauses, f'{column} = ?'])}{order})"  # noqa: S608
        arms: list[Value] = [part for value in wanted for part in (*bound, value, limit)]
        return rows.all(" UNION ALL ".join([one] * len(wanted)) + order, *arms, limit)


def _select(table: str, clauses: Sequence[str]) -> str:
    return f"SELECT * FROM {table} WHERE {' AND '.join(clauses)}"  # noqa: S608 - only literals of our code


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
