"""Sessions of roles: a key pair and a token that are good for a while, and that no row keeps.

The token itself says whose the session is, until when, and what it may do at most; the yard signs it with a
key of its own, and makes the secret from the same key. So a session outlives a restart of the yard, nothing
grows with the number of sessions, and the store holds no secret of one. AWS's tokens cannot be read by
anybody; these can, and hold nothing that their owner does not know.

Sessions end by this machine's clock, as signatures are checked by it, and never by a rehearsal's: clients
compare `Expiration` with their own clock and fetch new keys in time.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from berth.terms.ids import IdSource
from berth.yard.identity.accounts import KEY_PREFIX, AccessKey, Account, AssumedRole
from berth.yard.identity.policies import EVERYTHING
from berth.yard.identity.roles import Role

SESSION_PREFIX = KEY_PREFIX + "ASIA"
"""How key ids of sessions begin: AWS's letters for them, after those by which a yard's keys are known."""
POLICY_MAX = 2_048  # characters of a session policy (STS API reference, AssumeRole)
_TOKEN_MAX = 8_192
_FIELDS = ("key", "account", "role", "role_id", "session", "until", "policy")
_PARTS = re.compile(r"[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]{44}", re.ASCII)

Roles = Mapping[tuple[str, str], Role]


@dataclass(frozen=True, slots=True)
class Session:
    """What AssumeRole hands out. `repr` shows neither secret nor token."""

    key: AccessKey
    token: str
    until: datetime

    def __repr__(self) -> str:
        return f"Session({self.key.access_key_id}, until {self.until:%Y-%m-%dT%H:%M:%SZ})"


def begin_session(
    yard_key: bytes, role: Role, name: str, *, now: datetime, span: timedelta, policy: str, ids: IdSource
) -> Session:
    """A new session of a role, of `span` from `now` (real time). `policy` '' leaves it what the role may."""
    key_id = SESSION_PREFIX + ids.hex(12).upper()
    until = now.astimezone(UTC).replace(microsecond=0) + span
    values = (
        key_id, role.account_id, role.name, role.role_id, name, int(until.timestamp()), policy,
    )  # fmt: skip
    said = _encoded(json.dumps(dict(zip(_FIELDS, values, strict=True)), separators=(",", ":")).encode())
    token = f"{said}.{_encoded(_seal(yard_key, b'token', said))}"
    key = AccessKey(key_id, _secret(yard_key, said), _account(role, name, policy), until)
    return Session(key, token, until)


def key_of_session(yard_key: bytes, access_key_id: str, token: str, roles: Roles) -> AccessKey | None:
    """The key pair of a session, over or not; None for a token that this yard did not make for that key, or
    whose role is gone."""
    said = _read(yard_key, token)
    if said is None or said["key"] != access_key_id:
        return None
    role = roles.get((said["account"], said["role"]))
    if role is None or role.role_id != said["role_id"]:
        return None
    until = datetime.fromtimestamp(said["until"], UTC)
    secret = _secret(yard_key, token.partition(".")[0])
    return AccessKey(access_key_id, secret, _account(role, said["session"], said["policy"]), until)


def _account(role: Role, session: str, policy: str) -> Account:
    taken = AssumedRole(role.name, role.role_id, session, policy or EVERYTHING)
    return Account(role.account_id, role.account_name, role.policy, as_role=taken)


def _read(yard_key: bytes, token: str) -> dict[str, Any] | None:
    if len(token) > _TOKEN_MAX or not _PARTS.fullmatch(token):
        return None
    said, _, seal = token.partition(".")
    if not hmac.compare_digest(seal, _encoded(_seal(yard_key, b"token", said))):
        return None
    values: dict[str, Any] = json.loads(base64.urlsafe_b64decode(said))
    return values


def _secret(yard_key: bytes, said: str) -> str:
    """Forty characters, as AWS's secrets have."""
    return _encoded(_seal(yard_key, b"secret", said))[:40]


def _seal(yard_key: bytes, purpose: bytes, said: str) -> bytes:
    return hmac.new(yard_key, purpose + b"\0" + said.encode(), hashlib.sha256).digest()


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode()
