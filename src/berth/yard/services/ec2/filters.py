"""EC2's filters and DryRun: what every describe call of EC2 has in common.

Filters are applied twice. `prefilter` turns what can be said exactly into SQL, so that a rare value is found
without reading everything; `passes` looks at the finished shape and decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from berth.yard.errors import ServiceError
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.operation import Call
from berth.yard.store.transaction import Reading, Value
from berth.yard.wire.scalars import iso_millis, iso_seconds

Facet = Callable[[Shape], Iterable[str]]
Filter = Mapping[str, Any]

# EC2 API Reference, Filter: at most 50 filters and 200 values in a request.
FILTERS_MAX = 50
VALUES_MAX = 200
# So many ids are looked up one by one; a tag that more resources carry is met soon when they are read in
# order.
FEW = 500
TAG_KEY = "tag-key"
TAG = "tag:"
_WILD = re.compile(r"[*?\\]")
_SPECIAL = re.compile(r"\\(.)|([*?])|([^*?\\]+)|\\", re.DOTALL)


def refuse_dry_run(call: Call) -> None:
    """EC2 answers DryRun with an error that says that it would have worked (HTTP 412)."""
    if call.params.get("DryRun"):
        raise ServiceError(
            "DryRunOperation", "Request would have succeeded, but DryRun flag is set.", status=412
        )


# -- facets ----------------------------------------------------------------------------------------------
def one(member: str) -> Facet:
    """The text of one member; nothing where it lacks. Instants read with and without milliseconds."""

    def facet(shape: Shape) -> Iterable[str]:
        value = shape.get(member)
        if value is None:
            return []
        if isinstance(value, bool):
            return ["true" if value else "false"]
        if isinstance(value, datetime):
            return [iso_millis(value), iso_seconds(value)]
        return [str(value)]

    return facet


def always(text: str) -> Facet:
    """The same for every shape."""
    return lambda shape: [text]


def never(shape: Shape) -> Iterable[str]:
    """A filter that the operation has and that nothing here can match."""
    return []


def _tag_keys(shape: Shape) -> Iterable[str]:
    return [tag["Key"] for tag in shape.get("Tags", ())]


def with_tags(facets: Mapping[str, Facet]) -> dict[str, Facet]:
    """`facets` with `tag-key` and `tag:<key>`, which look at the member Tags."""
    return {**facets, TAG_KEY: _tag_keys}


def _tag_value(key: str) -> Facet:
    return lambda shape: [tag["Value"] for tag in shape.get("Tags", ()) if tag["Key"] == key]


# -- applying --------------------------------------------------------------------------------------------
def passes(shape: Shape, filters: Sequence[Filter], facets: Mapping[str, Facet]) -> bool:
    """Values of one filter are ORed, filters ANDed; `*` and `?` are wildcards, `\\` takes their meaning away,
    case counts (EC2 User Guide, "List and filter using the CLI and API").

    Raises InvalidParameterValue for a filter that the operation does not have.
    """
    for wanted in filters:
        found = list(_facet(wanted.get("Name", ""), facets)(shape))
        if not any(_pattern(text).fullmatch(value) for value in found for text in wanted.get("Values", ())):
            return False
    return True


def check_filters(filters: Sequence[Filter], facets: Mapping[str, Facet]) -> None:
    """Raises FilterLimitExceeded for too many, InvalidParameterValue for a filter that is not there."""
    if len(filters) > FILTERS_MAX or sum(len(wanted.get("Values", ())) for wanted in filters) > VALUES_MAX:
        raise ServiceError(
            "FilterLimitExceeded", f"A request takes at most {FILTERS_MAX} filters and {VALUES_MAX} values."
        )
    for wanted in filters:
        _facet(wanted.get("Name", ""), facets)


def unknown_filter(name: object) -> ServiceError:
    """The refusal of a filter that the operation does not have."""
    return ServiceError("InvalidParameterValue", f"The filter '{name}' is invalid")


def _facet(name: str, facets: Mapping[str, Facet]) -> Facet:
    if name.startswith(TAG) and TAG_KEY in facets:
        return _tag_value(name.removeprefix(TAG))
    found = facets.get(name)
    if found is None:
        raise unknown_filter(name)
    return found


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    """A filter value as a pattern. What a star skips is settled at the first fit of what follows it, which
    loses no match and keeps the cost of many stars low."""
    pieces = [""]
    for escaped, wild, plain in _SPECIAL.findall(text):
        if wild == "*":
            pieces.append("")
        else:
            pieces[-1] += "." if wild else re.escape(escaped or plain or "\\")
    first, *rest = pieces
    if not rest:
        return re.compile(first, re.DOTALL)
    *middle, last = rest
    return re.compile(f"{first}{''.join(f'(?>.*?{piece})' for piece in middle)}.*{last}", re.DOTALL)


# -- as SQL ----------------------------------------------------------------------------------------------
def exact_values(filters: Sequence[Filter], name: str) -> list[Value] | None:
    """The values of the filter `name` where it is asked for once and without wildcards, else None."""
    asked = [wanted.get("Values", ()) for wanted in filters if wanted.get("Name") == name]
    if len(asked) != 1 or any(_WILD.search(value) for value in asked[0]):
        return None
    return list(dict.fromkeys(asked[0]))


def prefilter(
    filters: Sequence[Filter], columns: Mapping[str, str], *, call: Call, tagged_by: str = ""
) -> tuple[list[str], list[Value]]:
    """SQL clauses, and their values, that hold for every row whose shape passes; others may pass them too.

    `columns` maps filter names to columns that hold exactly the facet's text; one with a plus sign before it
    is compared and not looked up in an index. `tagged_by` names the column with the id under which `ec2_tags`
    knows the row; "" leaves tag filters to `passes`.
    """
    clauses: list[str] = []
    bound: list[Value] = []
    for wanted in filters:
        name, values = wanted.get("Name", ""), list(wanted.get("Values", ()))
        if any(_WILD.search(value) for value in values):
            continue
        if name in columns:
            clauses.append(f"{columns[name]} IN ({_marks(values)})")
            bound += values
        elif name.startswith(TAG) and tagged_by:
            question, inside = _tagged(call, name.removeprefix(TAG), values)
            clauses.append(f"{tagged_by} IN ({question})")
            bound += inside
    return clauses, bound


def few_tagged(filters: Sequence[Filter], *, call: Call, rows: Reading) -> list[Value] | None:
    """The ids of the caller's resources that carry what a tag filter asks for, where they are few.

    None where no tag filter is that selective: a tag that many carry is met soon when they are read in order.
    """
    for wanted in filters:
        name, values = wanted.get("Name", ""), list(wanted.get("Values", ()))
        if name.startswith(TAG) and not any(_WILD.search(value) for value in values):
            question, bound = _tagged(call, name.removeprefix(TAG), values)
            found = rows.all(f"{question} LIMIT ?", *bound, FEW + 1)
            if len(found) <= FEW:
                return [row["resource_id"] for row in found]
    return None


def _marks(values: Sequence[Value]) -> str:
    return ", ".join("?" * len(values))


def _tagged(call: Call, key: str, values: Sequence[Value]) -> tuple[str, list[Value]]:
    """A question for the ids of the caller's resources that carry the tag, and its values."""
    question = (
        "SELECT resource_id FROM ec2_tags WHERE account_id = ? AND region = ? AND key = ?"  # noqa: S608
        f" AND value IN ({_marks(values)})"
    )
    return question, [call.account.account_id, call.region, key, *values]
