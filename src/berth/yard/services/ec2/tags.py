"""EC2's tags: CreateTags, DeleteTags, DescribeTags, tags given at creation, tags shown with a resource.

Rules: EC2 User Guide, "Tag your Amazon EC2 resources" (50 tags a resource, keys of 1 to 128 characters,
values of up to 256, `aws:` reserved and not counted).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.services.ec2.filters import (
    Facet,
    check_filters,
    one,
    passes,
    prefilter,
    refuse_dry_run,
    with_tags,
)
from berth.yard.services.ec2.paging import page
from berth.yard.services.ec2.shape import Shape
from berth.yard.services.lag import horizon_us
from berth.yard.services.operation import Call, reads, writes
from berth.yard.store.transaction import Reading, Row, Transaction

TAGS_MAX = 50
KEY_MAX = 128
VALUE_MAX = 256
RESOURCES_MAX = 1000
RESERVED = "aws:"

Tag = Mapping[str, Any]


# -- what can be tagged ----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Taggable:
    """A kind of resource that carries tags: EC2's name of it, and where its rows are.

    `table` has the columns account_id, region, created_us and `id_column`. `not_found` is the error code for
    an id that is not there.
    """

    resource_type: str
    table: str
    id_column: str
    not_found: str


_KINDS: list[tuple[str, Taggable]] = []


def taggable(prefix: str, kind: Taggable) -> Taggable:
    """Let ids that begin with `prefix` (`cr-`) be tagged as `kind`: called where the noun is defined."""
    _KINDS.append((prefix, kind))
    return kind


def _find(call: Call, rows: Reading, resource_id: str) -> Taggable:
    """The kind of the caller's resource. Raises InvalidID for an id of no kind, the kind's code for none."""
    kinds = [kind for prefix, kind in _KINDS if resource_id.startswith(prefix)]
    for kind in kinds:
        if rows.one(
            f"SELECT 1 FROM {kind.table} WHERE {kind.id_column} = ? AND account_id = ? AND region = ?"  # noqa: S608 - literals
            " AND created_us <= ?",
            resource_id, call.account.account_id, call.region, horizon_us(call),
        ):  # fmt: skip
            return kind
    if kinds:
        raise ServiceError(kinds[0].not_found, f"The ID '{resource_id}' does not exist")
    raise ServiceError("InvalidID", f"The ID '{resource_id}' is not valid")


# -- putting tags on -------------------------------------------------------------------------------------
def tags_at_creation(call: Call, *resource_types: str) -> dict[str, list[Tag]]:
    """The checked tags of the call's TagSpecifications, by resource type; every type of the call is there.

    Raises InvalidParameterValue for another type, a type named twice, and for tags that are not allowed.
    """
    found: dict[str, list[Tag]] = {name: [] for name in resource_types}
    seen = set()
    for wanted in call.params.get("TagSpecifications", ()):
        name = wanted.get("ResourceType", "")
        if name not in found:
            raise ServiceError(
                "InvalidParameterValue", f"'{name}' is not a valid taggable resource type for this operation."
            )
        if name in seen:
            raise ServiceError(
                "InvalidParameterValue",
                f"The same resource type '{name}' may not be specified more than once.",
            )
        seen.add(name)
        found[name] = list(wanted.get("Tags", ()))
        check_tags(found[name])
    return found


def check_tags(tags: Sequence[Tag]) -> None:
    """Raises InvalidParameterValue for a key that is empty, too long, reserved or there twice, or a long
    value; TagLimitExceeded for more than 50."""
    keys = [str(tag.get("Key", "")) for tag in tags]
    for key, tag in zip(keys, tags, strict=True):
        if not 1 <= len(key) <= KEY_MAX:
            raise _refuse(f"Tag key must have from 1 to {KEY_MAX} characters: '{key[:KEY_MAX]}'")
        if key.lower().startswith(RESERVED):
            raise _refuse("Tag keys starting with 'aws:' are reserved for internal use")
        if len(tag.get("Value", "")) > VALUE_MAX:
            raise _refuse(f"Tag value exceeds the maximum length of {VALUE_MAX} characters")
        if keys.count(key) > 1:
            raise _refuse(f"Duplicate tag key '{key}' specified.")
    if len(tags) > TAGS_MAX:
        raise _too_many()


def _refuse(message: str) -> ServiceError:
    return ServiceError("InvalidParameterValue", message)


def _too_many() -> ServiceError:
    return ServiceError("TagLimitExceeded", f"The maximum number of tags for a resource is {TAGS_MAX}.")


def put_tags(
    tx: Transaction,
    resource_id: str,
    resource_type: str,
    tags: Iterable[Tag],
    *,
    account_id: str,
    region: str,
) -> None:
    """Write `tags`, which were checked, or are the yard's own with `aws:`; a key that is there gets the new
    value. Raises TagLimitExceeded when the resource then has too many."""
    for tag in tags:
        tx.run(
            "INSERT INTO ec2_tags (resource_id, key, value, account_id, region, resource_type, set_us)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (resource_id, key) DO UPDATE SET value = excluded.value, set_us = excluded.set_us",
            resource_id, tag["Key"], tag.get("Value", ""), account_id, region, resource_type, tx.now_us,
        )  # fmt: skip
    row = tx.one(
        "SELECT count(*) AS n FROM ec2_tags WHERE resource_id = ? AND key NOT LIKE 'aws:%'", resource_id
    )
    if row is not None and row["n"] > TAGS_MAX:
        raise _too_many()


def forget_tags(tx: Transaction, resource_id: str) -> None:
    """Drop the tags of a resource that is gone."""
    tx.run("DELETE FROM ec2_tags WHERE resource_id = ?", resource_id)


# -- showing tags ----------------------------------------------------------------------------------------
def tags_of(call: Call, rows: Reading, resource_ids: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """The tags of some resources as a describe call shows them, by id; one without tags is left out."""
    found: dict[str, list[dict[str, str]]] = {}
    if not resource_ids:
        return found
    marks = ", ".join("?" * len(resource_ids))
    for row in rows.all(
        f"SELECT resource_id, key, value FROM ec2_tags WHERE resource_id IN ({marks}) AND set_us <= ?"  # noqa: S608 - marks only
        " ORDER BY resource_id, key",
        *resource_ids, horizon_us(call),
    ):  # fmt: skip
        found.setdefault(row["resource_id"], []).append({"Key": row["key"], "Value": row["value"]})
    return found


# -- the three calls -------------------------------------------------------------------------------------
@writes("ec2", "CreateTags")
def create_tags(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """Put the same tags on up to 1000 resources; all or none."""
    tags = call.params["Tags"]
    check_tags(tags)
    kinds = {resource_id: _find(call, tx, resource_id) for resource_id in _resources(call)}
    refuse_dry_run(call)
    for resource_id, kind in kinds.items():
        put_tags(
            tx, resource_id, kind.resource_type, tags,
            account_id=call.account.account_id, region=call.region,
        )  # fmt: skip
    return {}


@writes("ec2", "DeleteTags")
def delete_tags(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """By key, or by key and value; all of a person's tags when none is named. None there is no error."""
    kinds = {resource_id: _find(call, tx, resource_id) for resource_id in _resources(call)}
    tags = call.params.get("Tags", ())
    for tag in tags:
        if str(tag.get("Key", "")).lower().startswith(RESERVED):
            raise _refuse("Tag keys starting with 'aws:' are reserved for internal use")
    refuse_dry_run(call)
    for resource_id in kinds:
        if not tags:
            tx.run("DELETE FROM ec2_tags WHERE resource_id = ? AND key NOT LIKE 'aws:%'", resource_id)
        for tag in tags:
            tx.run(
                "DELETE FROM ec2_tags WHERE resource_id = ?1 AND key = ?2 AND (?3 IS NULL OR value = ?3)",
                resource_id, tag.get("Key", ""), tag.get("Value"),
            )  # fmt: skip
    return {}


def _resources(call: Call) -> list[str]:
    ids: list[str] = call.params["Resources"]
    if not 1 <= len(ids) <= RESOURCES_MAX:
        raise _refuse(f"A request takes from 1 to {RESOURCES_MAX} resource IDs.")
    return ids


_FACETS: Mapping[str, Facet] = with_tags(
    {
        "key": one("Key"),
        "value": one("Value"),
        "resource-id": one("ResourceId"),
        "resource-type": one("ResourceType"),
    }
)
_COLUMNS = {"key": "key", "value": "value", "resource-id": "resource_id", "resource-type": "resource_type"}


@reads("ec2", "DescribeTags")
def describe_tags(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """The caller's tags in the Region, by resource and key."""
    filters = call.params.get("Filters", ())
    check_filters(filters, _FACETS)
    refuse_dry_run(call)
    clauses, bound = prefilter(filters, _COLUMNS, call=call)

    def shapes(some: list[Row]) -> list[Shape | None]:
        made = [{name: row[column] for name, column in _MEMBERS.items()} for row in some]
        return [shape if passes({**shape, "Tags": [shape]}, filters, _FACETS) else None for shape in made]

    found, token = page(
        call, rows, table="ec2_tags", where=["account_id = ?", "region = ?", "set_us <= ?", *clauses],
        values=[call.account.account_id, call.region, horizon_us(call), *bound], shapes=shapes,
        key=("resource_id", "key"),
    )  # fmt: skip
    return {"Tags": found, **({"NextToken": token} if token else {})}


_MEMBERS = {"ResourceId": "resource_id", "ResourceType": "resource_type", "Key": "key", "Value": "value"}
