"""Accounts and their keys.

A yard's access key ids begin with `YARD`, so that a client can refuse to send anybody else's keys to a yard,
or a yard's keys to anybody else. The secret is kept as it is: Signature Version 4 needs it to verify.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

from berth.terms.ids import IdSource
from berth.yard.identity.policies import EVERYTHING, read_policy
from berth.yard.store.transaction import Reading, Transaction

KEY_PREFIX = "YARD"
AccountId = NewType("AccountId", str)


@dataclass(frozen=True, slots=True)
class Account:
    """Who asks: twelve digits, the name given at `berth yard account add`, and the IAM policy of its user as
    JSON text ('': everything is allowed)."""

    account_id: str
    name: str
    policy: str = EVERYTHING


@dataclass(frozen=True, slots=True)
class AccessKey:
    """A key pair of an account."""

    access_key_id: str
    secret: str
    account: Account


class AccountExists(ValueError):
    """The name is taken."""


def add_account(tx: Transaction, name: str, policy: str = EVERYTHING) -> AccessKey:
    """Make an account with one key, and a policy for it. Raises AccountExists, PolicyRefused."""
    read_policy(policy)
    if tx.one("SELECT 1 FROM accounts WHERE name = ?", name) is not None:
        raise AccountExists(f"an account named {name!r} exists already")
    account = Account(_twelve_digits(tx.ids), name, policy)
    tx.insert("accounts", account_id=account.account_id, name=name, created_us=tx.now_us, policy=policy)
    key = AccessKey(KEY_PREFIX + tx.ids.hex(16).upper(), tx.ids.hex(40), account)
    tx.insert(
        "access_keys",
        access_key_id=key.access_key_id, account_id=account.account_id, secret=key.secret,
        created_us=tx.now_us,
    )  # fmt: skip
    tx.event(f"account/{account.account_id}", "account", f"account {name} added", to_state="Active")
    return key


def _twelve_digits(ids: IdSource) -> str:
    return str(100_000_000_000 + int(ids.hex(12), 16) % 900_000_000_000)


def access_keys(rows: Reading) -> dict[str, AccessKey]:
    """Every key there is, by its id, the oldest first."""
    found = rows.all(
        "SELECT access_key_id, secret, account_id, name, policy"
        " FROM access_keys JOIN accounts USING (account_id) ORDER BY key_number"
    )
    return {
        row["access_key_id"]: AccessKey(
            row["access_key_id"],
            row["secret"],
            Account(row["account_id"], row["name"], row["policy"]),
        )
        for row in found
    }
