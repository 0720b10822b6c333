"""GetCallerIdentity: which account a key belongs to."""

from __future__ import annotations

from typing import Any

from berth.yard.assembly import Yard
from berth.yard.services.arns import partition_of
from berth.yard.services.operation import Call, reads
from berth.yard.store.transaction import Reading


@reads("sts", "GetCallerIdentity")
def get_caller_identity(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """A yard's keys are those of an account's one user, named like the account."""
    account = call.account
    return {
        "Account": account.account_id,
        "UserId": f"AIDA{account.account_id}0000",
        "Arn": f"arn:{partition_of(call.region)}:iam::{account.account_id}:user/{account.name}",
    }
