"""The list operations of models, endpoint configurations and endpoints share their inputs."""

from __future__ import annotations

from berth.terms.instants import to_micros
from berth.yard.services.lag import horizon_us
from berth.yard.services.operation import Call
from berth.yard.services.paging import page
from berth.yard.store.transaction import Reading, Row, Value

_SORTS = {"Name": "name", "CreationTime": "created_us", "Status": "status"}
_BOUNDS = {
    "CreationTimeAfter": "created_us >= ?",
    "CreationTimeBefore": "created_us <= ?",
    "LastModifiedTimeAfter": "modified_us >= ?",
    "LastModifiedTimeBefore": "modified_us <= ?",
}


def list_by_name_or_creation(
    call: Call, rows: Reading, table: str, size_default: int = 100
) -> tuple[list[Row], str | None]:
    """One page of `table`: NameContains, time bounds, StatusEquals, SortBy (default CreationTime), SortOrder.

    AWS's default order is descending (API reference of ListModels, ListEndpointConfigs, ListEndpoints).
    """
    params = call.params
    where = ["account_id = ?", "region = ?", "created_us <= ?"]
    values: list[Value] = [call.account.account_id, call.region, horizon_us(call)]
    for member, clause in _BOUNDS.items():
        if member in params:
            where.append(clause)
            values.append(to_micros(params[member]))
    if params.get("NameContains"):
        where.append("instr(lower(name), lower(?)) > 0")
        values.append(params["NameContains"])
    if params.get("StatusEquals"):
        where.append("status = ?")
        values.append(params["StatusEquals"])
    return page(
        rows, params,
        scope=table, table=table, where=where, values=values,
        sort_column=_SORTS[params.get("SortBy", "CreationTime")],
        descending=params.get("SortOrder", "Descending") == "Descending",
        size_default=size_default,
    )  # fmt: skip
