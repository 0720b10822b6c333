"""Pages by key: a page costs the same wherever it begins, and rows added meanwhile never shift it."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from berth.yard.errors import ServiceError
from berth.yard.store.transaction import Reading, Row, Value

PAGE_DEFAULT = 100


def write_token(scope: str, key: Sequence[Value]) -> str:
    """An opaque NextToken that begins after `key`; `scope` (what is listed, in which order) must match."""
    return base64.urlsafe_b64encode(json.dumps([scope, *key]).encode()).decode()


def key_in(token: str, scope: str, parts: int) -> list[Value] | None:
    """The key of `parts` values in a NextToken; None for any other text, and for the token of another
    listing."""
    try:
        found = json.loads(base64.urlsafe_b64decode(token.encode()))
    except (ValueError, RecursionError):  # not base64, not UTF-8, not JSON
        return None
    if isinstance(found, list) and found[:1] == [scope] and len(found) == parts + 1:
        key = found[1:]
        if all(_can_be_bound(value) for value in key):
            return key
    return None


def read_token(token: str, scope: str, parts: int) -> list[Value]:
    """The key in a NextToken as SageMaker reads it. Raises ValidationException where there is none."""
    key = key_in(token, scope, parts)
    if key is None:
        raise ServiceError("ValidationException", "Invalid pagination token given.")
    return key


def _can_be_bound(value: object) -> bool:
    """Whether SQLite takes it: somebody may have made the token up."""
    if isinstance(value, str):
        return value.isprintable()
    return type(value) is int and -(2**63) <= value < 2**63


def page(
    rows: Reading,
    params: Any,
    *,
    scope: str,
    table: str,
    where: Sequence[str],
    values: Sequence[Value],
    sort_column: str,
    descending: bool,
    columns: str = "*",
    size_default: int = PAGE_DEFAULT,
) -> tuple[list[Row], str | None]:
    """One page of `table`, sorted by (`sort_column`, name), and the token of the next or None.

    `params` holds NextToken and MaxResults as AWS has them; the texts of SQL come from code.
    """
    size = int(params.get("MaxResults", size_default))
    scope = f"{scope}/{sort_column}/{'d' if descending else 'a'}"
    clauses, bound = list(where), list(values)
    if params.get("NextToken"):
        key = read_token(params["NextToken"], scope, 2)
        clauses.append(f"({sort_column}, name) {'<' if descending else '>'} (?, ?)")
        bound += key
    order = "DESC" if descending else "ASC"
    found = rows.all(
        f"SELECT {columns} FROM {table} WHERE {' AND '.join(clauses)}"  # noqa: S608 - only literals of our code
        f" ORDER BY {sort_column} {order}, name {order} LIMIT ?",
        *bound,
        size + 1,
    )
    if len(found) <= size:
        return found, None
    found = found[:size]
    return found, write_token(scope, [found[-1][sort_column], found[-1]["name"]])
