"""GetCallerIdentity: which account a key belongs to."""

from __future__ import annotations

from typing import Any

from berth.yard.assembly import Yard
from berth.yard.identity.authorisation import caller_arn
from berth.yard.services.operation import Call, reads
from berth.yard.store.transaction import Reading


@reads("sts", "GetCallerIdentity")
def get_caller_identity(call: Call, yard: Yard, rows: Reading) -> dict[str, Any]:
    """A key is a user's, the first of an account or one who was added, or that of a role's session."""
    account, taken = call.account, call.account.as_role
    user_id = f"AIDA{account.account_id}0000{account.further_user.upper()}"
    return {
        "Account": account.account_id,
        "UserId": f"{taken.role_id}:{taken.session}" if taken else user_id,
        "Arn": caller_arn(account, call.region),
    }
