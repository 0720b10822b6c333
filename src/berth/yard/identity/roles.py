"""Roles of accounts: what their sessions may do, and who may assume them.

After the IAM user guide ("Roles terms and concepts", "Policy evaluation logic", read 2026-11). A role has no
path here: the ARN of a session does not tell it anyway.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from berth.yard.identity.accounts import Account, NoAccount
from berth.yard.identity.policies import EVERYTHING, Context, Decision, evaluate, read_policy
from berth.yard.store.transaction import Reading, Row, Transaction

SHORTEST_MAXIMUM = timedelta(hours=1)
LONGEST_MAXIMUM = timedelta(hours=12)
"""Between these lies a role's maximum session duration, the first by default (IAM API reference)."""
CHAINED_MAXIMUM = timedelta(hours=1)
"""How long the session of a role may be that another role's session assumed ("role chaining")."""
TRUSTED_MAX = 20

NAME = r"[\w+=,.@-]{1,64}"
_PRINCIPAL = re.compile(
    r"arn:aws[a-z-]*:(?:iam::\d{12}:(?:root|(?:user|role)/[\w+=,.@-]{1,64})"
    r"|sts::\d{12}:assumed-role/[\w+=,.@-]{1,64}/[\w+=,.@-]{2,64})",
    re.ASCII,
)
_ROLE_ARN = re.compile(rf"arn:aws[a-z-]*:iam::(\d{{12}}):role/({NAME})", re.ASCII)


class RoleRefused(ValueError):
    """What was asked for is no role that could be."""


@dataclass(frozen=True, slots=True)
class Role:
    """A role. `trusted` are ARNs: of an account (`:root`), a user, a role, or one session of a role.

    `external_id` '' asks for none; `policy` is IAM policy text ('': everything); `max_session` bounds
    `DurationSeconds`.
    """

    role_id: str
    account_id: str
    account_name: str
    name: str
    trusted: tuple[str, ...]
    external_id: str = ""
    policy: str = EVERYTHING
    max_session: timedelta = SHORTEST_MAXIMUM

    @property
    def key(self) -> tuple[str, str]:
        """What a role is found by: account id and name."""
        return self.account_id, self.name

    def arn(self, partition: str = "aws") -> str:
        """The role's ARN."""
        return f"arn:{partition}:iam::{self.account_id}:role/{self.name}"


def named_in(arn: str) -> tuple[str, str] | None:
    """Account id and name in a role's ARN; None when it is none."""
    found = _ROLE_ARN.fullmatch(arn)
    return (found[1], found[2]) if found else None


def put_role(tx: Transaction, account_name: str, wanted: Role) -> Role:
    """Give an account a role, or change the one of that name; its id and its sessions stay.

    `wanted` says name, trust and rights; its id and account are of no account. Raises NoAccount, RoleRefused,
    PolicyRefused.
    """
    read_policy(wanted.policy)
    _check(wanted)
    row = tx.one("SELECT account_id FROM accounts WHERE name = ?", account_name)
    if row is None:
        raise NoAccount(f"there is no account named {account_name!r}")
    account_id, name = row["account_id"], wanted.name
    known = tx.one("SELECT role_id FROM roles WHERE account_id = ? AND name = ?", account_id, name)
    role_id = known["role_id"] if known else "AROA" + tx.ids.hex(17).upper()
    seconds = int(wanted.max_session.total_seconds())
    values = json.dumps(wanted.trusted), wanted.external_id, wanted.policy, seconds
    if known:
        tx.run(
            "UPDATE roles SET trusted = ?, external_id = ?, policy = ?, max_session_s = ? WHERE role_id = ?",
            *values, role_id,
        )  # fmt: skip
    else:
        trusted, external_id, policy, max_session_s = values
        tx.insert(
            "roles", role_id=role_id, account_id=account_id, name=name, trusted=trusted,
            external_id=external_id, policy=policy, max_session_s=max_session_s, created_us=tx.now_us,
        )  # fmt: skip
    done = "changed" if known else "added"
    tx.event(f"account/{account_id}", "account", f"role {name} of {account_name} {done}")
    return Role(
        role_id, account_id, account_name, name, wanted.trusted, wanted.external_id, wanted.policy,
        wanted.max_session,
    )  # fmt: skip


def _check(role: Role) -> None:
    if not re.fullmatch(NAME, role.name, re.ASCII):
        raise RoleRefused("a role's name has letters, digits and _+=,.@-, at most 64")
    if not 1 <= len(role.trusted) <= TRUSTED_MAX:
        raise RoleRefused(f"a role trusts 1 to {TRUSTED_MAX} ARNs")
    for arn in role.trusted:
        if not _PRINCIPAL.fullmatch(arn):
            raise RoleRefused(
                f"{arn!r} cannot be trusted: an account's arn:aws:iam::ID:root, or the ARN of a user, of a"
                " role or of a role's session"
            )
    if role.external_id and not re.fullmatch(r"[\w+=,.@:/-]{2,1224}", role.external_id, re.ASCII):
        raise RoleRefused("an external id has 2 to 1,224 letters, digits and _+=,.@:/-")
    if not SHORTEST_MAXIMUM <= role.max_session <= LONGEST_MAXIMUM:
        raise RoleRefused("a role's longest session is between 1h and 12h")


def roles(rows: Reading) -> dict[tuple[str, str], Role]:
    """Every role there is, by account id and name."""
    found = rows.all(
        "SELECT roles.*, accounts.name AS account_name FROM roles JOIN accounts USING (account_id)"
        " ORDER BY roles.created_us, roles.name"
    )
    return {role.key: role for role in map(_role, found)}


def _role(row: Row) -> Role:
    return Role(
        row["role_id"], row["account_id"], row["account_name"], row["name"],
        tuple(json.loads(row["trusted"])), row["external_id"], row["policy"],
        timedelta(seconds=row["max_session_s"]),
    )  # fmt: skip


def may_assume(
    role: Role, caller: Account, arns: Sequence[str], external_id: str, *, arn: str, context: Context
) -> bool:
    """Whether a caller may assume the role, which was named by `arn`. `arns` are all that the caller goes by.

    The role must trust the caller, and the caller's own policy must allow `sts:AssumeRole` on it. Within one
    account a role that trusts the caller by name, and not only the account, needs no policy of the caller's
    to allow it; a policy that denies always counts.
    """
    account = f":iam::{caller.account_id}:root"
    by_name = any(one in role.trusted for one in arns)
    trusted = by_name or any(one.endswith(account) for one in role.trusted)
    if not trusted or (role.external_id and role.external_id != external_id):
        return False
    said = [evaluate(read_policy(text), "sts:AssumeRole", arn, context).decision for text in caller.policies]
    if Decision.EXPLICIT_DENY in said:
        return False
    granted = by_name and caller.account_id == role.account_id
    return granted or all(one is Decision.ALLOWED for one in said)
