"""Accounts, their users and keys.

A yard's access key ids begin with `YARD`, so that a client can refuse to send anybody else's keys to a yard,
or a yard's keys to anybody else. The secret is kept as it is: Signature Version 4 needs it to verify.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NewType

from berth.terms.ids import IdSource
from berth.yard.identity.policies import EVERYTHING, read_policy
from berth.yard.store.transaction import Reading, Transaction

KEY_PREFIX = "YARD"
AccountId = NewType("AccountId", str)


@dataclass(frozen=True, slots=True)
class AssumedRole:
    """As whom somebody asks who has assumed a role: its name and id, the session's name, and the policy that
    the session was given ('': it may do what the role may)."""

    name: str
    role_id: str
    session: str
    session_policy: str = EVERYTHING


@dataclass(frozen=True, slots=True)
class Account:
    """Who asks: twelve digits, the name given at `berth yard account add`, and the IAM policy of the user as
    JSON text ('': everything is allowed). `further_user` is the user's name; '' is the first one, who is
    named like the account. `as_role`: no user but the session of a role asks, and `policy` is the role's."""

    account_id: str
    name: str
    policy: str = EVERYTHING
    further_user: str = ""
    as_role: AssumedRole | None = None

    @property
    def policies(self) -> tuple[str, ...]:
        """All that must allow what is asked for."""
        return (self.policy, self.as_role.session_policy) if self.as_role else (self.policy,)

    @property
    def user(self) -> str:
        """The name of the user who asks."""
        return self.further_user or self.name


@dataclass(frozen=True, slots=True)
class AccessKey:
    """A key pair of an account. `until` is when a session's ends, by real time; None: never."""

    access_key_id: str
    secret: str
    account: Account
    until: datetime | None = None


class AccountExists(ValueError):
    """The name is taken."""


class NoAccount(ValueError):
    """There is no account of that name."""


def add_account(tx: Transaction, name: str, policy: str = EVERYTHING) -> AccessKey:
    """Make an account with one key, and a policy for it. Raises AccountExists, PolicyRefused."""
    read_policy(policy)
    if tx.one("SELECT 1 FROM accounts WHERE name = ?", name) is not None:
        raise AccountExists(f"an account named {name!r} exists already")
    account = Account(_twelve_digits(tx.ids), name, policy)
    tx.insert("accounts", account_id=account.account_id, name=name, created_us=tx.now_us, policy=policy)
    key = _new_key(tx, account)
    tx.event(f"account/{account.account_id}", "account", f"account {name} added", to_state="Active")
    return key


def add_user(tx: Transaction, account_name: str, name: str, policy: str = EVERYTHING) -> AccessKey:
    """Give an account a further user, who has one key and may do what `policy` says and nothing else.

    Raises NoAccount, AccountExists where the account has a user of that name, PolicyRefused.
    """
    read_policy(policy)
    row = tx.one("SELECT account_id FROM accounts WHERE name = ?", account_name)
    if row is None:
        raise NoAccount(f"there is no account named {account_name!r}")
    account_id = row["account_id"]
    taken = "SELECT 1 FROM access_keys WHERE account_id = ? AND user_name = ?"
    if name == account_name or tx.one(taken, account_id, name) is not None:
        raise AccountExists(f"account {account_name} has a user named {name!r} already")
    key = _new_key(tx, Account(account_id, account_name, policy, name))
    tx.event(f"account/{account_id}", "account", f"user {name} added to {account_name}")
    return key


def _new_key(tx: Transaction, account: Account) -> AccessKey:
    key = AccessKey(KEY_PREFIX + tx.ids.hex(16).upper(), tx.ids.hex(40), account)
    tx.insert(
        "access_keys",
        access_key_id=key.access_key_id, account_id=account.account_id, secret=key.secret,
        created_us=tx.now_us, user_name=account.further_user,
        policy=account.policy if account.further_user else EVERYTHING,
    )  # fmt: skip
    return key


def _twelve_digits(ids: IdSource) -> str:
    return str(100_000_000_000 + int(ids.hex(12), 16) % 900_000_000_000)


def access_keys(rows: Reading) -> dict[str, AccessKey]:
    """Every key there is, by its id, the oldest first."""
    found = rows.all(
        "SELECT access_key_id, secret, account_id, name, user_name,"
        " CASE user_name WHEN '' THEN accounts.policy ELSE access_keys.policy END AS policy"
        " FROM access_keys JOIN accounts USING (account_id) ORDER BY key_number"
    )
    return {
        row["access_key_id"]: AccessKey(
            row["access_key_id"],
            row["secret"],
            Account(row["account_id"], row["name"], row["policy"], row["user_name"]),
        )
        for row in found
    }
