"""GetCallerIdentity: which account a key belongs to."""

from __future__ import annotations

from typing import Any

from berth.yard.assembly import Yard
from berth.yard.identity.authorisation import user_arn
from berth.yard.services.operation import Call, reads
from berth.yard.store.transaction import Reading


@reads("sts", "GetCallerIdentity")
def get_caller_identity(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """Every key is a user's: the first user's of an account, or that of one who was added."""
    account = call.account
    return {
        "Account": account.account_id,
        "UserId": f"AIDA{account.account_id}0000{account.further_user.upper()}",
        "Arn": user_arn(account, call.region),
    }
