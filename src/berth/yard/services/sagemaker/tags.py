"""Tags of SageMaker resources: AddTags, ListTags, and tags given at creation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from berth.yard.assembly import Yard
from berth.yard.errors import ServiceError
from berth.yard.services.arns import read_arn
from berth.yard.services.operation import Call, reads, writes
from berth.yard.services.paging import read_token, write_token
from berth.yard.store.transaction import Reading, Transaction

TAGS_MAX = 50
_TABLES = {
    "training-plan": "training_plans",
    "model": "models",
    "endpoint-config": "endpoint_configs",
    "endpoint": "endpoints",
}


def tag(tx: Transaction, arn: str, tags: Iterable[Mapping[str, str]]) -> None:
    """Put `tags` on `arn`; a key that is there gets the new value. Raises ValidationException over 50."""
    for entry in tags:
        if entry["Key"].lower().startswith("aws:"):
            raise ServiceError("ValidationException", "Tag keys starting with 'aws:' are reserved.")
        tx.run(
            "INSERT INTO tags (arn, key, value) VALUES (?, ?, ?)"
            " ON CONFLICT (arn, key) DO UPDATE SET value = excluded.value",
            arn, entry["Key"], entry["Value"],
        )  # fmt: skip
    row = tx.one("SELECT count(*) AS n FROM tags WHERE arn = ?", arn)
    if row is not None and row["n"] > TAGS_MAX:
        raise ServiceError("ValidationException", f"A resource may have at most {TAGS_MAX} tags.")


def untag_all(tx: Transaction, arn: str) -> None:
    """Forget the tags of a resource that is gone."""
    tx.run("DELETE FROM tags WHERE arn = ?", arn)


def _own(call: Call, rows: Reading, arn: str) -> None:
    parts = read_arn(arn)
    table = _TABLES.get(parts.kind) if parts else None
    own = parts is not None and (parts.account_id, parts.region) == (call.account.account_id, call.region)
    found = own and table and rows.one(f"SELECT 1 FROM {table} WHERE arn = ?", arn)  # noqa: S608 - literal
    if not found:
        raise ServiceError("ValidationException", f'Could not find resource "{arn}".')


@writes("sagemaker", "AddTags")
def add_tags(call: Call, yard: Yard, tx: Transaction) -> dict[str, Any]:
    """AddTags: overwrites the values of keys that are there."""
    arn = call.params["ResourceArn"]
    _own(call, tx, arn)
    tag(tx, arn, call.params["Tags"])
    return {"Tags": [_shape(row) for row in tx.all("SELECT * FROM tags WHERE arn = ? ORDER BY key", arn)]}


@reads("sagemaker", "ListTags")
def list_tags(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """ListTags, by key."""
    arn = call.params["ResourceArn"]
    _own(call, rows, arn)
    scope = f"tags/{arn}"
    after = read_token(call.params["NextToken"], scope, 1)[0] if call.params.get("NextToken") else ""
    size = int(call.params.get("MaxResults", TAGS_MAX))
    found = rows.all(
        "SELECT * FROM tags WHERE arn = ? AND key > ? ORDER BY key LIMIT ?", arn, after, size + 1
    )
    answer: dict[str, Any] = {"Tags": [_shape(row) for row in found[:size]]}
    if len(found) > size:
        answer["NextToken"] = write_token(scope, [found[size - 1]["key"]])
    return answer


def _shape(row: Any) -> dict[str, str]:
    return {"Key": row["key"], "Value": row["value"]}
