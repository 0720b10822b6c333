"""Resources that are nothing but the request that made them: models and endpoint configurations.

They never change; what may be asked later is what was said at creation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from berth.terms.instants import from_micros
from berth.yard.errors import ServiceError
from berth.yard.services.arns import sagemaker_arn
from berth.yard.services.lag import horizon_us
from berth.yard.services.operation import Call
from berth.yard.services.sagemaker.listing import list_by_name_or_creation
from berth.yard.services.sagemaker.tags import tag, untag_all
from berth.yard.store.transaction import Reading, Row, Transaction


@dataclass(frozen=True, slots=True)
class KeptRequests:
    """One kind of them. `word` is AWS's in messages, `member` the stem of its members (`Model` in ModelName,
    ModelArn), `list_member` what a listing calls them, `kind` the ARN's."""

    table: str
    kind: str
    word: str
    member: str
    list_member: str

    def arn(self, call: Call, name: str) -> str:
        """The ARN that one of this name has."""
        return sagemaker_arn(call.region, call.account.account_id, self.kind, name.lower())

    def find(self, call: Call, rows: Reading, name: str) -> Row:
        """The row of that name. Raises ValidationException as AWS does for a missing one."""
        row = rows.one(
            f"SELECT * FROM {self.table} WHERE account_id = ? AND region = ? AND name = ?"  # noqa: S608 - literal
            " AND created_us <= ?",
            call.account.account_id, call.region, name, horizon_us(call),
        )  # fmt: skip
        if row is None:
            raise ServiceError("ValidationException", f'Could not find {self.word} "{self.arn(call, name)}".')
        return row

    def refuse_taken(self, call: Call, rows: Reading, name: str) -> None:
        """Raises ValidationException when the name is taken."""
        arn = self.arn(call, name)
        if rows.one(f"SELECT 1 FROM {self.table} WHERE arn = ?", arn) is not None:  # noqa: S608 - literal
            raise ServiceError("ValidationException", f'Cannot create already existing {self.word} "{arn}".')

    def keep(self, call: Call, tx: Transaction, params: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the request, less its tags, which are kept as tags; the answer of the Create operation."""
        request = dict(params)
        name = request[f"{self.member}Name"]
        tags = request.pop("Tags", [])
        arn = self.arn(call, name)
        tx.insert(
            self.table,
            arn=arn, account_id=call.account.account_id, region=call.region, name=name, created_us=tx.now_us,
            request=json.dumps(request),
        )  # fmt: skip
        tag(tx, arn, tags)
        tx.event(arn, self.kind, "created", account_id=call.account.account_id, region=call.region)
        return {f"{self.member}Arn": arn}

    def describe(self, call: Call, rows: Reading) -> dict[str, Any]:
        """What was asked for at creation, with ARN and time."""
        row = self.find(call, rows, call.params[f"{self.member}Name"])
        return {
            **json.loads(row["request"]),
            f"{self.member}Arn": row["arn"],
            "CreationTime": from_micros(row["created_us"]),
        }

    def delete(self, call: Call, tx: Transaction) -> dict[str, Any]:
        """Forget it and its tags."""
        row = self.find(call, tx, call.params[f"{self.member}Name"])
        tx.run(f"DELETE FROM {self.table} WHERE arn = ?", row["arn"])  # noqa: S608 - literal
        untag_all(tx, row["arn"])
        tx.event(row["arn"], self.kind, "deleted", account_id=call.account.account_id, region=call.region)
        return {}

    def listing(self, call: Call, rows: Reading) -> dict[str, Any]:
        """Newest first unless asked otherwise."""
        found, token = list_by_name_or_creation(call, rows, self.table)
        answer: dict[str, Any] = {
            self.list_member: [
                {
                    f"{self.member}Name": row["name"],
                    f"{self.member}Arn": row["arn"],
                    "CreationTime": from_micros(row["created_us"]),
                }
                for row in found
            ]
        }
        return {**answer, "NextToken": token} if token else answer


MODELS = KeptRequests("models", "model", "model", "Model", "Models")
ENDPOINT_CONFIGS = KeptRequests(
    "endpoint_configs", "endpoint-config", "endpoint configuration", "EndpointConfig", "EndpointConfigs"
)
